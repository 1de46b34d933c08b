//! The tool `todo`: the model's list of tasks, on the real binaries.

use agentd_e2e::{Daemon, Home, MockServer, Reply, conversation::LineTransport, ctl, sse};
use serde_json::{Value, json};

use crate::{
    client_tools::{hello, offered},
    support::{assert_says, complaint, ended, text},
};

/// A home whose sessions have the tool.
fn enabled() -> (MockServer, Home) {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    home.settings(&json!({"todo": {"enabled": true}}));
    (model, home)
}

fn start(home: &Home, args: &[&str]) -> Daemon {
    let mut daemon = Daemon::start(home, args);
    hello(&mut daemon, "test");
    daemon
}

/// Has the model make a call of the tool; all events, and the result that it gets.
fn todo<W: LineTransport>(
    client: &mut agentd_e2e::Conversation<W>,
    model: &MockServer,
    arguments: Value,
) -> (Vec<Value>, Value) {
    model.push(Reply::stream(sse::calls(&[("c1", "todo", arguments)])));
    model.push(Reply::stream(sse::answer("Ok.")));
    let events = client.prompt("Go.");
    let result = ended(&events, "toolResult")[0].clone();
    (events, result)
}

/// The list in `get_state`, in short: `Phase: task status, …`.
fn phases<W: LineTransport>(client: &mut agentd_e2e::Conversation<W>) -> String {
    let state = client.done(json!({"type": "get_state"}));
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let phases = list(&state["todoPhases"]).into_iter().map(|phase| {
        let tasks = list(&phase["tasks"]).into_iter();
        let tasks: Vec<String> = tasks
            .map(|task| {
                format!(
                    "{} {}",
                    task["content"].as_str().expect("a text"),
                    task["status"].as_str().expect("a word")
                )
            })
            .collect();
        format!("{}: {}", phase["name"].as_str().expect("a name"), tasks.join(", "))
    });
    phases.collect::<Vec<_>>().join("; ")
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

#[test]
fn the_tool_is_there_and_active_only_where_somebody_says_so() {
    let four = ["read", "bash", "edit", "write"];
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let ask = |args: &[&str]| {
        let mut daemon = start(&home, args);
        model.push(Reply::stream(sse::answer("Ok.")));
        daemon.prompt("Go.");
        offered(&model, model.requests().len() - 1)
    };
    let plain = ask(&["--no-session"]);
    assert_eq!(plain, four);
    let system = model.requests()[0].messages()[0].to_string();
    assert!(!system.contains("todo"), "{system}");
    assert_eq!(ask(&["--no-session", "--tools", "+todo"]), [&four[..], &["todo"]].concat());
    assert_eq!(ask(&["--no-session", "--todo"]), [&four[..], &["todo"]].concat());
    assert_eq!(ask(&["--no-session", "--tools", "read,todo"]), ["read", "todo"]);
    let mut daemon = start(&home, &["--no-session"]);
    daemon.done(json!({"type": "set_active_tools", "tools": ["todo"]}));
    home.settings(&json!({"todo": {"enabled": false}}));
    assert_eq!(ask(&["--no-session", "--todo"]), four);
    home.settings(&json!({"todo": {"enabled": true}}));
    assert_eq!(ask(&["--no-session"]), [&four[..], &["todo"]].concat());
    assert_says(&text(&model.requests().last().expect("a request").messages()[0]), &["todo", "todo list"]);
}

#[test]
fn a_list_is_kept_told_and_reminded_of() {
    let (model, home) = enabled();
    let mut daemon = start(&home, &[]);
    assert_eq!(daemon.done(json!({"type": "get_state"})).get("todoPhases"), None, "an empty list is absent");
    let list = json!({"op": "init", "list": [{"phase": "A", "items": ["one", "two"]}, {"phase": "B", "items": ["three"]}]});
    let (events, made) = todo(&mut daemon, &model, list);
    assert_eq!(text(&made), "A (0/2)\n[>] one\n[ ] two\nB (0/1)\n[ ] three");
    assert_eq!((&made["details"]["storage"], &made["details"]["op"]), (&json!("session"), &json!("init")));
    assert_eq!(phases(&mut daemon), "A: one in_progress, two pending; B: three pending");
    let reminded = of_kind(&events, "todo_reminder");
    assert_eq!(reminded.len(), 1);
    assert_eq!(reminded[0]["todos"].as_array().map(Vec::len), Some(3));
    assert_eq!(reminded[0]["todos"][0], json!({"content": "one", "status": "in_progress"}));
    // The old form of the tool: all of it, or nothing.
    let (_, failed) = todo(
        &mut daemon,
        &model,
        json!({"ops": [{"op": "done", "task": "one"}, {"op": "done", "task": "x"}]}),
    );
    assert_eq!((text(&failed).as_str(), &failed["isError"]), ("Errors: Task \"x\" not found", &json!(true)));
    assert_eq!(phases(&mut daemon), "A: one in_progress, two pending; B: three pending");
    let (_, done) = todo(
        &mut daemon,
        &model,
        json!({"ops": [{"op": "done", "phase": "A"}, {"op": "block", "task": "three", "reason": "wait"}]}),
    );
    assert_eq!(done["details"]["completedTasks"].as_array().map(Vec::len), Some(2));
    let (events, _) = todo(&mut daemon, &model, json!({"op": "view"}));
    assert!(of_kind(&events, "todo_reminder").is_empty(), "nothing can be gone on with");
    // Two calls of one answer follow each other.
    let calls = [
        ("c1", "todo", json!({"op": "unblock", "task": "three"})),
        ("c2", "todo", json!({"op": "done", "task": "three"})),
    ];
    model.push(Reply::stream(sse::calls(&calls)));
    model.push(Reply::stream(sse::answer("Ok.")));
    daemon.prompt("Go.");
    assert_eq!(phases(&mut daemon), "A: one completed, two completed; B: three completed");
    assert!(daemon.close().status.success());

    // Another daemon goes on with it.
    let file = home.session_files()[0].clone();
    let mut again = start(&home, &["--session", file.to_str().expect("a path")]);
    assert_eq!(phases(&mut again), "A: one completed, two completed; B: three completed");
    let (_, cleared) = todo(&mut again, &model, json!({"op": "rm"}));
    assert_eq!(text(&cleared), "Todo list cleared.");
    assert_eq!(phases(&mut again), "");
}

#[test]
fn clients_set_the_list_and_it_goes_where_the_branch_goes() {
    let (model, home) = enabled();
    let mut daemon = start(&home, &[]);
    todo(&mut daemon, &model, json!({"op": "init", "items": ["one", "two"]}));
    let back = daemon.done(json!({"type": "get_tree"}))["leafId"].as_str().expect("an id").to_owned();
    let task = |content: &str, status: &str| json!({"content": content, "status": status});
    let set = json!([{"name": "Mine", "tasks": [task("three", "completed"), task("four", "pending")]}]);
    daemon.send(&json!({"id": "s", "type": "set_todos", "phases": set}));
    let entry = daemon.event("entry_appended")["entry"].clone();
    let told = daemon.until("the answer", |line| line["id"] == "s")["data"].clone();
    assert_eq!(told["todoPhases"][0]["tasks"][1]["status"], "in_progress");
    assert_eq!(told["phases"], told["todoPhases"]);
    assert_eq!(
        (&entry["customType"], &entry["data"]["phases"][0]["name"]),
        (&json!("agentd.todos"), &json!("Mine"))
    );
    assert_eq!(phases(&mut daemon), "Mine: three completed, four in_progress");
    let twice = json!([{"name": "A", "tasks": [task("a", "pending"), task("a", "pending")]}]);
    let refused = daemon.refused(json!({"type": "set_todos", "phases": twice}));
    assert_says(&complaint(&refused), &["phases: Task \"a\" already exists"]);
    let (_, seen) = todo(&mut daemon, &model, json!({"op": "done", "task": "four"}));
    assert_eq!(text(&seen), "Mine (2/2)\n[x] three\n[x] four");

    // Back before that, and forward again.
    let ahead = daemon.done(json!({"type": "get_tree"}))["leafId"].as_str().expect("an id").to_owned();
    daemon.done(json!({"type": "navigate_tree", "entryId": back}));
    assert_eq!(phases(&mut daemon), "Tasks: one in_progress, two pending");
    daemon.done(json!({"type": "navigate_tree", "entryId": ahead}));
    assert_eq!(phases(&mut daemon), "Mine: three completed, four completed");
    // A fork has what its own entries say.
    let messages = daemon.done(json!({"type": "get_fork_messages"}))["messages"].clone();
    let second = messages[1]["entryId"].clone();
    daemon.done(json!({"type": "fork", "entryId": second}));
    assert_eq!(phases(&mut daemon), "Mine: three completed, four in_progress");
}

#[test]
fn an_abort_leaves_the_list_as_the_file_has_it() {
    let (model, home) = enabled();
    let mut daemon = start(&home, &[]);
    let calls = [
        ("c1", "todo", json!({"op": "init", "items": ["one"]})),
        ("c2", "bash", json!({"command": "sleep 600"})),
    ];
    model.push(Reply::stream(sse::calls(&calls)));
    daemon.done(json!({"type": "prompt", "message": "Go."}));
    daemon.until("the command", |line| line["type"] == "tool_execution_start" && line["toolName"] == "bash");
    daemon.send(&json!({"type": "abort"}));
    let events = daemon.settled();
    assert!(of_kind(&events, "todo_reminder").is_empty(), "who aborts knows");
    let shown = phases(&mut daemon);
    assert_eq!(shown, "Tasks: one in_progress");
    assert!(daemon.close().status.success());
    let file = home.session_files()[0].clone();
    let mut again = start(&home, &["--session", file.to_str().expect("a path")]);
    assert_eq!(phases(&mut again), shown);
}

#[test]
fn a_list_outlasts_a_compaction() {
    let (model, home) = enabled();
    let mut daemon = start(&home, &[]);
    todo(&mut daemon, &model, json!({"op": "init", "items": ["one"]}));
    for _ in 0..2 {
        model.push(Reply::stream(sse::answer("Ok.")));
        daemon.prompt(&"More to say. ".repeat(10_000));
    }
    model.push(Reply::stream(sse::answer("A summary.")));
    daemon.done(json!({"type": "compact"}));
    assert_eq!(phases(&mut daemon), "Tasks: one in_progress");
    assert!(daemon.close().status.success());
    let file = home.session_files()[0].clone();
    let mut again = start(&home, &["--session", file.to_str().expect("a path")]);
    assert_eq!(phases(&mut again), "Tasks: one in_progress");
}

#[test]
fn permissions_do_not_stand_before_notes_of_the_session() {
    let (model, home) = enabled();
    home.settings(&json!({"todo": {"enabled": true}, "permissions": {"preset": "read-only"}}));
    let mut daemon = start(&home, &["--no-session"]);
    let (_, made) = todo(&mut daemon, &model, json!({"op": "init", "items": ["one"]}));
    assert_eq!(
        (text(&made).as_str(), &made["details"]["storage"]),
        ("Tasks (0/1)\n[>] one", &json!("memory"))
    );
    home.settings(
        &json!({"todo": {"enabled": true}, "permissions": {"rules": [{"tool": "todo", "action": "deny"}]}}),
    );
    let mut daemon = start(&home, &["--no-session"]);
    let (_, denied) = todo(&mut daemon, &model, json!({"op": "init", "items": ["one"]}));
    assert_says(&text(&denied), &["Permission denied"]);
}

#[test]
fn agentctl_shows_a_check_list() {
    let (model, home) = enabled();
    model.push(Reply::stream(sse::calls(&[("c1", "todo", json!({"op": "init", "items": ["one"]}))])));
    model.push(Reply::stream(sse::answer("Ok.")));
    let ran = ctl::run(&home, &["prompt", "--model", "fake/fake", "Go."]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_says(&ran.stderr, &["-> todo init"]);
}
