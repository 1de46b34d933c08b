//! MCP servers that are reached by HTTP. The server answers by a function of each request.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use agentd_e2e::{Daemon, Home, MockServer, Reply, mock_server::Request, sse};
use serde_json::{Value, json};

use crate::{
    client_tools::hello,
    mcp::{call, configure, servers, wait_for},
    support::{assert_says, text},
};

/// The requests that a server got.
type Seen = Arc<Mutex<Vec<Request>>>;

fn result(request: &Request, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request.body["id"], "result": result})
}

pub(crate) fn as_json(message: &Value) -> Reply {
    Reply::status(200, "application/json", message.to_string())
}

fn event(id: Option<&str>, message: &Value) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("{id}data: {message}\n\n")
}

pub(crate) fn initialized(request: &Request) -> Value {
    result(
        request,
        json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "web", "version": "2"}}),
    )
}

pub(crate) fn tools(request: &Request, names: &[&str]) -> Value {
    let tools: Vec<Value> = names.iter().map(|name| json!({"name": name, "description": name})).collect();
    result(request, json!({"tools": tools}))
}

pub(crate) fn said(request: &Request, words: &str) -> Value {
    result(request, json!({"content": [{"type": "text", "text": words}]}))
}

/// A server that notes its requests, and answers calls by `answer`.
fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (MockServer, Seen) {
    let seen: Seen = Arc::default();
    let noted = Arc::clone(&seen);
    let server = MockServer::answering(move |request| {
        noted.lock().expect("the requests").push(request.clone());
        match request.body["method"].as_str() {
            _ if request.target.starts_with("GET ") || request.target.starts_with("DELETE ") => {
                answer(request)
            }
            Some("server/discover") => refuse(404),
            Some("initialize") => as_json(&initialized(request)).header("Mcp-Session-Id", "session-1"),
            Some("notifications/initialized" | "notifications/cancelled") => {
                Reply::status(202, "text/plain", "")
            }
            Some("tools/list") => as_json(&tools(request, &["echo", "break", "refuse"])),
            _ => answer(request),
        }
    });
    (server, seen)
}

fn refuse(status: u16) -> Reply {
    Reply::status(status, "text/plain", "not here")
}

fn entry(server: &MockServer) -> Value {
    json!({"url": format!("{}/mcp", server.base_url()), "exposure": "direct", "headers": {"Authorization": "Bearer ${WEB_TOKEN}"}})
}

fn daemon(home: &Home) -> Daemon {
    let mut daemon = Daemon::start_with(home, &[], |command| {
        command.env("WEB_TOKEN", "hush-hush-0123456789");
    });
    hello(&mut daemon, "test");
    daemon
}

fn requests(seen: &Seen, method: &str) -> Vec<Request> {
    let seen = seen.lock().expect("the requests");
    seen.iter().filter(|request| request.body["method"] == method).cloned().collect()
}

#[test]
fn calls_go_by_post_with_all_headers() {
    let (web, seen) = start(|request| match request.target.split(' ').next() {
        Some("POST") => as_json(&said(request, "by JSON")),
        _ => refuse(405),
    });
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    configure(&home, json!({"web": entry(&web)}));
    let mut daemon = daemon(&home);
    assert_eq!(text(&call(&mut daemon, &model, "mcp__web__echo", json!({}))), "by JSON");
    let server = &servers(&mut daemon)[0];
    assert_eq!((&server["transport"], &server["shared"]), (&json!("http"), &json!(true)));
    assert_eq!(server["protocolVersion"], "2025-06-18");
    let called = &requests(&seen, "tools/call")[0];
    assert_eq!(called.header("authorization"), Some("Bearer hush-hush-0123456789"));
    assert_eq!(called.header("mcp-session-id"), Some("session-1"));
    assert_eq!(called.header("mcp-protocol-version"), Some("2025-06-18"));
    assert_eq!(called.header("accept"), Some("application/json, text/event-stream"));
    assert!(daemon.close().status.success());
    let is_goodbye = |request: &Request| request.target.starts_with("DELETE ");
    assert!(seen.lock().expect("the requests").iter().any(is_goodbye), "the session is ended at the server");
}

#[test]
fn streams_bring_progress_and_answers_and_are_resumed() {
    let (web, seen) = start(|request| {
        if request.target.starts_with("GET ") {
            return match request.header("last-event-id") {
                None => refuse(405),
                Some("e2") => {
                    // The call is the fourth request, after server/discover, initialize and tools/list.
                    let content = json!([{"type": "text", "text": "resumed"}]);
                    let answer = json!({"jsonrpc": "2.0", "id": 4, "result": {"content": content}});
                    Reply::stream(event(None, &answer))
                }
                Some(other) => panic!("resumed behind {other}"),
            };
        }
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {
            "progressToken": request.body["params"]["_meta"]["progressToken"], "progress": 1, "message": "half way"}});
        match request.body["params"]["name"].as_str() {
            Some("break") => {
                Reply::stream(format!("id: e1\ndata:\n\nretry: 10\n\n{}", event(Some("e2"), &progress)))
            }
            _ => Reply::stream([event(None, &progress), event(None, &said(request, "by a stream"))].concat()),
        }
    });
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    configure(&home, json!({"web": entry(&web)}));
    let mut daemon = daemon(&home);
    wait_for(&mut daemon, "connected");
    assert_eq!(text(&call(&mut daemon, &model, "mcp__web__break", json!({}))), "resumed");
    assert_eq!(text(&call(&mut daemon, &model, "mcp__web__echo", json!({}))), "by a stream");
    assert_eq!(requests(&seen, "tools/call").len(), 2, "no call was sent twice");
}

#[test]
fn a_session_that_the_server_has_ended_is_begun_again_and_the_call_repeated() {
    let calls = AtomicUsize::new(0);
    let (web, seen) = start(move |request| match request.target.split(' ').next() {
        Some("POST") if calls.fetch_add(1, Ordering::Relaxed) == 0 => refuse(404),
        Some("POST") => as_json(&said(request, "after all")),
        _ => refuse(405),
    });
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    configure(&home, json!({"web": entry(&web)}));
    let mut daemon = daemon(&home);
    assert_eq!(text(&call(&mut daemon, &model, "mcp__web__echo", json!({}))), "after all");
    assert_eq!((requests(&seen, "initialize").len(), requests(&seen, "tools/call").len()), (2, 2));
}

#[test]
fn what_goes_wrong_is_said_without_secrets_and_no_call_repeated() {
    let (web, seen) = start(|request| match request.body["params"]["name"].as_str() {
        Some("refuse") => Reply::status(500, "text/plain", "no: Bearer hush-hush-0123456789"),
        Some("break") => Reply::hang_up(),
        Some(_) => as_json(&json!({"jsonrpc": "2.0", "id": 999, "result": {}})),
        None => refuse(405),
    });
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    configure(&home, json!({"web": entry(&web)}));
    let mut daemon = daemon(&home);
    let refused = call(&mut daemon, &model, "mcp__web__refuse", json!({}));
    assert_says(&text(&refused), &["MCP tool web/refuse failed", "500", "[redacted]"]);
    assert!(!refused.to_string().contains("hush-hush"), "{refused}");
    let broken = call(&mut daemon, &model, "mcp__web__break", json!({}));
    assert_says(&text(&broken), &["MCP tool web/break failed"]);
    let other = call(&mut daemon, &model, "mcp__web__echo", json!({}));
    assert_says(&text(&other), &["belongs to another request"]);
    assert_eq!(requests(&seen, "tools/call").len(), 3);
}

#[test]
fn a_server_that_wants_a_sign_in_is_failed_and_says_what_to_do() {
    let web = MockServer::always(Reply::status(401, "text/plain", ""));
    let model = MockServer::start([Reply::stream(sse::answer("Ok."))]);
    let home = Home::with_model(&model);
    configure(&home, json!({"web": entry(&web)}));
    let mut daemon = daemon(&home);
    let failed = wait_for(&mut daemon, "failed");
    assert_says(failed[0]["error"].as_str().expect("an error"), &["sign-in", "401", "headers"]);
    daemon.prompt("Go.");
}
