//! Request keys: a command that is sent again after a lost response is done once and answered each time.

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, Service, sse};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{assert_says, complaint, ended, records, text};

fn keyed(kind: &str, message: &str, key: &str) -> Value {
    json!({"type": kind, "message": message, "requestKey": key})
}

/// The entries with a request key in the only session file: key, disposition, role.
fn recorded(home: &Home) -> Vec<(String, Value, String)> {
    let files = home.session_files();
    assert_eq!(files.len(), 1);
    let entries = records(&files[0]).into_iter();
    entries
        .filter_map(|entry| {
            let key = entry["requestKey"].as_str()?.to_owned();
            let role = entry["message"]["role"].as_str().expect("a message").to_owned();
            Some((key, entry["requestDisposition"].clone(), role))
        })
        .collect()
}

fn users(events: &[Value]) -> Vec<String> {
    ended(events, "user").into_iter().map(text).collect()
}

#[test]
fn a_prompt_sent_twice_runs_once() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    let first = daemon.call(keyed("prompt", "Go.", "the-key-1"));
    let settled = daemon.settled();
    // The same response, with the name and id of the repetition.
    let again = daemon.call(keyed("prompt", "Go.", "the-key-1"));
    assert_ne!(again["id"], first["id"]);
    assert_eq!((&again["success"], &again["data"]), (&json!(true), &first["data"]));
    let steered = daemon.done(keyed("steer", "Go.", "the-key-1"));
    assert_eq!(steered, json!({"disposition": "started"}));
    assert_eq!(daemon.done(json!({"type": "get_state"}))["pendingMessageCount"], 0);
    daemon.done(keyed("prompt", "Go on.", "the-key-2"));
    let more = daemon.settled();
    assert_eq!((users(&settled), users(&more)), (vec!["Go.".into()], vec!["Go on.".into()]));
    let started = json!("started");
    assert_eq!(
        recorded(&home),
        [("the-key-1".into(), started.clone(), "user".into()), ("the-key-2".into(), started, "user".into())]
    );
    // The key belongs to the entry: no event, list of messages or model sees it.
    let messages = daemon.done(json!({"type": "get_messages"}));
    let requests = server.requests();
    let bodies = requests.iter().map(|request| request.body.to_string());
    let seen = settled.iter().chain(&more).map(Value::to_string).chain([messages.to_string()]);
    for text in seen.chain(bodies) {
        assert!(!text.contains("the-key"), "{text}");
    }
    assert_eq!(requests.len(), 2);
    let entries = daemon.done(json!({"type": "get_entries"})).to_string();
    assert!(entries.contains(r#""requestKey":"the-key-1","requestDisposition":"started""#), "{entries}");
}

#[test]
fn a_client_that_comes_back_repeats_what_it_does_not_know_the_answer_of() {
    let gate = Gate::new();
    let server = MockServer::start([
        Reply::stream(sse::text("Hm.")).gate(&gate).then(sse::calls(&[(
            "c1",
            "bash",
            json!({"command": "true"}),
        )])),
        Reply::stream(sse::answer("Done.")),
    ]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut lost = service.client();
    let opened = lost.done(json!({"type": "open_session", "cwd": home.project()}));
    let id = opened["sessionId"].as_str().expect("an id").to_owned();
    lost.send(&keyed("prompt", "Go.", "k"));
    lost.send(&keyed("follow_up", "And then?", "f"));
    lost.event("message_update");
    drop(lost);
    let mut client = service.client();
    client.done(json!({"type": "attach_session", "sessionId": id}));
    // Without the key, the busy session would refuse this.
    assert_eq!(client.done(keyed("prompt", "Go.", "k")), json!({"disposition": "started"}));
    assert_eq!(client.done(keyed("follow_up", "And then?", "f")), json!({"disposition": "queued"}));
    assert_eq!(client.done(json!({"type": "get_state"}))["pendingMessageCount"], 1);
    server.push(Reply::stream(sse::answer("Then this.")));
    gate.open();
    let events = client.settled();
    assert_eq!(users(&events), ["And then?"]);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn repetitions_wait_while_the_first_is_checked() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::new();
    let mut models = agentd_e2e::home::models(&server.base_url());
    // The model's key comes from a command that waits for the test.
    let go = home.root().join("go");
    let command = format!("!until [ -e {} ]; do sleep 0.01; done; echo secret", go.display());
    models["providers"]["fake"]["apiKey"] = json!(command);
    home.configure(&models);
    let mut daemon = Daemon::start(&home, &[]);
    for id in ["a", "b", "c"] {
        let mut prompt = keyed("prompt", "Go.", "k");
        prompt["id"] = json!(id);
        daemon.send(&prompt);
    }
    // The daemon has read all three and answered none.
    assert_eq!(daemon.done(json!({"type": "get_state"}))["isStreaming"], true);
    std::fs::write(go, "").expect("a file in the home");
    let lines = daemon.settled();
    let responses: Vec<_> = lines.iter().filter(|line| line["type"] == "response").collect();
    let ids: Vec<_> = responses.iter().map(|line| line["id"].as_str().expect("an id")).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    assert!(responses.iter().all(|line| line["data"] == json!({"disposition": "started"})), "{responses:?}");
    assert_eq!(users(&lines), ["Go."]);
}

#[test]
fn a_refused_command_leaves_no_trace_of_its_key() {
    let gate = Gate::new();
    let server = MockServer::start([Reply::stream(sse::text("Hm.")).gate(&gate).then(sse::answer("Ok."))]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "prompt", "message": "Go."}));
    daemon.event("message_update");
    assert_eq!(daemon.refused(keyed("prompt", "Me too.", "k"))["code"], "busy");
    gate.open();
    daemon.settled();
    server.push(Reply::stream(sse::answer("Now.")));
    assert_eq!(daemon.done(keyed("prompt", "Me too.", "k")), json!({"disposition": "started"}));
    assert_eq!(users(&daemon.settled()), ["Me too."]);
}

#[test]
fn keys_outlive_a_kill() {
    let gate = Gate::new();
    let server = MockServer::start([
        Reply::stream(sse::text("Hm.")).gate(&gate).then(sse::answer("One.")),
        Reply::stream(sse::answer("Two.")),
        Reply::stream(sse::text("Half")).hang(),
    ]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(keyed("prompt", "First.", "p1"));
    daemon.event("message_update");
    daemon.done(keyed("follow_up", "Second.", "q1"));
    gate.open();
    daemon.settled();
    let printed =
        json!({"type": "bash", "command": "echo once >> ran; echo out; exit 3", "requestKey": "b1"});
    let output = daemon.done(printed.clone());
    assert_eq!(output, json!({"output": "out\n", "exitCode": 3, "cancelled": false, "truncated": false}));
    daemon.done(keyed("prompt", "Third.", "p2"));
    daemon.event("message_update");
    daemon.done(keyed("steer", "Waits.", "q2"));
    daemon.signal(Signal::KILL);
    drop(daemon);

    let mut daemon = Daemon::start(&home, &["--continue"]);
    let before = daemon.done(json!({"type": "get_entries"}));
    assert_eq!(daemon.done(keyed("prompt", "First.", "p1")), json!({"disposition": "started"}));
    assert_eq!(daemon.done(keyed("follow_up", "Second.", "q1")), json!({"disposition": "queued"}));
    assert_eq!(daemon.done(keyed("prompt", "Third.", "p2")), json!({"disposition": "started"}));
    assert_eq!(daemon.done(printed), output);
    assert_eq!(daemon.done(json!({"type": "get_entries"})), before, "nothing was done");
    let ran = std::fs::read_to_string(home.project().join("ran")).expect("the file that the command wrote");
    assert_eq!(ran, "once\n");
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!((&state["isStreaming"], &state["pendingMessageCount"]), (&json!(false), &json!(1)));
    assert_eq!(daemon.done(keyed("steer", "Waits.", "q2")), json!({"disposition": "queued"}));
    assert_eq!(daemon.done(json!({"type": "get_state"}))["pendingMessageCount"], 1);
}

#[test]
fn a_bash_command_sent_twice_runs_once_and_both_get_its_end() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.done(json!({"type": "bash", "command": "mkfifo pipe"}));
    for id in ["a", "b"] {
        daemon.send(&json!({"id": id, "type": "bash", "command": "cat pipe", "requestKey": "k"}));
    }
    // There is one reader: a second one would wait for a writer of its own.
    daemon.done(json!({"type": "bash", "command": "echo through > pipe"}));
    let through = json!({"output": "through\n", "exitCode": 0, "cancelled": false, "truncated": false});
    let mut answered = Vec::new();
    while answered.len() < 2 {
        let line = daemon.until("an answer", |line| line["type"] == "response");
        assert_eq!(line["data"], through);
        answered.push(line["id"].as_str().expect("an id").to_owned());
    }
    assert_eq!(answered, ["a", "b"]);
    let again = json!({"type": "bash", "command": "cat pipe", "requestKey": "k"});
    assert_eq!(daemon.done(again), through);

    // An aborted command is answered as aborted, each time.
    let long = json!({"id": "l", "type": "bash", "command": "echo up; sleep 1000", "requestKey": "long"});
    daemon.send(&long);
    daemon.event("bash_execution_update");
    daemon.send(&json!({"id": "m", "type": "bash", "command": "", "requestKey": "long"}));
    daemon.done(json!({"type": "abort_bash"}));
    for id in ["l", "m"] {
        let line = daemon.until("an answer", |line| line["type"] == "response");
        assert_eq!((&line["id"], &line["data"]["cancelled"]), (&json!(id), &json!(true)));
    }
}

/// The result of a command that ends during a run is stored after it, with its key.
#[test]
fn a_bash_command_beside_a_run_keeps_its_key() {
    let gate = Gate::new();
    let server = MockServer::start([Reply::stream(sse::text("Hm.")).gate(&gate).then(sse::answer("Ok."))]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "prompt", "message": "Go."}));
    daemon.event("message_update");
    let command = json!({"type": "bash", "command": "echo beside", "requestKey": "b"});
    let output = daemon.done(command.clone());
    assert_eq!(daemon.done(command.clone()), output);
    assert_eq!(recorded(&home), []);
    gate.open();
    daemon.settled();
    assert_eq!(recorded(&home), [("b".into(), Value::Null, "bashExecution".into())]);
    assert_eq!(daemon.done(command), output);
}

#[test]
fn taking_messages_back_frees_their_keys() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(keyed("steer", "One.", "k"));
    daemon.done(keyed("steer", "One.", "k"));
    assert_eq!(daemon.done(json!({"type": "clear_queue"}))["steering"], json!(["One."]));
    assert_eq!(daemon.done(keyed("prompt", "Go.", "k")), json!({"disposition": "started"}));
    assert_eq!(users(&daemon.settled()), ["Go."]);
    assert_eq!(recorded(&home), [("k".into(), json!("started"), "user".into())]);
}

#[test]
fn keys_that_cannot_be() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    for (key, got) in [(json!(""), "got 0"), (json!("k".repeat(257)), "got 257"), (json!(7), "got 7")] {
        for mut command in
            [keyed("prompt", "Go.", ""), keyed("steer", "Go.", ""), keyed("follow_up", "Go.", "")]
        {
            command["requestKey"] = key.clone();
            let refused = daemon.refused(command);
            assert_eq!(refused["code"], "invalid_field");
            assert_says(&complaint(&refused), &["requestKey", "expected", got]);
        }
    }
    let longest = json!({"type": "bash", "command": "echo x", "requestKey": "k".repeat(256)});
    assert_eq!(daemon.done(longest)["output"], "x\n");
    let none = json!({"type": "bash", "command": "echo x", "requestKey": null});
    assert_eq!(daemon.done(none)["output"], "x\n");
    // Responses to messages and to commands have different shapes.
    daemon.done(json!({"type": "bash", "command": "true", "requestKey": "b"}));
    let refused = daemon.refused(keyed("steer", "Go.", "b"));
    assert_eq!(refused["code"], "invalid_field");
    assert_says(&complaint(&refused), &["requestKey", "bash command"]);
}
