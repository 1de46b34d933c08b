//! The end of the daemon: by the end of its input, signals, `down`, deadlines.

use std::time::{Duration, Instant};

use agentd_e2e::{
    Ctl, DEADLINE, Daemon, Home, MockServer, Reply, Service, SocketClient, ctl, processes, sse,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    daemon::{InBackground, status},
    daemon_socket::Manager,
    support::{assert_says, prompt, records, text},
};

/// Hosts kill agentd after a second, and look 50 ms earlier.
const HOST_TIMEOUT: Duration = Duration::from_millis(950);

/// Asserts that agentd ends within [`HOST_TIMEOUT`]. `end` measures one end; on a loaded machine one of five has to do.
fn assert_in_time(mut end: impl FnMut() -> Duration) {
    let mut took = Vec::new();
    for _ in 0..5 {
        took.push(end());
        if took.iter().any(|time| *time < HOST_TIMEOUT) {
            return;
        }
    }
    panic!("agentd took longer than {HOST_TIMEOUT:?} each time: {took:?}");
}

#[test]
fn an_idle_daemon_ends_with_its_input() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "get_state"}));
    let ended = daemon.close();
    assert_eq!((ended.status.code(), ended.rest, ended.stderr.as_str()), (Some(0), Vec::<Value>::new(), ""));
    assert_eq!(home.session_files(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn an_answer_is_stored_at_the_end_of_input() {
    let server = MockServer::start([Reply::stream(sse::text("Part")).hang()]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("Go."));
    daemon.event("message_update");
    let ended = daemon.close();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let last = records(&home.session_files()[0]).pop().expect("a last entry");
    assert_eq!(
        (text(&last["message"]).as_str(), &last["message"]["stopReason"]),
        ("Part", &json!("aborted"))
    );
}

#[test]
fn drain_finishes_the_work_first() {
    let server = MockServer::always(Reply::stream(sse::answer("Done.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--on-eof", "drain"]);
    daemon.send(&prompt("Go."));
    let ended = daemon.close();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_eq!(ended.rest.last().expect("events")["type"], "agent_settled");
    let last = records(&home.session_files()[0]).pop().expect("a last entry");
    assert_eq!(text(&last["message"]), "Done.");
}

#[test]
fn signals_have_their_exit_codes() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let home = Home::new();
        assert_in_time(|| {
            let mut daemon = Daemon::start(&home, &[]);
            daemon.done(json!({"type": "get_state"}));
            let begin = Instant::now();
            daemon.signal(signal);
            let ended = daemon.wait();
            assert_eq!(ended.status.code(), Some(code), "{ended:?}");
            begin.elapsed()
        });
    }
}

/// Hosts send more commands at the end of a run, and fail when there is no reader.
#[test]
fn after_a_signal_nothing_more_is_said_and_all_is_stored() {
    let server = MockServer::start([Reply::stream(sse::text("Part")).hang()]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("Go."));
    daemon.until("a delta", |line| line["assistantMessageEvent"]["delta"] == "Part");
    daemon.signal(Signal::TERM);
    let ended = daemon.wait();
    assert_eq!((ended.status.code(), &ended.rest), (Some(143), &Vec::<Value>::new()), "{ended:?}");
    let last = records(&home.session_files()[0]).pop().expect("a last entry");
    assert_eq!(
        (text(&last["message"]).as_str(), &last["message"]["stopReason"]),
        ("Part", &json!("aborted"))
    );
}

#[test]
fn a_signal_in_the_middle_of_a_tool_leaves_nothing_behind() {
    assert_in_time(|| {
        let server = MockServer::start([Reply::stream(sse::calls(&[(
            "c1",
            "bash",
            json!({"command": "trap '' TERM; sleep 1000 & echo pid $!; setsid sleep 1000 & echo pid $!; wait"}),
        )]))]);
        let home = Home::with_model(&server);
        let mut daemon = Daemon::start(&home, &[]);
        daemon.send(&prompt("Go."));
        let mut ids: Vec<i32> = Vec::new();
        while ids.len() < 2 {
            let update = daemon.event("tool_execution_update");
            let output = text(&update["partialResult"]);
            ids = output.lines().filter_map(|line| line.strip_prefix("pid ")?.parse().ok()).collect();
        }
        let children = processes::watch(&ids);
        let begin = Instant::now();
        // pi's own client does both at once.
        daemon.end_input();
        daemon.signal(Signal::TERM);
        let ended = daemon.wait();
        let took = begin.elapsed();
        assert!(matches!(ended.status.code(), Some(0 | 143)), "{ended:?}");
        children.assert_gone_within(DEADLINE);
        let result = records(&home.session_files()[0])
            .into_iter()
            .find(|record| record["message"]["role"] == "toolResult");
        assert_eq!(result.expect("the call has a result")["message"]["isError"], true);
        took
    });
}

#[test]
fn an_unterminated_last_line_is_answered() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.send_bytes(b"{\"id\":\"last\",\"type\":\"get_state\"}");
    let ended = daemon.close();
    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(ended.rest.len(), 1, "{ended:?}");
    assert_eq!((&ended.rest[0]["id"], &ended.rest[0]["success"]), (&json!("last"), &json!(true)));
}

#[test]
fn a_closed_stdout_ends_the_daemon() {
    let home = Home::new();
    let mut child = home
        .command(agentd_e2e::binaries::agentd())
        .args(["--stdio", "--no-session"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"{\"type\":\"get_state\"}\n").unwrap();
    processes::watch(&[i32::try_from(child.id()).unwrap()]).assert_gone_within(agentd_e2e::DEADLINE);
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn signals_end_the_daemon_with_zero_and_the_socket_vanishes() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let home = Home::new();
        let service = Service::start(&home, &[]);
        let socket = service.socket().to_owned();
        let client = service.client();
        service.signal(signal);
        assert_eq!(client.closed(), Vec::<Value>::new());
        let ended = service.wait();
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        assert!(!socket.exists());
    }
}

/// A client whose session works: the model has begun to answer.
fn at_work(service: &Service, home: &Home) -> SocketClient {
    let mut client = service.client();
    client.done(json!({"type": "open_session", "cwd": home.project()}));
    client.send(&json!({"type": "prompt", "message": "Go."}));
    client.event("message_update");
    client
}

fn last_message(home: &Home) -> Value {
    records(&home.session_files()[0]).pop().expect("a last entry")["message"].clone()
}

#[test]
fn work_is_finished_first() {
    let gate = agentd_e2e::Gate::new();
    let server =
        MockServer::start([Reply::stream(sse::text("Half")).gate(&gate).then(sse::answer(" done."))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let client = at_work(&service, &home);
    service.signal(Signal::TERM);
    // It refuses new work and finishes the run.
    gate.open();
    let rest = client.closed();
    assert!(rest.iter().any(|line| line["type"] == "agent_settled"), "{rest:?}");
    let ended = service.wait();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_eq!(last_message(&home)["stopReason"], "stop");
}

#[test]
fn a_daemon_that_ends_takes_no_new_work() {
    let gate = agentd_e2e::Gate::new();
    let server =
        MockServer::start([Reply::stream(sse::text("Half")).gate(&gate).then(sse::answer(" done."))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = at_work(&service, &home);
    client.done(json!({"type": "shutdown"}));
    for kind in ["prompt", "steer", "bash", "open_session"] {
        let command = json!({"type": kind, "message": "x", "command": "true", "cwd": home.project()});
        assert_eq!(client.refused(command)["code"], "shutting_down", "{kind}");
    }
    client.done(json!({"type": "get_state"}));
    gate.open();
    assert!(client.closed().iter().any(|line| line["type"] == "agent_settled"));
    assert_eq!(service.wait().status.code(), Some(0));
}

#[test]
fn what_is_not_done_at_the_deadline_is_stopped_and_kept() {
    let server = MockServer::start([Reply::stream(sse::text("Part")).hang()]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = at_work(&service, &home);
    client.done(json!({"type": "shutdown", "deadlineMs": 50}));
    let ended = service.wait();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let last = last_message(&home);
    assert_eq!((text(&last).as_str(), &last["stopReason"]), ("Part", &json!("aborted")));
}

#[test]
fn down_can_stop_work_at_once() {
    let server = MockServer::start([Reply::stream(sse::text("Part")).hang()]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let client = at_work(&service, &home);
    let down = ctl::run(&home, &["down", "--abort"]);
    assert_eq!(down.code, 0, "{down:?}");
    let rest = client.closed();
    assert!(rest.iter().any(|line| line["type"] == "agent_settled"), "{rest:?}");
    assert_eq!(service.wait().status.code(), Some(0));
    assert_eq!(last_message(&home)["stopReason"], "aborted");
}

#[test]
fn a_second_signal_means_now() {
    let server = MockServer::start([Reply::stream(sse::text("Part")).hang()]);
    let home = Home::with_model(&server);
    let manager = Manager::new(&home);
    let service = manager.start(&home);
    let _client = at_work(&service, &home);
    service.signal(Signal::TERM);
    // It has handled the first signal when it reports `STOPPING`.
    assert_eq!((manager.told(), manager.told()), ("READY=1\n".into(), "STOPPING=1\n".into()));
    service.signal(Signal::TERM);
    let socket = service.socket().to_owned();
    assert_eq!(service.wait().status.code(), Some(143));
    assert!(!socket.exists());
}

#[test]
fn a_client_that_takes_nothing_holds_nobody_up() {
    let home = Home::new();
    let service = Service::start(&home, &[]);
    let mut silent = service.client();
    // The response exceeds the socket's buffer: once it has begun, the daemon waits only for this client.
    silent.send(&json!({"type": "daemon_status", "id": "x".repeat(4 << 20)}));
    silent.wait_until_readable();
    let mut other = service.client();
    assert_eq!(other.done(json!({"type": "daemon_status"}))["clients"], 2);
    service.signal(Signal::TERM);
    let ended = service.wait();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_says(&ended.stderr, &["clients did not take their last lines in time"]);
}

/// A daemon that finishes work before it ends says so, refuses new work, and can be told to hurry.
#[test]
fn a_daemon_that_is_ending_says_so_and_can_be_hurried() {
    let server = MockServer::start([Reply::stream(sse::text("Half")).hang()]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = at_work(&service, &home);
    client.done(json!({"type": "shutdown", "deadlineMs": 600_000}));

    let said = ctl::run(&home, &["status"]);
    assert_eq!(said.code, 9, "{said:?}");
    assert_says(
        &said.stdout,
        &[
            "is ending once its work is done, in ",
            "1 at work",
            "It waits for 1 session:\n",
            "  answering",
            "  project: Go.\n",
            "`agentctl down --abort` ends it at once",
        ],
    );
    let said = ctl::run(&home, &["status", "--json"]);
    let status: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(
        (said.code, &status["running"], &status["ending"]["mode"]),
        (9, &json!(true), &json!("drain"))
    );
    assert!(status["ending"]["remainingMs"].as_u64().unwrap() <= 600_000, "{status}");
    let waits_for = status["waitsFor"].as_array().unwrap();
    assert_eq!((waits_for.len(), &waits_for[0]["state"]), (1, &json!("answering")), "{status}");

    // New clients may read and begin nothing.
    let mut late = service.client();
    let open = json!({"type": "open_session", "cwd": home.project()});
    assert_eq!(late.refused(open)["code"], "shutting_down");
    let sessions = late.done(json!({"type": "list_sessions"}));
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1, "{sessions}");
    let prompt = ctl::run(&home, &["prompt", "Hi"]);
    assert_eq!(prompt.code, 9, "{prompt:?}");
    assert_says(&prompt.stderr, &["is ending", "agentctl up"]);
    // A later deadline changes nothing, an earlier one counts.
    late.done(json!({"type": "shutdown", "deadlineMs": 900_000}));
    let remaining = |client: &mut SocketClient| {
        client.done(json!({"type": "daemon_status"}))["ending"]["remainingMs"].as_u64().unwrap()
    };
    assert!(remaining(&mut late) <= 600_000);
    late.done(json!({"type": "shutdown", "deadlineMs": 300_000}));
    assert!(remaining(&mut late) <= 300_000);

    // `up` starts the next daemon after this one ended, which another client causes.
    let mut up = Ctl::start(&home, &["up"]);
    up.wait_for_stderr("is ending: waiting for 1 session(s) to finish");
    let down = ctl::run(&home, &["down", "--abort"]);
    assert_eq!(down.code, 0, "{down:?}");
    assert_eq!(last_message(&home)["stopReason"], "aborted");
    assert_eq!(service.wait().status.code(), Some(0));
    let up = up.finish();
    assert_eq!(up.code, 0, "{up:?}");
    let next = status_of(&home);
    let _next = InBackground { home: &home, status: next.clone() };
    assert!(next["ending"].is_null() && next["running"] == json!(true), "{next}");
}

fn status_of(home: &Home) -> Value {
    status(home).expect("a daemon")
}

#[test]
fn a_deadline_hurries_a_daemon_that_is_ending() {
    let server = MockServer::start([Reply::stream(sse::text("Half")).hang()]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = at_work(&service, &home);
    client.done(json!({"type": "shutdown", "deadlineMs": 600_000}));
    let down = ctl::run(&home, &["down", "--deadline", "0"]);
    assert_eq!(down.code, 0, "{down:?}");
    assert_eq!(service.wait().status.code(), Some(0));
    assert_eq!(last_message(&home)["stopReason"], "aborted");
}

/// A daemon that finishes a command before it ends says which one, to everyone who waits.
#[test]
fn a_daemon_that_is_ending_names_the_command_that_it_waits_for() {
    let call = sse::calls(&[("c1", "bash", json!({"command": "echo begun; sleep 1000"}))]);
    let server = MockServer::start([Reply::stream(call)]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "open_session", "cwd": home.project()}));
    client.send(&json!({"type": "prompt", "message": "Run it."}));
    client.until("its output", |line| text(&line["partialResult"]).contains("begun"));

    // The first `down` waits for the work, and the next daemon does not come before its end.
    let mut first = Ctl::start(&home, &["down", "--deadline", "10m"]);
    first.wait_for_stderr("Waiting for 1 session(s) to finish, 10 min 0 s at most.");
    first.wait_for_stderr("running `echo begun; sleep 1000`");
    first.wait_for_stderr("`agentctl down --abort` stops them.");
    let said = ctl::run(&home, &["status"]);
    assert_eq!(said.code, 9, "{said:?}");
    assert_says(&said.stdout, &["running `echo begun; sleep 1000`", "project: Run it."]);

    // `up` waits no longer than it is told, and says that it did not start one.
    let up = ctl::run(&home, &["up", "--timeout", "0"]);
    assert_eq!(up.code, 9, "{up:?}");
    assert_says(&up.stderr, &["running `echo begun; sleep 1000`", "has not ended yet"]);

    // A second `down` reaches the daemon while the first one waits; a later deadline counts nothing.
    let mut later = Ctl::start(&home, &["down", "--deadline", "20m"]);
    later.wait_for_stderr("Waiting for 1 session(s) to finish, ");
    let second = ctl::run(&home, &["down", "--abort"]);
    assert_eq!(second.code, 0, "{second:?}");
    assert_eq!(service.wait().status.code(), Some(0));
    for waiting in [first, later] {
        let waited = waiting.finish();
        assert_eq!(waited.code, 0, "{waited:?}");
        assert_says(&waited.stdout, &["agentd has ended (pid "]);
    }
    let result = records(&home.session_files()[0])
        .into_iter()
        .find(|record| record["message"]["role"] == "toolResult");
    assert_eq!(result.expect("the call has a result")["message"]["isError"], true);
    let again = ctl::run(&home, &["down", "--abort"]);
    assert_eq!((again.code, again.stdout.as_str()), (0, "agentd is not running\n"), "{again:?}");
}

/// A command of the user is finished first, too, though no run is active.
#[test]
fn a_daemon_that_is_ending_waits_for_commands_of_the_user() {
    let home = Home::new();
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "open_session", "cwd": home.project()}));
    client.send(&json!({"type": "bash", "command": "echo begun; sleep 1000"}));
    client.event("bash_execution_update");
    client.done(json!({"type": "shutdown", "deadlineMs": 600_000}));
    let said = ctl::run(&home, &["status"]);
    assert_eq!(said.code, 9, "{said:?}");
    assert_says(&said.stdout, &["It waits for 1 session:", "running `echo begun; sleep 1000`"]);
    let down = ctl::run(&home, &["down", "--deadline", "soon"]);
    assert_eq!(down.code, 2, "soon is no time: {down:?}");
    let down = ctl::run(&home, &["down", "--deadline", "0s"]);
    assert_eq!(down.code, 0, "{down:?}");
    assert_eq!(service.wait().status.code(), Some(0));
}
