//! What each scope of `abort` stops, and what its receipt says.

use std::time::{Duration, Instant};

use agentd_ai::{BlockKind, BlockSeal, Delta};
use agentd_protocol::message::StopReason;
use agentd_session::{FeedLimits, Limits};
use serde_json::{Value, json};

use crate::fixture::{Fixture, Subscription, soon};

impl Fixture {
    /// Runs a prompt into calls of these ids.
    pub(crate) async fn run_into_calls(&mut self, calls: &[&str]) {
        self.prompt("go").await;
        self.answer_with(calls);
        for _ in calls {
            self.first.until_event("tool_execution_start").await;
        }
    }

    pub(crate) fn answer_with(&self, calls: &[&str]) {
        self.say(Delta::Started);
        for (index, id) in calls.iter().enumerate() {
            let kind = BlockKind::ToolCall { id: (*id).into(), name: "bash".into() };
            self.say(Delta::Open { index, kind });
            self.say(Delta::Seal { index, seal: BlockSeal::default() });
        }
        self.say(Delta::Done { stop_reason: StopReason::ToolUse, raw_stop_reason: None });
    }

    pub(crate) fn answer(&self, text: &str) {
        self.say(Delta::Started);
        self.say(Delta::Open { index: 0, kind: BlockKind::Text });
        self.say(Delta::Extend { index: 0, delta: text.into() });
        self.say(Delta::Seal { index: 0, seal: BlockSeal::default() });
        self.say(Delta::Done { stop_reason: StopReason::Stop, raw_stop_reason: None });
    }

    pub(crate) fn results(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let ends = self.first.events.iter().filter(|event| event["type"] == "message_end");
        let results = ends.map(|event| &event["message"]).filter(|message| message["role"] == "toolResult");
        results.map(|message| (text(&message["toolCallId"]), text(&message["content"][0]["text"]))).collect()
    }
}

fn tool(id: &str) -> Value {
    json!({"kind": "tool", "id": id, "name": "bash"})
}

#[tokio::test]
async fn tools_end_and_the_run_goes_on() {
    let mut fixture = Fixture::new().await;
    fixture.run_into_calls(&["one", "two", "three"]).await;
    fixture.end_call("two", "a result");
    fixture.first.until_event("tool_execution_end").await;

    let answer = fixture.call("stop", json!({"type": "abort", "scope": "tools"})).await;
    let data = json!({"ended": answer["data"]["ended"], "survives": [{"kind": "turn"}]});
    assert_eq!(answer["data"], data);
    let mut ended = answer["data"]["ended"].as_array().unwrap().clone();
    ended.sort_by_key(|work| work["id"].to_string());
    assert_eq!(ended, [tool("one"), tool("three")]);
    let stopped = "Operation aborted".to_owned();
    let results = [("one", stopped.clone()), ("two", "a result".into()), ("three", stopped.clone())];
    assert_eq!(fixture.results(), results.map(|(id, text)| (id.to_owned(), text)));

    // The model is asked again, and later calls are not touched.
    fixture.answer_with(&["four"]);
    fixture.end_call("four", "fine");
    fixture.answer("done");
    let settled = fixture.first.until_event("agent_settled").await;
    assert_eq!(settled["aborted"], false);
    assert_eq!(fixture.results()[3], ("four".to_owned(), "fine".to_owned()));
}

#[tokio::test]
async fn without_tools_there_is_nothing_to_end() {
    let mut fixture = Fixture::new().await;
    let stop = json!({"type": "abort", "scope": "tools"});
    let idle = fixture.call("idle", stop.clone()).await;
    assert_eq!(idle["data"], json!({"ended": [], "survives": []}));
    fixture.prompt("go").await;
    fixture.say(Delta::Started);
    let streaming = fixture.call("streaming", stop).await;
    assert_eq!(streaming["data"], json!({"ended": [], "survives": [{"kind": "turn"}]}));
    fixture.answer_with(&["one"]);
    fixture.end_call("one", "not touched");
    fixture.answer("done");
    fixture.first.until_event("agent_settled").await;
    assert_eq!(fixture.results(), [("one".to_owned(), "not touched".to_owned())]);
}

#[tokio::test]
async fn a_turn_ends_with_its_tools() {
    for scope in ["turn", "all"] {
        let mut fixture = Fixture::new().await;
        fixture.run_into_calls(&["one"]).await;
        let answer = fixture.call("stop", json!({"type": "abort", "scope": scope})).await;
        assert_eq!(answer["data"], json!({"ended": [{"kind": "turn"}, tool("one")], "survives": []}));
        assert_eq!(
            fixture.first.events.last().unwrap()["type"],
            "agent_settled",
            "answered when all is over"
        );
        assert_eq!(fixture.results(), [("one".to_owned(), "stopped by hand".to_owned())]);
        let again = fixture.call("again", json!({"type": "abort", "scope": scope})).await;
        assert_eq!(again["data"], json!({"ended": [], "survives": []}));
    }
}

#[tokio::test]
async fn without_a_scope_the_answer_is_bare() {
    let mut fixture = Fixture::new().await;
    fixture.run_into_calls(&["one"]).await;
    let answer = fixture.call("stop", json!({"type": "abort"})).await;
    assert_eq!(answer, json!({"id": "stop", "type": "response", "command": "abort", "success": true}));
    assert_eq!(fixture.first.events.last().unwrap()["aborted"], true);
}

#[tokio::test]
async fn the_users_commands_end_only_with_everything() {
    let mut fixture = Fixture::new().await;
    let left = fixture.call("left", json!({"type": "bash", "command": "sleep 600 >/dev/null 2>&1 &"})).await;
    assert_eq!(left["success"], true, "{left}");
    fixture.send("own", json!({"type": "bash", "command": "echo here; sleep 600"})).await;
    fixture.first.until_event("bash_execution_update").await;
    fixture.run_into_calls(&["one"]).await;

    let own = json!({"kind": "bash", "id": "own", "name": "echo here; sleep 600"});
    let background = json!({"kind": "background"});
    let turn = fixture.call("turn", json!({"type": "abort", "scope": "turn"})).await;
    let expected = json!({"ended": [{"kind": "turn"}, tool("one")], "survives": [own, background]});
    assert_eq!(turn["data"], expected);

    let all = fixture.call("all", json!({"type": "abort", "scope": "all"})).await;
    assert_eq!(all["data"], json!({"ended": [own, background], "survives": []}));
    // The session goes on, with processes too.
    let again = fixture.call("again", json!({"type": "bash", "command": "echo still here"})).await;
    assert_eq!(again["data"]["output"], "still here\n");
    soon("the end", fixture.session.close()).await;
}

#[tokio::test]
async fn a_call_that_does_not_end_survives_and_is_told() {
    for (scope, ended) in [
        (None, json!([{"kind": "turn"}, tool("one")])),
        (Some("turn"), json!([{"kind": "turn"}, tool("one")])),
        (Some("all"), json!([{"kind": "turn"}, tool("one")])),
    ] {
        let mut fixture = Fixture::new().await;
        fixture.run_into_calls(&["one", "deaf"]).await;
        let begun = Instant::now();
        let mut abort = json!({"type": "abort"});
        if let Some(scope) = scope {
            abort["scope"] = scope.into();
        }
        let answer = fixture.call("stop", abort.clone()).await;
        assert!(begun.elapsed() < Duration::from_secs(10), "it is not waited for");
        assert_eq!(answer["data"], json!({"ended": ended, "survives": [tool("deaf")]}), "{scope:?}");
        let texts: Vec<String> = fixture.results().into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["stopped by hand", "Operation aborted"]);

        // Its end is no event, and it is told no more once it is over.
        fixture.end_call("deaf", "late");
        loop {
            let again = fixture.call("again", json!({"type": "abort", "scope": "turn"})).await;
            if again["data"]["survives"] == json!([]) {
                break;
            }
        }
        assert_eq!(fixture.first.events.last().unwrap()["type"], "agent_settled");
        let bare = fixture.call("bare", json!({"type": "abort"})).await;
        assert_eq!(bare, json!({"id": "bare", "type": "response", "command": "abort", "success": true}));
        // The session takes the next prompt.
        fixture.prompt("on").await;
        fixture.answer("done");
        fixture.first.until_event("agent_settled").await;
    }
}

#[tokio::test]
async fn stopped_tools_that_do_not_end_are_no_longer_waited_for() {
    let mut fixture = Fixture::new().await;
    fixture.run_into_calls(&["deaf"]).await;
    let answer = fixture.call("stop", json!({"type": "abort", "scope": "tools"})).await;
    assert_eq!(answer["data"], json!({"ended": [], "survives": [{"kind": "turn"}, tool("deaf")]}));
    fixture.answer("done");
    assert_eq!(fixture.first.until_event("agent_settled").await["aborted"], false);
    // A session that is closed does not wait for it either.
    soon("the end", fixture.session.close()).await;
}

#[tokio::test]
async fn an_abort_needs_no_room() {
    let feed = FeedLimits { outbox_bytes: 8000, ..FeedLimits::default() };
    let mut fixture = Fixture::limited(Limits { feed, ..Limits::default() }).await;
    let mut other = Subscription::new(fixture.session.feed().attach());
    fixture.prompt("go").await;
    other.until_event("agent_start").await;
    drop(other);
    // From here on the only subscriber takes nothing.
    fixture.answer_with(&["one"]);
    let full = async {
        while fixture.session.feed().has_room() {
            fixture.report("one", &"x".repeat(200));
            tokio::task::yield_now().await;
        }
    };
    soon("a full log", full).await;
    fixture.send("stop", json!({"type": "abort"})).await;
    let settled = async {
        while fixture.session.summary().is_streaming {
            tokio::task::yield_now().await;
        }
    };
    soon("the end of the run", settled).await;
    let answer = fixture.first.until(|line| line["id"] == "stop").await;
    assert_eq!(answer["success"], true);
    assert_eq!(fixture.first.events.last().unwrap()["type"], "agent_settled", "nothing was left out");
}
