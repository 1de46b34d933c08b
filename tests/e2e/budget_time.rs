//! Budgets of time: they end whatever a run is waiting for, and every call gets its result.

use agentd_e2e::{MockServer, Reply, Service, ctl, sse};
use serde_json::json;

use crate::{
    asking::{asked, calling, open},
    budgets::{assert_ends_by, introduced, priced},
    support::{answers, ended, of_kind, text},
};

#[test]
fn time_ends_a_call_of_a_model_and_of_a_tool() {
    let hangs = || Reply::stream(sse::text("Let me")).hang();
    let sleeps = Reply::stream(sse::calls(&[("c", "bash", json!({"command": "sleep 1000"}))]));
    for (reply, is_tool) in [(hangs(), false), (sleeps, true)] {
        let server = MockServer::start([reply, hangs()]);
        let home = priced(&server, &json!({"run": {"seconds": 8}}));
        let mut daemon = introduced(&home, &[]);
        let events = daemon.prompt("Take your time.");
        let reached = assert_ends_by(&events, "run", "seconds");
        assert!(reached["used"].as_f64().unwrap() >= 8.0);
        if is_tool {
            assert_eq!(ended(&events, "toolResult")[0]["isError"], true);
        } else {
            assert_eq!(text(answers(&events)[0]), "Let me");
        }
        assert_eq!(daemon.done(json!({"type": "get_state"}))["isStreaming"], false);
    }
}

#[test]
fn time_ends_an_open_question() {
    let server = calling("rm -r everything");
    let home = priced(&server, &json!({"run": {"seconds": 8}}));
    home.settings(&json!({"budgets": {"run": {"seconds": 8}}, "permissions": {"preset": "ask", "askTimeoutMs": 3_600_000}}));
    let service = Service::start(&home, &[]);
    let mut client = asked(&service, "editor");
    let id = open(&mut client, &home, &[]);
    client.send(&json!({"type": "prompt", "sessionId": id, "message": "Make room."}));
    client.event("extension_ui_request");
    let events = client.settled();
    let reached = of_kind(&events, "budget_reached");
    assert_eq!((reached.len(), &reached[0]["what"]), (1, &json!("seconds")), "{events:#?}");
    let results = ended(&events, "toolResult");
    assert_eq!((results.len(), &results[0]["isError"]), (1, &json!(true)), "{events:#?}");
    let last = answers(&events).last().copied().expect("an answer");
    assert_eq!(last["code"], "limit_reached", "{last}");
    assert_eq!(client.done(json!({"type": "get_state", "sessionId": id}))["isStreaming"], false);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn time_ends_a_compaction() {
    let answer = sse::text("A long answer.") + &sse::end("stop", (900, 0, 50));
    let hangs = Reply::stream(sse::text("A summary that")).hang();
    let server = MockServer::start([Reply::stream(answer), hangs]);
    let home = priced(&server, &json!({}));
    home.configure(&json!({"providers": {"fake": {
        "baseUrl": server.base_url(), "api": "openai-completions", "apiKey": "k",
        "models": [{"id": "fake", "contextWindow": 1000, "maxTokens": 4096}],
    }}}));
    home.settings(&json!({
        "budgets": {"run": {"seconds": 8}}, "compaction": {"reserveTokens": 200, "keepRecentTokens": 1},
    }));
    let mut daemon = introduced(&home, &[]);
    let events = daemon.prompt("Hello?");
    let reached = of_kind(&events, "budget_reached");
    assert_eq!((reached.len(), &reached[0]["what"]), (1, &json!("seconds")), "{events:#?}");
    let end = of_kind(&events, "compaction_end");
    assert_eq!((end.len(), &end[0]["aborted"]), (1, &json!(true)), "{events:#?}");
    assert_eq!(events.last().unwrap()["type"], "agent_settled");
    server.wait_for_disconnects(1);
    assert_eq!(daemon.done(json!({"type": "get_state"}))["isCompacting"], false);
}

#[test]
fn time_ends_the_pause_before_a_retry() {
    let overloaded = || Reply::status(503, "application/json", r#"{"error":{"message":"overloaded"}}"#);
    let server = MockServer::always(overloaded());
    let home = priced(&server, &json!({}));
    home.settings(&json!({"budgets": {"run": {"seconds": 8}}, "retry": {"baseDelayMs": 3_600_000, "maxDelayMs": 3_600_000}}));
    let mut daemon = introduced(&home, &[]);
    let events = daemon.prompt("Hello?");
    assert_ends_by(&events, "run", "seconds");
    let end = of_kind(&events, "auto_retry_end");
    assert_eq!((end.len(), &end[0]["success"]), (1, &json!(false)), "{events:#?}");
    assert_eq!(server.requests().len(), 1);
    let said = ctl::run(&home, &["prompt", "--private", "--timeout", "1s", "Hello?"]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.stderr.contains("Budget reached: "), "{said:?}");
}
