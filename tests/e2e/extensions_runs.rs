//! What extensions do to a run: calls of tools by tools, boundaries, the system prompt, and what they read of it.

use agentd_e2e::{Home, MockServer, Reply, conversation::Conversation, conversation::LineTransport, sse};
use serde_json::{Value, json};

use crate::{
    extensions::{events, started, told},
    mcp::call,
    support::{assert_says, ended, records, text},
};

/// The event of that type that the host was asked about first.
fn event(home: &Home, kind: &str) -> Value {
    events(home).into_iter().find(|event| event["type"] == kind).unwrap_or_else(|| panic!("no {kind}"))
}

/// Sends a prompt that the model answers with `answers`, and returns what clients saw.
fn run<W: LineTransport>(daemon: &mut Conversation<W>, model: &MockServer, answers: &[&str]) -> Vec<Value> {
    for answer in answers {
        model.push(Reply::stream(sse::answer(answer)));
    }
    daemon.prompt("Go.")
}

#[test]
fn tools_call_tools() {
    let model = MockServer::start([]);
    let nested =
        |name: &str, args: Value| json!(["tool.call", {"toolCallId": "c1", "name": name, "args": args}]);
    let script = json!({
        "handlers": {"tool_call": {}, "tool_result": {}, "tool_execution_start": {}, "tool_execution_end": {}},
        "tools": {
            "outer": {
                "calls": [
                    nested("bash", json!({"command": "echo one"})),
                    nested("inner", json!({"text": 3})),
                    nested("inner", json!({"text": {}})),
                    nested("nothing", json!({})),
                ],
                "value": {"content": [{"type": "text", "text": "done"}]},
            },
            "inner": {"value": {
                "content": [{"type": "text", "text": "deep"}], "usage": {"input": 7, "output": 2, "cost": {"total": 1.5}},
            }},
        },
    });
    let (home, mut daemon) = started(&model, &script);
    model.push(Reply::stream(sse::calls(&[("c1", "outer", json!({}))])));
    let seen = run(&mut daemon, &model, &["Ok."]);
    let nested: Vec<(&Value, &Value)> = seen
        .iter()
        .filter(|event| event["type"] == "tool_execution_end" && event.get("parentToolCallId").is_some())
        .map(|event| (&event["toolCallId"], &event["isError"]))
        .collect();
    let expected = [("c1/1", false), ("c1/2", false), ("c1/3", true), ("c1/4", true)];
    let expected: Vec<(Value, Value)> =
        expected.iter().map(|(id, failed)| (json!(id), json!(failed))).collect();
    assert_eq!(nested, expected.iter().map(|(id, failed)| (id, failed)).collect::<Vec<_>>());
    let results = told(&home, "result");
    assert_eq!(text(&results[0]["value"]["result"]), "one\n");
    assert_eq!(results[0]["value"]["toolCall"]["id"], "c1/1");
    assert!(text(&results[3]["value"]["result"]).contains("not found"), "{}", results[3]);
    // The handlers saw them as calls, checked where they could be.
    let calls: Vec<Value> = events(&home).into_iter().filter(|event| event["type"] == "tool_call").collect();
    let by: Vec<&Value> = calls.iter().map(|call| &call["parentToolCallId"]).collect();
    assert_eq!(by, [&Value::Null, &json!("c1"), &json!("c1")]);
    assert_eq!(calls[2]["input"], json!({"text": "3"}));
    // They are no messages, but stand with the result, and their tokens count.
    let messages = ended(&seen, "toolResult");
    assert_eq!(messages.len(), 1);
    let record = &messages[0]["nestedCalls"];
    let statuses: Vec<&Value> = record["calls"].as_array().unwrap().iter().map(|it| &it["status"]).collect();
    assert_eq!(
        (statuses, &record["complete"]),
        (
            ["ok", "ok", "error", "error"].iter().map(|it| json!(it)).collect::<Vec<_>>().iter().collect(),
            &json!(true)
        )
    );
    assert_eq!(messages[0]["usage"]["input"], 7);
}

#[test]
fn tools_of_other_tools_are_not_declared_but_called() {
    let model = MockServer::start([]);
    let script = json!({"tools": {
        "outer": {
            "calls": [["tool.call", {"toolCallId": "c1", "name": "hidden_away", "args": {}}],
                      ["tool.call", {"toolCallId": "c1", "name": "for_models", "args": {}}]],
            "value": {"content": []},
        },
        "hidden_away": {"def": {"exposure": "codemode", "outputSchema": {"type": "string"}}, "value": {"content": [{"type": "text", "text": "found"}]}},
        "for_models": {"def": {"exposure": "model-only"}, "value": {"content": []}},
        "later": {"def": {"defaultActive": false}, "value": {"content": []}},
    }});
    let (home, mut daemon) = started(&model, &script);
    call(&mut daemon, &model, "outer", json!({}));
    let declared = model.requests()[0].body["tools"].to_string();
    assert!(
        declared.contains("for_models") && !declared.contains("hidden_away") && !declared.contains("later"),
        "{declared}"
    );
    let results = told(&home, "result");
    assert_eq!(text(&results[0]["value"]["result"]), "found");
    assert!(text(&results[1]["value"]["result"]).contains("not found"), "{}", results[1]);
}

#[test]
fn an_extension_prepares_the_arguments_of_its_tool() {
    let model = MockServer::start([]);
    let script = json!({"tools": {"echo": {
        "has": ["prepareArguments"], "prepared": {"text": "repaired"},
        "value": {"content": [{"type": "text", "text": "said"}]},
    }}});
    let (home, mut daemon) = started(&model, &script);
    let result = call(&mut daemon, &model, "echo", json!({"words": ["odd"]}));
    assert_eq!(text(&result), "said");
    assert_eq!(told(&home, "tool.prepare")[0]["args"], json!({"words": ["odd"]}));
    assert_eq!(told(&home, "tool.execute")[0]["params"], json!({"text": "repaired"}));
}

#[test]
fn the_end_of_a_turn_adds_entries_and_goes_on() {
    let model = MockServer::start([]);
    let drafts = json!([
        {"type": "custom", "customType": "mark", "data": {"n": 1}},
        {"type": "custom_message", "customType": "nudge", "content": "And the rest?", "display": false},
    ]);
    let script = json!({"handlers": {
        "turn_end": {"once": {"entries": drafts, "continue": true}},
        "agent_end": {},
    }});
    let (home, mut daemon) = started(&model, &script);
    let seen = run(&mut daemon, &model, &["Half.", "The rest."]);
    assert_eq!(ended(&seen, "assistant").len(), 2);
    assert_says(&model.requests()[1].body.to_string(), &["And the rest?"]);
    let end = event(&home, "turn_end");
    assert_eq!(
        (&end["outcome"], &end["continue"], &end["entries"]),
        (&json!("completed"), &json!(false), &json!([]))
    );
    assert!(end["messageEntryId"].is_string() && end["toolResultEntryIds"] == json!([]), "{end}");
    let appended = seen.iter().filter(|event| event["type"] == "entry_appended");
    let kinds: Vec<&Value> = appended.map(|event| &event["entry"]["type"]).collect();
    assert_eq!(kinds, ["custom", "custom_message"]);
    daemon.close();
    let stored = records(&home.session_files()[0]);
    assert!(stored.iter().any(|entry| entry["customType"] == "mark"), "{stored:?}");
}

#[test]
fn a_run_that_is_about_to_settle_goes_on_once_more() {
    let model = MockServer::start([]);
    let entries =
        json!([{"type": "custom_message", "customType": "nudge", "content": "Check it.", "display": true}]);
    let script =
        json!({"handlers": {"agent_before_settle": {"once": {"entries": entries, "continue": true}}}});
    let (home, mut daemon) = started(&model, &script);
    let seen = run(&mut daemon, &model, &["Done.", "Checked."]);
    assert_eq!(ended(&seen, "assistant").len(), 2);
    assert_eq!(seen.iter().filter(|event| event["type"] == "agent_settled").count(), 1);
    assert_eq!(events(&home).len(), 2, "asked again before it settled in the end");
}

#[test]
fn drafts_that_cannot_be_used_are_refused_together() {
    let cases = [
        (
            json!([{"type": "custom", "customType": "a"}, {"type": "context_edit", "targetId": "none", "replacement": null}]),
            "Entry none not found",
        ),
        (json!([{"type": "message", "content": "x"}]), "unknown variant"),
        (json!("text"), "they are no list"),
    ];
    for (entries, said) in cases {
        let model = MockServer::start([]);
        let script = json!({"handlers": {"turn_end": {"value": {"entries": entries, "continue": true}}}});
        let (home, mut daemon) = started(&model, &script);
        let seen = run(&mut daemon, &model, &["Ok."]);
        let failure = seen.iter().find(|event| event["type"] == "extension_error").expect("a failure");
        let error = failure["error"].as_str().unwrap_or_default();
        assert!(error.starts_with("Invalid boundary entries: ") && error.contains(said), "{error}");
        assert_eq!(ended(&seen, "assistant").len(), 1, "it does not go on");
        daemon.close();
        let stored = records(&home.session_files()[0]);
        assert!(stored.iter().all(|entry| entry["customType"] != "a"), "{stored:?}");
    }
}

#[test]
fn a_boundary_without_anything_to_answer_does_not_go_on() {
    let model = MockServer::start([]);
    let (_home, mut daemon) =
        started(&model, &json!({"handlers": {"turn_end": {"value": {"continue": true}}}}));
    let seen = run(&mut daemon, &model, &["Ok."]);
    let failure = seen.iter().find(|event| event["type"] == "extension_error").expect("a failure");
    assert_eq!(failure["extensionPath"], "<boundary>");
    assert_eq!(failure["error"], "turn_end requested continuation without runnable model context");
    assert_eq!(ended(&seen, "assistant").len(), 1);
}

#[test]
fn the_inputs_of_the_system_prompt_can_be_edited() {
    let model = MockServer::start([]);
    let options = json!({
        "selectedTools": ["read"], "toolSnippets": {"read": "look at files"}, "toolGuidelines": {}, "promptGuidelines": ["Whisper."],
        "sections": {"mood": "Sunny."}, "cwd": "/elsewhere", "contextFiles": [], "skills": [],
    });
    let script = json!({"handlers": {"before_agent_start": {"event": {"systemPromptOptions": options}}}});
    let (home, mut daemon) = started(&model, &script);
    run(&mut daemon, &model, &["Ok."]);
    let body = &model.requests()[0].body;
    assert_says(&body.to_string(), &["Whisper.", "Sunny.", "/elsewhere", "look at files"]);
    let tools = body["tools"].as_array().map_or(0, Vec::len);
    assert_eq!(tools, 1, "{}", body["tools"]);
    let asked = event(&home, "before_agent_start");
    assert_eq!(asked["messageType"], "user");
    let given = &asked["systemPromptOptions"];
    assert!(given["selectedTools"].as_array().is_some_and(|tools| tools.len() >= 4), "{given}");
    assert!(given["toolSnippets"]["bash"].is_string() && given["cwd"].is_string(), "{given}");
    let state = daemon.done(json!({"type": "get_tools"}));
    let active = state["tools"].as_array().unwrap().iter().filter(|tool| tool["active"] == true).count();
    assert_eq!(active, 1, "what the extension chose is the choice of the session");
}

#[test]
fn extensions_read_the_prompt_and_the_context() {
    let model = MockServer::start([]);
    let read = |topic: &str| json!(["read", {"topic": topic}]);
    let script = json!({"commands": {"look": {"calls": [
        read("prompt"), read("promptOptions"), ["read.projection", {}], ["read.branch", {}], read("tools"),
        ["read.prompt", {"systemPromptOptions": {"forceSystemPrompt": "Only this."}}],
        ["read.boundary", {"entries": [{"type": "custom_message", "customType": "n", "content": "More?", "display": true}]}],
    ]}}});
    let (home, mut daemon) = started(&model, &script);
    run(&mut daemon, &model, &["Ok."]);
    daemon.done(json!({"type": "prompt", "message": "/look"}));
    let results = told(&home, "result");
    let value = |at: usize| &results[at]["value"];
    assert_says(value(0)["value"]["systemPrompt"].as_str().unwrap_or_default(), &["coding agent"]);
    assert!(value(1)["value"]["toolSnippets"]["read"].is_string(), "{}", value(1));
    let entries = value(2)["entries"].as_array().expect("entries");
    let roles: Vec<&Value> = entries
        .iter()
        .flat_map(|entry| entry["messages"].as_array().unwrap())
        .map(|it| &it["role"])
        .collect();
    assert_eq!(roles, ["system", "user", "assistant"]);
    assert!(entries[0]["sourceEntry"]["id"].is_string());
    assert_eq!(value(3).as_array().map(Vec::len), Some(entries.len()));
    let bash =
        value(4)["value"].as_array().unwrap().iter().find(|tool| tool["name"] == "bash").expect("bash");
    assert_eq!((&bash["exposure"], &bash["sourceInfo"]["source"]), (&json!("direct"), &json!("builtin")));
    assert_eq!(value(5), "Only this.");
    let preview = value(6);
    assert_eq!(
        (&preview["canContinue"], preview["contextEntries"].as_array().map(Vec::len)),
        (&json!(true), Some(entries.len() + 1))
    );
    // The mirror says how full the context is.
    let usage =
        told(&home, "state").into_iter().rev().find_map(|patch| patch["patch"].get("contextUsage").cloned());
    assert!(usage.is_some_and(|usage| usage["tokens"].is_number() && usage["contextWindow"].is_number()));
}

#[test]
fn messages_go_to_a_host_once() {
    let model = MockServer::start([]);
    let (home, mut daemon) = started(&model, &json!({"handlers": {"context": {}, "agent_end": {}}}));
    run(&mut daemon, &model, &["One."]);
    run(&mut daemon, &model, &["Two."]);
    let lists: Vec<Value> = events(&home).into_iter().map(|event| event["messages"].clone()).collect();
    let shape = |list: &Value| -> Vec<(Value, bool)> {
        list.as_array().unwrap().iter().map(|it| (it["m"].clone(), it.get("v").is_some())).collect()
    };
    let first = shape(&lists[0]);
    assert!(first.iter().all(|(_, whole)| *whole), "{first:?}");
    let again = shape(&lists[2]);
    assert_eq!(again[0], (first[0].0.clone(), false));
    let new = again.iter().filter(|(_, whole)| *whole).count();
    assert_eq!(new, 1, "the second prompt alone: {again:?}");
}

#[test]
fn nobody_answers_in_one_shot_modes() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    crate::extensions::extension(&home, "test", &json!({"handlers": {"session_start": {}}}));
    for (mode, arguments) in [("json", vec!["--mode", "json", "Go."]), ("print", vec!["-p", "Go."])] {
        model.push(Reply::stream(sse::answer("Ok.")));
        let mut command = home.command(agentd_e2e::binaries::agentd());
        let ended = command.args(&arguments).stdin(std::process::Stdio::null()).output().expect("agentd");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        let hello = told(&home, "hello").pop().expect("a greeting");
        assert_eq!((&hello["mode"], &hello["hasUI"]), (&json!(mode), &json!(false)));
        let core = &told(&home, "bind").pop().expect("a bind")["core"];
        assert_eq!((&core["mode"], &core["hasUI"]), (&json!(mode), &json!(false)));
    }
}

#[test]
fn questions_are_told_as_spans() {
    let model = MockServer::start([]);
    let script = json!({
        "handlers": {"ui_prompt_start": {}, "ui_prompt_end": {}},
        "commands": {"ask": {"calls": [["ui.confirm", {"title": "Sure?", "message": ""}]]}},
    });
    let (home, mut daemon) = started(&model, &script);
    daemon.send(&json!({"id": "a", "type": "prompt", "message": "/ask"}));
    let dialog = daemon.event("extension_ui_request");
    daemon.send(&json!({"type": "extension_ui_response", "id": dialog["id"], "confirmed": true}));
    daemon.until("the answer", |line| line["type"] == "response");
    let shown =
        |kind: &str| json!({"type": kind, "reason": "ui_prompt", "kind": "confirm", "title": "Sure?"});
    while events(&home).len() < 2 {
        daemon.done(json!({"type": "get_state"}));
    }
    assert_eq!(events(&home), [shown("ui_prompt_start"), shown("ui_prompt_end")]);
}
