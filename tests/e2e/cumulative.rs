//! Cumulative updates: what clients of the reference before 0.84 expect, over every way in.

use std::collections::HashMap;

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, Service, sse};
use serde_json::{Value, json};

use crate::support::{answers, prompt};

/// An answer with thinking, text and a tool call, in pieces.
fn call() -> String {
    sse::delta(json!({"reasoning_content": "Let me "}))
        + &sse::delta(json!({"reasoning_content": "see.\n"}))
        + &sse::text("Running \"it\"")
        + &sse::text(".\u{2028}")
        + &sse::call_start(0, "call_1", "bash")
        + &sse::call_arguments(0, "{\"command\": \"echo ")
        + &sse::call_arguments(0, "hi\", \"timeout\": 1")
        + &sse::call_arguments(0, "0}")
        + &sse::end("tool_calls", (100, 0, 20))
}

fn replies() -> [Reply; 2] {
    [
        Reply::stream(call()),
        Reply::stream(sse::text("It ") + &sse::text("worked.") + &sse::end("stop", (5, 0, 2))),
    ]
}

/// Checks every line of a run, and that both forms of the answer are what the deltas add up to.
fn check(lines: &[Value]) {
    let mut texts: HashMap<u64, String> = HashMap::new();
    let mut updates = 0;
    for line in lines {
        assert_ne!(line["message"]["role"], "system", "{line}");
        assert_ne!(line["message"]["stopReason"], "pending", "{line}");
        for message in line["messages"].as_array().into_iter().flatten() {
            assert_ne!(message["role"], "system", "{line}");
        }
        if line["type"] == "message_start" {
            texts.clear();
        }
        if line["type"] != "message_update" {
            continue;
        }
        updates += 1;
        let event = &line["assistantMessageEvent"];
        assert_eq!(line["message"], event["partial"]);
        assert_eq!(
            (&line["message"]["role"], &line["message"]["stopReason"]),
            (&json!("assistant"), &json!("stop"))
        );
        assert_eq!(line["message"]["usage"], line["usage"]);
        let index = event["contentIndex"].as_u64().expect("an index");
        texts.entry(index).or_default().push_str(event["delta"].as_str().unwrap_or_default());
        let content = line["message"]["content"].as_array().expect("a list");
        assert_eq!(content.len(), texts.len());
        for (at, block) in content.iter().enumerate() {
            let text = &texts[&(at as u64)];
            match block["type"].as_str().expect("a type") {
                "toolCall" => assert!(block["arguments"].is_object()),
                kind => assert_eq!(block[kind], json!(text)),
            }
        }
        if event["type"] == "toolcall_end" {
            assert_eq!(content[usize::try_from(index).expect("small")], event["toolCall"]);
        }
    }
    assert!(updates > 10, "{updates} updates");
}

/// What arguments were as they came.
fn commands(lines: &[Value]) -> Vec<Value> {
    let deltas = lines.iter().filter(|line| line["assistantMessageEvent"]["type"] == "toolcall_delta");
    let mut commands: Vec<Value> =
        deltas.map(|line| line["message"]["content"][2]["arguments"].clone()).collect();
    commands.dedup();
    commands
}

/// The same over the private wire, the bridge, and the socket.
#[test]
fn every_update_carries_the_answer_so_far() {
    let wanted = [
        json!({}),
        json!({"command": "echo "}),
        json!({"command": "echo hi", "timeout": 1}),
        json!({"command": "echo hi", "timeout": 10}),
    ];
    for shared in [false, true] {
        let server = MockServer::start(replies());
        let home = Home::with_model(&server);
        let service = shared.then(|| Service::start(&home, &[]));
        let args = ["--cumulative-updates", "--no-session"];
        let mut daemon =
            if shared { Daemon::start_shared(&home, &args) } else { Daemon::start(&home, &args) };
        let lines = daemon.prompt("Go");
        check(&lines);
        assert_eq!(commands(&lines)[..], wanted);
        let messages = daemon.done(json!({"type": "get_messages"}))["messages"].clone();
        let roles: Vec<&str> =
            messages.as_array().expect("a list").iter().filter_map(|it| it["role"].as_str()).collect();
        assert_eq!(roles, ["user", "assistant", "toolResult", "assistant"]);
        assert_eq!(daemon.close().status.code(), Some(0));
        drop(service);
    }
    let server = MockServer::start(replies());
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    let hello =
        json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true, "cumulative": true}});
    let known = client.done(hello)["capabilities"].clone();
    assert!(known.as_array().expect("a list").contains(&json!("cumulative")));
    client.done(json!({"type": "open_session", "cwd": home.project()}));
    client.send(&prompt("Go"));
    let lines = client.settled();
    check(&lines);
    let update = lines.iter().find(|line| line["type"] == "message_update").expect("an update");
    assert!(update["seq"].is_u64() && update["sessionId"].is_string());
}

/// The session is the same for everyone: the form is each connection's own.
#[test]
fn joining_in_the_middle_goes_on_from_there() {
    let gate = Gate::new();
    let server = MockServer::start([Reply::stream(sse::text("First, "))
        .gate(&gate)
        .then(sse::text("second.") + &sse::end("stop", (1, 0, 1)))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut plain = service.client();
    let opened = plain.done(json!({"type": "open_session", "cwd": home.project()}));
    plain.send(&prompt("Go"));
    plain.until("a delta", |line| line["assistantMessageEvent"]["type"] == "text_delta");
    let mut late = service.client();
    late.done(
        json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true, "cumulative": true}}),
    );
    // Whatever it has already: updates alone would not say what came before them.
    let since = json!({"epoch": opened["epoch"], "seq": 1});
    let attached =
        late.done(json!({"type": "attach_session", "sessionId": opened["sessionId"], "since": since}));
    assert_eq!(attached["replayed"], false);
    gate.open();
    let update = late.until("a delta", |line| line["assistantMessageEvent"]["type"] == "text_delta");
    assert_eq!(update["message"]["content"], json!([{"type": "text", "text": "First, second."}]));
    assert_eq!(update["assistantMessageEvent"]["partial"], update["message"]);
    let (theirs, ours) = (plain.settled(), late.settled());
    assert!(theirs.iter().all(|line| line["type"] != "message_update" || line.get("message").is_none()));
    assert_eq!(answers(&theirs).last(), answers(&ours).last());
}
