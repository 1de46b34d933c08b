//! Extensions that are loaded again while their session is open.

use agentd_e2e::{MockServer, Reply, sse};
use serde_json::{Value, json};

use crate::{
    extensions::{events, failure, started, told},
    mcp::call,
    support::{kinds, text},
};

pub(crate) fn pid(list: &Value) -> i64 {
    list["extensions"][0]["hostPid"].as_i64().unwrap_or_else(|| panic!("no host in {list}"))
}

/// The types of the records that the host got, hooks by their event, from the last record of a type on.
pub(crate) fn order_after(home: &agentd_e2e::Home, first: &str) -> Vec<String> {
    let log = std::fs::read_to_string(home.root().join("host.log")).expect("the log");
    let named = |line: &str| {
        let record: Value = serde_json::from_str(line).expect("a record");
        let event = &record["event"];
        match (event["type"].as_str(), event["reason"].as_str()) {
            (Some(kind), Some(reason)) => format!("{kind}:{reason}"),
            (Some(kind), None) => kind.to_owned(),
            _ => record["type"].as_str().unwrap_or_default().to_owned(),
        }
    };
    let names: Vec<String> = log.lines().map(named).filter(|name| name != "state").collect();
    let at = names.iter().rposition(|name| name == first).expect("the first");
    names[at..].to_vec()
}

#[test]
fn a_command_reloads_the_extensions() {
    let model = MockServer::start([]);
    let script = json!({
        "handlers": {"session_start": {}, "session_shutdown": {}, "resources_discover": {}},
        "commands": {"again": {"calls": [["session.reload", {}]]}},
        "tools": {"echo": {"value": {"content": [{"type": "text", "text": "said"}]}}},
    });
    let (home, mut daemon) = started(&model, &script);
    let before = daemon.done(json!({"type": "list_extensions"}));
    let extension = &before["extensions"][0];
    assert_eq!((&extension["state"], &extension["kind"]), (&json!("running"), &json!("native")));
    assert_eq!((&extension["tools"], &extension["commands"]), (&json!(["echo"]), &json!(["again"])));
    assert_eq!(extension["events"], json!(["session_start", "session_shutdown", "resources_discover"]));
    // What is edited counts after the reload.
    let edited = script.to_string().replace("said", "said otherwise").replace("\"echo\"", "\"echo2\"");
    home.write_agent("extensions/test/script.json", &edited);
    let answer = daemon.done(json!({"type": "prompt", "message": "/again"}));
    assert_eq!(answer, json!({"disposition": "handled"}));
    assert_eq!(
        order_after(&home, "command.run"),
        [
            "command.run",
            "session_shutdown:reload",
            "unload",
            "load",
            "bind",
            "session_start:reload",
            "resources_discover:reload",
            "result"
        ]
    );
    let load = told(&home, "load")[1].clone();
    assert_eq!(
        (&load["epoch"], &load["reason"], &load["clearCache"]),
        (&json!(2), &json!("reload"), &json!(true))
    );
    let after = daemon.done(json!({"type": "list_extensions"}));
    assert_eq!(pid(&after), pid(&before));
    assert_eq!(after["extensions"][0]["tools"], json!(["echo2"]));
    let result = call(&mut daemon, &model, "echo2", json!({}));
    assert_eq!(text(&result), "said otherwise");
}

#[test]
fn extensions_are_restarted_in_new_processes() {
    let model = MockServer::start([]);
    let script = json!({"handlers": {"session_start": {}, "session_shutdown": {}}});
    let (home, mut daemon) = started(&model, &script);
    let before = daemon.done(json!({"type": "list_extensions"}));
    let after = daemon.done(json!({"type": "restart_extensions"}));
    assert_ne!(pid(&after), pid(&before));
    let reasons: Vec<Value> = events(&home).iter().map(|event| event["reason"].clone()).collect();
    assert_eq!(reasons, [json!("startup"), json!("reload"), json!("reload")]);
}

#[test]
fn a_session_may_get_its_first_extensions_and_lose_them() {
    let model = MockServer::start([]);
    let home = agentd_e2e::Home::with_model(&model);
    let mut daemon = agentd_e2e::Daemon::start(&home, &["--stdio"]);
    assert_eq!(daemon.done(json!({"type": "list_extensions"})), json!({"extensions": []}));
    let script = json!({"tools": {"echo": {"value": {"content": [{"type": "text", "text": "said"}]}}}});
    crate::extensions::extension(&home, "test", &script);
    let list = daemon.done(json!({"type": "restart_extensions"}));
    assert_eq!(list["extensions"][0]["tools"], json!(["echo"]));
    assert_eq!(text(&call(&mut daemon, &model, "echo", json!({}))), "said");
    std::fs::remove_dir_all(home.agent_dir().join("extensions")).expect("removed");
    assert_eq!(daemon.done(json!({"type": "restart_extensions"})), json!({"extensions": []}));
    let tools = daemon.done(json!({"type": "get_tools"}))["tools"].clone();
    assert!(tools.as_array().expect("tools").iter().all(|tool| tool["name"] != "echo"), "{tools}");
}

#[test]
fn a_gate_that_cannot_be_loaded_again_blocks() {
    let model = MockServer::start([]);
    let script = json!({"handlers": {"tool_call": {}}});
    let (home, mut daemon) = started(&model, &script);
    assert_eq!(text(&call(&mut daemon, &model, "bash", json!({"command": "echo hi"}))), "hi\n");
    home.write_agent("extensions/test/script.json", &json!({"load": {"error": "a typo"}}).to_string());
    daemon.send(&json!({"id": "1", "type": "restart_extensions"}));
    let told_of = failure(&mut daemon);
    assert_eq!((&told_of["event"], &told_of["error"]), (&json!("load"), &json!("a typo")));
    let list = daemon.until("the answer", |line| line["type"] == "response")["data"].clone();
    assert_eq!(list["extensions"][0]["state"], "failed");
    assert_eq!(list["extensions"][0]["lastError"], "a typo");
    let result = call(&mut daemon, &model, "bash", json!({"command": "echo hi"}));
    assert!(text(&result).ends_with("a typo"), "{result}");
    assert_eq!(result["isError"], true);
    home.write_agent("extensions/test/script.json", &script.to_string());
    daemon.done(json!({"type": "restart_extensions"}));
    assert_eq!(text(&call(&mut daemon, &model, "bash", json!({"command": "echo hi"}))), "hi\n");
}

#[test]
fn nothing_is_reloaded_while_a_run_is_active() {
    let model = MockServer::start([]);
    let script = json!({
        "commands": {"again": {"calls": [["session.reload", {}]]}},
        "tools": {"wait": {"until_cancelled": true, "updates": 1}},
    });
    let (home, mut daemon) = started(&model, &script);
    model.push(Reply::stream(sse::calls(&[("c1", "wait", json!({}))])));
    daemon.send(&json!({"id": "1", "type": "prompt", "message": "Go."}));
    // The host has the call: it takes the command within it, not the other way round.
    daemon.event("tool_execution_update");
    let refused = daemon.refused(json!({"type": "restart_extensions"}));
    assert_eq!(refused["error"], "Wait for the current response to finish before reloading.");
    daemon.done(json!({"type": "prompt", "message": "/again"}));
    let answer = told(&home, "result")[0].clone();
    assert_eq!(answer["error"]["message"], "Wait for the current response to finish before reloading.");
    daemon.done(json!({"type": "abort"}));
}

#[test]
fn what_comes_while_extensions_are_reloaded_waits_for_them() {
    let model = MockServer::start([]);
    let script = json!({
        "handlers": {"input": {"value": {"action": "transform", "text": "Seen."}}},
        "commands": {"again": {"calls": [["session.reload", {}]]}},
    });
    let (_home, mut daemon) = started(&model, &script);
    model.push(Reply::stream(sse::answer("Ok.")));
    daemon.send(&json!({"id": "1", "type": "restart_extensions"}));
    daemon.send(&json!({"id": "2", "type": "prompt", "message": "Go."}));
    let seen = daemon.settled();
    assert!(kinds(&seen).contains(&"agent_settled"));
    assert!(model.requests()[0].body.to_string().contains("Seen."));
}

#[test]
fn a_second_reload_is_done_after_the_first() {
    let model = MockServer::start([]);
    let (home, mut daemon) = started(&model, &json!({}));
    for id in ["1", "2", "3"] {
        daemon.send(&json!({"id": id, "type": "restart_extensions"}));
    }
    for id in ["1", "2", "3"] {
        let answer = daemon.until("an answer", |line| line["type"] == "response" && line["id"] == json!(id));
        assert_eq!(answer["success"], true, "{answer}");
    }
    assert_eq!(told(&home, "load").len(), 4, "once at the start, and once for each");
}

#[test]
fn what_extensions_name_becomes_a_skill_or_a_prompt() {
    let model = MockServer::start([]);
    let (home, mut daemon) = started(&model, &json!({}));
    home.write_agent("more/greet.md", "---\ndescription: Greets\n---\nGreet $1.\n");
    home.write_agent("skills2/known/SKILL.md", "---\nname: known\ndescription: Knows.\n---\nKnow.\n");
    let path = |file: &str| home.agent_dir().join(file).display().to_string();
    let value = json!({"skillPaths": [path("skills2")], "promptPaths": [path("more/greet.md")]});
    let script = json!({"handlers": {"resources_discover": {"value": value}}});
    home.write_agent("extensions/test/script.json", &script.to_string());
    daemon.done(json!({"type": "restart_extensions"}));
    let commands = daemon.done(json!({"type": "get_commands"}))["commands"].clone();
    let of = |name: &str| {
        let all = commands.as_array().expect("commands");
        all.iter().find(|command| command["name"] == name).unwrap_or_else(|| panic!("{commands}")).clone()
    };
    assert_eq!(of("greet")["sourceInfo"]["source"], "extension:extension_test_host");
    assert_eq!(of("greet")["sourceInfo"]["scope"], "temporary");
    assert_eq!(of("skill:known")["source"], "skill");
    model.push(Reply::stream(sse::answer("Ok.")));
    daemon.prompt("/greet Ada");
    let body = model.requests()[0].body.to_string();
    assert!(body.contains("Greet Ada.") && body.contains("Knows."), "{body}");
}
