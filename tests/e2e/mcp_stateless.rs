//! The stateless revision of MCP (2026-07-28), on programs and by HTTP.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use agentd_e2e::{Daemon, Home, MockServer, Reply, mock_server::Request};
use serde_json::{Value, json};

use crate::{
    client_tools::hello,
    mcp::{call, configure, direct, servers, wait_for},
    support::{assert_says, text},
};

fn start(entry: Value) -> (MockServer, Home, Daemon) {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    configure(&home, json!({"test": entry}));
    let mut daemon = Daemon::start(&home, &[]);
    hello(&mut daemon, "test");
    (model, home, daemon)
}

fn program(args: &[&str], protocol: &str) -> Value {
    let mut entry = direct(args);
    entry["protocol"] = json!(protocol);
    entry
}

#[test]
fn a_program_is_asked_which_revision_it_speaks() {
    for (args, protocol, revision) in [
        (&["--stateless"][..], "2026-07-28", "2026-07-28"),
        (&["--stateless"][..], "auto", "2026-07-28"),
        (&[][..], "auto", "2025-11-25"),
        (&["--unknown"][..], "auto", "2025-11-25"),
        (&[][..], "legacy", "2025-11-25"),
    ] {
        let (model, _home, mut daemon) = start(program(args, protocol));
        let there = wait_for(&mut daemon, "connected");
        assert_eq!(there[0]["protocolVersion"], revision, "{args:?} {protocol}");
        assert_eq!((&there[0]["serverName"], &there[0]["serverVersion"]), (&json!("test"), &json!("1.2.3")));
        let said = call(&mut daemon, &model, "mcp__test__echo", json!({"text": "hello"}));
        assert_eq!(text(&said), "hello");
    }
    let (_model, _home, mut daemon) = start(program(&[], "2026-07-28"));
    let failed = wait_for(&mut daemon, "failed");
    assert_says(failed[0]["error"].as_str().expect("an error"), &["2026-07-28", "unknown method"]);
}

#[test]
fn a_stateless_program_tells_of_changes_where_it_is_asked_to() {
    let (model, _home, mut daemon) = start(program(&["--stateless"], "2026-07-28"));
    wait_for(&mut daemon, "connected");
    call(&mut daemon, &model, "mcp__test__add_tool", json!({}));
    let has_later = |server: &Value| {
        server["tools"].as_array().expect("a list").iter().any(|tool| tool == "mcp__test__later")
    };
    if !has_later(&servers(&mut daemon)[0]) {
        daemon
            .until("the tool", |line| line["type"] == "mcp_servers_change" && has_later(&line["servers"][0]));
    }
    assert_eq!(text(&call(&mut daemon, &model, "mcp__test__later", json!({}))), "later");
}

/// The requests that a server got.
type Seen = Arc<Mutex<Vec<Request>>>;

fn as_json(status: u16, message: &Value) -> Reply {
    Reply::status(status, "application/json", message.to_string())
}

fn result(request: &Request, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request.body["id"], "result": result})
}

/// A server that knows the stateless revision, after `refusals` refusals.
fn web(refusals: usize) -> (MockServer, Seen) {
    let seen: Seen = Arc::default();
    let (noted, refused) = (Arc::clone(&seen), AtomicUsize::new(0));
    let server = MockServer::answering(move |request| {
        noted.lock().expect("the requests").push(request.clone());
        match request.body["method"].as_str() {
            Some("server/discover") if refused.fetch_add(1, Ordering::Relaxed) < refusals => {
                let data = json!({"supported": ["2026-07-28"], "requested": "2026-07-28"});
                let error = json!({"code": -32022, "message": "not now", "data": data});
                as_json(400, &json!({"jsonrpc": "2.0", "id": request.body["id"], "error": error}))
            }
            Some("server/discover") => as_json(
                200,
                &result(request, json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})),
            ),
            Some("tools/list") => {
                let region = json!({"type": "string", "x-mcp-header": "Region"});
                let number = json!({"type": "number", "x-mcp-header": "Amount"});
                let tools = json!([
                    {"name": "echo", "inputSchema": {"type": "object", "properties": {"region": region}}},
                    {"name": "bad", "inputSchema": {"type": "object", "properties": {"amount": number}}},
                ]);
                as_json(
                    200,
                    &result(request, json!({"resultType": "complete", "tools": tools, "ttlMs": 1000})),
                )
            }
            Some("tools/call") => {
                let kind = match request.body["params"]["arguments"]["region"].as_str() {
                    Some("odd") => "something_else",
                    _ => "complete",
                };
                let content = json!([{"type": "text", "text": "called"}]);
                as_json(200, &result(request, json!({"resultType": kind, "content": content})))
            }
            _ => Reply::status(404, "text/plain", "not here"),
        }
    });
    (server, seen)
}

#[test]
fn requests_by_http_say_in_headers_what_they_are() {
    let (server, seen) = web(1);
    let (model, _home, mut daemon) =
        start(json!({"url": format!("{}/mcp", server.base_url()), "exposure": "direct"}));
    let there = wait_for(&mut daemon, "connected");
    assert_eq!(
        (&there[0]["protocolVersion"], &there[0]["tools"]),
        (&json!("2026-07-28"), &json!(["mcp__test__echo"]))
    );
    let called = call(&mut daemon, &model, "mcp__test__echo", json!({"region": "Zürich"}));
    assert_eq!(text(&called), "called");
    let odd = call(&mut daemon, &model, "mcp__test__echo", json!({"region": "odd"}));
    assert_says(&text(&odd), &["MCP tool test/echo failed", "unknown type \"something_else\""]);
    let seen = seen.lock().expect("the requests");
    let methods: Vec<&str> = seen.iter().filter_map(|request| request.body["method"].as_str()).collect();
    assert_eq!(methods, ["server/discover", "server/discover", "tools/list", "tools/call", "tools/call"]);
    for request in seen.iter() {
        assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(request.header("mcp-method"), request.body["method"].as_str());
        assert_eq!(request.header("mcp-session-id"), None);
        let meta = &request.body["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28", "{}", request.body);
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "agentd");
    }
    assert_eq!(seen[3].header("mcp-name"), Some("echo"));
    assert_eq!(seen[3].header("mcp-param-region"), Some("=?base64?WsO8cmljaA==?="));
}
