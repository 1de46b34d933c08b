//! `daemon.maxSessions`: sessions that nobody uses make place for others, and come back as if nothing had been.

use std::fs;

use agentd_e2e::{MockServer, SocketClient};
use serde_json::json;

use crate::{
    limits::{daemon, fine, hello, open, refused},
    support::{answers, text},
    unload::gone,
};

#[test]
fn sessions_that_make_place_for_others_come_back_by_any_command() {
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
    // The first had to go: it is there all the same. Its events count on, and no number of before is the newest of now.
    let state = client.done(json!({"type": "get_state", "sessionId": ids[0]}));
    assert_eq!(state["messageCount"], json!(3));
    let attached = client.done(json!({"type": "attach_session", "sessionId": ids[0]}));
    assert_eq!(attached["seq"].as_u64(), Some(last + 1), "{attached}");
    // One that was closed is not.
    client.done(json!({"type": "close_session", "sessionId": ids[2]}));
    let unknown = client.refused(json!({"type": "get_state", "sessionId": ids[2]}));
    assert_eq!(unknown["code"], "session_not_found", "{unknown}");
    // One whose file does not have its name comes back, too.
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
    // Those that are followed stay, and then there is no place.
    client.done(json!({"type": "attach_session", "sessionId": ids[1]}));
    let another = json!({"type": "open_session", "cwd": home.project()});
    let said = refused(&mut client, another, "daemon.maxSessions");
    assert!(said.starts_with("2 sessions"), "{said}");
    client.done(json!({"type": "prompt", "message": "Still there?"}));
    assert_eq!(text(answers(&client.settled())[0]), "Fine.");
}

/// Whoever opens sessions and says nothing in them does not use them up.
#[test]
fn sessions_in_which_nothing_was_said_make_place_for_others() {
    let server = MockServer::start([fine(), fine()]);
    let (home, service) = daemon(&server, json!({"daemon": {"idleUnloadMs": 1, "maxSessions": 3}}));
    let (mut client, mut watcher) = (service.client(), service.client());
    hello(&mut client);
    watcher.done(json!({"type": "watch_sessions"}));
    let leave = |client: &mut SocketClient, watcher: &mut SocketClient, id: &str| {
        client.done(json!({"type": "detach_session", "sessionId": id}));
        gone(watcher, id);
    };
    // One has a file, and a place in it that no file knows; in one nothing was said but by the user's own command.
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
    // Followed, the blank one stays; the other one comes back from its file.
    client.done(json!({"type": "attach_session", "sessionId": blank}));
    let last = open(&mut client, &home);
    assert_eq!(state(&mut client, &blank)["messageCount"], json!(0));
    leave(&mut client, &mut watcher, &last);
    assert_eq!(state(&mut client, &placed)["messageCount"], json!(3));
    assert_eq!(state(&mut client, &kept)["messageCount"], json!(1));
    // What is in no file is not given up.
    let another = json!({"type": "open_session", "cwd": home.project()});
    client.done(json!({"type": "attach_session", "sessionId": placed}));
    let said = refused(&mut client, another, "daemon.maxSessions");
    assert!(said.starts_with("3 sessions"), "{said}");
}

/// A session that nobody follows leaves memory before its time where its place is wanted.
#[test]
fn sessions_without_anything_to_do_make_place_before_their_time() {
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
    // They come back, in the place of others.
    for id in &earlier {
        let state = client.done(json!({"type": "get_state", "sessionId": id}));
        assert_eq!(state["messageCount"], json!(3), "{id}");
    }
}

/// A session that was forgotten and could not come back at once is not forgotten altogether.
#[test]
fn who_is_refused_a_forgotten_session_finds_it_later_as_it_was() {
    let server = MockServer::start([fine(), fine()]);
    let (home, service) = daemon(&server, json!({"daemon": {"maxSessions": 1}}));
    let mut client = service.client();
    hello(&mut client);
    let forgotten = open(&mut client, &home);
    client.done(json!({"type": "prompt", "message": "Hi"}));
    client.settled();
    let attached = client.done(json!({"type": "attach_session", "sessionId": forgotten}));
    client.done(json!({"type": "detach_session", "sessionId": forgotten}));
    let other = open(&mut client, &home);
    refused(&mut client, json!({"type": "attach_session", "sessionId": forgotten}), "daemon.maxSessions");
    client.done(json!({"type": "close_session", "sessionId": other}));
    let again = client.done(json!({"type": "attach_session", "sessionId": forgotten}));
    let last = attached["seq"].as_u64().unwrap();
    assert_eq!(again["seq"].as_u64(), Some(last + 1), "events count on");
}
