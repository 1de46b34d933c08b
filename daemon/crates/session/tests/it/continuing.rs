//! `continue`: a run without a new message, and what `get_state` and `get_messages` say in the middle of one.

use agentd_ai::{BlockKind, Delta, failure::Failure};
use agentd_protocol::command::{LookParams, SessionCommand};
use agentd_session::Reply;
use serde_json::{Value, json};

use crate::fixture::Fixture;

impl Fixture {
    async fn go_on(&mut self, id: &str) -> Value {
        self.call(id, json!({"type": "continue"})).await
    }

    async fn messages(&mut self) -> Vec<Value> {
        let answer = self.call("messages", json!({"type": "get_messages"})).await;
        answer["data"]["messages"].as_array().unwrap().clone()
    }

    /// What the state says to a client that said hello.
    async fn activity(&mut self) -> Value {
        let params = LookParams { introduced: true, ..LookParams::default() };
        let command = SessionCommand::GetState(params);
        let reply = Reply {
            subscriber: self.first.subscriber.id(),
            id: Some("state".into()),
            command: command.name(),
            environment: None,
            is_of_user: true,
            hears_results: false,
            memory: None,
        };
        assert!(self.session.send(command, reply).await);
        let state = self.first.until(|line| line["id"] == "state").await["data"].take();
        let field = |name: &str| state.get(name).cloned().unwrap_or_default();
        json!([field("pendingToolCalls"), field("hasStreamingMessage"), field("errorMessage")])
    }
}

fn texts(messages: &[Value]) -> Vec<(&str, &str)> {
    let spoken = messages.iter().filter(|message| message["role"] != "system");
    spoken
        .map(|message| {
            let content = message["content"][0]["text"].as_str().unwrap_or_default();
            (message["role"].as_str().unwrap_or_default(), content)
        })
        .collect()
}

#[tokio::test]
async fn it_is_refused_where_there_is_nothing_to_answer() {
    let mut fixture = Fixture::new().await;
    let empty = fixture.go_on("empty").await;
    assert_eq!(empty["error"], "Cannot continue: no messages in context", "{empty}");
    assert_eq!(empty["code"], "unsupported");
    assert!(empty["hint"].as_str().unwrap().contains("steer"), "{empty}");
    fixture.prompt("go").await;
    let busy = fixture.go_on("busy").await;
    assert_eq!(busy["code"], "busy", "{busy}");
    fixture.answer("done");
    fixture.first.until_event("agent_settled").await;
    let answered = fixture.go_on("answered").await;
    assert_eq!(answered["error"], "Cannot continue from message role: assistant");
}

#[tokio::test]
async fn what_waits_is_sent() {
    for kind in ["steer", "follow_up"] {
        let mut fixture = Fixture::new().await;
        // In an empty session as well as after an answer.
        for (text, answer) in [("first", "one"), ("second", "two")] {
            let queued = fixture.call("queued", json!({"type": kind, "message": text})).await;
            assert_eq!(queued["data"], json!({"disposition": "queued"}));
            let started = fixture.go_on("on").await;
            assert_eq!(started["data"], json!({"disposition": "started"}), "{started}");
            fixture.answer(answer);
            fixture.first.until_event("agent_settled").await;
        }
        let messages = fixture.messages().await;
        let expected = [("user", "first"), ("assistant", "one"), ("user", "second"), ("assistant", "two")];
        assert_eq!(texts(&messages), expected);
        assert_eq!(messages[0]["role"], "system", "the model was told of its tools first");
        assert_eq!(messages.iter().filter(|message| message["role"] == "system").count(), 1);
    }
}

#[tokio::test]
async fn it_goes_on_where_the_context_ends_with_the_user() {
    let mut fixture = Fixture::new().await;
    let own = fixture.call("own", json!({"type": "bash", "command": "echo own"})).await;
    assert_eq!(own["success"], true);
    let started = fixture.go_on("on").await;
    assert_eq!(started["data"], json!({"disposition": "started"}), "{started}");
    fixture.answer("I see.");
    fixture.first.until_event("agent_settled").await;
    assert_eq!(texts(&fixture.messages().await).last(), Some(&("assistant", "I see.")));
}

#[tokio::test]
async fn messages_show_the_answer_that_streams() {
    let mut fixture = Fixture::new().await;
    fixture.prompt("go").await;
    assert_eq!(texts(&fixture.messages().await), [("user", "go")]);
    fixture.say(Delta::Started);
    fixture.say(Delta::Open { index: 0, kind: BlockKind::Text });
    for (delta, so_far) in [("Half", "Half"), (" of it", "Half of it")] {
        fixture.say(Delta::Extend { index: 0, delta: delta.into() });
        fixture.first.until(|line| line["assistantMessageEvent"]["delta"] == delta).await;
        let messages = fixture.messages().await;
        assert_eq!(texts(&messages), [("user", "go"), ("assistant", so_far)]);
        assert_eq!(messages.last().unwrap()["stopReason"], "pending");
    }
    assert_eq!(fixture.activity().await, json!([[], true, null]));
    // A client that joined by a snapshot has the answer so far from that.
    let params = LookParams { names_sessions: true, ..LookParams::default() };
    let command = SessionCommand::GetMessages(params);
    let reply = Reply {
        subscriber: fixture.first.subscriber.id(),
        id: Some("joined".into()),
        command: command.name(),
        environment: None,
        is_of_user: true,
        hears_results: false,
        memory: None,
    };
    assert!(fixture.session.send(command, reply).await);
    let joined = fixture.first.until(|line| line["id"] == "joined").await;
    assert_eq!(texts(joined["data"]["messages"].as_array().unwrap()), [("user", "go")]);
    fixture.call("stop", json!({"type": "abort"})).await;
    let messages = fixture.messages().await;
    assert_eq!(texts(&messages), [("user", "go"), ("assistant", "Half of it")]);
    assert_eq!(messages.last().unwrap()["stopReason"], "aborted");
}

#[tokio::test]
async fn the_state_shows_calls_and_errors_to_those_who_know_of_them() {
    let mut fixture = Fixture::with("test-key", json!({"retry": {"enabled": false}})).await;
    fixture.run_into_calls(&["one", "two"]).await;
    assert_eq!(fixture.activity().await, json!([["one", "two"], false, null]));
    let plain = fixture.call("plain", json!({"type": "get_state"})).await;
    assert!(plain["data"].get("pendingToolCalls").is_none(), "{plain}");
    fixture.end_call("one", "fine");
    fixture.first.until_event("tool_execution_end").await;
    assert_eq!(fixture.activity().await, json!([["two"], false, null]));
    fixture.end_call("two", "fine");
    fixture.say(Delta::Started);
    fixture.say(Delta::Failed {
        failure: Failure::new(agentd_ai::failure::FailureKind::Fatal, "it broke"),
        raw_stop_reason: None,
    });
    fixture.first.until_event("agent_settled").await;
    assert_eq!(fixture.activity().await, json!([[], false, "it broke"]));
    // The text of the answer that failed is none, and not that of an older one.
    let last = fixture.call("last", json!({"type": "get_last_assistant_text"})).await;
    assert_eq!(last["data"], json!({}));
    fixture.prompt("again").await;
    assert_eq!(fixture.activity().await, json!([[], false, null]));
    fixture.answer("done");
    fixture.first.until_event("agent_settled").await;
    let last = fixture.call("last", json!({"type": "get_last_assistant_text"})).await;
    assert_eq!(last["data"], json!({"text": "done"}));
}

#[tokio::test]
async fn the_last_text_is_that_of_the_last_answer() {
    let mut fixture = Fixture::with("test-key", json!({"retry": {"enabled": false}})).await;
    fixture.prompt("go").await;
    fixture.answer("older");
    fixture.first.until_event("agent_settled").await;
    // An answer that was aborted before it said anything counts for nothing; one that failed does count.
    fixture.prompt("on").await;
    fixture.say(Delta::Started);
    fixture
        .first
        .until(|line| line["type"] == "message_start" && line["message"]["role"] == "assistant")
        .await;
    fixture.call("stop", json!({"type": "abort"})).await;
    let last = fixture.call("last", json!({"type": "get_last_assistant_text"})).await;
    assert_eq!(last["data"], json!({"text": "older"}));
    fixture.prompt("on").await;
    fixture.say(Delta::Failed {
        failure: Failure::new(agentd_ai::failure::FailureKind::Fatal, "it broke"),
        raw_stop_reason: None,
    });
    fixture.first.until_event("agent_settled").await;
    let last = fixture.call("last", json!({"type": "get_last_assistant_text"})).await;
    assert_eq!(last["data"], json!({}));
}
