//! Tools of clients, seen from the session.

use agentd_ai::{BlockKind, BlockSeal, Delta};
use agentd_protocol::{client_tools::ClientTool, message::StopReason};
use agentd_session::{ClientCalls, FeedItem, RegisterOutcome, Subscriber};
use serde_json::{Value, json};

use crate::fixture::{Fixture, soon};

/// The next line that is for this subscriber alone.
async fn addressed(subscriber: &Subscriber) -> Value {
    loop {
        let mut items = Vec::new();
        assert!(soon("a line", subscriber.next_items(&mut items)).await, "the session ended");
        let line = items.iter().find_map(|item| match item {
            FeedItem::Addressed { line } => Some(line),
            _ => None,
        });
        if let Some(line) = line {
            return serde_json::from_slice(line).unwrap();
        }
    }
}

fn tool(name: &str) -> ClientTool {
    ClientTool {
        name: name.into(),
        description: "Does it.".into(),
        parameters: json!({"type": "object"}),
        ..ClientTool::default()
    }
}

#[tokio::test]
async fn requests_go_where_their_connection_listens() {
    let mut fixture = Fixture::new().await;
    let (feed, calls) = (fixture.session.feed().clone(), ClientCalls::default());
    let (before, after) = (feed.attach(), feed.attach());
    let provider =
        fixture.session.clients().provide_tools(fixture.session.id(), before.id(), "one".into(), &calls);
    let registered =
        soon("an answer", fixture.session.register_tools(&provider, vec![tool("deploy")], None)).await;
    assert!(matches!(registered, RegisterOutcome::Done), "{registered:?}");
    assert_eq!(provider.names(), ["deploy"]);
    fixture.prompt("Go.").await;
    fixture.say(Delta::Started);
    fixture
        .say(Delta::Open { index: 0, kind: BlockKind::ToolCall { id: "c1".into(), name: "deploy".into() } });
    fixture.say(Delta::Extend { index: 0, delta: "{}".into() });
    fixture.say(Delta::Seal { index: 0, seal: BlockSeal::default() });
    fixture.say(Delta::Done { stop_reason: StopReason::ToolUse, raw_stop_reason: None });
    let request = addressed(&before).await;
    assert_eq!((&request["type"], &request["toolCallId"]), (&json!("tool_request"), &json!("c1")));
    // The connection follows the session anew: nothing of it is lost.
    provider.listen_as(after.id());
    fixture.send("a", json!({"type": "abort"})).await;
    let cancel = addressed(&after).await;
    assert_eq!((&cancel["type"], &cancel["requestId"]), (&json!("tool_cancel"), &request["requestId"]));
    // Who leaves takes the tools along.
    provider.leave();
    let tools = fixture.call("t", json!({"type": "get_tools"})).await;
    let names: Vec<&Value> =
        tools["data"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["bash", "task"]);
}
