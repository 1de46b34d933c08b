//! Leaving a session for another one: a file's, a copy of a branch, a new one.

use std::{fs, path::PathBuf};

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, Service, SocketClient, sse};
use serde_json::{Value, json};

use crate::{
    support::{assert_says, complaint, kinds, records, wait_until_free},
    wire::{Wire, both},
};

fn answers(texts: &[&str]) -> Vec<Reply> {
    texts.iter().map(|text| Reply::stream(sse::answer(text))).collect()
}

fn file(state: &Value) -> PathBuf {
    PathBuf::from(state["sessionFile"].as_str().expect("a session file"))
}

fn follow(service: &Service, id: &Value) -> SocketClient {
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    client.done(json!({"type": "attach_session", "sessionId": id}));
    client
}

/// The names of the members of an object, in their order.
fn keys(text: &str) -> Vec<String> {
    serde_json::from_str::<serde_json::Map<String, Value>>(text).unwrap().keys().cloned().collect()
}

/// What a copy has of the entries of a file: all but the ids and times of labels, which are new.
fn shape(record: &Value) -> Value {
    let mut record = record.clone();
    if record["type"] == "label" {
        record["id"] = json!("…");
        record["parentId"] = json!("…");
    }
    record
}

#[test]
fn a_new_session_follows_beside_the_file_that_was_opened() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let folder = home.project().join("kept");
    let path = folder.join("a.jsonl").display().to_string();
    let mut daemon = Daemon::start(&home, &["--session", &path]);
    daemon.prompt("Hi.");
    daemon.done(json!({"type": "new_session"}));
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!(file(&state).parent(), Some(folder.as_path()));
    // One that follows that one is there, too.
    daemon.done(json!({"type": "new_session"}));
    assert_eq!(file(&daemon.done(json!({"type": "get_state"}))).parent(), Some(folder.as_path()));
}

#[test]
fn a_fork_begins_before_a_message_and_hands_it_back() {
    both(&answers(&["One.", "Two.", "Other."]), &[], |_, server, client| {
        client.say("first");
        client.say("second");
        let (old, messages) = (client.state(), client.fork_messages());
        let texts: Vec<&str> = messages.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["first", "second"]);
        let forked = client.told_until_done(json!({"type": "fork", "entryId": messages[1].0}));
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

        // The same connection gets the new session's events, and the old file is left alone.
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
fn an_old_session_says_its_last_words_before_the_answer() {
    let busy = [Reply::stream(sse::answer("One.")), Reply::stream(sse::text("half ")).hang()];
    both(&busy, &[], |_, server, client| {
        client.say("first");
        client.done(json!({"type": "prompt", "message": "second"}));
        client.lines_until("a delta", &|line| line["assistantMessageEvent"]["delta"] == "half ");
        let old = client.state();
        let messages = client.fork_messages();
        let lines = client.told_until_done(json!({"type": "fork", "entryId": messages[1].0}));
        let last: Vec<&str> = kinds(&lines).into_iter().rev().take(3).collect();
        assert_eq!(last, ["response", "agent_settled", "agent_end"]);
        assert_eq!(lines[lines.len() - 2]["aborted"], json!(true));
        server.wait_for_disconnects(1);
        assert_eq!(client.context(), ["user: first", "assistant: One."]);
        let stored = records(&file(&old));
        assert_eq!(stored.last().unwrap()["message"]["stopReason"], "aborted");
    });
}

#[test]
fn a_file_is_switched_to_and_back() {
    both(&answers(&["One.", "Two.", "Three."]), &["--name", "first of all"], |_, _, client| {
        client.say("first");
        let first = client.state();
        client.done(json!({"type": "new_session"}));
        client.say("second");
        let second = client.state();
        assert_eq!((&first["sessionName"], second.get("sessionName")), (&json!("first of all"), None));
        let switch = json!({"type": "switch_session", "sessionPath": first["sessionFile"]});
        assert_eq!(client.done(switch.clone()), json!({"cancelled": false}));
        assert_eq!(client.state(), first);
        assert_eq!(client.context(), ["user: first", "assistant: One."]);
        // To where it is already.
        assert_eq!(client.done(switch), json!({"cancelled": false}));
        assert_eq!(client.state(), first);
        client.say("third");
        assert_eq!(client.context().len(), 4);
        client.done(json!({"type": "switch_session", "sessionPath": second["sessionFile"]}));
        assert_eq!(client.context(), ["user: second", "assistant: Two."]);
    });
}

#[test]
fn a_path_without_a_file_begins_one_there() {
    both(&answers(&["One.", "Two."]), &[], |home, _, client| {
        client.say("first");
        let path = home.project().join("mine.jsonl");
        client.done(json!({"type": "switch_session", "sessionPath": "mine.jsonl"}));
        assert_eq!(client.state()["sessionFile"], json!(path));
        assert!(!path.exists());
        client.say("second");
        assert_eq!(records(&path)[0]["id"], client.state()["sessionId"]);
    });
}

#[test]
fn what_cannot_be_switched_to_leaves_the_session_alone() {
    both(&answers(&["One.", "Two."]), &[], |home, _, client| {
        client.say("first");
        let state = client.state();
        let path = |name: &str| home.project().join(name);
        home.write("notes.jsonl", "no session\n");
        let gone = home.root().join("gone");
        home.write(
            "gone.jsonl",
            &format!("{}\n", json!({"type": "session", "version": 3, "id": "g", "timestamp": "2026-11-21T03:28:11.123Z", "cwd": gone})),
        );
        home.write(
            "taken.jsonl",
            &fs::read_to_string(file(&state)).unwrap().replace(state["sessionId"].as_str().unwrap(), "taken"),
        );
        let taken = fs::File::open(path("taken.jsonl")).unwrap();
        taken.try_lock().unwrap();
        let switch = |path: &dyn AsRef<std::path::Path>| json!({"type": "switch_session", "sessionPath": path.as_ref()});

        let refused = client.refused(switch(&path("notes.jsonl")));
        let text = format!("Session file is not a valid pi session: {}", path("notes.jsonl").display());
        assert_eq!(refused["error"], text);
        let refused = client.refused(switch(&path("gone.jsonl")));
        let text = format!(
            "Stored session working directory does not exist: {}\nSession file: {}\nCurrent working directory: {}",
            gone.display(),
            path("gone.jsonl").display(),
            home.project().display()
        );
        assert_eq!(refused["error"], text);
        assert_eq!(client.refused(switch(&path("taken.jsonl")))["code"], "session_locked");
        assert_eq!(client.refused(switch(&""))["code"], "invalid_field");
        assert_eq!(client.refused(switch(&home.project()))["success"], json!(false), "a folder");
        assert_eq!(client.state(), state);
        // None of them is held.
        drop(taken);
        for name in ["notes.jsonl", "gone.jsonl", "taken.jsonl"] {
            wait_until_free(&path(name));
        }
        client.say("second");
        client.done(switch(&path("taken.jsonl")));
        assert_eq!(client.state()["sessionId"], "taken");
    });
}

#[test]
fn flags_of_the_start_count_again_and_choices_do_not() {
    let server = MockServer::start(answers(&["One.", "Two."]));
    let home = Home::new();
    let mut models = agentd_e2e::home::models(&server.base_url());
    let list = models["providers"]["fake"]["models"].as_array_mut().unwrap();
    let mut other = list[0].clone();
    other["id"] = json!("other");
    list.push(other);
    home.configure(&models);
    let model = |daemon: &mut Daemon| daemon.done(json!({"type": "get_state"}))["model"]["id"].clone();

    let mut daemon = Daemon::start(&home, &["--model", "fake/fake"]);
    daemon.done(json!({"type": "set_model", "provider": "fake", "modelId": "other"}));
    daemon.prompt("first");
    let entry = daemon.done(json!({"type": "get_fork_messages"}))["messages"][0]["entryId"].clone();
    daemon.done(json!({"type": "clone"}));
    assert_eq!(model(&mut daemon), "fake", "the flag counts again");
    drop(daemon);

    // Without the flag, the target says.
    let mut daemon = Daemon::start(&home, &["--continue"]);
    let before = model(&mut daemon);
    assert_eq!(before, "other");
    daemon.done(json!({"type": "fork", "entryId": entry}));
    assert_eq!(model(&mut daemon), "other");
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
fn files_of_copies_are_as_the_reference_writes_them() {
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
    // Line by line as it was, but for the branch that was left, and for the label: that comes at the end, and what
    // followed it follows the entry before.
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
fn others_keep_the_session_that_one_leaves() {
    let gate = Gate::new();
    let server = MockServer::start([
        Reply::stream(sse::answer("One.")),
        Reply::stream(sse::text("Two")).gate(&gate).then(sse::answer(".")),
    ]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut plain = service.client();
    let id = plain.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone();
    plain.say("first");
    let mut other = follow(&service, &id);
    other.done(json!({"type": "prompt", "message": "second"}));
    other.until("a delta", |line| line["assistantMessageEvent"]["delta"] == "Two");
    // A fork of a session at work, which goes on.
    let messages = plain.fork_messages();
    plain.done(json!({"type": "fork", "entryId": messages[1].0}));
    assert_eq!(plain.context(), ["user: first", "assistant: One."]);
    let fork = plain.state()["sessionId"].clone();
    gate.open();
    let settled = other.settled();
    assert_eq!(settled.last().unwrap()["aborted"], json!(false));
    assert_eq!(other.done(json!({"type": "get_state"}))["sessionId"], id);

    // One that names sessions copies one that it does not follow, and goes there; the others stay where they are.
    let forked = other.done(json!({"type": "fork", "sessionId": id, "entryId": messages[1].0}));
    assert_eq!(forked["text"], "second");
    let moved = other.done(json!({"type": "get_state"}))["sessionId"].clone();
    assert!(moved != id && moved != fork);
    // Back to the one that lives: joined as it is.
    let listed = other.done(json!({"type": "list_sessions", "live": true}))["sessions"].clone();
    let path = listed.as_array().unwrap().iter().find(|session| session["id"] == id).unwrap()["path"].clone();
    plain.done(json!({"type": "switch_session", "sessionPath": path}));
    assert_eq!(plain.state()["sessionId"], id);
    let status = other.done(json!({"type": "list_sessions"}))["sessions"].clone();
    let clients =
        status.as_array().unwrap().iter().find(|session| session["id"] == id).unwrap()["clients"].clone();
    assert_eq!(clients, json!(2), "the plain one came back, the other never left");
}

#[test]
fn a_session_that_rests_is_copied_too() {
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
    // It was this client's alone.
    assert_eq!(watcher.event("session_closed")["session"]["id"].as_str().or(id.as_str()), id.as_str());
}

/// Each goes where the other comes from, and would end what it leaves.
#[test]
fn clients_that_change_places_do_not_wait_for_each_other() {
    let server = MockServer::start(answers(&["One.", "Two."]));
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut clients = [service.client(), service.client()];
    let mut files = clients.each_mut().map(|client| {
        client.done(json!({"type": "open_session", "cwd": home.project()}));
        client.say("Hi");
        client.state()["sessionFile"].clone()
    });
    for round in (0..100).map(|round| json!(round)) {
        files.swap(0, 1);
        for (client, file) in clients.iter_mut().zip(&files) {
            client.send(&json!({"type": "switch_session", "sessionPath": file, "id": round}));
        }
        for (client, file) in clients.iter_mut().zip(&files) {
            let answer = client.until("an answer", |line| line["id"] == round);
            assert_eq!(answer["success"], true, "{answer}");
            assert_eq!(&client.state()["sessionFile"], file);
        }
    }
}

#[test]
fn an_observer_stays_where_it_is() {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    let id = client.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone();
    let mut observer = service.client();
    observer.done(json!({"type": "hello", "protocol": 1, "role": "observe"}));
    observer.done(json!({"type": "attach_session", "sessionId": id}));
    observer.done(json!({"type": "get_tree"}));
    observer.done(json!({"type": "get_fork_messages"}));
    for command in [
        json!({"type": "clone"}),
        json!({"type": "fork", "entryId": "x"}),
        json!({"type": "switch_session", "sessionPath": "/x"}),
        json!({"type": "navigate_tree", "entryId": "x"}),
        json!({"type": "set_label", "entryId": "x"}),
    ] {
        assert_eq!(observer.refused(command)["code"], "forbidden");
    }
}
