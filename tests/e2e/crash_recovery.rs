//! Crash recovery after `kill -9` in the middle of a turn: the next daemon knows from the intent log what was under way,
//! and reports it truthfully.

use std::{fs, path::PathBuf};

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, processes, sse};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{assert_says, prompt, records, roles, text};

const MAY_HAVE_RUN: &str = "interrupted by a crash; it may have run";

const DID_NOT_RUN: &str = "interrupted by a crash; it did not run";

/// A daemon that dies at a fail point.
fn armed(home: &Home, args: &[&str], points: &str) -> Daemon {
    Daemon::start_with(home, args, |command| {
        command.env("AGENTD_FAIL_POINTS", points);
    })
}

fn file(home: &Home) -> PathBuf {
    home.session_files()[0].clone()
}

fn intent_log(home: &Home) -> PathBuf {
    file(home).with_extension("ledger")
}

/// The tool results in the session file: text, and whether it is an error.
fn results(home: &Home) -> Vec<(String, bool)> {
    // Some of these crashes leave a torn line.
    let content = fs::read_to_string(file(home)).expect("a session file");
    let records = content.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let messages = records.map(|record| record["message"].clone());
    let results = messages.filter(|message| message["role"] == "toolResult");
    results.map(|result| (text(&result), result["isError"] == true)).collect()
}

/// The session's report on its last crash.
fn told(daemon: &mut Daemon) -> Vec<String> {
    let found = daemon.done(json!({"type": "get_diagnostics"}));
    let all = found["diagnostics"].as_array().expect("a list").iter();
    let of_session = all.filter(|it| it["kind"] == "session" && it["level"] == "warning");
    of_session.map(|it| it["message"].as_str().expect("a message").to_owned()).collect()
}

/// Opens the session again and ends the daemon.
fn open_and_close(home: &Home) {
    let mut daemon = Daemon::start(home, &["--continue"]);
    daemon.done(json!({"type": "get_state"}));
    assert!(daemon.close().status.success());
}

fn one_call(command: &str) -> Reply {
    Reply::stream(sse::calls(&[("c1", "bash", json!({"command": command}))]))
}

/// Kills the daemon while a tool of a turn runs.
fn killed_in_a_tool(home: &Home) {
    let mut daemon = Daemon::start(home, &[]);
    daemon.send(&prompt("Go."));
    daemon.until("output", |line| {
        line["type"] == "tool_execution_update" && !text(&line["partialResult"]).is_empty()
    });
    daemon.signal(Signal::KILL);
    daemon.wait();
}

#[test]
fn a_settled_session_has_no_intent_log() {
    let server = MockServer::start([one_call("echo hi"), Reply::stream(sse::answer("Done."))]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("Go.");
    daemon.done(json!({"type": "bash", "command": "true"}));
    assert!(daemon.close().status.success());
    assert!(!intent_log(&home).exists());
    let mut daemon = Daemon::start(&home, &["--continue"]);
    assert_eq!(told(&mut daemon), Vec::<String>::new());
}

#[test]
fn text_that_streamed_is_kept() {
    let server = MockServer::start([
        Reply::stream(sse::text("First half, ") + &sse::text("second")).hang(),
        Reply::stream(sse::answer("Again.")),
    ]);
    let home = Home::with_model(&server);
    let mut daemon = armed(&home, &[], "intent_log.flushed");
    daemon.send(&prompt("Go."));
    daemon.wait();
    assert!(intent_log(&home).exists());

    let mut daemon = Daemon::start(&home, &["--continue"]);
    daemon.done(json!({"type": "get_state"}));
    let last = records(&file(&home)).pop().expect("an entry")["message"].clone();
    assert_eq!((text(&last).as_str(), &last["stopReason"]), ("First half, second", &json!("aborted")));
    assert_eq!(last["errorMessage"], "Interrupted by a crash");
    assert_says(&told(&mut daemon)[0], &["crash", "18 characters"]);
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!(state["isStreaming"], false);
    // The conversation goes on as after any abort.
    daemon.prompt("Go on.");
    assert_eq!(roles(&file(&home)), ["system", "user", "assistant", "user", "assistant"]);
    drop(daemon);
    let mut daemon = Daemon::start(&home, &["--continue"]);
    assert_eq!(told(&mut daemon), Vec::<String>::new(), "it is told once");
}

#[test]
fn of_two_calls_one_was_done() {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[
            ("c1", "bash", json!({"command": "echo one; sleep 1000"})),
            ("c2", "bash", json!({"command": "echo two"})),
        ])),
        Reply::stream(sse::answer("I see.")),
    ]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("Go."));
    daemon.event("tool_execution_end");
    let children = processes::watch(&processes::children(daemon.id()));
    daemon.signal(Signal::KILL);
    daemon.wait();
    children.assert_gone_within(agentd_e2e::DEADLINE);
    assert_eq!(roles(&file(&home)), ["system", "user", "assistant"]);

    let mut daemon = Daemon::start(&home, &["--continue"]);
    assert_says(&told(&mut daemon)[0], &["bash may have run", "bash ran to its end"]);
    let results = results(&home);
    assert_eq!(results[0], (MAY_HAVE_RUN.to_owned(), true));
    assert_says(&results[1].0, &["two"]);
    assert!(!results[1].1);
    daemon.prompt("And?");
    // The model receives the same text.
    let request = &server.requests()[1];
    let said: Vec<String> = request.messages().iter().filter(|it| it["role"] == "tool").map(text).collect();
    assert_eq!(said[0], MAY_HAVE_RUN);
    assert_says(&said[1], &["two"]);
}

#[test]
fn the_report_on_an_interrupted_call_is_true() {
    // The third write of a run records the calls: the first records the run, the second the request.
    for (point, said) in [
        ("intent_log.intent@3", DID_NOT_RUN),
        ("intent_log.intent@3:torn", DID_NOT_RUN),
        ("intent_log.intent_written@3", MAY_HAVE_RUN),
        ("run.tool_started", MAY_HAVE_RUN),
    ] {
        let server = MockServer::start([one_call("touch ran")]);
        let home = Home::with_model(&server);
        let mut daemon = armed(&home, &[], point);
        daemon.send(&prompt("Go."));
        daemon.wait();
        assert!(!home.project().join("ran").exists(), "{point}");
        open_and_close(&home);
        assert_eq!(results(&home), [(said.to_owned(), true)], "{point}");
        assert!(!intent_log(&home).exists());
    }
}

#[test]
fn a_call_whose_intent_cannot_be_written_does_not_run() {
    let server = MockServer::start([one_call("touch ran")]);
    let home = Home::with_model(&server);
    let mut daemon = armed(&home, &[], "intent_log.intent@3:enospc");
    let events = daemon.prompt("Go.");
    assert!(!home.project().join("ran").exists());
    let failed = crate::support::answers(&events).last().expect("an answer")["errorMessage"].clone();
    assert_says(failed.as_str().expect("an error"), &[".ledger", "No space left"]);
    assert_eq!(daemon.done(json!({"type": "get_state"}))["isStreaming"], false);
}

#[test]
fn results_and_text_that_cannot_be_noted_stop_nothing() {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[
            ("c1", "bash", json!({"command": "echo one"})),
            ("c2", "bash", json!({"command": "echo two"})),
        ])),
        Reply::stream(sse::answer("Fine.")),
    ]);
    let home = Home::with_model(&server);
    let mut daemon =
        armed(&home, &[], "intent_log.outcome@1+:enospc,intent_log.flush@1+:eio,intent_log.clear@1+:eacces");
    let events = daemon.prompt("Go.");
    assert_eq!(text(crate::support::answers(&events)[1]), "Fine.");
}

#[test]
fn recovery_that_is_killed_is_done_again() {
    for point in [
        "recovery.begin",
        "recovery.appended",
        "recovery.cleared",
        "store.append",
        "store.appended",
        "store.append:torn",
    ] {
        let server = MockServer::start([one_call("echo x; sleep 1000")]);
        let home = Home::with_model(&server);
        killed_in_a_tool(&home);
        armed(&home, &["--continue"], point).wait();
        open_and_close(&home);
        assert_eq!(results(&home), [(MAY_HAVE_RUN.to_owned(), true)], "{point}");
        assert!(!intent_log(&home).exists(), "{point}");
    }
}

#[test]
fn a_turn_goes_on_by_itself_and_runs_no_tool_again() {
    let server = MockServer::start([
        one_call("echo x >> ran; echo x; sleep 1000"),
        Reply::stream(sse::answer("I see.")),
    ]);
    let home = Home::with_model(&server);
    home.settings(&json!({"crashRecovery": "resume"}));
    killed_in_a_tool(&home);
    let mut daemon = Daemon::start(&home, &["--continue"]);
    let events = daemon.settled();
    assert_eq!(text(crate::support::answers(&events)[0]), "I see.");
    assert_eq!(home.read("ran"), "x\n");
    assert_eq!(roles(&file(&home)), ["system", "user", "assistant", "toolResult", "assistant"]);
    let request = &server.requests()[1];
    assert_eq!(text(request.messages().last().expect("a message")), MAY_HAVE_RUN);
    assert!(daemon.close().status.success());
    assert!(!intent_log(&home).exists());
}

#[test]
fn a_turn_that_kills_the_daemon_does_not_go_on_for_ever() {
    let server = MockServer::always(Reply::silence());
    let home = Home::with_model(&server);
    home.settings(&json!({"crashRecovery": "resume"}));
    let mut daemon = armed(&home, &[], "run.model_asked");
    daemon.send(&prompt("Go."));
    daemon.wait();
    for _ in 0..2 {
        armed(&home, &["--continue"], "run.model_asked").wait();
    }
    let mut daemon = armed(&home, &["--continue"], "run.model_asked");
    assert_eq!(daemon.done(json!({"type": "get_state"}))["isStreaming"], false);
    assert_says(&told(&mut daemon)[0], &["crash"]);
}

#[test]
fn the_user_is_asked_whether_a_turn_goes_on() {
    for (answer, goes_on) in [(true, true), (false, false)] {
        let server =
            MockServer::start([one_call("echo x; sleep 1000"), Reply::stream(sse::answer("I see."))]);
        let home = Home::with_model(&server);
        home.settings(&json!({"crashRecovery": "ask"}));
        killed_in_a_tool(&home);
        let service = Service::start(&home, &[]);
        let mut client = service.client();
        client.done(json!({
            "type": "hello", "protocol": 1, "client": {"name": "one"}, "capabilities": {"sessions": true, "ui": true},
        }));
        let opened = client.done(json!({"type": "open_session", "cwd": home.project(), "continue": true}));
        let session = opened["sessionId"].clone();
        let question = client.event("extension_ui_request");
        assert_eq!(question["method"], "confirm");
        assert_says(question["title"].as_str().expect("a title"), &["crash"]);
        let status = client.done(json!({"type": "daemon_status"}));
        assert_eq!(status["runningSessions"], 0);
        client.send(&json!({"type": "extension_ui_response", "id": question["id"], "confirmed": answer}));
        if goes_on {
            client.event("agent_settled");
            assert_eq!(server.requests().len(), 2);
        } else {
            client.event("ui_request_resolved");
            let state = client.done(json!({"type": "get_state", "sessionId": session}));
            assert_eq!(state["isStreaming"], false);
            assert_eq!(server.requests().len(), 1);
        }
    }
}

#[test]
fn a_command_of_the_user_is_on_record() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("Go.");
    let bash = json!({"id": "b", "type": "bash", "command": "echo begun >> ran; echo x; sleep 1000", "requestKey": "k"});
    daemon.send(&bash);
    daemon.event("bash_execution_update");
    daemon.signal(Signal::KILL);
    daemon.wait();
    let mut daemon = Daemon::start(&home, &["--continue"]);
    daemon.done(json!({"type": "get_state"}));
    let last = records(&file(&home)).pop().expect("an entry")["message"].clone();
    assert_eq!((&last["role"], &last["output"]), (&json!("bashExecution"), &json!(MAY_HAVE_RUN)));
    // Sending it again returns the record; nothing runs twice.
    let again = daemon.done(bash);
    assert_eq!((&again["output"], &again["cancelled"]), (&json!(MAY_HAVE_RUN), &json!(true)));
    assert_eq!(home.read("ran"), "begun\n");
}

#[test]
fn nobody_says_that_a_dead_run_streams() {
    let server = MockServer::start([Reply::stream(sse::text("Half")).hang()]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("Go."));
    daemon.event("message_update");
    daemon.signal(Signal::KILL);
    daemon.wait();
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "client": {"name": "one"}, "capabilities": {"sessions": true}}));
    let streaming = |list: &Value| {
        list["sessions"].as_array().expect("a list").iter().filter(|it| it["isStreaming"] == true).count()
    };
    let list = json!({"type": "list_sessions", "cwd": home.project()});
    assert_eq!(streaming(&client.done(list.clone())), 0);
    let opened = client.done(json!({"type": "open_session", "cwd": home.project(), "continue": true}));
    let listed = client.done(list);
    assert_eq!((streaming(&listed), listed["sessions"].as_array().map(Vec::len)), (0, Some(1)));
    assert_eq!(client.done(json!({"type": "daemon_status"}))["runningSessions"], 0);
    let id = opened["sessionId"].clone();
    assert_eq!(client.done(json!({"type": "get_state", "sessionId": id}))["isStreaming"], false);
}

#[test]
fn the_intent_log_goes_with_its_session() {
    let server = MockServer::start([one_call("echo x; sleep 1000")]);
    let home = Home::with_model(&server);
    killed_in_a_tool(&home);
    let (file, intent_log) = (file(&home), intent_log(&home));
    let id = records(&file)[0]["id"].clone();
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "client": {"name": "one"}, "capabilities": {"sessions": true}}));
    assert!(intent_log.exists());
    client.done(json!({"type": "delete_session", "sessionId": id}));
    assert!(!intent_log.exists() && !file.exists());
}

/// The disk is full when the session is opened: recovered entries are stored before anything else, and kept until then.
#[test]
fn entries_that_cannot_be_recovered_at_once_are_kept() {
    let calls = [("c1", "bash", json!({"command": "true"})), ("c2", "bash", json!({"command": "true"}))];
    let server =
        MockServer::start([Reply::stream(sse::calls(&calls)), Reply::stream(sse::answer("All is well."))]);
    let home = Home::with_model(&server);
    let mut daemon = armed(&home, &[], "run.tool_started");
    daemon.send(&prompt("Go."));
    daemon.wait();
    // The second result cannot be stored when the session is opened, nor at the first retry.
    let points = "store.append@2:enospc,store.append@3:enospc";
    let mut daemon = armed(&home, &["--continue"], points);
    assert_says(&told(&mut daemon).join(" "), &["could not be stored"]);
    let run = json!({"type": "bash", "command": "true"});
    let refused = daemon.call(run.clone());
    assert_eq!(refused["success"], false, "{refused}");
    assert_says(refused["error"].as_str().expect("an error"), &["has to be stored first", "could not be"]);
    assert!(intent_log(&home).exists());
    daemon.done(run);
    let said: Vec<String> = results(&home).into_iter().map(|(said, _)| said).collect();
    assert_eq!(said, [MAY_HAVE_RUN, MAY_HAVE_RUN]);
    daemon.prompt("Again.");
    assert!(daemon.close().status.success());
    assert!(!intent_log(&home).exists());
}
