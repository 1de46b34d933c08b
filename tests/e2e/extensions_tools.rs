//! What extensions have of the session's tools: built-in ones, the queue of changes, commands of the user.

use std::fs;

use agentd_e2e::{Daemon, MockServer, Reply, sse};
use serde_json::{Value, json};

use crate::{
    extensions::{events, started, told},
    support::{ended, records, text},
};

/// The answers that a host got to its calls.
fn answers(home: &agentd_e2e::Home) -> Vec<Value> {
    told(home, "result")
}

fn run_command(daemon: &mut Daemon, name: &str) {
    let answer = daemon.done(json!({"type": "prompt", "message": format!("/{name}")}));
    assert_eq!(answer, json!({"disposition": "handled"}));
}

#[test]
fn built_in_tools_run_for_extensions_without_hooks() {
    let model = MockServer::start([]);
    let builtin = |name: &str, params: Value| json!(["tool.builtin", {"name": name, "params": params}]);
    let script = json!({
        "handlers": {"tool_call": {"value": {"block": true}}},
        "commands": {"go": {"calls": [
            builtin("write", json!({"path": "made.txt", "content": "one\n"})),
            builtin("bash", json!({"command": "cat made.txt; exit 4"})),
            ["tool.builtin", {
                "name": "bash", "params": {"command": "echo $X"}, "options": {"commandPrefix": "X=prefixed"},
            }],
            builtin("read", json!({})),
            builtin("nothing", json!({})),
            ["tool.builtin", {"name": "read", "cwd": "below", "params": {"path": "../made.txt"}}],
        ]}},
    });
    // Whether the session itself has the tool or not.
    let home = agentd_e2e::Home::with_model(&model);
    crate::extensions::extension(&home, "test", &script);
    fs::create_dir(home.project().join("below")).expect("a folder");
    let mut daemon = Daemon::start(&home, &["--stdio", "--exclude-tools", "write"]);
    run_command(&mut daemon, "go");
    assert_eq!(fs::read_to_string(home.project().join("made.txt")).expect("the file"), "one\n");
    let answers = answers(&home);
    let said = |at: usize| text(&answers[at]["value"]);
    assert!(said(1).starts_with("one\n") && said(1).contains("code 4"), "{}", answers[1]);
    assert_eq!(said(2), "prefixed\n");
    let failed = |at: usize| answers[at]["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(failed(3).contains("path"), "{}", answers[3]);
    assert_eq!(failed(4), "Tool nothing not found");
    assert_eq!(said(5), "one\n");
    assert!(told(&home, "hook").is_empty(), "no handler is asked");
    assert!(!told(&home, "call.update").is_empty(), "the output so far is told");
}

#[test]
fn files_that_an_extension_holds_are_free_again_without_it() {
    let model = MockServer::start([]);
    let lock = json!(["lock.acquire", {"path": "a.txt"}]);
    let script = json!({"commands": {
        "again": {"calls": [lock, ["lock.release", {"token": 1}], lock, ["lock.release", {"token": 2}]]},
        "hold": {"calls": [lock, ["ui.confirm", {"title": "Held", "message": ""}]], "crash": 3},
    }});
    let (home, mut daemon) = started(&model, &script);
    run_command(&mut daemon, "again");
    let tokens: Vec<Value> =
        answers(&home).into_iter().map(|answer| answer["value"]["token"].clone()).collect();
    assert_eq!(tokens, [json!(1), Value::Null, json!(2), Value::Null]);

    daemon.send(&json!({"id": "hold", "type": "prompt", "message": "/hold"}));
    let dialog = daemon.event("extension_ui_request");
    model.push(Reply::stream(sse::calls(&[("c1", "write", json!({"path": "a.txt", "content": "x"}))])));
    model.push(Reply::stream(sse::answer("Ok.")));
    daemon.send(&json!({"id": "1", "type": "prompt", "message": "Go."}));
    daemon.event("tool_execution_start");
    daemon.done(json!({"type": "bash", "command": "true"}));
    assert!(!home.project().join("a.txt").exists(), "the tool waits for the extension");
    daemon.send(&json!({"type": "extension_ui_response", "id": dialog["id"], "confirmed": true}));
    let seen = daemon.settled();
    assert_eq!(ended(&seen, "toolResult")[0]["isError"], false);
    assert_eq!(fs::read_to_string(home.project().join("a.txt")).expect("the file"), "x");
}

#[test]
fn an_extension_runs_a_command_of_the_user() {
    let model = MockServer::start([]);
    let script = json!({
        "handlers": {"user_bash": {"value": {"operations": {"exec": {"cb": 5}}}}},
        // "far\n", "away\n".
        "ops": {"5": {"data": ["ZmFyCg==", "YXdheQo="], "value": {"exitCode": 3}}},
    });
    let (home, mut daemon) = started(&model, &script);
    daemon.send(&json!({"id": "b", "type": "bash", "command": "where"}));
    let seen = daemon.all_until("the answer", |line| line["type"] == "response");
    let result = &seen.last().expect("an answer")["data"];
    assert_eq!((&result["output"], &result["exitCode"]), (&json!("far\naway\n"), &json!(3)));
    let deltas: String = seen
        .iter()
        .filter(|event| event["type"] == "bash_execution_update")
        .filter_map(|event| event["delta"].as_str())
        .collect();
    assert_eq!(deltas, "far\naway\n");
    let asked = &events(&home)[0];
    let cwd = home.project().display().to_string();
    let expected = json!({"type": "user_bash", "command": "where", "excludeFromContext": false, "cwd": cwd});
    assert_eq!(asked, &expected);
    assert_eq!(told(&home, "ops.call")[0]["args"], json!(["where", cwd, {}]));
}

#[test]
fn an_extension_gives_the_result_of_a_command_of_the_user() {
    let model = MockServer::start([]);
    let result = json!({"output": "nothing to do", "exitCode": 0, "cancelled": false, "truncated": false});
    let (home, mut daemon) =
        started(&model, &json!({"handlers": {"user_bash": {"value": {"result": result}}}}));
    let answer = daemon.done(json!({"type": "bash", "command": "touch made"}));
    assert_eq!(answer["output"], "nothing to do");
    assert!(!home.project().join("made").exists());
    model.push(Reply::stream(sse::answer("Ok.")));
    daemon.prompt("Go.");
    daemon.close();
    let stored = records(&home.session_files()[0]);
    let message =
        stored.iter().find(|entry| entry["message"]["role"] == "bashExecution").expect("the message");
    assert_eq!(message["message"]["output"], "nothing to do");
}

#[test]
fn a_command_of_the_user_does_not_run_past_a_handler_that_fails() {
    let cases = [
        (json!({"throw": "no commands today"}), "no commands today"),
        (json!({"value": {"result": {"output": 3}}}), "Invalid user_bash handler result: "),
        (json!({"crash": 3}), "Extension host exited (code 3) while running \"user_bash\""),
    ];
    for (action, said) in cases {
        let model = MockServer::start([]);
        let (home, mut daemon) = started(&model, &json!({"handlers": {"user_bash": action}}));
        let refused = daemon.refused(json!({"type": "bash", "command": "touch made"}));
        assert!(refused["error"].as_str().unwrap_or_default().contains(said), "{refused}");
        assert!(!home.project().join("made").exists());
    }
}

#[test]
fn a_gate_that_is_down_still_blocks() {
    let model = MockServer::start([]);
    let script = json!({
        "handlers": {"tool_call": {}, "user_bash": {}},
        "commands": {"crash": {"crash": 3}},
    });
    let (home, mut daemon) = started(&model, &script);
    // It is loaded by then, and crashes again at each start.
    daemon.done(json!({"type": "get_state"}));
    crate::extensions::extension(&home, "test", &json!({"load": {"crash": 4}}));
    run_command(&mut daemon, "crash");
    loop {
        let failure = daemon.event("extension_error");
        let refused = daemon.refused(json!({"type": "bash", "command": "touch made"}));
        assert!(!home.project().join("made").exists(), "{refused}");
        if failure["error"].as_str().unwrap_or_default().contains("(code 4)") {
            break;
        }
    }
}

#[test]
fn images_are_resized_for_extensions() {
    const BLACK: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAECAIAAAA8r+mnAAAADElEQVR42mNgoD0AAABkAAG4me+ZAAAAAElFTkSuQmCC";
    let model = MockServer::start([]);
    let script = json!({"commands": {"resize": {"calls": [
        ["image.resize", {"data": BLACK, "mimeType": "image/png", "maxWidth": 4}],
        ["image.resize", {"data": "AAAA", "mimeType": "image/png"}],
        ["image.resize", {"mimeType": "image/png"}],
    ]}}});
    let (home, mut daemon) = started(&model, &script);
    daemon.done(json!({"type": "prompt", "message": "/resize"}));
    let results = told(&home, "result");
    let resized = &results[0]["value"];
    let sizes: Vec<&Value> =
        ["originalWidth", "originalHeight", "width", "height"].iter().map(|name| &resized[*name]).collect();
    assert_eq!(sizes, [8, 4, 4, 2]);
    assert_eq!((&resized["mimeType"], &resized["wasResized"]), (&json!("image/png"), &json!(true)));
    assert_eq!(results[1]["value"], json!(null), "no image");
    assert_eq!(results[2]["error"]["code"], "invalid");
}
