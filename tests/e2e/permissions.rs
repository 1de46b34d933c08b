//! Permissions on the real programs: verdicts before calls, questions to those who can answer, decisions on record.

use std::fs;

use agentd_e2e::{Home, MockServer, Reply, Service, SocketClient, ctl, sse};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    asking::{answer, asked, calling, calls, decisions, home, open, result_of, stored},
    support::assert_says,
};

#[test]
fn a_rule_refuses_without_a_terminal_and_nothing_runs() {
    let server = calling("touch made; rm -rf src");
    let home = home(
        &server,
        &json!({ "rules": [{ "tool": "bash", "command": "rm *", "action": "deny", "reason": "use git rm" }] }),
    );
    let ran = ctl::run(&home, &["prompt", "--model", "fake/fake", "Clean up."]);
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert_says(
        &ran.stderr,
        &["Permission denied (bash: rule 1 of the setting permissions.rules refuses it: use git rm)"],
    );
    assert!(!home.project().join("made").exists(), "no part of the command ran");
    let told = server.requests()[1].body.to_string();
    assert!(
        told.contains("Permission denied: rule 1 of the setting permissions.rules refuses it: use git rm."),
        "{told}"
    );
    let found = decisions(&home);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (&found[0]["by"], &found[0]["decision"], &found[0]["toolCallId"]),
        (&json!("policy"), &json!("denied"), &json!("call_1"))
    );
    assert_eq!(found[0]["rule"]["command"], "rm *");
}

#[test]
fn nobody_who_could_answer_is_the_default_at_once() {
    for (on_timeout, code, made) in [("deny", 6, false), ("allow", 0, true)] {
        let server = calling("touch made");
        let home =
            home(&server, &json!({ "preset": "ask", "askTimeoutMs": 600_000, "onTimeout": on_timeout }));
        let ran = ctl::run(&home, &["prompt", "--model", "fake/fake", "--json", "Make it."]);
        assert_eq!(ran.code, code, "{}", ran.stderr);
        assert_eq!(home.project().join("made").exists(), made);
        let events: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let decision = events.iter().find(|event| event["type"] == "permission_decision").unwrap();
        assert_eq!((&decision["by"], &decision["toolCallId"]), (&json!("nobody"), &json!("call_1")));
        assert_eq!(decisions(&home)[0]["by"], "nobody");
    }
}

#[test]
fn agentd_p_ends_with_the_same_code() {
    let server = calling("touch made");
    let home = home(&server, &json!({}));
    let ran = ctl::agentd(&home, &["-p", "--model", "fake/fake", "--permissions", "read-only", "Make it."])
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(6));
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "Done.\n");
    assert_says(
        &String::from_utf8_lossy(&ran.stderr),
        &["Permission denied (bash: the preset read-only refuses running touch)"],
    );
    assert!(!home.project().join("made").exists());
}

#[test]
fn one_client_answers_and_the_other_is_told() {
    let server = calling("touch made");
    let home = home(&server, &json!({ "preset": "workspace" }));
    let service = Service::start(&home, &[]);
    let (mut first, mut second) = (asked(&service, "first"), asked(&service, "second"));
    let id = open(&mut first, &home, &[]);
    second.done(json!({"type": "attach_session", "sessionId": id}));
    first.send(&json!({"type": "prompt", "sessionId": id, "message": "Make it."}));
    let question = first.event("extension_ui_request");
    assert_says(
        question["title"].as_str().unwrap(),
        &["Allow this?", "$ touch made", "the preset workspace asks about running touch"],
    );
    assert_eq!(second.event("extension_ui_request")["id"], question["id"]);
    assert!(!home.project().join("made").exists(), "nothing runs while it is asked");
    // One who comes now finds the question, too.
    let mut third = asked(&service, "third");
    let attached = third.done(json!({"type": "attach_session", "sessionId": id}));
    assert_eq!(attached["pendingUi"][0]["id"], question["id"]);
    answer(&mut second, &question, "Yes, this once");
    let resolved = first.event("ui_request_resolved");
    assert_eq!((&resolved["id"], &resolved["by"]), (&question["id"], &json!("second")));
    first.event("agent_settled");
    assert!(home.project().join("made").exists());
    let found = decisions(&home);
    assert_eq!(
        (&found[0]["by"], &found[0]["client"], &found[0]["decision"]),
        (&json!("user"), &json!("second"), &json!("allowed"))
    );
}

#[test]
fn words_reach_the_model_and_a_no_is_no_failure() {
    let server = calling("touch made");
    let home = home(&server, &json!({ "preset": "workspace" }));
    let service = Service::start(&home, &[]);
    let mut client = asked(&service, "one");
    let id = open(&mut client, &home, &[]);
    client.send(&json!({"type": "prompt", "sessionId": id, "message": "Make it."}));
    let question = client.event("extension_ui_request");
    answer(&mut client, &question, "No, and tell the model why");
    let words = client.until("the second question", |line| line["method"] == "input");
    client.send(&json!({"type": "extension_ui_response", "id": words["id"], "value": "Use a test."}));
    assert_eq!(result_of(&mut client), "Permission denied: the user said no. The user says: Use a test.");
    client.event("agent_settled");
    assert!(!home.project().join("made").exists());
}

#[test]
fn an_answer_for_the_session_holds_and_outlasts_the_daemon() {
    let server = MockServer::always(calls(&["touch made"]));
    let home = home(&server, &json!({ "preset": "workspace" }));
    let id = {
        let service = Service::start(&home, &[]);
        let mut client = asked(&service, "one");
        let id = open(&mut client, &home, &["--max-turns", "2"]);
        client.send(&json!({"type": "prompt", "sessionId": id, "message": "Make it."}));
        let question = client.event("extension_ui_request");
        answer(&mut client, &question, "Yes, and for this session: touch *");
        // The second turn calls it again, and nobody is asked.
        client.event("agent_settled");
        let state = client.done(json!({"type": "get_state", "sessionId": id}));
        assert_eq!(state["permissions"]["preset"], "workspace");
        assert_eq!(
            state["permissions"]["sessionRules"],
            json!([{ "tool": "bash", "command": "touch *", "action": "allow" }])
        );
        id
    };
    assert_eq!(decisions(&home).len(), 1);
    fs::remove_file(home.project().join("made")).unwrap();
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    client.done(
        json!({"type": "open_session", "cwd": home.project(), "sessionId": id, "args": ["--max-turns", "1"]}),
    );
    let state = client.done(json!({"type": "get_state", "sessionId": id}));
    assert_eq!(state["permissions"]["sessionRules"][0]["command"], "touch *");
    client.send(&json!({"type": "prompt", "sessionId": id, "message": "Make it again."}));
    client.event("agent_settled");
    assert!(home.project().join("made").exists(), "the rule is that of the session");
}

#[test]
fn always_is_saved_in_the_users_settings() {
    let server = calling("touch made");
    let home = home(&server, &json!({ "preset": "workspace" }));
    let service = Service::start(&home, &[]);
    let mut client = asked(&service, "one");
    let id = open(&mut client, &home, &[]);
    client.send(&json!({"type": "prompt", "sessionId": id, "message": "Make it."}));
    let question = client.event("extension_ui_request");
    answer(&mut client, &question, "Yes, and always: touch *");
    client.event("agent_settled");
    let settings: Value =
        serde_json::from_str(&fs::read_to_string(home.agent_dir().join("settings.json")).unwrap()).unwrap();
    assert_eq!(settings["permissions"]["preset"], "workspace");
    assert_eq!(
        settings["permissions"]["rules"],
        json!([{ "tool": "bash", "command": "touch *", "action": "allow" }])
    );
}

#[test]
fn a_question_has_a_deadline_and_a_late_answer_changes_nothing() {
    let server = calling("touch made");
    let home = home(&server, &json!({ "preset": "ask", "askTimeoutMs": 50 }));
    let service = Service::start(&home, &[]);
    let mut client = asked(&service, "one");
    let id = open(&mut client, &home, &[]);
    client.send(&json!({"type": "prompt", "sessionId": id, "message": "Make it."}));
    let question = client.event("extension_ui_request");
    assert_eq!(question["timeout"], 50);
    assert_says(
        &result_of(&mut client),
        &["Permission denied: it needs the user's permission, and nobody answered in time"],
    );
    answer(&mut client, &question, "Yes, this once");
    client.event("agent_settled");
    assert!(!home.project().join("made").exists());
    assert_eq!(decisions(&home)[0]["by"], "timeout");
}

#[test]
fn abort_ends_a_question() {
    let server = calling("touch made");
    let home = home(&server, &json!({ "preset": "ask" }));
    let service = Service::start(&home, &[]);
    let mut client = asked(&service, "one");
    let id = open(&mut client, &home, &[]);
    client.send(&json!({"type": "prompt", "sessionId": id, "message": "Make it."}));
    let question = client.event("extension_ui_request");
    client.send(&json!({"type": "abort", "sessionId": id}));
    assert_eq!(client.event("ui_request_resolved")["id"], question["id"]);
    client.event("agent_settled");
    assert!(!home.project().join("made").exists());
    let results = stored(&home).iter().filter(|entry| entry["message"]["role"] == "toolResult").count();
    assert_eq!(results, 1, "every call gets a result");
    assert!(decisions(&home).is_empty(), "nobody decided anything");
}

#[test]
fn a_daemon_killed_while_it_asks_has_run_nothing() {
    let server = calling("touch made");
    let home = home(&server, &json!({ "preset": "ask" }));
    let id = {
        let service = Service::start(&home, &[]);
        let mut client = asked(&service, "one");
        let id = open(&mut client, &home, &[]);
        client.send(&json!({"type": "prompt", "sessionId": id, "message": "Make it."}));
        client.event("extension_ui_request");
        service.signal(Signal::KILL);
        let _ = service.wait();
        id
    };
    let service = Service::start(&home, &[]);
    let mut client = asked(&service, "two");
    client.done(json!({"type": "open_session", "cwd": home.project(), "sessionId": id}));
    let messages = client.done(json!({"type": "get_messages", "sessionId": id}));
    let mut results = messages["messages"].as_array().unwrap().iter().filter(|it| it["role"] == "toolResult");
    let result = results.next().expect("the call has a result");
    assert_eq!(result["content"][0]["text"], "interrupted by a crash; it did not run");
    assert!(!home.project().join("made").exists());
}

#[test]
fn commands_of_the_user_are_judged_too() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home =
        home(&server, &json!({ "rules": [{ "tool": "bash", "command": "git push *", "action": "deny" }] }));
    let service = Service::start(&home, &[]);
    let mut client = asked(&service, "one");
    let id = open(&mut client, &home, &[]);
    let refused = client.refused(json!({"type": "bash", "sessionId": id, "command": "cd . && git push"}));
    assert_eq!(refused["code"], "forbidden");
    assert_says(
        refused["error"].as_str().unwrap(),
        &["Permission denied: rule 1 of the setting permissions.rules refuses it."],
    );
    let ran = client.done(json!({"type": "bash", "sessionId": id, "command": "echo fine"}));
    assert_eq!(ran["output"], "fine\n");
}

#[test]
fn permissions_that_cannot_be_read_open_no_session() {
    let server = calling("touch made");
    for (settings, says) in [
        (r#"{"permissions": {"preset": "strict"}}"#, "\"permissions.preset\""),
        (r#"{"permissions": {"prest": "ask"}}"#, "prest"),
        (r#"{"budgets": {"run": {"cost": 1}}}"#, "cost"),
        (r#"{"permissions": {"preset": "ask"}"#, "settings.json"),
        (r#"{"permissions": ["read-only"]}"#, "expected an object, not a list"),
        (r#"[{"permissions": {"preset": "ask"}}]"#, "expected an object"),
        (
            r#"{"permissions": {"rules": [{"tool": "ls", "action": "deny"}, {"tool": "ls", "acton": "deny"}]}}"#,
            "\"permissions.rules[1]\": unknown field `acton`",
        ),
        (
            r#"{"permissions": {"rules": [{"tool": "bash", "command": "a; b", "action": "deny"}]}}"#,
            "rule 1: command",
        ),
    ] {
        let home = Home::with_model(&server);
        fs::write(home.agent_dir().join("settings.json"), settings).unwrap();
        let ran = ctl::run(&home, &["prompt", "--model", "fake/fake", "Make it."]);
        assert_eq!(ran.code, 1, "{settings}: {}", ran.stderr);
        assert_says(&ran.stderr, &["ermissions", says]);
        assert!(!home.project().join("made").exists());
    }
}

#[test]
fn a_projects_policy_counts_with_its_trust_and_only_makes_stricter() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home =
        home(&server, &json!({ "rules": [{ "tool": "bash", "command": "curl *", "action": "deny" }] }));
    home.write(
        ".agentd/policy.json",
        &json!({ "rules": [
            { "tool": "bash", "command": "npm publish *", "action": "deny" },
            { "tool": "bash", "command": "curl *", "action": "allow" },
        ] })
        .to_string(),
    );
    let service = Service::start(&home, &[]);
    let refusal = |client: &mut SocketClient, id: &str, command: &str| {
        client.refused(json!({"type": "bash", "sessionId": id, "command": command}))["error"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    let id = open(&mut client, &home, &["--no-approve"]);
    let ran = client.done(json!({"type": "bash", "sessionId": id, "command": "npm publish --help || true"}));
    assert_eq!(ran["exitCode"], 0, "without trust it does not count");
    client.done(json!({"type": "close_session", "sessionId": id}));
    let id = open(&mut client, &home, &["--approve"]);
    assert_says(&refusal(&mut client, &id, "npm publish"), &["rule 1 of .agentd/policy.json refuses it"]);
    assert_says(
        &refusal(&mut client, &id, "curl x"),
        &["rule 1 of the setting permissions.rules refuses it"],
    );
}

#[test]
fn without_permissions_nothing_is_told() {
    let server = calling("touch made");
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = asked(&service, "one");
    let id = open(&mut client, &home, &[]);
    client.send(&json!({"type": "prompt", "sessionId": id, "message": "Make it."}));
    client.event("agent_settled");
    let state = client.done(json!({"type": "get_state", "sessionId": id}));
    assert!(state.get("permissions").is_none());
    assert!(home.project().join("made").exists() && decisions(&home).is_empty());
}
