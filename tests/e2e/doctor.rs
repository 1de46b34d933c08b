//! `agentctl doctor` and `agentctl setup local`, with the real daemon behind them.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Stdio};

use agentd_e2e::{
    Ctl, Daemon, Home, MockServer, Reply, Terminal, binaries,
    ctl::{self, Finished},
    sse,
};
use serde_json::{Value, json};

use crate::support::assert_says;

fn home() -> Home {
    let home = Home::new();
    set_mode(&home.agent_dir(), 0o700);
    home
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs `agentctl doctor --json` with these variables.
fn doctor(home: &Home, variables: &[(&str, &str)]) -> (Finished, Vec<Value>) {
    let mut command = ctl::command(home, &["doctor", "--json"]);
    command.envs(variables.iter().copied());
    let done = Ctl::start_with(command, Stdio::null()).finish();
    let diagnosis: Value =
        serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:?}"));
    let checks = diagnosis["checks"].as_array().expect("checks").clone();
    (done, checks)
}

/// The status and all texts of the checks with this id.
fn of(checks: &[Value], id: &str) -> (String, String) {
    let own: Vec<&Value> = checks.iter().filter(|check| check["id"] == id).collect();
    assert!(!own.is_empty(), "no check {id} in {checks:#?}");
    let rank =
        |check: &&&Value| ["ok", "warning", "problem"].iter().position(|status| check["status"] == *status);
    let worst = own.iter().max_by_key(rank).expect("a check");
    let text = own.iter().flat_map(|check| [&check["detail"], &check["advice"]]);
    let text: Vec<&str> = text.filter_map(Value::as_str).collect();
    (worst["status"].as_str().expect("a status").to_owned(), text.join("\n"))
}

fn listing(ids: &[&str]) -> Reply {
    let data: Vec<Value> = ids.iter().map(|id| json!({"id": id, "object": "model"})).collect();
    Reply::status(200, "application/json", json!({"object": "list", "data": data}).to_string())
}

/// Every file below a folder, with its content.
fn snapshot(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.push((path.display().to_string(), Vec::new()));
            files.extend(snapshot(&path));
        } else {
            files.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
    files.sort();
    files
}

#[test]
fn a_fresh_home_has_warnings_and_no_problem() {
    let home = home();
    let before = snapshot(home.root());
    let done = ctl::run(&home, &["doctor"]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done:?}");
    assert_says(
        &done.stdout,
        &[
            "ok   agentd: ",
            "ok   agent directory: ",
            "warn keys: no provider has a key",
            "agentctl login",
            "agentctl setup local",
            "ok   shell: ",
            "ok   processes: ",
            "ok   sandbox: ",
            "ok   temporary files: ",
            "local servers: ",
            "ok   proxy: none is set",
        ],
    );
    assert!(done.stdout.lines().all(|line| line.len() > 5), "{done:?}");
    assert_eq!(snapshot(home.root()), before, "a look changes nothing");
}

#[test]
fn checks_come_in_order_and_a_key_is_named_and_never_shown() {
    let home = home();
    let (done, checks) =
        doctor(&home, &[("OPENAI_API_KEY", "sk-canary-5521"), ("HTTPS_PROXY", "http://u:canary-5522@p")]);
    let mut ids: Vec<&str> = checks.iter().filter_map(|check| check["id"].as_str()).collect();
    ids.dedup();
    assert_eq!(
        ids,
        [
            "version",
            "agent_dir",
            "settings",
            "trust",
            "resources",
            "models_catalogue",
            "models_file",
            "keys",
            "auth_file",
            "model",
            "sessions",
            "language_servers",
            "shell",
            "processes",
            "sandbox",
            "temp_dir",
            "local_servers",
            "proxy"
        ]
    );
    assert_eq!(done.code, 0, "{done:?}");
    let (status, text) = of(&checks, "keys");
    assert_eq!(status, "ok", "{text}");
    assert_says(&text, &["openai: OPENAI_API_KEY is set"]);
    assert_says(&of(&checks, "proxy").1, &["HTTPS_PROXY is set"]);
    assert!(!format!("{done:?}").contains("canary"), "{done:?}");
}

#[test]
fn broken_files_are_found_and_the_rest_is_checked_all_the_same() {
    let home = home();
    home.write_agent("settings.json", "{\"defaultModel\": ");
    home.write_agent("models.json", "{\"providers\": {\"a\": {\"apiKey\": \"canary-77\", ]}}");
    home.write_agent("auth.json", "{\"a\": canary-78}");
    set_mode(&home.agent_dir().join("auth.json"), 0o644);
    let before = snapshot(&home.agent_dir());
    let (done, checks) = doctor(&home, &[]);
    // The start-up messages of agentd about these files are in the report, and not repeated.
    assert_eq!((done.code, done.stderr.as_str()), (1, ""), "{done:?}");
    for (id, parts) in [
        ("settings", &["settings.json:1: not JSON", "Repair the file or remove it"][..]),
        ("models_file", &["models.json:1: Failed to parse models.json"]),
        ("auth_file", &["auth.json, line 1", "mode 0644", "chmod 600 "]),
    ] {
        let (status, text) = of(&checks, id);
        assert_eq!(status, "problem", "{text}");
        assert_says(&text, parts);
    }
    assert_eq!(of(&checks, "shell").0, "ok");
    assert_eq!(of(&checks, "temp_dir").0, "ok");
    assert!(!format!("{done:?}").contains("canary"), "{done:?}");
    assert_eq!(snapshot(&home.agent_dir()), before);
    let text = ctl::run(&home, &["doctor"]);
    assert_eq!(text.code, 1, "{text:?}");
    assert_says(&text.stdout, &["FAIL settings: ", "FAIL models.json: ", "warn auth.json: ", "3 problems, "]);
}

#[test]
fn values_of_the_wrong_kind_and_an_open_auth_file_are_warnings() {
    let home = home();
    home.settings(&json!({"defaultModel": 5, "durability": "os"}));
    home.write_agent("auth.json", "{}");
    set_mode(&home.agent_dir().join("auth.json"), 0o640);
    let (done, checks) = doctor(&home, &[]);
    assert_eq!(done.code, 0, "{done:?}");
    let (status, text) = of(&checks, "settings");
    assert_eq!(status, "warning", "{text}");
    assert_says(&text, &["settings.json: 2 settings", "\"defaultModel\" is ignored"]);
    let (status, text) = of(&checks, "auth_file");
    assert_eq!(status, "warning", "{text}");
    assert_says(&text, &["chmod 600 ", "auth.json"]);
}

#[test]
fn folders_that_cannot_be_written_are_problems() {
    let home = home();
    // Not even root can create a file below a plain file.
    home.write("plain", "no folder");
    let agent_dir = home.project().join("plain/agent").display().to_string();
    let (done, checks) = doctor(&home, &[("AGENTD_DIR", &agent_dir), ("TMPDIR", "/none/such")]);
    assert_eq!(done.code, 1, "{done:?}");
    for (id, place, says) in [
        ("agent_dir", "plain/agent", "set AGENTD_DIR"),
        ("sessions", "plain/agent/sessions", "sessionDir"),
        ("temp_dir", "/none/such", "Set TMPDIR"),
    ] {
        let (status, text) = of(&checks, id);
        assert_eq!(status, "problem", "{text}");
        assert_says(&text, &[place, says]);
    }
    // Root may write to any folder, so the check passes for root and fails for all others.
    set_mode(&home.agent_dir(), 0o500);
    let denied = fs::write(home.agent_dir().join("probe"), "").is_err();
    let (_, checks) = doctor(&home, &[]);
    assert_eq!(of(&checks, "agent_dir").0, if denied { "problem" } else { "ok" });
    set_mode(&home.agent_dir(), 0o700);
}

#[test]
fn a_shell_that_does_not_work_is_a_problem() {
    let home = home();
    let check = |shell: &str, parts: &[&str]| {
        home.settings(&json!({"shellPath": shell}));
        let (done, checks) = doctor(&home, &[]);
        let (status, text) = of(&checks, "shell");
        assert_eq!((done.code, status.as_str()), (1, "problem"), "{done:?}");
        assert_says(&text, parts);
        assert_says(&text, &["shellPath"]);
    };
    check("/no/such/shell", &["Custom shell path not found: /no/such/shell"]);
    check("/bin/false", &["/bin/false ended `exit 0` with code 1"]);
    home.write("plain", "no program");
    check("plain", &["plain cannot be run"]);
}

#[test]
fn a_configured_server_is_asked() {
    let server = MockServer::always(listing(&["m-one"]));
    let home = home();
    home.configure(&json!({"providers": {"mine": {"baseUrl": server.base_url(), "api": "openai-completions", "apiKey": "none",
        "models": [{"id": "m-one"}]}}}));
    let (done, checks) = doctor(&home, &[]);
    assert_eq!(done.code, 0, "{done:?}");
    let text = of(&checks, "local_servers").1;
    assert_says(&text, &[&format!("mine: {}, 1 model (m-one)", server.base_url())]);
    assert_says(&of(&checks, "model").1, &["mine/m-one"]);
    let requests = server.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    assert_eq!((requests[0].target.as_str(), requests[0].header("authorization")), ("GET /v1/models", None));
    home.configure(
        &json!({"providers": {"gone": {"baseUrl": "http://127.0.0.1:1/v1", "api": "openai-completions",
        "apiKey": "none", "models": [{"id": "m"}]}}}),
    );
    let (status, text) = of(&doctor(&home, &[]).1, "local_servers");
    assert_eq!(status, "warning", "{text}");
    assert_says(&text, &["gone: nothing answers at http://127.0.0.1:1/v1/models", "Start the server"]);
}

#[test]
fn set_up_in_one_command_and_prompted_in_the_next() {
    let server = MockServer::start([
        listing(&["tiny:1b", "nomic-embed-text"]),
        Reply::stream(sse::answer("It works.")),
    ]);
    let home = home();
    let done = ctl::run(&home, &["setup", "local", "--url", &server.base_url()]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done:?}");
    assert_says(&done.stdout, &["provider local, new", "Written to ", "local/tiny:1b"]);
    assert!(!done.stdout.contains("embed"), "{done:?}");
    let file = home.agent_dir().join("models.json");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // Runs the suggested command, as a user would paste it.
    let command = done.stdout.lines().find_map(|line| line.strip_prefix("  agentctl ")).expect("a command");
    let script = format!("{} {command}", binaries::agentctl().display());
    let prompted = home.command("/bin/sh").args(["-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&prompted.stdout), "It works.\n", "{prompted:?}");
    assert_eq!(server.requests()[1].body["model"], "tiny:1b");
}

#[test]
fn everything_else_in_models_json_stays() {
    let server = MockServer::always(listing(&["a", "b"]));
    let home = home();
    let url = server.base_url();
    let before = format!(
        "// mine\n{{\"providers\": {{\n  \"local\": {{\"baseUrl\": \"http://127.0.0.1:1/v1\", \"api\": \"openai-completions\", \"models\": [{{\"id\": \"x\"}}]}},\n  \
         \"own\": {{\"baseUrl\": \"{url}\", \"api\": \"openai-completions\", \"apiKey\": \"none\", /* one */ \"models\": [{{\"id\": \"a\", \"cost\": {{\"input\": 1.0}}}}]}},\n}}}}\n"
    );
    home.write_agent("models.json", &before);
    let file = home.agent_dir().join("models.json");
    set_mode(&file, 0o640);
    let dry = ctl::run(&home, &["setup", "local", "--url", &url, "--dry-run"]);
    assert_says(&dry.stdout, &["provider own, there already, with new models", "This was a dry run"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    let json = ctl::run(&home, &["setup", "local", "--url", &url, "--json"]);
    let setup: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(setup["written"], true);
    let mut providers = setup["providers"].clone();
    providers[0].as_object_mut().unwrap().remove("listener");
    assert_eq!(
        providers,
        json!([{"provider": "own", "baseUrl": url, "models": ["a", "b"], "change": "updated"}])
    );
    let after = fs::read_to_string(&file).unwrap();
    assert_eq!(after, before.replace("{\"input\": 1.0}}]", "{\"input\": 1.0}}, {\"id\": \"b\"}]"));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    let again = ctl::run(&home, &["setup", "local", "--url", &url]);
    assert_says(&again.stdout, &["there already", "says all of this already", "--model own/a "]);
    assert_eq!(fs::read_to_string(&file).unwrap(), after);
    // `--provider` adds the same server under another name.
    let second = ctl::run(&home, &["setup", "local", "--url", &url, "--provider", "second", "--model", "b"]);
    assert_says(&second.stdout, &["provider second, new", "second/b"]);
    let taken = ctl::run(&home, &["setup", "local", "--url", &url, "--provider", "local"]);
    assert_eq!(taken.code, 1);
    assert_says(&taken.stderr, &["The provider local is another server"]);
}

#[test]
fn a_broken_models_json_is_not_touched() {
    let server = MockServer::always(listing(&["a"]));
    let home = home();
    for broken in ["{\"providers\": {", "{\"providers\": 5}", "[]"] {
        home.write_agent("models.json", broken);
        let done = ctl::run(&home, &["setup", "local", "--yes", "--url", &server.base_url()]);
        assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{done:?}");
        assert_says(&done.stderr, &["models.json was not changed", "Repair the file or remove it."]);
        assert_eq!(fs::read_to_string(home.agent_dir().join("models.json")).unwrap(), broken);
    }
}

#[test]
fn what_is_no_model_server_is_refused_with_the_reason() {
    let home = home();
    let check = |url: &str, parts: &[&str]| {
        let done = ctl::run(&home, &["setup", "local", "--url", url]);
        assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{done:?}");
        assert_says(&done.stderr, parts);
        assert!(!done.stderr.contains("canary"), "{done:?}");
    };
    check(
        "http://127.0.0.1:1",
        &["nothing answers at http://127.0.0.1:1/v1/models", "Is the server running"],
    );
    check("ftp://127.0.0.1/", &["http://HOST:PORT/v1"]);
    check("http://u:canary@127.0.0.1/", &["leave the part before the @ out"]);
    let html = MockServer::always(Reply::status(200, "text/html", "<html></html>"));
    check(&html.base_url(), &["is no model listing: the answer is not JSON"]);
    let locked = MockServer::always(Reply::status(401, "application/json", "{}"));
    check(&locked.base_url(), &["wants a key (401)", "models.json"]);
    let elsewhere =
        MockServer::always(Reply::status(302, "text/html", "").header("location", "http://canary.invalid/"));
    check(&elsewhere.base_url(), &["it sends elsewhere (302)"]);
    let embeddings = MockServer::always(listing(&["text-embedding-3"]));
    check(&embeddings.base_url(), &["lists no model to talk to"]);
    assert!(!home.agent_dir().join("models.json").exists());
}

#[test]
fn on_a_terminal_the_user_is_asked() {
    let server = MockServer::always(listing(&["a"]));
    let home = home();
    let file = home.agent_dir().join("models.json");
    let answer = |keys: &str| {
        let args = ["setup", "local", "--url", &server.base_url()];
        let mut terminal = Terminal::start(&home, &binaries::agentctl(), &args);
        terminal.wait_for("[Y/n]");
        terminal.press(keys);
        terminal.finish()
    };
    let interrupted = answer("\u{3}");
    assert_eq!((interrupted.code, file.exists()), (130, false), "{interrupted:?}");
    let refused = answer("n\n");
    assert_eq!((refused.code, file.exists()), (1, false), "{refused:?}");
    let agreed = answer("\n");
    assert_eq!((agreed.code, file.exists()), (0, true), "{agreed:?}");
}

#[test]
fn the_page_on_doctor_names_every_check_and_only_flags_that_exist() {
    let page = fs::read_to_string(binaries::workspace().join("docs/doctor.md")).unwrap();
    let home = home();
    let (_, checks) = doctor(&home, &[]);
    for check in &checks {
        let id = check["id"].as_str().unwrap();
        assert!(page.lines().any(|line| line.starts_with(&format!("| `{id}`"))), "{id} is not explained");
    }
    let help = ctl::run(&home, &["setup", "local", "--help"]).stdout;
    let commands = page.lines().filter_map(|line| line.strip_prefix("agentctl setup local"));
    let flags: Vec<&str> = commands
        .flat_map(|line| line.split('#').next().unwrap_or_default().split_whitespace())
        .filter(|word| word.starts_with("--"))
        .collect();
    assert!(flags.len() > 3, "{flags:?}");
    for flag in flags {
        assert_says(&help, &[flag]);
    }
}

#[test]
fn doctor_and_setup_work_beside_a_session() {
    let home = home();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let answer = daemon.call(json!({"type": "diagnose"}));
    assert_eq!(answer["success"], true, "{answer}");
    assert!(answer["data"]["checks"].as_array().is_some_and(|checks| checks.len() >= 12), "{answer}");
    assert!(answer["data"]["summary"].is_string());
    let refused = daemon.call(json!({"type": "setup_local", "baseUrl": "x"}));
    assert_eq!(
        (&refused["success"], &refused["code"]),
        (&json!(false), &json!("invalid_field")),
        "{refused}"
    );
}
