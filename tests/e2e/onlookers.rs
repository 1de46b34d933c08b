//! Commands that only look, of clients that do not follow the session: they are answered while the session waits for a client that
//! does not read, and nobody is cut off for them.

use agentd_e2e::{Home, MockServer, Reply, Service, sse};
use serde_json::json;

#[test]
fn looking_cuts_off_nobody() {
    let flood: String = (0..400).map(|_| sse::text(&"0123456789".repeat(2_000))).collect();
    let answers = [flood + &sse::answer("End."), sse::answer("More.")];
    let server = MockServer::start(answers.map(Reply::stream));
    let home = Home::with_model(&server);
    // Whoever is cut off is cut off at once.
    home.settings(&json!({"daemon": {"outboxBytes": 16_384, "lagGraceMs": 1}}));
    let service = Service::start(&home, &[]);
    let (mut sleeper, mut other) = (service.client(), service.client());
    sleeper.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    let opened = sleeper.done(json!({"type": "open_session", "cwd": home.project()}));
    let id = opened["sessionId"].clone();
    sleeper.done(json!({"type": "prompt", "message": "Flood"}));
    // Its own command waits for it to read. It does not keep the others waiting.
    sleeper.send(&json!({"id": "steer", "type": "steer", "message": "More."}));
    for _ in 0..200 {
        for kind in ["get_state", "get_messages", "get_session_stats", "get_tools", "get_commands"] {
            other.done(json!({"type": kind, "sessionId": id}));
        }
    }
    let events = sleeper.settled();
    assert!(events.iter().all(|line| line["type"] != "lagged"), "nobody was cut off");
    let numbers: Vec<u64> = events.iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "no event is missing");
    assert!(events.iter().any(|line| line["id"] == "steer"), "its own command is answered");
}
