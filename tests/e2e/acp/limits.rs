//! What ends or shortens the work on a prompt: budgets, and compaction.

use agentd_e2e::{Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use super::editor::{Editor, able};
use crate::support::{answer_to_tokens, small_window_home};

/// An answer with one call of `ls`, which takes 1000 tokens.
fn one_more_call() -> Reply {
    Reply::stream(
        sse::call_start(0, "call_1", "ls")
            + &sse::call_arguments(0, "{}")
            + &sse::end("tool_calls", (900, 0, 100)),
    )
}

#[test]
fn budgets_of_turns_and_tokens_are_stop_reasons_and_others_are_errors() {
    for (flags, expected) in [
        (["--max-turns", "2"], Some("max_turn_requests")),
        (["--max-tokens", "1500"], Some("max_tokens")),
        (["--max-tool-calls", "1"], None),
    ] {
        let server = MockServer::always(one_more_call());
        let home = Home::with_model(&server);
        let mut editor = Editor::ready(&home, &[&["--tools", "ls"], &flags[..]].concat(), &able());
        let session = editor.new_session(&home);
        let id = editor.prompt(&session, "Go on.");
        let reply = editor.reply(id);
        match expected {
            Some(reason) => assert_eq!(reply["result"]["stopReason"], reason, "{flags:?}: {reply}"),
            None => {
                assert_eq!(reply["error"]["data"]["code"], "limit_reached", "{flags:?}: {reply}");
                assert!(reply["error"]["message"].as_str().unwrap().contains("Budget reached"), "{reply}");
            }
        }
    }
}

fn compactions(editor: &Editor) -> Vec<&Value> {
    editor.updates("compaction_update")
}

#[test]
fn a_compaction_is_told_to_editors_that_show_it() {
    for shows in [true, false] {
        let server = MockServer::start([
            answer_to_tokens("One!", 900),
            answer_to_tokens("The summary.", 1),
            answer_to_tokens("Two!", 10),
        ]);
        let home = small_window_home(&server);
        let capabilities = if shows { able() } else { json!({}) };
        let mut editor = Editor::ready(&home, &[], &capabilities);
        let session = editor.new_session(&home);
        assert_eq!(editor.turn(&session, "Hello?"), "end_turn");
        assert_eq!(editor.turn(&session, "And?"), "end_turn");
        let told = compactions(&editor);
        if !shows {
            assert!(told.is_empty(), "{told:?}");
            continue;
        }
        let [began, ended] = &told[..] else { panic!("{told:?}") };
        assert_eq!((&began["status"], &began["summary"]), (&json!("in_progress"), &Value::Null));
        assert_eq!((&ended["status"], &ended["compactionId"]), (&json!("completed"), &began["compactionId"]));
        assert!(ended["summary"][0]["text"].as_str().unwrap().contains("The summary."), "{ended}");
        assert_eq!(editor.text(), "One!Two!", "a summary is no answer");
    }
}

#[test]
fn a_compaction_that_fails_says_why() {
    let refusal = || Reply::status(400, "application/json", r#"{"error":{"message":"no summary today"}}"#);
    let server = MockServer::start([answer_to_tokens("One!", 900), refusal()]);
    let home = small_window_home(&server);
    let mut editor = Editor::ready(&home, &[], &able());
    let session = editor.new_session(&home);
    assert_eq!(editor.turn(&session, "Hello?"), "end_turn");
    let ended = compactions(&editor).pop().unwrap().clone();
    assert_eq!(ended["status"], "failed", "{ended}");
    assert!(ended["error"].as_str().unwrap().contains("no summary today"), "{ended}");
}
