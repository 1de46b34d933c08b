//! How the daemon ends: the end of its input, signals, and what clients of the reference do.

use std::time::{Duration, Instant};

use agentd_e2e::{Daemon, Home, MockServer, Reply, processes, sse};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{prompt, records, text};

/// Clients kill after a second, and look 50 ms before.
const PATIENCE_OF_CLIENTS: Duration = Duration::from_millis(950);

#[test]
fn idle_at_the_end_of_input() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "get_state"}));
    let ended = daemon.close();
    assert_eq!((ended.status.code(), ended.rest, ended.stderr.as_str()), (Some(0), Vec::<Value>::new(), ""));
    assert_eq!(home.session_files(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn in_the_middle_of_an_answer() {
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
        let mut daemon = Daemon::start(&home, &[]);
        daemon.done(json!({"type": "get_state"}));
        let begin = Instant::now();
        daemon.signal(signal);
        let ended = daemon.wait();
        assert_eq!(ended.status.code(), Some(code), "{ended:?}");
        assert!(begin.elapsed() < PATIENCE_OF_CLIENTS, "{:?}", begin.elapsed());
    }
}

/// Hosts answer the end of a run with more commands, and break when nobody is there to read them.
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
    // As the reference's own client does it: both at once.
    daemon.end_input();
    daemon.signal(Signal::TERM);
    let ended = daemon.wait();
    assert!(begin.elapsed() < PATIENCE_OF_CLIENTS, "{:?}", begin.elapsed());
    assert!(matches!(ended.status.code(), Some(0 | 143)), "{ended:?}");
    children.assert_gone_within(Duration::from_secs(1));
    let result = records(&home.session_files()[0])
        .into_iter()
        .find(|record| record["message"]["role"] == "toolResult");
    assert_eq!(result.expect("the call has a result")["message"]["isError"], true);
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
fn a_closed_stdout_ends_it() {
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
