//! Output on a terminal contains no foreign control characters: both programs clean names, errors and warnings on both
//! streams.

use std::{fs, path::Path};

use agentd_e2e::{Home, MockServer, Reply, Service, Terminal, binaries, ctl, sse};
use serde_json::json;

/// Terminal escapes as an attacker puts them into a name: fill the clipboard, set the title, request an answer, clear;
/// control characters of one byte and of two; marks that reverse the direction of writing.
const STEERING: &str = "a\u{1b}]52;c;eA==\u{7}b\u{1b}]0;owned\u{7}c\u{9b}6nd\u{1b}[2Je\u{202e}f\u{2066}g\u{8}h\ri\u{200f}j\u{61c}k\u{85}l";

/// The same as the name of a file.
fn file_name(end: &str) -> String {
    format!("{STEERING}{end}")
}

fn steers(c: char) -> bool {
    let turns =
        "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}";
    turns.contains(c) || (c.is_control() && c != '\n' && c != '\t')
}

fn assert_harmless(what: &str, text: &str) {
    let found: Vec<char> = text.chars().filter(|c| steers(*c)).collect();
    assert!(found.is_empty(), "{what} says {found:?}: {text:?}");
}

/// A home in which everything with a name has that one.
fn hostile_home(server: &MockServer) -> Home {
    let home = Home::new();
    home.configure(&json!({"providers": {"fake": {
        "baseUrl": server.base_url(), "api": "openai-completions", "apiKey": "test-key-1234",
        "models": [{"id": "fake", "name": STEERING}, {"id": STEERING}, {"id": "odd", STEERING: 1}],
        STEERING: 1,
    }}}));
    home.settings(&json!({STEERING: true, "defaultModel": STEERING, "skills": [STEERING], "theme": 1}));
    home.write_agent(&format!("prompts/{}", file_name(".md")), "---\nbad: [\n---\n");
    home.write_agent(&format!("skills/{STEERING}/SKILL.md"), "---\nname: [\n---\n");
    home.write(&file_name(".jsonl"), "{}\n");
    home
}

/// A torn session file whose header names a missing folder.
fn torn_session(home: &Home) -> String {
    let header = json!({"type": "session", "version": 3, "id": "0198aaaa-0000-7000-8000-000000000001",
        "timestamp": "2026-01-01T00:00:00.000Z", "cwd": format!("/gone-{STEERING}\nError: forged")});
    let message = json!({"type": "message", "id": "aaaaaaaa", "parentId": null, "timestamp": "2026-01-01T00:00:00.000Z",
        "message": {"role": "user", "content": [{"type": "text", "text": STEERING}], "timestamp": 1}});
    home.write("torn.jsonl", &format!("{header}\n{message}\n"));
    home.project().join("torn.jsonl").display().to_string()
}

#[test]
fn nothing_that_agentd_says_steers_a_terminal() {
    let error = json!({"error": {"message": STEERING}}).to_string();
    let server = MockServer::always(Reply::status(400, "application/json", error));
    let home = hostile_home(&server);
    let torn = torn_session(&home);
    let file = home.project().join(file_name(".jsonl")).display().to_string();
    let flag = format!("--{STEERING}");
    for args in [
        &["-p", "--session", &torn, "hi"][..],
        &["-p", "--session", &file, "hi"],
        &["-p", "--session", STEERING, "hi"],
        &["-p", "--model", "fake/fake", "hi"],
        &["-p", "--model", STEERING, "hi"],
        &["-p", "--model", "fake/fake", "--tools", STEERING, "hi"],
        &["-p", "--model", "fake/fake", "--skill", STEERING, "hi"],
        &["-p", "--model", "fake/fake", "--prompt-template", STEERING, "hi"],
        &["-p", "--model", "fake/fake", "--thinking", STEERING, "hi"],
        &["-p", "--model", "fake/fake", "-e", STEERING, "hi"],
        &["-p", "--ssh", STEERING, "hi"],
        &["-p", &format!("@{STEERING}"), "hi"],
        &["--mode", STEERING],
        &["--stdio", "--session", &torn],
        &["--stdio", "--session", &file],
        &["--stdio", "--model", STEERING],
        &["--list-models"],
        &["--list-models", STEERING],
        &["--export", &file],
        &["--export", STEERING],
        &[&flag],
        &["serve", "--socket", &format!("torn.jsonl/{STEERING}/socket")],
    ] {
        let mut command = ctl::agentd(&home, args);
        command.env("AGENTD_LOG", "trace");
        let done = ctl::feed(command, "");
        assert_harmless(&format!("stderr of {args:?}"), &done.stderr);
        assert!(
            !done.stderr.lines().any(|line| line.starts_with("ERROR forged")),
            "{args:?}: {}",
            done.stderr
        );
        if args[0] == "--list-models" {
            assert_harmless(&format!("stdout of {args:?}"), &done.stdout);
        }
    }
    assert!(!server.requests().is_empty());
}

#[test]
fn nothing_that_agentctl_says_steers_a_terminal() {
    let call =
        sse::calls(&[("c1", "bash", json!({"command": format!("printf '%s\\n' '{STEERING}'; false")}))]);
    let server = MockServer::start([Reply::stream(call), Reply::stream(sse::answer(STEERING))]);
    let home = hostile_home(&server);
    let folder = home.project().join(format!("in{STEERING}"));
    fs::create_dir_all(folder.join(".git")).unwrap();
    fs::write(folder.join(".git/HEAD"), format!("ref: refs/heads/{STEERING}\n")).unwrap();
    let torn = torn_session(&home);
    let file = home.project().join(file_name(".jsonl")).display().to_string();
    let up = ctl::run(&home, &["up"]);
    assert_eq!(up.code, 0, "{up:?}");
    let prompt =
        ["prompt", "--model", "fake/fake", "--name", STEERING, "--cwd", folder.to_str().unwrap(), STEERING];
    let prompted = ctl::run(&home, &prompt);
    assert_eq!(prompted.code, 0, "{prompted:?}");
    let listed = ctl::run(&home, &["sessions", "--json"]).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let id = listed["sessions"][0]["id"].as_str().unwrap().to_owned();
    let page = file_name(".html");
    let flag = format!("--{STEERING}");
    let mut said = vec![("a prompt".to_owned(), prompted)];
    for args in [
        &["sessions"][..],
        &["sessions", "--search", STEERING],
        &["status"],
        &["ps"],
        &["ps", STEERING],
        &["watch", "--help"],
        &["tree", &id],
        &["tree", &torn],
        &["tree", &file],
        &["tools", &id],
        &["models", "--all"],
        &["models", STEERING],
        &["attach", STEERING],
        &["steer", STEERING, "x"],
        &["abort", STEERING],
        &["fork", &id, STEERING],
        &["fork", &id],
        &["fork", &id, "--cwd", STEERING],
        &["rm", STEERING],
        &["artifact", STEERING],
        &["artifact", "--session", STEERING],
        &["login", STEERING],
        &["logout", STEERING],
        &["auth", "status", STEERING],
        &["config", "explain", STEERING],
        &["config", "explain", "defaultModel"],
        &["config", "check"],
        &["doctor"],
        &["fsck"],
        &["fsck", &torn],
        &["fsck", &file],
        &["fsck", STEERING],
        &["export", &id, "-o", &page],
        &["export", STEERING],
        &["export", &torn, "-o", &format!("torn.jsonl/{STEERING}")],
        &["bug-report", STEERING],
        &["bug-report", &id, "-o", &format!("torn.jsonl/{STEERING}")],
        &["setup", "local", "--url", STEERING],
        &["setup", "local", "--provider", STEERING],
        &["prompt", "--session", &torn, "hi"],
        &["prompt", "--session", STEERING, "hi"],
        &["prompt", "--model", STEERING, "hi"],
        &["prompt", "--cwd", STEERING, "hi"],
        &["prompt", &format!("@{STEERING}")],
        &["man", STEERING],
        &[STEERING],
        &["prompt", &flag],
        &["completions", STEERING],
        &["logs"],
    ] {
        said.push((format!("{args:?}"), ctl::run(&home, args)));
    }
    assert_eq!(ctl::run(&home, &["down"]).code, 0);
    for (what, done) in said {
        assert_harmless(&format!("stderr of {what}"), &done.stderr);
        // The answer itself goes into a pipe unchanged.
        if what != "a prompt" {
            assert_harmless(&format!("stdout of {what}"), &done.stdout);
        }
    }
    // Users read the log with `cat`.
    let logs = fs::read_dir(home.agent_dir().join("logs")).into_iter().flatten().flatten();
    for log in logs {
        assert_harmless(&log.path().display().to_string(), &fs::read_to_string(log.path()).unwrap());
    }
}

/// An answer is cleaned on a terminal and unchanged in a pipe.
#[test]
fn an_answer_steers_no_terminal() {
    let server = MockServer::always(Reply::stream(sse::answer(STEERING)));
    let home = Home::with_model(&server);
    let args = ["-p", "--no-session", "--model", "fake/fake", "hi"];
    let shown = Terminal::start(&home, &binaries::agentd(), &args).finish();
    assert_eq!(shown.code, 0, "{shown:?}");
    assert_harmless("agentd -p", &shown.stdout);
    let piped = ctl::feed(ctl::agentd(&home, &args), "");
    assert_eq!(piped.stdout, format!("{STEERING}\n"));
    let args = ["prompt", "--private", "--no-session", "--model", "fake/fake", "hi"];
    let shown = Terminal::start(&home, &binaries::agentctl(), &args).finish();
    assert_eq!(shown.code, 0, "{shown:?}");
    // Ours are colours, and the start and the rest of the status line.
    let ours = ["\u{1b}[2m", "\u{1b}[0m", "\r\u{1b}[K"];
    let without_colours = ours.iter().fold(shown.stdout, |text, ours| text.replace(ours, ""));
    assert_harmless("agentctl prompt", &without_colours);
}

/// Descriptions of completions are cleaned, and words with control characters are not offered.
#[test]
fn completions_steer_no_terminal() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = hostile_home(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "open_session", "cwd": home.project(), "args": ["--model", "fake/fake"]}));
    client.done(json!({"type": "set_session_name", "name": STEERING}));
    client.prompt(STEERING);
    let id = client.done(json!({"type": "get_state"}))["sessionId"].as_str().unwrap().to_owned();
    let mut offered = String::new();
    for words in [
        &["agentctl", "attach", ""][..],
        &["agentctl", "rm", ""],
        &["agentctl", "ps", ""],
        &["agentctl", "prompt", "--model", ""],
        &["agentctl", "prompt", "--session", ""],
        &["agentctl", "fsck", "./"],
        &["agentctl", "artifact", ""],
        &["agentctl", "export", ""],
    ] {
        for shell in ["bash", "zsh", "fish"] {
            let (program, rest) = (["--"], words);
            let args: Vec<&str> = program.iter().chain(rest).copied().collect();
            let mut command = ctl::command(&home, &args);
            let line = words.join(" ");
            command
                .env("AGENTCTL_COMPLETE", shell)
                .env("AGENTCTL_COMPLETE_AT", (words.len() - 1).to_string());
            command.env("AGENTCTL_COMPLETE_LINE", line).env("AGENTCTL_COMPLETE_WORD", words[words.len() - 1]);
            let done = ctl::feed(command, "");
            // The scripts separate completions by control characters of their own.
            let text: String = done.stdout.replace(['\u{b}', '\u{1f}', '\0'], "\n");
            assert_harmless(&format!("{shell}: {words:?}"), &text);
            assert_harmless(&format!("{shell}: {words:?}"), &done.stderr);
            offered.push_str(&text);
        }
    }
    assert!(offered.contains(&id), "something is offered: {offered}");
}

/// Each program has one function that writes to stderr, and it cleans.
#[test]
fn there_is_one_way_to_stderr() {
    // The program for structural search tells errors of its own pipes alone.
    const WAYS: [&str; 3] =
        ["daemon/src/logging.rs", "client/src/exit.rs", "daemon/crates/syntax_program/src/main.rs"];
    /// Other uses: duplicates of the descriptor, `is_terminal`, and the guard, which prints no foreign text.
    const OTHER_USES: [&str; 4] = ["is_terminal()", "dup2_stdout", "fcntl_dupfd", "linux/guard.rs"];
    fn look(folder: &Path, root: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if path.is_dir() {
                if !["tests", "examples", "target", "bin"].iter().any(|part| name.ends_with(part)) {
                    look(&path, root, found);
                }
            } else if name.ends_with(".rs") && !name.ends_with("tests.rs") && !WAYS.contains(&name.as_str()) {
                let text = fs::read_to_string(&path).unwrap();
                let lines = text.lines().map(|line| format!("{name}: {line}"));
                let writes = |line: &String| {
                    ["io::stderr()", "stdio::stderr()", "eprint"].iter().any(|word| line.contains(word))
                        && !OTHER_USES.iter().any(|word| line.contains(word))
                };
                found.extend(lines.filter(writes));
            }
        }
    }
    let root = binaries::workspace();
    let mut found = Vec::new();
    ["client", "daemon", "protocol"].iter().for_each(|part| look(&root.join(part), &root, &mut found));
    // The formatter splits the guard's line.
    found.retain(|line| !line.starts_with("daemon/crates/process/src/linux/guard.rs"));
    assert!(found.is_empty(), "{found:#?}");
}
