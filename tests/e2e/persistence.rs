//! Sessions across processes: found, opened, locked, kept byte for byte.

use std::{fs, path::Path};

use agentd_e2e::{Daemon, Home, MockServer, Reply, sse};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{assert_says, text};

fn server() -> MockServer {
    MockServer::always(Reply::stream(sse::answer("Ok.")))
}

#[test]
fn sessions_are_found_by_id_prefix_and_path() {
    let server = server();
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("Hi");
    let state = daemon.done(json!({"type": "get_state"}));
    drop(daemon);
    let id = state["sessionId"].as_str().unwrap();
    let file = state["sessionFile"].as_str().unwrap();
    for args in [
        &["--session", id][..],
        &["--session", &id[..20]],
        &["--session", file],
        &["--continue"],
        &["--session", id, "--continue"],
        &["--session-id", id],
    ] {
        let mut daemon = Daemon::start(&home, args);
        let again = daemon.done(json!({"type": "get_state"}));
        assert_eq!(
            (&again["sessionId"], &again["messageCount"]),
            (&state["sessionId"], &json!(3)),
            "{args:?}"
        );
    }
    assert_eq!(home.session_files().len(), 1);
}

#[test]
fn ids_and_paths_that_do_not_exist_are_made() {
    let server = server();
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--session-id", "my.own-id_1"]);
    assert_eq!(daemon.done(json!({"type": "get_state"}))["sessionId"], "my.own-id_1");
    daemon.prompt("Hi");
    assert!(home.session_files()[0].display().to_string().ends_with("_my.own-id_1.jsonl"));
    let path = home.root().join("elsewhere/new.jsonl");
    let mut daemon = Daemon::start(&home, &["--session", path.to_str().unwrap()]);
    assert!(!path.exists());
    daemon.prompt("Hi");
    assert!(path.exists());
    let ended = Daemon::start(&home, &["--session-id", "-no-"]).wait();
    assert_eq!(ended.status.code(), Some(1));
    assert_says(&ended.stderr, &["Session id must be non-empty"]);
}

#[test]
fn one_writer_at_a_time() {
    let server = server();
    let home = Home::with_model(&server);
    let mut first = Daemon::start(&home, &[]);
    first.prompt("Hi");
    let file = first.done(json!({"type": "get_state"}))["sessionFile"].as_str().unwrap().to_owned();
    let ended = Daemon::start(&home, &["--session", &file]).wait();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert_says(&ended.stderr, &[&file, &first.id().to_string()]);
    // The first process is not disturbed, and the lock ends with it.
    first.prompt("Still here?");
    drop(first);
    let mut second = Daemon::start(&home, &["--session", &file]);
    assert_eq!(second.done(json!({"type": "get_state"}))["messageCount"], 5);
}

/// Hosts reload a session this way: they do not wait for the end of the old process.
#[test]
fn a_session_opens_while_its_last_process_ends() {
    let server = MockServer::always(Reply::stream(sse::calls(&[(
        "call_1",
        "bash",
        json!({"command": "sleep 1000"}),
    )])));
    let home = Home::with_model(&server);
    let mut first = Daemon::start(&home, &[]);
    let file = first.done(json!({"type": "get_state"}))["sessionFile"].as_str().unwrap().to_owned();
    first.done(json!({"type": "prompt", "message": "Sleep."}));
    first.event("tool_execution_start");
    first.signal(Signal::TERM);
    let mut second = Daemon::start(&home, &["--session", &file]);
    let messages = second.done(json!({"type": "get_messages"}))["messages"].clone();
    // Everything that the first process had to store is there.
    assert!(messages.as_array().unwrap().iter().any(|message| message["role"] == "toolResult"), "{messages}");
    assert_eq!(first.wait().status.code(), Some(143));
}

#[test]
fn files_of_others_are_kept_byte_for_byte() {
    let server = server();
    let home = Home::with_model(&server);
    let project = home.project().display().to_string();
    let lines = [
        format!(r#"{{"type":"session","version":3,"id":"foreign-1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"{project}","extra":{{"b":1,"a":0.10}}}}"#),
        r#"{"type":"message","id":"aaaaaaaa","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"old \ud83d\ude00 text","timestamp":1.5e3,"own":[1.0]}}"#.into(),
        r#"{"type":"future_kind","id":"bbbbbbbb","parentId":"aaaaaaaa","timestamp":"2026-01-01T00:00:02.000Z","x":{"deep":[1,2.50]}}"#.into(),
        String::new(),
        r#"{"type":"message","id":"cccccccc","parentId":"bbbbbbbb","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"user","content":"lone \ud800 half","timestamp":2}}"#.into(),
        "damaged { line".into(),
        r#"{"type":"custom","customType":"mine","id":"dddddddd","parentId":"cccccccc","timestamp":"2026-01-01T00:00:04.000Z","data":null}"#.into(),
    ];
    let before = lines.join("\n") + "\n";
    let file = home.root().join("foreign.jsonl");
    fs::write(&file, &before).unwrap();
    let mut daemon = Daemon::start(&home, &["--session", file.to_str().unwrap()]);
    assert_eq!(daemon.done(json!({"type": "get_state"}))["sessionId"], "foreign-1");
    daemon.prompt("Go on.");
    drop(daemon);
    let after = fs::read_to_string(&file).unwrap();
    assert!(after.starts_with(&before), "{after}");
    assert!(after[before.len()..].lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    let requests = server.requests();
    let said: Vec<String> = requests[0].messages().iter().map(text).collect();
    assert!(said.iter().any(|text| text == "old \u{1f600} text"), "{said:?}");
}

#[test]
fn a_last_line_without_its_end_is_completed() {
    let server = server();
    let home = Home::with_model(&server);
    let project = home.project().display().to_string();
    let header = format!(
        r#"{{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"{project}"}}"#
    );
    let user = r#"{"type":"message","id":"aaaaaaaa","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"old","timestamp":1}}"#;
    let file = home.root().join("torn.jsonl");
    fs::write(&file, format!("{header}\n{user}")).unwrap();
    let mut daemon = Daemon::start(&home, &["--session", file.to_str().unwrap()]);
    daemon.prompt("New.");
    drop(daemon);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with(&format!("{header}\n{user}\n{{")), "{text}");
}

#[test]
fn session_folders_follow_flag_variable_and_setting() {
    let server = server();
    let home = Home::with_model(&server);
    let (flag, variable, setting) =
        (home.root().join("flag"), home.root().join("variable"), home.root().join("setting"));
    home.settings(&json!({"sessionDir": setting}));
    // A killed daemon may leave an intent log beside a session.
    let count = |folder: &Path| {
        let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
        names.filter(|name| name.as_encoded_bytes().ends_with(b".jsonl")).count()
    };
    Daemon::start(&home, &[]).prompt("Hi");
    assert_eq!(count(&setting), 1);
    let set = |command: &mut std::process::Command| {
        command.env("PI_CODING_AGENT_SESSION_DIR", &variable);
    };
    Daemon::start_with(&home, &[], set).prompt("Hi");
    assert_eq!(count(&variable), 1);
    Daemon::start_with(&home, &["--session-dir", flag.to_str().unwrap()], set).prompt("Hi");
    assert_eq!((count(&flag), count(&variable), count(&setting)), (1, 1, 1));
}

#[test]
fn files_are_private() {
    use std::os::unix::fs::PermissionsExt;

    let server = server();
    let home = Home::with_model(&server);
    Daemon::start(&home, &[]).prompt("Hi");
    let file = &home.session_files()[0];
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(file), mode(file.parent().unwrap())), (0o600, 0o700));
}
