//! `agentctl prompt` through the daemon that all clients share; `-c` in two terminals, and `--resume`.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt, process::Stdio};

use agentd_e2e::{
    Ctl, Daemon, Gate, Home, MockServer, Reply, Service, Terminal, binaries, ctl, mock_server::Request, sse,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{OnDemand, assert_says, live_sessions, prompt, text};

fn tool_then_text() -> [Reply; 2] {
    let call = sse::calls(&[("c1", "bash", json!({"command": "echo out; exit 3"}))]);
    [Reply::stream(call), Reply::stream(sse::answer("It failed."))]
}

fn gated(gate: &Gate) -> Reply {
    Reply::stream(sse::text("First, ")).gate(gate).then(sse::text("second.") + &sse::end("stop", (1, 0, 1)))
}

/// The events in order, with their texts, without times and numbers.
fn shapes(stdout: &str) -> Vec<(String, Vec<String>)> {
    let shape = |line: &str| {
        let value: Value = serde_json::from_str(line).expect("a line of JSON");
        let keys = value.as_object().expect("an object").keys().cloned().collect();
        (value["type"].as_str().expect("a type").to_owned(), keys)
    };
    stdout.lines().map(shape).collect()
}

#[test]
fn a_prompt_looks_the_same_with_and_without_the_daemon() {
    let run = |shared: bool, args: &[&str]| {
        let server = MockServer::start(tool_then_text());
        let home = Home::with_model(&server);
        let _service = shared.then(|| Service::start(&home, &[]));
        let done = ctl::run(&home, args);
        assert_eq!(live_of(&home, shared), usize::from(shared));
        done
    };
    let (private, shared) = (run(false, &["prompt", "Run it."]), run(true, &["prompt", "Run it."]));
    assert_eq!((private.code, private.stdout.as_str()), (0, "It failed.\n"), "{private:?}");
    assert_eq!((shared.code, shared.stdout), (private.code, private.stdout));
    let begin = |stderr: &str| stderr.lines().map(|line| line[..20].to_owned()).collect::<Vec<_>>();
    assert_eq!(begin(&shared.stderr), begin(&private.stderr));
    let args = ["prompt", "--json", "Run it."];
    let (private, shared) = (run(false, &args), run(true, &args));
    assert_eq!((private.code, shared.code), (0, 0));
    assert_eq!(shapes(&shared.stdout), shapes(&private.stdout));
}

fn live_of(home: &Home, runs: bool) -> usize {
    if runs { live_sessions(home).len() } else { 0 }
}

#[test]
fn prompts_go_by_the_daemon_or_not_as_flags_say() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let daemon = OnDemand(&home);
    assert_eq!(ctl::run(&home, &["prompt", "Hi"]).code, 0);
    assert_eq!(daemon.pid(), None);
    let started = ctl::run(&home, &["prompt", "--shared", "--no-session", "Hi"]);
    assert_eq!((started.code, started.stdout.as_str()), (0, "Ok.\n"), "{started:?}");
    // A session with `--no-session` is gone.
    assert_eq!(live_of(&home, daemon.pid().is_some()), 0);
    assert_eq!(ctl::run(&home, &["prompt", "--private", "Hi"]).stdout, "Ok.\n");
    assert!(live_sessions(&home).is_empty());
    assert_eq!(ctl::run(&home, &["prompt", "Hi"]).code, 0);
    assert_eq!(live_sessions(&home).len(), 1);
    assert_eq!(ctl::run(&home, &["prompt", "--shared", "--private", "Hi"]).code, 2);
}

#[test]
fn a_refusal_reads_as_without_the_daemon() {
    let home = Home::new();
    let _service = Service::start(&home, &[]);
    let done = ctl::run(&home, &["prompt", "--model", "nope", "Hi"]);
    assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{done:?}");
    assert_says(&done.stderr, &["Error: Model \"nope\" not found"]);
    let done = ctl::run(&home, &["prompt", "What is here?"]);
    assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{done:?}");
    assert_says(&done.stderr, &["Error: No API key found for the selected model.", "--demo"]);
    let done = ctl::run(&home, &["prompt", "--demo", "What is here?"]);
    assert_eq!(done.code, 0, "{done:?}");
}

#[test]
fn a_session_at_work_is_not_interrupted() {
    let gate = Gate::new();
    let server = MockServer::start([gated(&gate), Reply::stream(sse::answer("After it."))]);
    let home = Home::with_model(&server);
    let _service = Service::start(&home, &[]);
    let mut bridge = Daemon::start_shared(&home, &[]);
    bridge.send(&prompt("Hi"));
    bridge.until("a delta", |line| line["assistantMessageEvent"]["type"] == "text_delta");
    let refused = ctl::run(&home, &["prompt", "--continue", "And now?"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""), "{refused:?}");
    assert_says(&refused.stderr, &["is at work", "--follow-up", "agentctl attach"]);
    let queued = Ctl::start(&home, &["prompt", "--continue", "--follow-up", "And now?"]);
    bridge.until("the queue", |line| line["type"] == "queue_update");
    gate.open();
    let done = queued.finish();
    assert_eq!((done.code, done.stdout.as_str()), (0, "After it.\n"), "{done:?}");
}

#[test]
fn ctrl_c_stops_the_run_and_not_the_daemon() {
    let gate = Gate::new();
    let server = MockServer::start([gated(&gate)]);
    let home = Home::with_model(&server);
    let _service = Service::start(&home, &[]);
    let mut running = Ctl::start(&home, &["prompt", "--all", "Hi"]);
    running.wait_for_stdout("First, ");
    running.signal(Signal::INT);
    let done = running.finish();
    assert_eq!((done.code, done.stdout.as_str()), (130, "First, \n"), "{done:?}");
    let live = live_sessions(&home);
    assert_eq!((live.len(), &live[0]["isStreaming"]), (1, &json!(false)));
}

#[test]
fn a_reader_who_has_left_stops_the_run() {
    let gate = Gate::new();
    let server =
        MockServer::start([Reply::stream(sse::text("First\n")).gate(&gate).then(sse::text("x")).hang()]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut command = ctl::command(&home, &["prompt", "Hi"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
    let output = command.output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(141), &b""[..]));
    let id = live_sessions(&home)[0]["id"].clone();
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    let attached = client.done(json!({"type": "attach_session", "sessionId": id}));
    // The run has stopped or is about to.
    if attached["state"]["isStreaming"] == json!(true) {
        client.event("agent_settled");
    }
}

#[test]
fn a_daemon_that_is_killed_is_reported() {
    let gate = Gate::new();
    let server = MockServer::start([gated(&gate)]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut running = Ctl::start(&home, &["prompt", "--all", "Hi"]);
    running.wait_for_stdout("First, ");
    service.signal(Signal::KILL);
    let done = running.finish();
    assert_eq!(done.code, 3, "{done:?}");
    assert_says(&done.stderr, &["ended before the answer was complete", "agentctl logs", "--continue"]);
}

#[test]
fn a_session_that_is_closed_under_it_is_reported() {
    let gate = Gate::new();
    let server = MockServer::start([gated(&gate)]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut running = Ctl::start(&home, &["prompt", "--all", "Hi"]);
    running.wait_for_stdout("First, ");
    let id = live_sessions(&home)[0]["id"].clone();
    let mut client = service.client();
    client.done(json!({"type": "close_session", "sessionId": id, "mode": "abort"}));
    let done = running.finish();
    // The abort may arrive before the end of the session: both are failures.
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains("closed the session") || done.stderr.contains("Error: "), "{done:?}");
}

#[test]
fn a_stdout_that_is_read_late_loses_nothing_beside_other_clients() {
    let text = "All of it arrives. ".repeat(6_000) + "End.";
    let gate = Gate::new();
    let server =
        MockServer::start([Reply::stream(sse::text("Begin: ")).gate(&gate).then(sse::answer(&text))]);
    let home = Home::with_model(&server);
    home.settings(&json!({"daemon": {"outboxBytes": 10_000, "lagGraceMs": 25_000}}));
    let service = Service::start(&home, &[]);
    let mut watcher = service.client();
    watcher.done(json!({"type": "watch_sessions"}));
    let mut command = ctl::command(&home, &["prompt", "Hi"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let id = watcher.event("session_opened")["session"]["id"].clone();
    let mut other = service.client();
    other.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    other.done(json!({"type": "attach_session", "sessionId": id}));
    gate.open();
    // Nobody has read stdout so far, and the session did not wait for it.
    other.event("agent_settled");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let (stdout, expected) = (String::from_utf8(output.stdout).unwrap(), format!("Begin: {text}\n"));
    // The texts are too long to print.
    assert!(stdout == expected, "{} bytes of {}", stdout.len(), expected.len());
}

/// Answers with all user messages so far.
fn echo(request: &Request) -> Reply {
    let users = request.messages().iter().filter(|message| message["role"] == "user");
    Reply::stream(sse::answer(&format!("[{}]", users.map(text).collect::<Vec<_>>().join("+"))))
}

/// A shell in a terminal of its own that runs typed commands.
struct Tab {
    shell: Terminal,
    answers: usize,
}

impl Tab {
    fn open(home: &Home) -> Self {
        let mut shell = Terminal::start(home, "/bin/sh".as_ref(), &[]);
        shell.press(&format!("PS1=; alias a='{}'\n", binaries::agentctl().display()));
        Self { shell, answers: 0 }
    }

    fn says(&mut self, args: &str, answer: &str) {
        self.answers += 1;
        let end = format!("done {} 0", self.answers);
        self.shell.press(&format!("a prompt {args} </dev/null; echo done {} $?\n", self.answers));
        self.shell.wait_for(answer);
        self.shell.wait_for(&end);
    }
}

fn each_goes_on_with_its_own(shared: bool) {
    let server = MockServer::answering(echo);
    let home = Home::with_model(&server);
    let _service = shared.then(|| Service::start(&home, &[]));
    let (mut one, mut two) = (Tab::open(&home), Tab::open(&home));
    one.says("a1", "[a1]");
    two.says("b1", "[b1]");
    one.says("-c a2", "[a1+a2]");
    two.says("-c b2", "[b1+b2]");
    // Without a terminal, `-c` takes the most recent session of the folder.
    assert_eq!(ctl::run(&home, &["prompt", "-c", "c"]).stdout, "[b1+b2+c]\n");
    // A terminal without a session of its own takes the most recent one, too.
    let mut three = Tab::open(&home);
    three.says("-c d", "[b1+b2+c+d]");
    one.says("-c a3", "[a1+a2+a3]");
    // Another folder has its own sessions.
    home.write("other/x", "");
    one.says("--cwd other -c e", "[e]");
    one.says("-c a4", "[a1+a2+a3+a4]");
    // A session that is not kept is not remembered.
    one.says("--no-session f", "[f]");

    let files = || {
        let dir = fs::read_dir(home.agent_dir().join("run/terminals")).unwrap();
        dir.map(|file| file.unwrap().path()).collect::<Vec<_>>()
    };
    assert_eq!(files().len(), 3);
    for file in files() {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    // The remembered id is looked up among the sessions of the folder, and used for nothing else.
    for nonsense in ["/etc/passwd", "../../x", "none", "--no-session"] {
        for file in files() {
            let folder = home.project().display().to_string();
            fs::write(file, serde_json::to_string(&BTreeMap::from([(folder, nonsense)])).unwrap()).unwrap();
        }
        let said = ctl::run(&home, &["prompt", "-c", "last"]).stdout;
        one.says("-c mine", &said.trim().replace("last]", "last+mine]"));
    }
    // Files of closed terminals are removed when the next one is written.
    drop((two, three));
    let mut four = Tab::open(&home);
    four.says("new", "[new]");
    assert!(files().len() <= 3, "{:?}", files());
}

#[test]
fn each_terminal_goes_on_with_its_own_session_of_the_daemon() {
    each_goes_on_with_its_own(true);
}

#[test]
fn each_terminal_goes_on_with_its_own_session_without_a_daemon() {
    each_goes_on_with_its_own(false);
}

#[test]
fn a_session_is_picked_from_a_list() {
    let server = MockServer::answering(echo);
    let home = Home::with_model(&server);
    let _service = Service::start(&home, &[]);
    assert_eq!(ctl::run(&home, &["prompt", "first"]).code, 0);
    assert_eq!(ctl::run(&home, &["prompt", "second"]).code, 0);
    let mut picking = Terminal::start(&home, &binaries::agentctl(), &["prompt", "--resume", "fourth"]);
    picking.wait_for("2 of 2");
    picking.press("frst\r");
    let done = picking.finish();
    assert_eq!(done.code, 0, "{done:?}");
    assert_says(&done.stdout, &["[first+fourth]"]);
    // A terminal that cannot move its cursor gets numbers.
    let dumb =
        |args: &[&str]| Terminal::start_with(&home, &binaries::agentctl(), args, None, &[("TERM", "dumb")]);
    let mut picking = dumb(&["prompt", "--resume", "third"]);
    picking.wait_for("Which one (1-2, Enter for none)? ");
    picking.press("9\n");
    picking.wait_for("Which one (1-2, Enter for none)? 9\nWhich one");
    picking.press("2\n");
    let done = picking.finish();
    assert_eq!(done.code, 0, "{done:?}");
    assert_says(&done.stdout, &["  1 ", "first", "  2 ", "second", "[second+third]"]);
    let mut picking = dumb(&["prompt", "-r", "third"]);
    picking.wait_for("Enter for none)? ");
    picking.press("\n");
    assert_eq!(picking.finish().code, 1);
    let refused = ctl::run(&home, &["prompt", "--resume", "third"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert_says(&refused.stderr, &["--session ID", "--continue"]);
}

#[test]
fn a_key_and_a_name_are_passed_on() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let args = ["prompt", "--model", "fake/fake", "--api-key", "another-key-of-mine", "--name", "Mine", "Hi"];
    let done = ctl::run(&home, &args);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer another-key-of-mine"));
    assert_says(&ctl::run(&home, &["sessions"]).stdout, &["Mine"]);
    assert_eq!(ctl::run(&home, &["prompt", "--api-key", "k", "Hi"]).code, 2);
}
