//! A conversation that is many times as long as the model's window.

use agentd_e2e::{Daemon, Home, MockServer, Reply, sse, wires::Wire};
use serde_json::{Value, json};

use super::{is_summary, of_kind};
use crate::support::records;

const WINDOW: usize = 12_000;
const RESERVE: usize = 2000;
const KEEP: usize = 2000;
const TURNS: usize = 200;

/// The tokens of a request, as both sides count here: a quarter of the characters.
fn tokens(body: &Value) -> usize {
    (body["messages"].to_string().len() + body["tools"].to_string().len()).div_ceil(4)
}

#[test]
fn two_hundred_turns_fit_into_a_small_window() {
    // A server that counts nothing: the context is estimated.
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
    let summaries = requests.iter().filter(|request| is_summary(request)).count();
    for request in &requests {
        Wire::Chat.assert_legal(&request.body);
        assert!(tokens(&request.body) < WINDOW, "{}", tokens(&request.body));
    }
    // Not one too many: from one to the next, the window fills up with what is new.
    let turn = (1040 + 360) / 4;
    let room = WINDOW - RESERVE - KEEP;
    assert!(
        compactions >= TURNS * turn / WINDOW && compactions <= TURNS * turn / (room / 2),
        "{compactions}"
    );
    assert!(summaries >= compactions && summaries <= 2 * compactions, "{summaries} for {compactions}");
    assert!(daemon.close().status.success());
    // Nothing is gone from the file.
    let records = records(&home.session_files()[0]);
    let count = |role: &str| records.iter().filter(|record| record["message"]["role"] == role).count();
    assert_eq!((count("user"), count("assistant"), count("system")), (TURNS, TURNS, 1));
    assert_eq!(records.iter().filter(|record| record["type"] == "compaction").count(), compactions);
}
