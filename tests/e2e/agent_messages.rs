//! Messages between agents (`write agent://<id>`) and what agents did (`history://`), on the real binaries.

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, Service, mock_server::Request, sse};
use serde_json::{Value, json};

use crate::{
    subagents_isolated::repository,
    support::{assert_says, text},
    unload::gone,
};

fn last(request: &Request) -> String {
    request.messages().last().map(text).unwrap_or_default()
}

fn all(request: &Request) -> String {
    request.messages().iter().map(text).collect::<Vec<_>>().join("\n")
}

fn is_subagent(request: &Request) -> bool {
    request.messages().first().is_some_and(|system| text(system).contains(", a subagent:"))
}

/// What others said to the agent that makes the request.
fn told(request: &Request) -> String {
    let of_others = request.messages().iter().filter(|message| message["role"] == "user");
    of_others.map(text).collect::<Vec<_>>().join("\n")
}

fn call(name: &str, arguments: Value) -> Reply {
    Reply::stream(sse::calls(&[(&format!("c-{name}"), name, arguments)]))
}

fn write(id: &str, message: &str) -> Reply {
    call("write", json!({"path": format!("agent://{id}"), "content": message}))
}

fn read(path: &str) -> Reply {
    call("read", json!({ "path": path }))
}

fn hand_in(data: &str) -> Reply {
    call("yield", json!({ "data": data }))
}

fn answer(text: &str) -> Reply {
    Reply::stream(sse::answer(text))
}

fn task(arguments: Value) -> Reply {
    call("task", arguments)
}

fn home(model: &MockServer, settings: &Value) -> Home {
    let home = Home::with_model(model);
    home.settings(settings);
    home
}

fn settings(background: bool) -> Value {
    json!({"task": {"enabled": true, "background": background}})
}

/// The text of the next result of a tool of that name.
fn result(daemon: &mut Daemon, tool: &str) -> String {
    let found = daemon.until("a result", |event| {
        event["type"] == "message_end"
            && event["message"]["role"] == "toolResult"
            && event["message"]["toolName"] == tool
    });
    text(&found["message"])
}

/// The text of the next message of that type.
fn custom(daemon: &mut Daemon, custom_type: &str) -> (String, Value) {
    let found = daemon.until("a message", |event| {
        event["type"] == "message_end" && event["message"]["customType"] == custom_type
    });
    (text(&found["message"]), found["message"]["details"].clone())
}

fn prompt(daemon: &mut Daemon, message: &str) {
    daemon.send(&json!({"id": "p", "type": "prompt", "message": message}));
}

/// A main agent that has A do something in the foreground, and says `order` to it at the prompt `Again.`; A hands in what it was told last.
fn two_rounds(order: &'static str) -> MockServer {
    MockServer::choosing(move |request| {
        let said = last(request);
        if is_subagent(request) {
            return hand_in(if all(request).contains(order) { "right" } else { "left" });
        }
        match said.as_str() {
            "Go." => task(json!({"tasks": [{"name": "A", "task": "Look left."}]})),
            "Again." => write("A", order),
            "Read." => read("agent://A"),
            _ => answer("Done."),
        }
    })
}

#[test]
fn a_message_steers_an_agent_at_work() {
    let gate = Gate::new();
    let waiting = gate.clone();
    let model = MockServer::choosing(move |request| {
        let said = last(request);
        if is_subagent(request) {
            if said.contains("Look left.") {
                return hand_in("left");
            }
            return call("bash", json!({"command": "true"})).gate_first(&waiting);
        }
        match said.as_str() {
            "Go." => task(json!({"background": true, "tasks": [{"name": "A", "task": "Look."}]})),
            said if said.starts_with("Spawned") => write("A", "Look left."),
            _ => answer("Done."),
        }
    });
    let home = home(&model, &settings(true));
    let mut daemon = Daemon::start(&home, &[]);
    prompt(&mut daemon, "Go.");
    assert_eq!(result(&mut daemon, "write"), "Sent to A, which is at work.");
    daemon.event("agent_settled");
    gate.open();
    let (told, _) = custom(&mut daemon, "agentd.job");
    assert_says(&told, &["## A (task) completed\n\nleft"]);
    let steered = model.requests().into_iter().filter(is_subagent).find(|it| last(it).contains("Look left."));
    assert_eq!(last(&steered.expect("a steered request")), "Message from the agent main:\n\nLook left.");
    assert!(!home.project().join("agent:").exists());
}

#[test]
fn agents_reach_their_parent_and_those_beside_them() {
    let gate = Gate::new();
    let waiting = gate.clone();
    let model = MockServer::choosing(move |request| {
        let (said, everything) = (last(request), all(request));
        if is_subagent(request) {
            return match everything.contains("Tell.") {
                true if said.contains("<task>") => write("B", "Beside."),
                true if said.starts_with("Sent to B") => write("main", "Above."),
                true if said == "Sent to main." => write("all", "To all."),
                true => hand_in(&said),
                false if everything.contains("To all.") => hand_in(&told(request)),
                false => call("bash", json!({"command": "true"})).gate_first(&waiting),
            };
        }
        match said.as_str() {
            "Go." => {
                task(json!({"tasks": [{"name": "A", "task": "Tell."}, {"name": "B", "task": "Listen."}]}))
            }
            _ => answer("Done."),
        }
    });
    let home = home(&model, &settings(false));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "set_subagent_subscription", "subscription": "progress"}));
    prompt(&mut daemon, "Go.");
    daemon.until("the end of A", |event| {
        event["type"] == "subagent_lifecycle"
            && event["subagent"]["id"] == "A"
            && event["subagent"]["status"] == "completed"
    });
    gate.open();
    let shown = result(&mut daemon, "task");
    assert_says(
        &shown,
        &[
            "## A (task) completed\n\nSent to main, B.",
            "Message from the agent A:\n\nBeside.",
            "Message from the agent A:\n\nTo all.",
        ],
    );
    let (told, details) = custom(&mut daemon, "agentd.agent-message");
    assert_eq!((told.as_str(), &details), ("Message from the agent A:\n\nAbove.", &json!({"from": "A"})));
    daemon.event("agent_settled");
    let requests = model.requests();
    let after = requests.iter().rfind(|request| !is_subagent(request)).expect("a request");
    assert_says(&all(after), &["Above.", "To all."]);
}

#[test]
fn who_is_not_there_is_answered_with_those_who_are() {
    let model = MockServer::choosing(|request| {
        if is_subagent(request) {
            return hand_in("done");
        }
        match last(request).as_str() {
            "Go." => task(json!({"tasks": [{"name": "A", "task": "One."}, {"name": "B", "task": "Two."}]})),
            "X" => write("X", "Hello."),
            "Self" => write("main", "Hello."),
            "Empty" => write("A", " \n"),
            "All" => write("all", "Hello."),
            _ => answer("Done."),
        }
    });
    let home = home(&model, &settings(false));
    let mut daemon = Daemon::start(&home, &[]);
    prompt(&mut daemon, "X");
    assert_eq!(result(&mut daemon, "write"), "Not found: X. There are: none");
    daemon.event("agent_settled");
    prompt(&mut daemon, "Go.");
    daemon.event("agent_settled");
    for (said, expected) in [
        ("X", "Not found: X. There are: A, B"),
        ("Self", "A message to yourself goes nowhere."),
        ("Empty", "The message is empty."),
        ("All", "No other agent is at work."),
    ] {
        prompt(&mut daemon, said);
        assert_eq!(result(&mut daemon, "write"), expected);
        daemon.event("agent_settled");
    }
}

#[test]
fn an_agent_that_has_ended_goes_on_with_a_message() {
    let model = two_rounds("Now right.");
    let home = home(&model, &settings(false));
    let mut daemon = Daemon::start(&home, &[]);
    prompt(&mut daemon, "Go.");
    assert_says(&result(&mut daemon, "task"), &["## A (task) completed\n\nleft"]);
    daemon.event("agent_settled");
    let before = daemon.done(json!({"type": "get_subagents"}))["subagents"][0].clone();
    prompt(&mut daemon, "Again.");
    assert_eq!(
        result(&mut daemon, "write"),
        "Sent to A, which goes on with it (job `A`). You are told of its result."
    );
    let (told, details) = custom(&mut daemon, "agentd.job");
    assert_says(&told, &["## A (task) completed\n\nright"]);
    assert_eq!(details["results"][0]["requests"], 1, "only what it did since: {details}");
    let after = daemon.done(json!({"type": "get_subagents"}))["subagents"][0].clone();
    assert_eq!((&after["status"], &after["sessionId"]), (&json!("completed"), &before["sessionId"]));
    let request = model.requests().into_iter().rfind(is_subagent).expect("a request");
    assert_says(&all(&request), &["Look left.", "Message from the agent main:\n\nNow right."]);
    prompt(&mut daemon, "Read.");
    assert_eq!(result(&mut daemon, "read"), "right");
}

#[test]
fn it_goes_on_after_a_crash_too() {
    let model = two_rounds("Now right.");
    let home = home(&model, &settings(false));
    let mut daemon = Daemon::start(&home, &[]);
    prompt(&mut daemon, "Go.");
    daemon.event("agent_settled");
    daemon.signal(rustix::process::Signal::KILL);
    daemon.wait();
    let mut daemon = Daemon::start(&home, &["--continue"]);
    prompt(&mut daemon, "Again.");
    assert_says(&result(&mut daemon, "write"), &["Sent to A, which goes on with it"]);
    let (told, _) = custom(&mut daemon, "agentd.job");
    assert_says(&told, &["## A (task) completed\n\nright"]);
    let request = model.requests().into_iter().rfind(is_subagent).expect("a request");
    assert_says(&all(&request), &["Look left.", "Now right."]);
    assert!(request.body["tools"].to_string().contains("\"yield\""), "it can hand in its result");
}

#[test]
fn both_may_have_left_memory_in_between() {
    let model = two_rounds("Now right.");
    let mut settings = settings(false);
    settings["daemon"] = json!({"idleUnloadMs": 1});
    let home = home(&model, &settings);
    let service = Service::start(&home, &[]);
    let (mut client, mut watcher) = (service.client(), service.client());
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    watcher.done(json!({"type": "watch_sessions"}));
    let id = client.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone();
    client.done(json!({"type": "prompt", "message": "Go.", "sessionId": id}));
    client.until("the end", |event| event["type"] == "agent_settled" && event["sessionId"] == id);
    gone(&mut watcher, id.as_str().expect("an id"));
    client.done(json!({"type": "prompt", "message": "Again.", "sessionId": id}));
    let told = client.until("the message", |event| {
        event["type"] == "message_end" && event["message"]["customType"] == "agentd.job"
    });
    assert_says(&text(&told["message"]), &["## A (task) completed\n\nright"]);
}

#[test]
fn one_that_worked_in_a_copy_cannot_go_on() {
    let model = MockServer::choosing(|request| {
        if is_subagent(request) {
            return hand_in("done");
        }
        match last(request).as_str() {
            "Go." => task(json!({"tasks": [{"name": "A", "task": "One.", "isolated": true}]})),
            "Again." => write("A", "More."),
            _ => answer("Done."),
        }
    });
    let home = home(&model, &json!({"task": {"enabled": true, "isolation": {"enabled": true}}}));
    repository(&home);
    let mut daemon = Daemon::start(&home, &[]);
    prompt(&mut daemon, "Go.");
    daemon.event("agent_settled");
    prompt(&mut daemon, "Again.");
    assert_says(
        &result(&mut daemon, "write"),
        &["The subagent A worked in a copy of the repository that is gone"],
    );
}

#[test]
fn histories_are_listed_and_read() {
    let model = MockServer::choosing(|request| {
        let said = last(request);
        if is_subagent(request) {
            return if said.contains("<task>") {
                call("bash", json!({"command": "echo seen"}))
            } else {
                hand_in("done")
            };
        }
        match said.as_str() {
            "Go." => task(json!({"tasks": [{"name": "A", "task": "Look\nleft."}]})),
            "List" => read("history://"),
            "A" => read("history://A"),
            "Part" => read("history://A:1-3"),
            "X" => read("history://X"),
            _ => answer("Done."),
        }
    });
    let home = home(&model, &settings(false));
    let mut daemon = Daemon::start(&home, &[]);
    let mut shown = |said: &str| {
        prompt(&mut daemon, said);
        let shown = result(&mut daemon, if said == "Go." { "task" } else { "read" });
        daemon.event("agent_settled");
        shown
    };
    assert_eq!(shown("List"), "There are no agents.");
    shown("Go.");
    assert_eq!(shown("List"), "- history://A (task, completed): Look");
    assert_says(
        &shown("A"),
        &[
            "## User\n\n<task>\nLook\nleft.\n</task>",
            "Calls `bash`:\n\n```\n{\n  \"command\": \"echo seen\"\n}\n```",
            "## Result of bash\n\n```\nseen\n```",
            "Calls `yield`:",
        ],
    );
    assert_says(&shown("Part"), &["## User\n\n<task>"]);
    assert_eq!(shown("X"), "Not found: X. There are: A");
}
