//! Commands of `agentctl` for its user: shell completion, manual pages, `agentctl bug-report`.

use std::{fs, os::unix::fs::PermissionsExt, time::Instant};

use agentd_e2e::{
    DEADLINE, Daemon, Home, MockServer, Reply, Service, Terminal, binaries, ctl, home::models, sse,
};
use serde_json::{Value, json};

use crate::{
    agentctl_verbs::{client, open},
    support::{answers, assert_says, text},
};

#[test]
fn bash_completes_verbs_flags_and_sessions_and_is_silent_without_a_daemon() {
    let home = Home::new();
    let complete = |words: &str| {
        let script = "set -e; source <(agentctl completions bash); COMP_LINE=\"agentctl $1\"; COMP_POINT=${#COMP_LINE}; \
                      _agentctl_complete agentctl \"${COMP_LINE##* }\" x; printf '%s\\n' \"${COMPREPLY[@]}\"";
        let mut command = home.command("/bin/bash");
        let folder = binaries::agentctl().parent().unwrap().display().to_string();
        let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
        let output =
            command.env("PATH", path).args(["-c", script, "bash", words]).output().expect("bash runs");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{words}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(complete("stee"), "steer");
    assert_eq!(complete("abort --sc"), "--scope");
    assert_eq!(complete("abort --scope t"), "turn\ntools");
    assert_eq!(complete("attach aaaa"), "");
    assert_eq!(complete("resu"), "resume");
    assert_eq!(complete("export --form"), "--format");
    home.write("copy.jsonl", "");
    assert_eq!(complete("export ./co"), "./copy.jsonl");
    let service = Service::start(&home, &[]);
    let mut client = client(&service);
    open(&mut client, &home, "aaaa-1");
    open(&mut client, &home, "aaab-2");
    // On a loaded machine the daemon may miss the time limit of a completion, so ask again.
    let answered = |words: &str| {
        let end = Instant::now() + DEADLINE;
        loop {
            let said = complete(words);
            if !said.is_empty() || Instant::now() > end {
                return said;
            }
        }
    };
    assert_eq!(answered("abort aaab"), "aaab-2");
    let mut both: Vec<String> = answered("export aa").lines().map(str::to_owned).collect();
    both.sort();
    assert_eq!(both, ["aaaa-1", "aaab-2"]);
    assert_eq!(answered("login anthr"), "anthropic");
}

#[test]
fn manual_pages_are_written_and_printed() {
    let home = Home::new();
    assert_eq!(ctl::run(&home, &["man", "--out", "pages/man1"]).code, 0);
    let page = home.read("pages/man1/agentctl-setup-local.1");
    assert_eq!(ctl::run(&home, &["man", "setup", "local"]).stdout, page);
    assert_says(&page, &[".SH EXAMPLES", ".SH \"EXIT STATUS\""]);
    let wrong = ctl::run(&home, &["man", "set-up"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert_says(&wrong.stderr, &["no verb \"set-up\""]);
    home.write("taken", "");
    let refused = ctl::run(&home, &["man", "--out", "taken"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert_says(&refused.stderr, &["cannot write taken"]);
}

fn lines(report: &str) -> Vec<Value> {
    report.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

/// Records a session of one turn with a command, and returns its id.
fn recorded(home: &Home) -> String {
    let folder = home.root().join("recordings");
    let mut daemon = Daemon::start(home, &["--record", folder.to_str().unwrap()]);
    daemon.prompt("Say hi.");
    let id = daemon.call(json!({"type": "get_state"}))["data"]["sessionId"].as_str().unwrap().to_owned();
    daemon.close();
    // The same folder holds a recording of another session.
    let mut daemon = Daemon::start(home, &["--record", folder.to_str().unwrap()]);
    daemon.prompt("Other.");
    daemon.close();
    id
}

#[test]
fn a_report_holds_all_that_is_needed_and_plays_the_turn_again() {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "bash", json!({"command": "echo hi"}))])),
        Reply::stream(sse::answer("It said hi.")),
        Reply::stream(sse::answer("Another session.")),
    ]);
    let home = Home::with_model(&server);
    home.settings(&json!({"theme": "dark", "httpProxy": ""}));
    let id = recorded(&home);
    home.write_agent("logs/agentd.log", "first\nlast words\n");
    let report = home.root().join("report.jsonl");
    let args = ["bug-report", &id[..13], "-o", report.to_str().unwrap(), "--recordings", "recordings"];
    let mut command = ctl::command(&home, &args);
    command.current_dir(home.root());
    let done = agentd_e2e::Ctl::start_with(command, std::process::Stdio::null()).finish();
    assert_eq!(done.code, 0, "{done:?}");
    assert_says(
        &done.stdout,
        &["report.jsonl", "2 recordings", "2 lines of the daemon's log", "the session ("],
    );
    assert_eq!(fs::metadata(&report).unwrap().permissions().mode() & 0o777, 0o600);
    let all = fs::read_to_string(&report).unwrap();
    let lines = lines(&all);
    let kinds: Vec<&str> = {
        let mut kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
        kinds.dedup();
        kinds
    };
    assert_eq!(kinds, ["bug_report", "settings", "diagnostics", "doctor", "entry", "recording", "log"]);
    assert!(all.starts_with("{\"type\":\"bug_report\","));
    assert_eq!(lines[0]["session"], id);
    assert!(lines[0]["platform"]["os"].is_string() && lines[0]["agentctl"].is_string());
    assert_eq!(of_type(&lines, "settings")[0]["value"]["theme"], "dark");
    assert!(of_type(&lines, "doctor")[0]["doctor"]["checks"].as_array().unwrap().len() > 3);
    assert_eq!(of_type(&lines, "entry")[0]["entry"]["type"], "session");
    assert!(!all.contains("Another session."), "{all}");

    // Replays the turn from the report alone, as on a machine without provider and key.
    drop(server);
    let elsewhere = Home::new();
    let mut models = models("http://127.0.0.1:9/elsewhere/v1");
    models["providers"]["fake"]["apiKey"] = json!("$NO_SUCH_KEY");
    elsewhere.configure(&models);
    let mut daemon = Daemon::start(&elsewhere, &["--replay", report.to_str().unwrap()]);
    let played = daemon.prompt("Say hi.");
    assert_eq!(text(answers(&played).last().unwrap()), "It said hi.");
    let over = daemon.prompt("More?");
    assert_says(
        answers(&over).last().unwrap()["errorMessage"].as_str().unwrap(),
        &["report.jsonl", "no more requests"],
    );
    daemon.close();
}

#[test]
fn without_transcript_nothing_that_was_said_is_in_it() {
    let server = MockServer::start([
        Reply::stream(sse::answer("A confidence.")),
        Reply::stream(sse::answer("Another session.")),
    ]);
    let home = Home::with_model(&server);
    let id = recorded(&home);
    let mut command = ctl::command(&home, &["bug-report", &id, "--no-transcript"]);
    command.current_dir(home.root()).env("AGENTD_RECORD", home.root().join("recordings"));
    let done = agentd_e2e::Ctl::start_with(command, std::process::Stdio::null()).finish();
    assert_eq!(done.code, 0, "{done:?}");
    assert_says(&done.stdout, &["no transcript", "0 recordings"]);
    let name = done.stdout.split(':').next().unwrap();
    assert!(name.starts_with(&format!("agentd-bug-report-{}-", &id[..13])), "{name}");
    let all = fs::read_to_string(home.root().join(name)).unwrap();
    assert!(!all.contains("confidence") && !all.contains("Say hi."), "{all}");
    assert_eq!(of_type(&lines(&all), "doctor").len(), 1);
}

#[test]
fn what_cannot_be_reported_is_said() {
    let server = MockServer::start([Reply::stream(sse::answer("One.")), Reply::stream(sse::answer("Two."))]);
    let home = Home::with_model(&server);
    let id = recorded(&home);
    home.write("there.jsonl", "mine");
    let there = home.root().join("there.jsonl").display().to_string();
    fs::write(&there, "mine").unwrap();
    let empty = home.root().join("empty");
    fs::create_dir(&empty).unwrap();
    let (empty, missing) = (empty.display().to_string(), home.root().join("none").display().to_string());
    let out = home.root().join("out.jsonl").display().to_string();
    let nowhere = format!("{missing}/out.jsonl");
    let common = id.chars().take(2).collect::<String>();
    for (args, code, expected) in [
        (vec!["zzz"], 1, vec!["no session has an id that begins with \"zzz\""]),
        (vec![&common, "-o", &out], 1, vec!["is the beginning of 2 ids"]),
        (vec![&id, "-o", &there], 2, vec!["there.jsonl is there already", "-o"]),
        (vec![&id, "-o", &nowhere], 1, vec!["cannot write", "out.jsonl"]),
        (vec![&id, "-o", &out, "--recordings", &empty], 1, vec!["no recording of session", "--record DIR"]),
        (vec![&id, "-o", &out, "--recordings", &missing], 1, vec!["cannot read", "none"]),
        (vec![&id, "--no-transcript", "--recordings", &empty], 2, vec!["cannot be used with"]),
        (vec!["./none.jsonl", "-o", &out], 1, vec!["cannot read ./none.jsonl"]),
        (vec![&there, "-o", &out], 1, vec!["it is no session file"]),
    ] {
        let done = ctl::run(&home, &[vec!["bug-report"], args.clone()].concat());
        assert_eq!(done.code, code, "{args:?} {done:?}");
        assert_says(&done.stderr, &expected);
        assert!(!home.root().join("out.jsonl").exists(), "{args:?}");
    }
    assert_eq!(fs::read_to_string(&there).unwrap(), "mine");
}

/// The lines that a shell's script gets for words, the last of which is being typed.
fn completed(home: &Home, words: &[&str]) -> String {
    let mut command = ctl::command(home, &["--", "agentctl"]);
    command.args(words).env("AGENTCTL_COMPLETE", "fish");
    let done = agentd_e2e::Ctl::start_with(command, std::process::Stdio::null()).finish();
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{words:?}: {done:?}");
    done.stdout
}

#[test]
fn without_a_daemon_sessions_and_models_complete_and_none_is_started() {
    let server = MockServer::start([Reply::stream(sse::answer("One.")), Reply::stream(sse::answer("Two."))]);
    let home = Home::with_model(&server);
    let asked = ctl::run_with_input(&home, &["prompt", "Review this."], "+a line\n");
    assert_eq!(asked.code, 0, "{asked:?}");
    assert_eq!(ctl::run(&home, &["prompt", "--name", "Named", "Hi"]).code, 0);
    for verb in ["tree", "export", "name", "resume", "attach", "rm"] {
        let said = completed(&home, &[verb, ""]);
        assert_says(&said, &["project: Review this.\n", "project: Named\n"]);
        assert!(!said.contains("+a line"), "{said}");
    }
    let id = completed(&home, &["tree", ""]).split('\t').next().unwrap().to_owned();
    assert!(completed(&home, &["tree", &id[..id.len() - 1]]).starts_with(&id));
    assert_eq!(completed(&home, &["abort", ""]).lines().filter(|line| !line.starts_with('-')).count(), 0);
    // On a loaded machine an agentd may miss the time limit of a completion, so ask again.
    let end = Instant::now() + DEADLINE;
    let answered = |words: &[&str], wanted: &str| {
        while !completed(&home, words).contains(wanted) {
            assert!(Instant::now() < end, "{wanted} never came");
        }
    };
    answered(&["prompt", "--model", "fake/"], "fake/fake");
    answered(&["login", "anthr"], "anthropic");
    assert_eq!(ctl::run(&home, &["status"]).code, 3, "no daemon was started");
}

#[test]
fn the_help_is_in_groups_and_a_mistyped_verb_is_guessed() {
    let home = Home::new();
    let plain = ctl::run(&home, &["--help"]);
    assert_eq!((plain.code, plain.stderr.as_str()), (0, ""), "{plain:?}");
    assert_says(
        &plain.stdout,
        &[
            "New here? `agentctl doctor`",
            "\nTalk:\n  chat ",
            "\n  prompt, run, exec ",
            "\nSessions:\n  sessions, ls ",
            "\nDaemon:\n",
        ],
    );
    assert!(!plain.stdout.contains('\u{1b}'));
    for columns in [60, 100] {
        let plain = [("NO_COLOR", "1")];
        let shown =
            Terminal::start_with(&home, &binaries::agentctl(), &["--help"], Some((columns, 24)), &plain);
        let shown = shown.finish();
        assert_eq!(shown.code, 0, "{shown:?}");
        assert!(!shown.stdout.contains('\u{1b}'), "{shown:?}");
        for line in shown.stdout.lines().filter(|line| line.starts_with("  ")) {
            assert!(line.chars().count() <= usize::from(columns), "{columns}: {line:?}");
        }
    }
    let sized = |args: &[&str], columns| {
        Terminal::start_with(&home, &binaries::agentctl(), args, Some((columns, 24)), &[]).finish()
    };
    let coloured = sized(&["--help"], 100);
    assert_says(&coloured.stdout, &["\u{1b}[1mTalk:\u{1b}[0m", "\u{1b}[36mprompt, run, exec\u{1b}[0m"]);
    let narrow = sized(&["sessions", "--help"], 60);
    assert!(narrow.stdout.lines().all(|line| line.chars().count() <= 90), "{narrow:?}");
    for (typed, meant) in [("sesions", "'sessions'"), ("promt", "'prompt'"), ("resme", "'resume'")] {
        let wrong = ctl::run(&home, &[typed]);
        assert_eq!(wrong.code, 2, "{wrong:?}");
        assert_says(&wrong.stderr, &["similar subcommand", meant]);
    }
}

#[test]
fn versions_of_all_that_works_together_are_told() {
    let home = Home::new();
    let version = env!("CARGO_PKG_VERSION");
    let alone = ctl::run(&home, &["version"]);
    assert_eq!((alone.code, alone.stderr.as_str()), (0, ""), "{alone:?}");
    let agentd = binaries::agentd().display().to_string();
    let says = [
        format!("agentctl  {version}"),
        format!("agentd    {version}  {agentd}\n"),
        "daemon    not running\nprotocol  1\n".into(),
    ];
    assert_says(&alone.stdout, &says.each_ref().map(String::as_str));
    let service = Service::start(&home, &[]);
    let json = ctl::run(&home, &["version", "--json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&json["agentctl"], &json["agentd"]["version"]), (&json!(version), &json!(version)));
    assert_eq!((&json["daemon"]["pid"], &json["protocol"]), (&json!(service.id()), &json!(1)));
}

/// Whether a newer one is there is asked of the repository that is named, or that cargo noted, and of nothing unless it is wanted.
#[test]
fn a_newer_version_is_looked_for_when_asked() {
    let home = Home::new();
    let git = |args: &[&str]| {
        let output = home.command("git").current_dir(home.project()).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "-q"]);
    git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"]);
    let url = format!("file://{}", home.project().display());
    let check = format!("--check={url}");
    let unnamed = ctl::run(&home, &["version", "--check"]);
    assert_eq!(unnamed.code, 1, "{unnamed:?}");
    assert_says(
        &unnamed.stderr,
        &["nothing says where this program came from", "agentctl version --check=URL"],
    );
    git(&["tag", &format!("v{}", env!("CARGO_PKG_VERSION"))]);
    let newest = ctl::run(&home, &["version", &check]);
    assert_eq!(newest.code, 0, "{newest:?}");
    git(&["tag", "v999.0.0"]);
    let newer = ctl::run(&home, &["version", "--json", &check]);
    let json: Value = serde_json::from_str(&newer.stdout).unwrap();
    assert_eq!(
        (&json["newest"]["isNewer"], &json["newest"]["newestRelease"]),
        (&json!(true), &json!("999.0.0"))
    );
    let newer = ctl::run(&home, &["version", &check]);
    assert_says(&newer.stdout, &["newest    999.0.0 is there; cargo install --locked --git file:///"]);
    let missing = ctl::run(&home, &["version", "--check=file:///nonexistent/me:secret@x"]);
    assert_eq!(missing.code, 1, "{missing:?}");
    assert_says(&missing.stderr, &["agentctl: git cannot ask file:///nonexistent/", "does not"]);
    let other = ctl::run(&home, &["version", "--check=ext::sh -c date"]);
    assert_eq!(other.code, 1, "{other:?}");
    assert_says(&other.stderr, &["not allowed"]);
}
