//! Prompts: answers, sessions that go on, progress, several at once, steering, cancelling, failures.

use std::time::Duration;

use agentd_e2e::{DEADLINE, Gate, Home, MockServer, Reply, processes, sse};
use serde_json::{Value, json};

use super::agent::Agent;
use crate::extensions::{extension, says_to_the_session};

fn bash(command: &str) -> Reply {
    Reply::stream(sse::calls(&[("call_1", "bash", json!({"command": command}))]))
}

fn with(replies: impl IntoIterator<Item = Reply>) -> (MockServer, Home) {
    let server = MockServer::start(replies);
    let home = Home::with_model(&server);
    (server, home)
}

/// A prompt whose progress is told.
fn begin_with_progress(agent: &mut Agent, prompt: &str) -> u64 {
    let params = json!({"name": "prompt", "arguments": {"prompt": prompt}, "_meta": {"progressToken": "t"}});
    agent.ask("tools/call", params)
}

/// The process that a command has written to a file, once it is there.
fn process_of(agent: &mut Agent, home: &Home, file: &str) -> i32 {
    let deadline = std::time::Instant::now() + DEADLINE;
    while std::time::Instant::now() < deadline {
        let written = std::fs::read_to_string(home.project().join(file)).unwrap_or_default();
        if let Ok(id) = written.trim().parse() {
            return id;
        }
        // Its answer takes a moment, so that this is no busy loop.
        agent.call("ping", json!({}));
    }
    panic!("the command has not begun");
}

#[test]
fn an_answer_comes_with_its_session_which_goes_on() {
    let (server, home) = with([
        Reply::stream(sse::text("One ") + &sse::text("two.") + &sse::end("stop", (100, 0, 5))),
        Reply::stream(sse::answer("Three.")),
    ]);
    let mut agent = Agent::ready(&home, &[], &json!({}));
    let result = agent.call("tools/call", json!({"name": "prompt", "arguments": {"prompt": "Count."}}));
    assert_eq!(result["content"][0]["text"], "One two.");
    let data = &result["structuredContent"];
    let session = data["sessionId"].as_str().unwrap();
    assert!(result["content"][1]["text"].as_str().unwrap().contains(session), "{result}");
    assert_eq!((&data["answer"], &data["stopReason"]), (&json!("One two."), &json!("stop")));
    assert_eq!(
        (&data["turns"], &data["toolCalls"], &data["model"]),
        (&json!(1), &json!(0), &json!("fake/fake"))
    );
    assert_eq!((&data["usage"]["input"], &data["usage"]["output"]), (&json!(100), &json!(5)));
    let next = agent.tool("prompt", &json!({"prompt": "Go on.", "sessionId": session}));
    assert_eq!((&next["answer"], &next["sessionId"]), (&json!("Three."), &json!(session)));
    // What was spent before is not counted again.
    assert_eq!(next["usage"]["total"], 12);
    let messages = server.requests()[1].messages().to_vec();
    let said: Vec<&str> = messages.iter().filter_map(|message| message["content"].as_str()).collect();
    assert_eq!(said[said.len() - 3..], ["Count.", "One two.", "Go on."]);
    assert!(agent.progress().is_empty());
}

/// A command of an extension is work that ends with it, and with the run that it begins.
#[test]
fn a_command_of_an_extension_is_a_prompt() {
    let (_server, home) = with([Reply::stream(sse::answer("Gone on."))]);
    extension(&home, "test", &says_to_the_session("go", "Go on."));
    let mut agent = Agent::ready(&home, &[], &json!({}));
    assert_eq!(agent.tool("prompt", &json!({"prompt": "/go"}))["answer"], "Gone on.");
    let nothing = agent.call("tools/call", json!({"name": "prompt", "arguments": {"prompt": "/nothing"}}));
    assert_eq!(nothing["structuredContent"]["turns"], 0, "{nothing}");
}

/// The session is that of a file: another process goes on in it, without being told its folder.
#[test]
fn a_session_of_another_process_goes_on() {
    let (server, home) = with([
        Reply::stream(sse::answer("One.")),
        Reply::stream(sse::answer("Two.")),
        Reply::stream(sse::answer("Three.")),
    ]);
    let elsewhere = home.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let mut agent = Agent::ready(&home, &[], &json!({}));
    let begun = agent.tool("prompt", &json!({"prompt": "a", "cwd": elsewhere, "name": "Counting"}));
    drop(agent);
    let mut agent = Agent::ready(&home, &[], &json!({}));
    let session = &begun["sessionId"];
    assert_eq!(agent.tool("prompt", &json!({"prompt": "b", "sessionId": session}))["answer"], "Two.");
    let list = agent.tool("list_sessions", &json!({"cwd": elsewhere}));
    assert_eq!(list["sessions"][0]["sessionId"], *session);
    assert_eq!(list["sessions"][0]["name"], "Counting");
    // Its folder can be said, and no other one.
    let other = json!({"prompt": "c", "sessionId": session, "cwd": home.project()});
    let text = agent.failure("prompt", &other);
    assert!(text.contains(&elsewhere.display().to_string()), "{text}");
    assert_eq!(
        agent.tool("prompt", &json!({"prompt": "c", "sessionId": session, "cwd": elsewhere}))["answer"],
        "Three."
    );
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn progress_is_told_where_it_is_asked_for() {
    let (_server, home) = with([bash("echo hi"), Reply::stream(sse::answer("Done."))]);
    let mut agent = Agent::ready(&home, &[], &json!({}));
    let id = begin_with_progress(&mut agent, "Say hi.");
    let data = agent.reply(id)["result"]["structuredContent"].clone();
    assert_eq!((&data["turns"], &data["toolCalls"]), (&json!(2), &json!(1)));
    let told = agent.progress();
    assert!(told.iter().any(|progress| progress["message"] == "bash: echo hi"), "{told:?}");
    let numbers: Vec<u64> = told.iter().map(|progress| progress["progress"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|one, two| one < two), "{numbers:?}");
    assert!(told.iter().all(|progress| progress["progressToken"] == "t"));
}

#[test]
fn prompts_of_different_sessions_run_side_by_side() {
    let gate = Gate::new();
    let server = MockServer::answering({
        let gate = gate.clone();
        move |request| match request.messages().last().unwrap()["content"].as_str() {
            Some("first") => Reply::stream(sse::text("First")).gate(&gate).then(sse::end("stop", (1, 0, 1))),
            _ => Reply::stream(sse::answer("Second")),
        }
    });
    let home = Home::with_model(&server);
    let mut agent = Agent::ready(&home, &[], &json!({}));
    let first = agent.begin("prompt", &json!({"prompt": "first"}));
    gate.wait_until_reached();
    // The second one is done while the first one waits.
    assert_eq!(agent.tool("prompt", &json!({"prompt": "second"}))["answer"], "Second");
    gate.open();
    assert_eq!(agent.reply(first)["result"]["structuredContent"]["answer"], "First");
}

#[test]
fn a_session_at_work_takes_words_and_no_second_prompt() {
    let (server, home) = with([
        Reply::stream(sse::answer("Ready.")),
        bash("until [ -e go ]; do sleep 0.05; done"),
        Reply::stream(sse::answer("Heard.")),
    ]);
    let mut agent = Agent::ready(&home, &[], &json!({}));
    let session = agent.tool("prompt", &json!({"prompt": "a"}))["sessionId"].clone();
    let arguments = json!({"prompt": "Wait.", "sessionId": session});
    let id = agent
        .ask("tools/call", json!({"name": "prompt", "arguments": arguments, "_meta": {"progressToken": 1}}));
    agent.until("the command", |message| message["method"] == "notifications/progress");
    let text = agent.failure("prompt", &json!({"prompt": "b", "sessionId": session}));
    assert!(text.contains("works on a prompt") && text.contains("`steer`"), "{text}");
    let told = agent.tool("steer", &json!({"sessionId": session, "message": "Be quick."}));
    assert_eq!(told["queued"], true);
    // What it does can be read meanwhile.
    let page = agent.tool("read_session", &json!({"sessionId": session, "last": 1}));
    assert_eq!(page["messages"][0]["toolCalls"][0]["tool"], "bash");
    std::fs::write(home.project().join("go"), "").unwrap();
    assert_eq!(agent.reply(id)["result"]["structuredContent"]["answer"], "Heard.");
    let last = server.requests()[2].messages().last().unwrap()["content"].clone();
    assert_eq!(last, "Be quick.");
    // It does not work any more.
    let text = agent.failure("steer", &json!({"sessionId": session, "message": "Late."}));
    assert!(text.contains("does not work on anything"), "{text}");
}

#[test]
fn cancelling_kills_the_command_is_not_answered_and_the_session_goes_on() {
    let (_server, home) = with([
        Reply::stream(sse::answer("Ready.")),
        bash("echo $$ > pid; exec sleep 1000"),
        Reply::stream(sse::answer("Again.")),
    ]);
    let mut agent = Agent::ready(&home, &[], &json!({}));
    let session = agent.tool("prompt", &json!({"prompt": "a"}))["sessionId"].clone();
    let id = agent.begin("prompt", &json!({"prompt": "Sleep.", "sessionId": session}));
    let sleeping = processes::watch(&[process_of(&mut agent, &home, "pid")]);
    agent.cancel(id);
    agent.cancel(id);
    sleeping.assert_gone_within(DEADLINE);
    // While it ends, another prompt may come too early: that is said, and nothing else is wrong with it.
    let answered = loop {
        let given = json!({"prompt": "Go on.", "sessionId": session});
        let result = agent.call("tools/call", json!({"name": "prompt", "arguments": given}));
        if result["isError"] != true {
            break result;
        }
        assert!(result["content"][0]["text"].as_str().unwrap().contains("works on a prompt"), "{result}");
    };
    assert_eq!(answered["structuredContent"]["answer"], "Again.");
    agent.cancel(id);
    assert_eq!(agent.call("ping", json!({})), json!({}));
    assert!(agent.seen.iter().all(|message| message["id"] != id), "a cancelled request has no answer");
}

#[test]
fn an_abort_ends_the_prompt_with_what_there_is() {
    let (server, home) =
        with([Reply::stream(sse::answer("Ready.")), Reply::stream(sse::text("I begin")).hang()]);
    let mut agent = Agent::ready(&home, &[], &json!({}));
    let session = agent.tool("prompt", &json!({"prompt": "a"}))["sessionId"].clone();
    let id = agent.begin("prompt", &json!({"prompt": "Long work.", "sessionId": session}));
    let _ = server.wait_for_requests(2);
    assert_eq!(agent.tool("list_sessions", &json!({}))["sessions"][0]["isWorking"], true);
    let receipt = agent.begin("abort", &json!({"sessionId": session}));
    let (first, second) = (agent.next().unwrap(), agent.next().unwrap());
    let of = |id: u64| [&first, &second].into_iter().find(|message| message["id"] == id).cloned().unwrap();
    let stopped = of(receipt)["result"]["structuredContent"].clone();
    assert_eq!(stopped["ended"][0]["kind"], "turn");
    let result = of(id)["result"].clone();
    assert_eq!(
        (&result["isError"], &result["structuredContent"]["stopReason"]),
        (&json!(true), &json!("aborted"))
    );
    assert_eq!(result["structuredContent"]["sessionId"], session);
}

#[test]
fn failures_are_told_with_the_session_which_goes_on() {
    let (_server, home) = with([
        Reply::status(400, "application/json", r#"{"error":{"message":"no such thing"}}"#),
        Reply::stream(sse::answer("Fine.")),
        Reply::stream(sse::text("Cut") + &sse::end("length", (1, 0, 1))),
    ]);
    let mut agent = Agent::ready(&home, &[], &json!({}));
    let result = agent.call("tools/call", json!({"name": "prompt", "arguments": {"prompt": "a"}}));
    assert_eq!(result["isError"], true);
    assert!(result["content"][0]["text"].as_str().unwrap().contains("no such thing"), "{result}");
    let data = &result["structuredContent"];
    assert_eq!((&data["stopReason"], &data["code"]), (&json!("error"), &json!("model_failed")));
    let session = data["sessionId"].clone();
    assert_eq!(agent.tool("prompt", &json!({"prompt": "b", "sessionId": session}))["answer"], "Fine.");
    let cut = agent.tool("prompt", &json!({"prompt": "c", "sessionId": session}));
    assert_eq!((&cut["answer"], &cut["stopReason"]), (&json!("Cut"), &json!("length")));
}

#[test]
fn a_budget_of_the_caller_ends_the_work() {
    let (server, home) = with([bash("true"), Reply::stream(sse::answer("Never."))]);
    let mut agent = Agent::ready(&home, &[], &json!({}));
    let given = json!({"prompt": "a", "budget": {"turns": 1}});
    let result = agent.call("tools/call", json!({"name": "prompt", "arguments": given}));
    assert_eq!(result["structuredContent"]["code"], "limit_reached", "{result}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn the_end_of_the_input_ends_what_runs_and_nothing_is_left() {
    let (_server, home) = with([bash("echo $$ > pid; trap '' TERM; sleep 1000")]);
    let mut agent = Agent::ready(&home, &[], &json!({}));
    let id = agent.begin("prompt", &json!({"prompt": "Sleep."}));
    let sleeping = processes::watch(&[process_of(&mut agent, &home, "pid")]);
    let (rest, took, status) = agent.close();
    assert!(took.as_millis() < 2000 && status.success(), "{took:?} {status}");
    let reply = rest.iter().find(|message| message["id"] == id).cloned();
    let stopped = reply.map(|reply| reply["result"]["structuredContent"]["stopReason"].clone());
    assert_eq!(stopped, Some(json!("aborted")));
    sleeping.assert_gone_within(Duration::from_secs(5));
}

#[test]
fn flags_of_the_command_line_count_for_every_session() {
    let home = Home::new();
    let mut agent = Agent::ready(&home, &["--demo", "--no-session"], &json!({}));
    let data = agent.tool("prompt", &json!({"prompt": "What is here?"}));
    assert_eq!(data["model"], "demo/demo");
    assert_eq!(home.session_files(), Vec::<std::path::PathBuf>::new());
    // A session in memory goes on as long as this process does.
    let session: &Value = &data["sessionId"];
    assert_eq!(
        agent.tool("prompt", &json!({"prompt": "And now?", "sessionId": session}))["sessionId"],
        *session
    );
}
