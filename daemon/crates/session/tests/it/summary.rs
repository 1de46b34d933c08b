//! What lists say of a session, and who is told of changes.

use agentd_ai::{BlockKind, Delta};
use agentd_protocol::message::StopReason;
use serde_json::json;

use crate::fixture::{Fixture, soon};

#[tokio::test]
async fn a_summary_follows_the_session_and_only_work_and_name_are_news() {
    let mut fixture = Fixture::new().await;
    let before = fixture.session.summary();
    assert_eq!((before.name, before.is_streaming, before.message_count), (None, false, 0));
    assert!(before.modified_ms > 0 && before.created_ms == before.modified_ms);
    assert_eq!((&*before.first_message, fixture.news.changes()), ("", 0));

    fixture.prompt(&"ä".repeat(300)).await;
    assert_eq!(fixture.news.changes(), 1);
    fixture.say(Delta::Started);
    fixture.say(Delta::Open { index: 0, kind: BlockKind::Text });
    for _ in 0..100 {
        fixture.say(Delta::Extend { index: 0, delta: "x".into() });
    }
    fixture.first.until_event("message_update").await;
    let running = fixture.session.summary();
    assert_eq!((running.is_streaming, running.message_count), (true, 2), "the system prompt and the prompt");
    assert_eq!(running.first_message, "ä".repeat(200));
    assert_eq!(fixture.news.changes(), 0, "messages and deltas are no news");

    fixture.say(Delta::Done { stop_reason: StopReason::Stop, raw_stop_reason: None });
    fixture.first.until_event("agent_settled").await;
    let settled = fixture.session.summary();
    assert_eq!((settled.is_streaming, settled.message_count, settled.turns), (false, 3, 1));
    assert!(settled.model.is_some() && running.turns == 0);
    assert!(settled.modified_ms >= running.modified_ms);
    assert_eq!(fixture.news.changes(), 1);

    fixture.call("name", json!({"type": "set_session_name", "name": " mine "})).await;
    assert_eq!(fixture.session.summary().name.as_deref(), Some("mine"));
    assert_eq!(fixture.news.changes(), 1);
    soon("the end", fixture.session.close()).await;
}
