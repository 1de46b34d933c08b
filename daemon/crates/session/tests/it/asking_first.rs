//! Hooks are asked before calls of the model and before commands of the user, and hold up no abort.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use agentd_agent::hooks::{Action, HookFuture, HookGate, HookVerdict, Hooks, Requester};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::fixture::{Fixture, soon};

/// Lets everything pass but `rm`, thinks for ever about `sleep`, and remembers what it was asked.
#[derive(Default)]
struct Guard {
    asked: Mutex<Vec<(bool, String, Value, PathBuf)>>,
    thinks: Notify,
}

impl Hooks for Guard {
    fn before<'a>(&'a self, action: &'a Action<'a>, _: &'a CancellationToken) -> HookFuture<'a, HookVerdict> {
        let asked = (
            action.by == Requester::User,
            action.tool.to_owned(),
            action.arguments.clone(),
            action.cwd.to_owned(),
        );
        self.asked.lock().unwrap().push(asked);
        Box::pin(async move {
            match action.arguments["command"].as_str() {
                Some(command) if command.starts_with("rm ") => Ok(HookVerdict::Block {
                    reason: Some("Nothing is removed here.".into()),
                    terminate: false,
                }),
                Some(command) if command.starts_with("sleep ") => {
                    self.thinks.notify_one();
                    std::future::pending().await
                }
                _ => Ok(HookVerdict::Run),
            }
        })
    }
}

async fn guarded() -> (Fixture, Arc<Guard>) {
    let guard = Arc::new(Guard::default());
    (Fixture::gated(HookGate::new(Arc::clone(&guard) as Arc<dyn Hooks>)).await, guard)
}

fn bash(command: &str) -> Value {
    json!({"type": "bash", "command": command})
}

#[tokio::test]
async fn commands_of_the_user_are_asked_about() {
    let (mut fixture, guard) = guarded().await;
    let ran = fixture.call("ran", bash("echo hello")).await;
    assert_eq!(ran["data"]["output"], "hello\n", "{ran}");
    let file = fixture.path("kept");
    std::fs::write(&file, "").unwrap();
    let command = format!("rm {}", file.display());
    let blocked = fixture.call("blocked", bash(&command)).await;
    let expected = json!({
        "id": "blocked", "type": "response", "command": "bash", "success": false,
        "error": "Nothing is removed here.", "code": "forbidden",
    });
    assert_eq!(blocked, expected);
    assert!(file.exists());
    let asked = guard.asked.lock().unwrap();
    let cwd = fixture.options.cwd.clone();
    let about = |command: &str| (true, "bash".to_owned(), json!({"command": command}), cwd.clone());
    assert_eq!(*asked, [about("echo hello"), about(&command)]);
}

#[tokio::test]
async fn a_command_that_is_thought_about_can_be_aborted() {
    let (mut fixture, guard) = guarded().await;
    for stop in [json!({"type": "abort_bash"}), json!({"type": "abort", "scope": "all"})] {
        let file = fixture.path("touched");
        fixture.send("own", bash(&format!("sleep 0; touch {}", file.display()))).await;
        soon("the question", guard.thinks.notified()).await;
        fixture.send("stop", stop).await;
        let answer = fixture.first.until(|line| line["id"] == "own").await;
        assert_eq!(answer["data"], json!({"output": "", "cancelled": true, "truncated": false}));
        assert!(!file.exists(), "it never started");
    }
    // Both are in the transcript, as commands that were cancelled.
    let messages = fixture.call("messages", json!({"type": "get_messages"})).await;
    let messages = messages["data"]["messages"].as_array().unwrap().clone();
    assert_eq!(messages.iter().filter(|message| message["cancelled"] == true).count(), 2, "{messages:?}");
    soon("the end", fixture.session.close()).await;
}

#[tokio::test]
async fn calls_of_the_model_pass_the_same_gate() {
    let (mut fixture, guard) = guarded().await;
    fixture.end_call("one", "ran");
    fixture.run_into_calls(&["one"]).await;
    fixture.answer("done");
    fixture.first.until_event("agent_settled").await;
    assert_eq!(fixture.results(), [("one".to_owned(), "ran".to_owned())]);
    let asked = guard.asked.lock().unwrap();
    assert_eq!(*asked, [(false, "bash".to_owned(), json!({}), fixture.options.cwd.clone())]);
}
