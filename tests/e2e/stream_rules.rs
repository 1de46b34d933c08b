//! Rules on the stream on the real binaries: what interrupts the model, what it is told, and when again.

use agentd_e2e::{Conversation, Daemon, Home, MockServer, Reply, conversation::LineTransport, ctl, sse};
use serde_json::{Value, json};

use crate::{
    client_tools::hello,
    support::{assert_says, ended, kinds, records, text},
};

/// A home with a rule of the project, and these settings of `ttsr`.
fn with_rule(front_matter: &str, settings: &Value) -> (MockServer, Home) {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    home.settings(&json!({ "ttsr": settings }));
    home.write(".agentd/rules/no-unwrap.md", &format!("---\n{front_matter}\n---\nUse ? instead.\n"));
    (model, home)
}

fn start(home: &Home, args: &[&str]) -> Daemon {
    let mut daemon = Daemon::start(home, args);
    hello(&mut daemon, "test");
    daemon
}

/// An answer that the model is in the middle of: what comes after it is never sent.
fn unfinished(parts: &[&str]) -> Reply {
    Reply::stream(parts.iter().map(|part| sse::text(part)).collect::<String>()).hang()
}

fn prompt<W: LineTransport>(client: &mut Conversation<W>) -> Vec<Value> {
    client.prompt("Go.")
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// The messages of a request, as text.
fn said(model: &MockServer, request: usize) -> String {
    model.requests()[request].messages().iter().map(|message| format!("{message}\n")).collect()
}

fn file(home: &Home) -> Vec<Value> {
    records(home.session_files().last().expect("a session file"))
}

#[test]
fn a_match_interrupts_the_answer_and_the_run_goes_on() {
    let (model, home) = with_rule(r"condition: '\.unwrap\(\)'", &json!({}));
    let mut client = start(&home, &[]);
    model.push(unfinished(&["Call x.unw", "rap() and", " be done."]));
    model.push(Reply::stream(sse::answer("Use x? instead.")));
    let events = prompt(&mut client);
    model.wait_for_disconnects(1);
    let told = of_kind(&events, "ttsr_triggered");
    assert_eq!(told.len(), 1);
    assert_eq!((&told[0]["rules"], &told[0]["interrupted"]), (&json!(["no-unwrap"]), &json!(true)));
    // One run, whose last answer counts; nothing failed.
    let order = kinds(&events);
    assert_eq!(order.iter().filter(|kind| **kind == "agent_start").count(), 1, "{order:?}");
    assert!(!order.contains(&"auto_retry_start"), "{order:?}");
    let answers = ended(&events, "assistant");
    assert_eq!(answers[0]["stopReason"], "aborted");
    assert_says(answers[0]["errorMessage"].as_str().unwrap(), &["Interrupted by a rule: no-unwrap"]);
    assert_eq!((text(answers[1]).as_str(), &answers[1]["stopReason"]), ("Use x? instead.", &json!("stop")));
    let settled = of_kind(&events, "agent_settled");
    assert_eq!(settled[0]["aborted"], false);
    // The model sees the rule and not what it had written.
    let second = said(&model, 1);
    assert_says(&second, &["<system-interrupt reason=", "no-unwrap", "Use ? instead."]);
    assert!(!second.contains("Call x.unw"), "{second}");
    // The file has all of it, in order.
    let kept = file(&home);
    let at = |is: &dyn Fn(&Value) -> bool| kept.iter().position(is).expect("an entry");
    let partial = at(&|entry| entry["message"]["stopReason"] == "aborted");
    let edit = at(&|entry| entry["type"] == "context_edit");
    let entry = at(&|entry| entry["customType"] == "agentd.ttsr-injection");
    let message = at(&|entry| entry["type"] == "custom_message");
    assert!(partial < edit && edit < entry && entry < message, "{kept:#?}");
    assert_eq!(kept[edit]["targetId"], kept[partial]["id"]);
    assert_eq!(kept[entry]["data"], json!({"rules": ["no-unwrap"]}));
    assert_eq!(
        (&kept[message]["customType"], &kept[message]["display"]),
        (&json!("ttsr-injection"), &json!(false))
    );
    // A rule with a condition is no part of the system prompt.
    assert_eq!(said(&model, 0).matches("Use ? instead.").count(), 0);

    // It was told once, also after the session is opened again.
    model.push(Reply::stream(sse::answer("y.unwrap() it is.")));
    assert!(of_kind(&prompt(&mut client), "ttsr_triggered").is_empty());
    client.close();
    let path = home.session_files().pop().expect("a file");
    let mut again = start(&home, &["--session", path.to_str().unwrap()]);
    model.push(Reply::stream(sse::answer("z.unwrap() it is.")));
    assert!(of_kind(&prompt(&mut again), "ttsr_triggered").is_empty());
}

#[test]
fn arguments_are_watched_by_tool_and_file() {
    let (model, home) = with_rule("condition: unwrap\\(\\)\nscope: tool:write(*.rs)", &json!({}));
    let mut client = start(&home, &["--no-session"]);
    let write = |path: &str| json!({"path": path, "content": "fn f() {\n    x.unwrap();\n}\n"});
    // Another file, and a text, are not looked at.
    model.push(Reply::stream(sse::calls(&[("c1", "write", write("a.ts"))])));
    model.push(Reply::stream(sse::answer("x.unwrap()")));
    assert!(of_kind(&prompt(&mut client), "ttsr_triggered").is_empty());
    assert!(home.project().join("a.ts").exists());
    model.push(Reply::stream(sse::calls(&[("c2", "write", write("a.rs"))])));
    model.push(Reply::stream(sse::answer("Ok.")));
    let events = prompt(&mut client);
    assert_eq!(of_kind(&events, "ttsr_triggered").len(), 1);
    assert!(of_kind(&events, "tool_execution_start").is_empty(), "the call was never made");
    assert!(!home.project().join("a.rs").exists());
}

#[test]
fn without_interruption_the_result_of_the_call_says_so() {
    let (model, home) = with_rule("condition: unwrap\\(\\)\ninterruptMode: prose-only", &json!({}));
    let mut client = start(&home, &[]);
    let write = json!({"path": "a.rs", "content": "x.unwrap()"});
    model.push(Reply::stream(sse::calls(&[("c1", "write", write.clone()), ("c2", "write", write)])));
    model.push(Reply::stream(sse::answer("Ok.")));
    let events = prompt(&mut client);
    assert!(home.project().join("a.rs").exists());
    assert_eq!(of_kind(&events, "ttsr_triggered")[0]["interrupted"], false);
    let results = ended(&events, "toolResult");
    assert_says(
        results[0]["content"][0]["text"].as_str().unwrap(),
        &["<system-reminder reason=\"rule_violation\" rule=\"no-unwrap\"", "Use ? instead."],
    );
    assert_says(results[0]["content"][1]["text"].as_str().unwrap(), &["Successfully wrote"]);
    assert_says(results[1]["content"][0]["text"].as_str().unwrap(), &["Successfully wrote"]);
    let kept = file(&home);
    let result = kept.iter().position(|entry| entry["message"]["toolCallId"] == "c1").unwrap();
    let entry = kept.iter().position(|entry| entry["customType"] == "agentd.ttsr-injection").unwrap();
    assert!(result < entry);
}

#[test]
fn without_interruption_a_message_follows_the_answer() {
    let (model, home) =
        with_rule("condition: '(?i)todo'\nscope: text, thinking", &json!({"interruptMode": "never"}));
    let mut client = start(&home, &[]);
    model.push(Reply::stream(sse::answer("A ToDo is left.")));
    model.push(Reply::stream(sse::answer("Done now.")));
    let events = prompt(&mut client);
    assert_eq!(ended(&events, "assistant").len(), 2);
    assert_eq!(of_kind(&events, "ttsr_triggered")[0]["interrupted"], false);
    let second = said(&model, 1);
    assert_says(&second, &["A ToDo is left.", "<system-reminder", "Use ? instead."]);
}

#[test]
fn what_was_written_can_be_kept_and_rules_repeat_after_a_gap() {
    let settings = json!({"contextMode": "keep", "repeatMode": "after-gap", "repeatGap": 2});
    let (model, home) = with_rule("condition: TODO", &settings);
    let mut client = start(&home, &["--no-session"]);
    model.push(unfinished(&["First the parser, TODO", " later"]));
    model.push(Reply::stream(sse::answer("A TODO again.")));
    let events = prompt(&mut client);
    assert_eq!(of_kind(&events, "ttsr_triggered").len(), 1, "not in the answer right after it");
    assert_says(&said(&model, 1), &["You were interrupted after this", "First the parser, TODO"]);
    model.push(unfinished(&["TODO", " later"]));
    model.push(Reply::stream(sse::answer("Ok.")));
    assert_eq!(of_kind(&prompt(&mut client), "ttsr_triggered").len(), 1);
}

#[test]
fn what_cannot_be_watched_is_named_and_can_be_switched_off() {
    let (model, home) = with_rule("condition: '(?=x)y'\ndescription: About y", &json!({}));
    home.write(".agentd/rules/off.md", "---\ncondition: TODO\n---\nNo.\n");
    home.settings(&json!({"ttsr": {"disabledRules": ["off"]}}));
    let mut client = start(&home, &["--no-session"]);
    let problems = client.done(json!({"type": "get_diagnostics"}))["diagnostics"].to_string();
    assert_says(&problems, &["no-unwrap", "look-around", "is not watched"]);
    let checked = ctl::run(&home, &["config", "explain", "--kind", "rules"]);
    assert_says(&checked.stdout, &["no-unwrap"]);
    model.push(Reply::stream(sse::answer("TODO and y.")));
    assert!(of_kind(&prompt(&mut client), "ttsr_triggered").is_empty());
    // A rule that is not watched is one like others.
    assert_says(&said(&model, 0), &["no-unwrap: About y"]);
    // So are all where the feature is off.
    home.settings(&json!({"ttsr": {"enabled": false}}));
    home.write(".agentd/rules/on.md", "---\ncondition: TODO\nalwaysApply: true\n---\nNever leave one.\n");
    let mut client = start(&home, &["--no-session"]);
    model.push(Reply::stream(sse::answer("TODO")));
    assert!(of_kind(&prompt(&mut client), "ttsr_triggered").is_empty());
    assert_says(&said(&model, 1), &["Never leave one."]);
}

#[test]
fn an_abort_by_the_user_is_still_one() {
    let (model, home) = with_rule("condition: TODO", &json!({}));
    let mut client = start(&home, &["--no-session"]);
    model.push(unfinished(&["A long", " answer"]));
    client.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    client.event("message_update");
    client.send(&json!({"id": "a", "type": "abort"}));
    assert_eq!(client.event("agent_settled")["aborted"], true);
}

#[test]
fn agentctl_says_which_rule_it_was() {
    let (model, home) = with_rule("condition: TODO", &json!({}));
    model.push(unfinished(&["A TODO", " later"]));
    model.push(Reply::stream(sse::answer("All is done.")));
    let done = ctl::run(&home, &["prompt", "--private", "--model", "fake/fake", "Go."]);
    assert_eq!((done.code, done.stdout.trim()), (0, "All is done."), "{}", done.stderr);
    assert_says(&done.stderr, &["no-unwrap"]);
}
