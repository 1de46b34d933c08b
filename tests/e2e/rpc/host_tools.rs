//! Tools of hosts, in the words of omp's clients.

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, sse};
use serde_json::{Value, json};

use crate::support::{assert_says, complaint, ended, text};

fn tool(name: &str) -> Value {
    json!({
        "name": name, "description": format!("Does {name}."), "hidden": false, "loadMode": "essential",
        "parameters": {"type": "object", "properties": {"name": {"type": "string"}}},
    })
}

fn call(tool: &str) -> Reply {
    Reply::stream(sse::calls(&[("c1", tool, json!({"name": "x"}))]))
}

fn content(said: &str) -> Value {
    json!({"content": [{"type": "text", "text": said}], "details": {}})
}

/// A daemon with the tool `deploy` of its host, whose model calls it.
fn started(home: &Home) -> Daemon {
    let mut daemon = Daemon::start(home, &["--ready"]);
    let set = daemon.done(json!({"type": "set_host_tools", "tools": [tool("deploy"), tool("other")]}));
    assert_eq!(set, json!({"toolNames": ["deploy", "other"]}));
    daemon
}

#[test]
fn a_call_goes_to_the_host_and_its_result_to_the_model() {
    let server = MockServer::start([call("deploy"), Reply::stream(sse::answer("Done."))]);
    let home = Home::with_model(&server);
    let mut daemon = started(&home);
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    let lines = daemon.all_until("a call", |line| line["type"] == "host_tool_call");
    assert_eq!(lines[lines.len() - 2]["type"], "tool_execution_start");
    let call = lines.last().expect("the call").clone();
    assert_eq!(
        (&call["toolCallId"], &call["toolName"], &call["arguments"]),
        (&json!("c1"), &json!("deploy"), &json!({"name": "x"}))
    );
    daemon.send(&json!({"type": "host_tool_update", "id": call["id"], "partialResult": content("half")}));
    assert_eq!(text(&daemon.event("tool_execution_update")["partialResult"]), "half");
    daemon.send(&json!({"type": "host_tool_result", "id": call["id"], "result": content("all")}));
    let lines = daemon.settled();
    assert!(
        !lines.iter().any(|line| line["type"] == "response"),
        "an answer to a call has no response: {lines:?}"
    );
    let results = ended(&lines, "toolResult");
    assert_eq!((text(results[0]).as_str(), &results[0]["isError"]), ("all", &json!(false)));
}

#[test]
fn a_failed_result_is_an_error_and_a_bad_one_is_told() {
    let server = MockServer::start([call("deploy"), call("deploy"), Reply::stream(sse::answer("Done."))]);
    let home = Home::with_model(&server);
    let mut daemon = started(&home);
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    let call = daemon.event("host_tool_call");
    daemon.send(
        &json!({"type": "host_tool_result", "id": call["id"], "result": content("no"), "isError": true}),
    );
    let second = daemon.event("host_tool_call");
    daemon.send(&json!({"type": "host_tool_result", "id": second["id"], "result": "no"}));
    // The result of the call may come before the answer to the line that brought it.
    let mut lines =
        daemon.all_until("a refusal", |line| line["type"] == "response" && line["id"] == second["id"]);
    let refused = lines.pop().expect("the refusal");
    assert_eq!(
        (&refused["command"], &refused["code"]),
        (&json!("host_tool_result"), &json!("invalid_field"))
    );
    lines.extend(daemon.settled());
    let results = ended(&lines, "toolResult");
    let failures: Vec<String> = results.iter().map(|result| text(result)).collect();
    assert!(results.iter().all(|result| result["isError"] == true), "{results:?}");
    assert_says(&failures.join("\n"), &["cannot be used"]);
    daemon.send(&json!({"type": "host_tool_result", "id": call["id"], "result": content("late")}));
    let late = daemon.until("a refusal", |line| line["id"] == call["id"]);
    assert_eq!(late["code"], "not_found");
}

#[test]
fn an_abort_cancels_the_call() {
    let server = MockServer::start([call("deploy")]);
    let home = Home::with_model(&server);
    let mut daemon = started(&home);
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    let call = daemon.event("host_tool_call");
    daemon.send(&json!({"id": "a", "type": "abort"}));
    let lines = daemon.all_until("the abort", |line| line["id"] == "a");
    let cancel = lines.iter().find(|line| line["type"] == "host_tool_cancel").expect("a cancel");
    assert_eq!(cancel["targetId"], call["id"]);
    assert!(cancel["id"].is_string() && cancel["id"] != call["id"], "{cancel}");
}

#[test]
fn the_set_is_replaced_and_follows_the_host_to_other_sessions() {
    let server = MockServer::always(Reply::stream(sse::answer("Hello.")));
    let home = Home::with_model(&server);
    let mut daemon = started(&home);
    let names = |daemon: &mut Daemon| -> Vec<String> {
        let tools = daemon.done(json!({"type": "get_tools"}))["tools"].clone();
        let of_clients = tools.as_array().expect("a list").iter().filter(|tool| tool["source"] == "client");
        of_clients.map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names(&mut daemon), ["deploy", "other"]);
    daemon.done(json!({"type": "set_host_tools", "tools": [tool("other"), tool("third")]}));
    assert_eq!(names(&mut daemon), ["other", "third"]);
    let refused = daemon.refused(json!({"type": "set_host_tools", "tools": [tool("bash")]}));
    assert_eq!(refused["code"], "invalid_field", "{refused}");
    let refused = daemon.refused(json!({"type": "set_host_tools", "tools": [tool("a"), tool("a")]}));
    assert_says(&complaint(&refused), &["each name once"]);
    assert_eq!(names(&mut daemon), ["other", "third"]);
    daemon.prompt("Hi.");
    daemon.done(json!({"type": "new_session"}));
    assert_eq!(names(&mut daemon), ["other", "third"]);
    assert_eq!(daemon.done(json!({"type": "set_host_tools", "tools": []})), json!({"toolNames": []}));
    assert_eq!(names(&mut daemon), [""; 0]);
}

#[test]
fn calls_fail_and_tools_go_when_the_host_leaves() {
    let server = MockServer::start([call("deploy"), Reply::stream(sse::answer("Done."))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let (mut user, mut host) = (service.client(), service.client());
    user.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    let session = user.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone();
    // A plain client, as omp's are.
    host.done(json!({"type": "attach_session", "sessionId": session}));
    host.done(json!({"type": "set_host_tools", "tools": [tool("deploy")]}));
    user.done(json!({"type": "prompt", "message": "Go."}));
    host.event("host_tool_call");
    drop(host);
    let lines = user.settled();
    let results = ended(&lines, "toolResult");
    assert_says(&text(results[0]), &["deploy", "has disconnected"]);
    let tools = user.done(json!({"type": "get_tools"}))["tools"].clone();
    assert!(!tools.as_array().expect("a list").iter().any(|tool| tool["source"] == "client"), "{tools}");
}
