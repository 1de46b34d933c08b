//! Calls of tools that clients provide.

use agentd_e2e::{
    Conversation, Daemon, Home, MockServer, Reply, Service, SocketClient, conversation::LineTransport, sse,
};
use serde_json::{Value, json};

use crate::support::{assert_says, complaint, ended, text};

pub(crate) fn hello<W: LineTransport>(client: &mut Conversation<W>, name: &str) -> Value {
    client.done(json!({
        "type": "hello", "protocol": 1, "client": {"name": name}, "capabilities": {"sessions": true},
    }))
}

fn open(client: &mut SocketClient, home: &Home) -> String {
    let opened = client.done(json!({"type": "open_session", "cwd": home.project()}));
    opened["sessionId"].as_str().expect("an id").to_owned()
}

pub(crate) fn attach(client: &mut SocketClient, id: &str) {
    client.done(json!({"type": "attach_session", "sessionId": id}));
}

/// A tool with one argument, `name`.
pub(crate) fn tool(name: &str) -> Value {
    json!({
        "name": name, "description": format!("Does {name}."), "snippet": format!("does {name}"),
        "guidelines": [format!("Use {name} with care.")],
        "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    })
}

pub(crate) fn register<W: LineTransport>(client: &mut Conversation<W>, tools: &[Value]) -> Value {
    client.done(json!({"type": "register_tools", "tools": tools}))
}

/// The session's client tools: each name with the name of its client.
pub(crate) fn provided<W: LineTransport>(
    client: &mut Conversation<W>,
    session: &str,
) -> Vec<(String, String)> {
    let tools = client.done(json!({"type": "get_tools", "sessionId": session}))["tools"].clone();
    let tools = tools.as_array().expect("a list").iter().filter(|tool| tool["source"] == "client");
    let word = |value: &Value| value.as_str().expect("a text").to_owned();
    tools.map(|tool| (word(&tool["name"]), word(&tool["client"]))).collect()
}

pub(crate) fn calls(calls: &[(&str, &str)]) -> Reply {
    let calls: Vec<(&str, &str, Value)> =
        calls.iter().map(|(id, tool)| (*id, *tool, json!({"name": id}))).collect();
    Reply::stream(sse::calls(&calls))
}

pub(crate) fn answer() -> Reply {
    Reply::stream(sse::answer("Ok."))
}

pub(crate) fn respond(client: &mut SocketClient, request: &Value, said: &str) {
    let result = json!({"content": [{"type": "text", "text": said}]});
    client.done(json!({"type": "tool_response", "requestId": request["requestId"], "result": result}));
}

pub(crate) fn offered(server: &MockServer, request: usize) -> Vec<String> {
    let body = &server.requests()[request].body;
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().expect("a name").to_owned()).collect()
}

/// A daemon with a session, one client that follows it, and one that provides tools.
pub(crate) struct Stage {
    pub(crate) server: MockServer,
    pub(crate) home: Home,
    pub(crate) service: Service,
    pub(crate) user: SocketClient,
    pub(crate) provider: SocketClient,
    pub(crate) session: String,
}

impl Stage {
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::with_settings(replies, &json!({}))
    }

    pub(crate) fn with_settings(replies: impl IntoIterator<Item = Reply>, settings: &Value) -> Self {
        let server = MockServer::start(replies);
        let home = Home::with_model(&server);
        home.settings(settings);
        let service = Service::start(&home, &[]);
        let (mut user, mut provider) = (service.client(), service.client());
        hello(&mut user, "user");
        hello(&mut provider, "provider");
        let session = open(&mut user, &home);
        attach(&mut provider, &session);
        Self { server, home, service, user, provider, session }
    }

    pub(crate) fn prompt(&mut self) {
        self.user.done(json!({"type": "prompt", "message": "Go."}));
    }

    /// Waits for the end of the run, and returns its only tool result.
    pub(crate) fn result(&mut self) -> Value {
        let events = self.user.settled();
        let results = ended(&events, "toolResult");
        assert_eq!(results.len(), 1, "{results:?}");
        results[0].clone()
    }
}

#[test]
fn a_call_goes_to_the_client_and_its_answer_to_the_model() {
    let mut stage = Stage::new([calls(&[("c1", "deploy")]), answer()]);
    let registered = register(&mut stage.provider, &[tool("deploy")]);
    assert_eq!(registered, json!({"tools": ["deploy"], "sessionId": stage.session}));
    let changed = stage.user.event("tools_changed");
    let expected = json!({"name": "deploy", "active": true, "source": "client", "client": "provider"});
    assert_eq!(changed["tools"].as_array().expect("a list").last(), Some(&expected));
    stage.prompt();
    let started = stage.provider.event("tool_execution_start");
    assert_eq!(started["toolName"], "deploy");
    // The request is the very next line: it has no number, and no other client receives it.
    let request = stage.provider.line();
    let expected = json!({"type": "tool_request", "requestId": request["requestId"], "sessionId": stage.session,
        "toolCallId": "c1", "toolName": "deploy", "args": {"name": "c1"}});
    assert_eq!(request, expected);
    let id = &request["requestId"];
    let partial = json!({"content": [{"type": "text", "text": "half"}], "details": {"done": 0.5}});
    stage.provider.done(json!({"type": "tool_progress", "requestId": id, "partialResult": partial}));
    let update = stage.user.event("tool_execution_update");
    assert_eq!((&update["toolCallId"], &update["partialResult"]), (&json!("c1"), &partial));
    let result = json!({"content": [{"type": "text", "text": "deployed"}], "details": {"url": "http://x/"}});
    stage.provider.done(json!({"type": "tool_response", "requestId": id, "result": result}));
    let events = stage.user.settled();
    assert!(events.iter().all(|event| event["type"] != "tool_request"), "{events:?}");
    let end = events.iter().find(|event| event["type"] == "tool_execution_end").expect("an end");
    assert_eq!((&end["isError"], &end["result"]), (&json!(false), &result));
    let stored = ended(&events, "toolResult")[0];
    assert_eq!((text(stored).as_str(), &stored["details"]), ("deployed", &result["details"]));
    // The model saw the tools of the request.
    assert_eq!(offered(&stage.server, 0), ["read", "bash", "edit", "write", "deploy"]);
    let requests = stage.server.requests();
    let system: String = requests[0].messages().iter().take(1).map(text).collect();
    assert_says(&system, &["- deploy: does deploy", "- Use deploy with care."]);
    let last = requests[1].messages().last().expect("a message").clone();
    assert_eq!((&last["role"], text(&last).as_str()), (&json!("tool"), "deployed"));
    // A second response is refused.
    let late = stage.provider.refused(json!({"type": "tool_response", "requestId": id, "result": result}));
    assert_eq!(late["code"], "not_found");
    assert_says(&complaint(&late), &["answered before", "ignored"]);
}

#[test]
fn calls_run_side_by_side_unless_the_tool_says_otherwise() {
    let mut stage = Stage::new([
        calls(&[("c1", "deploy"), ("c2", "open"), ("c3", "deploy")]),
        calls(&[("d1", "deploy"), ("d2", "alone")]),
        answer(),
    ]);
    let mut alone = tool("alone");
    alone["execution"] = json!("sequential");
    register(&mut stage.provider, &[tool("deploy"), tool("open"), alone]);
    stage.prompt();
    let requests: Vec<Value> = (0..3).map(|_| stage.provider.event("tool_request")).collect();
    // The responses come in another order than the requests; an error goes to the model.
    respond(&mut stage.provider, &requests[2], "three");
    stage.provider.done(
        json!({"type": "tool_response", "requestId": requests[1]["requestId"], "error": "no such window"}),
    );
    respond(&mut stage.provider, &requests[0], "one");
    let first = stage.provider.event("tool_request");
    assert_eq!(first["toolCallId"], "d1");
    respond(&mut stage.provider, &first, "four");
    // Only then is the next request sent.
    let between = stage.provider.all_until("a request", |line| line["type"] == "tool_request");
    assert!(between.iter().any(|line| line["type"] == "tool_execution_end" && line["toolCallId"] == "d1"));
    respond(&mut stage.provider, between.last().expect("a request"), "five");
    let events = stage.user.settled();
    let results = ended(&events, "toolResult");
    let seen: Vec<(String, bool)> =
        results.iter().map(|result| (text(result), result["isError"] == true)).collect();
    let expected =
        [("one", false), ("no such window", true), ("three", false), ("four", false), ("five", false)];
    assert_eq!(seen, expected.map(|(text, failed)| (text.to_owned(), failed)));
}

#[test]
fn an_abort_ends_the_call_at_once_and_tells_the_client() {
    for scope in [None, Some("tools")] {
        let mut stage = Stage::new([calls(&[("c1", "deploy")]), answer()]);
        register(&mut stage.provider, &[tool("deploy")]);
        stage.prompt();
        let request = stage.provider.event("tool_request");
        let abort = scope.map_or(json!({"type": "abort"}), |scope| json!({"type": "abort", "scope": scope}));
        stage.user.done(abort);
        let cancel = stage.provider.event("tool_cancel");
        let expected = json!({"type": "tool_cancel", "requestId": request["requestId"],
            "sessionId": stage.session, "reason": "aborted"});
        assert_eq!(cancel, expected);
        let attached = stage.user.done(json!({"type": "get_messages"}));
        let messages = attached["messages"].as_array().expect("messages");
        let result = messages.iter().find(|message| message["role"] == "toolResult").expect("a result");
        assert_eq!((text(result).as_str(), &result["isError"]), ("Operation aborted", &json!(true)));
        let late = json!({"type": "tool_response", "requestId": request["requestId"], "error": "late"});
        let refused = stage.provider.refused(late);
        assert_says(&complaint(&refused), &["it was aborted", "ignored"]);
        let progress = json!({"type": "tool_progress", "requestId": request["requestId"],
            "partialResult": {"content": []}});
        assert_eq!(stage.provider.refused(progress)["code"], "not_found");
    }
}

#[test]
fn a_client_that_takes_too_long_is_not_waited_for() {
    let settings = json!({"clientTools": {"timeoutMs": 20}});
    let mut stage = Stage::with_settings([calls(&[("c1", "deploy")]), answer()], &settings);
    let mut slow = tool("slow");
    slow["timeoutMs"] = json!(0);
    register(&mut stage.provider, &[tool("deploy"), slow]);
    let tools = stage.user.done(json!({"type": "get_tools"}))["tools"].clone();
    let limits: Vec<&Value> =
        tools.as_array().expect("a list").iter().map(|tool| &tool["timeoutMs"]).collect();
    assert_eq!(limits[limits.len() - 2..], [&json!(20), &Value::Null]);
    stage.prompt();
    let request = stage.provider.event("tool_request");
    let cancel = stage.provider.event("tool_cancel");
    assert_eq!((&cancel["requestId"], &cancel["reason"]), (&request["requestId"], &json!("timeout")));
    let result = stage.result();
    let expected = "The client that provides the tool deploy did not answer within 0.02 seconds.";
    assert_eq!((text(&result).as_str(), &result["isError"]), (expected, &json!(true)));
    let late = json!({"type": "tool_response", "requestId": request["requestId"], "error": "late"});
    assert_says(&complaint(&stage.provider.refused(late)), &["took too long"]);
}

#[test]
fn a_client_that_is_gone_takes_its_tools_along() {
    let mut stage = Stage::new([calls(&[("c1", "deploy")]), calls(&[("c2", "deploy")]), answer()]);
    register(&mut stage.provider, &[tool("deploy")]);
    stage.user.event("tools_changed");
    stage.prompt();
    stage.provider.event("tool_request");
    // The connection breaks, as after a kill.
    let provider = std::mem::replace(&mut stage.provider, stage.service.client());
    drop(provider);
    let events = stage.user.settled();
    let results: Vec<String> = ended(&events, "toolResult").into_iter().map(text).collect();
    let gone = "The client that provides the tool deploy has disconnected.";
    // The model learns that the tool is gone, and calls it nevertheless.
    assert_eq!(results, [gone, "Tool deploy not found"]);
    let told = ended(&events, "system").into_iter().last().expect("a change").clone();
    assert_eq!(told["toolsRemoved"], json!([{"name": "deploy"}]));
    assert_eq!(offered(&stage.server, 1), ["read", "bash", "edit", "write"]);
    assert!(events.iter().any(|event| event["type"] == "tools_changed"), "{events:?}");
    assert_eq!(provided(&mut stage.user, &stage.session), []);
    // A client that comes back registers again.
    hello(&mut stage.provider, "provider");
    attach(&mut stage.provider, &stage.session);
    register(&mut stage.provider, &[tool("deploy")]);
    assert_eq!(provided(&mut stage.user, &stage.session), [("deploy".into(), "provider".into())]);
}

#[test]
fn a_killed_process_is_a_client_that_is_gone() {
    let server = MockServer::start([calls(&[("c1", "deploy")]), answer()]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut user = service.client();
    hello(&mut user, "user");
    let session = open(&mut user, &home);
    // The client is another process, behind the bridge.
    let mut bridge = Daemon::start_shared(&home, &["--session-id", &session]);
    hello(&mut bridge, "bridge");
    bridge.done(json!({"type": "attach_session", "sessionId": session}));
    register(&mut bridge, &[tool("deploy")]);
    user.done(json!({"type": "prompt", "message": "Go."}));
    bridge.event("tool_request");
    bridge.signal(rustix::process::Signal::KILL);
    let events = user.settled();
    assert_says(&text(ended(&events, "toolResult")[0]), &["deploy has disconnected."]);
}

#[test]
fn answers_that_cannot_be_used_are_refused_and_end_the_call() {
    let png =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    for (response, says) in [
        (json!({}), &["neither"][..]),
        (json!({"result": {"content": []}, "error": "x"}), &["both"]),
        (json!({"error": 3}), &["\"error\"", "expected a string"]),
        (json!({"error": ""}), &["says why"]),
        (json!({"result": {"content": "text"}}), &["\"result.content\"", "expected a sequence"]),
        (json!({"result": {}}), &["Missing field", "content"]),
        (json!({"result": {"content": [{"type": "video"}]}}), &["\"text\" or \"image\""]),
        (json!({"result": {"content": [{"type": "text"}]}}), &["text"]),
        (json!({"result": {"content": [{"type": "image", "data": png}]}}), &["mimeType"]),
        (
            json!({"result": {"content": [{"type": "text", "text": "x".repeat(3000)}]}}),
            &["at most 2000 bytes"],
        ),
    ] {
        let settings = json!({"clientTools": {"maxResultBytes": 2000}});
        let mut stage = Stage::with_settings([calls(&[("c1", "deploy")]), answer()], &settings);
        register(&mut stage.provider, &[tool("deploy")]);
        stage.prompt();
        let request = stage.provider.event("tool_request");
        let mut response = response;
        response["type"] = json!("tool_response");
        response["requestId"] = request["requestId"].clone();
        let refused = stage.provider.refused(response);
        assert_says(&complaint(&refused), says);
        let result = stage.result();
        assert_eq!(result["isError"], true);
        assert_says(&text(&result), &[&["gave a result that cannot be used"], says].concat());
    }
}

#[test]
fn unknown_requests_are_refused() {
    let mut stage = Stage::new([calls(&[("c1", "deploy")]), answer()]);
    register(&mut stage.provider, &[tool("deploy")]);
    stage.prompt();
    let request = stage.provider.event("tool_request");
    let id = &request["requestId"];
    let result = json!({"content": []});
    for command in [
        json!({"type": "tool_response", "requestId": "nope", "result": result}),
        json!({"type": "tool_progress", "requestId": "nope", "partialResult": result}),
    ] {
        let refused = stage.provider.refused(command);
        assert_eq!(refused["code"], "not_found");
        assert_says(&complaint(&refused), &["no request \"nope\"", "tool_request"]);
    }
    // A client does not know another client's request.
    let stolen = json!({"type": "tool_response", "requestId": id, "result": result});
    assert_eq!(stage.user.refused(stolen.clone())["code"], "not_found");
    assert_eq!(
        stage.provider.refused(json!({"type": "tool_response", "result": result}))["code"],
        "invalid_field"
    );
    // Invalid progress leaves the call unchanged.
    let bad = json!({"type": "tool_progress", "requestId": id, "partialResult": {"content": 3}});
    assert_eq!(stage.provider.refused(bad)["code"], "invalid_field");
    stage.provider.done(stolen);
    assert_eq!(stage.result()["isError"], false);
}

#[test]
fn images_come_back_as_the_loop_takes_them() {
    let png =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let mut stage = Stage::new([calls(&[("c1", "deploy")]), answer()]);
    register(&mut stage.provider, &[tool("deploy")]);
    stage.prompt();
    let request = stage.provider.event("tool_request");
    let content = json!([
        {"type": "image", "data": png, "mimeType": "image/jpeg"},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
    ]);
    let result = json!({"content": content, "isError": true});
    stage
        .provider
        .done(json!({"type": "tool_response", "requestId": request["requestId"], "result": result}));
    let result = stage.result();
    assert_eq!(result["isError"], true);
    assert_eq!(result["content"][0], json!({"type": "image", "data": png, "mimeType": "image/png"}));
    assert_says(&text(&result), &["Image omitted"]);
}

#[test]
fn arguments_are_checked_before_the_client_is_asked() {
    let wrong = Reply::stream(sse::calls(&[("c1", "deploy", json!({"nom": 3}))]));
    let mut stage = Stage::new([wrong, answer()]);
    register(&mut stage.provider, &[tool("deploy")]);
    stage.prompt();
    let result = stage.result();
    assert_says(&text(&result), &["Validation failed for tool \"deploy\":", "name"]);
    let seen = stage.provider.settled();
    assert!(seen.iter().all(|line| line["type"] != "tool_request"), "{seen:?}");
}

#[test]
fn a_client_ends_the_run_when_every_result_says_so() {
    for (both, requests) in [(true, 1), (false, 2)] {
        let mut stage = Stage::new([calls(&[("c1", "deploy"), ("c2", "deploy")]), answer()]);
        register(&mut stage.provider, &[tool("deploy")]);
        stage.prompt();
        for last in [false, true] {
            let request = stage.provider.event("tool_request");
            let mut result = json!({"content": [{"type": "text", "text": "done"}], "terminate": true});
            if last && !both {
                result.as_object_mut().unwrap().remove("terminate");
            }
            let id = &request["requestId"];
            stage.provider.done(json!({"type": "tool_response", "requestId": id, "result": result}));
        }
        let events = stage.user.settled();
        assert_eq!(ended(&events, "toolResult").len(), 2);
        assert_eq!(stage.server.requests().len(), requests, "terminate by both: {both}");
    }
}
