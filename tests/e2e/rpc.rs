//! `agentctl rpc`: the wire on stdin and stdout, with an agentd of its own or a session of the daemon.

use std::process::Stdio;

use agentd_e2e::{Ctl, Gate, Home, MockServer, Reply, Service, ctl, sse};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{OnDemand, answers, assert_says, live_sessions, prompt, text};

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
        // A session of the daemon stays there.
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
fn a_daemon_that_dies_is_told_of() {
    let gate = Gate::new();
    let server = MockServer::start([Reply::stream(sse::text("First")).gate(&gate)]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    // Its stdin stays open.
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
