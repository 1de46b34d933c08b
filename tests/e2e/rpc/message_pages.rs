//! The messages of a session in pages.

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, sse};
use serde_json::{Value, json};

#[test]
fn the_pages_together_are_the_messages() {
    let server = MockServer::always(Reply::stream(sse::answer("Hello.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    (0..3).for_each(|_| drop(daemon.prompt("Hi.")));
    let all = daemon.done(json!({"type": "get_messages"}))["messages"].clone();
    let (mut seen, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let page = daemon.done(json!({"type": "get_messages_page", "cursor": cursor, "limit": 3}));
        assert_eq!(page["totalMessages"], 7);
        seen.extend(page["messages"].as_array().expect("a list").iter().cloned());
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(json!(seen), all);
}

#[test]
fn a_cursor_is_of_one_state_of_the_session() {
    let gate = Gate::new();
    let held = Reply::stream(sse::text("Hm.")).gate(&gate).then(sse::end("stop", (1, 0, 1)));
    let server = MockServer::start([Reply::stream(sse::answer("Hello.")), held]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("Hi.");
    let cursor = daemon.done(json!({"type": "get_messages_page", "limit": 1}))["nextCursor"].clone();
    let next = json!({"type": "get_messages_page", "cursor": cursor, "limit": 1});
    daemon.done(next.clone());
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "More."}));
    daemon.event("message_update");
    let busy = daemon.refused(next.clone());
    assert_eq!(
        (&busy["code"], &busy["error"]),
        (&json!("session_busy"), &json!("Cannot page messages while the session is changing"))
    );
    gate.open();
    daemon.settled();
    let stale = daemon.refused(next);
    assert_eq!(
        (&stale["code"], &stale["error"]),
        (&json!("stale_cursor"), &json!("RPC message cursor is stale"))
    );
    for (field, value) in [("cursor", json!("no cursor")), ("limit", json!(0)), ("limit", json!(257))] {
        let refused = daemon.refused(json!({"type": "get_messages_page", field: value}));
        assert_eq!(refused["code"], "invalid_field", "{refused}");
    }
}
