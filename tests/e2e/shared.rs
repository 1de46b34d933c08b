//! A session of the daemon behind stdin and stdout: `agentd --stdio --shared` and `agentctl rpc`. The transcripts of `golden`
//! prove that both speak the protocol of a private daemon.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::{fs::DirBuilderExt, net::UnixListener},
    process::Stdio,
    thread,
};

use agentd_e2e::{
    Ctl, Daemon, Gate, Home, MockServer, Reply, Service, SocketClient, binaries, ctl, daemon::Ended, sse,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{OnDemand, answers, assert_says, live_sessions, prompt, records, text};

/// An answer of two parts; the second waits for the gate.
fn gated(gate: &Gate) -> Reply {
    Reply::stream(sse::text("First, ")).gate(gate).then(sse::text("second.") + &sse::end("stop", (1, 0, 1)))
}

/// Waits until the first part of the answer is there.
fn until_it_streams(bridge: &mut Daemon) {
    bridge.until("a delta", |line| line["assistantMessageEvent"]["type"] == "text_delta");
}

fn join(service: &Service, id: &Value) -> (SocketClient, Value) {
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    let attached = client.done(json!({"type": "attach_session", "sessionId": id}));
    (client, attached)
}

fn session_id(bridge: &mut Daemon) -> Value {
    bridge.done(json!({"type": "get_state"}))["sessionId"].clone()
}

#[test]
fn others_join_the_session_and_both_see_all_of_it() {
    let gate = Gate::new();
    let server = MockServer::start([gated(&gate), Reply::stream(sse::answer("Steered."))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut bridge = Daemon::start_shared(&home, &[]);
    let id = session_id(&mut bridge);
    bridge.send(&prompt("Hi"));
    until_it_streams(&mut bridge);
    let (mut other, attached) = join(&service, &id);
    assert_eq!(text(&attached["inFlight"]["message"]), "First, ");
    other.done(json!({"type": "steer", "message": "And now?"}));
    gate.open();
    let (seen, theirs) = (bridge.settled(), other.settled());
    let last = |events: &[Value]| text(answers(events).last().expect("an answer"));
    assert_eq!((last(&seen), last(&theirs)), ("Steered.".into(), "Steered.".into()));
    // The bridge speaks the plain protocol.
    assert!(seen.iter().all(|line| line.get("seq").is_none() && line.get("sessionId").is_none()));
    assert_eq!(bridge.close().status.code(), Some(0));
}

#[test]
fn the_end_of_the_input_leaves_the_session_at_work() {
    let gate = Gate::new();
    let server = MockServer::start([gated(&gate)]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut bridge = Daemon::start_shared(&home, &[]);
    let id = session_id(&mut bridge);
    bridge.send(&prompt("Hi"));
    until_it_streams(&mut bridge);
    bridge.send(&json!({"id": "last", "type": "get_state"}));
    let ended = bridge.close();
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""));
    assert!(
        ended.rest.iter().any(|line| line["id"] == "last"),
        "what was asked is answered: {:?}",
        ended.rest
    );
    assert!(!ended.rest.iter().any(|line| line["type"] == "agent_settled"));
    let (mut other, attached) = join(&service, &id);
    assert_eq!(attached["state"]["isStreaming"], json!(true));
    gate.open();
    other.settled();
    let entries = records(&home.session_files()[0]);
    assert_eq!(text(&entries.last().expect("an entry")["message"]), "First, second.");
}

#[test]
fn with_drain_the_end_of_the_input_waits_for_the_end_of_the_work() {
    let gate = Gate::new();
    let server = MockServer::start([gated(&gate), Reply::stream(sse::answer("Third."))]);
    let home = Home::with_model(&server);
    let _service = Service::start(&home, &[]);
    let mut bridge = Daemon::start_shared(&home, &["--on-eof", "drain"]);
    bridge.send(&prompt("Hi"));
    until_it_streams(&mut bridge);
    bridge.send(&json!({"type": "follow_up", "message": "Go on."}));
    bridge.end_input();
    bridge.until("the answer to follow_up", |line| line["command"] == "follow_up");
    gate.open();
    let ended = bridge.wait();
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""));
    let texts: Vec<String> = answers(&ended.rest).into_iter().map(text).collect();
    assert_eq!(texts, ["First, second.", "Third."]);
    assert_eq!(ended.rest.last().expect("a line")["type"], "agent_settled");
}

#[test]
fn a_signal_ends_the_bridge_and_not_the_session() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let gate = Gate::new();
        let server = MockServer::start([gated(&gate)]);
        let home = Home::with_model(&server);
        let service = Service::start(&home, &[]);
        let mut bridge = Daemon::start_shared(&home, &[]);
        let id = session_id(&mut bridge);
        bridge.send(&prompt("Hi"));
        until_it_streams(&mut bridge);
        bridge.signal(signal);
        assert_eq!(bridge.wait().status.code(), Some(code));
        let (mut other, attached) = join(&service, &id);
        assert_eq!(attached["state"]["isStreaming"], json!(true));
        gate.open();
        assert_eq!(answers(&other.settled()).len(), 1);
    }
}

#[test]
fn what_is_refused_is_refused_as_without_the_daemon() {
    let server = MockServer::start([Reply::stream(sse::answer("Ok."))]);
    let home = Home::with_model(&server);
    // Another process has the session open.
    let mut holder = Daemon::start(&home, &["--session-id", "held"]);
    holder.prompt("Hi");
    let file = home.session_files()[0].display().to_string();
    let _service = Service::start(&home, &[]);
    let refused = |args: &[&str], shared: bool| -> Ended {
        let daemon = if shared { Daemon::start_shared(&home, args) } else { Daemon::start(&home, args) };
        daemon.wait()
    };
    for args in [
        &["--model", "nope"][..],
        &["--session", "nope"],
        &["--session", &file],
        &["--nope"],
        &["--provider", "fake"],
        &["--on-eof", "never"],
        &["--no-session", "--fork", "x"],
    ] {
        let (private, shared) = (refused(args, false), refused(args, true));
        assert_eq!((private.status.code(), shared.status.code()), (Some(1), Some(1)), "{args:?}");
        assert_eq!(shared.rest, Vec::<Value>::new(), "{args:?}");
        // The daemon may add a hint.
        assert!(
            shared.stderr.starts_with(private.stderr.trim_end()),
            "{}\n{}",
            private.stderr,
            shared.stderr
        );
        assert!(private.stderr.starts_with("Error: "), "{args:?}: {}", private.stderr);
    }
    assert!(live_sessions(&home).is_empty());
}

#[test]
fn warnings_go_to_stderr() {
    let home = Home::new();
    let _service = Service::start(&home, &[]);
    let args = ["--thinking", "lots", "--no-session"];
    let (private, shared) = (Daemon::start(&home, &args).close(), Daemon::start_shared(&home, &args).close());
    assert!(private.stderr.contains("lots"), "{}", private.stderr);
    assert_eq!(shared.stderr, private.stderr);
}

#[test]
fn the_daemon_is_started_when_it_is_needed_and_stays() {
    let home = Home::new();
    let daemon = OnDemand(&home);
    // Several bridges start at once: one of them starts the daemon.
    let mut bridges: Vec<Daemon> = (0..3).map(|_| Daemon::start_shared(&home, &[])).collect();
    for bridge in &mut bridges {
        bridge.done(json!({"type": "get_state"}));
    }
    let pid = daemon.pid().expect("it runs");
    for bridge in bridges {
        let ended = bridge.close();
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""));
    }
    assert_eq!((daemon.pid(), live_sessions(&home).len()), (Some(pid), 3));
    let mut later = Daemon::start_shared(&home, &[]);
    later.done(json!({"type": "get_state"}));
    assert_eq!(daemon.pid(), Some(pid));
}

#[test]
fn folder_and_environment_are_those_of_the_client() {
    let home = Home::new();
    let _service = Service::start_with(&home, &[], |command| {
        command.env("MARK", "the daemon's").env("ONLY_THERE", "x").current_dir(home.root());
    });
    let mut bridge = Daemon::start_with(&home, &["--shared", "--no-session"], |command| {
        command.env("MARK", "the client's");
    });
    let ran = bridge.done(json!({"type": "bash", "command": "pwd; echo \"$MARK,$ONLY_THERE\""}));
    let expected = format!("{}\nthe client's,\n", home.project().display());
    assert_eq!(ran["output"].as_str().expect("an output").trim_end(), expected.trim_end());
}

#[test]
fn a_daemon_that_dies_is_reported() {
    let gate = Gate::new();
    let server = MockServer::start([gated(&gate)]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut bridge = Daemon::start_shared(&home, &[]);
    bridge.send(&prompt("Hi"));
    until_it_streams(&mut bridge);
    service.signal(Signal::KILL);
    let ended = bridge.wait();
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert_says(&ended.stderr, &["Error: ", "agentctl logs"]);
    drop(service);
}

#[test]
fn a_daemon_that_does_not_start_is_quoted() {
    let home = Home::new();
    let open = home.root().join("open");
    std::fs::DirBuilder::new().mode(0o755).create(&open).unwrap();
    let bridge = Daemon::start_with(&home, &["--shared"], |command| {
        command.env("AGENTD_SOCKET", open.join("a.sock"));
    });
    let ended = bridge.wait();
    assert_eq!((ended.status.code(), ended.rest), (Some(3), Vec::<Value>::new()), "{}", ended.stderr);
    assert_says(&ended.stderr, &["agentd did not start", "has the mode 755", "logs/agentd.log"]);
}

#[test]
fn a_daemon_of_another_version_is_reported() {
    let home = Home::new();
    let path = home.root().join("other.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let answering = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        let answer = json!({"id": "hello", "type": "response", "command": "hello", "success": false,
            "error": "Unsupported protocol 1: this agentd speaks 7.", "code": "unsupported"});
        writeln!(&stream, "{answer}").unwrap();
        line
    });
    let mut command = home.command(binaries::agentd());
    command.args(["--stdio", "--shared"]).env("AGENTD_SOCKET", &path);
    let ended = Daemon::start_command(command).wait();
    assert_eq!((ended.status.code(), ended.rest), (Some(3), Vec::<Value>::new()), "{}", ended.stderr);
    assert_says(&ended.stderr, &["another version", "speaks 7", "agentctl down && agentctl up"]);
    assert!(answering.join().unwrap().contains("\"hello\""));
}

fn lines(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

#[test]
fn what_was_asked_is_finished_before_the_end() {
    for shared in [false, true] {
        let server =
            MockServer::start([Reply::stream(sse::answer("One.")), Reply::stream(sse::answer("Two."))]);
        let home = Home::with_model(&server);
        let service = shared.then(|| Service::start(&home, &[]));
        let input = format!("{}\n{}", prompt("Hi"), json!({"type": "follow_up", "message": "Go on."}));
        let done = ctl::run_with_input(&home, &["rpc", "--", "--model", "fake/fake"], &input);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done:?}");
        let lines = lines(&done.stdout);
        let texts: Vec<String> = answers(&lines).into_iter().map(text).collect();
        assert_eq!(texts, ["One.", "Two."], "shared: {shared}");
        assert_eq!(lines.last().expect("a line")["type"], "agent_settled");
        // A session of the daemon stays open.
        if service.is_some() {
            assert_eq!(live_sessions(&home).len(), 1);
        }
    }
}

#[test]
fn the_daemon_itself_can_be_spoken_to() {
    let home = Home::new();
    let ask = json!({"id": 1, "type": "list_sessions"}).to_string();
    let done = ctl::run_with_input(&home, &["rpc", "--daemon"], &ask);
    assert_eq!((done.code, done.stdout.as_str()), (3, ""), "{done:?}");
    assert_says(&done.stderr, &["agentd is not running", "agentctl up"]);
    let daemon = OnDemand(&home);
    let done = ctl::run_with_input(&home, &["rpc", "--daemon", "--shared"], &ask);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done:?}");
    assert_eq!(lines(&done.stdout)[0]["data"]["sessions"], json!([]));
    assert!(daemon.pid().is_some());
    let done = ctl::run_with_input(&home, &["rpc", "--daemon"], r#"{"id":2,"type":"get_state"}"#);
    assert_eq!((done.code, &lines(&done.stdout)[0]["code"]), (0, &json!("no_session")), "{done:?}");
}

#[test]
fn refusals_have_a_code_and_a_sentence() {
    let home = Home::new();
    let service = Service::start(&home, &[]);
    for choice in [&[][..], &["--private"]] {
        let args = [&["rpc"], choice, &["--", "--model", "nope"]].concat();
        let done = ctl::run(&home, &args);
        assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{done:?}");
        assert_says(&done.stderr, &["Error: Model \"nope\" not found"]);
        let done = ctl::run(&home, &[&["rpc"], choice, &["--", "--nope"]].concat());
        assert_eq!(done.code, 1, "{done:?}");
        assert!(done.stderr.starts_with("Error: Unknown option: --nope"), "{done:?}");
    }
    for bad in [&["--daemon", "--private"][..], &["--shared", "--private"], &["--daemon", "--", "-c"], &["x"]]
    {
        assert_eq!(ctl::run(&home, &[&["rpc"], bad].concat()).code, 2, "{bad:?}");
    }
    drop(service);
}

#[test]
fn rpc_reports_a_daemon_that_dies() {
    let gate = Gate::new();
    let server = MockServer::start([Reply::stream(sse::text("First")).gate(&gate)]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut running = Ctl::start_with(ctl::command(&home, &["rpc"]), Stdio::piped());
    running.type_line(&prompt("Hi").to_string());
    running.wait_for_stdout("First");
    service.signal(Signal::KILL);
    let done = running.finish();
    assert_eq!(done.code, 3, "{done:?}");
    assert_says(&done.stderr, &["agentctl: ", "agentctl logs"]);
}

#[test]
fn up_says_where_it_is_as_json() {
    let home = Home::new();
    let daemon = OnDemand(&home);
    for started in [true, false] {
        let up = ctl::run(&home, &["up", "--json"]);
        assert_eq!((up.code, up.stderr.as_str()), (0, ""), "{up:?}");
        let report = lines(&up.stdout).swap_remove(0);
        assert_eq!(report["started"], json!(started));
        assert_eq!(report["daemon"]["pid"], json!(daemon.pid()));
        assert_eq!(report["socket"], json!(home.agent_dir().join("run/agentd.sock")));
    }
}
