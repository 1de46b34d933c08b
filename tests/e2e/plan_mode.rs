//! Plan mode on the real binaries: what it refuses, the plan and its approval, how it is kept and switched.

use agentd_e2e::{
    Conversation, Daemon, Home, MockServer, Reply, Service, SocketClient, binaries,
    conversation::LineTransport, ctl, sse,
};
use serde_json::{Value, json};

use crate::{
    asking::{answer, asked},
    client_tools::{offered, register, tool},
    mcp::{configure, direct, wait_for},
    support::{assert_says, ended, records, text},
};

/// A client that answers questions, on a private daemon.
fn start(home: &Home, args: &[&str]) -> Daemon {
    let mut daemon = Daemon::start(home, args);
    daemon.done(json!({
        "type": "hello", "protocol": 1, "client": {"name": "me"}, "capabilities": {"sessions": true, "ui": true},
    }));
    daemon
}

fn set_mode<W: LineTransport>(client: &mut Conversation<W>, mode: &str) {
    assert_eq!(client.done(json!({"type": "set_mode", "mode": mode})), json!({"mode": mode}));
}

/// The mode that `get_state` tells; absent for the default.
fn mode<W: LineTransport>(client: &mut Conversation<W>) -> Value {
    client.done(json!({"type": "get_state"}))["mode"].clone()
}

/// Has the model make calls in one answer, and answer `Ok.` after them; the results.
fn call<W: LineTransport>(
    client: &mut Conversation<W>,
    model: &MockServer,
    calls: &[(&str, Value)],
) -> Vec<Value> {
    let ids: Vec<String> = (0..calls.len()).map(|at| format!("c{at}")).collect();
    let calls: Vec<(&str, &str, Value)> = ids
        .iter()
        .zip(calls)
        .map(|(id, (tool, arguments))| (id.as_str(), *tool, arguments.clone()))
        .collect();
    model.push(Reply::stream(sse::calls(&calls)));
    model.push(Reply::stream(sse::answer("Ok.")));
    let events = client.prompt("Go.");
    ended(&events, "toolResult").into_iter().cloned().collect()
}

fn bash(command: &str) -> (&'static str, Value) {
    ("bash", json!({"command": command}))
}

fn plan_file(text: &str) -> (&'static str, Value) {
    ("write", json!({"path": "local://go-plan.md", "content": text}))
}

/// Begins a run in which the model writes a plan, proposes it, and answers.
fn propose<W: LineTransport>(client: &mut Conversation<W>, model: &MockServer) {
    model.push(Reply::stream(sse::calls(&[("w", "write", plan_file("1. touch made\n").1)])));
    model.push(Reply::stream(sse::calls(&[("p", "propose_plan", json!({"title": "go"}))])));
    model.push(Reply::stream(sse::answer("Done.")));
    client.send(&json!({"id": "p", "type": "prompt", "message": "Make it."}));
}

fn respond<W: LineTransport>(client: &mut Conversation<W>, value: &str) -> Value {
    let question = client.event("extension_ui_request");
    client.send(&json!({"type": "extension_ui_response", "id": question["id"], "value": value}));
    question
}

fn entries(home: &Home) -> Vec<Value> {
    let files = home.session_files();
    records(files.last().expect("a session file"))
}

#[test]
fn what_changes_something_is_refused_and_looking_is_not() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    home.write("a.txt", "one\n");
    let mut client = start(&home, &[]);
    set_mode(&mut client, "plan");
    let changed = client.event("mode_changed");
    assert_eq!((&changed["mode"], &changed["by"]), (&json!("plan"), &json!("me")));
    let results = call(
        &mut client,
        &model,
        &[
            ("write", json!({"path": "b.txt", "content": "x"})),
            ("edit", json!({"path": "a.txt", "edits": [{"oldText": "one", "newText": "two"}]})),
            bash("touch made"),
            bash("cat a.txt > b.txt"),
            bash("cat a.txt | wc -l"),
            ("read", json!({"path": "a.txt"})),
        ],
    );
    let refused = ["writing", "writing", "running touch", "writing"];
    for (result, what) in results.iter().zip(refused) {
        assert_eq!(result["isError"], true, "{result}");
        assert_says(&text(result), &["plan mode refuses", what, "propose_plan"]);
    }
    assert_eq!((text(&results[4]).trim(), text(&results[5]).as_str()), ("1", "one\n"));
    assert!(!home.project().join("made").exists() && !home.project().join("b.txt").exists());
    assert_eq!(home.read("a.txt"), "one\n");
    // The model knows, and has the tool.
    assert_says(&model.requests()[0].messages()[0].to_string(), &["<plan_mode>", "Plan mode is on"]);
    assert!(offered(&model, 0).contains(&"propose_plan".to_owned()));
    // What the user does is not the model's affair.
    client.done(json!({"type": "bash", "command": "touch mine"}));
    assert!(home.project().join("mine").exists());

    set_mode(&mut client, "default");
    let results = call(&mut client, &model, &[bash("touch made"), ("propose_plan", json!({"title": "go"}))]);
    assert_eq!(results[0]["isError"], false);
    assert!(home.project().join("made").exists());
    assert_says(&text(&results[1]), &["propose_plan", "not found"]);
    let last = model.requests().len() - 2;
    assert!(!offered(&model, last).contains(&"propose_plan".to_owned()));
    let said: String = model.requests()[last].messages().iter().map(Value::to_string).collect();
    assert_eq!(said.matches("Plan mode is on").count(), 0, "{said}");
}

#[test]
fn a_plan_is_approved_and_carried_out() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let mut client = start(&home, &["--plan-mode"]);
    assert_eq!(mode(&mut client), "plan");
    propose(&mut client, &model);
    let shown = client.event("tool_execution_update");
    assert_eq!(shown["partialResult"]["content"][0]["text"], "1. touch made");
    let question = respond(&mut client, "Approve");
    assert_eq!(question["title"], "Carry out the plan go? (local://go-plan.md)");
    assert_eq!(question["options"], json!(["Approve", "Approve in a new session", "Revise"]));
    let changed = client.event("mode_changed");
    assert_eq!(changed["plan"], json!({"title": "go", "url": "local://go-plan.md"}), "{changed}");
    client.event("agent_settled");
    assert_eq!(mode(&mut client), Value::Null);
    // The model has the result, and the plan once more, which outlives a compaction.
    let requests = model.requests();
    let last: Vec<String> = requests[2].messages().iter().map(Value::to_string).collect();
    assert_says(
        &last[last.len() - 2..].concat(),
        &["The user has approved the plan go.", "<approved_plan path=", "1. touch made"],
    );
    assert!(!offered(&model, 2).contains(&"propose_plan".to_owned()));
    let kept = entries(&home);
    let modes: Vec<&Value> = kept
        .iter()
        .filter(|entry| entry["customType"] == "agentd.mode-change")
        .map(|it| &it["data"])
        .collect();
    assert_eq!(modes[0], &json!({"mode": "plan"}));
    assert_eq!(modes[1]["plan"]["title"], "go");
    let hidden =
        kept.iter().find(|entry| entry["customType"] == "agentd.approved-plan").expect("the message");
    assert_eq!((&hidden["type"], &hidden["display"]), (&json!("custom_message"), &json!(false)));
    // The plan lies beside the session's file.
    let file = home.session_files().pop().expect("a file");
    let plan = file.with_extension("").join("local/go-plan.md");
    assert_eq!(std::fs::read_to_string(plan).unwrap(), "1. touch made\n");
}

#[test]
fn words_of_the_user_go_back_to_the_model() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let mut client = start(&home, &["--plan-mode"]);
    propose(&mut client, &model);
    respond(&mut client, "Revise");
    let words = respond(&mut client, "Call it done.txt");
    assert_eq!(
        (&words["method"], &words["title"]),
        (&json!("input"), &json!("What should be different in the plan go?"))
    );
    let result = client.until("the result", |line| {
        line["type"] == "message_end" && line["message"]["toolName"] == "propose_plan"
    });
    assert_says(
        &text(&result["message"]),
        &["The user wants the plan go changed: Call it done.txt", "Plan mode stays on"],
    );
    assert_eq!(result["message"]["isError"], false);
    client.event("agent_settled");
    assert_eq!(mode(&mut client), "plan");
    // The plan can be changed where it is.
    let edits = json!([{"oldText": "made", "newText": "done.txt"}]);
    call(&mut client, &model, &[("edit", json!({"path": "local://go-plan.md", "edits": edits}))]);
    let results = call(
        &mut client,
        &model,
        &[
            ("read", json!({"path": "local://go-plan.md"})),
            ("read", json!({"path": "local://../../../auth.json"})),
            ("write", json!({"path": "local://../x", "content": "x"})),
        ],
    );
    assert_eq!(text(&results[0]), "1. touch done.txt\n");
    for result in &results[1..] {
        assert_says(&text(result), &["leads out of the session's own folder"]);
    }
}

#[test]
fn a_plan_that_nobody_decides_about_ends_the_run() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    home.settings(&json!({"plan": {"timeoutMs": 50}}));
    let mut client = start(&home, &["--plan-mode"]);
    model.push(Reply::stream(sse::calls(&[("w", "write", plan_file("1. do it\n").1)])));
    model.push(Reply::stream(sse::calls(&[("p", "propose_plan", json!({"title": "go"}))])));
    let events = client.prompt("Make it.");
    let result = ended(&events, "toolResult")[1];
    assert_says(&text(result), &["Nobody has decided about the plan go.", "plan mode stays on"]);
    assert_eq!(result["details"]["decision"], "undecided");
    assert_eq!(mode(&mut client), "plan");
    // A closed dialog is no decision, either.
    home.settings(&json!({}));
    let mut client = start(&home, &["--plan-mode", "--no-session"]);
    model.push(Reply::stream(sse::calls(&[("w", "write", plan_file("1. do it\n").1)])));
    model.push(Reply::stream(sse::calls(&[("p", "propose_plan", json!({"title": "go"}))])));
    client.send(&json!({"id": "p", "type": "prompt", "message": "Make it."}));
    let question = client.event("extension_ui_request");
    client.send(&json!({"type": "extension_ui_response", "id": question["id"], "cancelled": true}));
    client.event("agent_settled");
    assert_eq!(mode(&mut client), "plan");
}

#[test]
fn another_session_carries_out_a_plan() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let service = Service::start(&home, &[]);
    let mut client = asked(&service, "me");
    let args = ["--model", "fake/fake", "--plan-mode"];
    let opened = client.done(json!({"type": "open_session", "cwd": home.project(), "args": args}));
    let planned = opened["sessionId"].clone();
    let mut watcher = service.client();
    watcher.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    watcher.done(json!({"type": "watch_sessions"}));
    model.push(Reply::stream(sse::calls(&[("w", "write", plan_file("1. touch made\n").1)])));
    model.push(Reply::stream(sse::calls(&[("p", "propose_plan", json!({"title": "go"}))])));
    // The new session works; the one that planned has nothing left to say.
    model.push(Reply::stream(sse::calls(&[("b", "bash", json!({"command": "touch made"}))])));
    model.push(Reply::stream(sse::answer("Made.")));
    client.send(&json!({"id": "p", "type": "prompt", "message": "Make it."}));
    let question = client.event("extension_ui_request");
    answer(&mut client, &question, "Approve in a new session");
    let changed = client.event("mode_changed");
    let (id, file) = (changed["plan"]["sessionId"].clone(), changed["plan"]["sessionFile"].clone());
    assert_ne!(id, planned);
    client.event("agent_settled");
    watcher.until("the end of its work", |line| {
        line["type"] == "session_changed"
            && line["session"]["id"] == id
            && line["session"]["isStreaming"] == false
    });
    assert!(home.project().join("made").exists());
    let attached = client.done(json!({"type": "attach_session", "sessionId": id}));
    assert_eq!(attached["state"]["sessionName"], "Plan go");
    assert_eq!(attached["state"]["mode"], Value::Null);
    let kept = records(std::path::Path::new(file.as_str().expect("a file")));
    let first = kept.iter().find(|entry| entry["type"] == "custom_message").expect("the plan");
    assert_says(&text(first), &["The user has approved this plan", "1. touch made"]);
    assert_says(kept[0]["parentSession"].as_str().expect("a parent"), &[planned.as_str().unwrap()]);
    let results = kept.iter().filter(|entry| entry["message"]["role"] == "toolResult").count();
    assert_eq!(results, 1);
    let plan = std::path::Path::new(file.as_str().unwrap()).with_extension("").join("local/go-plan.md");
    assert!(plan.exists(), "the plan is a file of the new session, too");
}

#[test]
fn the_mode_outlasts_the_daemon_and_is_copied() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let mut client = start(&home, &[]);
    call(&mut client, &model, &[plan_file("1. do it\n")]);
    set_mode(&mut client, "plan");
    client.close();
    let file = home.session_files().pop().expect("a file");
    let args = ["--session", file.to_str().unwrap()];
    let mut again = start(&home, &args);
    assert_eq!(mode(&mut again), "plan");
    let results = call(&mut again, &model, &[bash("touch made")]);
    assert_says(&text(&results[0]), &["plan mode refuses running touch"]);
    // A copy plans, too, wherever it begins; its files are copies.
    let from = again.done(json!({"type": "get_fork_messages"}))["messages"][1]["entryId"].clone();
    again.done(json!({"type": "fork", "entryId": from}));
    assert_eq!(mode(&mut again), "plan");
    let results = call(&mut again, &model, &[("read", json!({"path": "local://go-plan.md"}))]);
    assert_eq!(text(&results[0]), "1. do it\n");
    // A new session does not.
    again.done(json!({"type": "new_session"}));
    assert_eq!(mode(&mut again), Value::Null);
    again.close();
    // Going back to where the mode was off does not switch it off.
    let mut again = start(&home, &args);
    let root = again.done(json!({"type": "get_fork_messages"}))["messages"][0]["entryId"].clone();
    again.done(json!({"type": "navigate_tree", "entryId": root}));
    assert_eq!(mode(&mut again), "plan");
    model.push(Reply::stream(sse::answer("Ok.")));
    again.prompt("Once more.");
    again.close();
    let mut again = start(&home, &args);
    assert_eq!(mode(&mut again), "plan");
}

#[test]
fn tools_of_others_run_where_they_say_that_they_only_read() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    configure(&home, json!({"s": direct(&[])}));
    let mut client = start(&home, &["--plan-mode"]);
    wait_for(&mut client, "connected");
    register(&mut client, &[tool("deploy")]);
    let results = call(
        &mut client,
        &model,
        &[
            ("mcp__s__echo", json!({"text": "hello"})),
            ("mcp__s__remove", json!({})),
            ("deploy", json!({"name": "x"})),
        ],
    );
    assert_eq!(results[0]["isError"], false, "{}", results[0]);
    assert_says(&text(&results[1]), &["plan mode refuses the tool mcp__s__remove"]);
    assert_says(&text(&results[2]), &["plan mode refuses the tool deploy"]);
}

#[test]
fn rules_that_refuse_still_do() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let rules =
        json!([{"tool": "bash", "command": "cat *", "action": "deny"}, {"tool": "write", "action": "deny"}]);
    home.settings(&json!({"permissions": {"rules": rules}}));
    home.write("a.txt", "one\n");
    let mut client = start(&home, &["--plan-mode"]);
    let results = call(&mut client, &model, &[bash("cat a.txt"), plan_file("x"), bash("wc -l a.txt")]);
    assert_says(&text(&results[0]), &["rule 1 of the setting permissions.rules refuses it"]);
    assert_says(&text(&results[1]), &["rule 2 of the setting permissions.rules refuses it"]);
    assert_eq!(results[2]["isError"], false);
}

#[test]
fn it_can_be_switched_off_and_the_model_cannot_leave_it() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let mut client = start(&home, &["--plan-mode"]);
    // A program of the model is no user.
    let agentctl = binaries::agentctl().display().to_string();
    let results = call(&mut client, &model, &[bash(&format!("{agentctl} status"))]);
    assert_says(&text(&results[0]), &["plan mode refuses running"]);
    home.settings(&json!({"plan": {"enabled": false}}));
    let mut client = start(&home, &[]);
    let refused = client.refused(json!({"type": "set_mode", "mode": "plan"}));
    assert_says(refused["error"].as_str().unwrap(), &["plan.enabled"]);
    assert_eq!(refused["code"], "unsupported");
    let refused = client.refused(json!({"type": "set_mode", "mode": "planning"}));
    assert_eq!(refused["code"], "invalid_field");
    let ended = Daemon::start(&home, &["--plan-mode"]).wait();
    assert_says(&ended.stderr, &["plan mode is switched off by the setting plan.enabled"]);
}

#[test]
fn a_plain_client_can_approve() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let mut client = Daemon::start(&home, &["--plan-mode", "--no-session"]);
    propose(&mut client, &model);
    respond(&mut client, "Approve");
    let events = client.settled();
    assert!(events.iter().all(|event| event["type"] != "mode_changed"), "pi's clients do not know it");
    assert_eq!(client.done(json!({"type": "get_state"})).get("mode"), None);
}

#[test]
fn agentctl_makes_a_plan() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    model.push(Reply::stream(sse::calls(&[("w", "write", plan_file("1. touch made\n").1)])));
    model.push(Reply::stream(sse::calls(&[("p", "propose_plan", json!({"title": "go"}))])));
    // Nobody is at a terminal: the plan stays undecided, and the program ends.
    let done = ctl::run(&home, &["prompt", "--private", "--plan", "--model", "fake/fake", "Make it."]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_says(&done.stderr, &["1. touch made"]);
    assert!(!home.project().join("made").exists());
    let kept = entries(&home);
    assert!(kept.iter().any(|entry| entry["customType"] == "agentd.mode-change"));
}

#[test]
fn an_open_session_is_put_into_plan_mode_by_opening_it_again() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let service = Service::start(&home, &[]);
    let (mut client, mut other): (SocketClient, SocketClient) =
        (asked(&service, "one"), asked(&service, "two"));
    let open = |args: &[&str], id: Option<&Value>| {
        let mut command = json!({"type": "open_session", "cwd": home.project(), "args": args});
        if let Some(id) = id {
            command["sessionId"] = id.clone();
        }
        command
    };
    let id = client.done(open(&["--model", "fake/fake"], None))["sessionId"].clone();
    let opened = other.done(open(&["--plan-mode"], Some(&id)));
    assert_eq!(opened["mode"], "plan");
    assert_eq!(client.event("mode_changed")["mode"], "plan");
    // Opening it without the flag leaves it as it is.
    assert_eq!(other.done(open(&[], Some(&id)))["mode"], "plan");
}
