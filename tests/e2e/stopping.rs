//! Stopping what does not end by itself.

use std::time::{Duration, Instant};

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, processes, sse};
use rustix::process::Signal;
use serde_json::json;

use crate::support::{answers, ended, prompt, text};

/// The supervisor of the command is stopped, so that by itself it neither kills the command nor tells of its end.
#[test]
fn an_abort_is_answered_though_a_supervisor_is_stopped() {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "bash", json!({"command": "echo supervisor $PPID; sleep 1000"}))])),
        Reply::stream(sse::answer("Here.")),
    ]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("Go."));
    let supervisor = loop {
        let output = text(&daemon.event("tool_execution_update")["partialResult"]);
        if let Some(id) = output.lines().find_map(|line| line.strip_prefix("supervisor ")?.parse().ok()) {
            break id;
        }
    };
    processes::signal(supervisor, Signal::STOP);
    let begun = Instant::now();
    let receipt = daemon.done(json!({"type": "abort"}));
    let waited = begun.elapsed();
    assert_eq!(receipt, json!(null), "nothing survives: the supervisor was told to go on");
    // A second, and what a busy machine adds.
    assert!(waited < Duration::from_secs(5), "{waited:?}");
    let events = daemon.settled();
    let [result] = ended(&events, "toolResult")[..] else { panic!("{events:?}") };
    // The command's own end, which the supervisor told of.
    assert!(text(result).ends_with("Command aborted") && result["isError"] == true, "{result}");
    assert_eq!(answers(&events).last().unwrap()["stopReason"], "aborted");

    assert_eq!(text(answers(&daemon.prompt("Still there?"))[0]), "Here.");
}

/// SIGTERM is ignored: the processes have two seconds, and whoever asked does not wait for that.
#[test]
fn an_abort_of_everything_says_what_takes_longer() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let script = "(trap '' TERM; while :; do sleep 1000; done) >/dev/null 2>&1 & echo pid $!";
    let output = daemon.done(json!({"type": "bash", "command": script}));
    let id: i32 = output["output"].as_str().unwrap().trim().strip_prefix("pid ").unwrap().parse().unwrap();
    let child = processes::watch(&[id]);
    let receipt = daemon.done(json!({"type": "abort", "scope": "all"}));
    assert_eq!(receipt, json!({"ended": [], "survives": [{"kind": "background"}]}));
    child.assert_gone_within(Duration::from_secs(30));
}

/// Whoever asks is answered, though the only client that follows the session reads nothing; the run is over then.
#[test]
fn a_follower_that_does_not_read_holds_no_abort_up() {
    let flood: String = (0..500).map(|_| sse::text(&"0123456789".repeat(2_000))).collect();
    let server = MockServer::start([Reply::stream(flood).hang()]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let (mut sleeper, mut other) = (service.client(), service.client());
    let opened = sleeper.done(json!({"type": "open_session", "cwd": home.project()}));
    let id = opened["sessionId"].as_str().unwrap();
    sleeper.send(&prompt("Flood."));
    let _ = server.wait_for_requests(1);
    let begun = Instant::now();
    let receipt = other.done(json!({"type": "abort", "scope": "turn", "sessionId": id}));
    let waited = begun.elapsed();
    assert_eq!(receipt, json!({"ended": [{"kind": "turn"}], "survives": []}));
    assert!(waited < Duration::from_secs(5), "{waited:?}");
    server.wait_for_disconnects(1);
    let file = std::fs::read_to_string(&home.session_files()[0]).unwrap();
    let last: serde_json::Value = serde_json::from_str(file.lines().last().unwrap()).unwrap();
    assert_eq!(last["message"]["stopReason"], "aborted");
}
