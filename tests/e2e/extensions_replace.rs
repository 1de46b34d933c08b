//! Sessions with extensions that are left for others: by commands of the client, and by extensions.

use std::path::Path;

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, sse};
use serde_json::{Value, json};

use crate::{
    extensions::{events, extension, started, told},
    extensions_reload::{order_after, pid},
    support::records,
};

/// Listens to everything about the life of a session.
fn life() -> Value {
    json!({
        "session_before_switch": {}, "session_before_fork": {}, "session_shutdown": {}, "session_start": {},
        "resources_discover": {},
    })
}

fn state(daemon: &mut Daemon) -> Value {
    daemon.done(json!({"type": "get_state"}))
}

fn last(events: &[Value], kind: &str) -> Value {
    events.iter().rev().find(|event| event["type"] == kind).unwrap_or_else(|| panic!("no {kind}")).clone()
}

#[test]
fn a_new_session_takes_the_hosts_along() {
    let model = MockServer::start([]);
    let (home, mut daemon) = started(&model, &json!({"handlers": life()}));
    let before = daemon.done(json!({"type": "list_extensions"}));
    let old = state(&mut daemon);
    assert_eq!(daemon.done(json!({"type": "new_session"})), json!({"cancelled": false}));
    let new = state(&mut daemon);
    assert_ne!(new["sessionId"], old["sessionId"]);
    assert_eq!(
        order_after(&home, "session_before_switch:new"),
        [
            "session_before_switch:new",
            "session_shutdown:new",
            "unload",
            "load",
            "bind",
            "session_start:new",
            "resources_discover:startup"
        ]
    );
    let seen = events(&home);
    assert_eq!(last(&seen, "session_shutdown")["targetSessionFile"], new["sessionFile"]);
    assert_eq!(last(&seen, "session_start")["previousSessionFile"], old["sessionFile"]);
    let load = told(&home, "load").pop().expect("a load");
    assert_eq!((&load["reason"], &load["clearCache"]), (&json!("new"), &json!(false)));
    assert_eq!(load["session"]["sessionId"], new["sessionId"]);
    assert_eq!(pid(&daemon.done(json!({"type": "list_extensions"}))), pid(&before));
}

#[test]
fn forks_and_switches_are_asked_about() {
    let model = MockServer::start([]);
    let (home, mut daemon) = started(&model, &json!({"handlers": life()}));
    model.push(Reply::stream(sse::answer("One.")));
    daemon.prompt("Say it.");
    let old = state(&mut daemon);
    let entry = daemon.done(json!({"type": "get_fork_messages"}))["messages"][0]["entryId"].clone();
    let forked = daemon.done(json!({"type": "fork", "entryId": entry}));
    assert_eq!(forked, json!({"text": "Say it.", "cancelled": false}));
    let asked = last(&events(&home), "session_before_fork");
    assert_eq!((&asked["entryId"], &asked["position"]), (&entry, &json!("before")));
    assert_eq!(last(&events(&home), "session_start")["reason"], "fork");
    let path = old["sessionFile"].clone();
    daemon.done(json!({"type": "switch_session", "sessionPath": path}));
    let asked = last(&events(&home), "session_before_switch");
    assert_eq!((&asked["reason"], &asked["targetSessionFile"]), (&json!("resume"), &path));
    assert_eq!(last(&events(&home), "session_start")["reason"], "resume");
    daemon.done(json!({"type": "clone"}));
    let asked = last(&events(&home), "session_before_fork");
    assert_eq!(asked["position"], "at");
    // Nothing of a host is left behind.
    assert_eq!(told(&home, "hello").len(), 1);
}

#[test]
fn an_extension_keeps_the_client_in_its_session() {
    let model = MockServer::start([]);
    let mut handlers = life();
    let cancels = json!({"value": {"cancel": true}});
    handlers["session_before_switch"] = cancels.clone();
    handlers["session_before_fork"] = cancels;
    let (home, mut daemon) = started(&model, &json!({"handlers": handlers}));
    model.push(Reply::stream(sse::answer("One.")));
    daemon.prompt("Say it.");
    let old = state(&mut daemon)["sessionId"].clone();
    let entry = daemon.done(json!({"type": "get_fork_messages"}))["messages"][0]["entryId"].clone();
    for command in [
        json!({"type": "new_session"}),
        json!({"type": "fork", "entryId": entry}),
        json!({"type": "clone"}),
        json!({"type": "switch_session", "sessionPath": "/nowhere.jsonl"}),
    ] {
        assert_eq!(daemon.done(command), json!({"cancelled": true}));
    }
    assert_eq!(state(&mut daemon)["sessionId"], old);
    assert!(events(&home).iter().all(|event| event["type"] != "session_shutdown"));
}

#[test]
fn the_client_is_asked_while_it_leaves() {
    let model = MockServer::start([]);
    let mut handlers = life();
    handlers["session_before_switch"] =
        json!({"calls": [["ui.confirm", {"title": "Clear?", "message": "All of it."}]]});
    let (_home, mut daemon) = started(&model, &json!({"handlers": handlers}));
    daemon.send(&json!({"id": "n", "type": "new_session"}));
    let question = daemon.event("extension_ui_request");
    assert_eq!(question["title"], "Clear?");
    daemon.send(&json!({"type": "extension_ui_response", "id": question["id"], "confirmed": true}));
    let answer = daemon.until("the answer", |line| line["id"] == "n");
    assert_eq!(answer["data"], json!({"cancelled": false}));
}

/// A command that begins a session, fills it, and goes on in it.
fn leading() -> Value {
    let made = json!({
        "type": "custom", "id": "aaaaaaaa", "parentId": null, "timestamp": "2026-01-01T00:00:00.000Z",
        "customType": "made", "data": {"n": 1},
    });
    let label = json!({
        "type": "label", "id": "bbbbbbbb", "parentId": "aaaaaaaa", "timestamp": "2026-01-01T00:00:00.000Z",
        "targetId": "aaaaaaaa", "label": "first",
    });
    json!({
        "handlers": life(),
        "commands": {"go": {"calls": [["session.new", {"parentSession": "/p.jsonl", "setup": 1, "withSession": 2}]]}},
        "ops": {
            "1": {"value": {"entries": [made, label], "leafId": "bbbbbbbb"}},
            "2": {"calls": [
                ["session.sendUserMessage", {"content": "Go on.", "options": {}, "wait": true}],
                ["session.appendEntry", {"customType": "after", "data": {}}],
            ]},
        },
    })
}

#[test]
fn a_command_leads_its_client_to_a_new_session() {
    let model = MockServer::start([]);
    let (home, mut daemon) = started(&model, &leading());
    let old = state(&mut daemon);
    let before = pid(&daemon.done(json!({"type": "list_extensions"})));
    model.push(Reply::stream(sse::answer("Here.")));
    let answer = daemon.done(json!({"type": "prompt", "message": "/go"}));
    assert_eq!(answer, json!({"disposition": "handled"}));
    assert_eq!(
        order_after(&home, "command.run"),
        [
            "command.run",
            "session_before_switch:new",
            "session_shutdown:new",
            "unload",
            "load",
            "ops.call",
            "bind",
            "session_start:new",
            "resources_discover:startup",
            "ops.call",
            "result",
            "result",
            "result"
        ]
    );
    let new = state(&mut daemon);
    assert_ne!(new["sessionId"], old["sessionId"]);
    assert_eq!(new["messageCount"], 3, "{new}");
    assert_eq!(pid(&daemon.done(json!({"type": "list_extensions"}))), before);
    let results = told(&home, "result");
    assert_eq!(results.last().expect("a result")["value"], json!({"cancelled": false}));
    let entries = records(Path::new(new["sessionFile"].as_str().expect("a file")));
    assert_eq!(entries[0]["parentSession"], "/p.jsonl");
    let made = entries.iter().position(|entry| entry["customType"] == "made").expect("the entry");
    let label = entries.iter().find(|entry| entry["type"] == "label").expect("the label");
    assert_eq!((&label["targetId"], &entries[made]["parentId"]), (&entries[made]["id"], &Value::Null));
    assert_eq!(entries.last().expect("an entry")["customType"], "after");
    // The client goes on there.
    model.push(Reply::stream(sse::answer("Still here.")));
    daemon.prompt("And now?");
}

#[test]
fn a_command_that_cannot_leave_goes_on_where_it_was() {
    let model = MockServer::start([]);
    let script = json!({"commands": {"go": {"calls": [
        ["session.fork", {"entryId": "nothing"}],
        ["session.appendEntry", {"customType": "after", "data": {}}],
    ]}}, "handlers": {"session_start": {"calls": [["session.new", {}]]}}});
    let (home, mut daemon) = started(&model, &script);
    let old = state(&mut daemon)["sessionId"].clone();
    assert_eq!(daemon.done(json!({"type": "prompt", "message": "/go"})), json!({"disposition": "handled"}));
    let results = told(&home, "result");
    assert_eq!(results[0]["error"]["code"], "not_in_command");
    assert_eq!(results[1]["error"]["message"], "Invalid entry ID for forking");
    assert!(results[2]["ok"] == true, "{results:?}");
    assert_eq!(state(&mut daemon)["sessionId"], old);
}

#[test]
fn a_session_with_other_clients_lives_on() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    extension(&home, "test", &leading());
    let service = Service::start(&home, &[]);
    let open = json!({"type": "open_session", "cwd": home.project()});
    let mut one = service.client();
    let id = one.done(open)["sessionId"].clone();
    let mut two = service.client();
    two.done(json!({"type": "attach_session", "sessionId": id}));
    let before = pid(&two.done(json!({"type": "list_extensions"})));
    model.push(Reply::stream(sse::answer("Here.")));
    one.done(json!({"type": "prompt", "message": "/go"}));
    let moved = one.done(json!({"type": "get_state"}));
    assert_ne!(moved["sessionId"], id);
    assert_eq!(pid(&one.done(json!({"type": "list_extensions"}))), before);
    // The other client's session has extensions of its own.
    assert_eq!(two.done(json!({"type": "get_state"}))["sessionId"], id);
    loop {
        let list = two.done(json!({"type": "list_extensions"}));
        if list["extensions"][0]["hostPid"].as_i64().is_some_and(|pid| pid != before) {
            break;
        }
    }
}

#[test]
fn an_extension_compacts_and_hears_of_it() {
    let model = MockServer::start([]);
    let script = json!({
        "commands": {"go": {"calls": [["agent.compact", {"cb": 1}]]}},
        "ops": {"1": {}},
    });
    let (home, mut daemon) = started(&model, &script);
    daemon.send(&json!({"id": "1", "type": "prompt", "message": "/go"}));
    let end = daemon.event("compaction_end");
    let text = end["errorMessage"].as_str().expect("an error").to_owned();
    while told(&home, "ops.call").is_empty() {
        daemon.done(json!({"type": "get_state"}));
    }
    let call = told(&home, "ops.call")[0].clone();
    assert_eq!((&call["cb"], &call["method"]), (&json!(1), &json!("error")));
    let message = call["args"][0]["message"].as_str().expect("a text");
    assert!(text.ends_with(message), "{text} {message}");
}

#[test]
fn an_extension_ends_its_session() {
    let model = MockServer::start([]);
    let script = json!({
        "handlers": {"session_shutdown": {}},
        "commands": {"go": {"calls": [["agent.shutdown", {}], ["session.appendEntry", {"customType": "after", "data": {}}]]}},
    });
    let (home, mut daemon) = started(&model, &script);
    assert_eq!(daemon.done(json!({"type": "prompt", "message": "/go"})), json!({"disposition": "handled"}));
    // The daemon ends as at the end of its input.
    assert!(daemon.wait().status.success());
    assert_eq!(last(&events(&home), "session_shutdown")["reason"], "quit");
    assert_eq!(told(&home, "result").len(), 2);
}
