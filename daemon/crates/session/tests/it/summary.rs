//! What lists say of a session, and who is told of changes.

use agentd_ai::{BlockKind, Delta};
use agentd_protocol::message::StopReason;
use serde_json::json;

use crate::fixture::{Fixture, soon};

#[tokio::test]
async fn a_summary_follows_the_session_and_tells_of_work_and_name_only() {
    let mut fixture = Fixture::new().await;
    let mut changes = fixture.session.changes();
    let before = fixture.session.summary();
    assert_eq!((before.name, before.is_streaming, before.message_count), (None, false, 0));
    assert!(before.modified_ms > 0);

    fixture.prompt("go").await;
    soon("a change", changes.changed()).await.unwrap();
    assert!(changes.borrow_and_update().is_streaming);

    fixture.say(Delta::Started);
    fixture.say(Delta::Open { index: 0, kind: BlockKind::Text });
    for _ in 0..100 {
        fixture.say(Delta::Extend { index: 0, delta: "x".into() });
    }
    fixture.first.until_event("message_update").await;
    let running = fixture.session.summary();
    assert_eq!(running.message_count, 2, "the system prompt and the prompt");
    assert!(!changes.has_changed().unwrap(), "messages and deltas are no news");

    fixture.say(Delta::Done { stop_reason: StopReason::Stop, raw_stop_reason: None });
    fixture.first.until_event("agent_settled").await;
    let settled = fixture.session.summary();
    assert_eq!((settled.is_streaming, settled.message_count), (false, 3));
    assert!(settled.modified_ms >= running.modified_ms);
    soon("a change", changes.changed()).await.unwrap();
    assert!(!changes.borrow_and_update().is_streaming);

    fixture.call("name", json!({"type": "set_session_name", "name": " mine "})).await;
    assert_eq!(fixture.session.summary().name.as_deref(), Some("mine"));
    soon("a change", changes.changed()).await.unwrap();
    assert_eq!(changes.borrow_and_update().name.as_deref(), Some("mine"));

    soon("the end", fixture.session.close()).await;
    soon("the end of the changes", async { while changes.changed().await.is_ok() {} }).await;
}
