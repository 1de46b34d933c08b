//! Leaving a session for another: `new_session`, `switch_session`, and clients that stay.

use std::{fs, path::PathBuf};

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, Service, SocketClient, sse};
use serde_json::{Value, json};

use crate::support::{TestClient, both, kinds, records, wait_until_free};

pub(crate) fn answers(texts: &[&str]) -> Vec<Reply> {
    texts.iter().map(|text| Reply::stream(sse::answer(text))).collect()
}

pub(crate) fn file(state: &Value) -> PathBuf {
    PathBuf::from(state["sessionFile"].as_str().expect("a session file"))
}

fn follow(service: &Service, id: &Value) -> SocketClient {
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    client.done(json!({"type": "attach_session", "sessionId": id}));
    client
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
    // The session follows its predecessor in the same folder.
    daemon.done(json!({"type": "new_session"}));
    assert_eq!(file(&daemon.done(json!({"type": "get_state"}))).parent(), Some(folder.as_path()));
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
        let lines = client.lines_until_done(json!({"type": "fork", "entryId": messages[1].0}));
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
        // Switching to the current file does nothing.
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
        // None of the files is locked.
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

    // Without the flag, the target session decides.
    let mut daemon = Daemon::start(&home, &["--continue"]);
    let before = model(&mut daemon);
    assert_eq!(before, "other");
    daemon.done(json!({"type": "fork", "entryId": entry}));
    assert_eq!(model(&mut daemon), "other");
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

    // A client that names sessions can fork a session that it does not follow; the other clients stay.
    let forked = other.done(json!({"type": "fork", "sessionId": id, "entryId": messages[1].0}));
    assert_eq!(forked["text"], "second");
    let moved = other.done(json!({"type": "get_state"}))["sessionId"].clone();
    assert!(moved != id && moved != fork);
    // Switching back joins the loaded session.
    let listed = other.done(json!({"type": "list_sessions", "live": true}))["sessions"].clone();
    let path = listed.as_array().unwrap().iter().find(|session| session["id"] == id).unwrap()["path"].clone();
    plain.done(json!({"type": "switch_session", "sessionPath": path}));
    assert_eq!(plain.state()["sessionId"], id);
    let status = other.done(json!({"type": "list_sessions"}))["sessions"].clone();
    let clients =
        status.as_array().unwrap().iter().find(|session| session["id"] == id).unwrap()["clients"].clone();
    assert_eq!(clients, json!(2), "the plain one came back, the other never left");
}

/// Each client switches to the other's session, which closes its own.
#[test]
fn clients_that_swap_sessions_do_not_wait_for_each_other() {
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
