//! Sessions whose files are so long that their messages stay in them until somebody asks.

use std::{
    cell::RefCell,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use agentd_e2e::{Daemon, Home, MockServer, Reply, sse};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustix::process::Signal;
use serde_json::{Value, json};

/// More than what is kept in memory: 4 MiB.
const ENTRIES: usize = 6_000;

/// A session of questions and answers of a kilobyte each, one after the other.
fn long_session(home: &Home) -> PathBuf {
    session_of(home, |at| at - 1)
}

/// A session of as many questions and answers, each of which follows the entry that `parent` says; 0 stands for none.
fn session_of(home: &Home, parent: impl Fn(usize) -> usize) -> PathBuf {
    let header = json!({"type": "session", "version": 3, "id": "0198a000-0000-7000-8000-000000000001", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": home.project()});
    let mut text = format!("{header}\n");
    for at in 1..=ENTRIES {
        let words = format!("{at}: {}", "many wörds ".repeat(80));
        let message = match at % 2 {
            1 => json!({"role": "user", "content": words, "timestamp": at}),
            _ => {
                let cost = json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0});
                json!({"role": "assistant", "content": [{"type": "text", "text": words}], "api": "openai-completions", "provider": "mock", "model": "m",
                    "usage": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2, "cost": cost}, "stopReason": "stop", "timestamp": at})
            }
        };
        let parent = match parent(at) {
            0 => "null".to_owned(),
            parent => format!("\"{parent:08x}\""),
        };
        writeln!(text, r#"{{"type":"message","id":"{at:08x}","parentId":{parent},"timestamp":"2026-01-01T00:00:00.000Z","message":{message}}}"#)
            .expect("memory");
    }
    let path = home.root().join("long.jsonl");
    fs::write(&path, text).expect("a session file");
    path
}

fn home(server: &MockServer) -> Home {
    let home = Home::with_model(server);
    home.settings(&json!({"compaction": {"enabled": false}}));
    home
}

fn messages(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("a session file");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    lines.filter(|entry| entry["type"] == "message").map(|entry| entry["message"].clone()).collect()
}

#[test]
fn every_client_gets_all_messages() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = home(&server);
    let path = long_session(&home);
    let expected = json!(messages(&path));
    let file = path.to_str().expect("UTF-8");
    let mut daemon = Daemon::start(&home, &["--session", file]);
    // Twice, and an answer behind it: a line that is written in pieces is one line.
    for _ in 0..2 {
        assert_eq!(daemon.done(json!({"type": "get_messages"}))["messages"], expected);
    }
    assert_eq!(daemon.done(json!({"type": "get_state"}))["messageCount"], ENTRIES);
    drop(daemon);
    // In parts, for a client that wants long lines so.
    let mut daemon = Daemon::start(&home, &["--session", file]);
    daemon.done(json!({"type": "negotiate_protocol", "protocolVersion": 2}));
    daemon.send(&json!({"id": "m", "type": "get_messages"}));
    let line = RefCell::new(Vec::new());
    daemon.until("the last part", |part| {
        line.borrow_mut().extend(STANDARD.decode(part["data"].as_str().expect("data")).expect("base64"));
        part["index"].as_u64().map(|index| index + 1) == part["count"].as_u64()
    });
    let answer: Value = serde_json::from_slice(&line.into_inner()).expect("JSON");
    assert_eq!((&answer["id"], &answer["data"]["messages"]), (&json!("m"), &expected));
}

#[test]
fn entries_and_tree_of_a_long_session_are_those_of_its_file() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = home(&server);
    // All of them follow the first: readers of JSON mind the depth of a chain.
    let path = session_of(&home, |at| usize::from(at > 1));
    let mut daemon = Daemon::start(&home, &["--session", path.to_str().expect("UTF-8")]);
    daemon.done(json!({"type": "set_label", "entryId": "00000002", "label": "seen"}));
    let text = fs::read_to_string(&path).expect("a session file");
    let lines: Vec<Value> =
        text.lines().skip(1).map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let all = daemon.done(json!({"type": "get_entries"}));
    assert!(all["entries"] == json!(lines), "the entries are the lines of the file");
    assert_eq!(all["leafId"], lines[lines.len() - 1]["id"]);
    let tree = daemon.done(json!({"type": "get_tree"}));
    assert_eq!((tree["tree"].as_array().map(Vec::len), &tree["leafId"]), (Some(1), &all["leafId"]));
    let root = &tree["tree"][0];
    assert_eq!(root["entry"], lines[0]);
    let children = root["children"].as_array().expect("children");
    assert!(children.iter().map(|child| &child["entry"]).eq(&lines[1..ENTRIES]), "all that follow the first");
    assert_eq!((&children[0]["label"], children[1].get("label")), (&json!("seen"), None));
    // The answers after that are in order, and what is asked for from the middle on is its end.
    let since = json!({"type": "get_entries", "since": format!("{:08x}", ENTRIES / 2)});
    let rest = daemon.done(since);
    assert!(rest["entries"] == json!(lines[ENTRIES / 2..]), "the entries after the one in the middle");
}

#[test]
fn a_long_session_is_prompted_killed_and_opened_again() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = home(&server);
    let path = long_session(&home);
    let before = fs::read(&path).expect("a session file");
    let args = ["--session", path.to_str().expect("UTF-8")];
    let mut daemon = Daemon::start(&home, &args);
    daemon.prompt("And now?");
    let asked = server.requests()[0].body.clone();
    let texts: Vec<String> = asked["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .map(|message| message["content"].to_string())
        .collect();
    for at in [1, 2, ENTRIES - 1, ENTRIES] {
        assert!(
            texts.iter().any(|text| text.contains(&format!("{at}: many wörds"))),
            "message {at} is in the request"
        );
    }
    daemon.signal(Signal::KILL);
    daemon.wait();
    let after = fs::read(&path).expect("a session file");
    assert_eq!(&after[..before.len()], &before[..], "what was there is there");
    let mut daemon = Daemon::start(&home, &args);
    assert_eq!(daemon.done(json!({"type": "get_messages"}))["messages"], json!(messages(&path)));
    let forked = daemon.done(json!({"type": "fork", "entryId": format!("{:08x}", ENTRIES - 1)}));
    assert_eq!(forked["cancelled"], false);
    assert_eq!(
        daemon.done(json!({"type": "get_messages"}))["messages"].as_array().map(Vec::len),
        Some(ENTRIES - 2)
    );
}
