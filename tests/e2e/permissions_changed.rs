//! Permissions that a client changes while the session is open.

use agentd_e2e::{Home, MockServer, Reply, Service, binaries, ctl, sse};
use serde_json::json;

use crate::{
    asking::{answer, asked, calls, decisions, home, open, result_of, stored},
    support::assert_says,
};

#[test]
fn a_session_without_permissions_gets_some_in_the_middle_of_a_run() {
    let server = MockServer::start([
        calls(&["touch one && sleep 1000"]),
        Reply::stream(sse::calls(&[("call_2", "bash", json!({ "command": "touch two" }))])),
        Reply::stream(sse::answer("Done.")),
    ]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let (mut client, mut other) = (asked(&service, "editor"), asked(&service, "watcher"));
    let id = open(&mut client, &home, &[]);
    let attached = other.done(json!({"type": "attach_session", "sessionId": id}));
    assert!(attached["state"].get("permissions").is_none(), "{attached}");
    client.send(&json!({"type": "prompt", "sessionId": id, "message": "Make it."}));
    client.event("tool_execution_start");
    let set = client.done(json!({"type": "set_permissions", "sessionId": id, "preset": "read-only"}));
    assert_eq!(
        (&set["preset"], &set["onTimeout"], &set["rules"]),
        (&json!("read-only"), &json!("deny"), &json!(0))
    );
    let told = other.event("permissions_changed");
    assert_eq!((&told["permissions"], &told["by"]), (&set, &json!("editor")));
    let state = client.done(json!({"type": "get_state", "sessionId": id}));
    assert_eq!(state["permissions"], set);
    // The next call of the same run.
    client.done(json!({"type": "abort", "sessionId": id, "scope": "tools"}));
    client.event("tool_execution_end");
    assert_says(&result_of(&mut client), &["Permission denied: the preset read-only refuses running touch"]);
    client.event("agent_settled");
    assert!(!home.project().join("two").exists());
    let set = stored(&home).into_iter().find(|entry| entry["data"].get("set").is_some()).unwrap();
    assert_eq!(set["data"], json!({ "set": { "preset": "read-only" }, "client": "editor" }));
    // Who joins now knows from the first moment.
    let opened =
        asked(&service, "late").done(json!({"type": "open_session", "cwd": home.project(), "sessionId": id}));
    assert_eq!(opened["permissions"]["preset"], "read-only");
}

#[test]
fn rules_replace_those_of_answers_and_what_cannot_be_used_changes_nothing() {
    let server = MockServer::start([
        calls(&["touch made"]),
        Reply::stream(sse::answer("Done.")),
        calls(&["touch again"]),
        Reply::stream(sse::answer("Done.")),
    ]);
    let home = home(&server, &json!({ "preset": "workspace", "askTimeoutMs": 600_000 }));
    let service = Service::start(&home, &[]);
    let mut client = asked(&service, "one");
    let id = open(&mut client, &home, &[]);
    client.send(&json!({"type": "prompt", "sessionId": id, "message": "Make it."}));
    let question = client.event("extension_ui_request");
    answer(&mut client, &question, "Yes, and for this session");
    client.event("agent_settled");
    let rule = json!({ "tool": "bash", "command": "a; b", "action": "deny" });
    let refused = client.refused(json!({
        "type": "set_permissions", "sessionId": id, "preset": "full",
        "rules": [{ "tool": "read", "action": "allow" }, rule],
    }));
    assert_eq!(refused["code"], "invalid_field");
    assert_says(refused["error"].as_str().unwrap(), &["Invalid field \"rules\": rule 2: command"]);
    let refused = client.refused(json!({"type": "set_permissions", "sessionId": id, "preset": "strict"}));
    assert_says(refused["error"].as_str().unwrap(), &["preset"]);
    let same = client.done(json!({"type": "set_permissions", "sessionId": id}));
    assert_eq!((&same["preset"], same["sessionRules"].as_array().unwrap().len()), (&json!("workspace"), 1));
    let set = client.done(json!({
        "type": "set_permissions", "sessionId": id, "rules": [], "askTimeoutMs": 50, "onTimeout": "allow",
    }));
    assert_eq!(
        set,
        json!({ "preset": "workspace", "askTimeoutMs": 50, "onTimeout": "allow", "rules": 0, "sessionRules": [] })
    );
    // The answer does not count any more: it is asked again, and the new default is taken.
    client.send(&json!({"type": "prompt", "sessionId": id, "message": "Make it."}));
    assert_eq!(client.event("extension_ui_request")["timeout"], 50);
    client.event("agent_settled");
    assert!(home.project().join("again").exists());
    assert_eq!(decisions(&home).last().unwrap()["by"], "timeout");
}

#[test]
fn a_session_that_was_loosened_is_not_opened_as_a_strict_one() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = asked(&service, "one");
    let id = open(&mut client, &home, &["--permissions", "read-only"]);
    client.done(json!({"type": "set_permissions", "sessionId": id, "preset": "full"}));
    let state = client.done(json!({"type": "get_state", "sessionId": id}));
    assert!(state.get("permissions").is_none(), "{state}");
    let refused = client.refused(json!({
        "type": "open_session", "cwd": home.project(), "sessionId": id, "args": ["--permissions", "read-only"],
    }));
    assert_eq!(refused["code"], "invalid_field");
    assert_says(refused["error"].as_str().unwrap(), &["--permissions"]);
}

#[test]
fn neither_observers_nor_commands_of_a_session_change_them() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = home(&server, &json!({ "rules": [{ "tool": "bash", "command": "rm *", "action": "deny" }] }));
    let service = Service::start(&home, &[]);
    let mut client = asked(&service, "one");
    let id = open(&mut client, &home, &[]);
    let mut observer = service.client();
    observer.done(json!({
        "type": "hello", "protocol": 1, "capabilities": {"sessions": true}, "role": "observe",
    }));
    observer.done(json!({"type": "attach_session", "sessionId": id}));
    let line = json!({"type": "set_permissions", "sessionId": id, "preset": "full", "rules": []});
    assert_eq!(observer.refused(line.clone())["code"], "forbidden");
    let command = format!("printf '%s\\n' '{line}' | {} rpc --daemon", binaries::agentctl().display());
    let ran = client.done(json!({"type": "bash", "sessionId": id, "command": command}));
    let output = ran["output"].as_str().unwrap();
    assert_says(output, &["forbidden", "may not send set_permissions: that is the user's."]);
    let state = client.done(json!({"type": "get_state", "sessionId": id}));
    assert_eq!(state["permissions"]["rules"], 1);
}

#[test]
fn config_explain_says_where_permissions_come_from() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = home(&server, &json!({ "preset": "workspace" }));
    let ran = ctl::run(&home, &["config", "explain", "permissions.preset"]);
    assert_says(&ran.stdout, &["permissions.preset: \"workspace\"", "* user", "settings.json"]);
    home.write(".agentd/policy.json", r#"{"preset": "read-only"}"#);
    let ran = ctl::run(&home, &["config", "explain", "--approve", "permissions.preset"]);
    assert_says(&ran.stdout, &["permissions.preset: \"read-only\"", "* project", ".agentd/policy.json"]);
    let ran = ctl::run(&home, &["config", "explain", "permissions.rules"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn rules_by_answers_are_those_of_the_users_own_session_alone() {
    let server = MockServer::start([calls(&["touch made"]), Reply::stream(sse::answer("Done."))]);
    let home = home(&server, &json!({ "preset": "workspace", "askTimeoutMs": 600_000 }));
    {
        let service = Service::start(&home, &[]);
        let mut client = asked(&service, "one");
        let id = open(&mut client, &home, &[]);
        client.send(&json!({"type": "prompt", "sessionId": id, "message": "Make it."}));
        let question = client.event("extension_ui_request");
        answer(&mut client, &question, "Yes, and for this session");
        client.event("agent_settled");
        // A copy is another session.
        client.done(json!({"type": "clone", "sessionId": id}));
        let rules = |client: &mut agentd_e2e::SocketClient, id: &str| {
            client.done(json!({"type": "get_state", "sessionId": id}))["permissions"]["sessionRules"].clone()
        };
        let sessions = client.done(json!({"type": "list_sessions"}));
        let ids = sessions["sessions"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap());
        let found: Vec<usize> = ids.map(|id| rules(&mut client, id).as_array().map_or(0, Vec::len)).collect();
        assert_eq!((found.len(), found.iter().sum::<usize>()), (2, 1), "{found:?}");
    }
    // A file that came with a project says what its author likes.
    let own = home
        .session_files()
        .into_iter()
        .find(|file| std::fs::read_to_string(file).unwrap().contains("sessionRule"));
    let shipped = home.project().join("shipped.jsonl");
    std::fs::copy(own.unwrap(), &shipped).unwrap();
    let service = Service::start(&home, &[]);
    let mut client = asked(&service, "two");
    let args = ["--session", shipped.to_str().unwrap()];
    let id = open(&mut client, &home, &args);
    let state = client.done(json!({"type": "get_state", "sessionId": id}));
    assert_eq!(state["permissions"]["sessionRules"], json!([]));
}
