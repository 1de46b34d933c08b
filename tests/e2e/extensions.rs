//! Extensions, on a host of our own that does what its script says.

use std::fs;

use agentd_e2e::{
    Daemon, Home, MockServer, Reply, conversation::Conversation, conversation::LineTransport, processes, sse,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    mcp::call,
    support::{assert_says, ended, kinds, records, text},
};

pub(crate) const HOST: &str = env!("CARGO_BIN_EXE_extension_test_host");

/// The records that the host got, below the home.
const LOG: &str = "host.log";

/// Makes an extension of the user's that does what `script` says.
pub(crate) fn extension(home: &Home, name: &str, script: &Value) {
    let folder = format!("extensions/{name}");
    home.write_agent(&format!("{folder}/script.json"), &script.to_string());
    let path = |file: &str| home.agent_dir().join(&folder).join(file).display().to_string();
    let command = json!([HOST, path("script.json"), home.root().join(LOG).display().to_string()]);
    home.write_agent(
        &format!("{folder}/extension.json"),
        &json!({"command": command, "protocol": 1}).to_string(),
    );
}

/// A home with an extension, and its daemon.
pub(crate) fn started(model: &MockServer, script: &Value) -> (Home, Daemon) {
    let home = Home::with_model(model);
    extension(&home, "test", script);
    let daemon = Daemon::start(&home, &["--stdio"]);
    (home, daemon)
}

/// The script of a host with two commands: one that says something to the session in the user's name, and `nothing`.
pub(crate) fn says_to_the_session(command: &str, text: &str) -> Value {
    let call = json!(["session.sendUserMessage", {"content": text, "options": {}}]);
    json!({"commands": {command: {"calls": [call]}, "nothing": {}}})
}

/// What the host was told, of one type. The host may be writing: a line without its end is none yet.
pub(crate) fn told(home: &Home, kind: &str) -> Vec<Value> {
    let log = fs::read_to_string(home.root().join(LOG)).unwrap_or_default();
    let written = log.rfind('\n').map_or("", |end| &log[..end]);
    let records = written.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record"));
    records.filter(|record| record["type"] == kind).collect()
}

/// The events of the hooks that the host was asked by.
pub(crate) fn events(home: &Home) -> Vec<Value> {
    told(home, "hook").into_iter().map(|hook| hook["event"].clone()).collect()
}

/// The mirror `core` of the host when it was asked about the event for the first time.
fn core_at(home: &Home, event: &str) -> Value {
    let log = fs::read_to_string(home.root().join(LOG)).expect("the log");
    let mut core = json!({});
    for record in log.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record")) {
        let patch = match record["type"].as_str() {
            Some("bind") => &record["core"],
            Some("state") if record["topic"] == "core" => &record["patch"],
            Some("hook") if record["event"]["type"] == event => break,
            _ => continue,
        };
        for (name, value) in patch.as_object().expect("fields") {
            core[name] = value.clone();
        }
    }
    core
}

pub(crate) fn failure<W: LineTransport>(client: &mut Conversation<W>) -> Value {
    client.event("extension_error")
}

#[test]
fn tools_are_tools() {
    let model = MockServer::start([]);
    let script = json!({"tools": {"echo": {
        "updates": 2, "value": {"content": [{"type": "text", "text": "said"}], "details": {"n": 1}},
    }}});
    let (home, mut daemon) = started(&model, &script);
    let tools = daemon.done(json!({"type": "get_tools"}))["tools"].clone();
    let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "echo").expect("the tool");
    assert_eq!((&tool["source"], &tool["active"]), (&json!("extension"), &json!(true)));
    model.push(Reply::stream(sse::calls(&[("c1", "echo", json!({"text": "x"}))])));
    model.push(Reply::stream(sse::answer("Ok.")));
    let seen = daemon.prompt("Go.");
    let updates: Vec<&Value> = seen.iter().filter(|event| event["type"] == "tool_execution_update").collect();
    assert_eq!(updates.len(), 2, "{updates:?}");
    let result = ended(&seen, "toolResult")[0];
    assert_eq!((text(result), &result["details"]), ("said".to_owned(), &json!({"n": 1})));
    assert_eq!(told(&home, "tool.execute")[0]["params"], json!({"text": "x"}));
    assert_says(&model.requests()[0].body.to_string(), &["does echo"]);
}

#[test]
fn a_gate_blocks_or_changes_a_call() {
    let model = MockServer::start([]);
    let script = json!({"handlers": {"tool_call": {"value": {"block": true, "reason": "not today"}}}});
    let (_home, mut daemon) = started(&model, &script);
    let result = call(&mut daemon, &model, "bash", json!({"command": "echo hi"}));
    assert_eq!((text(&result), &result["isError"]), ("not today".to_owned(), &json!(true)));

    let model = MockServer::start([]);
    let script = json!({"handlers": {
        "tool_call": {"event": {"input": {"command": "echo changed"}}},
        "tool_result": {"value": {"content": [{"type": "text", "text": "seen"}]}},
    }});
    let (home, mut daemon) = started(&model, &script);
    let result = call(&mut daemon, &model, "bash", json!({"command": "echo hi"}));
    assert_eq!(text(&result), "seen");
    let events = events(&home);
    let of = |kind: &str| events.iter().find(|event| event["type"] == kind).expect("the event").clone();
    assert_eq!(of("tool_call")["input"], json!({"command": "echo hi"}));
    assert_eq!(of("tool_result")["content"], json!([{"type": "text", "text": "changed\n"}]));
}

#[test]
fn a_handler_of_results_needs_no_gate() {
    let model = MockServer::start([]);
    let script =
        json!({"handlers": {"tool_result": {"value": {"content": [{"type": "text", "text": "seen"}]}}}});
    let (_home, mut daemon) = started(&model, &script);
    let result = call(&mut daemon, &model, "bash", json!({"command": "echo hi"}));
    assert_eq!(text(&result), "seen");
}

#[test]
fn a_gate_that_fails_blocks() {
    let cases = [
        (json!({"throw": "broken gate"}), "broken gate"),
        (json!({"crash": 3}), "Extension host exited (code 3) while running \"bash\""),
    ];
    for (action, said) in cases {
        let model = MockServer::start([]);
        let (_home, mut daemon) = started(&model, &json!({"handlers": {"tool_call": action}}));
        let result = call(&mut daemon, &model, "bash", json!({"command": "echo hi"}));
        assert_eq!((text(&result), &result["isError"]), (said.to_owned(), &json!(true)));
    }
}

#[test]
fn a_host_that_is_killed_is_started_again() {
    let model = MockServer::start([]);
    let script = json!({
        "handlers": {"session_start": {}},
        "tools": {"echo": {"value": {"content": [{"type": "text", "text": "said"}]}}, "crash": {"crash": 7}},
    });
    let (home, mut daemon) = started(&model, &script);
    model.push(Reply::stream(sse::calls(&[("c1", "crash", json!({}))])));
    model.push(Reply::stream(sse::answer("Ok.")));
    daemon.send(&json!({"id": "1", "type": "prompt", "message": "Go."}));
    let seen = daemon.settled();
    let result = ended(&seen, "toolResult")[0];
    assert_eq!(text(result), "Extension host exited (code 7) while running \"crash\"");
    // The host's end is told of on its own, before or after that of the call.
    let exit = seen.iter().find(|record| record["type"] == "extension_error").cloned();
    let exit = exit.unwrap_or_else(|| failure(&mut daemon));
    assert_eq!((&exit["extensionPath"], &exit["event"]), (&json!("<host>"), &json!("host_exit")));
    // Its tools come back with it.
    let again = |records: &[Value]| records.iter().any(|hook| hook["event"]["reason"] == "reload");
    while !again(&told(&home, "hook")) {
        daemon.done(json!({"type": "get_state"}));
    }
    let result = call(&mut daemon, &model, "echo", json!({}));
    assert_eq!(text(&result), "said");
}

#[test]
fn commands_call_the_session() {
    let model = MockServer::start([]);
    let script = json!({"commands": {"go": {
        "calls": [
            ["session.appendEntry", {"customType": "state", "data": {"n": 1}}],
            ["read", {"topic": "entries"}],
            ["session.appendEntry", {"customType": "state", "data": {"n": 2}}],
            ["session.setName", {"name": "Named"}],
            ["tools.setActive", {"names": ["read", "nothing"]}],
            ["session.sendMessage", {"message": {"customType": "note", "content": "Aside.", "display": true}, "options": {}}],
            ["nothing.at.all", {}],
        ],
        "notes": [{"method": "notify", "message": "done", "notifyType": "info"}],
    }}});
    let (home, mut daemon) = started(&model, &script);
    let commands = daemon.done(json!({"type": "get_commands"}))["commands"].clone();
    assert_eq!((&commands[0]["name"], &commands[0]["source"]), (&json!("go"), &json!("extension")));
    daemon.send(&json!({"id": "1", "type": "prompt", "message": "/go  a b"}));
    let seen = daemon.all_until("the answer", |line| line["type"] == "response");
    assert_eq!(seen.last().expect("an answer")["data"], json!({"disposition": "handled"}));
    assert!(kinds(&seen).ends_with(&["extension_ui_request", "response"]), "{:?}", kinds(&seen));
    assert_eq!(told(&home, "command.run")[0]["args"], " a b");
    let results = told(&home, "result");
    let values: Vec<&Value> = results.iter().map(|result| &result["value"]).collect();
    let entries = values[1]["value"]["entries"].as_array().expect("entries");
    assert_eq!(entries.last().expect("an entry")["data"], json!({"n": 1}));
    assert_eq!(values[4], &json!(["read"]));
    assert_eq!(values[5], &json!({"disposition": "appended"}));
    assert_eq!(results[6]["error"]["code"], "unsupported");
    // What it appended after it had read the entries was told before the answer.
    let patches: Vec<Value> =
        told(&home, "state").into_iter().filter(|patch| patch["topic"] == "entries").collect();
    assert_eq!(patches[0]["patch"]["entries"][0]["data"], json!({"n": 2}));
    // The message is part of the conversation.
    model.push(Reply::stream(sse::answer("Ok.")));
    daemon.prompt("Go on.");
    assert_says(&model.requests()[0].body.to_string(), &["Aside."]);
    drop(daemon);
    let file = &home.session_files()[0];
    let kinds: Vec<String> =
        records(file).iter().map(|record| record["type"].as_str().unwrap_or_default().to_owned()).collect();
    assert!(kinds.iter().any(|kind| kind == "custom_message"), "{kinds:?}");
}

#[test]
fn input_is_changed_or_taken() {
    let model = MockServer::start([]);
    let script = json!({"handlers": {"input": {"value": {"action": "transform", "text": "Changed."}}}});
    let (_home, mut daemon) = started(&model, &script);
    model.push(Reply::stream(sse::answer("Ok.")));
    let seen = daemon.prompt("As it was.");
    assert_eq!(text(ended(&seen, "user")[0]), "Changed.");

    let model = MockServer::start([]);
    let script = json!({"handlers": {"input": {"value": {"action": "handled"}}}});
    let (_home, mut daemon) = started(&model, &script);
    let answer = daemon.done(json!({"type": "prompt", "message": "Go."}));
    assert_eq!(answer, json!({"disposition": "handled"}));
}

#[test]
fn a_run_is_seen_in_its_order() {
    let model = MockServer::start([]);
    let names = [
        "session_start",
        "input",
        "before_agent_start",
        "agent_start",
        "turn_start",
        "message_end",
        "context",
        "turn_end",
        "agent_end",
        "agent_before_settle",
        "agent_settled",
    ];
    let mut handlers: serde_json::Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
    handlers["before_agent_start"] =
        json!({"value": {"message": {"customType": "aid", "content": "Remember.", "display": false}}});
    let (home, mut daemon) = started(&model, &json!({"handlers": handlers}));
    model.push(Reply::stream(sse::answer("Ok.")));
    daemon.prompt("Go.");
    let events = events(&home);
    let order: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    let expected = [
        "session_start",
        "input",
        "before_agent_start",
        "agent_start",
        "turn_start",
        // System, user, the handler's own.
        "message_end",
        "message_end",
        "message_end",
        "context",
        "message_end",
        "turn_end",
        "agent_end",
        "agent_before_settle",
        "agent_settled",
    ];
    assert_eq!(order, expected);
    // What the session says of itself at each of them: whether it is idle, and whether there is a run that can be aborted.
    let of = |event: &str| core_at(&home, event);
    for (event, is_idle, has_run) in [
        ("input", true, false),
        ("before_agent_start", false, false),
        ("agent_start", false, true),
        ("turn_start", false, true),
        ("agent_settled", true, false),
    ] {
        let core = of(event);
        assert_eq!((&core["idle"], !core["run"].is_null()), (&json!(is_idle), has_run), "{event}: {core}");
    }
    assert_says(&model.requests()[0].body.to_string(), &["Remember."]);
    let context = events.iter().find(|event| event["type"] == "context").expect("the event");
    let roles: Vec<&Value> =
        context["messages"].as_array().unwrap().iter().map(|message| &message["v"]["role"]).collect();
    assert_eq!(roles, ["user", "custom"]);
}

#[test]
fn a_context_that_is_changed_is_what_the_model_gets() {
    let model = MockServer::start([]);
    let other = json!({"role": "user", "content": "Something else.", "timestamp": 1});
    let script = json!({"handlers": {"context": {"value": {"messages": [{"v": other}]}}}});
    let (home, mut daemon) = started(&model, &script);
    model.push(Reply::stream(sse::answer("Ok.")));
    let seen = daemon.prompt("Secret plan.");
    let body = model.requests()[0].body.to_string();
    assert_says(&body, &["Something else."]);
    assert!(!body.contains("Secret plan."), "{body}");
    // The system prompt and the tools are still there.
    assert_says(&body, &["coding agent"]);
    assert_eq!(text(ended(&seen, "user")[0]), "Secret plan.", "the transcript is as it was");
    drop((daemon, home));
}

#[test]
fn an_extension_that_does_not_load_says_why() {
    let home = Home::with_model(&MockServer::start([]));
    extension(&home, "test", &json!({"load": {"error": "Failed to load extension: no such thing"}}));
    let ended = Daemon::start(&home, &["--stdio"]).wait();
    assert_eq!(ended.status.code(), Some(1));
    assert_says(&ended.stderr, &["Error: Failed to load extension \""]);
    assert_says(&ended.stderr, &["\": Failed to load extension: no such thing"]);
    assert_says(&ended.stderr, &["--no-extensions"]);

    extension(&home, "test", &json!({"load": {"crash": 9}}));
    let ended = Daemon::start(&home, &["--stdio"]).wait();
    assert_says(&ended.stderr, &["Extension host exited (code 9)"]);
}

#[test]
fn nothing_of_a_host_outlives_its_daemon() {
    let model = MockServer::start([]);
    let (_home, daemon) = started(&model, &json!({"tools": {"wait": {"hang": true}}}));
    let host = processes::watch(&processes::children(daemon.id()));
    assert!(host.all_alive());
    daemon.signal(Signal::KILL);
    drop(daemon);
    host.assert_gone_within(std::time::Duration::from_secs(5));
}

#[test]
fn an_abort_ends_a_tool_that_waits() {
    let model = MockServer::start([]);
    let script = json!({"tools": {"wait": {
        "updates": 1, "until_cancelled": true, "value": {"content": [{"type": "text", "text": "stopped"}]},
    }}});
    let (_home, mut daemon) = started(&model, &script);
    model.push(Reply::stream(sse::calls(&[("c1", "wait", json!({}))])));
    daemon.send(&json!({"id": "1", "type": "prompt", "message": "Go."}));
    // It runs by then.
    daemon.event("tool_execution_update");
    daemon.send(&json!({"id": "2", "type": "abort"}));
    let seen = daemon.settled();
    assert_eq!(text(ended(&seen, "toolResult")[0]), "stopped");
}

#[test]
fn a_session_ends_with_a_word_to_its_extensions() {
    let model = MockServer::start([]);
    let script = json!({"handlers": {"session_shutdown": {
        "calls": [["session.appendEntry", {"customType": "last", "data": 1}]],
    }}});
    let (home, mut daemon) = started(&model, &script);
    model.push(Reply::stream(sse::answer("Ok.")));
    daemon.prompt("Go.");
    let ended = daemon.close();
    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(events(&home)[0], json!({"type": "session_shutdown", "reason": "quit"}));
    let last = records(&home.session_files()[0]).pop().expect("a record");
    assert_eq!(last["customType"], "last");
}
