//! URLs of hosts, in the words of omp's clients.

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, sse};
use serde_json::{Value, json};

use crate::support::{assert_says, complaint, ended, text};

fn read(path: &str) -> Reply {
    Reply::stream(sse::calls(&[("c1", "read", json!({"path": path}))]))
}

fn write(path: &str) -> Reply {
    Reply::stream(sse::calls(&[("c1", "write", json!({"path": path, "content": "new"}))]))
}

fn done() -> Reply {
    Reply::stream(sse::answer("Done."))
}

fn schemes() -> Value {
    json!([
        {"scheme": " DB ", "description": "Rows of the shop", "writable": true, "immutable": false},
        {"scheme": "notes", "immutable": true},
    ])
}

/// A daemon whose host serves `db://` and `notes://`.
fn started(home: &Home) -> Daemon {
    let mut daemon = Daemon::start(home, &["--ready"]);
    let set = daemon.done(json!({"type": "set_host_uri_schemes", "schemes": schemes()}));
    assert_eq!(set, json!({"schemes": ["db", "notes"]}));
    daemon
}

/// The only result of a prompt, and whether it is an error.
fn result(lines: &[Value]) -> (String, bool) {
    let results = ended(lines, "toolResult");
    assert_eq!(results.len(), 1, "{results:?}");
    (text(results[0]), results[0]["isError"] == true)
}

#[test]
fn a_read_goes_to_the_host_and_its_content_to_the_model() {
    let server = MockServer::start([read("db://users/Ann%20B?q=x"), done(), read("db://users:2-3"), done()]);
    let home = Home::with_model(&server);
    let mut daemon = started(&home);
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    let lines = daemon.all_until("a request", |line| line["type"] == "host_uri_request");
    assert_eq!(lines[lines.len() - 2]["type"], "tool_execution_start");
    let request = lines.last().expect("the request").clone();
    assert_eq!((&request["operation"], &request["url"]), (&json!("read"), &json!("db://users/Ann%20B?q=x")));
    assert!(request.get("content").is_none() && request["sessionId"].is_string(), "{request}");
    daemon.send(&json!({
        "type": "host_uri_result", "id": request["id"], "content": "{\"name\": \"Ann\"}",
        "contentType": "application/json", "notes": ["1 of 1 rows"], "immutable": true,
    }));
    let lines = daemon.settled();
    assert!(!lines.iter().any(|line| line["type"] == "response"), "an answer has no response: {lines:?}");
    assert_eq!(result(&lines), ("{\"name\": \"Ann\"}\n\n[1 of 1 rows]".to_owned(), false));
    let prompt = server.requests()[0].body.to_string();
    assert_says(&prompt, &["db:// (read and write): Rows of the shop", "notes:// (read)"]);

    // Lines are selected as of a file, where the URL as a whole is none.
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    let request = daemon.event("host_uri_request");
    assert_eq!(request["url"], "db://users:2-3");
    daemon
        .send(&json!({"type": "host_uri_result", "id": request["id"], "isError": true, "error": "no table"}));
    let request = daemon.event("host_uri_request");
    assert_eq!(request["url"], "db://users");
    daemon.send(&json!({"type": "host_uri_result", "id": request["id"], "content": "a\nb\nc\nd"}));
    let (shown, is_error) = result(&daemon.settled());
    assert!(shown.starts_with("b\nc") && !shown.contains('d') && !is_error, "{shown}");
}

#[test]
fn a_write_goes_to_the_host_where_it_takes_writes() {
    let server = MockServer::start([write("db://users/1"), done(), write("notes://x"), done()]);
    let home = Home::with_model(&server);
    let mut daemon = started(&home);
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    let request = daemon.event("host_uri_request");
    assert_eq!(
        (&request["operation"], &request["url"], &request["content"]),
        (&json!("write"), &json!("db://users/1"), &json!("new"))
    );
    daemon.send(&json!({"type": "host_uri_result", "id": request["id"]}));
    assert_eq!(result(&daemon.settled()), ("Successfully wrote to db://users/1".to_owned(), false));
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    let lines = daemon.settled();
    assert!(!lines.iter().any(|line| line["type"] == "host_uri_request"), "{lines:?}");
    assert_eq!(result(&lines), ("notes://x is read-only.".to_owned(), true));
    assert!(!home.project().join("notes:").exists());
}

#[test]
fn errors_of_the_host_reach_the_model_and_bad_answers_the_host() {
    let server =
        MockServer::start([read("db://a"), read("db://b"), read("foo://x"), write("bar://x"), done()]);
    let home = Home::with_model(&server);
    let mut daemon = started(&home);
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    let first = daemon.event("host_uri_request");
    daemon.send(
        &json!({"type": "host_uri_result", "id": first["id"], "isError": true, "content": "no such row"}),
    );
    let mut lines = daemon.all_until("a request", |line| line["type"] == "host_uri_request");
    let second = lines.pop().expect("the request");
    daemon.send(&json!({"type": "host_uri_result", "id": second["id"]}));
    lines.extend(
        daemon.all_until("a refusal", |line| line["type"] == "response" && line["id"] == second["id"]),
    );
    let refused = lines.pop().expect("the refusal");
    assert_eq!((&refused["command"], &refused["code"]), (&json!("host_uri_result"), &json!("invalid_field")));
    lines.extend(daemon.settled());
    let results: Vec<String> = ended(&lines, "toolResult").iter().map(|result| text(result)).collect();
    assert_eq!(results.len(), 4, "{results:?}");
    assert!(results.iter().any(|text| text == "no such row"), "{results:?}");
    assert_says(
        &results.join("\n"),
        &[
            "cannot be used: Missing field \"content\"",
            "Unknown URL scheme: foo://. read knows agent://, artifact://, db://",
            "notes://, rule://",
            "Unknown URL scheme: bar://. write knows",
        ],
    );
    assert!(!home.project().join("bar:").exists());
    daemon.send(&json!({"type": "host_uri_result", "id": first["id"], "content": "late"}));
    let late = daemon.until("a refusal", |line| line["id"] == first["id"]);
    assert_eq!(late["code"], "not_found");
}

#[test]
fn an_abort_cancels_the_request() {
    let server = MockServer::start([read("db://a")]);
    let home = Home::with_model(&server);
    let mut daemon = started(&home);
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    let request = daemon.event("host_uri_request");
    daemon.send(&json!({"id": "a", "type": "abort"}));
    let lines = daemon.all_until("the abort", |line| line["id"] == "a");
    let cancel = lines.iter().find(|line| line["type"] == "host_uri_cancel").expect("a cancel");
    assert_eq!(cancel["targetId"], request["id"]);
    assert!(cancel["id"].is_string() && cancel["id"] != request["id"], "{cancel}");
}

#[test]
fn what_is_reserved_or_no_scheme_is_refused_and_the_set_stays() {
    let server = MockServer::start([read("db://a"), done(), read("db://a"), done()]);
    let home = Home::with_model(&server);
    let mut daemon = started(&home);
    for (scheme, says) in [
        ("Skill", "Host URI scheme is reserved: skill://"),
        ("https", "Host URI scheme is reserved: https://"),
        ("1x", "schemes[0].scheme"),
        ("", "schemes[0].scheme"),
    ] {
        let refused =
            daemon.refused(json!({"type": "set_host_uri_schemes", "schemes": [{"scheme": scheme}]}));
        assert_eq!(refused["code"], "invalid_field", "{refused}");
        assert_says(&complaint(&refused), &[says]);
    }
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    let request = daemon.event("host_uri_request");
    daemon.send(&json!({"type": "host_uri_result", "id": request["id"], "content": "row"}));
    assert_eq!(result(&daemon.settled()), ("row".to_owned(), false));
    // A scheme that has gone is no path from then on.
    daemon.done(json!({"type": "new_session"}));
    assert_eq!(daemon.done(json!({"type": "set_host_uri_schemes", "schemes": []})), json!({"schemes": []}));
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    assert_eq!(result(&daemon.settled()), ("No client serves db:// any more.".to_owned(), true));
}

#[test]
fn reads_fail_and_schemes_go_when_the_host_leaves() {
    let server = MockServer::start([read("db://a"), read("db://a"), done()]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let (mut user, mut host, mut other) = (service.client(), service.client(), service.client());
    user.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    let session = user.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone();
    for client in [&mut host, &mut other] {
        client.done(json!({"type": "attach_session", "sessionId": session}));
    }
    host.done(json!({"type": "set_host_uri_schemes", "schemes": schemes()}));
    let refused = other.refused(json!({"type": "set_host_uri_schemes", "schemes": [{"scheme": "db"}]}));
    assert_says(&complaint(&refused), &["db:// is served by another client"]);
    user.done(json!({"type": "prompt", "message": "Go."}));
    host.event("host_uri_request");
    drop(host);
    let lines = user.settled();
    assert!(!lines.iter().any(|line| line["type"] == "host_uri_request"), "{lines:?}");
    let results: Vec<String> = ended(&lines, "toolResult").iter().map(|result| text(result)).collect();
    assert_eq!(
        results,
        ["The client that provides db:// has disconnected.", "No client serves db:// any more."]
    );
    // Free for others now.
    other.done(json!({"type": "set_host_uri_schemes", "schemes": [{"scheme": "db"}]}));
}

#[test]
fn writes_are_asked_about_and_reads_are_not() {
    let server = MockServer::start([read("db://a"), write("db://a"), write("db://b"), done()]);
    let home = Home::with_model(&server);
    home.settings(&json!({"permissions": {"preset": "workspace"}}));
    let mut daemon = Daemon::start(&home, &["--ready"]);
    daemon.done(json!({"type": "hello", "protocol": 1, "capabilities": {"ui": true, "permissions": true}}));
    daemon.done(json!({"type": "set_host_uri_schemes", "schemes": schemes()}));
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    let request = daemon.event("host_uri_request");
    daemon.send(&json!({"type": "host_uri_result", "id": request["id"], "content": "row"}));
    let question = daemon.event("extension_ui_request");
    assert_says(&question.to_string(), &["write: db://a", "write_host_uri"]);
    assert_eq!(server.requests().len(), 2);
}
