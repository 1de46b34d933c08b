//! The command `compact`, and `kill -9` while a compaction is under way or right after it.

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, Service, apis::ProviderApi, ctl, sse};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    answer_to_tokens, asks_for_summary, assert_says, of_kind, prompt, records, roles, small_window_home,
    small_window_home_with, text, wait_until_free,
};

#[test]
fn the_older_part_gives_way_to_a_summary() {
    let server = MockServer::start([
        answer_to_tokens("one!", 10),
        answer_to_tokens("two!", 20),
        answer_to_tokens("## Goal\nAll.", 30),
    ]);
    let home = small_window_home_with(&server, &json!({"keepRecentTokens": 2}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("AAAA");
    daemon.prompt("BBBB");
    daemon.send(&json!({"id": "co", "type": "compact", "customInstructions": "Look at the tests."}));
    assert_eq!(daemon.line(), json!({"type": "compaction_start", "reason": "manual"}));
    let end = daemon.line();
    // The entry is on disk before its event.
    let stored = records(&home.session_files()[0]);
    let entry = stored.last().unwrap();
    let kept = stored.iter().find(|record| text(&record["message"]) == "BBBB").unwrap();
    let response = daemon.line();
    assert_eq!((&response["id"], &response["success"]), (&json!("co"), &json!(true)));
    let result = &response["data"];
    assert_eq!(
        end,
        json!({"type": "compaction_end", "reason": "manual", "result": result, "aborted": false, "willRetry": false})
    );
    let keys: Vec<&str> = result.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        ["summary", "firstKeptEntryId", "tokensBefore", "estimatedTokensAfter", "usage", "details"]
    );
    assert_eq!(result["summary"], "## Goal\nAll.");
    assert_eq!(result["firstKeptEntryId"], kept["id"]);
    assert_eq!((&result["tokensBefore"], &result["usage"]["input"]), (&json!(22), &json!(30)));
    assert_eq!(result["details"], json!({"readFiles": [], "modifiedFiles": []}));

    // The fields of the entry, in pi's order.
    let keys: Vec<&str> = entry.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "type",
            "id",
            "parentId",
            "timestamp",
            "summary",
            "firstKeptEntryId",
            "tokensBefore",
            "details",
            "usage",
            "fromHook",
            "systemMessage"
        ]
    );
    assert_eq!((&entry["type"], &entry["fromHook"]), (&json!("compaction"), &json!(false)));
    for field in ["summary", "firstKeptEntryId", "tokensBefore", "details", "usage"] {
        assert_eq!(entry[field], result[field], "{field}");
    }
    let system = &stored.iter().find(|record| record["message"]["role"] == "system").unwrap()["message"];
    assert_eq!(entry["systemMessage"], *system);

    // The request for the summary.
    let request = &server.requests()[2];
    assert_eq!((&request.body["tools"], request.messages().len()), (&Value::Null, 2));
    let question = text(&request.messages()[1]);
    assert!(
        question.starts_with("<conversation>\n[User]: AAAA\n\n[Assistant]: one!\n</conversation>\n\n"),
        "{question}"
    );
    assert!(question.ends_with("\n\nAdditional focus: Look at the tests."), "{question}");

    // The context from here on, now and after the session is opened again.
    let context = daemon.done(json!({"type": "get_messages"}));
    let roles: Vec<&Value> = context["messages"].as_array().unwrap().iter().map(|it| &it["role"]).collect();
    assert_eq!(roles, ["system", "compactionSummary", "user", "assistant"]);
    let usage = daemon.done(json!({"type": "get_session_stats"}));
    assert_eq!((&usage["contextUsage"]["tokens"], &usage["tokens"]["input"]), (&Value::Null, &json!(60)));
    drop(daemon);
    server.push(answer_to_tokens("three", 40));
    let mut daemon = Daemon::start(&home, &["--continue"]);
    assert_eq!(daemon.done(json!({"type": "get_messages"})), context);
    assert_eq!(daemon.refused(json!({"type": "compact"}))["error"], "Already compacted");
    daemon.prompt("CCCC");
    let request = &server.requests()[3];
    let roles: Vec<&Value> = request.messages().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user", "user", "assistant", "user"]);
    assert!(text(&request.messages()[1]).contains("<summary>\n## Goal\nAll.\n</summary>"));
}

#[test]
fn a_second_compaction_goes_on_from_the_first() {
    let replies = [
        call_file("read", "a.rs", json!({})),
        answer_to_tokens("Read.", 10),
        answer_to_tokens("First summary.", 10),
        call_file("write", "b.rs", json!({"content": "x"})),
        answer_to_tokens("Written.", 10),
        answer_to_tokens("Second summary.", 10),
    ];
    let server = MockServer::start(replies);
    let home = small_window_home_with(&server, &json!({"keepRecentTokens": 0}));
    home.write("a.rs", "fn a() {}");
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("Read a.rs");
    let first = daemon.done(json!({"type": "compact"}));
    // Only the answer stays: the turn is split and has no history before it.
    let lists = "\n\n<read-files>\na.rs\n</read-files>";
    let split = "No prior history.\n\n---\n\n**Turn Context (split turn):**\n\nFirst summary.";
    assert_eq!(first["summary"], format!("{split}{lists}"));
    let question = text(&server.requests()[2].messages()[1]);
    assert!(question.starts_with("# Conversation\n\n[User]: Read a.rs\n\n[Assistant tool calls]: read(path=\"a.rs\")\n\n[Tool result]: "), "{question}");
    daemon.prompt("Write b.rs");
    server.push(answer_to_tokens("Prefix.", 10));
    let second = daemon.done(json!({"type": "compact"}));
    let expected = "Second summary.\n\n---\n\n**Turn Context (split turn):**\n\nPrefix.\n\n\
                    <read-files>\na.rs\n</read-files>\n\n<modified-files>\nb.rs\n</modified-files>";
    assert_eq!(second["summary"], expected);
    assert_eq!(second["details"], json!({"readFiles": ["a.rs"], "modifiedFiles": ["b.rs"]}));
    // The usage adds up both summaries.
    assert_eq!(second["usage"]["input"], 20);
    let question = text(&server.requests()[5].messages()[1]);
    assert!(question.contains(&format!("<previous-summary>\n{split}\n</previous-summary>")), "{question}");
    assert!(question.starts_with("<conversation>\n[Assistant]: Read.\n</conversation>"), "{question}");
}

fn call_file(tool: &str, path: &str, mut arguments: Value) -> Reply {
    arguments["path"] = json!(path);
    Reply::stream(sse::calls(&[("call_1", tool, arguments)]))
}

#[test]
fn compact_says_why_it_cannot() {
    let server = MockServer::start([answer_to_tokens("one!", 10), answer_to_tokens("two!", 10)]);
    let home = small_window_home_with(&server, &json!({"keepRecentTokens": 2}));
    let mut daemon = Daemon::start(&home, &[]);
    let refused = |daemon: &mut Daemon, error: &str, code: &str| {
        daemon.send(&json!({"id": "co", "type": "compact"}));
        let lines = daemon.all_until("the response", |line| line["type"] == "response");
        assert_eq!(lines[0], json!({"type": "compaction_start", "reason": "manual"}));
        let failed = format!("Compaction failed: {error}");
        assert_eq!(lines.iter().rev().nth(1).unwrap()["errorMessage"], failed);
        let response = lines.last().unwrap();
        assert_eq!((&response["error"], &response["code"]), (&json!(error), &json!(code)));
    };
    refused(&mut daemon, "Nothing to compact (session too small)", "unsupported");
    daemon.prompt("AAAA");
    daemon.prompt("BBBB");
    for (reply, error) in [
        (
            Reply::stream(sse::text("half") + &sse::end("length", (1, 0, 1))),
            "Summarization failed: generation hit the token cap and the summary is incomplete",
        ),
        (Reply::stream(sse::calls(&[("c", "read", json!({}))])), "Summarization attempted to call a tool"),
        (
            Reply::status(401, "application/json", r#"{"error":{"message":"no"}}"#),
            "Summarization failed: 401: {\"message\":\"no\"}",
        ),
    ] {
        server.push(reply);
        refused(&mut daemon, error, "model_failed");
    }
    assert_eq!(daemon.done(json!({"type": "get_messages"}))["messages"].as_array().unwrap().len(), 5);
    let alone = Home::new();
    let mut daemon = Daemon::start(&alone, &[]);
    refused(&mut daemon, "No model selected.", "no_model");
}

#[test]
fn abort_stops_compact_and_prompts_wait_outside() {
    let gate = Gate::new();
    let server = MockServer::start([answer_to_tokens("one!", 10), answer_to_tokens("two!", 10)]);
    server.push(Reply::stream(sse::text("never")).gate(&gate).hang());
    let home = small_window_home(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("AAAA");
    daemon.prompt("BBBB");
    daemon.send(&json!({"id": "co", "type": "compact"}));
    gate.wait_until_reached();
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!((&state["isCompacting"], &state["isStreaming"]), (&json!(true), &json!(false)));
    let refused = daemon.refused(json!({"type": "prompt", "message": "Now?"}));
    assert_eq!(
        (&refused["error"], &refused["code"]),
        (
            &json!(
                "Cannot submit a prompt while compaction is in progress. Wait for compaction to finish and retry."
            ),
            &json!("busy")
        )
    );
    assert_eq!(daemon.refused(json!({"type": "compact"}))["code"], "busy");
    assert_eq!(daemon.done(json!({"type": "steer", "message": "Later."}))["disposition"], "queued");
    gate.open();
    daemon.send(&json!({"id": "ab", "type": "abort", "scope": "turn"}));
    daemon.event("compaction_start");
    let lines = daemon.all_until("the answer to abort", |line| line["id"] == "ab");
    let lines: Vec<&Value> = lines.iter().filter(|line| line["type"] != "queue_update").collect();
    assert_eq!(
        *lines[0],
        json!({"type": "compaction_end", "reason": "manual", "aborted": true, "willRetry": false})
    );
    assert_eq!((&lines[1]["error"], &lines[1]["code"]), (&json!("Compaction cancelled"), &json!("aborted")));
    assert_eq!(lines[2]["data"]["ended"], json!([{"kind": "compaction"}]));
    server.wait_for_disconnects(1);
    assert_eq!(daemon.done(json!({"type": "get_state"}))["isCompacting"], false);
    // Queued messages go out with the next run.
    server.push(answer_to_tokens("three", 10));
    daemon.prompt("CCCC");
    let last = server.requests().pop().unwrap();
    let texts: Vec<String> = last.messages().iter().rev().take(2).map(text).collect();
    assert_eq!(texts, ["Later.", "CCCC"]);
}

fn hello() -> Value {
    json!({"type": "hello", "protocol": 1, "client": {"name": "test"}, "capabilities": {"sessions": true}})
}

#[test]
fn a_run_is_aborted_first() {
    let (gate, summary) = (Gate::new(), Gate::new());
    let server = MockServer::start([
        answer_to_tokens("one!", 10),
        Reply::stream(sse::text("busy")).gate(&gate).hang(),
        Reply::stream(sse::answer("Summary.")).gate_first(&summary),
        // The turn is split with the part of the answer that had arrived.
        Reply::stream(sse::answer("Summary.")),
    ]);
    let home = small_window_home(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(hello());
    let opened = client.done(json!({"type": "open_session", "args": [], "cwd": home.project()}));
    client.send(&prompt("AAAA"));
    client.settled();
    client.send(&prompt("BBBB"));
    gate.wait_until_reached();
    gate.open();
    client.send(&json!({"id": "co", "type": "compact"}));
    let lines = client.all_until("the compaction", |line| line["type"] == "compaction_start");
    assert_eq!(of_kind(&lines, "agent_settled")[0]["aborted"], true);
    // A client that joins now learns of the compaction.
    summary.wait_until_reached();
    let mut other = service.client();
    other.done(hello());
    let attached = other.done(json!({"type": "attach_session", "sessionId": opened["sessionId"]}));
    assert_eq!(attached["state"]["isCompacting"], true, "{attached}");
    summary.open();
    assert_eq!(other.event("compaction_end")["reason"], "manual");
    let end = client.until("the response", |line| line["id"] == "co");
    assert_eq!(end["success"], true, "{end}");
}

#[test]
fn a_summary_that_failed_is_asked_for_again() {
    let overloaded = || Reply::status(503, "application/json", r#"{"error":{"message":"overloaded"}}"#);
    let server = MockServer::start([
        answer_to_tokens("one!", 10),
        answer_to_tokens("two!", 10),
        overloaded(),
        answer_to_tokens("S.", 1),
    ]);
    let home = small_window_home_with(&server, &json!({"keepRecentTokens": 2}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("AAAA");
    daemon.prompt("BBBB");
    daemon.send(&json!({"id": "co", "type": "compact"}));
    let lines = daemon.all_until("the response", |line| line["id"] == "co");
    assert_eq!(
        lines[1..4],
        [
            json!({"type": "summarization_retry_scheduled", "attempt": 1, "maxAttempts": 3, "delayMs": 1,
                "errorMessage": "503: {\"message\":\"overloaded\"}"}),
            json!({"type": "summarization_retry_attempt_start", "source": "compaction", "reason": "manual"}),
            json!({"type": "summarization_retry_finished"}),
        ]
    );
    assert_eq!(lines[4]["result"]["summary"], "S.");
    // A summary is retried as often as an answer, and not more.
    server.push(answer_to_tokens("three", 10));
    daemon.prompt("CCCC");
    (0..4).for_each(|_| server.push(overloaded()));
    let count = server.requests().len();
    let refused = daemon.refused(json!({"type": "compact"}));
    assert_eq!(refused["error"], "Summarization failed: 503: {\"message\":\"overloaded\"}");
    assert_eq!(server.requests().len() - count, 4);
}

#[test]
fn every_api_can_summarise() {
    for api in ProviderApi::ALL {
        let server = MockServer::always(Reply::stream(api.answer("Fine.")));
        let home = Home::new();
        home.configure(&json!({"providers": {api.model(): api.provider(&server)}}));
        home.settings(&json!({"compaction": {"keepRecentTokens": 2}, "defaultThinkingLevel": "high"}));
        let mut daemon = Daemon::start(&home, &[]);
        daemon.prompt("AAAA");
        daemon.prompt("BBBB");
        let result = daemon.done(json!({"type": "compact"}));
        assert_says(result["summary"].as_str().unwrap(), &["Fine."]);
        daemon.prompt("CCCC");
        let requests = server.requests();
        requests.iter().for_each(|request| api.assert_legal(&request.body));
        let summary = &requests[2].body;
        assert_eq!(summary["tools"], Value::Null, "{api:?}");
        // Summaries do not use the provider's cache.
        assert!(!summary.to_string().contains("cache_control"), "{api:?}: {summary}");
        assert!(requests[0].body.to_string().contains("cache_control") || api != ProviderApi::Messages);
    }
}

#[test]
fn agentctl_reports_a_compaction_in_one_line() {
    let server = MockServer::start([answer_to_tokens("one!", 900), answer_to_tokens("Summary.", 1)]);
    let home = small_window_home(&server);
    let run = ctl::run(&home, &["prompt", "Hello?"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "one!\n"));
    assert_says(&run.stderr, &["The conversation was compacted: about 902 tokens became "]);
    assert!(asks_for_summary(&server.requests()[1]));
}

#[test]
fn before_the_summary_is_stored_the_conversation_is_as_it_was() {
    let gate = Gate::new();
    let server = MockServer::start([
        answer_to_tokens("one!", 10),
        answer_to_tokens("two!", 20),
        Reply::stream(sse::answer("Half a summ")).gate_first(&gate),
        answer_to_tokens("three!", 30),
        answer_to_tokens("## Goal\nAll.", 40),
        answer_to_tokens("The turn.", 50),
    ]);
    let home = small_window_home_with(&server, &json!({"keepRecentTokens": 2}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("AAAA");
    daemon.prompt("BBBB");
    let before = daemon.done(json!({"type": "get_messages"}));
    daemon.send(&json!({"id": "co", "type": "compact"}));
    daemon.event("compaction_start");
    gate.wait_until_reached();
    daemon.signal(Signal::KILL);
    drop(daemon);
    gate.open();

    let file = home.session_files().remove(0);
    assert!(records(&file).iter().all(|record| record["type"] != "compaction"));
    wait_until_free(&file);
    let mut daemon = Daemon::start(&home, &["--continue"]);
    assert_eq!(daemon.done(json!({"type": "get_messages"})), before);
    assert_eq!(daemon.done(json!({"type": "get_state"}))["isCompacting"], false);
    // The session goes on and can still be compacted.
    daemon.prompt("CCCC");
    assert!(!asks_for_summary(&server.requests()[3]));
    assert_says(daemon.done(json!({"type": "compact"}))["summary"].as_str().unwrap(), &["## Goal\nAll."]);
}

#[test]
fn a_compaction_is_stored_once_its_end_is_reported() {
    let server = MockServer::start([
        answer_to_tokens("one!", 10),
        answer_to_tokens("two!", 20),
        answer_to_tokens("S.", 30),
        answer_to_tokens("three!", 40),
    ]);
    let home = small_window_home_with(&server, &json!({"keepRecentTokens": 2}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("AAAA");
    daemon.prompt("BBBB");
    daemon.send(&json!({"id": "co", "type": "compact"}));
    let end = daemon.event("compaction_end");
    daemon.signal(Signal::KILL);
    drop(daemon);
    let file = home.session_files().remove(0);
    wait_until_free(&file);
    let mut daemon = Daemon::start(&home, &["--continue"]);
    let context = daemon.done(json!({"type": "get_messages"}));
    let messages = context["messages"].as_array().unwrap();
    assert_eq!(
        (&messages[1]["role"], &messages[1]["summary"]),
        (&json!("compactionSummary"), &end["result"]["summary"])
    );
    daemon.prompt("CCCC");
    let request = &server.requests()[3];
    let said: Vec<String> = request.messages()[1..].iter().map(text).collect();
    assert!(said[0].contains("S.") && !said.iter().any(|text| text == "AAAA"), "{said:?}");
    let kinds: Vec<Value> = records(&file).into_iter().map(|record| record["type"].clone()).collect();
    assert_eq!(kinds.iter().filter(|kind| *kind == "compaction").count(), 1);
    assert_eq!(roles(&file).last().map(String::as_str), Some("assistant"));
}
