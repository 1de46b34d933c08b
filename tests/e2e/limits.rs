//! Limits that a setting lowers and a client reaches: the client gets the limit and the setting, and all others work on.

use std::{
    fs,
    io::{BufRead, BufReader, Write as _},
    os::unix::net::UnixStream,
    path::PathBuf,
    time::Instant,
};

use agentd_e2e::{
    DEADLINE, Daemon, Gate, Home, MockServer, Reply, Service, SocketClient, binaries, ctl, sse,
};
use serde_json::{Value, json};

use crate::support::{answers, ended, text};

pub(crate) fn daemon(server: &MockServer, settings: Value) -> (Home, Service) {
    let home = Home::with_model(server);
    home.settings(&settings);
    let service = Service::start(&home, &[]);
    (home, service)
}

pub(crate) fn hello(client: &mut SocketClient) -> Value {
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}))
}

pub(crate) fn open(client: &mut SocketClient, home: &Home) -> String {
    let opened = client.done(json!({"type": "open_session", "cwd": home.project()}));
    opened["sessionId"].as_str().expect("an id").to_owned()
}

/// Sends a command that is refused for a limit; returns the error, whose hint names the setting.
#[track_caller]
pub(crate) fn refused(client: &mut SocketClient, command: Value, setting: &str) -> String {
    let answer = client.refused(command);
    check(&answer, setting)
}

#[track_caller]
fn check(answer: &Value, setting: &str) -> String {
    assert_eq!(answer["code"], "limit_reached", "{answer}");
    let hint = answer["hint"].as_str().expect("a hint");
    assert!(hint.contains(setting), "{answer}");
    answer["error"].as_str().expect("a text").to_owned()
}

/// Checks that another client can work in a session of its own.
fn works(service: &Service, home: &Home) {
    let mut other = service.client();
    open(&mut other, home);
    let events = other.prompt("And you?");
    assert_eq!(text(answers(&events)[0]), "Fine.");
}

pub(crate) fn fine() -> Reply {
    Reply::stream(sse::answer("Fine."))
}

#[test]
fn messages_have_a_length_and_queues_have_an_end() {
    let gate = Gate::new();
    let first = Reply::stream(sse::text("Well ")).gate(&gate).then(sse::answer("then."));
    let server = MockServer::start([first, fine(), fine(), fine()]);
    let limits = json!({"maxMessageBytes": 100, "maxQueuedMessages": 2, "maxQueuedBytes": 150});
    let (home, service) = daemon(&server, json!({ "limits": limits }));
    let mut client = service.client();
    open(&mut client, &home);
    let (fits, long) = ("x".repeat(100), "x".repeat(101));
    let said = refused(&mut client, json!({"type": "prompt", "message": long}), "limits.maxMessageBytes");
    assert!(said.contains("101") && said.contains("100"), "{said}");
    let image = json!({"type": "image", "mimeType": "image/png", "data": "x".repeat(100)});
    let with_image = json!({"type": "prompt", "message": "x", "images": [image]});
    refused(&mut client, with_image, "limits.maxMessageBytes");
    client.done(json!({"type": "prompt", "message": fits}));
    client.event("message_update");
    for kind in ["steer", "follow_up", "abort_and_prompt"] {
        refused(&mut client, json!({"type": kind, "message": long}), "limits.maxMessageBytes");
    }
    client.done(json!({"type": "follow_up", "message": fits}));
    refused(&mut client, json!({"type": "steer", "message": &fits[..51]}), "limits.maxQueuedBytes");
    client.done(json!({"type": "steer", "message": "short"}));
    refused(&mut client, json!({"type": "follow_up", "message": "x"}), "limits.maxQueuedMessages");
    works(&service, &home);
    // Messages that were taken back free their room.
    client.done(json!({"type": "clear_queue"}));
    client.done(json!({"type": "follow_up", "message": fits}));
    gate.open();
    client.settled();
    let texts = client.done(json!({"type": "get_messages"}))["messages"].to_string();
    assert!(texts.contains("Well then.") && texts.contains("Fine."), "{texts}");
}

#[test]
fn a_session_that_is_full_is_read_and_not_written() {
    let server = MockServer::start((0..20).map(|_| fine()));
    let (home, service) = daemon(&server, json!({"limits": {"maxSessionBytes": 20_000}}));
    let mut client = service.client();
    let id = open(&mut client, &home);
    let message = json!({"type": "prompt", "message": "y".repeat(10_000)});
    client.done(message.clone());
    client.settled();
    client.done(message.clone());
    client.settled();
    let said = refused(&mut client, message, "limits.maxSessionBytes");
    assert!(said.contains("20000"), "{said}");
    assert!(client.done(json!({"type": "get_messages"}))["messages"].as_array().unwrap().len() >= 4);
    works(&service, &home);
    // The limit also holds after the session was closed; a file of more than twice the limit is not opened.
    client.done(json!({"type": "close_session", "sessionId": id}));
    client.done(json!({"type": "attach_session", "sessionId": id}));
    client.done(json!({"type": "close_session", "sessionId": id}));
    let file = home.session_files().into_iter().find(|file| file.to_string_lossy().contains(&id)).unwrap();
    let mut content = fs::read_to_string(&file).unwrap();
    let more = json!({"type": "custom", "id": "0a0a0a0a", "parentId": null, "timestamp": "2026-01-01T00:00:00.000Z",
        "customType": "x", "data": "z".repeat(20_000)});
    content.push_str(&format!("{more}\n"));
    fs::write(&file, content).unwrap();
    let said =
        refused(&mut client, json!({"type": "attach_session", "sessionId": id}), "limits.maxSessionBytes");
    assert!(said.contains(&*file.display().to_string()), "{said}");
    let copy = json!({"type": "open_session", "cwd": home.project(), "args": ["--fork", file]});
    refused(&mut client, copy, "limits.maxSessionBytes");
    works(&service, &home);
}

/// The only line that a refused connection receives.
fn only_line(service: &Service) -> Value {
    let mut stream = UnixStream::connect(service.socket()).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    // The connection without a place may be closed before the write.
    let _ = stream.write_all(b"{\"type\":\"list_sessions\"}\n");
    let mut lines = BufReader::new(stream).lines();
    let line = lines.next().expect("a line").unwrap();
    assert!(lines.next().is_none_or(|end| end.is_err()), "the connection ends");
    serde_json::from_str(&line).unwrap()
}

#[test]
fn one_client_too_many_is_told_and_left() {
    let server = MockServer::start([fine()]);
    let (home, service) = daemon(&server, json!({"daemon": {"maxClients": 2}}));
    let (mut one, two) = (service.client(), service.client());
    one.done(json!({"type": "daemon_status"}));
    for _ in 0..20 {
        let said = check(&only_line(&service), "daemon.maxClients");
        assert!(said.starts_with("2 clients"), "{said}");
    }
    let full = ctl::run(&home, &["sessions"]);
    assert!(full.stderr.contains("daemon.maxClients"), "{full:?}");
    open(&mut one, &home);
    assert_eq!(text(answers(&one.prompt("Hi"))[0]), "Fine.");
    drop(two);
    let end = Instant::now() + DEADLINE;
    while one.done(json!({"type": "daemon_status"}))["usage"]["clients"]["used"] != json!(1) {
        assert!(Instant::now() < end, "a client that left is still counted");
    }
    service.client().done(json!({"type": "daemon_status"}));
}

#[test]
fn one_client_follows_so_many_sessions_and_waits_for_so_many_answers() {
    let gate = Gate::new();
    let held = Reply::stream(sse::text("Well ")).gate(&gate).then(sse::answer("then."));
    let server = MockServer::start([held, fine()]);
    let settings = json!({"maxFollowedSessions": 2, "maxPendingCommands": 1});
    let (home, service) = daemon(&server, json!({ "daemon": settings }));
    let mut client = service.client();
    hello(&mut client);
    let (first, second) = (open(&mut client, &home), open(&mut client, &home));
    let another = json!({"type": "open_session", "cwd": home.project()});
    refused(&mut client, another, "daemon.maxFollowedSessions");
    // It can attach again to sessions that it follows.
    client.done(json!({"type": "attach_session", "sessionId": first}));
    client.done(json!({"type": "detach_session", "sessionId": second}));
    client.done(json!({"type": "prompt", "message": "Hi", "sessionId": first}));
    client.event("message_update");
    client.send(&json!({"id": "closing", "type": "close_session", "sessionId": first, "mode": "drain"}));
    refused(&mut client, json!({"type": "list_sessions"}), "daemon.maxPendingCommands");
    // The limit does not count commands that sessions answer.
    client.done(json!({"type": "get_state", "sessionId": first}));
    works(&service, &home);
    gate.open();
    client.until("the close", |line| line["id"] == "closing");
    client.done(json!({"type": "list_sessions"}));
    // Closed sessions do not count.
    for _ in 0..3 {
        let id = open(&mut client, &home);
        client.done(json!({"type": "close_session", "sessionId": id}));
    }
}

/// Starts the daemon with these arguments of `ulimit`.
fn with_files(home: &Home, limits: &str) -> Service {
    let mut command = home.command("prlimit");
    command.arg(format!("--nofile={limits}")).arg(binaries::agentd()).arg("serve");
    Service::start_command(command).unwrap_or_else(|ended| panic!("{ended:?}"))
}

#[test]
fn the_daemon_may_open_more_files_than_its_commands() {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    let service = with_files(&home, "256:4096");
    let mut client = service.client();
    open(&mut client, &home);
    let ran = client.done(json!({"type": "bash", "command": "ulimit -Sn; ulimit -Hn"}));
    assert_eq!(ran["output"], "256\n4096\n", "{ran}");
    let status = client.done(json!({"type": "daemon_status"}));
    assert_eq!(status["usage"]["openFiles"]["limit"], json!(4096), "{status}");
    assert!(status["usage"]["openFiles"]["used"].as_u64() > Some(5), "{status}");
}

#[test]
fn without_descriptors_what_runs_goes_on_and_what_is_new_is_told() {
    let gate = Gate::new();
    let calls = sse::calls(&[("c1", "bash", json!({"command": "echo still here"}))]);
    let held = Reply::stream(sse::text("Look: ")).gate(&gate).then(calls);
    let server = MockServer::start([held, fine(), fine()]);
    let home = Home::with_model(&server);
    let files: Vec<String> = (0..9).map(|number| large_session(&home, number, 0)).collect();
    let service = with_files(&home, "64:64");
    let mut client = service.client();
    open(&mut client, &home);
    // The process guard runs from the first command on, so that later ones need no descriptors for its start.
    client.done(json!({"type": "bash", "command": "true"}));
    client.send(&json!({"type": "prompt", "message": "Go."}));
    client.event("message_update");
    // Accepted clients receive nothing; refused ones receive an error.
    let mut crowd: Vec<SocketClient> = (0..120).map(|_| service.client()).collect();
    let refused = crowd.swap_remove(SocketClient::first_readable(&crowd));
    check(&refused.closed()[0], "ulimit -Hn");
    // Sessions share the remaining descriptors: idle ones are unloaded, which closes their files.
    for id in &files {
        let another =
            json!({"type": "open_session", "cwd": home.project(), "sessionId": id, "attach": false});
        // While connections of the crowd are still being refused, too few descriptors may be left for a moment.
        let end = Instant::now() + DEADLINE;
        while client.call(another.clone())["success"] != json!(true) {
            assert!(Instant::now() < end, "no descriptor was free any more");
        }
    }
    gate.open();
    let events = client.settled();
    assert_eq!(text(ended(&events, "toolResult")[0]), "still here\n");
    drop(crowd);
    let end = Instant::now() + DEADLINE;
    while client.done(json!({"type": "daemon_status"}))["usage"]["clients"]["used"] != json!(1) {
        assert!(Instant::now() < end, "clients that left are still counted");
    }
    works(&service, &home);
}

#[test]
fn a_daemon_without_memory_to_spare_begins_nothing_new() {
    let server = MockServer::start([fine()]);
    let (home, service) = daemon(&server, json!({"daemon": {"maxMemoryBytes": 1}}));
    let mut client = service.client();
    let open = json!({"type": "open_session", "cwd": home.project()});
    for _ in 0..3 {
        let said = refused(&mut client, open.clone(), "daemon.maxMemoryBytes");
        assert!(said.contains("limit of 1 bytes"), "{said}");
    }
    let status = client.done(json!({"type": "daemon_status"}));
    assert_eq!(status["usage"]["memoryBytes"]["limit"], json!(1), "{status}");
}

/// Writes a session file of so many megabytes; returns its id.
fn large_session(home: &Home, number: usize, megabytes: usize) -> String {
    session_file(home, number, megabytes, 1 << 20)
}

/// Writes a session file of so many messages of so many bytes; returns its id.
pub(crate) fn session_file(home: &Home, number: usize, messages: usize, bytes: usize) -> String {
    let id = format!("0196c000-0000-7000-8000-00000000000{number}");
    let folder = home.agent_dir().join("sessions").join("--large--");
    fs::create_dir_all(&folder).unwrap();
    let time = "2026-01-01T00:00:00.000Z";
    let header = json!({"type": "session", "version": 3, "id": id, "timestamp": time, "cwd": home.project()});
    let mut content = format!("{header}\n");
    let mut parent = Value::Null;
    for entry in 0..messages {
        let own = format!("{entry:08x}");
        let message = json!({"role": "user", "content": "m".repeat(bytes), "timestamp": 1});
        let line =
            json!({"type": "message", "id": own, "parentId": parent, "timestamp": time, "message": message});
        content.push_str(&format!("{line}\n"));
        parent = own.into();
    }
    let path: PathBuf = folder.join(format!("2026-01-01T00-00-00-000Z_{id}.jsonl"));
    fs::write(path, content).unwrap();
    id
}

#[test]
fn under_pressure_the_sessions_idle_longest_are_unloaded() {
    let server = MockServer::start([fine()]);
    let home = Home::with_model(&server);
    let ids: Vec<String> = (0..5).map(|number| large_session(&home, number, 16)).collect();
    let before = {
        let service = Service::start(&home, &[]);
        let status = service.client().done(json!({"type": "daemon_status"}));
        status["usage"]["memoryBytes"]["used"].as_u64().unwrap()
    };
    // Two or three of five sessions fit.
    let limit = before + (60 << 20);
    home.settings(&json!({"daemon": {"maxMemoryBytes": limit}}));
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    hello(&mut client);
    for id in &ids {
        client.done(json!({"type": "attach_session", "sessionId": id}));
        let state = client.done(json!({"type": "get_state"}));
        assert_eq!(state["messageCount"], json!(16), "{id}");
    }
    let status = client.done(json!({"type": "daemon_status"}));
    assert!(status["counters"]["sessionsUnloaded"].as_u64() >= Some(1), "{status}");
    assert_eq!(status["usage"]["sessions"]["used"], json!(5), "{status}");
    let live = client.done(json!({"type": "list_sessions", "live": true}));
    let is_live = |id: &str| live["sessions"].as_array().unwrap().iter().any(|session| session["id"] == id);
    assert!(!is_live(&ids[0]) && is_live(&ids[4]), "{live}");
    // Unloaded sessions come back unchanged.
    let state = client.done(json!({"type": "get_state", "sessionId": ids[0]}));
    assert_eq!(state["messageCount"], json!(16));
}

/// `agentd --stdio` opens any number of sessions, too.
#[test]
fn a_private_daemon_has_the_same_limits() {
    let server = MockServer::start([fine()]);
    let home = Home::with_model(&server);
    let ids: Vec<String> = (0..4).map(|number| large_session(&home, number, 16)).collect();
    let before = {
        let mut daemon = Daemon::start(&home, &[]);
        daemon.done(json!({"type": "daemon_status"}))["usage"]["memoryBytes"]["used"].as_u64().unwrap()
    };
    // Two of three sessions fit.
    let limit = before + (40 << 20);
    home.settings(&json!({"daemon": {"maxMemoryBytes": limit, "maxSessions": 4, "idleUnloadMs": 1}}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    let own = daemon.done(json!({"type": "get_state"}))["sessionId"].clone();
    for id in &ids[..3] {
        daemon.done(json!({"type": "attach_session", "sessionId": id}));
        let state = daemon.done(json!({"type": "get_state"}));
        assert_eq!((&state["sessionId"], &state["messageCount"]), (&json!(id), &json!(16)));
    }
    // Sessions are unloaded in the background.
    let end = Instant::now() + DEADLINE;
    let status = loop {
        let status = daemon.done(json!({"type": "daemon_status"}));
        if status["counters"]["sessionsUnloaded"].as_u64() >= Some(1) {
            break status;
        }
        assert!(Instant::now() < end, "nothing leaves memory: {status}");
    };
    assert_eq!(status["usage"]["memoryBytes"]["limit"], json!(limit), "{status}");
    let refused = daemon.refused(json!({"type": "attach_session", "sessionId": ids[3]}));
    check(&refused, "daemon.maxSessions");
    // The unloaded session comes back.
    let state = daemon.done(json!({"type": "get_state", "sessionId": ids[0]}));
    assert_eq!(state["messageCount"], json!(16));
    daemon.done(json!({"type": "attach_session", "sessionId": own}));
    assert_eq!(text(answers(&daemon.prompt("Hi"))[0]), "Fine.");
    assert!(daemon.close().status.success());
}

#[test]
fn all_sessions_together_run_so_many_commands() {
    let server = MockServer::start([]);
    let (home, service) = daemon(&server, json!({"daemon": {"maxCommands": 1}}));
    let (mut one, mut two) = (service.client(), service.client());
    open(&mut one, &home);
    open(&mut two, &home);
    one.send(&json!({"id": "long", "type": "bash", "command": "echo up; exec sleep 600"}));
    let end = Instant::now() + DEADLINE;
    while one.done(json!({"type": "daemon_status"}))["usage"]["commands"] != json!({"used": 1, "limit": 1}) {
        assert!(Instant::now() < end, "the command does not run");
    }
    refused(&mut two, json!({"type": "bash", "command": "echo hi"}), "daemon.maxCommands");
    one.done(json!({"type": "abort_bash"}));
    one.until("its end", |line| line["id"] == "long");
    let end = Instant::now() + DEADLINE;
    while one.done(json!({"type": "daemon_status"}))["usage"]["commands"]["used"] != json!(0) {
        assert!(Instant::now() < end, "the command is still counted");
    }
    assert_eq!(two.done(json!({"type": "bash", "command": "echo hi"}))["output"], "hi\n");
}

#[test]
fn long_outputs_have_an_end_and_old_ones_go() {
    let calls = |id| sse::calls(&[(id, "bash", json!({"command": "seq 1 50000"}))]);
    let server = MockServer::start([Reply::stream(calls("c1")), fine()]);
    let home = Home::with_model(&server);
    home.settings(&json!({"storage": {"maxOutputBytes": 102_400}}));
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    let session = open(&mut client, &home);
    client.done(json!({"type": "prompt", "message": "Count."}));
    let events = client.settled();
    let result = ended(&events, "toolResult")[0];
    assert!(text(result).contains("The first 100.0KB of the output"), "{}", text(result));
    assert!(text(result).contains("storage.maxOutputBytes") && text(result).contains("50000"));
    let path = PathBuf::from(result["details"]["fullOutputPath"].as_str().unwrap());
    assert_eq!(fs::metadata(&path).unwrap().len(), 102_400);
    drop((client, service));
    let counted = ctl::run(&home, &["clean", "--dry-run", "--max-size", "0"]);
    assert_eq!(
        counted.stdout, "1 outputs (102400 bytes) would be removed, 0 (0 bytes) left\n",
        "{counted:?}"
    );
    let usual = ctl::run(&home, &["clean"]);
    assert_eq!(usual.stdout, "0 outputs (0 bytes) removed, 1 (102400 bytes) left\n", "{usual:?}");
    // The next daemon has a lower limit.
    home.settings(&json!({"storage": {"maxArtifactBytes": 1000}}));
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "attach_session", "sessionId": session}));
    let end = Instant::now() + DEADLINE;
    while client.done(json!({"type": "list_artifacts"}))["artifacts"] != json!([]) {
        assert!(Instant::now() < end, "{} is still there", path.display());
    }
    assert!(!path.exists());
    // The conversation is unchanged.
    assert_eq!(client.done(json!({"type": "get_state"}))["messageCount"], json!(5));
}

#[test]
fn wrong_limits_are_reported_and_the_defaults_hold() {
    let server = MockServer::start([fine()]);
    let settings = json!({"limits": {"maxMessageBytes": -1}, "storage": {"maxOutputBytes": "much"}});
    let (home, service) = daemon(&server, settings);
    let mut client = service.client();
    open(&mut client, &home);
    let diagnostics = client.done(json!({"type": "get_diagnostics"})).to_string();
    assert!(diagnostics.contains("limits.maxMessageBytes"), "{diagnostics}");
    assert!(diagnostics.contains("storage.maxOutputBytes"), "{diagnostics}");
    assert_eq!(text(answers(&client.prompt("Hi"))[0]), "Fine.");
}
