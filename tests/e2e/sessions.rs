//! Many clients on the sessions of one daemon, and clients that watch all sessions.

use agentd_e2e::{Gate, Home, MockServer, Reply, Service, SocketClient, Terminal, binaries, ctl, sse};
use serde_json::{Value, json};

use crate::support::{answers, records, roles, text};

fn hello(client: &mut SocketClient) -> Value {
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}))
}

fn open(client: &mut SocketClient, home: &Home) -> String {
    let opened = client.done(json!({"type": "open_session", "cwd": home.project()}));
    opened["sessionId"].as_str().expect("an id").to_owned()
}

/// Asserts that the event numbers have no gap.
fn assert_no_hole(events: &[Value], session: &str, first: u64) {
    let events = events.iter().filter(|line| line["type"] != "response");
    for (expected, event) in (first..).zip(events) {
        assert_eq!((&event["sessionId"], &event["seq"]), (&json!(session), &json!(expected)), "{event}");
    }
}

/// The text of a message from its deltas.
fn streamed(events: &[Value]) -> String {
    let deltas = events.iter().map(|event| &event["assistantMessageEvent"]);
    deltas.filter(|delta| delta["type"] == "text_delta").filter_map(|delta| delta["delta"].as_str()).collect()
}

#[test]
fn a_client_that_says_hello_follows_a_session_by_number() {
    let server = MockServer::start([Reply::stream(sse::answer("Hello."))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    let refused = client.refused(json!({"type": "get_state"}));
    assert_eq!(refused["code"], "no_session", "{refused}");
    let told = hello(&mut client);
    assert_eq!((&told["protocol"], &told["daemon"]["pid"]), (&json!(1), &json!(service.id())));
    let refused = client.refused(json!({"type": "hello", "protocol": 7}));
    assert_eq!(refused["code"], "unsupported", "{refused}");
    let id = open(&mut client, &home);
    client.done(json!({"type": "prompt", "message": "Hi"}));
    let events = client.settled();
    assert_no_hole(&events, &id, 1);
    assert_eq!(text(answers(&events)[0]), "Hello.");
}

#[test]
fn a_late_client_sees_the_rest_of_a_message_and_all_of_them_the_same() {
    let gate = Gate::new();
    let server = MockServer::start([
        Reply::stream(sse::text("First half, ")).gate(&gate).then(sse::answer("second half.")),
        Reply::stream(sse::answer("Again.")),
    ]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let (mut early, mut late, mut leaving) = (service.client(), service.client(), service.client());
    for client in [&mut early, &mut late, &mut leaving] {
        hello(client);
    }
    let id = open(&mut early, &home);
    leaving.done(json!({"type": "attach_session", "sessionId": id}));
    early.done(json!({"type": "prompt", "message": "Hi"}));
    let first = early.all_until("the first half", |line| {
        line["assistantMessageEvent"]["delta"].as_str().is_some_and(|text| text.contains("First half"))
    });
    drop(leaving);
    // The client joins in the middle of the message.
    let attached = late.done(json!({"type": "attach_session", "sessionId": id}));
    assert_eq!(attached["replayed"], json!(false));
    let so_far = &attached["inFlight"]["message"];
    assert_eq!(text(so_far), "First half, ", "{attached}");
    assert_eq!(attached["state"]["isStreaming"], json!(true));
    let seq = attached["seq"].as_u64().unwrap();
    assert_eq!(first.last().unwrap()["seq"], json!(seq));
    gate.open();
    let (mut all, rest) = (first, late.settled());
    all.extend(early.settled());
    assert_no_hole(&all, &id, 1);
    assert_no_hole(&rest, &id, seq + 1);
    assert_eq!(text(so_far) + &streamed(&rest), "First half, second half.");
    assert_eq!(all.last(), rest.last());
    let messages =
        |client: &mut SocketClient| client.done(json!({"type": "get_messages"}))["messages"].clone();
    let told = messages(&mut early);
    assert_eq!(told, messages(&mut late));
    let stored: Vec<Value> = records(&home.session_files()[0])
        .into_iter()
        .filter(|record| record["type"] == "message")
        .map(|record| record["message"].clone())
        .collect();
    assert_eq!(stored.last(), told.as_array().unwrap().last());

    // Missed events are sent again; a number that never existed gives none.
    let epoch = attached["epoch"].clone();
    let mut back = service.client();
    hello(&mut back);
    let again =
        back.done(json!({"type": "attach_session", "sessionId": id, "since": {"epoch": epoch, "seq": 2}}));
    assert_eq!((&again["replayed"], &again["seq"]), (&json!(true), &json!(2)));
    assert_no_hole(&back.settled(), &id, 3);
    let other =
        back.done(json!({"type": "attach_session", "sessionId": id, "since": {"epoch": "x", "seq": 2}}));
    assert_eq!(other["replayed"], json!(false));
    early.done(json!({"type": "prompt", "message": "Again"}));
    assert_eq!(early.settled().last(), back.settled().last());
}

#[test]
fn everyone_opens_the_same_session_and_its_end_is_reported() {
    let server = MockServer::start([Reply::stream(sse::answer("Hello."))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let (mut one, mut two) = (service.client(), service.client());
    hello(&mut one);
    hello(&mut two);
    let id = open(&mut one, &home);
    one.done(json!({"type": "prompt", "message": "Hi"}));
    one.settled();
    let file = home.session_files()[0].clone();
    let link = home.root().join("link.jsonl");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for which in [json!({"path": link}), json!({"sessionId": id}), json!({"continue": true})] {
        let mut command = json!({"type": "open_session", "cwd": home.project()});
        command.as_object_mut().unwrap().extend(which.as_object().unwrap().clone());
        assert_eq!(two.done(command)["sessionId"], json!(id));
    }
    let listed = two.done(json!({"type": "list_sessions"}))["sessions"].clone();
    let [listed] = listed.as_array().unwrap().as_slice() else { panic!("{listed}") };
    assert_eq!((&listed["id"], &listed["live"], &listed["clients"]), (&json!(id), &json!(true), &json!(2)));
    let messages = roles(&file).len();
    assert_eq!((&listed["messageCount"], &listed["firstMessage"]), (&json!(messages), &json!("Hi")));
    let refused = two.refused(json!({"type": "delete_session", "sessionId": id}));
    assert_eq!(refused["code"], "busy", "{refused}");
    two.done(json!({"type": "close_session", "sessionId": id}));
    let closed = one.event("session_closed");
    assert_eq!(closed["sessionId"], json!(id));
    assert_eq!(one.refused(json!({"type": "get_state"}))["code"], "no_session");
    // The file can be opened again.
    let opened = one.done(json!({"type": "open_session", "cwd": home.project(), "path": file}));
    assert_eq!(opened["sessionId"], json!(id));
    assert_eq!(one.done(json!({"type": "get_last_assistant_text"}))["text"], "Hello.");
    one.done(json!({"type": "close_session", "sessionId": id}));
    one.done(json!({"type": "delete_session", "sessionId": id}));
    assert!(!file.exists());
    assert_eq!(one.refused(json!({"type": "delete_session", "sessionId": id}))["code"], "session_not_found");
}

/// A client that followed a session which was closed and opened again talks to the new one.
#[test]
fn a_session_that_was_opened_again_answers_those_of_before() {
    let server = MockServer::always(Reply::stream(sse::answer("Hello.")));
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let (mut one, mut other) = (service.client(), service.client());
    hello(&mut one);
    hello(&mut other);
    let tool = json!({"name": "look_up", "description": "Looks up.", "parameters": {"type": "object"}});
    let id = open(&mut one, &home);
    one.done(json!({"type": "prompt", "message": "Hi"}));
    one.settled();
    one.done(json!({"type": "register_tools", "tools": [tool], "sessionId": id}));
    other.done(json!({"type": "close_session", "sessionId": id}));
    one.event("session_closed");
    other.done(json!({"type": "attach_session", "sessionId": id}));
    assert_eq!(one.done(json!({"type": "get_state", "sessionId": id}))["messageCount"], 3);
    one.done(json!({"type": "abort", "sessionId": id}));
    // It does not follow the new session, which has none of its tools.
    let refused = one.refused(json!({"type": "register_tools", "tools": [tool], "sessionId": id}));
    assert_eq!(refused["code"], "unsupported", "{refused}");
    assert_eq!(one.refused(json!({"type": "get_state"}))["code"], "no_session");
    one.done(json!({"type": "attach_session", "sessionId": id}));
    let tools = one.done(json!({"type": "get_tools"}))["tools"].to_string();
    assert!(!tools.contains("look_up"), "{tools}");
    one.done(json!({"type": "register_tools", "tools": [tool], "sessionId": id}));
    one.done(json!({"type": "prompt", "message": "And?"}));
    assert_eq!(text(answers(&one.settled())[0]), "Hello.");
    assert_eq!(text(answers(&other.settled())[0]), "Hello.");
    one.done(json!({"type": "unregister_tools", "sessionId": id}));
}

#[test]
fn commands_find_their_session_by_name() {
    let server = MockServer::start([Reply::stream(sse::answer("One.")), Reply::stream(sse::answer("Two."))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let (mut client, mut plain) = (service.client(), service.client());
    hello(&mut client);
    let first = open(&mut client, &home);
    let second = open(&mut client, &home);
    assert_ne!(first, second);
    client.done(json!({"type": "prompt", "message": "Hi", "sessionId": first}));
    let events = client.settled();
    assert!(events.iter().all(|event| event["sessionId"] == json!(first)), "{events:?}");
    assert_eq!(client.done(json!({"type": "get_state"}))["sessionId"], json!(second));
    client.done(json!({"type": "detach_session", "sessionId": second}));
    assert_eq!(client.refused(json!({"type": "get_state"}))["code"], "no_session");
    assert_eq!(client.refused(json!({"type": "get_state", "sessionId": "x"}))["code"], "session_not_found");
    // A client that does not follow it gets the response and no events.
    plain.done(json!({"type": "prompt", "message": "Hi", "sessionId": second}));
    plain.done(json!({"type": "open_session", "cwd": home.project(), "ephemeral": true}));
    let state = plain.done(json!({"type": "get_state", "sessionId": second}));
    assert_eq!(state["sessionId"], json!(second));
    plain.end_input();
    assert_eq!(plain.closed(), Vec::<Value>::new());
    // A client that leaves stops nothing.
    client.done(json!({"type": "attach_session", "sessionId": second}));
    while client.done(json!({"type": "get_state"}))["isStreaming"] == json!(true) {
        client.event("agent_settled");
    }
    assert_eq!(client.done(json!({"type": "get_last_assistant_text"}))["text"], "Two.");
}

#[test]
fn an_observer_only_looks() {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let (mut owner, mut observer) = (service.client(), service.client());
    let id = open(&mut owner, &home);
    observer
        .done(json!({"type": "hello", "protocol": 1, "role": "observe", "capabilities": {"sessions": true}}));
    observer.done(json!({"type": "attach_session", "sessionId": id}));
    observer.done(json!({"type": "get_state"}));
    for kind in ["prompt", "steer", "abort", "close_session", "shutdown", "login"] {
        let command = json!({"type": kind, "message": "x", "sessionId": id, "provider": "x", "key": "x"});
        assert_eq!(observer.refused(command)["code"], "forbidden", "{kind}");
    }
}

#[test]
fn a_client_that_does_not_read_stalls_nobody() {
    let text_of_many = "0123456789".repeat(2_000);
    let flood: String = (0..200).map(|_| sse::text(&text_of_many)).collect();
    let server = MockServer::start([Reply::stream(flood + &sse::answer("End."))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let (mut reader, mut sleeper, mut plain) = (service.client(), service.client(), service.client());
    hello(&mut reader);
    hello(&mut sleeper);
    let id = open(&mut reader, &home);
    sleeper.done(json!({"type": "attach_session", "sessionId": id}));
    plain.done(json!({"type": "attach_session", "sessionId": id}));
    reader.done(json!({"type": "prompt", "message": "Flood"}));
    let events = reader.settled();
    assert_no_hole(&events, &id, 1);
    // The slow client reads the lines from before it was cut off, and learns where they ended.
    let before = sleeper.all_until("lagged", |line| line["type"] == "lagged");
    let (lagged, before) = before.split_last().unwrap();
    assert_no_hole(before, &id, 1);
    assert_eq!(lagged["fromSeq"], json!(before.len() + 1), "{lagged}");
    let attached = sleeper.done(json!({"type": "attach_session", "sessionId": id}));
    assert_eq!(attached["seq"], json!(events.len()));
    // A plain client would not understand `lagged`: it gets an error and is disconnected.
    let rest = plain.closed();
    assert_eq!(rest.last().unwrap()["success"], json!(false), "{:?}", rest.last());
    assert_eq!(roles(&home.session_files()[0]).last().unwrap(), "assistant");
}

#[test]
fn agentctl_lists_and_removes_with_a_daemon_and_without() {
    let server =
        MockServer::start([Reply::stream(sse::answer("Hello.")), Reply::stream(sse::answer("Hello."))]);
    let home = Home::with_model(&server);
    let none = ctl::run(&home, &["sessions"]);
    assert_eq!((none.code, none.stdout.as_str()), (1, ""), "{none:?}");
    assert_eq!(ctl::run(&home, &["prompt", "What about zebras?"]).code, 0);
    assert_eq!(ctl::run(&home, &["prompt", "And lions?"]).code, 0);
    let listed = ctl::run(&home, &["sessions"]);
    assert_eq!((listed.code, listed.stdout.lines().count()), (0, 2), "{listed:?}");
    let line: Vec<&str> = listed.stdout.lines().next().unwrap().split('\t').collect();
    let project = home.project().display().to_string();
    assert_eq!((line.len(), line[1], line[2], line[3]), (8, "And lions?", "fake/fake", "1"), "{listed:?}");
    assert_eq!((line[6], line[7]), (project.as_str(), "unloaded"), "{listed:?}");
    let found = ctl::run(&home, &["sessions", "--json", "ZEBRAS"]);
    let found: Value = serde_json::from_str(&found.stdout).unwrap();
    let [found] = found["sessions"].as_array().unwrap().as_slice() else { panic!("{found}") };
    let id = found["id"].as_str().unwrap();

    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "open_session", "cwd": home.project(), "sessionId": id}));
    let live = ctl::run(&home, &["sessions", "--live"]);
    assert!(live.stdout.ends_with("\tloaded\n") && live.stdout.lines().count() == 1, "{live:?}");
    let busy = ctl::run(&home, &["rm", id]);
    assert_eq!(busy.code, 1, "{busy:?}");
    client.done(json!({"type": "close_session", "sessionId": id}));
    assert_eq!(ctl::run(&home, &["rm", id]).code, 0);
    assert_eq!(home.session_files().len(), 1);
}

#[test]
fn agentctl_attach_shows_talks_and_leaves_the_session_alone() {
    let gate = Gate::new();
    let server = MockServer::start([
        Reply::stream(sse::text("Begun before. ")).gate(&gate).then(sse::answer("Ended after.")),
        Reply::stream(sse::answer("Typed, and answered.")),
    ]);
    let home = Home::with_model(&server);
    let none = ctl::run(&home, &["attach", "x"]);
    assert_eq!(none.code, 3, "{none:?}");
    assert!(none.stderr.contains("agentctl up"), "{none:?}");
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    hello(&mut client);
    let id = open(&mut client, &home);
    let wrong = ctl::run(&home, &["attach", "nothing-like-it"]);
    assert_eq!(wrong.code, 1, "{wrong:?}");
    client.done(json!({"type": "prompt", "message": "Hi"}));
    client.event("message_update");
    let mut terminal = Terminal::start(&home, &binaries::agentctl(), &["attach", "--plain", &id]);
    terminal.wait_for("at work; type to talk to it");
    terminal.wait_for("Begun before.");
    gate.open();
    terminal.wait_for("Begun before. Ended after.");
    client.event("agent_settled");
    terminal.press("And now?\r");
    terminal.wait_for("Typed, and answered.");
    let settled = client.settled();
    assert_eq!(text(answers(&settled)[0]), "Typed, and answered.");
    terminal.press("\u{4}");
    let done = terminal.finish();
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(client.done(json!({"type": "get_state"}))["isStreaming"], json!(false));

    let mut watching = Terminal::start(&home, &binaries::agentctl(), &["attach", "--observe", &id]);
    watching.wait_for("Ctrl-C leaves it");
    client.done(json!({"type": "close_session", "sessionId": id}));
    let done = watching.finish();
    assert_eq!((done.code, done.stdout.contains("The session was closed.")), (0, true), "{done:?}");
}

#[test]
fn a_watcher_hears_of_sessions_that_it_does_not_follow() {
    let gate = Gate::new();
    let server =
        MockServer::start([Reply::stream(sse::text("On it.")).gate(&gate).then(sse::answer(" Done."))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let (mut watcher, mut client) = (service.client(), service.client());
    watcher.done(json!({"type": "hello", "protocol": 1, "role": "observe"}));
    watcher.done(json!({"type": "watch_sessions"}));
    let id = client.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone();
    let opened = watcher.event("session_opened");
    assert_eq!((&opened["session"]["id"], &opened["session"]["live"]), (&id, &json!(true)), "{opened}");
    client.done(json!({"type": "prompt", "message": "What is it?"}));
    let change = |what: &'static str, value: serde_json::Value| {
        move |line: &serde_json::Value| line["type"] == "session_changed" && line["session"][what] == value
    };
    let at_work = watcher.until("work", change("isStreaming", json!(true)));
    assert_eq!(at_work["session"]["clients"], json!(1), "{at_work}");
    gate.open();
    let idle = watcher.until("its end", change("isStreaming", json!(false)));
    assert_eq!(idle["session"]["firstMessage"], "What is it?", "{idle}");
    assert_eq!(idle["session"]["messageCount"], json!(3), "{idle}");
    client.done(json!({"type": "set_session_name", "name": "mine"}));
    watcher.until("its name", change("name", json!("mine")));
    drop(client);
    watcher.until("a client less", change("clients", json!(0)));

    watcher.done(json!({"type": "unwatch_sessions"}));
    let mut other = service.client();
    other.done(json!({"type": "attach_session", "sessionId": id}));
    watcher.send(&json!({"id": "last", "type": "daemon_status"}));
    assert_eq!(watcher.line()["id"], "last");
}

#[test]
fn a_subscriber_that_watches_gets_the_end_once_after_the_last_event() {
    let gate = Gate::new();
    let server = MockServer::start([Reply::stream(sse::text("Half")).gate(&gate).then(sse::answer("."))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let (mut both, mut closer) = (service.client(), service.client());
    both.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    both.done(json!({"type": "watch_sessions"}));
    let id = both.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone();
    both.done(json!({"type": "prompt", "message": "Hi"}));
    closer.done(json!({"type": "close_session", "sessionId": id, "mode": "abort"}));
    let lines = both.all_until("the end", |line| line["type"] == "session_closed");
    assert!(lines.iter().any(|line| line["type"] == "agent_settled"), "the end of its run came before");
    both.send(&json!({"id": "last", "type": "daemon_status"}));
    let rest = both.all_until("an answer", |line| line["id"] == "last");
    assert!(rest.iter().all(|line| line["type"] != "session_closed"), "{rest:?}");
    gate.open();
}
