//! Recovery from a context that a model did not take.

use agentd_e2e::{Daemon, MockServer, Reply, sse};
use serde_json::{Value, json};

use super::{answer, frame, home, home_with, of_kind, too_long};
use crate::support::{answers, records, text};

/// What a prompt in a new session comes to.
fn run(server: &MockServer) -> Vec<Value> {
    let home = home(server);
    Daemon::start(&home, &[]).prompt("AAAA")
}

#[test]
fn what_is_too_long_is_compacted_and_asked_again() {
    let server =
        MockServer::start([answer("one!", 10), too_long(), answer("History.", 1), answer("Prefix.", 1)]);
    server.push(answer("two!", 10));
    let home = home(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("AAAA");
    let events = daemon.prompt("BBBB");
    assert_eq!(
        frame(&events, "agent_end"),
        [
            "agent_end",
            "entry_appended",
            "compaction_start",
            "compaction_end",
            "agent_start",
            "turn_start",
            "turn_end",
            "agent_end",
            "agent_settled"
        ]
    );
    assert_eq!(of_kind(&events, "compaction_start")[0]["reason"], "overflow");
    assert_eq!(of_kind(&events, "compaction_end")[0]["willRetry"], true);
    assert_eq!(text(answers(&events)[1]), "two!");
    // The prompt that was not taken is in the summary: the model gets nothing but that.
    let request = server.requests().pop().unwrap();
    let roles: Vec<&Value> = request.messages().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user"]);
    assert!(text(&request.messages()[1]).contains("**Turn Context (split turn):**\n\nPrefix."));
    // The failed answer stays in the file, and is left out.
    let records = records(&home.session_files()[0]);
    let failed = records.iter().find(|record| record["message"]["stopReason"] == "error").unwrap();
    let edit = records.iter().find(|record| record["type"] == "context_edit").unwrap();
    assert_eq!((&edit["targetId"], &edit["replacement"]), (&failed["id"], &Value::Null));
    assert_eq!(of_kind(&events, "entry_appended")[0]["entry"], *edit);
}

#[test]
fn a_second_time_in_a_row_is_the_end() {
    let server =
        MockServer::start([answer("one!", 10), too_long(), answer("S.", 1), answer("P.", 1), too_long()]);
    let home = home(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("AAAA");
    let events = daemon.prompt("BBBB");
    let ends = of_kind(&events, "compaction_end");
    assert_eq!((ends.len(), of_kind(&events, "compaction_start").len()), (2, 1));
    assert_eq!(
        *ends[1],
        json!({"type": "compaction_end", "reason": "overflow", "aborted": false, "willRetry": false,
            "errorMessage": "Context overflow recovery failed after one compact-and-retry attempt. Try reducing \
                             context or switching to a larger-context model."})
    );
    assert_eq!(frame(&events, "agent_end").last(), Some(&"agent_settled"));
    assert_eq!(server.requests().len(), 5);
    // The next message of the user has a recovery of its own.
    for reply in [too_long(), answer("P.", 1), answer("Fine.", 10)] {
        server.push(reply);
    }
    let events = daemon.prompt("CCCC");
    assert_eq!(of_kind(&events, "compaction_end")[0]["willRetry"], true);
    assert_eq!(text(answers(&events)[1]), "Fine.");
}

#[test]
fn an_answer_that_was_cut_short_is_asked_for_again() {
    let cut = |text: &str| Reply::stream(sse::text(text) + &sse::end("length", (500, 0, 50)));
    let server = MockServer::start([cut("Hal"), answer("P.", 1), answer("Whole.", 10)]);
    let events = run(&server);
    assert_eq!(of_kind(&events, "compaction_end")[0]["willRetry"], true);
    let request = server.requests().pop().unwrap();
    assert!(!request.body.to_string().contains("Hal\""), "{}", request.body);
    assert_eq!(text(answers(&events)[1]), "Whole.");

    let server = MockServer::start([cut("Hal"), answer("P.", 1), cut("Again")]);
    let events = run(&server);
    let failed = "Truncated response recovery failed after one compact-and-retry attempt.";
    assert_eq!(of_kind(&events, "compaction_end")[1]["errorMessage"], failed);
    // As long as the model's answers can be: nothing is wrong with the context.
    let whole = Reply::stream(sse::text("Long") + &sse::end("length", (500, 0, 100)));
    let server = MockServer::start([whole]);
    let events = run(&server);
    assert!(of_kind(&events, "compaction_end").is_empty());
}

#[test]
fn a_short_prompt_is_not_what_fills_the_window() {
    let cut = || Reply::stream(sse::text("Hal") + &sse::end("length", (500, 0, 50)));
    for failed in [cut, too_long] {
        let server = MockServer::start([failed(), answer("More.", 10)]);
        let home = home_with(&server, &json!({"reserveTokens": 200, "keepRecentTokens": 20_000}));
        let mut daemon = Daemon::start(&home, &[]);
        let events = daemon.prompt("AAAA");
        assert_eq!(frame(&events, "agent_end"), ["agent_end", "agent_settled"]);
        // What the user wrote is still there for the next prompt.
        daemon.prompt("BBBB");
        let requests = server.requests();
        assert_eq!(requests.len(), 2);
        let messages = requests[1].messages();
        assert_eq!([text(&messages[1]), text(messages.last().unwrap())], ["AAAA", "BBBB"]);
    }
}

#[test]
fn a_window_that_runs_over_with_an_answer_asks_for_nothing_again() {
    let server = MockServer::start([answer("one!", 1001), answer("P.", 1)]);
    let events = run(&server);
    let end = of_kind(&events, "compaction_end")[0];
    assert_eq!((&end["reason"], &end["willRetry"]), (&json!("overflow"), &json!(false)));
    assert!(of_kind(&events, "entry_appended").is_empty());
    assert_eq!(frame(&events, "compaction_end"), ["compaction_end", "agent_settled"]);
}

#[test]
fn a_recovery_that_fails_says_so() {
    let refused = Reply::status(401, "application/json", r#"{"error":{"message":"no"}}"#);
    let server = MockServer::start([too_long(), refused]);
    let events = run(&server);
    let expected =
        "Context overflow recovery failed: Turn prefix summarization failed: 401: {\"message\":\"no\"}";
    assert_eq!(of_kind(&events, "compaction_end")[0]["errorMessage"], expected);
    assert_eq!(server.requests().len(), 2);
}
