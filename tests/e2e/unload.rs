//! Unloading and eviction: idle sessions leave memory, `daemon.maxSessions` evicts unused ones, and both come back unchanged.

use std::{fs, time::Instant};

use agentd_e2e::{DEADLINE, Home, MockServer, Reply, Service, SocketClient, sse};
use serde_json::json;

use crate::{
    limits::{daemon, fine, hello, open, refused, session_file},
    support::{answers, text, wait_until_free},
};

/// A daemon that unloads its sessions as soon as they are idle.
fn impatient(server: &MockServer) -> (Home, Service) {
    let home = Home::with_model(server);
    home.settings(&json!({"daemon": {"idleUnloadMs": 1}}));
    let service = Service::start(&home, &[]);
    (home, service)
}

/// Waits until the session is unloaded: checks again at each `session_changed`.
pub(crate) fn gone(watcher: &mut SocketClient, id: &str) {
    loop {
        let unloaded = watcher.done(json!({"type": "list_sessions", "live": false}));
        if unloaded["sessions"].as_array().unwrap().iter().any(|session| session["id"] == id) {
            return;
        }
        watcher.event("session_changed");
    }
}

fn watcher(service: &Service) -> SocketClient {
    let mut watcher = service.client();
    watcher.done(json!({"type": "watch_sessions"}));
    watcher
}

#[test]
fn a_session_comes_back_without_its_clients_noticing() {
    let server = MockServer::start([Reply::stream(sse::answer("One.")), Reply::stream(sse::answer("Two."))]);
    let (home, service) = impatient(&server);
    let mut watcher = watcher(&service);
    let (mut client, mut other) = (service.client(), service.client());
    hello(&mut client);
    let id = open(&mut client, &home);
    client.done(json!({"type": "prompt", "message": "Hi"}));
    let first = client.settled();
    let last = first.last().unwrap()["seq"].as_u64().unwrap();
    gone(&mut watcher, &id);
    let status = watcher.done(json!({"type": "daemon_status"}));
    assert_eq!((&status["liveSessions"], &status["restingSessions"]), (&json!(0), &json!(1)), "{status}");

    // A subscriber goes on with the next number.
    let state = client.done(json!({"type": "get_state"}));
    assert_eq!((&state["sessionId"], &state["messageCount"]), (&json!(id), &json!(3)));
    gone(&mut watcher, &id);
    client.done(json!({"type": "prompt", "message": "And?"}));
    let second = client.settled();
    assert_eq!(second[0]["seq"], json!(last + 1), "{}", second[0]);
    assert_eq!(text(answers(&second)[0]), "Two.");
    gone(&mut watcher, &id);

    // So do a plain client that joins, and one that comes back.
    other.done(json!({"type": "attach_session", "sessionId": id}));
    let messages = other.done(json!({"type": "get_messages"}));
    assert_eq!(messages["messages"].as_array().unwrap().len(), 5);
    gone(&mut watcher, &id);
    let mut back = service.client();
    let epoch = hello(&mut back)["daemon"]["epoch"].clone();
    let seq = second.last().unwrap()["seq"].clone();
    let since = json!({"type": "attach_session", "sessionId": id, "since": {"epoch": epoch, "seq": seq}});
    assert_eq!(back.done(since)["replayed"], json!(true), "nothing was missed");
    gone(&mut watcher, &id);
    let since = json!({"type": "attach_session", "sessionId": id, "since": {"epoch": epoch, "seq": last}});
    assert_eq!(back.done(since)["replayed"], json!(false), "what was missed is kept no longer");
}

#[test]
fn a_session_without_a_message_yet_comes_back_too() {
    let server = MockServer::start([]);
    let (home, service) = impatient(&server);
    let mut watcher = watcher(&service);
    let mut client = service.client();
    let id = open(&mut client, &home);
    gone(&mut watcher, &id);
    client.done(json!({"type": "set_session_name", "name": "still here"}));
    gone(&mut watcher, &id);
    let listed = client.done(json!({"type": "list_sessions", "search": "STILL"}));
    assert_eq!((&listed["sessions"][0]["id"], &listed["sessions"][0]["live"]), (&json!(id), &json!(false)));
    assert_eq!(client.done(json!({"type": "get_state"}))["sessionName"], "still here");
}

/// A command at the moment of unloading is answered.
#[test]
fn a_session_on_its_way_out_is_still_there() {
    let server = MockServer::start([]);
    let (home, service) = impatient(&server);
    // With so many entries unloading takes a while.
    let id = session_file(&home, 0, 20_000, 1);
    let mut watcher = watcher(&service);
    let mut client = service.client();
    hello(&mut client);
    client.done(json!({"type": "attach_session", "sessionId": id}));
    for _ in 0..5 {
        assert_eq!(client.done(json!({"type": "get_state"}))["messageCount"], json!(20_000));
        loop {
            // This command does not load it.
            client.done(json!({"type": "list_processes", "sessionId": id}));
            if watcher.done(json!({"type": "daemon_status"}))["restingSessions"] == json!(1) {
                break;
            }
        }
    }
}

#[test]
fn a_closed_session_is_opened_by_name_only() {
    let server = MockServer::start([Reply::stream(sse::answer("One."))]);
    let (home, service) = impatient(&server);
    let mut watcher = watcher(&service);
    let mut client = service.client();
    hello(&mut client);
    let id = open(&mut client, &home);
    client.done(json!({"type": "prompt", "message": "Hi"}));
    client.settled();
    gone(&mut watcher, &id);
    // Closing works for an unloaded session, too.
    watcher.done(json!({"type": "close_session", "sessionId": id}));
    assert_eq!(client.event("session_closed")["sessionId"], json!(id));
    assert_eq!(watcher.event("session_closed")["sessionId"], json!(id));
    let refused = client.refused(json!({"type": "get_state"}));
    assert_eq!(refused["code"], "no_session", "{refused}");
    let refused = watcher.refused(json!({"type": "get_state", "sessionId": id}));
    assert_eq!(refused["code"], "session_not_found", "{refused}");
    let attached = client.done(json!({"type": "attach_session", "sessionId": id}));
    assert_eq!(attached["state"]["messageCount"], json!(3), "from its file");
    let cwd = home.project().display().to_string();
    let opened = watcher.event("session_opened");
    assert_eq!((&opened["session"]["id"], &opened["session"]["cwd"]), (&json!(id), &json!(cwd)));
}

#[test]
fn a_session_in_memory_only_is_kept_for_its_clients() {
    let server = MockServer::start([]);
    let (home, service) = impatient(&server);
    let mut watcher = watcher(&service);
    let mut client = service.client();
    let params = json!({"type": "open_session", "cwd": home.project(), "ephemeral": true});
    let id = client.done(params)["sessionId"].clone();
    client.done(json!({"type": "set_session_name", "name": "passing"}));
    assert_eq!(client.done(json!({"type": "get_state"}))["sessionName"], "passing");
    drop(client);
    assert_eq!(watcher.event("session_closed")["sessionId"], id);
}

#[test]
fn a_file_that_another_process_took_meanwhile_is_refused() {
    let server = MockServer::start([Reply::stream(sse::answer("One."))]);
    let (home, service) = impatient(&server);
    let mut watcher = watcher(&service);
    let mut client = service.client();
    let id = open(&mut client, &home);
    client.done(json!({"type": "prompt", "message": "Hi"}));
    client.settled();
    gone(&mut watcher, &id);
    let file = client.done(json!({"type": "list_sessions"}))["sessions"][0]["path"].clone();
    let path = std::path::PathBuf::from(file.as_str().unwrap());
    let file = std::fs::File::open(&path).unwrap();
    file.try_lock().unwrap();
    let refused = client.refused(json!({"type": "get_state"}));
    assert_eq!(refused["code"], "session_locked", "{refused}");
    drop(file);
    wait_until_free(&path);
    // A child that is forked at this moment holds this process's locks until it executes its program.
    let state = loop {
        let state = client.call(json!({"type": "get_state"}));
        if state["code"] != "session_locked" {
            break state;
        }
        wait_until_free(&path);
    };
    assert_eq!(state["data"]["messageCount"], json!(3), "{state}");
}

/// Another client asks for a session while it is being closed: it gets the session, or the error that it has just ended.
#[test]
fn a_session_that_is_being_closed_opens_again() {
    let server = MockServer::start([Reply::stream(sse::answer("Hi."))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let (mut closing, mut opening) = (service.client(), service.client());
    for client in [&mut closing, &mut opening] {
        client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    }
    let open = json!({"type": "open_session", "cwd": home.project()});
    let id = closing.done(open.clone())["sessionId"].clone();
    closing.prompt("Go.");
    for _ in 0..200 {
        closing.send(&json!({"type": "close_session", "sessionId": id}));
        let mut again = open.clone();
        again["sessionId"] = id.clone();
        let end = Instant::now() + DEADLINE;
        loop {
            let answer = opening.call(again.clone());
            if answer["success"] == json!(true) {
                break;
            }
            assert_eq!(answer["code"], "no_session", "{answer}");
            assert!(Instant::now() < end, "{answer}");
        }
    }
}

#[test]
fn evicted_sessions_come_back_by_any_command() {
    let server = MockServer::start((0..9).map(|_| fine()));
    let (home, service) = daemon(&server, json!({"daemon": {"idleUnloadMs": 1, "maxSessions": 2}}));
    let (mut client, mut watcher) = (service.client(), service.client());
    hello(&mut client);
    watcher.done(json!({"type": "watch_sessions"}));
    let mut ids = Vec::new();
    let mut last = 0;
    for _ in 0..3 {
        let id = open(&mut client, &home);
        client.done(json!({"type": "prompt", "message": "Hi"}));
        last = client.settled().last().unwrap()["seq"].as_u64().unwrap();
        client.done(json!({"type": "detach_session", "sessionId": id}));
        gone(&mut watcher, &id);
        ids.push(id);
    }
    let status = client.done(json!({"type": "daemon_status"}));
    assert_eq!(status["usage"]["sessions"], json!({"used": 2, "limit": 2}), "{status}");
    // The first session was evicted and comes back. Its event numbers continue, above all earlier ones.
    let state = client.done(json!({"type": "get_state", "sessionId": ids[0]}));
    assert_eq!(state["messageCount"], json!(3));
    let attached = client.done(json!({"type": "attach_session", "sessionId": ids[0]}));
    assert_eq!(attached["seq"].as_u64(), Some(last + 1), "{attached}");
    // A closed session does not come back.
    client.done(json!({"type": "close_session", "sessionId": ids[2]}));
    let unknown = client.refused(json!({"type": "get_state", "sessionId": ids[2]}));
    assert_eq!(unknown["code"], "session_not_found", "{unknown}");
    // A session in a file with another name comes back, too.
    let elsewhere = home.root().join("mine.jsonl");
    let file =
        home.session_files().into_iter().find(|file| file.to_string_lossy().contains(&ids[1])).unwrap();
    fs::rename(file, &elsewhere).unwrap();
    let by_path = json!({"type": "open_session", "cwd": home.project(), "path": elsewhere});
    assert_eq!(client.done(by_path)["sessionId"], json!(ids[1]));
    client.done(json!({"type": "detach_session", "sessionId": ids[1]}));
    gone(&mut watcher, &ids[1]);
    client.done(json!({"type": "attach_session", "sessionId": ids[0]}));
    let another = open(&mut client, &home);
    client.done(json!({"type": "detach_session", "sessionId": another}));
    gone(&mut watcher, &another);
    assert_eq!(client.done(json!({"type": "get_state", "sessionId": ids[1]}))["messageCount"], json!(3));
    // Followed sessions stay, so a further session is refused.
    client.done(json!({"type": "attach_session", "sessionId": ids[1]}));
    let another = json!({"type": "open_session", "cwd": home.project()});
    let said = refused(&mut client, another, "daemon.maxSessions");
    assert!(said.starts_with("2 sessions"), "{said}");
    client.done(json!({"type": "prompt", "message": "Still there?"}));
    assert_eq!(text(answers(&client.settled())[0]), "Fine.");
}

/// Sessions without messages do not use up the limit.
#[test]
fn sessions_without_messages_are_evicted_for_others() {
    let server = MockServer::start([fine(), fine()]);
    let (home, service) = daemon(&server, json!({"daemon": {"idleUnloadMs": 1, "maxSessions": 3}}));
    let (mut client, mut watcher) = (service.client(), service.client());
    hello(&mut client);
    watcher.done(json!({"type": "watch_sessions"}));
    let leave = |client: &mut SocketClient, watcher: &mut SocketClient, id: &str| {
        client.done(json!({"type": "detach_session", "sessionId": id}));
        gone(watcher, id);
    };
    // One session has a file and a leaf that no file knows; one has only a command of the user.
    let placed = open(&mut client, &home);
    client.done(json!({"type": "prompt", "message": "Hi"}));
    client.settled();
    let root = client.done(json!({"type": "get_entries"}))["entries"][0]["id"].clone();
    client.done(json!({"type": "navigate_tree", "entryId": root}));
    leave(&mut client, &mut watcher, &placed);
    let kept = open(&mut client, &home);
    client.done(json!({"type": "bash", "command": "echo kept"}));
    leave(&mut client, &mut watcher, &kept);
    let mut blank = String::new();
    for _ in 0..5 {
        let id = open(&mut client, &home);
        if !blank.is_empty() {
            assert_eq!(watcher.event("session_closed")["sessionId"], json!(blank));
        }
        blank = id;
        leave(&mut client, &mut watcher, &blank);
    }
    let state =
        |client: &mut SocketClient, id: &str| client.done(json!({"type": "get_state", "sessionId": id}));
    assert_eq!(state(&mut client, &placed)["messageCount"], json!(0), "it is where it was");
    // The followed empty session stays; the other one comes back from its file.
    client.done(json!({"type": "attach_session", "sessionId": blank}));
    let last = open(&mut client, &home);
    assert_eq!(state(&mut client, &blank)["messageCount"], json!(0));
    leave(&mut client, &mut watcher, &last);
    assert_eq!(state(&mut client, &placed)["messageCount"], json!(3));
    assert_eq!(state(&mut client, &kept)["messageCount"], json!(1));
    // Unsaved content is not evicted.
    let another = json!({"type": "open_session", "cwd": home.project()});
    client.done(json!({"type": "attach_session", "sessionId": placed}));
    let said = refused(&mut client, another, "daemon.maxSessions");
    assert!(said.starts_with("3 sessions"), "{said}");
}

/// An unfollowed session is unloaded before its time when its place is needed.
#[test]
fn idle_sessions_are_evicted_before_their_time() {
    let server = MockServer::start([fine(), fine(), fine(), fine()]);
    let (home, service) = daemon(&server, json!({"daemon": {"maxSessions": 2}}));
    let (mut client, mut watcher) = (service.client(), service.client());
    hello(&mut client);
    watcher.done(json!({"type": "watch_sessions"}));
    let mut earlier: Vec<String> = Vec::new();
    for number in 0_usize..4 {
        let id = open(&mut client, &home);
        client.done(json!({"type": "prompt", "message": "Hi"}));
        client.settled();
        if let Some(before) = number.checked_sub(2) {
            gone(&mut watcher, &earlier[before]);
        }
        client.done(json!({"type": "detach_session", "sessionId": id}));
        earlier.push(id);
    }
    // They come back and evict others.
    for id in &earlier {
        let state = client.done(json!({"type": "get_state", "sessionId": id}));
        assert_eq!(state["messageCount"], json!(3), "{id}");
    }
}

/// An evicted session that could not come back at once can come back later.
#[test]
fn a_client_refused_an_evicted_session_finds_it_later_as_it_was() {
    let server = MockServer::start([fine(), fine()]);
    let (home, service) = daemon(&server, json!({"daemon": {"maxSessions": 1}}));
    let mut client = service.client();
    hello(&mut client);
    let evicted = open(&mut client, &home);
    client.done(json!({"type": "prompt", "message": "Hi"}));
    client.settled();
    let attached = client.done(json!({"type": "attach_session", "sessionId": evicted}));
    client.done(json!({"type": "detach_session", "sessionId": evicted}));
    let other = open(&mut client, &home);
    refused(&mut client, json!({"type": "attach_session", "sessionId": evicted}), "daemon.maxSessions");
    client.done(json!({"type": "close_session", "sessionId": other}));
    let again = client.done(json!({"type": "attach_session", "sessionId": evicted}));
    let last = attached["seq"].as_u64().unwrap();
    assert_eq!(again["seq"].as_u64(), Some(last + 1), "events count on");
}
