//! The filter of a connection: which events of its sessions it gets.

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, sse};
use serde_json::{Value, json};

use crate::{extensions::started, support::kinds};

#[test]
fn only_what_is_wanted_comes_and_answers_always_do() {
    let server = MockServer::always(Reply::stream(sse::answer("Hello there.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    let set = daemon.done(json!({"type": "set_event_filter", "events": ["message_end", "agent_settled", "message_end", "of_tomorrow"]}));
    assert_eq!(set, json!({"events": ["agent_settled", "message_end", "of_tomorrow"]}));
    let lines = daemon.prompt("Hi.");
    assert_eq!(kinds(&lines), ["response", "message_end", "agent_settled"]);
    assert_eq!(daemon.done(json!({"type": "set_event_filter", "events": []})), json!({"events": []}));
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Again."}));
    assert_eq!(daemon.line()["id"], "p");
    // Waits for the end of the run, of which nothing is told.
    let idle = |daemon: &mut Daemon| daemon.done(json!({"type": "get_state"}))["isStreaming"] == false;
    while !idle(&mut daemon) {}
    assert_eq!(daemon.done(json!({"type": "set_event_filter", "events": null})), json!({"events": null}));
    assert!(kinds(&daemon.prompt("Once more.")).contains(&"message_update"));
    for events in [json!("x"), json!([""]), json!([3])] {
        let refused = daemon.refused(json!({"type": "set_event_filter", "events": events}));
        assert_eq!(refused["code"], "invalid_field", "{refused}");
    }
}

#[test]
fn questions_to_the_user_pass_every_filter() {
    let model = MockServer::start([]);
    let script = json!({"commands": {"ask": {"calls": [["ui.confirm", {"title": "Sure?", "message": ""}]]}}});
    let (_home, mut daemon) = started(&model, &script);
    daemon.done(json!({"type": "set_event_filter", "events": []}));
    daemon.send(&json!({"id": "a", "type": "prompt", "message": "/ask"}));
    let question = daemon.event("extension_ui_request");
    daemon.send(&json!({"type": "extension_ui_response", "id": question["id"], "confirmed": true}));
    assert_eq!(daemon.until("the answer", |line| line["id"] == "a")["data"]["disposition"], "handled");
}

/// What is left out keeps its number, for this client and for the others.
#[test]
fn the_numbers_of_other_events_stay() {
    let server = MockServer::always(Reply::stream(sse::answer("Hello there.")));
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let hello = json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}});
    let (mut all, mut some) = (service.client(), service.client());
    all.done(hello.clone());
    some.done(hello.clone());
    let opened = all.done(json!({"type": "open_session", "cwd": home.project()}));
    let session = opened["sessionId"].clone();
    some.done(json!({"type": "attach_session", "sessionId": session}));
    some.done(json!({"type": "set_event_filter", "events": ["message_end", "agent_settled"]}));
    let lines = all.prompt("Hi.");
    let seen = some.settled();
    let numbered = |lines: &[Value]| -> Vec<(u64, String)> {
        let of = |line: &Value| Some((line["seq"].as_u64()?, line["type"].as_str()?.to_owned()));
        lines.iter().filter_map(of).collect()
    };
    let wanted: Vec<_> = numbered(&lines)
        .into_iter()
        .filter(|(_, kind)| ["message_end", "agent_settled"].contains(&kind.as_str()))
        .collect();
    assert_eq!(numbered(&seen), wanted);
    // One that comes back with the last number that it got misses nothing of what it wants.
    let (epoch, last) = (opened["epoch"].clone(), seen.last().expect("an event")["seq"].clone());
    drop(some);
    let mut again = service.client();
    again.done(hello);
    again.done(json!({"type": "set_event_filter", "events": ["agent_settled"]}));
    all.prompt("Again.");
    let since = json!({"epoch": epoch, "seq": last});
    let joined = again.done(json!({"type": "attach_session", "sessionId": session, "since": since}));
    assert_eq!(joined["replayed"], true);
    assert_eq!(again.line()["type"], "agent_settled");
}
