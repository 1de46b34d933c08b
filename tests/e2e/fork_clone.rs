//! Copies of a session: `fork` and `clone`.

use std::{fs, path::PathBuf};

use agentd_e2e::{Daemon, Home, MockServer, Service};
use serde_json::{Value, json};

use crate::{
    support::{TestClient, assert_says, both, complaint, kinds, records},
    switch_session::{answers, file},
};

/// The keys of an object, in order.
fn keys(text: &str) -> Vec<String> {
    serde_json::from_str::<serde_json::Map<String, Value>>(text).unwrap().keys().cloned().collect()
}

/// An entry without the ids and the times of labels, which are new in a copy.
fn shape(record: &Value) -> Value {
    let mut record = record.clone();
    if record["type"] == "label" {
        record["id"] = json!("…");
        record["parentId"] = json!("…");
    }
    record
}

#[test]
fn a_fork_begins_before_a_message_and_hands_it_back() {
    both(&answers(&["One.", "Two.", "Other."]), &[], |_, server, client| {
        client.say("first");
        client.say("second");
        let (old, messages) = (client.state(), client.fork_messages());
        let texts: Vec<&str> = messages.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["first", "second"]);
        let forked = client.lines_until_done(json!({"type": "fork", "entryId": messages[1].0}));
        let [response] = forked.as_slice() else { panic!("an idle session says nothing: {forked:?}") };
        assert_eq!(
            response.to_string(),
            json!({"id": "until", "type": "response", "command": "fork", "success": true,
                   "data": {"text": "second", "cancelled": false}})
            .to_string()
        );

        let new = client.state();
        assert_ne!(new["sessionId"], old["sessionId"]);
        assert_eq!(client.context(), ["user: first", "assistant: One."]);
        let (from, to) = (records(&file(&old)), records(&file(&new)));
        assert_eq!(to[0]["parentSession"], old["sessionFile"]);
        assert_eq!(to[0]["cwd"], from[0]["cwd"]);
        let place = from.iter().position(|record| record["id"] == json!(messages[1].0)).unwrap();
        assert_eq!(to[1..], from[1..place], "the entries are copied as they are");

        // The connection receives the new session's events, and the old file is unchanged.
        let events = client.say("other");
        assert_eq!(kinds(&events)[0], "agent_start");
        assert_eq!(client.context().last().unwrap(), "assistant: Other.");
        assert_eq!(records(&file(&old)), from);
        let sent = server.requests()[2].messages().iter().map(ToString::to_string).collect::<String>();
        assert!(sent.contains("first") && !sent.contains("second"), "{sent}");
    });
}

#[test]
fn a_fork_before_the_first_message_is_empty_and_waits_for_its_file() {
    both(&answers(&["One.", "New."]), &["--name", "named"], |home, _, client| {
        client.say("first");
        let messages = client.fork_messages();
        let forked = client.done(json!({"type": "branch", "entryId": messages[0].0}));
        assert_eq!(forked, json!({"text": "first", "cancelled": false}));
        let state = client.state();
        assert!(!file(&state).exists(), "no file before a message");
        assert_eq!(client.context(), Vec::<String>::new());
        assert_eq!(client.done(json!({"type": "get_branch_messages"})), json!({"messages": []}));
        client.say("again");
        assert_eq!(home.session_files().len(), 2);
        assert_eq!(client.context(), ["user: again", "assistant: New."]);
        let refused = client.refused(json!({"type": "fork", "entryId": messages[0].0}));
        assert_eq!(refused["error"], "Invalid entry ID for forking", "it is no entry of this session");
    });
}

#[test]
fn a_clone_goes_on_where_the_branch_does() {
    both(&answers(&["One.", "Two."]), &[], |_, _, client| {
        client.say("first");
        let old = client.state();
        let entries = client.done(json!({"type": "get_entries"}));
        client.done(json!({"type": "set_label", "entryId": entries["leafId"], "label": "done"}));
        assert_eq!(client.done(json!({"type": "clone"})), json!({"cancelled": false}));
        let new = client.state();
        assert_ne!(new["sessionId"], old["sessionId"]);
        let (from, to) = (records(&file(&old)), records(&file(&new)));
        assert_eq!(to[0]["parentSession"], old["sessionFile"]);
        assert_eq!(
            to[1..].iter().map(shape).collect::<Vec<_>>(),
            from[1..].iter().map(shape).collect::<Vec<_>>()
        );
        client.say("second");
        assert_eq!(client.context().len(), 4);
    });
}

#[test]
fn a_session_in_memory_is_copied_in_memory() {
    both(&answers(&["One.", "Two."]), &["--no-session"], |home, _, client| {
        client.say("first");
        let (old, messages) = (client.state(), client.fork_messages());
        client.done(json!({"type": "clone"}));
        assert_eq!(client.context(), ["user: first", "assistant: One."]);
        assert_eq!(client.fork_messages(), messages);
        let cloned = client.state();
        assert_ne!(cloned["sessionId"], old["sessionId"]);
        assert_eq!(cloned.get("sessionFile"), None);
        client.done(json!({"type": "fork", "entryId": messages[0].0}));
        client.say("second");
        assert_eq!(client.context(), ["user: second", "assistant: Two."]);
        client.done(json!({"type": "new_session"}));
        assert_eq!(client.state().get("sessionFile"), None);
        assert_eq!(home.session_files(), Vec::<PathBuf>::new());
    });
}

#[test]
fn what_cannot_be_copied_leaves_everything_as_it_was() {
    both(&answers(&["One."]), &[], |home, _, client| {
        let before = client.state();
        let entry = client.done(json!({"type": "get_entries"}))["leafId"].clone();
        for command in [json!({"type": "fork", "entryId": "nope"}), json!({"type": "fork", "entryId": entry})]
        {
            let refused = client.refused(command);
            assert_eq!(refused["error"], "Invalid entry ID for forking");
            assert_eq!(refused["code"], "not_found");
            assert_says(&complaint(&refused), &["get_fork_messages"]);
        }
        let refused = client.refused(json!({"type": "clone"}));
        let text = "This session has not been saved yet. Send a message before cloning or forking it.";
        assert_eq!(refused["error"], text);
        let refused = client.refused(json!({"type": "fork"}));
        assert_eq!(
            (&refused["error"], &refused["code"]),
            (&json!("Missing field \"entryId\""), &json!("invalid_field"))
        );
        assert_eq!(client.state(), before);

        client.say("first");
        let root = client.done(json!({"type": "get_entries"}))["entries"][0]["id"].clone();
        client.done(json!({"type": "navigate_tree", "entryId": root}));
        assert_eq!(client.context(), Vec::<String>::new());
        assert_eq!(home.session_files().len(), 1);
    });
}

#[test]
fn a_copy_that_cannot_be_opened_leaves_no_file() {
    let server = MockServer::start(answers(&["One.", "Two."]));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--model", "fake/fake"]);
    daemon.prompt("first");
    let (state, files) = (daemon.state(), home.session_files());
    home.configure(&json!({"providers": {}}));
    let refused = daemon.refused(json!({"type": "clone"}));
    assert_says(&complaint(&refused), &["Failed to create forked session", "fake/fake"]);
    assert_eq!(refused["code"], "no_model");
    assert_eq!((daemon.state(), home.session_files()), (state, files));
    home.configure(&agentd_e2e::home::models(&server.base_url()));
    daemon.prompt("second");
    assert_eq!(daemon.context().len(), 4);
}

#[test]
fn files_of_copies_are_as_pi_writes_them() {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    let sample = include_str!("../data/sessions/v3-1.5.jsonl");
    let (header, entries) = sample.split_once('\n').unwrap();
    let mut own: Value = serde_json::from_str(header).unwrap();
    own["cwd"] = json!(home.project());
    home.write("sample.jsonl", &format!("{own}\n{entries}"));
    let mut daemon = Daemon::start(&home, &["--session", "./sample.jsonl"]);
    daemon.done(json!({"type": "clone"}));
    let copy = fs::read_to_string(file(&daemon.state())).unwrap();
    let (copied_header, copied) = copy.split_once('\n').unwrap();
    assert_eq!(keys(copied_header), keys(header));
    // The copy equals the file line by line, except for the abandoned branch and the label: the label moves to the end,
    // and its successor follows the entry before.
    let branch: Vec<&str> = entries
        .lines()
        .filter(|line| !line.contains(r#""type":"label""#) && !line.contains("Try without tax."))
        .collect();
    let copied: Vec<&str> = copied.lines().collect();
    let (label, copied) = copied.split_last().unwrap();
    let relinked = |line: &&str| line.replace(r#""parentId":"5e00000e""#, r#""parentId":"5e00000d""#);
    assert_eq!(copied, branch.iter().map(relinked).collect::<Vec<_>>());
    let sample_label = entries.lines().find(|line| line.contains(r#""type":"label""#)).unwrap();
    assert_eq!(keys(label), keys(sample_label));
    let (label, sample_label): (Value, Value) =
        (serde_json::from_str(label).unwrap(), serde_json::from_str(sample_label).unwrap());
    for name in ["targetId", "label", "timestamp"] {
        assert_eq!(label[name], sample_label[name]);
    }
    assert_eq!(label["parentId"], "5e000014", "after the last entry");
}

#[test]
fn an_unloaded_session_is_copied_too() {
    let server = MockServer::start(answers(&["One."]));
    let home = Home::with_model(&server);
    home.settings(&json!({"daemon": {"idleUnloadMs": 1}}));
    let service = Service::start(&home, &[]);
    let mut watcher = service.client();
    watcher.done(json!({"type": "watch_sessions"}));
    let mut client = service.client();
    let id = client.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone();
    client.say("first");
    watcher.until("a session that left memory", |line| {
        line["type"] == "session_changed" && line["session"]["id"] == id && line["session"]["live"] == false
    });
    client.done(json!({"type": "clone"}));
    assert_eq!(client.context(), ["user: first", "assistant: One."]);
    // The old session had no other client, so it closes.
    assert_eq!(watcher.event("session_closed")["session"]["id"].as_str().or(id.as_str()), id.as_str());
}
