//! Questions about calls at a terminal: `agentctl prompt` and `agentctl attach`.

use agentd_e2e::{Home, MockServer, Reply, Service, binaries, ctl::Terminal, sse};
use serde_json::json;

use crate::{
    asking::{calling, calls, decisions, home, open},
    support::assert_says,
};

fn prompting(home: &Home) -> Terminal {
    Terminal::start(home, &binaries::agentctl(), &["prompt", "--model", "fake/fake", "Make it."])
}

#[test]
fn yes_runs_the_call_and_the_question_says_what_it_is() {
    let server = calling("mkdir sub && touch sub/made");
    let home = home(&server, &json!({ "preset": "workspace", "askTimeoutMs": 600_000 }));
    let mut terminal = prompting(&home);
    terminal.wait_for("Type a key and Enter.");
    terminal.press("what?\n");
    terminal.wait_for("m  No, with words to the model");
    assert!(!home.project().join("sub").exists());
    terminal.press("y\n");
    let done = terminal.finish();
    assert_eq!(done.code, 0, "{}", done.stdout);
    assert_says(
        &done.stdout,
        &[
            "? Allow this? (bash, 9 min to answer)",
            "$ mkdir sub && touch sub/made",
            "It runs:",
            "    touch sub/made",
            "Asked, since the preset workspace asks about running mkdir",
            "y  Yes, this once",
        ],
    );
    assert!(home.project().join("sub/made").exists());
    let found = decisions(&home);
    assert_eq!((&found[0]["by"], &found[0]["client"]), (&json!("user"), &json!("agentctl")));
}

#[test]
fn no_with_words_reaches_the_model_and_is_no_failure() {
    for keys in ["m Use a test.\n", "m\nUse a test.\n"] {
        let server = calling("touch made");
        let home = home(&server, &json!({ "preset": "workspace", "askTimeoutMs": 600_000 }));
        let mut terminal = prompting(&home);
        terminal.wait_for("Type a key and Enter.");
        terminal.press(keys);
        let done = terminal.finish();
        assert_eq!(done.code, 0, "{}", done.stdout);
        assert!(!home.project().join("made").exists());
        let told = server.requests()[1].body.to_string();
        assert_says(&told, &["Permission denied: the user said no. The user says: Use a test."]);
    }
}

#[test]
fn an_edit_is_a_coloured_diff_and_n_leaves_the_file() {
    let edits = json!({"path": "a.txt", "edits": [{"oldText": "two", "newText": "2"}]});
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("call_1", "edit", edits)])),
        Reply::stream(sse::answer("Done.")),
    ]);
    let home = home(&server, &json!({ "preset": "ask", "askTimeoutMs": 600_000 }));
    home.write("a.txt", "one\ntwo\n");
    let mut terminal = prompting(&home);
    terminal.wait_for("Type a key and Enter.");
    terminal.press("n\n");
    let done = terminal.finish();
    assert_eq!(done.code, 0, "{}", done.stdout);
    assert_says(&done.stdout, &["\u{1b}[31m-two\u{1b}[0m", "\u{1b}[32m+2\u{1b}[0m"]);
    assert_eq!(std::fs::read_to_string(home.project().join("a.txt")).unwrap(), "one\ntwo\n");
}

#[test]
fn a_question_that_another_client_answers_goes_away_and_says_so() {
    let server = calling("touch made");
    let home = home(&server, &json!({ "preset": "workspace", "askTimeoutMs": 600_000 }));
    let service = Service::start(&home, &[]);
    let mut editor = service.client();
    editor.done(json!({
        "type": "hello", "protocol": 1, "client": {"name": "editor"},
        "capabilities": {"sessions": true, "permissions": true},
    }));
    let id = open(&mut editor, &home, &[]);
    editor.send(&json!({"type": "prompt", "sessionId": id, "message": "Make it."}));
    let question = editor.event("extension_ui_request");
    // It was asked before this client came.
    let mut terminal = Terminal::start(&home, &binaries::agentctl(), &["attach", "--plain", &id]);
    terminal.wait_for("Type a key and Enter.");
    editor.done(json!({
        "type": "permission_response", "sessionId": id, "requestId": question["id"], "decision": "deny",
    }));
    terminal.wait_for("Answered by editor: denied.");
    terminal.wait_for("Denied by editor: bash");
    editor.event("agent_settled");
    terminal.press("\u{4}");
    assert_eq!(terminal.finish().code, 0);
    assert!(!home.project().join("made").exists());
}

#[test]
fn keys_from_before_a_question_answer_nothing() {
    let server = MockServer::start([
        calls(&["touch one"]),
        Reply::stream(sse::calls(&[("call_2", "bash", json!({ "command": "touch two" }))])),
        Reply::stream(sse::answer("Done.")),
    ]);
    let home = home(&server, &json!({ "preset": "workspace", "askTimeoutMs": 600_000 }));
    let mut terminal = prompting(&home);
    terminal.wait_for("$ touch one");
    terminal.wait_for("Type a key and Enter.");
    // The second line comes before the second question.
    terminal.press("y\ny\n");
    terminal.wait_for("$ touch two");
    terminal.wait_for("That was typed before this was on the screen; type it again.");
    assert!(!home.project().join("two").exists());
    terminal.press("n\n");
    let done = terminal.finish();
    assert_eq!(done.code, 0, "{}", done.stdout);
    assert!(home.project().join("one").exists() && !home.project().join("two").exists());
}

#[test]
fn the_end_of_the_input_does_not_wait_for_the_deadline() {
    let server = MockServer::start([
        calls(&["touch one"]),
        Reply::stream(sse::calls(&[("call_2", "bash", json!({ "command": "touch two" }))])),
        Reply::stream(sse::answer("Done.")),
    ]);
    let home = home(&server, &json!({ "preset": "workspace", "askTimeoutMs": 600_000 }));
    let mut terminal = prompting(&home);
    terminal.wait_for("Type a key and Enter.");
    terminal.press("\u{4}");
    let done = terminal.finish();
    // Nobody said no: the work may lack what was denied.
    assert_eq!(done.code, 6, "{}", done.stdout);
    assert_says(&done.stdout, &["The input has ended: that is a no.", "$ touch two"]);
    assert!(!home.project().join("one").exists() && !home.project().join("two").exists());
}

#[test]
fn nothing_hides_in_a_question() {
    let server = calling("touch 'safe\u{202e}exe' \u{1b}[2J");
    let home = home(&server, &json!({ "preset": "workspace", "askTimeoutMs": 600_000 }));
    let mut terminal = prompting(&home);
    terminal.wait_for("Type a key and Enter.");
    terminal.press("n\n");
    let done = terminal.finish();
    assert_says(&done.stdout, &["$ touch 'safe\\u{202e}exe' \\u{1b}[2J"]);
    assert!(!done.stdout.contains('\u{202e}') && !done.stdout.contains("\u{1b}[2J"), "{:?}", done.stdout);
}
