//! Subagents: the tool `task`, on the real binaries.

use std::fs;

use agentd_e2e::{
    DEADLINE, Daemon, Gate, Home, MockServer, Reply, Service, SocketClient, mock_server::Request, sse,
};
use serde_json::{Value, json};

use crate::support::{assert_says, text};

/// What is said last in a request.
pub(crate) fn last(request: &Request) -> String {
    request.messages().last().map(text).unwrap_or_default()
}

/// All that is said in a request.
pub(crate) fn all(request: &Request) -> String {
    request.messages().iter().map(text).collect::<Vec<_>>().join("\n")
}

/// Whether a request comes from a subagent.
pub(crate) fn is_subagent(request: &Request) -> bool {
    all(request).contains("<task>")
}

pub(crate) fn hand_in(data: Value) -> Reply {
    Reply::stream(sse::calls(&[("y1", "yield", json!({ "data": data }))]))
}

/// The call of the tool.
pub(crate) fn task(arguments: Value) -> Reply {
    Reply::stream(sse::calls(&[("t1", "task", arguments)]))
}

/// A home whose sessions have the tool, with these settings of it besides.
pub(crate) fn home(model: &MockServer, settings: Value) -> Home {
    let home = Home::with_model(model);
    let mut of_tool = json!({"enabled": true});
    of_tool.as_object_mut().expect("an object").extend(settings.as_object().expect("an object").clone());
    home.settings(&json!({ "task": of_tool }));
    home
}

/// Runs a prompt to its end; gives the result of the tool.
pub(crate) fn run(daemon: &mut Daemon) -> Value {
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    result(daemon)
}

pub(crate) fn result(daemon: &mut Daemon) -> Value {
    let is_result =
        |event: &Value| event["type"] == "message_end" && event["message"]["role"] == "toolResult";
    let result = daemon.until("a result", is_result)["message"].clone();
    daemon.event("agent_settled");
    result
}

/// A model that starts subagents by these arguments, whose subagents answer as `child` says.
pub(crate) fn model(
    arguments: Value,
    child: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> MockServer {
    MockServer::choosing(move |request| {
        if is_subagent(request) {
            child(request)
        } else if last(request) == "Go." {
            task(arguments.clone())
        } else {
            Reply::stream(sse::answer("All done."))
        }
    })
}

#[test]
fn three_work_side_by_side_and_their_results_come_back_in_order() {
    let gate = Gate::default();
    let arguments = json!({"context": "The project is small.", "tasks": [
        {"name": "A", "task": "Review a."}, {"name": "B", "agent": "scout", "task": "Review b."}, {"name": "C", "task": "Review c."},
    ]});
    let waiting = gate.clone();
    let model = model(arguments, move |request| {
        let said = all(request);
        let name = ["a", "b", "c"]
            .into_iter()
            .find(|name| said.contains(&format!("Review {name}.")))
            .expect("a task");
        hand_in(json!(format!("{name} is fine"))).gate_first(&waiting)
    });
    let home = home(&model, json!({}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "set_subagent_subscription", "subscription": "progress"}));
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    // All three ask their model before one has an answer.
    let requests = model.wait_for_requests(4);
    let of_children: Vec<_> = requests.iter().filter(|request| is_subagent(request)).collect();
    assert_eq!(of_children.len(), 3);
    for request in &of_children {
        assert_says(&all(request), &["<context>\nThe project is small.\n</context>"]);
        let offered = request.body["tools"].to_string();
        assert!(offered.contains("\"yield\"") && !offered.contains("\"todo\""), "{offered}");
        assert!(!all(request).contains("Go."), "a subagent knows nothing of the conversation");
    }
    let scout = of_children.iter().find(|request| all(request).contains("Review b.")).expect("B");
    let offered = scout.body["tools"].to_string();
    assert!(offered.contains("\"read\"") && !offered.contains("\"write\""), "{offered}");
    gate.open();
    let told = result(&mut daemon);
    let said = text(&told);
    assert_eq!(
        said,
        "## A (task) completed\n\na is fine\n\n## B (scout) completed\n\nb is fine\n\n## C (task) completed\n\nc is fine"
    );
    let results = told["details"]["results"].as_array().expect("results");
    let of = |field: &str| results.iter().map(|result| result[field].clone()).collect::<Vec<_>>();
    assert_eq!(of("id"), ["A", "B", "C"]);
    assert_eq!(of("exitCode"), [0, 0, 0]);
    let list = daemon.done(json!({"type": "get_subagents"}));
    let list = list["subagents"].as_array().expect("a list");
    assert!(
        list.iter().all(|one| one["status"] == "completed" && one["parentToolCallId"] == "t1"),
        "{list:?}"
    );
    // Their sessions are kept beside their parent's, not among the user's.
    let is_of_user = |file: &std::path::PathBuf| !file.to_string_lossy().contains(".agents/");
    let of_user: Vec<_> = home.session_files().into_iter().filter(is_of_user).collect();
    assert_eq!(of_user.len(), 1);
    let file = list[0]["sessionFile"].as_str().expect("a file");
    let header = fs::read_to_string(file).expect("a session file");
    let header: Value = serde_json::from_str(header.lines().next().expect("a header")).expect("JSON");
    assert_eq!(header["id"], list[0]["sessionId"]);
    assert_eq!(header["parentSession"].as_str().expect("a parent"), of_user[0].to_str().expect("UTF-8"));
    let messages = daemon.done(json!({"type": "get_subagent_messages", "subagentId": "A"}));
    assert_eq!(messages["messages"][1]["role"], "user", "{messages}");
}

#[test]
fn one_that_fails_one_that_never_hands_in_and_one_with_a_wrong_result() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]});
    let arguments = json!({"tasks": [
        {"name": "Fails", "task": "Fail."},
        {"name": "Silent", "task": "Be silent."},
        {"name": "Wrong", "task": "Be wrong.", "outputSchema": schema},
        {"name": "Strict", "task": "Be wrong.", "outputSchema": schema, "schemaMode": "strict"},
        {"name": "GaveUp", "task": "Give up."},
    ]});
    let model = model(arguments, |request| {
        let said = all(request);
        if said.contains("Fail.") {
            return Reply::status(401, "application/json", r#"{"error": {"message": "no such key"}}"#);
        }
        if said.contains("Be silent.") {
            return Reply::stream(sse::answer("I say something."));
        }
        if said.contains("Give up.") {
            return Reply::stream(sse::calls(&[("y1", "yield", json!({"error": "it is impossible"}))]));
        }
        hand_in(json!({"n": "three"}))
    });
    let home = home(&model, json!({}));
    let mut daemon = Daemon::start(&home, &[]);
    let told = run(&mut daemon);
    let results = told["details"]["results"].as_array().expect("results");
    let of = |field: &str| results.iter().map(|result| result[field].clone()).collect::<Vec<_>>();
    assert_eq!(of("exitCode"), [1, 0, 0, 1, 0], "{told}");
    assert_says(results[0]["error"].as_str().expect("an error"), &["no such key"]);
    assert_eq!(results[1]["output"], "I say something.");
    assert_says(
        results[1]["stderr"].as_str().expect("a warning"),
        &["SYSTEM WARNING: Subagent exited without calling yield tool after 3 reminders."],
    );
    assert_eq!(results[1]["requests"], 4, "three reminders");
    assert_eq!(results[2]["structuredOutput"]["status"], "invalid");
    assert_says(results[3]["error"].as_str().expect("an error"), &["does not fit the schema"]);
    assert_eq!(
        (&results[4]["aborted"], &results[4]["abortReason"]),
        (&json!(true), &json!("it is impossible"))
    );
    assert_says(&text(&told), &["## Fails (task) failed", "## GaveUp (task) stopped: it is impossible"]);
    assert_eq!(told["isError"], false);
}

#[test]
fn the_last_reminder_makes_the_model_call_the_tool() {
    let choice = json!({"type": "function", "function": {"name": "yield"}});
    let arguments = json!({"tasks": [{"name": "Willing", "task": "Be willing."}, {"name": "Stubborn", "task": "Be stubborn."}]});
    let model = model(arguments, |request| {
        match (all(request).contains("Be willing."), request.body.get("tool_choice")) {
            (true, Some(_)) => hand_in(json!("at last")),
            (false, Some(_)) => {
                Reply::status(400, "application/json", r#"{"error": {"message": "no tool_choice here"}}"#)
            }
            (_, None) => Reply::stream(sse::answer("I say something.")),
        }
    });
    let home = home(&model, json!({}));
    let mut daemon = Daemon::start(&home, &[]);
    let told = run(&mut daemon);
    let results = told["details"]["results"].as_array().expect("results");
    assert_eq!((&results[0]["output"], &results[0]["exitCode"]), (&json!("at last"), &json!(0)), "{told}");
    // Where the provider does not take that, what the subagent said counts.
    assert_eq!(
        (&results[1]["output"], &results[1]["exitCode"]),
        (&json!("I say something."), &json!(0)),
        "{told}"
    );
    assert_says(results[1]["stderr"].as_str().expect("a warning"), &["without calling yield tool"]);
    let of_willing: Vec<_> = model
        .requests()
        .into_iter()
        .filter(|request| all(request).contains("Be willing.") && is_subagent(request))
        .collect();
    let choices: Vec<_> = of_willing.iter().map(|request| request.body.get("tool_choice").cloned()).collect();
    assert_eq!(choices, [None, None, None, Some(choice)], "only the last reminder");
}

#[test]
fn errors_of_arguments_start_nothing() {
    let model = MockServer::start([]);
    let home = home(&model, json!({"disabledAgents": ["scout"]}));
    let mut daemon = Daemon::start(&home, &[]);
    let mut check = |arguments: Value, expected: &str| {
        model.push(task(arguments));
        model.push(Reply::stream(sse::answer("Ok.")));
        let told = run(&mut daemon);
        assert_says(&text(&told), &[expected]);
        assert_eq!(told["details"]["results"], json!([]));
    };
    check(
        json!({"tasks": [{"task": "x", "agent": "nobody"}]}),
        "Unknown agent \"nobody\". Available: task, reviewer",
    );
    check(json!({"tasks": [{"task": "x", "agent": "scout"}]}), "Unknown agent \"scout\"");
    check(
        json!({"tasks": [{"task": "x", "name": "a"}, {"task": "y", "name": "A"}]}),
        "Two tasks have the name",
    );
    check(json!({"tasks": [{"task": "x", "outputSchema": {"type": 3}}]}), "outputSchema cannot be used");
    check(json!({"schema": {}, "tasks": [{"task": "x"}]}), "outputSchema");
    assert_eq!(daemon.done(json!({"type": "get_subagents"}))["subagents"], json!([]));
}

#[test]
fn an_abort_ends_all_of_them_and_their_processes() {
    let arguments = json!({"tasks": [{"name": "A", "task": "Sleep a."}, {"name": "B", "task": "Sleep b."}]});
    let model = model(arguments, |_| {
        Reply::stream(sse::calls(&[("b1", "bash", json!({"command": "echo > started-$PPID; sleep 1000"}))]))
    });
    let home = home(&model, json!({}));
    let service = Service::start(&home, &[]);
    let mut client = hello(&service);
    let id = client.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone();
    client.send(&json!({"type": "prompt", "message": "Go.", "sessionId": id}));
    // Both run their command.
    let end = std::time::Instant::now() + DEADLINE;
    loop {
        let processes = client.done(json!({"type": "list_processes"}));
        let sleeping = processes["processes"].as_array().expect("a list").iter();
        if sleeping.filter(|process| process["command"].to_string().contains("sleep 1000")).count() >= 2 {
            break;
        }
        assert!(std::time::Instant::now() < end, "{processes}");
    }
    client.done(json!({"type": "abort", "sessionId": id}));
    let settled = client.event("agent_settled");
    assert_eq!(settled["aborted"], true);
    let list = client.done(json!({"type": "get_subagents", "sessionId": id}));
    let status = |index: usize| list["subagents"][index]["status"].clone();
    assert_eq!([status(0), status(1)], ["aborted", "aborted"], "{list}");
    let processes = client.done(json!({"type": "list_processes"}));
    assert!(!processes.to_string().contains("sleep 1000"), "{processes}");
}

pub(crate) fn hello(service: &Service) -> SocketClient {
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    client
}

#[test]
fn a_subagent_can_be_joined_and_steered() {
    let gate = Gate::default();
    let waiting = gate.clone();
    let model = model(json!({"tasks": [{"name": "A", "task": "Look around."}]}), move |request| {
        if all(request).contains("Look left.") {
            hand_in(json!("left"))
        } else {
            Reply::stream(sse::calls(&[("b1", "bash", json!({"command": "true"}))])).gate_first(&waiting)
        }
    });
    let home = home(&model, json!({}));
    let service = Service::start(&home, &[]);
    let mut client = hello(&service);
    let id = client.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone();
    client.done(json!({"type": "set_subagent_subscription", "subscription": "progress"}));
    client.send(&json!({"type": "prompt", "message": "Go.", "sessionId": id}));
    let running = client.until("a running subagent", |event| {
        event["type"] == "subagent_lifecycle" && event["subagent"]["status"] == "running"
    });
    let child = running["subagent"]["sessionId"].clone();
    let _ = model.wait_for_requests(2);
    let mut watcher = hello(&service);
    let live = watcher.done(json!({"type": "list_sessions", "live": true}));
    let row = live["sessions"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|row| row["id"] == child)
        .expect("the child");
    assert_eq!((&row["agent"], &row["agentId"], &row["parentId"]), (&json!("task"), &json!("A"), &id));
    watcher.done(json!({"type": "attach_session", "sessionId": child}));
    watcher.done(json!({"type": "steer", "message": "Look left.", "sessionId": child}));
    gate.open();
    watcher.until("its end", |event| event["type"] == "agent_settled" && event["sessionId"] == child);
    let told = client.until("the result", |event| {
        event["type"] == "message_end" && event["message"]["role"] == "toolResult" && event["sessionId"] == id
    });
    assert_says(&text(&told["message"]), &["left"]);
}

#[test]
fn a_limited_number_works_at_a_time_and_depth_is_limited() {
    let nested = json!({"tasks": [{"name": "Inner", "task": "Go deeper."}]});
    let model = MockServer::choosing(move |request| {
        let said = all(request);
        let has_tool = request.body["tools"].to_string().contains("\"task\"");
        if said.contains("Go deeper.") {
            hand_in(json!(format!("deepest, tool: {has_tool}")))
        } else if said.contains("Go deep.") && last(request).contains("deepest") {
            hand_in(json!(last(request)))
        } else if said.contains("Go deep.") {
            task(nested.clone())
        } else if last(request) == "Go." {
            task(json!({"tasks": [{"name": "Outer", "task": "Go deep."}]}))
        } else {
            Reply::stream(sse::answer("Done."))
        }
    });
    let home = home(&model, json!({"maxConcurrency": 1}));
    let mut daemon = Daemon::start(&home, &[]);
    let told = run(&mut daemon);
    assert_says(
        &text(&told),
        &["## Outer (task) completed", "## Outer.Inner (task) completed", "deepest, tool: false"],
    );
    // What the inner one took counts for the outer one, too.
    assert_eq!(told["details"]["results"][0]["requests"], 2);
}

#[test]
fn definitions_in_files_count_and_read_has_the_whole_result() {
    let result = "x".repeat(6000);
    let model = MockServer::choosing(move |request| {
        if is_subagent(request) {
            hand_in(json!({"list": ["first", result.clone()]}))
        } else if last(request) == "Go." {
            task(json!({"tasks": [{"name": "A", "agent": "lister", "task": "List."}]}))
        } else if last(request).contains("all of it: read agent://A") {
            let read = |id: &str, path: &str| (id.to_owned(), json!({ "path": path }));
            let [one, two] = [read("r1", "agent://A/list/0"), read("r2", "agent://A?q=list[0]")];
            Reply::stream(sse::calls(&[(&one.0, "read", one.1), (&two.0, "read", two.1)]))
        } else {
            Reply::stream(sse::answer(&format!("It says: {}", last(request))))
        }
    });
    let home = home(&model, json!({}));
    home.write(
        ".claude/agents/lister.md",
        "---\nname: lister\ndescription: Lists things\ntools: Read, WebFetch, browser\nmodel: no-such-model\n---\nYou list.\n",
    );
    let mut daemon = Daemon::start(&home, &[]);
    let told = run(&mut daemon);
    let requests = model.requests();
    let child = requests.iter().find(|request| is_subagent(request)).expect("a request of it");
    assert_says(&all(child), &["You list.", "You are A, a subagent"]);
    assert!(!child.body["tools"].to_string().contains("\"bash\""));
    let main = requests.first().expect("a request");
    assert_says(&all(main), &["- lister: Lists things"]);
    let stderr = told["details"]["results"][0]["stderr"].as_str().expect("warnings").to_owned();
    assert_says(&stderr, &["no-such-model", "browser"]);
    assert_says(&all(requests.last().expect("a request")), &["\nfirst\nfirst"]);
}

#[test]
fn a_crash_leaves_nobody_at_work_and_nobody_is_started_twice() {
    let model = model(json!({"tasks": [{"name": "A", "task": "Hang."}]}), |_| Reply::silence());
    let home = home(&model, json!({}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    let _ = model.wait_for_requests(2);
    daemon.signal(rustix::process::Signal::KILL);
    daemon.wait();
    let mut daemon = Daemon::start(&home, &["--continue"]);
    let list = daemon.done(json!({"type": "get_subagents"}));
    assert_eq!(list["subagents"][0]["status"], "interrupted", "{list}");
    assert_eq!(model.requests().len(), 2, "it was not started again");
    let id = list["subagents"][0]["sessionId"].as_str().expect("a session");
    let file = list["subagents"][0]["sessionFile"].as_str().expect("a file");
    assert!(fs::read_to_string(file).expect("the file").contains(id));
}

#[test]
fn one_plans_while_its_parent_does_and_no_longer() {
    let model = model(json!({"tasks": [{"task": "Write it."}]}), |request| {
        match text(request.messages().last().expect("a message")).as_str() {
            said if said.contains("plan mode refuses") => hand_in(json!("refused")),
            said if said.contains("Write it.") => {
                Reply::stream(sse::calls(&[("w1", "write", json!({"path": "made.txt", "content": "x"}))]))
            }
            _ => hand_in(json!("written")),
        }
    });
    let home = home(&model, json!({}));
    let mut daemon = Daemon::start(&home, &["--plan-mode"]);
    assert_says(&text(&run(&mut daemon)), &["refused"]);
    assert!(!home.project().join("made.txt").exists());
    daemon.done(json!({"type": "set_mode", "mode": "default"}));
    assert_says(&text(&run(&mut daemon)), &["written"]);
    assert_eq!(home.read("made.txt"), "x");
}

#[test]
fn usage_is_told_by_agent() {
    let model = model(json!({"tasks": [{"agent": "scout", "task": "Look."}]}), |_| hand_in(json!("seen")));
    let home = home(&model, json!({}));
    let mut daemon = Daemon::start(&home, &[]);
    run(&mut daemon);
    daemon.close();
    let usage = agentd_e2e::ctl::run(&home, &["usage", "--by", "agent", "--json"]);
    let report: Value = serde_json::from_str(&usage.stdout).expect("a report");
    let rows = report["rows"].as_array().expect("rows");
    let row =
        |name: &str| rows.iter().find(|row| row["key"] == name).unwrap_or_else(|| panic!("{name}: {report}"));
    assert_eq!((&row("main")["answers"], &row("scout")["answers"]), (&json!(2), &json!(1)), "{report}");
}
