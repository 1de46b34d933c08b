//! Jobs: subagents and processes in the background, `wait`, and the commands about them, on the real binaries.

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, Service, mock_server::Request, sse};
use serde_json::{Value, json};

use crate::{
    support::{assert_says, text},
    unload::gone,
};

fn last(request: &Request) -> String {
    request.messages().last().map(text).unwrap_or_default()
}

fn all(request: &Request) -> String {
    request.messages().iter().map(text).collect::<Vec<_>>().join("\n")
}

fn call(name: &str, arguments: Value) -> Reply {
    Reply::stream(sse::calls(&[(&format!("c-{name}"), name, arguments)]))
}

/// A model whose subagents wait for the gate, and whose main agent starts one in the background and goes on as `then` says.
fn model(gate: &Gate, then: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> MockServer {
    let gate = gate.clone();
    MockServer::choosing(move |request| {
        if all(request).contains("<task>") {
            call("yield", json!({"data": "found it"})).gate_first(&gate)
        } else if last(request) == "Go." {
            call("task", json!({"background": true, "tasks": [{"name": "A", "task": "Look."}]}))
        } else {
            then(request)
        }
    })
}

fn home(model: &MockServer, settings: Value) -> Home {
    let home = Home::with_model(model);
    home.settings(&settings);
    home
}

#[test]
fn a_subagent_in_the_background_is_waited_for() {
    let gate = Gate::new();
    let model = model(&gate, |request| {
        let said = last(request);
        if said.contains("Spawned agent `A` (job `A`).") {
            call("wait", json!({}))
        } else {
            Reply::stream(sse::answer("Done."))
        }
    });
    let home = home(&model, json!({"task": {"enabled": true, "background": true}}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&json!({"type": "prompt", "message": "Go."}));
    daemon.until("the wait", |event| event["type"] == "tool_execution_start" && event["toolName"] == "wait");
    let jobs = daemon.done(json!({"type": "list_jobs"}));
    let job = &jobs["jobs"][0];
    assert_eq!(
        (&job["id"], &job["kind"], &job["status"]),
        (&json!("A"), &json!("subagent"), &json!("running"))
    );
    gate.open();
    let waited =
        daemon.until("its end", |event| event["type"] == "tool_execution_end" && event["toolName"] == "wait");
    assert_eq!(text(&waited["result"]), "A has ended: it is done\nNothing is running any more.");
    let told = daemon.until("the message", |event| {
        event["type"] == "message_end" && event["message"]["customType"] == "agentd.job"
    });
    assert_says(
        &text(&told["message"]),
        &["A background subagent has ended.", "## A (task) completed\n\nfound it"],
    );
    daemon.event("agent_settled");
    assert_says(&all(model.requests().last().expect("a request")), &["found it"]);
    let output = daemon.done(json!({"type": "job_output", "jobId": "A"}));
    assert_eq!((&output["output"], &output["job"]["status"]), (&json!("found it"), &json!("completed")));
}

#[test]
fn a_blocking_agent_is_waited_for_while_others_go_on() {
    let gate = Gate::new();
    let waiting = gate.clone();
    let model = MockServer::choosing(move |request| {
        let said = all(request);
        if said.contains("Look closely.") {
            call("yield", json!({"data": "slow"})).gate_first(&waiting)
        } else if said.contains("<task>") {
            call("yield", json!({"data": "quick"}))
        } else if last(request) == "Go." {
            let tasks = json!([{"name": "Slow", "task": "Look closely."}, {"name": "Quick", "agent": "quick", "task": "Look."}]);
            call("task", json!({"background": true, "tasks": tasks}))
        } else {
            Reply::stream(sse::answer("Done."))
        }
    });
    // The end of the other may come when the run is over already.
    let settings = json!({"task": {"enabled": true, "background": true, "wakeUp": true}});
    let home = home(&model, settings);
    home.write(
        ".agentd/agents/quick.md",
        "---\nname: quick\ndescription: Looks quickly\nblocking: true\n---\nYou look.\n",
    );
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&json!({"type": "prompt", "message": "Go."}));
    let result = daemon.event("tool_execution_end")["result"].clone();
    assert_eq!(text(&result), "## Quick (quick) completed\n\nquick\n\nSpawned agent `Slow` (job `Slow`).");
    assert_eq!(result["details"]["async"][0]["jobId"], "Slow", "{result}");
    let jobs = daemon.done(json!({"type": "list_jobs"}));
    assert_eq!(jobs["jobs"][0]["status"], "running", "{jobs}");
    gate.open();
    let ended = daemon.until("the end of the other", |event| {
        event["type"] == "message_end" && event["message"]["role"] == "custom"
    });
    assert_says(&text(&ended["message"]), &["## Slow (task) completed\n\nslow"]);
}

#[test]
fn the_end_of_a_job_wakes_an_idle_session_if_the_setting_says_so() {
    let gate = Gate::new();
    let model = model(&gate, |request| {
        Reply::stream(sse::answer(if last(request).contains("found it") { "So it is." } else { "I go on." }))
    });
    let home = home(&model, json!({"task": {"enabled": true, "background": true, "wakeUp": true}}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&json!({"type": "prompt", "message": "Go."}));
    daemon.event("agent_settled");
    gate.open();
    let answered = daemon.until("an answer", |event| {
        event["type"] == "message_end" && event["message"]["role"] == "assistant"
    });
    assert_eq!(text(&answered["message"]), "So it is.");
    daemon.event("agent_settled");
}

#[test]
fn without_it_the_model_is_told_with_the_next_prompt() {
    let gate = Gate::new();
    let model = model(&gate, |_| Reply::stream(sse::answer("Ok.")));
    let home = home(&model, json!({"task": {"enabled": true, "background": true}}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&json!({"type": "prompt", "message": "Go."}));
    daemon.event("agent_settled");
    gate.open();
    daemon.until("the message", |event| {
        event["type"] == "message_end" && event["message"]["customType"] == "agentd.job"
    });
    let before = model.requests().len();
    daemon.send(&json!({"type": "prompt", "message": "And?"}));
    daemon.event("agent_settled");
    let requests = model.requests();
    assert_eq!(requests.len(), before + 1);
    assert_says(&all(requests.last().expect("a request")), &["found it", "And?"]);
}

#[test]
fn a_job_can_be_killed_and_the_end_of_the_session_ends_all() {
    let gate = Gate::new();
    let model = model(&gate, |_| Reply::stream(sse::answer("Ok.")));
    let home =
        home(&model, json!({"task": {"enabled": true, "background": true}, "bash": {"background": true}}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&json!({"type": "prompt", "message": "Go."}));
    daemon.event("agent_settled");
    let _ = model.wait_for_requests(3);
    let killed = daemon.done(json!({"type": "kill_job", "jobId": "A"}));
    assert_eq!(killed["status"], "aborted", "{killed}");
    let again = daemon.done(json!({"type": "kill_job", "jobId": "A"}));
    assert_eq!(again["status"], "aborted");
    let refused = daemon.refused(json!({"type": "kill_job", "jobId": "B"}));
    assert_says(refused["error"].as_str().expect("an error"), &["no job \"B\"; there are: A"]);
    daemon.send(&json!({"type": "prompt", "message": "Go."}));
    daemon.event("agent_settled");
    let jobs = daemon.done(json!({"type": "list_jobs"}));
    assert_eq!((&jobs["jobs"][1]["id"], &jobs["jobs"][1]["status"]), (&json!("A-2"), &json!("running")));
    daemon.close();
    let mut daemon = Daemon::start(&home, &["--continue"]);
    let list = daemon.done(json!({"type": "get_subagents"}));
    assert_eq!(list["subagents"][1]["status"], "aborted", "{list}");
}

#[test]
fn there_is_nothing_to_wait_for_and_no_background_without_the_setting() {
    let gate = Gate::new();
    gate.open();
    let model = model(&gate, |_| Reply::stream(sse::answer("Ok.")));
    let home = home(&model, json!({"task": {"enabled": true}}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&json!({"type": "prompt", "message": "Go."}));
    let is_result =
        |event: &Value| event["type"] == "message_end" && event["message"]["role"] == "toolResult";
    let result = daemon.until("a result", is_result);
    assert_says(&text(&result["message"]), &["## A (task) completed"]);
    daemon.event("agent_settled");
    let tools = daemon.done(json!({"type": "get_tools"}));
    assert!(!tools["tools"].to_string().contains("\"wait\""));
}

#[test]
fn a_result_is_kept_though_the_session_leaves_memory_before_the_model_hears_of_it() {
    let gate = Gate::new();
    let model = model(&gate, |_| Reply::stream(sse::answer("Ok.")));
    let home =
        home(&model, json!({"task": {"enabled": true, "background": true}, "daemon": {"idleUnloadMs": 1}}));
    let service = Service::start(&home, &[]);
    let (mut client, mut watcher) = (service.client(), service.client());
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    watcher.done(json!({"type": "watch_sessions"}));
    let id = client.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone();
    client.send(&json!({"type": "prompt", "message": "Go.", "sessionId": id}));
    client.until("the end", |event| event["type"] == "agent_settled" && event["sessionId"] == id);
    // While it works, the session that hears of its end stays.
    let _ = model.wait_for_requests(3);
    let live = watcher.done(json!({"type": "list_sessions", "live": true}));
    assert!(live["sessions"].as_array().expect("a list").iter().any(|row| row["id"] == id), "{live}");
    gate.open();
    gone(&mut watcher, id.as_str().expect("an id"));
    let before = model.requests().len();
    client.done(json!({"type": "prompt", "message": "And?", "sessionId": id}));
    client.until("the end", |event| event["type"] == "agent_settled" && event["sessionId"] == id);
    let requests = model.requests();
    assert_eq!(requests.len(), before + 1);
    assert_says(&all(requests.last().expect("a request")), &["## A (task) completed\n\nfound it", "And?"]);
}
