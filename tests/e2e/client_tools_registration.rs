//! Registering client tools: refusals, clients that leave, and schemas that ask for more work than there is time or memory
//! for.

use std::fmt::Write as _;

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, SocketClient, processes, sse};
use serde_json::{Map, Value, json};

use crate::{
    client_tools::{Stage, answer, attach, calls, hello, offered, provided, register, respond, tool},
    support::{assert_says, complaint, ended, text},
};

#[test]
fn tools_that_cannot_be_registered_are_refused_whole() {
    let mut stage = Stage::new([]);
    let register = |tools: Value| json!({"type": "register_tools", "tools": tools});
    let without = |key: &str| {
        let mut tool = tool("x");
        tool.as_object_mut().expect("an object").remove(key);
        tool
    };
    let with = |key: &str, value: Value| {
        let mut tool = tool("x");
        tool[key] = value;
        tool
    };
    for (tools, says) in [
        (json!([]), "at least one tool"),
        (json!([tool("ok"), tool("a b")]), "tools[1].name"),
        (json!([tool("ok"), tool("ok")]), "each name once"),
        (json!([tool("bash")]), "taken by a built-in tool"),
        (json!([without("description")]), "Missing field \"tools[0].description\""),
        (json!([without("parameters")]), "parameters"),
        (json!([with("parameters", json!({"type": "string"}))]), "\"object\""),
        (json!([with("parameters", json!({"type": "object", "properties": 3}))]), "a valid JSON Schema"),
        (json!([with("execution", json!("sometimes"))]), "\"parallel\" or \"sequential\""),
        (json!([with("timeoutMs", json!(-1))]), "timeoutMs"),
    ] {
        let refused = stage.provider.refused(register(tools));
        assert_eq!(refused["code"], "invalid_field");
        assert_says(&complaint(&refused), &[says]);
    }
    assert_eq!(provided(&mut stage.user, &stage.session), []);
    // A client cannot take another client's name; its own tools are replaced.
    stage.provider.done(register(json!([tool("mine")])));
    let refused = stage.user.refused(register(json!([tool("other"), tool("mine")])));
    assert_says(&complaint(&refused), &["\"mine\"", "another client (provider)"]);
    stage.provider.done(register(json!([with("name", json!("mine"))])));
    let mut again = tool("mine");
    again["label"] = json!("My own");
    stage.provider.done(register(json!([again])));
    let tools = stage.user.done(json!({"type": "get_tools"}))["tools"].clone();
    let mine: Vec<&Value> =
        tools.as_array().expect("a list").iter().filter(|tool| tool["name"] == "mine").collect();
    assert_eq!((mine.len(), &mine[0]["label"]), (1, &json!("My own")));
    // A client that did not say hello, only observes, or does not follow the session cannot provide tools.
    let mut plain = stage.service.client();
    attach(&mut plain, &stage.session);
    let refused = plain.refused(register(json!([tool("x")])));
    assert_eq!(refused["code"], "unsupported");
    assert_says(&complaint(&refused), &["hello"]);
    let mut observer = stage.service.client();
    observer.done(json!({"type": "hello", "protocol": 1, "role": "observe"}));
    assert_eq!(observer.refused(register(json!([tool("x")])))["code"], "forbidden");
    let mut stranger = stage.service.client();
    assert!(
        hello(&mut stranger, "stranger")["capabilities"]
            .as_array()
            .expect("a list")
            .contains(&json!("tools"))
    );
    let mut command = register(json!([tool("x")]));
    command["sessionId"] = json!(stage.session);
    let refused = stranger.refused(command.clone());
    assert_says(&complaint(&refused), &["does not follow", "attach_session"]);
    command["sessionId"] = json!("nope");
    assert_eq!(stranger.refused(command)["code"], "session_not_found");
}

#[test]
fn a_session_that_allows_only_some_tools_takes_no_others() {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--no-session", "--tools", "read,dep*"]);
    hello(&mut daemon, "host");
    register(&mut daemon, &[tool("deploy")]);
    let refused = daemon.refused(json!({"type": "register_tools", "tools": [tool("open")]}));
    assert_eq!(refused["code"], "forbidden");
    assert_says(&complaint(&refused), &["\"open\"", "it has read, deploy", "--tools"]);
    let mut daemon = Daemon::start(&home, &["--no-session", "--no-builtin-tools"]);
    hello(&mut daemon, "host");
    register(&mut daemon, &[tool("open")]);
    let mut daemon = Daemon::start(&home, &["--no-session", "--no-tools"]);
    hello(&mut daemon, "host");
    assert_eq!(
        daemon.refused(json!({"type": "register_tools", "tools": [tool("open")]}))["code"],
        "forbidden"
    );
}

#[test]
fn unregistered_tools_leave_and_calls_under_way_can_be_answered() {
    let mut stage = Stage::new([calls(&[("c1", "deploy")]), answer()]);
    register(&mut stage.provider, &[tool("deploy"), tool("open"), tool("shut")]);
    stage.prompt();
    let request = stage.provider.event("tool_request");
    let unregister = |tools: Value| json!({"type": "unregister_tools", "tools": tools});
    let refused = stage.provider.refused(unregister(json!(["deploy", "nope"])));
    assert_eq!(refused["code"], "not_found");
    assert_says(&complaint(&refused), &["\"nope\""]);
    // The response comes after the event.
    stage.provider.send(&json!({"id": "u", "type": "unregister_tools", "tools": ["deploy", "open"]}));
    let lines = stage.provider.all_until("the answer", |line| line["id"] == "u");
    assert!(lines.iter().any(|line| line["type"] == "tools_changed"), "{lines:?}");
    assert_eq!(lines.last().expect("an answer")["data"], json!({"tools": ["deploy", "open"]}));
    respond(&mut stage.provider, &request, "done");
    let result = stage.result();
    assert_eq!(text(&result), "done");
    assert_eq!(offered(&stage.server, 1), ["read", "bash", "edit", "write", "shut"]);
    assert_eq!(stage.provider.done(json!({"type": "unregister_tools"}))["tools"], json!(["shut"]));
    assert_eq!(provided(&mut stage.user, &stage.session), []);
}

#[test]
fn tools_can_be_deactivated_and_stay() {
    let mut stage = Stage::new([answer()]);
    register(&mut stage.provider, &[tool("deploy"), tool("open")]);
    let chosen = stage.user.done(json!({"type": "set_active_tools", "tools": ["open", "read"]}));
    assert_eq!(chosen["tools"], json!(["read", "open"]));
    stage.prompt();
    stage.user.settled();
    assert_eq!(offered(&stage.server, 0), ["read", "open"]);
    assert_eq!(provided(&mut stage.user, &stage.session).len(), 2);
}

#[test]
fn tools_go_along_where_the_connection_goes() {
    let mut stage = Stage::new([answer(), answer()]);
    let first = stage.session.clone();
    // A client registers tools before it has a session, and for one session only.
    let mut roamer = stage.service.client();
    roamer.done(json!({"type": "hello", "protocol": 1, "client": {"name": "roamer"}}));
    assert_eq!(register(&mut roamer, &[tool("along")]), json!({"tools": ["along"]}));
    attach(&mut roamer, &first);
    roamer.done(json!({"type": "register_tools", "tools": [tool("here")], "sessionId": first}));
    let both = [("along".to_owned(), "roamer".to_owned()), ("here".to_owned(), "roamer".to_owned())];
    assert_eq!(provided(&mut stage.user, &first), both);
    // Attaching again changes nothing.
    attach(&mut roamer, &first);
    assert_eq!(provided(&mut stage.user, &first), both);
    stage.prompt();
    stage.user.settled();
    for moving in [json!({"type": "clone"}), json!({"type": "new_session"})] {
        roamer.done(moving);
        let state = roamer.done(json!({"type": "get_state"}));
        let next = state["sessionId"].as_str().expect("an id").to_owned();
        assert_eq!(provided(&mut roamer, &next), both[..1]);
        assert_eq!(provided(&mut stage.user, &first), [], "it follows the first one no longer");
    }
    // A name conflict in the new session is reported, and everything else goes on.
    stage.provider.done(json!({"type": "register_tools", "tools": [tool("along")]}));
    roamer.send(&json!({"id": "a", "type": "attach_session", "sessionId": first}));
    roamer.until("the answer", |line| line["id"] == "a" && line["success"] == true);
    let told = roamer.until("a complaint", |line| line["success"] == false);
    assert_eq!((&told["command"], told.get("id")), (&json!("register_tools"), None));
    assert_says(&complaint(&told), &["does not get your tools", "\"along\"", "another client (provider)"]);
    let _ = &stage.home;
}

#[test]
fn leaving_a_session_ends_its_calls() {
    let mut stage = Stage::new([calls(&[("c1", "deploy")]), answer()]);
    register(&mut stage.provider, &[tool("deploy")]);
    stage.prompt();
    let request = stage.provider.event("tool_request");
    stage.provider.done(json!({"type": "detach_session", "sessionId": stage.session}));
    let result = stage.result();
    assert_eq!(text(&result), "The client that provides the tool deploy has left the session.");
    let late = json!({"type": "tool_response", "requestId": request["requestId"], "error": "late"});
    assert_says(&complaint(&stage.provider.refused(late)), &["has left the session"]);
}

#[test]
fn tools_survive_unloading_and_a_client_that_leaves_meanwhile_is_missed_afterwards() {
    let settings = json!({"daemon": {"idleUnloadMs": 1}});
    let mut stage = Stage::with_settings([calls(&[("c1", "deploy")]), answer()], &settings);
    let mut watcher = stage.service.client();
    watcher.done(json!({"type": "watch_sessions"}));
    register(&mut stage.provider, &[tool("deploy")]);
    stage.user.event("tools_changed");
    crate::unload::gone(&mut watcher, &stage.session);
    stage.prompt();
    let request = stage.provider.event("tool_request");
    respond(&mut stage.provider, &request, "done");
    assert_eq!(text(&stage.result()), "done");
    crate::unload::gone(&mut watcher, &stage.session);
    stage.provider.end_input();
    // The daemon has seen the end once it closes the connection.
    let provider = std::mem::replace(&mut stage.provider, stage.service.client());
    let _ = provider.closed();
    assert_eq!(provided(&mut stage.user, &stage.session), []);
    let told = stage.user.event("tools_changed");
    assert!(told["tools"].as_array().expect("a list").iter().all(|tool| tool["source"] == "builtin"));
}

#[test]
fn the_host_of_a_private_daemon_provides_tools_too() {
    let server = MockServer::start([calls(&[("c1", "deploy")]), answer()]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let plain = daemon.refused(json!({"type": "register_tools", "tools": [tool("deploy")]}));
    assert_eq!(plain["code"], "unsupported");
    daemon.done(json!({"type": "hello", "protocol": 1}));
    register(&mut daemon, &[tool("deploy")]);
    daemon.send(&json!({"id": "1", "type": "prompt", "message": "Go."}));
    let request = daemon.event("tool_request");
    let result = json!({"content": [{"type": "text", "text": "done"}]});
    daemon.done(json!({"type": "tool_response", "requestId": request["requestId"], "result": result}));
    let events = daemon.settled();
    assert_eq!(text(ended(&events, "toolResult")[0]), "done");
    // A client that does not name sessions gets no such event.
    assert!(events.iter().all(|event| event["type"] != "tools_changed"));
    // The end of the input ends the call and the daemon.
    server.push(calls(&[("c2", "deploy")]));
    daemon.send(&json!({"id": "2", "type": "prompt", "message": "Again."}));
    daemon.event("tool_request");
    let ended = daemon.close();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
}

/// The daemon's memory at the end of each test; the attacks took gigabytes.
const FAIR: u64 = 400 << 20;

struct SchemaStage {
    service: Service,
    client: SocketClient,
}

impl SchemaStage {
    fn new(replies: Vec<Reply>) -> (Home, MockServer, Self) {
        let server = MockServer::start(replies);
        let home = Home::with_model(&server);
        let service = Service::start(&home, &[]);
        let mut client = service.client();
        client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
        client.done(json!({"type": "open_session", "cwd": home.project()}));
        (home, server, Self { service, client })
    }

    fn register(&mut self, parameters: &Value) -> Value {
        let tool = json!({"name": "odd", "description": "Does something.", "parameters": parameters});
        self.client.call(json!({"type": "register_tools", "tools": [tool]}))
    }

    #[track_caller]
    fn refused(&mut self, parameters: &Value, says: &str) {
        let answer = self.register(parameters);
        assert_eq!(answer["code"], "invalid_field", "{answer}");
        let error = answer["error"].as_str().expect("a text");
        assert!(error.contains(says) && error.contains("\"odd\""), "{says:?} is missing in {error:?}");
    }

    fn is_small(&self) {
        let used = processes::usage(self.service.id());
        assert!(used.resident < FAIR, "{used:?}");
    }
}

/// Nested alternatives: each level names the next one twice, so that the last is checked 2^levels times.
fn doubling(levels: usize) -> Value {
    let next = |level: usize| json!({"$ref": format!("#/$defs/d{}", level + 1)});
    let mut defs: Map<String, Value> = (0..levels)
        .map(|level| (format!("d{level}"), json!({"anyOf": [next(level), next(level)]})))
        .collect();
    defs.insert(format!("d{levels}"), json!({"type": "integer"}));
    json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs})
}

#[test]
fn a_schema_that_doubles_with_each_level_is_refused() {
    let call = sse::calls(&[("c1", "odd", json!({"a": "x"}))]);
    let (_home, _server, mut stage) =
        SchemaStage::new(vec![Reply::stream(call), Reply::stream(sse::answer("Ok."))]);
    let attack = doubling(60);
    assert!(attack.to_string().len() < 6_000);
    stage.refused(&attack, "nest deeper");
    stage.refused(&doubling(14), "more than 10000 schemas");
    // A refused tool cannot be called; the session works on.
    let results = stage.client.prompt("Go.");
    assert!(text(ended(&results, "toolResult")[0]).contains("not found"), "{results:?}");
    stage.is_small();
}

#[test]
fn schemas_without_an_end_and_huge_patterns_are_refused() {
    let (_home, _server, mut stage) = SchemaStage::new(vec![Reply::stream(sse::answer("Fine."))]);
    let circle = json!({"type": "object", "allOf": [{"$ref": "#/$defs/a"}],
        "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}});
    stage.refused(&circle, "refers to itself");
    let mut deep = json!({"type": "object"});
    for _ in 0..50 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    stage.refused(&deep, "nests deeper");
    let by_name: Map<String, Value> =
        (0..2_000).map(|number| (format!("(a{{99}}b{{99}}c{number}){{99}}"), json!({}))).collect();
    stage.refused(
        &json!({"type": "object", "patternProperties": by_name}),
        "regular expressions are too large",
    );
    let away = json!({"type": "object", "properties": {"a": {"$ref": "file:///etc/hostname#/a"}}});
    stage.refused(&away, "other documents");
    assert_eq!(text(crate::support::answers(&stage.client.prompt("Hi"))[0]), "Fine.");
    stage.is_small();
}

#[test]
fn arguments_that_multiply_in_a_recursive_schema_are_refused_and_the_run_goes_on() {
    let mut deep = String::from("\"x\"");
    for _ in 0..100 {
        deep = format!("{{\"a\":{deep}}}");
    }
    let arguments: Value = serde_json::from_str(&deep).unwrap();
    let call = sse::calls(&[("c1", "odd", arguments)]);
    let (_home, server, mut stage) =
        SchemaStage::new(vec![Reply::stream(call), Reply::stream(sse::answer("I see."))]);
    let branch = json!({"type": "object", "properties": {"a": {"$ref": "#"}}});
    let registered = stage.register(&json!({"type": "object", "anyOf": [branch, branch]}));
    assert_eq!(registered["success"], true, "{registered}");
    let events = stage.client.prompt("Go.");
    let told = text(ended(&events, "toolResult")[0]);
    assert!(told.contains("too large or too deeply nested"), "{told}");
    assert_eq!(text(crate::support::answers(&events)[1]), "I see.");
    assert_eq!(server.requests().len(), 2);
    stage.is_small();
}

#[test]
fn many_items_against_a_long_enumeration_do_not_hold_up_others() {
    let mut items = String::new();
    for number in 0..40_000 {
        let _ = write!(items, "{}{number}", if number == 0 { "" } else { "," });
    }
    let arguments: Value = serde_json::from_str(&format!("{{\"a\":[{items}]}}")).unwrap();
    let call = sse::calls(&[("c1", "odd", arguments)]);
    let (home, _server, mut stage) =
        SchemaStage::new(vec![Reply::stream(call), Reply::stream(sse::answer("I see."))]);
    let known: Vec<u32> = (100_000..106_000).collect();
    let schema = json!({"type": "object", "properties": {"a": {"items": {"enum": known}}}});
    assert_eq!(stage.register(&schema)["success"], true);
    stage.client.done(json!({"type": "prompt", "message": "Go."}));
    // Another client is answered meanwhile.
    let mut other = stage.service.client();
    other.done(json!({"type": "daemon_status"}));
    other.done(json!({"type": "open_session", "cwd": home.project()}));
    let events = stage.client.settled();
    let told = text(ended(&events, "toolResult")[0]);
    assert!(told.contains("too large or too deeply nested"), "{}", &told[..told.len().min(300)]);
}
