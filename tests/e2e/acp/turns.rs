//! Turns: text and thoughts in order, what a prompt is made of, cancelling, prompts that wait, failures.

use agentd_e2e::{Gate, Home, MockServer, Reply, sse};
use serde_json::json;

use super::editor::{Editor, able};
use crate::extensions::{extension, says_to_the_session};

/// PROMPT-001: the text comes in order, in one message, before the answer; tokens are told.
#[test]
fn an_answer_streams_before_its_end_is_told() {
    let body =
        sse::text("One ") + &sse::text("\"two\"\n") + &sse::text("drei é.") + &sse::end("stop", (100, 0, 5));
    let server = MockServer::start([Reply::stream_in_pieces(body, 7)]);
    let home = Home::with_model(&server);
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let session = editor.new_session(&home);
    assert_eq!(editor.turn(&session, "Count."), "end_turn");
    assert_eq!(editor.text(), "One \"two\"\ndrei é.");
    let ids: std::collections::BTreeSet<&str> = editor
        .updates("agent_message_chunk")
        .into_iter()
        .map(|chunk| chunk["messageId"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), 1);
    let usage = editor.updates("usage_update");
    assert!(usage.last().unwrap()["used"].as_u64().unwrap() >= 105, "{usage:?}");
    assert!(editor.seen.last().unwrap()["result"]["stopReason"].is_string());
    assert_eq!(server.requests()[0].messages().last().unwrap()["content"], "Count.");
}

/// PROMPT-002: every kind of content that is advertised reaches the model.
#[test]
fn a_prompt_is_made_of_text_links_files_and_images() {
    const PIXEL: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
    let server = MockServer::start([Reply::stream(sse::answer("Seen."))]);
    let home = Home::with_model(&server);
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let session = editor.new_session(&home);
    let file = format!("file://{}/src/a.rs", home.project().display());
    let id = editor.ask(
        "session/prompt",
        json!({"sessionId": session, "prompt": [
            {"type": "text", "text": "Look at "},
            {"type": "resource_link", "uri": file, "name": "a.rs"},
            {"type": "resource", "resource": {"uri": "file:///elsewhere/b.txt", "mimeType": "text/plain", "text": "bee"}},
            {"type": "image", "mimeType": "image/png", "data": PIXEL},
        ]}),
    );
    assert_eq!(editor.reply(id)["result"]["stopReason"], "end_turn");
    let content = server.requests()[0].messages().last().unwrap()["content"].clone();
    let text = content[0]["text"].as_str().unwrap();
    assert_eq!(text, "Look at \n[Context] src/a.rs\n[Embedded Context] /elsewhere/b.txt (text/plain)\nbee\n");
    assert!(content.to_string().contains("image"), "{content}");
}

/// CANCEL-001, CANCEL-002: what is cancelled is answered `cancelled` after the last update, and the session goes on.
#[test]
fn a_cancelled_turn_is_answered_so_and_the_session_goes_on() {
    let server =
        MockServer::start([Reply::stream(sse::text("I begin")).hang(), Reply::stream(sse::answer("Again."))]);
    let home = Home::with_model(&server);
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let session = editor.new_session(&home);
    let id = editor.prompt(&session, "Long work.");
    editor.update("agent_message_chunk");
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.reply(id)["result"]["stopReason"], "cancelled");
    assert_eq!(editor.turn(&session, "Once more."), "end_turn");
    assert!(editor.text().ends_with("Again."));
}

#[test]
fn cancelling_kills_the_command_and_fails_its_call() {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("call_1", "bash", json!({"command": "echo up; sleep 1000"}))])),
        Reply::stream(sse::answer("Done.")),
    ]);
    let home = Home::with_model(&server);
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let session = editor.new_session(&home);
    let id = editor.prompt(&session, "Sleep.");
    editor.until("output", |message| message.to_string().contains("up\\n"));
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.reply(id)["result"]["stopReason"], "cancelled");
    let last = editor.updates("tool_call_update").pop().unwrap().clone();
    assert_eq!(last["status"], "failed", "{last}");
    // A cancel that comes too late changes nothing.
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.turn(&session, "Go on."), "end_turn");
}

#[test]
fn prompts_wait_for_each_other_and_each_has_its_own_answer() {
    let gate = Gate::new();
    let server = MockServer::start([
        Reply::stream(sse::text("First")).gate(&gate).then(sse::end("stop", (1, 0, 1))),
        Reply::stream(sse::text("Second") + &sse::end("length", (1, 0, 1))),
    ]);
    let home = Home::with_model(&server);
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let session = editor.new_session(&home);
    let (first, second) = (editor.prompt(&session, "a"), editor.prompt(&session, "b"));
    editor.update("agent_message_chunk");
    gate.open();
    assert_eq!(editor.reply(first)["result"]["stopReason"], "end_turn");
    assert_eq!(editor.text(), "First");
    assert_eq!(editor.reply(second)["result"]["stopReason"], "max_tokens");
    assert_eq!(editor.text(), "FirstSecond");
}

/// A command of an extension is a turn that ends with it, and with the run that it begins.
#[test]
fn a_command_of_an_extension_is_a_turn() {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    extension(&home, "test", &says_to_the_session("go", "Go on."));
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let session = editor.new_session(&home);
    server.push(Reply::stream(sse::answer("Gone on.")));
    assert_eq!(editor.turn(&session, "/go"), "end_turn");
    assert_eq!(editor.text(), "Gone on.", "the run is over, too");
    assert_eq!(editor.turn(&session, "/nothing"), "end_turn");
    server.push(Reply::stream(sse::answer(" Again.")));
    assert_eq!(editor.turn(&session, "Again."), "end_turn");
    assert_eq!(editor.text(), "Gone on. Again.");
}

#[test]
fn a_cancel_ends_the_prompts_that_wait_too() {
    let server = MockServer::start([Reply::stream(sse::text("I begin")).hang()]);
    let home = Home::with_model(&server);
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let session = editor.new_session(&home);
    let asked = ["a", "b", "c"].map(|text| editor.prompt(&session, text));
    editor.update("agent_message_chunk");
    // One of those that wait is cancelled alone.
    editor.notify("$/cancel_request", json!({"requestId": asked[1]}));
    assert_eq!(editor.reply(asked[1])["result"]["stopReason"], "cancelled");
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.reply(asked[2])["result"]["stopReason"], "cancelled");
    assert_eq!(editor.reply(asked[0])["result"]["stopReason"], "cancelled");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn the_request_of_a_turn_can_be_cancelled_by_its_id() {
    let server = MockServer::start([Reply::stream(sse::text("I begin")).hang()]);
    let home = Home::with_model(&server);
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let session = editor.new_session(&home);
    let id = editor.prompt(&session, "a");
    editor.update("agent_message_chunk");
    editor.notify("$/cancel_request", json!({"requestId": id}));
    assert_eq!(editor.reply(id)["result"]["stopReason"], "cancelled");
}

#[test]
fn failures_are_errors_and_the_session_goes_on() {
    let server = MockServer::start([
        Reply::status(400, "application/json", r#"{"error":{"message":"no such thing"}}"#),
        Reply::stream(sse::answer("Fine.")),
    ]);
    let home = Home::with_model(&server);
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let session = editor.new_session(&home);
    let id = editor.prompt(&session, "a");
    let error = editor.reply(id)["error"].clone();
    assert_eq!(error["code"], -32603);
    assert!(error["message"].as_str().unwrap().contains("no such thing"), "{error}");
    assert_eq!(error["data"]["code"], "model_failed");
    assert_eq!(editor.turn(&session, "b"), "end_turn");
}

#[test]
fn a_retry_is_a_notice_and_its_first_half_is_another_message() {
    let server = MockServer::start([
        Reply::status(529, "application/json", r#"{"error":{"message":"Overloaded"}}"#),
        Reply::stream(sse::answer("Fine.")),
    ]);
    let home = Home::with_model(&server);
    home.settings(&json!({"retry": {"baseDelayMs": 1}}));
    let mut editor = Editor::ready(&home, &[], &able());
    let session = editor.new_session(&home);
    assert_eq!(editor.turn(&session, "a"), "end_turn");
    assert!(
        editor
            .updates("notice")
            .iter()
            .any(|notice| notice["title"].as_str().unwrap().contains("Asking again"))
    );
}

#[test]
fn the_end_of_the_input_ends_what_runs_within_two_seconds() {
    let server = MockServer::start([Reply::stream(sse::calls(&[(
        "call_1",
        "bash",
        json!({"command": "echo up; trap '' TERM; sleep 1000"}),
    )]))]);
    let home = Home::with_model(&server);
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let session = editor.new_session(&home);
    let id = editor.prompt(&session, "Sleep.");
    editor.until("output", |message| message.to_string().contains("up\\n"));
    let (rest, took, status) = editor.close();
    assert!(took.as_millis() < 2000 && status.success(), "{took:?} {status}");
    let reply = rest.iter().find(|message| message["id"] == id).cloned();
    assert_eq!(reply.map(|reply| reply["result"]["stopReason"].clone()), Some(json!("cancelled")));
}

/// Requests that came before the end of the input are answered.
#[test]
fn requests_from_a_pipe_are_answered_before_the_end() {
    let home = Home::new();
    let mut editor = Editor::start(&home, &["--demo"]);
    let first = editor.ask("initialize", json!({"protocolVersion": 1}));
    let second = editor.ask("session/new", json!({"cwd": home.project(), "mcpServers": []}));
    let (rest, _, _) = editor.close();
    for id in [first, second] {
        assert!(rest.iter().any(|message| message["id"] == id && message["result"].is_object()), "{rest:#?}");
    }
}
