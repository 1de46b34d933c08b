//! Retries: answers that fail for a temporary reason are requested again, visibly and at most as often as allowed.

use agentd_e2e::{Daemon, Home, MockServer, Reply, ctl, sse};
use serde_json::{Value, json};

use crate::support::{answers, assert_says, kinds, prompt, records, text};

/// A home without pauses before retries.
fn home(server: &MockServer) -> Home {
    let home = Home::with_model(server);
    home.settings(&json!({"retry": {"baseDelayMs": 1}}));
    home
}

fn overloaded() -> Reply {
    Reply::status(503, "application/json", r#"{"error":{"message":"overloaded"}}"#)
}

fn error(status: u16, body: &str) -> Reply {
    Reply::status(status, "application/json", body)
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

#[test]
fn a_failed_answer_is_asked_for_again() {
    let server = MockServer::start([overloaded(), overloaded(), Reply::stream(sse::answer("Here I am."))]);
    let home = home(&server);
    let mut daemon = Daemon::start(&home, &[]);
    let events = daemon.prompt("Hello?");
    let failed = ["agent_start", "turn_start", "message_start", "message_end"];
    let mut expected = vec!["response"];
    expected.extend(failed);
    // The system message and the prompt come once.
    expected.extend([
        "message_start",
        "message_end",
        "message_start",
        "message_end",
        "turn_end",
        "agent_end",
    ]);
    expected.extend(["auto_retry_start", "entry_appended"]);
    expected.extend(failed);
    expected.extend(["turn_end", "agent_end", "auto_retry_start", "entry_appended"]);
    expected.extend(["agent_start", "turn_start", "message_start", "message_update", "message_end"]);
    expected.extend(["auto_retry_end", "turn_end", "agent_end", "agent_settled"]);
    assert_eq!(kinds(&events), expected);
    let starts = of_kind(&events, "auto_retry_start");
    assert_eq!(
        starts,
        [
            &json!({"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 1,
                "errorMessage": "503: {\"message\":\"overloaded\"}"}),
            &json!({"type": "auto_retry_start", "attempt": 2, "maxAttempts": 3, "delayMs": 2,
                "errorMessage": "503: {\"message\":\"overloaded\"}"}),
        ]
    );
    assert_eq!(
        of_kind(&events, "auto_retry_end"),
        [&json!({"type": "auto_retry_end", "success": true, "attempt": 2})]
    );
    let ends: Vec<bool> =
        of_kind(&events, "agent_end").iter().map(|end| end["willRetry"] == json!(true)).collect();
    assert_eq!(ends, [true, true, false]);
    // Each attempt is a run with its own messages only.
    assert_eq!(of_kind(&events, "agent_end")[2]["messages"].as_array().unwrap().len(), 1);

    // The model never sees the failures; the file keeps them, marked as left out.
    for request in server.requests() {
        let roles: Vec<&Value> = request.messages().iter().map(|message| &message["role"]).collect();
        assert_eq!(roles, ["system", "user"]);
    }
    let context = daemon.done(json!({"type": "get_messages"}));
    assert_eq!(context["messages"].as_array().unwrap().len(), 3);
    assert!(daemon.close().status.success());
    let records = records(&home.session_files()[0]);
    let failed: Vec<&Value> =
        records.iter().filter(|record| record["message"]["stopReason"] == "error").collect();
    let edits: Vec<&Value> = records.iter().filter(|record| record["type"] == "context_edit").collect();
    assert_eq!((failed.len(), edits.len()), (2, 2));
    for (failed, edit) in failed.iter().zip(&edits) {
        assert_eq!((&edit["targetId"], &edit["replacement"]), (&failed["id"], &Value::Null));
    }
    let appended: Vec<&Value> =
        of_kind(&events, "entry_appended").iter().map(|event| &event["entry"]).collect();
    assert_eq!(appended, edits);
}

#[test]
fn retries_end_with_their_number() {
    let server = MockServer::always(overloaded());
    let home = home(&server);
    let mut daemon = Daemon::start(&home, &[]);
    let events = daemon.prompt("Hello?");
    assert_eq!(server.requests().len(), 4);
    let tail: Vec<&str> = kinds(&events).into_iter().rev().take(3).collect();
    assert_eq!(tail, ["agent_settled", "auto_retry_end", "agent_end"]);
    assert_eq!(
        of_kind(&events, "auto_retry_end"),
        [&json!({"type": "auto_retry_end", "success": false, "attempt": 3,
            "finalError": "503: {\"message\":\"overloaded\"}"})]
    );
    // The next prompt has all retries again.
    server.push(overloaded());
    server.push(Reply::stream(sse::answer("Now.")));
    let events = daemon.prompt("And now?");
    assert_eq!(of_kind(&events, "auto_retry_end")[0]["attempt"], 1);
}

#[test]
fn an_answer_that_breaks_off_is_asked_for_again_whole() {
    let server =
        MockServer::start([Reply::stream(sse::text("Hel")).cut(), Reply::stream(sse::answer("Hello."))]);
    let home = home(&server);
    let mut daemon = Daemon::start(&home, &[]);
    let events = daemon.prompt("Say hello.");
    let answers = answers(&events);
    assert_eq!((text(answers[0]).as_str(), text(answers[1]).as_str()), ("Hel", "Hello."));
    assert_eq!(answers[0]["stopReason"], "error");
    assert_says(answers[0]["errorMessage"].as_str().unwrap(), &["Connection lost in the middle"]);
    assert_eq!(server.requests()[0].body, server.requests()[1].body);
}

#[test]
fn a_permanent_failure_is_not_retried() {
    let lasting = [
        (401, r#"{"error":{"message":"invalid api key"}}"#),
        (429, r#"{"error":{"type":"insufficient_quota","message":"You exceeded your current quota"}}"#),
        (400, r#"{"error":{"message":"maximum context length is 8192 tokens"}}"#),
        (404, r#"{"error":{"message":"no such model"}}"#),
    ];
    for (status, body) in lasting {
        let server = MockServer::always(error(status, body));
        let home = home(&server);
        // The overflow retry is tested elsewhere.
        home.settings(&json!({"compaction": {"enabled": false}, "retry": {"baseDelayMs": 1}}));
        let events = Daemon::start(&home, &[]).prompt("Hello?");
        assert!(of_kind(&events, "auto_retry_start").is_empty(), "{status} {body}");
        assert_eq!(server.requests().len(), 1, "{status} {body}");
        let message = answers(&events)[0]["errorMessage"].as_str().unwrap().to_owned();
        assert!(message.starts_with(&format!("{status}: ")), "{message}");
    }
}

#[test]
fn a_pause_can_be_given_up() {
    for (command, aborted) in [("abort_retry", false), ("abort", true)] {
        let server = MockServer::always(overloaded());
        let home = Home::with_model(&server);
        home.settings(&json!({"retry": {"baseDelayMs": 60_000}}));
        let mut daemon = Daemon::start(&home, &[]);
        daemon.send(&prompt("Hello?"));
        daemon.event("auto_retry_start");
        assert_eq!(daemon.done(json!({"type": "get_state"}))["isStreaming"], true);
        daemon.send(&json!({"id": "stop", "type": command}));
        let events = daemon.settled();
        assert_eq!(
            of_kind(&events, "auto_retry_end"),
            [
                &json!({"type": "auto_retry_end", "success": false, "attempt": 1, "finalError": "Retry cancelled"})
            ]
        );
        assert_eq!(events.last().unwrap()["aborted"], aborted, "{command}");
        assert_eq!(server.requests().len(), 1);
        assert_eq!(daemon.done(json!({"type": "get_state"}))["isStreaming"], false);
        daemon.done(json!({"type": "abort_retry"}));
    }
}

#[test]
fn messages_for_the_running_work_wait_for_the_retry() {
    let server = MockServer::start([overloaded(), Reply::stream(sse::answer("Both."))]);
    let home = Home::with_model(&server);
    home.settings(&json!({"retry": {"baseDelayMs": 3_000}}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("One."));
    daemon.event("auto_retry_start");
    let queued = daemon.done(json!({"type": "prompt", "message": "Two.", "streamingBehavior": "steer"}));
    assert_eq!(queued["disposition"], "queued");
    daemon.settled();
    let roles: Vec<Value> = server.requests()[1].messages().iter().map(|m| m["role"].clone()).collect();
    assert_eq!(roles, ["system", "user", "user"]);
}

#[test]
fn the_switch_counts_at_once_and_is_saved() {
    let server = MockServer::always(overloaded());
    let home = home(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "set_auto_retry", "enabled": false}));
    let events = daemon.prompt("Hello?");
    assert_eq!((of_kind(&events, "auto_retry_start").len(), server.requests().len()), (0, 1));
    let settings = std::fs::read_to_string(home.agent_dir().join("settings.json")).unwrap();
    let settings: Value = serde_json::from_str(&settings).unwrap();
    assert_eq!(settings, json!({"retry": {"baseDelayMs": 1, "enabled": false}}));
    drop(daemon);
    let events = Daemon::start(&home, &[]).prompt("Hello?");
    assert!(of_kind(&events, "auto_retry_start").is_empty());
}

#[test]
fn a_provider_can_ask_for_a_longer_pause() {
    let busy = || error(429, r#"{"error":{"message":"rate limit"}}"#);
    // Hidden retries send no events.
    let server = MockServer::start([
        busy().header("retry-after-ms", "5"),
        busy().header("x-should-retry", "true").header("retry-after", "0"),
        Reply::stream(sse::answer("Here.")),
    ]);
    let home = Home::with_model(&server);
    home.settings(&json!({"retry": {"enabled": false, "provider": {"maxRetries": 2}}}));
    let events = Daemon::start(&home, &[]).prompt("Hello?");
    assert_eq!(text(answers(&events)[0]), "Here.");
    assert!(of_kind(&events, "auto_retry_start").is_empty());
    assert_eq!(server.requests().len(), 3);

    // The visible pause is at least as long as the provider asks for.
    let server =
        MockServer::start([busy().header("retry-after-ms", "40"), Reply::stream(sse::answer("Here."))]);
    let events = Daemon::start(&self::home(&server), &[]).prompt("Hello?");
    assert_eq!(of_kind(&events, "auto_retry_start")[0]["delayMs"], 40);

    // A pause beyond the limit ends the attempts.
    let server = MockServer::always(busy().header("retry-after", "3600"));
    let events = Daemon::start(&self::home(&server), &[]).prompt("Hello?");
    assert!(of_kind(&events, "auto_retry_start").is_empty());
    let message = answers(&events)[0]["errorMessage"].as_str().unwrap().to_owned();
    assert_eq!(message, "Server requested 3600s retry delay (max: 60s). 429: {\"message\":\"rate limit\"}");
}

#[test]
fn agentctl_tells_of_retries() {
    let server = MockServer::start([overloaded(), Reply::stream(sse::answer("Here I am."))]);
    let home = home(&server);
    let run = ctl::run(&home, &["prompt", "Hello?"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "Here I am.\n"));
    assert_says(&run.stderr, &["503", "overloaded", "Asking again in 0.001 s (retry 1 of 3)"]);
    let server = MockServer::always(error(401, r#"{"error":{"message":"invalid api key"}}"#));
    let run = ctl::run(&self::home(&server), &["prompt", "Hello?"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert_says(&run.stderr, &["Error: 401", "invalid api key"]);
}
