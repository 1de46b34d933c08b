//! Extensions and the tree of a session: they see that it goes back to another entry, may prevent it, and go there themselves.

use agentd_e2e::{Daemon, MockServer, Reply, sse};
use serde_json::{Value, json};

use crate::extensions::{events, started, told};

/// Says two things, and gives the entry of the second.
fn second_message(daemon: &mut Daemon, model: &MockServer) -> String {
    for text in ["One.", "Two."] {
        model.push(Reply::stream(sse::answer(text)));
        daemon.prompt("Say it.");
    }
    let messages = daemon.done(json!({"type": "get_fork_messages"}))["messages"].clone();
    messages[1]["entryId"].as_str().expect("an entry").to_owned()
}

fn of_kind(events: &[Value], kind: &str) -> Value {
    events.iter().find(|event| event["type"] == kind).unwrap_or_else(|| panic!("no {kind}")).clone()
}

#[test]
fn a_move_is_seen_before_and_after() {
    let model = MockServer::start([]);
    let script = json!({"handlers": {"session_before_tree": {}, "session_tree": {"calls": [["read", {"topic": "entries"}]]}}});
    let (home, mut daemon) = started(&model, &script);
    let target = second_message(&mut daemon, &model);
    let old = daemon.done(json!({"type": "get_tree"}))["leafId"].clone();
    let went = daemon.done(json!({"type": "navigate_tree", "entryId": target}));
    assert_eq!((&went["cancelled"], &went["editorText"]), (&json!(false), &json!("Say it.")));
    let seen = events(&home);
    let preparation = of_kind(&seen, "session_before_tree")["preparation"].clone();
    assert_eq!((&preparation["targetId"], &preparation["oldLeafId"]), (&json!(target), &old));
    assert_eq!(preparation["userWantsSummary"], false);
    // The target is what the two paths have in common.
    assert_eq!(preparation["commonAncestorId"], json!(target));
    assert_eq!(preparation["entriesToSummarize"].as_array().expect("entries").len(), 1);
    let after = of_kind(&seen, "session_tree");
    assert_eq!((&after["oldLeafId"], &after["newLeafId"]), (&old, &went["leafId"]));
    assert!(after.get("summaryEntry").is_none());
    // The handler sees the new leaf.
    let read = told(&home, "result").last().expect("a result").clone();
    assert_eq!(read["value"]["value"]["leafId"], went["leafId"]);
}

#[test]
fn an_extension_prevents_a_move() {
    let model = MockServer::start([]);
    let script =
        json!({"handlers": {"session_before_tree": {"value": {"cancel": true}}, "session_tree": {}}});
    let (home, mut daemon) = started(&model, &script);
    let target = second_message(&mut daemon, &model);
    let before = daemon.done(json!({"type": "get_tree"}))["leafId"].clone();
    let went = daemon.done(json!({"type": "navigate_tree", "entryId": target}));
    assert_eq!(went["cancelled"], true);
    assert_eq!(daemon.done(json!({"type": "get_tree"}))["leafId"], before);
    assert!(events(&home).iter().all(|event| event["type"] != "session_tree"));
}

#[test]
fn a_summary_of_an_extension_is_used_where_one_is_wanted() {
    let model = MockServer::start([]);
    let script = json!({"handlers": {"session_tree": {}, "session_before_tree": {"value": {
        "summary": {"summary": "What was left.", "details": {"n": 1}}, "label": "left",
    }}}});
    let (home, mut daemon) = started(&model, &script);
    let target = second_message(&mut daemon, &model);
    let went = daemon.done(json!({"type": "navigate_tree", "entryId": target, "summarize": true}));
    assert_eq!(model.requests().len(), 2, "no model was asked");
    let event = of_kind(&events(&home), "session_tree");
    assert_eq!(event["fromExtension"], true);
    let entry = &event["summaryEntry"];
    assert_eq!((&entry["summary"], &entry["fromHook"]), (&json!("What was left."), &json!(true)));
    assert_eq!(entry["details"], json!({"n": 1}));
    assert_eq!(went["summaryEntryId"], entry["id"]);
    let tree = daemon.done(json!({"type": "get_tree"})).to_string();
    assert!(tree.contains("\"label\":\"left\""), "{tree}");
}

#[test]
fn a_command_goes_to_another_entry() {
    let model = MockServer::start([]);
    let script = json!({
        "handlers": {"session_tree": {}},
        "commands": {"back": {"calls": [
            ["read", {"topic": "entries"}],
            ["session.navigate", {"targetId": "nothing"}],
            ["session.navigate", {"targetId": "${first}"}],
        ]}},
    });
    let (home, mut daemon) = started(&model, &script);
    second_message(&mut daemon, &model);
    let first = daemon.done(json!({"type": "get_fork_messages"}))["messages"][0]["entryId"].clone();
    let path = home.agent_dir().join("extensions/test/script.json");
    let edited = std::fs::read_to_string(&path).expect("the script");
    std::fs::write(&path, edited.replace("${first}", first.as_str().expect("an id"))).expect("written");
    daemon.done(json!({"type": "restart_extensions"}));
    daemon.done(json!({"type": "prompt", "message": "/back"}));
    let results = told(&home, "result");
    assert_eq!(results[1]["error"]["message"], "Entry nothing not found");
    assert_eq!(results[2]["value"], json!({"cancelled": false}));
    // The entries that were read are told of the leaf, although there is no new one.
    let event = of_kind(&events(&home), "session_tree");
    let patches = told(&home, "state");
    let patch = patches.iter().rev().find(|patch| patch["topic"] == "entries").expect("a patch");
    assert_eq!((&patch["patch"]["entries"], &patch["patch"]["leafId"]), (&json!([]), &event["newLeafId"]));
}
