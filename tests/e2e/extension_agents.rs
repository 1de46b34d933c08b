//! Agents that extensions run: sessions below that of the extension, on the real binaries. The extension is a host of our own, which serves the
//! extensions of its agents through a channel.

use std::{cell::Cell, fs, time::Instant};

use agentd_e2e::{
    DEADLINE, Daemon, Gate, Home, MockServer, Reply, Service, mock_server::Request, processes, sse,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    extensions::{extension, told},
    support::{assert_says, ended, text},
};

/// The id that the first agent of a session gets.
const AGENT: &str = "AmberBadger";

/// The call that opens an agent, with these parameters besides.
fn open(more: Value) -> Value {
    let info = json!({"path": "<sdk>", "source": "sdk", "scope": "temporary", "origin": "top-level"});
    let mut params = json!({
        "channel": 1, "cwd": "PROJECT", "session": {},
        "extensions": [{"path": "<sdk>", "entry": "<sdk>", "sourceInfo": info}],
    });
    params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    json!(["agents.open", params])
}

fn command(command: Value, wait: bool) -> Value {
    json!(["agents.command", {"agent": AGENT, "command": command, "wait": wait}])
}

fn prompt(message: &str) -> Value {
    command(json!({"type": "prompt", "message": message}), true)
}

fn close() -> Value {
    json!(["agents.close", {"agent": AGENT}])
}

/// A script with a tool that makes these calls, in the session's folder.
fn script(home: &Home, calls: &[Value], agent: Value) -> Value {
    let project = home.project().display().to_string();
    let calls = json!(calls).to_string().replace("PROJECT", &project);
    let calls: Value = serde_json::from_str(&calls).expect("JSON");
    json!({"agent": agent, "tools": {"delegate": {"calls": calls, "value": {"content": [{"type": "text", "text": "delegated"}]}}}})
}

/// What is said last in a request.
fn last(request: &Request) -> String {
    request.messages().last().map(text).unwrap_or_default()
}

/// Whether a request comes from an agent: what it was asked begins so.
fn is_agent(request: &Request) -> bool {
    request.messages().iter().any(|message| message["role"] == "user" && text(message).starts_with("Work"))
}

/// A model that calls the tool once, and whose agents answer as `agent` says.
fn model(agent: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> MockServer {
    MockServer::choosing(move |request| {
        if is_agent(request) {
            agent(request)
        } else if last(request) == "Go." {
            Reply::stream(sse::calls(&[("d1", "delegate", json!({}))]))
        } else {
            Reply::stream(sse::answer("All done."))
        }
    })
}

/// Runs a prompt to its end.
fn run(daemon: &mut Daemon) -> Vec<Value> {
    daemon.prompt("Go.")
}

/// The answers to the calls of the host, in their order: values, or errors.
fn answers(home: &Home) -> Vec<Value> {
    let results = told(home, "result").into_iter();
    results
        .map(|result| if result["ok"] == true { result["value"].clone() } else { result["error"].clone() })
        .collect()
}

fn agents_in(entries: &[Value]) -> Vec<Value> {
    let of_agents = entries.iter().filter(|entry| entry["customType"] == "agentd.subagents");
    of_agents.flat_map(|entry| entry["data"]["subagents"].as_array().expect("a list").clone()).collect()
}

#[test]
fn an_agent_of_an_extension_is_a_session_below_its_own() {
    let model = model(|request| {
        if last(request).starts_with("Work") {
            return Reply::stream(sse::calls(&[("b1", "bash", json!({"command": "echo from the agent"}))]));
        }
        assert_says(&last(request), &["from the agent"]);
        Reply::stream(sse::answer("Worked."))
    });
    let home = Home::with_model(&model);
    let file = home.project().join("agent.jsonl");
    let session = json!({"file": file.display().to_string(), "id": "agent-one"});
    let opened = open(json!({"session": session, "thinkingLevel": "off", "tools": ["bash", "lookup"]}));
    let state = command(json!({"type": "get_state"}), false);
    let agent = json!({"handlers": {"tool_result": {}}, "tools": {"lookup": {"value": {"content": []}}}});
    extension(&home, "test", &script(&home, &[opened, prompt("Work."), state, close()], agent));
    let mut daemon = Daemon::start(&home, &["--stdio"]);
    let seen = run(&mut daemon);
    assert_eq!(text(ended(&seen, "toolResult")[0]), "delegated");

    let answers = answers(&home);
    assert_eq!(answers[0]["agent"], AGENT);
    assert_eq!(answers[0]["sessionFile"], json!(file.display().to_string()));
    assert_eq!(answers[1], json!({"disposition": "started"}));
    assert_eq!((&answers[2]["sessionId"], &answers[2]["isStreaming"]), (&json!("agent-one"), &json!(false)));
    assert_eq!(answers[3], Value::Null);

    // Its events came in their order, and all before the prompt was answered.
    let log = fs::read_to_string(home.root().join("host.log")).expect("the log");
    let records: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    let answered =
        records.iter().position(|record| record["value"]["disposition"] == "started").expect("an answer");
    let settled =
        |record: &Value| record["type"] == "agents.event" && record["event"]["type"] == "agent_settled";
    assert!(records.iter().position(settled).expect("the end") < answered);
    let kinds: Vec<Value> =
        told(&home, "agents.event").iter().map(|note| note["event"]["type"].clone()).collect();
    assert_eq!(
        (&kinds[0], kinds.iter().filter(|kind| **kind == "tool_execution_end").count()),
        (&json!("agent_start"), 1)
    );
    assert_eq!(
        told(&home, "agents.ended")[0],
        json!({"type": "agents.ended", "agent": AGENT, "reason": "its extension has ended it"})
    );

    // What the agent had is what its extension gave it, and its handlers ran.
    let request = model.requests().into_iter().find(is_agent).expect("a request of the agent");
    let offered = request.body["tools"].to_string();
    assert!(
        offered.contains("\"lookup\"")
            && offered.contains("\"bash\"")
            && !offered.contains("\"yield\"")
            && !offered.contains("\"read\""),
        "{offered}"
    );
    let hooks = told(&home, "channel").into_iter().filter(|record| record["record"]["type"] == "hook");
    let events: Vec<Value> = hooks.map(|hook| hook["record"]["event"]["type"].clone()).collect();
    assert_eq!(events, ["tool_result"]);

    // It is on record, and its file is a session of its own.
    let entries = daemon.done(json!({"type": "get_entries"}))["entries"].as_array().expect("entries").clone();
    let statuses: Vec<Value> = agents_in(&entries).iter().map(|agent| agent["status"].clone()).collect();
    assert_eq!(statuses, ["running", "completed"]);
    let listed = daemon.done(json!({"type": "get_subagents"}))["subagents"][0].clone();
    assert_eq!((&listed["agentSource"], &listed["progress"]["requests"]), (&json!("extension"), &json!(2)));
    let file = fs::read_to_string(file).expect("the file");
    assert_says(&file, &["\"id\":\"agent-one\"", "Work.", "from the agent", "Worked."]);
    assert!(!file.contains("Go."));
}

#[test]
fn it_may_do_no_more_than_the_session_of_its_extension() {
    let model = model(|request| {
        if last(request).starts_with("Work") {
            return Reply::stream(sse::calls(&[("b1", "bash", json!({"command": "touch made"}))]));
        }
        Reply::stream(sse::answer(&last(request)))
    });
    let home = Home::with_model(&model);
    home.settings(&json!({"permissions": {"rules": [{"action": "deny", "tool": "bash"}]}}));
    extension(&home, "test", &script(&home, &[open(json!({})), prompt("Work."), close()], json!({})));
    let mut daemon = Daemon::start(&home, &["--stdio"]);
    run(&mut daemon);
    let said = model.requests().iter().filter(|request| is_agent(request)).map(last).collect::<Vec<_>>();
    assert!(said.len() == 2 && said[1].contains("denied"), "{said:?}");
    assert!(!home.project().join("made").exists());
    drop(daemon);

    // A tool that the session does not let in is not there.
    let home = Home::with_model(&model);
    extension(
        &home,
        "test",
        &script(&home, &[open(json!({"tools": ["*"]})), prompt("Work."), close()], json!({})),
    );
    let mut daemon = Daemon::start(&home, &["--stdio", "--tools", "read,delegate"]);
    run(&mut daemon);
    let request = model.requests().into_iter().rfind(is_agent).expect("a request");
    let offered = request.body["tools"].to_string();
    assert!(offered.contains("\"read\"") && !offered.contains("\"bash\""), "{offered}");
}

#[test]
fn what_cannot_be_honoured_is_refused() {
    let model = model(|_| Reply::stream(sse::answer("Worked.")));
    let home = Home::with_model(&model);
    let (settings, unknown) = (
        open(json!({"settings": {"permissions": {}}})),
        open(json!({"model": {"provider": "nobody", "id": "none"}})),
    );
    let preset = command(json!({"type": "set_permissions", "preset": "full"}), false);
    let calls = [
        settings,
        unknown,
        open(json!({})),
        preset,
        command(json!({"type": "fly"}), false),
        close(),
        prompt("Work."),
    ];
    extension(&home, "test", &script(&home, &calls, json!({})));
    let mut daemon = Daemon::start(&home, &["--stdio"]);
    run(&mut daemon);
    let answers = answers(&home);
    assert_says(answers[0]["message"].as_str().unwrap(), &["The setting permissions cannot be overridden"]);
    assert_says(answers[1]["message"].as_str().unwrap(), &["Unknown provider \"nobody\""]);
    assert_eq!(answers[2]["agent"], AGENT);
    assert_says(answers[3]["message"].as_str().unwrap(), &["do not send the command set_permissions"]);
    assert_eq!(answers[4]["code"], "unknown_command");
    assert_says(answers[6]["message"].as_str().unwrap(), &["There is no agent"]);
}

#[test]
fn a_session_that_is_open_is_nobodys_agent() {
    let model = model(|_| Reply::stream(sse::answer("Worked.")));
    let home = Home::with_model(&model);
    extension(&home, "test", &json!({}));
    let mut daemon = Daemon::start(&home, &["--stdio"]);
    let file = daemon.done(json!({"type": "get_state"}))["sessionFile"].clone();
    drop(daemon);
    extension(&home, "test", &script(&home, &[open(json!({"session": {"file": file}}))], json!({})));
    let mut daemon = Daemon::start(&home, &["--stdio", "--session", file.as_str().expect("a path")]);
    run(&mut daemon);
    assert_says(answers(&home).last().unwrap()["message"].as_str().unwrap(), &["is open already"]);
}

#[test]
fn an_abort_of_the_run_stops_it() {
    let gate = Gate::default();
    let held = gate.clone();
    let model = model(move |_| Reply::stream(sse::answer("Never.")).gate_first(&held));
    let home = Home::with_model(&model);
    extension(&home, "test", &script(&home, &[open(json!({})), prompt("Work."), close()], json!({})));
    let mut daemon = Daemon::start(&home, &["--stdio"]);
    daemon.done(json!({"type": "prompt", "message": "Go."}));
    let _ = model.wait_for_requests(2);
    daemon.done(json!({"type": "abort"}));
    // The agent was told to stop by the daemon, whatever its extension does.
    let listed = daemon.done(json!({"type": "get_subagents"}))["subagents"][0].clone();
    assert_eq!(listed["status"], "aborted");
    gate.open();
    // The host has written all that it was told once it has ended.
    daemon.close();
    let kinds: Vec<Value> =
        told(&home, "agents.event").iter().map(|note| note["event"]["type"].clone()).collect();
    assert!(kinds.contains(&json!("agent_settled")), "{kinds:?}");
}

#[test]
fn it_ends_with_the_host_of_its_extension() {
    let gate = Gate::default();
    let held = gate.clone();
    let model = model(move |request| {
        if last(request).starts_with("Work") {
            return Reply::stream(sse::calls(&[(
                "b1",
                "bash",
                json!({"command": "echo $$ > pid; exec sleep 1000"}),
            )]));
        }
        Reply::stream(sse::answer("Never.")).gate_first(&held)
    });
    let home = Home::with_model(&model);
    extension(&home, "test", &script(&home, &[open(json!({})), prompt("Work."), close()], json!({})));
    let mut daemon = Daemon::start(&home, &["--stdio"]);
    daemon.done(json!({"type": "set_subagent_subscription", "subscription": "progress"}));
    daemon.done(json!({"type": "prompt", "message": "Go."}));
    // Its command runs.
    let log = || fs::read_to_string(home.root().join("host.log")).unwrap_or_default();
    let end = Instant::now() + DEADLINE;
    let pid = loop {
        let pid = fs::read_to_string(home.project().join("pid"))
            .ok()
            .and_then(|pid| pid.trim().parse::<i32>().ok());
        if let Some(pid) = pid {
            break pid;
        }
        assert!(Instant::now() < end, "{}", log());
        std::thread::yield_now();
    };
    let process = processes::watch(&[pid]);
    let listed = daemon.done(json!({"type": "list_extensions"}))["extensions"][0].clone();
    let host = listed["hostPid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a process");
    processes::signal(host, Signal::KILL);
    let (settled, stopped) = (Cell::new(false), Cell::new(false));
    daemon.until("the ends of the run and of the agent", |event| {
        let is_of_agent = event["type"] == "subagent_lifecycle" && event["subagent"]["id"] == AGENT;
        stopped.set(stopped.get() || is_of_agent && event["subagent"]["status"] == "aborted");
        settled.set(settled.get() || event["type"] == "agent_settled");
        stopped.get() && settled.get()
    });
    process.assert_gone_within(DEADLINE);
    let entries =
        daemon.done(json!({"type": "get_messages"}))["messages"].as_array().expect("messages").clone();
    let result = entries.iter().find(|message| message["role"] == "toolResult").expect("a result");
    assert_says(&text(result), &["Extension host exited"]);
    gate.open();
}

#[test]
fn after_the_death_of_the_daemon_it_is_known_that_it_was_at_work() {
    let gate = Gate::default();
    let held = gate.clone();
    let model = model(move |request| {
        if last(request).starts_with("Work") {
            return Reply::stream(sse::calls(&[("b1", "bash", json!({"command": "echo done"}))]));
        }
        Reply::stream(sse::answer("Never.")).gate_first(&held)
    });
    let home = Home::with_model(&model);
    let file = home.project().join("agent.jsonl");
    let session = json!({"file": file.display().to_string()});
    extension(
        &home,
        "test",
        &script(&home, &[open(json!({ "session": session })), prompt("Work.")], json!({})),
    );
    let mut daemon = Daemon::start(&home, &["--stdio"]);
    let of_parent = daemon.done(json!({"type": "get_state"}))["sessionFile"].clone();
    daemon.done(json!({"type": "prompt", "message": "Go."}));
    let _ = model.wait_for_requests(3);
    daemon.signal(Signal::KILL);
    drop(daemon);
    gate.open();
    assert_says(&fs::read_to_string(&file).expect("the file of the agent"), &["Work.", "done"]);
    let mut daemon = Daemon::start(&home, &["--stdio", "--session", of_parent.as_str().expect("a path")]);
    let listed = daemon.done(json!({"type": "get_subagents"}))["subagents"][0].clone();
    assert_eq!((&listed["id"], &listed["status"]), (&json!(AGENT), &json!("interrupted")));
}

#[test]
fn it_spends_the_budget_of_the_session_of_its_extension() {
    let model = model(|_| Reply::stream(sse::answer("Worked.")));
    let home = Home::with_model(&model);
    extension(
        &home,
        "test",
        &script(&home, &[open(json!({})), prompt("Work."), prompt("Work on."), close()], json!({})),
    );
    let mut daemon = Daemon::start(&home, &["--stdio", "--max-turns", "2"]);
    let seen = run(&mut daemon);
    // The answer that called the tool and the first of the agent are all that there may be.
    assert_eq!(model.requests().len(), 2, "{seen:?}");
    let last = ended(&seen, "assistant").last().map(|message| message["code"].clone());
    assert_eq!(last, Some(json!("limit_reached")));
}

#[test]
fn clients_can_follow_it() {
    let gate = Gate::default();
    let held = gate.clone();
    let model = model(move |_| Reply::stream(sse::answer("Worked.")).gate_first(&held));
    let home = Home::with_model(&model);
    let session = json!({"id": "agent-two"});
    extension(
        &home,
        "test",
        &script(&home, &[open(json!({ "session": session })), prompt("Work."), close()], json!({})),
    );
    let service = Service::start(&home, &[]);
    let hello = json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}});
    let mut one = service.client();
    one.done(hello.clone());
    let id = one.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone();
    one.done(json!({"type": "prompt", "message": "Go.", "sessionId": id}));
    let _ = model.wait_for_requests(2);
    let listed = one.done(json!({"type": "list_sessions", "live": true}))["sessions"].clone();
    let row = listed.as_array().expect("a list").iter().find(|row| row["id"] == "agent-two");
    assert_eq!(row.map(|row| &row["agentId"]), Some(&json!(AGENT)), "{listed}");
    let mut other = service.client();
    other.done(hello);
    other.done(json!({"type": "attach_session", "sessionId": "agent-two"}));
    gate.open();
    other.event("agent_settled");
    one.until("the end of the run", |event| event["type"] == "agent_settled" && event["sessionId"] == id);
}
