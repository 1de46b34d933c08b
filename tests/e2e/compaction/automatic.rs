//! Compaction of a context that is too full, the overflow retry after a model refused one, and a conversation many times as
//! long as the model's window.

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, apis::ProviderApi, sse};
use serde_json::{Value, json};

use crate::support::{
    answer_to_tokens, answers, asks_for_summary, context_overflow, frame_from, of_kind, prompt, read_call,
    records, small_window_home, small_window_home_with, text,
};

#[test]
fn a_compaction_between_turns_makes_room_for_the_next() {
    let server = MockServer::start([
        read_call("a.txt", 900),
        answer_to_tokens("Summary.", 1),
        answer_to_tokens("Done.", 100),
    ]);
    let home = small_window_home(&server);
    home.write("a.txt", "text");
    let mut daemon = Daemon::start(&home, &[]);
    let events = daemon.prompt("Read a.txt");
    let after = frame_from(&events, "tool_execution_end");
    assert_eq!(
        after,
        [
            "tool_execution_end",
            "turn_end",
            "compaction_start",
            "compaction_end",
            "turn_start",
            "turn_end",
            "agent_end",
            "agent_settled"
        ]
    );
    let end = of_kind(&events, "compaction_end")[0];
    assert_eq!((&end["reason"], &end["willRetry"]), (&json!("threshold"), &json!(false)));
    // The call stays with its result; the messages before are in the summary.
    let roles: Vec<Value> = server.requests()[2].messages().iter().map(|it| it["role"].clone()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool"]);
    // There is one run, and its `agent_end` holds all of its messages.
    let messages = of_kind(&events, "agent_end")[0]["messages"].as_array().unwrap().len();
    assert_eq!(messages, 5);
}

#[test]
fn the_boundary_is_the_window_less_the_reserve() {
    for (input, compacts) in [(798, false), (799, true)] {
        // The answer itself takes two tokens.
        let server = MockServer::start([answer_to_tokens("one!", input), answer_to_tokens("Summary.", 1)]);
        let events = Daemon::start(&small_window_home(&server), &[]).prompt("Hello?");
        assert_eq!(of_kind(&events, "compaction_start").len(), usize::from(compacts), "{input}");
        if compacts {
            let expected = ["agent_end", "compaction_start", "compaction_end", "agent_settled"];
            assert_eq!(frame_from(&events, "agent_end"), expected);
        }
    }
}

#[test]
fn nothing_is_said_where_nothing_can_be_done() {
    let server = MockServer::always(answer_to_tokens("one!", 900));
    let home = small_window_home_with(&server, &json!({"reserveTokens": 200, "keepRecentTokens": 500}));
    let mut daemon = Daemon::start(&home, &[]);
    for prompt in ["AAAA", "BBBB"] {
        let events = daemon.prompt(prompt);
        assert!(
            of_kind(&events, "compaction_start").is_empty() && of_kind(&events, "compaction_end").is_empty()
        );
    }
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn the_switch_counts_at_once_and_is_saved() {
    let server = MockServer::start([
        answer_to_tokens("one!", 900),
        answer_to_tokens("Summary.", 1),
        answer_to_tokens("two!", 10),
    ]);
    let home = small_window_home(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "set_auto_compaction", "enabled": false}));
    assert_eq!(daemon.done(json!({"type": "get_state"}))["autoCompactionEnabled"], false);
    assert!(of_kind(&daemon.prompt("AAAA"), "compaction_start").is_empty());
    let settings: Value =
        serde_json::from_str(&std::fs::read_to_string(home.agent_dir().join("settings.json")).unwrap())
            .unwrap();
    assert_eq!(
        settings["compaction"],
        json!({"reserveTokens": 200, "keepRecentTokens": 1, "enabled": false})
    );
    // Before a prompt, the previous answer is checked again; a compaction is reported before the prompt is accepted.
    daemon.done(json!({"type": "set_auto_compaction", "enabled": true}));
    let events = daemon.prompt("BBBB");
    let kinds = frame_from(&events, "compaction_start");
    assert_eq!(kinds[..4], ["compaction_start", "compaction_end", "response", "agent_start"]);
    // It happens once: the compaction resolved what the answer reported.
    server.push(answer_to_tokens("three", 10));
    assert!(of_kind(&daemon.prompt("CCCC"), "compaction_start").is_empty());
}

#[test]
fn a_model_can_have_limits_of_its_own() {
    let server = MockServer::always(answer_to_tokens("one!", 900));
    let compaction = json!({"reserveTokens": 200, "keepRecentTokens": 1,
        "modelOverrides": {"fake/fake": {"reserveTokens": 50}, "other/model": {"reserveTokens": 999}}});
    let events = Daemon::start(&small_window_home_with(&server, &compaction), &[]).prompt("Hello?");
    assert!(of_kind(&events, "compaction_start").is_empty());
}

#[test]
fn queued_messages_wait_for_a_compaction_and_go_out() {
    let gate = Gate::new();
    let server = MockServer::start([
        answer_to_tokens("one!", 900),
        Reply::stream(sse::answer("Summary.")).gate_first(&gate),
        answer_to_tokens("two!", 10),
        answer_to_tokens("three", 10),
    ]);
    let home = small_window_home(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("AAAA"));
    gate.wait_until_reached();
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!((&state["isCompacting"], &state["isStreaming"]), (&json!(true), &json!(true)));
    let queued = daemon.done(json!({"type": "prompt", "message": "BBBB", "streamingBehavior": "followUp"}));
    assert_eq!(queued["disposition"], "queued");
    daemon.done(json!({"type": "steer", "message": "CCCC"}));
    gate.open();
    let events = daemon.settled();
    let after = frame_from(&events, "compaction_end");
    assert_eq!(after[..4], ["compaction_end", "agent_start", "turn_start", "queue_update"]);
    assert_eq!(
        (server.requests().len(), daemon.done(json!({"type": "get_state"}))["pendingMessageCount"].clone()),
        (4, json!(0))
    );
}

#[test]
fn abort_ends_a_compaction_with_the_run() {
    let gate = Gate::new();
    let server = MockServer::start([read_call("a.txt", 900)]);
    server.push(Reply::stream(sse::text("never")).gate(&gate).hang());
    let home = small_window_home(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("Read a.txt"));
    gate.wait_until_reached();
    gate.open();
    daemon.send(&json!({"id": "ab", "type": "abort"}));
    let events = daemon.all_until("the answer to abort", |line| line["id"] == "ab");
    let end = of_kind(&events, "compaction_end")[0];
    assert_eq!(
        *end,
        json!({"type": "compaction_end", "reason": "threshold", "aborted": true, "willRetry": false})
    );
    assert_eq!(of_kind(&events, "agent_settled")[0]["aborted"], true);
    server.wait_for_disconnects(1);
    assert_eq!(server.requests().iter().filter(|request| asks_for_summary(request)).count(), 1);
}

#[test]
fn a_failure_is_reported_and_the_run_goes_on() {
    let failed = Reply::status(401, "application/json", r#"{"error":{"message":"no"}}"#);
    let server = MockServer::start([read_call("a.txt", 900), failed, answer_to_tokens("Done.", 100)]);
    let events = Daemon::start(&small_window_home(&server), &[]).prompt("Read a.txt");
    let end = of_kind(&events, "compaction_end")[0];
    assert_eq!(
        end["errorMessage"],
        "Auto-compaction failed: Turn prefix summarization failed: 401: {\"message\":\"no\"}"
    );
    assert_eq!(of_kind(&events, "agent_end").len(), 1);
    assert_eq!(server.requests().len(), 3);
}

/// The events of a prompt in a new session.
fn run(server: &MockServer) -> Vec<Value> {
    let home = small_window_home(server);
    Daemon::start(&home, &[]).prompt("AAAA")
}

#[test]
fn a_context_that_is_too_long_is_compacted_and_asked_again() {
    let server = MockServer::start([
        answer_to_tokens("one!", 10),
        context_overflow(),
        answer_to_tokens("History.", 1),
        answer_to_tokens("Prefix.", 1),
    ]);
    server.push(answer_to_tokens("two!", 10));
    let home = small_window_home(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("AAAA");
    let events = daemon.prompt("BBBB");
    assert_eq!(
        frame_from(&events, "agent_end"),
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
    // The refused prompt is in the summary: the model receives nothing else.
    let request = server.requests().pop().unwrap();
    let roles: Vec<&Value> = request.messages().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user"]);
    assert!(text(&request.messages()[1]).contains("**Turn Context (split turn):**\n\nPrefix."));
    // The failed answer stays in the file and is left out of the context.
    let records = records(&home.session_files()[0]);
    let failed = records.iter().find(|record| record["message"]["stopReason"] == "error").unwrap();
    let edit = records.iter().find(|record| record["type"] == "context_edit").unwrap();
    assert_eq!((&edit["targetId"], &edit["replacement"]), (&failed["id"], &Value::Null));
    assert_eq!(of_kind(&events, "entry_appended")[0]["entry"], *edit);
}

#[test]
fn a_second_overflow_in_a_row_is_the_end() {
    let server = MockServer::start([
        answer_to_tokens("one!", 10),
        context_overflow(),
        answer_to_tokens("S.", 1),
        answer_to_tokens("P.", 1),
        context_overflow(),
    ]);
    let home = small_window_home(&server);
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
    assert_eq!(frame_from(&events, "agent_end").last(), Some(&"agent_settled"));
    assert_eq!(server.requests().len(), 5);
    // The next message of the user gets an overflow retry of its own.
    for reply in [context_overflow(), answer_to_tokens("P.", 1), answer_to_tokens("Fine.", 10)] {
        server.push(reply);
    }
    let events = daemon.prompt("CCCC");
    assert_eq!(of_kind(&events, "compaction_end")[0]["willRetry"], true);
    assert_eq!(text(answers(&events)[1]), "Fine.");
}

#[test]
fn an_answer_that_was_cut_short_is_asked_for_again() {
    let cut = |text: &str| Reply::stream(sse::text(text) + &sse::end("length", (500, 0, 50)));
    let server = MockServer::start([cut("Hal"), answer_to_tokens("P.", 1), answer_to_tokens("Whole.", 10)]);
    let events = run(&server);
    assert_eq!(of_kind(&events, "compaction_end")[0]["willRetry"], true);
    let request = server.requests().pop().unwrap();
    assert!(!request.body.to_string().contains("Hal\""), "{}", request.body);
    assert_eq!(text(answers(&events)[1]), "Whole.");

    let server = MockServer::start([cut("Hal"), answer_to_tokens("P.", 1), cut("Again")]);
    let events = run(&server);
    let failed = "Truncated response recovery failed after one compact-and-retry attempt.";
    assert_eq!(of_kind(&events, "compaction_end")[1]["errorMessage"], failed);
    // The answer has the maximum length of the model: the context is fine.
    let whole = Reply::stream(sse::text("Long") + &sse::end("length", (500, 0, 100)));
    let server = MockServer::start([whole]);
    let events = run(&server);
    assert!(of_kind(&events, "compaction_end").is_empty());
}

#[test]
fn a_short_prompt_is_not_what_fills_the_window() {
    let cut = || Reply::stream(sse::text("Hal") + &sse::end("length", (500, 0, 50)));
    for failed in [cut, context_overflow] {
        let server = MockServer::start([failed(), answer_to_tokens("More.", 10)]);
        let home =
            small_window_home_with(&server, &json!({"reserveTokens": 200, "keepRecentTokens": 20_000}));
        let mut daemon = Daemon::start(&home, &[]);
        let events = daemon.prompt("AAAA");
        assert_eq!(frame_from(&events, "agent_end"), ["agent_end", "agent_settled"]);
        // The user's message is still there for the next prompt.
        daemon.prompt("BBBB");
        let requests = server.requests();
        assert_eq!(requests.len(), 2);
        let messages = requests[1].messages();
        assert_eq!([text(&messages[1]), text(messages.last().unwrap())], ["AAAA", "BBBB"]);
    }
}

#[test]
fn a_window_that_runs_over_with_an_answer_asks_for_nothing_again() {
    let server = MockServer::start([answer_to_tokens("one!", 1001), answer_to_tokens("P.", 1)]);
    let events = run(&server);
    let end = of_kind(&events, "compaction_end")[0];
    assert_eq!((&end["reason"], &end["willRetry"]), (&json!("overflow"), &json!(false)));
    assert!(of_kind(&events, "entry_appended").is_empty());
    assert_eq!(frame_from(&events, "compaction_end"), ["compaction_end", "agent_settled"]);
}

#[test]
fn an_overflow_retry_that_fails_says_so() {
    let refused = Reply::status(401, "application/json", r#"{"error":{"message":"no"}}"#);
    let server = MockServer::start([context_overflow(), refused]);
    let events = run(&server);
    let expected =
        "Context overflow recovery failed: Turn prefix summarization failed: 401: {\"message\":\"no\"}";
    assert_eq!(of_kind(&events, "compaction_end")[0]["errorMessage"], expected);
    assert_eq!(server.requests().len(), 2);
}

const WINDOW: usize = 12_000;

const RESERVE: usize = 2000;

const KEEP: usize = 2000;

const TURNS: usize = 200;

/// The tokens of a request, by the estimate of both sides: a quarter of the characters.
fn tokens(body: &Value) -> usize {
    (body["messages"].to_string().len() + body["tools"].to_string().len()).div_ceil(4)
}

#[test]
fn two_hundred_turns_fit_into_a_small_window() {
    // The server reports no usage, so the context is estimated.
    let server = MockServer::always(Reply::stream(
        sse::text(&"An answer of some length. ".repeat(40)) + &sse::end("stop", (0, 0, 0)),
    ));
    let home = Home::new();
    home.configure(&json!({"providers": {"fake": {
        "baseUrl": server.base_url(), "api": "openai-completions", "apiKey": "test-key-1234",
        "models": [{"id": "fake", "contextWindow": WINDOW, "maxTokens": 1000}],
    }}}));
    home.settings(&json!({"compaction": {"reserveTokens": RESERVE, "keepRecentTokens": KEEP}}));
    let mut daemon = Daemon::start(&home, &[]);
    let mut compactions = 0;
    for turn in 0..TURNS {
        let events = daemon.prompt(&format!("Prompt {turn}. {}", "What comes next? ".repeat(20)));
        for end in of_kind(&events, "compaction_end") {
            assert_eq!(end["errorMessage"], Value::Null, "turn {turn}");
            let result = &end["result"];
            let (before, after) =
                (result["tokensBefore"].as_u64().unwrap(), result["estimatedTokensAfter"].as_u64().unwrap());
            assert!(before > (WINDOW - RESERVE) as u64 && after < before / 2, "{before} to {after}");
            compactions += 1;
        }
    }
    let requests = server.requests();
    let summaries = requests.iter().filter(|request| asks_for_summary(request)).count();
    for request in &requests {
        ProviderApi::Chat.assert_legal(&request.body);
        assert!(tokens(&request.body) < WINDOW, "{}", tokens(&request.body));
    }
    // No compaction is unnecessary: between two of them the window fills up with new messages.
    let turn = (1040 + 360) / 4;
    let room = WINDOW - RESERVE - KEEP;
    assert!(
        compactions >= TURNS * turn / WINDOW && compactions <= TURNS * turn / (room / 2),
        "{compactions}"
    );
    assert!(summaries >= compactions && summaries <= 2 * compactions, "{summaries} for {compactions}");
    assert!(daemon.close().status.success());
    // The file keeps everything.
    let records = records(&home.session_files()[0]);
    let count = |role: &str| records.iter().filter(|record| record["message"]["role"] == role).count();
    assert_eq!((count("user"), count("assistant"), count("system")), (TURNS, TURNS, 1));
    assert_eq!(records.iter().filter(|record| record["type"] == "compaction").count(), compactions);
}
