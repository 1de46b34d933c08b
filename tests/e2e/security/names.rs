//! Names do not escape their folder, and do not control a terminal.

use std::{collections::BTreeMap, fs, path::Path};

use agentd_e2e::{Home, MockServer, Reply, Service, SocketClient, ctl, sse};
use serde_json::{Value, json};

/// Hostile names.
fn hostile() -> Vec<String> {
    let mut all: Vec<String> = [
        "",
        ".",
        "..",
        "../x",
        "../../../../etc/passwd",
        "/etc/passwd",
        "a/b",
        "a\\b",
        "..\\..\\x",
        "C:\\x",
        "\\\\host\\share",
        "//host/x",
        "x\0y",
        "x\ny",
        "x\r\ny",
        "x y",
        "~",
        "~root/x",
        "$HOME",
        "%2e%2e%2fx",
        "\u{202e}txt.x",
        "x\u{2028}y",
        "\u{1b}]52;c;eA==\u{7}",
        "é",
        "．．／x",
        "-x",
        ".x",
        "x.",
        "CON",
        "file:///etc/passwd",
        "artifact://x",
    ]
    .map(str::to_owned)
    .to_vec();
    all.push("x".repeat(5000));
    all.push("../".repeat(500));
    all
}

/// Collects every file below a folder with its length.
fn files(folder: &Path, found: &mut BTreeMap<String, u64>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // An intent log is removed when nothing is under way, which may be now.
        let Ok(about) = fs::symlink_metadata(&path) else { continue };
        let kind = if about.is_dir() { 0 } else { about.len() };
        found.insert(path.display().to_string(), kind);
        if about.is_dir() {
            files(&path, found);
        }
    }
}

fn all_files(home: &Home) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    files(home.root(), &mut found);
    // Notes of the daemon itself, and an intent log, which is removed some time after its run has settled.
    found.retain(|path, _| {
        !path.contains("/agent/run/") && !path.contains("/agent/logs/") && !path.ends_with(".ledger")
    });
    found
}

const REFUSALS: [&str; 8] = [
    "invalid_field",
    "session_not_found",
    "not_found",
    "unsupported",
    "no_model",
    "io",
    "parse",
    "no_credentials",
];

/// Asserts a refusal with a short error.
fn assert_refused(command: &Value, answer: &Value) {
    assert_eq!(answer["success"], false, "{command} was done: {answer}");
    let code = answer["code"].as_str().unwrap_or_default();
    assert!(REFUSALS.contains(&code), "{command}: {answer}");
    assert!(!answer["error"].as_str().unwrap().is_empty(), "{command}: {answer}");
}

#[test]
fn hostile_ids_are_refused_and_touch_nothing() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "open_session", "cwd": home.project(), "args": ["--model", "fake/fake"]}));
    client.prompt("Begin.");
    let before = all_files(&home);
    for name in hostile() {
        let mut commands = vec![
            json!({"type": "attach_session", "sessionId": name}),
            json!({"type": "detach_session", "sessionId": name}),
            json!({"type": "close_session", "sessionId": name}),
            json!({"type": "delete_session", "sessionId": name}),
            json!({"type": "get_artifact", "artifactId": name}),
            json!({"type": "fork", "entryId": name}),
            json!({"type": "set_model", "provider": name, "modelId": name}),
        ];
        // A word of letters is a valid id for a session, a provider and a tool.
        if name != "CON" {
            commands.extend([
                json!({"type": "open_session", "cwd": home.project(), "sessionId": name}),
                json!({"type": "login", "provider": name, "key": "k-0123456789"}),
                json!({"type": "login_start", "provider": name}),
                json!({"type": "set_active_tools", "tools": [name]}),
                json!({"type": "register_tools", "tools": [{"name": name, "description": "d", "parameters": {"type": "object"}}]}),
            ]);
        }
        for command in commands {
            let answer = client.call(command.clone());
            assert_refused(&command, &answer);
        }
    }
    for id in hostile().iter().filter(|id| *id != "CON" && !id.is_empty()) {
        for flag in ["--session-id", "--fork"] {
            let args = json!([flag, id]);
            let command = json!({"type": "open_session", "cwd": home.project(), "args": args});
            let answer = client.call(command.clone());
            assert_refused(&command, &answer);
        }
    }
    assert_eq!(all_files(&home), before);
    // Nothing has changed.
    assert!(client.prompt("Go on.").iter().any(|line| line["type"] == "message_end"));
}

#[test]
fn hostile_session_names_stay_names() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    for name in hostile() {
        let mut client = service.client();
        client.done(json!({"type": "open_session", "cwd": home.project(), "args": ["--model", "fake/fake"]}));
        client.prompt("Begin.");
        let before = all_files(&home);
        client.call(json!({"type": "set_session_name", "name": name}));
        let exported = client.done(json!({"type": "export_html"}));
        let path = home.project().join(exported["path"].as_str().unwrap()).display().to_string();
        assert!(Path::new(&path).starts_with(home.project()), "{name:?}: {path}");
        let after = all_files(&home);
        let new: Vec<&String> = after.keys().filter(|path| !before.contains_key(*path)).collect();
        assert_eq!(new, [&path], "{name:?}");
        fs::remove_file(&path).unwrap();
        let id = client_session(&mut client);
        client.done(json!({"type": "close_session", "sessionId": id}));
    }
}

fn client_session(client: &mut SocketClient) -> String {
    client.done(json!({"type": "get_state"}))["sessionId"].as_str().unwrap().to_owned()
}

/// Terminal escapes: set the title, fill the clipboard, answer, write backwards.
const STEERING: &str =
    "a\u{1b}]0;owned\u{7}b\u{1b}]52;c;eA==\u{7}c\u{9b}31md\u{1b}[2Je\u{202e}f\u{2066}g\u{8}h\ri";

fn assert_harmless(what: &str, text: &str) {
    let bad = |c: &char| (c.is_control() && !"\n\t".contains(*c)) || "\u{202e}\u{2066}".contains(*c);
    let found: Vec<char> = text.chars().filter(bad).collect();
    assert!(found.is_empty(), "{what} says {found:?}: {text:?}");
}

#[test]
fn nothing_from_a_session_steers_the_terminal() {
    let call = sse::calls(&[("c1", "bash", json!({"command": format!("echo {STEERING}; false")}))]);
    let answers = [Reply::stream(call), Reply::stream(sse::answer(STEERING))];
    let server = MockServer::start(answers);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    let folder = home.project().join("a\u{1b}]0;owned\u{7}b");
    fs::create_dir(&folder).unwrap();
    client.done(json!({"type": "open_session", "cwd": folder, "args": ["--model", "fake/fake"]}));
    client.done(json!({"type": "set_session_name", "name": STEERING}));
    client.prompt(STEERING);
    let id = client_session(&mut client);
    for args in [
        &["sessions"][..],
        &["status"],
        &["ps"],
        &["tree", &id],
        &["tools", &id],
        &["models", STEERING],
        &["attach", STEERING],
        &["fork", &id, STEERING],
        &["rm", STEERING],
        &["artifact", STEERING],
        &["login", STEERING],
        &["config", "explain", STEERING],
        &["doctor"],
    ] {
        let done = ctl::run(&home, args);
        assert_harmless(&format!("stdout of {args:?}"), &done.stdout);
        assert_harmless(&format!("stderr of {args:?}"), &done.stderr);
    }
    server.push(Reply::stream(sse::calls(&[("c2", "bash", json!({"command": format!("echo {STEERING}")}))])));
    server.push(Reply::status(400, "application/json", json!({"error": {"message": STEERING}}).to_string()));
    let done = ctl::run(&home, &["prompt", "--session", &id, STEERING]);
    assert_harmless("stderr of a prompt", &done.stderr);
}
