//! A whole run: an answer with tool calls in between, the files that change, the transcript, the session file; `continue`.

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use crate::support::{answers, ended, kinds, prompt, records, roles, text};

#[test]
fn a_run_with_every_tool() {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "write", json!({"path": "src/a.txt", "content": "one\ntwo\n"}))])),
        Reply::stream(sse::calls(&[("c2", "read", json!({"path": "src/a.txt"}))])),
        Reply::stream(sse::calls(&[(
            "c3",
            "edit",
            json!({"path": "src/a.txt", "edits": [{"oldText": "two", "newText": "2"}]}),
        )])),
        Reply::stream(sse::calls(&[("c4", "bash", json!({"command": "cat src/a.txt"}))])),
        Reply::stream(sse::answer("All done.")),
    ]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    let events = daemon.prompt("Do it all.");
    assert_eq!(home.read("src/a.txt"), "one\n2\n");

    let results = ended(&events, "toolResult");
    let texts: Vec<String> = results.iter().map(|result| text(result)).collect();
    assert_eq!(
        texts,
        [
            "Successfully wrote to src/a.txt",
            "one\ntwo\n",
            "Successfully replaced 1 block(s) in src/a.txt.",
            "one\n2\n"
        ]
    );
    assert_eq!(results[2]["details"]["firstChangedLine"], 2);
    assert_eq!(text(answers(&events)[4]), "All done.");

    // Each request repeats the messages before it, and answers each call once.
    let requests = server.requests();
    assert_eq!(requests.len(), 5);
    for (index, request) in requests.iter().enumerate() {
        assert_eq!(request.target, "POST /v1/chat/completions");
        assert_eq!(request.header("authorization"), Some("Bearer test-key-1234"));
        let roles: Vec<&str> =
            request.messages().iter().filter_map(|message| message["role"].as_str()).collect();
        let mut expected = vec!["system", "user"];
        (0..index).for_each(|_| expected.extend(["assistant", "tool"]));
        assert_eq!(roles, expected);
    }
    let tools = requests[0].body["tools"].as_array().expect("tools are offered");
    let names: Vec<&Value> = tools.iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["read", "bash", "edit", "write"]);

    // The file holds the events' messages in their order.
    assert!(daemon.close().status.success());
    let files = home.session_files();
    let records = records(&files[0]);
    let header = &records[0];
    assert_eq!((&header["type"], &header["version"]), (&json!("session"), &json!(3)));
    assert_eq!(header["cwd"], json!(home.project()));
    let mut parent = Value::Null;
    for record in &records[1..] {
        assert_eq!(record["parentId"], parent, "entries follow each other");
        parent = record["id"].clone();
    }
    let stored: Vec<&Value> =
        records.iter().map(|record| &record["message"]).filter(|m| !m.is_null()).collect();
    let told: Vec<&Value> =
        events.iter().filter(|event| event["type"] == "message_end").map(|event| &event["message"]).collect();
    assert_eq!(stored, told);
}

#[test]
fn the_order_of_events_is_the_documented_one() {
    let server = MockServer::start([
        Reply::stream(sse::text("Look.") + &sse::calls(&[("c1", "bash", json!({"command": "true"}))])),
        Reply::stream(sse::answer("Fine.")),
    ]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    let events = daemon.prompt("Go.");
    assert_eq!(
        kinds(&events),
        [
            "response",
            "agent_start",
            "turn_start",
            "message_start",
            "message_end",
            "message_start",
            "message_end",
            "message_start",
            "message_update",
            "message_end",
            "tool_execution_start",
            "tool_execution_update",
            "tool_execution_end",
            "message_start",
            "message_end",
            "turn_end",
            "turn_start",
            "message_start",
            "message_update",
            "message_end",
            "turn_end",
            "agent_end",
            "agent_settled",
        ]
    );
    let end = events.iter().find(|event| event["type"] == "agent_end").unwrap();
    let told: Vec<&Value> =
        events.iter().filter(|event| event["type"] == "message_end").map(|event| &event["message"]).collect();
    assert_eq!(end["messages"].as_array().unwrap().iter().collect::<Vec<_>>(), told);
    assert_eq!(end["willRetry"], false);
}

#[test]
fn calls_of_one_answer_run_at_the_same_time() {
    let home = Home::new();
    // Each call waits for the other: in sequence they would never end.
    let wait = |own: &str, other: &str| {
        json!({"command": format!("mkfifo {own} 2>/dev/null; mkfifo {other} 2>/dev/null; \
            if [ {own} = a ]; then echo x > a; cat b; else cat a; echo y > b; fi"), "timeout": 20})
    };
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "bash", wait("a", "b")), ("c2", "bash", wait("b", "a"))])),
        Reply::stream(sse::answer("Met.")),
    ]);
    home.configure(&agentd_e2e::home::models(&server.base_url()));
    let mut daemon = Daemon::start(&home, &[]);
    let events = daemon.prompt("Meet.");
    let results = ended(&events, "toolResult");
    // The results are in the order of the calls.
    assert_eq!(results.iter().map(|result| text(result)).collect::<Vec<_>>(), ["y\n", "x\n"]);
    let ids: Vec<&Value> = results.iter().map(|result| &result["toolCallId"]).collect();
    assert_eq!(ids, ["c1", "c2"]);
}

#[test]
fn deltas_come_as_the_server_sends_them() {
    let gate = Gate::new();
    let server = MockServer::start([Reply::stream(sse::text("a"))
        .gate(&gate)
        .then(sse::text("b") + &sse::end("stop", (1, 0, 1)))]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.send(&prompt("Go."));
    let delta = |text: &str| {
        let text = json!(text);
        move |line: &Value| line["assistantMessageEvent"]["delta"] == text
    };
    daemon.until("the first delta", delta("a"));
    gate.open();
    daemon.until("the second delta", delta("b"));
    daemon.settled();
}

#[test]
fn a_message_is_on_disk_before_its_event() {
    let gate = Gate::new();
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "bash", json!({"command": "true"}))])),
        Reply::stream("").gate(&gate).then(sse::answer("Done.")),
    ]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("Go."));
    let mut told = 0;
    loop {
        let line = daemon.line();
        if line["type"] == "message_end" {
            told += 1;
            if line["message"]["role"] != "system" {
                let stored = roles(&home.session_files()[0]);
                assert!(stored.len() >= told, "told {told} messages, stored {stored:?}");
            }
            if line["message"]["role"] == "toolResult" {
                gate.open();
            }
        }
        if line["type"] == "agent_settled" {
            break;
        }
    }
    assert_eq!(told, 5);
}

#[test]
fn a_second_prompt_goes_on_with_the_conversation() {
    let server = MockServer::always(Reply::stream(sse::answer("Yes.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("One?");
    let events = daemon.prompt("Two?");
    // The system prompt is sent once.
    assert!(ended(&events, "system").is_empty());
    let requests = server.requests();
    let said: Vec<String> = requests[1].messages()[1..].iter().map(text).collect();
    assert_eq!(said, ["One?", "Yes.", "Two?"]);
}

#[test]
fn a_message_that_was_queued_while_idle_is_sent_by_continue() {
    let server = MockServer::start([
        Reply::stream(sse::answer("First.")),
        Reply::stream(sse::answer("Second.")),
        Reply::stream(sse::answer("Third.")),
    ]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    let empty = daemon.refused(json!({"type": "continue"}));
    assert_eq!(
        (&empty["error"], &empty["code"]),
        (&json!("Cannot continue: no messages in context"), &json!("unsupported"))
    );
    for (kind, message) in [("steer", "One"), ("follow_up", "Two")] {
        daemon.done(json!({"type": kind, "message": message}));
    }
    // Both messages go out, in order.
    assert_eq!(daemon.done(json!({"type": "continue"})), json!({"disposition": "started"}));
    let events = daemon.settled();
    assert_eq!(ended(&events, "user").into_iter().map(text).collect::<Vec<_>>(), ["One", "Two"]);
    assert_eq!(events.iter().filter(|event| event["type"] == "agent_settled").count(), 1);
    let answered = daemon.refused(json!({"type": "continue"}));
    assert_eq!(answered["error"], "Cannot continue from message role: assistant");
    // A command of the user can be answered, too.
    daemon.done(json!({"type": "bash", "command": "echo look"}));
    daemon.done(json!({"type": "continue"}));
    daemon.settled();
    let requests = server.requests();
    assert!(text(requests[2].messages().last().unwrap()).contains("look"));
    // The tools are announced once, at the start.
    let messages = daemon.done(json!({"type": "get_messages"}))["messages"].clone();
    let roles: Vec<&Value> = messages.as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user", "assistant", "bashExecution", "assistant"]);
}

#[test]
fn the_state_in_the_middle_of_a_run() {
    let gate = Gate::new();
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "bash", json!({"command": "echo begun; cat pipe"}))])),
        Reply::stream(sse::text("Half")).gate(&gate).then(sse::answer(" done.")),
    ]);
    let home = Home::with_model(&server);
    let pipe = home.project().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut daemon = Daemon::start(&home, &[]);
    let state = json!({"type": "get_state"});
    let plain = daemon.done(state.clone());
    for field in ["pendingToolCalls", "hasStreamingMessage", "errorMessage"] {
        assert!(plain.get(field).is_none(), "{field} is not part of the plain protocol");
    }
    daemon.done(json!({"type": "hello", "protocol": 1}));
    daemon.send(&prompt("Go."));
    daemon.event("tool_execution_update");
    let in_tool = daemon.done(state.clone());
    assert_eq!(
        (&in_tool["pendingToolCalls"], &in_tool["hasStreamingMessage"]),
        (&json!(["c1"]), &json!(false))
    );
    std::fs::write(&pipe, "go on\n").unwrap();
    daemon.until("a delta of the second answer", |line| line["assistantMessageEvent"]["delta"] == "Half");
    let streaming = daemon.done(state.clone());
    assert_eq!(
        (&streaming["pendingToolCalls"], &streaming["hasStreamingMessage"]),
        (&json!([]), &json!(true))
    );
    let messages = daemon.done(json!({"type": "get_messages"}))["messages"].clone();
    let partial = messages.as_array().unwrap().last().unwrap();
    assert_eq!((text(partial).as_str(), &partial["stopReason"]), ("Half", &json!("pending")));
    gate.open();
    daemon.settled();
    let messages = daemon.done(json!({"type": "get_messages"}))["messages"].clone();
    assert_eq!(text(messages.as_array().unwrap().last().unwrap()), "Half done.");
    assert_eq!(daemon.done(state)["hasStreamingMessage"], false);
}

#[test]
fn calls_run_one_by_one_where_the_setting_says_so() {
    for (setting, order) in [(json!({"toolExecution": "sequential"}), ["1", "2"]), (json!({}), ["2", "1"])] {
        let call = |id: &'static str, command: &str| (id, "bash", json!({"command": command}));
        // In parallel, the first call ends only after the second.
        let first = if order[0] == "1" { "true" } else { "cat pipe" };
        let server = MockServer::start([
            Reply::stream(sse::calls(&[call("1", first), call("2", "echo > pipe")])),
            Reply::stream(sse::answer("Ok.")),
        ]);
        let home = Home::with_model(&server);
        home.settings(&setting);
        let pipe = home.project().join("pipe");
        if order[0] == "2" {
            assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        }
        let mut daemon = Daemon::start(&home, &[]);
        let explained = daemon.done(json!({"type": "explain_setting", "key": "toolExecution"}));
        let expected = if setting == json!({}) { "parallel" } else { "sequential" };
        assert_eq!(explained["value"], expected, "{explained}");
        let events = daemon.prompt("Go.");
        let steps: Vec<(&str, &str)> = events
            .iter()
            .filter_map(|event| {
                let kind = event["type"].as_str()?.strip_prefix("tool_execution_")?;
                Some((kind, event["toolCallId"].as_str()?)).filter(|(kind, _)| *kind != "update")
            })
            .collect();
        let expected = if setting == json!({}) {
            vec![("start", "1"), ("start", "2")]
        } else {
            vec![("start", "1"), ("end", "1"), ("start", "2"), ("end", "2")]
        };
        assert_eq!(steps[..expected.len()], expected, "{setting}");
    }
}
