//! Leaving memory and coming back.

use agentd_ai::{BlockKind, Delta};
use agentd_protocol::message::StopReason;
use agentd_session::{Unloaded, reload};
use serde_json::{Value, json};

use crate::fixture::{Fixture, soon};

impl Fixture {
    async fn run_to_its_end(&mut self, text: &str) {
        self.say(Delta::Started);
        self.say(Delta::Open { index: 0, kind: BlockKind::Text });
        self.say(Delta::Extend { index: 0, delta: text.into() });
        self.say(Delta::Done { stop_reason: StopReason::Stop, raw_stop_reason: None });
        self.first.until_event("agent_settled").await;
    }

    async fn unload(&self) -> Option<Unloaded> {
        soon("unload", self.session.unload()).await
    }

    async fn wake(&mut self, unloaded: Unloaded) {
        let (services, options, clients) =
            (self.services.clone(), self.options.clone(), self.session.clients().clone());
        self.session = reload(services, options, unloaded, clients).await.unwrap();
    }

    /// What clients see of it.
    async fn look(&mut self) -> [Value; 3] {
        let state = self.call("s", json!({"type": "get_state"})).await;
        let entries = self.call("e", json!({"type": "get_entries"})).await;
        let messages = self.call("m", json!({"type": "get_messages"})).await;
        [state, entries, messages]
    }
}

#[tokio::test]
async fn a_session_comes_back_as_it_was_and_goes_on_counting() {
    let mut fixture = Fixture::new().await;
    fixture.prompt("one").await;
    fixture.run_to_its_end("first").await;
    fixture.call("name", json!({"type": "set_session_name", "name": "mine"})).await;
    let before = (fixture.look().await, fixture.session.summary(), fixture.session.feed().last_seq());

    assert_eq!(fixture.tools_in_memory(), 1);
    let unloaded = fixture.unload().await.expect("a session that may be unloaded");
    assert_eq!(
        fixture.tools_in_memory(),
        0,
        "what clients leave behind outlives the session, its own tools do not"
    );
    assert!(fixture.session.has_ended());
    // Nobody has the file now.
    std::fs::File::open(unloaded.file()).unwrap().try_lock().unwrap();
    fixture.wake(unloaded).await;
    assert_eq!(fixture.tools_in_memory(), 1);
    let after = (fixture.look().await, fixture.session.summary(), fixture.session.feed().last_seq());
    assert_eq!(after, before);

    fixture.prompt("two").await;
    fixture.run_to_its_end("second").await;
    let kinds: Vec<_> = fixture.first.events.iter().map(|event| event["type"].clone()).collect();
    assert!(!kinds.contains(&json!("session_closed")), "{kinds:?}");
    let feed = fixture.session.feed().clone();
    soon("the end", fixture.session.close()).await;
    let (seq, heard) = (feed.last_seq(), fixture.first.read_out().await.len() as u64);
    assert_eq!(seq, heard, "the subscriber has heard everything, from before and after");
}

#[tokio::test]
async fn a_session_without_a_file_keeps_its_entries() {
    let mut fixture = Fixture::new().await;
    fixture.call("name", json!({"type": "set_session_name", "name": "unwritten"})).await;
    fixture.call("level", json!({"type": "set_thinking_level", "level": "off"})).await;
    let before = fixture.look().await;
    let unloaded = fixture.unload().await.expect("a session that may be unloaded");
    assert!(!unloaded.file().exists());
    fixture.wake(unloaded.clone()).await;
    assert_eq!(fixture.look().await, before);
    // Also when it was unloaded twice; its file has all of it once there is one.
    let again = fixture.unload().await.expect("a session that may be unloaded");
    assert_eq!(again, unloaded);
    fixture.wake(again).await;
    fixture.prompt("go").await;
    fixture.run_to_its_end("gone").await;
    let text = std::fs::read_to_string(unloaded.file()).unwrap();
    assert!(text.contains("unwritten") && text.contains("gone"), "{text}");
}

#[tokio::test]
async fn a_session_that_works_or_holds_messages_stays() {
    let mut fixture = Fixture::new().await;
    fixture.prompt("go").await;
    fixture.call("q", json!({"type": "follow_up", "message": "later"})).await;
    assert_eq!(fixture.unload().await, None);
    fixture.say(Delta::Started);
    fixture.call("a", json!({"type": "abort"})).await;
    assert_eq!(fixture.unload().await, None, "a message waits");
    fixture.call("c", json!({"type": "clear_queue"})).await;
    assert!(fixture.unload().await.is_some());
}

#[tokio::test]
async fn a_session_whose_file_is_gone_does_not_come_back_empty() {
    let mut fixture = Fixture::new().await;
    fixture.prompt("one").await;
    fixture.run_to_its_end("first").await;
    let unloaded = fixture.unload().await.expect("a session that may be unloaded");
    let file = unloaded.file().to_owned();
    std::fs::remove_file(&file).unwrap();
    let clients = fixture.session.clients().clone();
    let gone = reload(fixture.services.clone(), fixture.options.clone(), unloaded, clients).await;
    let error = gone.err().expect("nothing to come back from").to_string();
    assert_eq!(error, format!("the session's file is gone: {}", file.display()));
    assert!(!file.exists());
}
