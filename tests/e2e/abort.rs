//! Stopping a run, by `abort` or by a prompt that takes its place: what was produced stays, every call gets a result, the next
//! prompt works.

use agentd_e2e::{DEADLINE, Daemon, Gate, Home, MockServer, Reply, Service, processes, sse};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{TestClient, answers, both, ended, prompt, text};

#[test]
fn abort_while_streaming_keeps_the_part() {
    let server =
        MockServer::start([Reply::stream(sse::text("Part")).hang(), Reply::stream(sse::answer("Whole."))]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("Go."));
    daemon.event("message_update");
    daemon.send(&json!({"id": "a", "type": "abort"}));
    let events = daemon.settled();
    let answer = *answers(&events).last().expect("an answer");
    assert_eq!((text(answer).as_str(), &answer["stopReason"]), ("Part", &json!("aborted")));
    assert!(answer["errorMessage"].is_string(), "{answer}");
    assert_eq!(events.last().unwrap()["aborted"], true);
    // The response to `abort` is the very next line.
    let response = daemon.line();
    assert_eq!((&response["id"], &response["success"]), (&json!("a"), &json!(true)));
    server.wait_for_disconnects(1);
    assert_eq!(text(answers(&daemon.prompt("Again."))[0]), "Whole.");
}

#[test]
fn abort_works_before_the_first_byte() {
    let server = MockServer::start([Reply::silence()]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("Go."));
    let _ = server.wait_for_requests(1);
    daemon.done(json!({"type": "abort"}));
    let events = daemon.settled();
    assert_eq!(answers(&events)[0]["stopReason"], "aborted");
    server.wait_for_disconnects(1);
}

#[test]
fn abort_while_tools_run_gives_all_calls_a_result_and_leaves_nothing() {
    let script = "echo begun; sleep 1000 & echo pid $!; setsid sleep 1000 & echo pid $!; wait";
    let server = MockServer::start([Reply::stream(sse::calls(&[
        ("c1", "bash", json!({"command": script})),
        ("c2", "bash", json!({"command": "echo other; sleep 1000"})),
    ]))]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("Go."));
    let mut seen = (false, Vec::new());
    while !seen.0 || seen.1.len() < 2 {
        let update = daemon.event("tool_execution_update");
        let output = text(&update["partialResult"]);
        seen.0 |= output.contains("other");
        if update["toolCallId"] == "c1" {
            seen.1 = pids(&output);
        }
    }
    let children = processes::watch(&seen.1);
    daemon.done(json!({"type": "abort"}));
    children.assert_gone_within(DEADLINE);
    let events = daemon.settled();
    let results = ended(&events, "toolResult");
    assert_eq!(results.iter().map(|result| &result["toolCallId"]).collect::<Vec<_>>(), ["c1", "c2"]);
    for result in results {
        assert_eq!(result["isError"], true);
        assert!(text(result).ends_with("Command aborted"), "{result}");
    }
    assert_eq!(answers(&events).last().unwrap()["stopReason"], "aborted");
}

/// The process ids in lines `pid N`.
fn pids(output: &str) -> Vec<i32> {
    output.lines().filter_map(|line| line.strip_prefix("pid ")?.parse().ok()).collect()
}

#[test]
fn abort_does_nothing_in_an_idle_session() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.send(&json!({"id": "a", "type": "abort"}));
    assert_eq!(daemon.line(), json!({"id": "a", "type": "response", "command": "abort", "success": true}));
}

#[test]
fn commands_are_answered_while_a_run_is_on() {
    let gate = Gate::new();
    let server =
        MockServer::start([Reply::stream(sse::text("Hm.")).gate(&gate).then(sse::end("stop", (1, 0, 1)))]);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&prompt("Go."));
    daemon.event("message_update");
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!(state["isStreaming"], true);
    for kind in [
        "get_session_stats",
        "get_messages",
        "get_entries",
        "get_available_models",
        "get_last_assistant_text",
    ] {
        daemon.done(json!({"type": kind}));
    }
    assert_eq!(daemon.done(json!({"type": "bash", "command": "echo hi"}))["output"], "hi\n");
    gate.open();
    daemon.settled();
    // The command ran during the run; its message follows those of the run.
    let messages = daemon.done(json!({"type": "get_messages"}));
    let roles: Vec<&Value> = messages["messages"].as_array().unwrap().iter().map(|m| &m["role"]).collect();
    assert_eq!(roles, ["system", "user", "assistant", "bashExecution"]);
}

/// A stopped supervisor neither kills its command nor reports its end.
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
    let receipt = daemon.done(json!({"type": "abort"}));
    assert_eq!(receipt, json!(null), "nothing survives: the supervisor was told to go on");
    let events = daemon.settled();
    let [result] = ended(&events, "toolResult")[..] else { panic!("{events:?}") };
    // The result reports the command's own end, which came from the supervisor.
    assert!(text(result).ends_with("Command aborted") && result["isError"] == true, "{result}");
    assert_eq!(answers(&events).last().unwrap()["stopReason"], "aborted");

    assert_eq!(text(answers(&daemon.prompt("Still there?"))[0]), "Here.");
}

/// The processes ignore SIGTERM and get two seconds; `abort` is answered before that.
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
    child.assert_gone_within(DEADLINE);
}

/// `abort` is answered and the run ends even though the only subscriber reads nothing.
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
    let receipt = other.done(json!({"type": "abort", "scope": "turn", "sessionId": id}));
    assert_eq!(receipt, json!({"ended": [{"kind": "turn"}], "survives": []}));
    server.wait_for_disconnects(1);
    let file = std::fs::read_to_string(&home.session_files()[0]).unwrap();
    let last: serde_json::Value = serde_json::from_str(file.lines().last().unwrap()).unwrap();
    assert_eq!(last["message"]["stopReason"], "aborted");
}

#[test]
fn a_prompt_takes_the_place_of_the_run() {
    let replies = [Reply::stream(sse::text("half")).hang(), Reply::stream(sse::answer("Whole."))];
    both(&replies, &[], |_, server, client| {
        client.done(json!({"type": "prompt", "message": "first"}));
        client.lines_until("a delta", &|line| line["assistantMessageEvent"]["delta"] == "half");
        let lines = client.lines_until_done(json!({"type": "abort_and_prompt", "message": "instead"}));
        let settled =
            lines.iter().position(|line| line["type"] == "agent_settled").expect("the old run settles first");
        assert_eq!(lines[settled]["aborted"], json!(true));
        assert_eq!(settled, lines.len() - 2, "nothing comes in between");
        assert_eq!(lines.last().unwrap()["data"], json!({"disposition": "started"}));
        let rest = client.lines_until("the end", &|line| line["type"] == "agent_settled");
        assert_eq!(rest.last().unwrap()["aborted"], json!(false));
        server.wait_for_disconnects(1);
        assert_eq!(client.context().last().unwrap(), "assistant: Whole.");
    });
}

#[test]
fn of_two_replacing_prompts_the_last_one_runs_and_an_idle_session_just_runs() {
    let replies = [
        Reply::stream(sse::answer("Zero.")),
        Reply::stream(sse::text("half")).hang(),
        // The first prompt gets an answer if it is fast enough before the second takes its place.
        Reply::stream(sse::answer("Whole.")),
        Reply::stream(sse::answer("Whole.")),
    ];
    let server = MockServer::start(replies);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "abort_and_prompt", "message": "zero"}));
    daemon.settled();
    daemon.done(json!({"type": "prompt", "message": "first"}));
    daemon.until("a delta", |line| line["assistantMessageEvent"]["delta"] == "half");
    let both = "{\"id\":\"a\",\"type\":\"abort_and_prompt\",\"message\":\"a\"}\n{\"id\":\"b\",\"type\":\"abort_and_prompt\",\"message\":\"b\"}\n";
    daemon.send_bytes(both.as_bytes());
    let lines = daemon.all_until("the answer to b", |line| line["id"] == "b");
    let a = lines.iter().find(|line| line["id"] == "a").expect("a is answered");
    let b = lines.last().unwrap();
    assert_eq!(b["success"], json!(true), "{b}");
    if a["success"] == json!(false) {
        assert_eq!(a["code"], "aborted", "{a}");
    }
    daemon.until("the end of b", |line| line["type"] == "agent_settled" && line["aborted"] == false);
    assert_eq!(daemon.context().last().unwrap(), "assistant: Whole.");
}

#[test]
fn a_repetition_stops_nothing() {
    let gate = Gate::new();
    let replies = [
        Reply::stream(sse::text("half")).hang(),
        Reply::stream(sse::text("Who")).gate(&gate).then(sse::answer("le.")),
    ];
    let server = MockServer::start(replies);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "prompt", "message": "first"}));
    daemon.until("a delta", |line| line["assistantMessageEvent"]["delta"] == "half");
    let command = json!({"type": "abort_and_prompt", "message": "instead", "requestKey": "k"});
    assert_eq!(daemon.done(command.clone())["disposition"], "started");
    daemon.until("a delta", |line| line["assistantMessageEvent"]["delta"] == "Who");
    assert_eq!(daemon.done(command)["disposition"], "started");
    gate.open();
    let settled = daemon.settled();
    assert_eq!(settled.last().unwrap()["aborted"], json!(false));
    assert_eq!(daemon.context().last().unwrap(), "assistant: Whole.");
}

#[test]
fn what_steering_stopped_is_not_on_the_receipt_of_a_later_abort() {
    let call = sse::calls(&[("call_1", "bash", json!({"command": "echo begun; sleep 1000"}))]);
    let server = MockServer::start([Reply::stream(call), Reply::stream(sse::text("Heard")).hang()]);
    let home = Home::with_model(&server);
    home.settings(&json!({"interruptMode": "immediate"}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "prompt", "message": "go"}));
    daemon.until("output", |line| line["partialResult"]["content"][0]["text"] == "begun\n");
    daemon.done(json!({"type": "steer", "message": "listen"}));
    daemon.until("a delta", |line| line["assistantMessageEvent"]["delta"] == "Heard");
    let receipt = daemon.done(json!({"type": "abort", "scope": "tools"}));
    assert_eq!(receipt, json!({"ended": [], "survives": [{"kind": "turn"}]}));
}

#[test]
fn steering_interrupts_tools_or_waits_for_them() {
    for (mode, interrupted) in [("immediate", true), ("wait", false)] {
        let command = if interrupted { "echo begun; sleep 1000" } else { "echo begun; cat fifo" };
        let call = sse::calls(&[("call_1", "bash", json!({"command": command}))]);
        let server = MockServer::start([Reply::stream(call), Reply::stream(sse::answer("Heard."))]);
        let home = Home::with_model(&server);
        let mut daemon = Daemon::start(&home, &[]);
        daemon.done(json!({"type": "set_interrupt_mode", "mode": mode}));
        let state = daemon.done(json!({"type": "get_state"}));
        assert_eq!(state.get("interruptMode"), interrupted.then(|| json!("immediate")).as_ref());
        let fifo = home.project().join("fifo");
        let status = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(status.success());
        daemon.done(json!({"type": "prompt", "message": "go"}));
        daemon.until("output", |line| line["partialResult"]["content"][0]["text"] == "begun\n");
        daemon.done(json!({"type": "steer", "message": "listen"}));
        if !interrupted {
            std::fs::write(&fifo, "waited\n").unwrap();
        }
        daemon.settled();
        let context = daemon.context();
        let [_, _, result, steered, answer] = context.as_slice() else { panic!("{context:?}") };
        assert_eq!((steered.as_str(), answer.as_str()), ("user: listen", "assistant: Heard."));
        assert_eq!(result.contains("waited"), !interrupted, "{result}");
        let settings = std::fs::read_to_string(home.agent_dir().join("settings.json")).unwrap();
        assert!(settings.contains(&format!("\"interruptMode\": \"{mode}\"")), "{settings}");
    }
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let refused = daemon.refused(json!({"type": "set_interrupt_mode", "mode": "later"}));
    assert_eq!(refused["code"], "invalid_field", "{refused}");
}

#[test]
fn a_host_that_waits_for_it_is_told_that_commands_are_taken() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session", "--ready"]);
    assert_eq!(daemon.line()["type"], "ready");
    let _service = Service::start(&home, &[]);
    let mut shared = Daemon::start_shared(&home, &["--no-session", "--ready"]);
    assert_eq!(shared.line()["type"], "ready");
    shared.done(json!({"type": "get_state"}));
}
