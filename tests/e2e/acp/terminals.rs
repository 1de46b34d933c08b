//! Commands of the model in the editor's terminal.

use agentd_e2e::{Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use super::editor::Editor;

/// A home with the setting on, a model that runs `command` and then ends, and its server.
fn setting(arguments: Value) -> (MockServer, Home) {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("call_1", "bash", arguments)])),
        Reply::stream(sse::answer("Done.")),
    ]);
    let home = Home::with_model(&server);
    home.settings(&json!({"acp": {"clientTerminal": true}}));
    (server, home)
}

fn terminals() -> Value {
    json!({"terminal": true})
}

/// What the model got as the result of its call.
fn result(server: &MockServer) -> String {
    server.requests().last().unwrap().messages().last().unwrap()["content"].to_string()
}

/// The methods that the editor was asked, and the kinds of updates about the call, in their order.
fn order(editor: &Editor) -> Vec<String> {
    let told = editor.seen.iter().filter_map(|message| {
        let update = &message["params"]["update"];
        let content = update["content"][0]["type"].as_str().unwrap_or("-");
        match (message["method"].as_str()?, update["sessionUpdate"].as_str()) {
            ("session/update", Some(kind @ ("tool_call" | "tool_call_update"))) => {
                Some(format!("{kind} {} {content}", update["status"].as_str().unwrap_or("-")))
            }
            ("session/update", _) => None,
            (method, _) => Some(method.to_owned()),
        }
    });
    told.collect()
}

#[test]
fn a_command_runs_in_the_editors_terminal() {
    let (server, home) = setting(json!({"command": "make all"}));
    let mut editor = Editor::ready(&home, &[], &terminals());
    let session = editor.new_session(&home);
    let id = editor.prompt(&session, "Build.");
    let create = editor.question("terminal/create");
    let asked = &create["params"];
    assert_eq!((&asked["sessionId"], &asked["cwd"]), (&json!(session), &json!(home.project())));
    assert_eq!(asked["args"], json!(["-c", "make all"]));
    assert!(
        asked["command"].as_str().unwrap().ends_with("sh") && asked["outputByteLimit"].is_u64(),
        "{asked}"
    );
    let env = asked["env"].as_array().unwrap();
    assert!(env.iter().any(|variable| variable["name"] == "PI_SESSION_ID"), "{env:?}");
    editor.answer(&create, json!({"terminalId": "term-1"}));
    let wait = editor.question("terminal/wait_for_exit");
    assert_eq!(wait["params"], json!({"sessionId": session, "terminalId": "term-1"}));
    editor.answer(&wait, json!({"exitCode": 2, "signal": null}));
    let output = editor.question("terminal/output");
    editor.answer(&output, json!({"output": "no rule\n", "truncated": false, "exitStatus": {"exitCode": 2}}));
    let release = editor.question("terminal/release");
    assert_eq!(release["params"]["terminalId"], "term-1");
    editor.answer(&release, json!({}));
    assert_eq!(editor.reply(id)["result"]["stopReason"], "end_turn");
    assert!(result(&server).contains("no rule\\n\\n\\nCommand exited with code 2"), "{}", result(&server));
    let last = editor.updates("tool_call_update").pop().unwrap().clone();
    assert_eq!(last["content"], json!([{"type": "terminal", "terminalId": "term-1"}]));
    assert_eq!(last["status"], "failed");
    let order = order(&editor);
    let place = |what: &str| {
        order.iter().position(|told| told == what).unwrap_or_else(|| panic!("{what}: {order:?}"))
    };
    assert!(place("tool_call pending -") < place("tool_call_update in_progress terminal"), "{order:?}");
    assert!(place("tool_call_update in_progress terminal") < place("terminal/release"), "{order:?}");
    assert!(place("terminal/wait_for_exit") < place("tool_call_update failed terminal"), "{order:?}");
}

/// The editor's answers to the requests about a terminal; those without one are never answered.
fn answer(editor: &mut Editor, message: &Value, exit: Option<&Value>, output: &Value) {
    match message["method"].as_str() {
        Some("terminal/create") => editor.answer(message, json!({"terminalId": "t"})),
        Some("terminal/wait_for_exit") => {
            if let Some(exit) = exit {
                editor.answer(message, exit.clone());
            }
        }
        Some("terminal/output") => editor.answer(message, output.clone()),
        Some("terminal/kill" | "terminal/release") => editor.answer(message, json!({})),
        _ => {}
    }
}

/// Runs the turn to its end; gives the requests about terminals.
fn finish(editor: &mut Editor, id: u64, exit: Option<&Value>, output: &Value) -> (Value, Vec<String>) {
    let mut asked = Vec::new();
    loop {
        let message = editor.next().unwrap();
        if message["id"] == id && message.get("method").is_none() {
            return (message, asked);
        }
        if let Some(method) = message["method"].as_str().and_then(|method| method.strip_prefix("terminal/")) {
            asked.push(method.to_owned());
        }
        answer(editor, &message, exit, output);
    }
}

#[test]
fn signals_and_cut_output_are_in_the_result() {
    let (server, home) = setting(json!({"command": "make"}));
    let mut editor = Editor::ready(&home, &[], &terminals());
    let session = editor.new_session(&home);
    let id = editor.prompt(&session, "Build.");
    let output = json!({"output": "the end", "truncated": true});
    let (_, asked) = finish(&mut editor, id, Some(&json!({"exitCode": null, "signal": "SIGSEGV"})), &output);
    assert_eq!(asked, ["create", "wait_for_exit", "output", "release"]);
    let result = result(&server);
    assert!(result.contains("the end\\n\\nCommand exited with code 139"), "{result}");
    assert!(
        result.contains("[The beginning of the output is missing: the editor's terminal keeps"),
        "{result}"
    );
}

#[test]
fn a_command_that_takes_too_long_is_killed() {
    let (server, home) = setting(json!({"command": "sleep 1000", "timeout": 0.5}));
    let mut editor = Editor::ready(&home, &[], &terminals());
    let session = editor.new_session(&home);
    let id = editor.prompt(&session, "Wait.");
    let (_, asked) = finish(&mut editor, id, None, &json!({"output": "up", "truncated": false}));
    assert_eq!(asked, ["create", "wait_for_exit", "kill", "output", "release"]);
    assert!(result(&server).contains("up\\n\\nCommand timed out after 0.5 seconds"), "{}", result(&server));
    let last = editor.updates("tool_call_update").pop().unwrap().clone();
    assert_eq!(last["content"][0], json!({"type": "terminal", "terminalId": "t"}));
    assert!(last["content"][1]["content"]["text"].as_str().unwrap().contains("timed out"), "{last}");
}

#[test]
fn cancelling_kills_the_command_in_the_terminal() {
    let (_server, home) = setting(json!({"command": "sleep 1000"}));
    let mut editor = Editor::ready(&home, &[], &terminals());
    let session = editor.new_session(&home);
    let id = editor.prompt(&session, "Wait.");
    let create = editor.question("terminal/create");
    editor.answer(&create, json!({"terminalId": "t"}));
    editor.question("terminal/wait_for_exit");
    editor.notify("session/cancel", json!({"sessionId": session}));
    let (reply, asked) = finish(&mut editor, id, None, &json!({"output": "up", "truncated": false}));
    assert_eq!(reply["result"]["stopReason"], "cancelled");
    assert_eq!(asked, ["kill", "output", "release"]);
}

/// Nothing waits for an editor that is silent, whatever it was asked.
#[test]
fn cancelling_does_not_wait_for_a_silent_editor() {
    for makes_one in [false, true] {
        let (_server, home) = setting(json!({"command": "sleep 1000"}));
        let mut editor = Editor::ready(&home, &[], &terminals());
        let session = editor.new_session(&home);
        let id = editor.prompt(&session, "Wait.");
        let create = editor.question("terminal/create");
        if makes_one {
            editor.answer(&create, json!({"terminalId": "t"}));
            editor.question("terminal/wait_for_exit");
        }
        editor.notify("session/cancel", json!({"sessionId": session}));
        assert_eq!(editor.reply(id)["result"]["stopReason"], "cancelled");
        if !makes_one {
            // A terminal that comes too late is given up, and shown nowhere.
            editor.answer(&create, json!({"terminalId": "late"}));
            assert_eq!(editor.question("terminal/release")["params"]["terminalId"], "late");
            assert!(
                !editor
                    .updates("tool_call_update")
                    .iter()
                    .any(|update| update["content"][0]["type"] == "terminal")
            );
        }
    }
}

#[test]
fn an_editor_that_refuses_is_told_to_the_model() {
    for refused in ["terminal/create", "terminal/wait_for_exit", "terminal/output"] {
        let (server, home) = setting(json!({"command": "make"}));
        let mut editor = Editor::ready(&home, &[], &terminals());
        let session = editor.new_session(&home);
        let id = editor.prompt(&session, "Build.");
        loop {
            let message = editor.next().unwrap();
            if message["id"] == id && message.get("method").is_none() {
                assert_eq!(message["result"]["stopReason"], "end_turn");
                break;
            }
            if message["method"] == refused {
                let error = json!({"code": -32603, "message": "out of terminals"});
                editor.line(&json!({"jsonrpc": "2.0", "id": message["id"], "error": error}).to_string());
            } else {
                answer(
                    &mut editor,
                    &message,
                    Some(&json!({"exitCode": 0})),
                    &json!({"output": "x", "truncated": false}),
                );
            }
        }
        let result = result(&server);
        let expected = match refused {
            "terminal/create" => "The command was not run: the editor gave no terminal: out of terminals",
            "terminal/wait_for_exit" => "It is not known how the command ended",
            _ => "The editor did not give the output of its terminal: out of terminals",
        };
        assert!(result.contains(expected), "{refused}: {result}");
    }
}

#[test]
fn an_editor_that_leaves_holds_nothing_up() {
    let (_server, home) = setting(json!({"command": "sleep 1000"}));
    let mut editor = Editor::ready(&home, &[], &terminals());
    let session = editor.new_session(&home);
    let id = editor.prompt(&session, "Wait.");
    let create = editor.question("terminal/create");
    editor.answer(&create, json!({"terminalId": "t"}));
    editor.question("terminal/wait_for_exit");
    let (rest, took, status) = editor.close();
    assert!(took.as_millis() < 2000 && status.success(), "{took:?} {status}");
    let is_reply = |message: &&Value| message["id"] == id && message.get("method").is_none();
    let reply = rest.iter().find(is_reply).expect("an answer to the prompt");
    assert_eq!(reply["result"]["stopReason"], "cancelled");
    assert!(rest.iter().any(|message| message["method"] == "terminal/release"), "{rest:#?}");
}

/// Without the setting or the terminal, in a sandbox, in the background: the guard runs the command.
#[test]
fn other_commands_run_under_the_guard() {
    let check = |settings: Value, capabilities: Value, arguments: Value| {
        let (server, home) = setting(arguments.clone());
        home.settings(&settings);
        let mut editor = Editor::ready(&home, &[], &capabilities);
        let session = editor.new_session(&home);
        assert_eq!(editor.turn(&session, "Say it."), "end_turn");
        assert!(result(&server).contains("said-by-us"), "{settings} {arguments}: {}", result(&server));
        assert!(!editor.seen.iter().any(|message| message["method"] == "terminal/create"));
    };
    let on = json!({"acp": {"clientTerminal": true}, "bash": {"background": true}});
    let say = json!({"command": "echo said-by-us"});
    check(json!({}), terminals(), say.clone());
    check(on.clone(), json!({}), say.clone());
    check(on.clone(), terminals(), json!({"command": "echo said-by-us", "background": true}));
    let mut sandboxed = on;
    // With what of it this system enforces.
    sandboxed["sandbox"] = json!({"mode": "workspace-write", "required": false});
    check(sandboxed, terminals(), say);
}

/// Permissions are asked before the editor is.
#[test]
fn a_command_that_is_refused_reaches_no_terminal() {
    let (server, home) = setting(json!({"command": "make"}));
    let mut editor = Editor::ready(&home, &["--permissions", "ask"], &terminals());
    let session = editor.new_session(&home);
    let id = editor.prompt(&session, "Build.");
    let question = editor.question("session/request_permission");
    editor.choose(&question, "deny");
    assert_eq!(editor.reply(id)["result"]["stopReason"], "end_turn");
    assert!(!editor.seen.iter().any(|message| message["method"] == "terminal/create"));
    assert!(!result(&server).contains("exited with code"), "{}", result(&server));
}
