//! The tools that look through folders, called by a model.

use agentd_e2e::{Daemon, Home, MockServer, Reply, sse};
use serde_json::json;

use crate::support::{assert_says, ended, text};

#[test]
fn a_model_searches_when_it_may() {
    let calls = [
        ("c1", "grep", json!({"pattern": "fn \\w+", "glob": "*.rs"})),
        ("c2", "find", json!({"pattern": "src/*"})),
        ("c3", "ls", json!({})),
        ("c4", "grep", json!({"pattern": "(", "path": "src"})),
    ];
    let server =
        MockServer::start([Reply::stream(sse::calls(&calls)), Reply::stream(sse::answer("There it is."))]);
    let home = Home::with_model(&server);
    home.write("src/main.rs", "fn main() {}\n");
    home.write("src/lib.rs", "pub fn run() {}\n");
    home.write("target/out.rs", "fn generated() {}\n");
    home.write(".ignore", "target\n");
    let mut daemon = Daemon::start(&home, &["--no-session", "--tools", "+grep,+find,+ls,-bash"]);
    let events = daemon.prompt("Where is main?");
    let results = ended(&events, "toolResult");
    let said: Vec<String> = results.iter().map(|result| text(result)).collect();
    assert_eq!(said[0], "src/lib.rs:1: pub fn run() {}\nsrc/main.rs:1: fn main() {}");
    assert_eq!(said[1], "src/lib.rs\nsrc/main.rs");
    assert_eq!(said[2], ".ignore\nsrc/\ntarget/");
    assert_says(&said[3], &["regex parse error"]);
    assert_eq!(results[3]["isError"], true);
    let request = &server.requests()[0];
    let names: Vec<_> = request.body["tools"].as_array().expect("tools").iter().collect();
    let names: Vec<_> = names.iter().map(|tool| tool["function"]["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["read", "edit", "write", "grep", "find", "ls"]);
    let system = text(&request.messages()[0]);
    assert_says(&system, &["- grep: ", "- find: ", "- ls: "]);
}

#[test]
fn without_being_asked_for_they_are_not_there() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.prompt("Hi");
    let request = &server.requests()[0];
    assert_eq!(request.body["tools"].as_array().map(Vec::len), Some(4));
    assert!(!text(&request.messages()[0]).contains("- grep: "));
}

#[test]
fn a_search_ends_with_its_run() {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "grep", json!({"pattern": "needle", "path": "huge"}))])),
        Reply::stream(sse::answer("Again.")),
    ]);
    let home = Home::with_model(&server);
    // A file with holes, which reads as NUL bytes for hours; the mark in front makes it UTF-16, which is read on.
    home.write("huge", "");
    let huge = home.project().join("huge");
    std::fs::write(&huge, [0xff, 0xfe, b'a', 0]).expect("a file");
    std::fs::OpenOptions::new()
        .write(true)
        .open(&huge)
        .and_then(|file| file.set_len(1 << 43))
        .expect("holes");
    let mut daemon = Daemon::start(&home, &["--no-session", "--tools", "grep"]);
    daemon.send(&json!({"type": "prompt", "message": "Search."}));
    daemon.event("tool_execution_start");
    daemon.send(&json!({"id": "a", "type": "abort"}));
    let end = daemon.event("tool_execution_end");
    assert_eq!((&end["isError"], text(&end["result"])), (&json!(true), "Operation aborted".to_owned()));
    daemon.until("the answer", |line| line["id"] == "a");
    assert_eq!(daemon.done(json!({"type": "get_state"}))["isStreaming"], false);
}
