//! The tree of a session: its branches, going back in it, labels.

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, Service, sse};
use serde_json::{Value, json};

use crate::{
    support::{records, roles},
    wire::{Wire, both},
};

fn answers(texts: &[&str]) -> Vec<Reply> {
    texts.iter().map(|text| Reply::stream(sse::answer(text))).collect()
}

/// The messages of a tree as `user(assistant(user user))`, other kinds of entries passed over, labels in brackets.
fn shape(nodes: &Value) -> String {
    let one = |node: &Value| {
        let below = shape(&node["children"]);
        let role = node["entry"]["message"]["role"].as_str().filter(|role| *role != "system");
        let Some(role) = role else { return below };
        let label =
            node.get("label").map(|label| format!("[{}]", label.as_str().unwrap())).unwrap_or_default();
        if below.is_empty() { format!("{role}{label}") } else { format!("{role}{label}({below})") }
    };
    let parts = nodes.as_array().expect("a list").iter().map(one).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" ")
}

fn navigate(client: &mut dyn Wire, entry: &str) -> Value {
    client.done(json!({"type": "navigate_tree", "entryId": entry}))
}

#[test]
fn going_back_to_a_message_opens_another_branch() {
    both(&answers(&["One.", "Two.", "Other."]), &[], |home, server, client| {
        client.say("first");
        client.say("second");
        let messages = client.fork_messages();
        let leaf = client.done(json!({"type": "get_tree"}))["leafId"].clone();
        let went = navigate(client, &messages[1].0);
        assert_eq!((&went["cancelled"], &went["editorText"]), (&json!(false), &json!("second")));
        assert_eq!(client.context(), ["user: first", "assistant: One."]);
        assert_eq!(client.done(json!({"type": "get_tree"}))["leafId"], went["leafId"]);
        client.say("other");
        assert_eq!(client.context().last().unwrap(), "assistant: Other.");
        let sent = server.requests()[2].messages().iter().map(ToString::to_string).collect::<String>();
        assert!(sent.contains("first") && !sent.contains("second"), "{sent}");
        let tree = client.done(json!({"type": "get_tree"}));
        assert_eq!(shape(&tree["tree"]), "user(assistant(user(assistant) user(assistant)))");

        // To the end of the branch that was left: after it, and nothing to edit.
        let went = navigate(client, leaf.as_str().unwrap());
        assert_eq!(went, json!({"cancelled": false, "leafId": leaf}));
        assert_eq!(client.context().last().unwrap(), "assistant: Two.");
        assert_eq!(client.state()["messageCount"], json!(5));
        // Nothing of this is in the file but what was said.
        let file = &home.session_files()[0];
        assert_eq!(roles(file).iter().filter(|role| *role == "user").count(), 3);
        assert!(
            !records(file)
                .iter()
                .any(|record| record["type"] == "model_change" && record["parentId"] == leaf)
        );
    });
}

#[test]
fn before_the_first_message_a_branch_is_another_root_of_what_was_said() {
    both(&answers(&["One.", "Two."]), &[], |_, _, client| {
        client.say("first");
        let messages = client.fork_messages();
        assert_eq!(navigate(client, &messages[0].0)["editorText"], "first");
        client.say("again");
        let tree = client.done(json!({"type": "get_tree"}));
        assert_eq!(shape(&tree["tree"]), "user(assistant) user(assistant)");
        assert_eq!(client.context(), ["user: again", "assistant: Two."]);
    });
}

#[test]
fn a_session_at_work_goes_nowhere_and_what_is_not_there_is_said() {
    let busy = [Reply::stream(sse::text("half")).hang()];
    both(&busy, &[], |_, _, client| {
        let leaf = client.done(json!({"type": "get_entries"}))["leafId"].clone();
        client.done(json!({"type": "prompt", "message": "first"}));
        let refused = client.refused(json!({"type": "navigate_tree", "entryId": leaf}));
        assert_eq!(refused["code"], "busy", "{refused}");
        // All that only looks, and a label, may come at any time.
        client.done(json!({"type": "get_tree"}));
        client.done(json!({"type": "set_label", "entryId": leaf, "label": "here"}));
        client.done(json!({"type": "abort"}));
        for command in [
            json!({"type": "navigate_tree", "entryId": "nope"}),
            json!({"type": "set_label", "entryId": "nope", "label": "x"}),
        ] {
            let refused = client.refused(command);
            assert_eq!(
                (&refused["error"], &refused["code"]),
                (&json!("Entry nope not found"), &json!("not_found"))
            );
        }
        client.done(json!({"type": "navigate_tree", "entryId": leaf}));
        assert_eq!(client.context(), Vec::<String>::new());
    });
}

#[test]
fn labels_are_set_and_cleared() {
    both(&answers(&["One."]), &[], |home, _, client| {
        client.say("first");
        let entry = client.fork_messages()[0].0.clone();
        let tree = |client: &mut dyn Wire| shape(&client.done(json!({"type": "get_tree"}))["tree"]);
        client.done(json!({"type": "set_label", "entryId": entry, "label": "  start "}));
        assert_eq!(tree(client), "user[start](assistant)");
        client.done(json!({"type": "set_label", "entryId": entry, "label": "begin"}));
        assert_eq!(tree(client), "user[begin](assistant)");
        client.done(json!({"type": "set_label", "entryId": entry, "label": " "}));
        assert_eq!(tree(client), "user(assistant)");
        client.done(json!({"type": "set_label", "entryId": entry}));
        let records = records(&home.session_files()[0]);
        let labels: Vec<&Value> = records.iter().filter(|record| record["type"] == "label").collect();
        let said: Vec<Option<&str>> =
            labels.iter().map(|label| label.get("label").map(|text| text.as_str().unwrap())).collect();
        assert_eq!(said, [Some("start"), Some("begin"), None, None]);
        // The shape that the reference writes, and the place of any other entry.
        let sample = include_str!("../data/sessions/v3-1.5.jsonl")
            .lines()
            .find(|line| line.contains("\"label\""))
            .unwrap();
        let keys = |text: &str| -> Vec<String> {
            serde_json::from_str::<serde_json::Map<String, Value>>(text).unwrap().keys().cloned().collect()
        };
        let file = std::fs::read_to_string(&home.session_files()[0]).unwrap();
        let ours = file.lines().find(|line| line.contains("\"label\":\"start\"")).unwrap();
        assert_eq!(keys(ours), keys(sample));
        assert_eq!(labels[1]["parentId"], labels[0]["id"]);
    });
}

#[test]
fn a_branch_gets_the_model_and_level_that_it_goes_on_with() {
    let server = MockServer::start(answers(&["One.", "Two."]));
    let home = Home::new();
    let mut models = agentd_e2e::home::models(&server.base_url());
    let list = models["providers"]["fake"]["models"].as_array_mut().unwrap();
    let mut other = list[0].clone();
    other["id"] = json!("other");
    other["reasoning"] = json!(true);
    list.push(other);
    home.configure(&models);
    let mut daemon = Daemon::start(&home, &["--model", "fake/fake"]);
    daemon.prompt("first");
    daemon.done(json!({"type": "set_model", "provider": "fake", "modelId": "other"}));
    daemon.done(json!({"type": "set_thinking_level", "level": "high"}));
    let entry = daemon.fork_messages()[0].0.clone();
    daemon.done(json!({"type": "navigate_tree", "entryId": entry}));
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!(
        (&state["model"]["id"], &state["thinkingLevel"]),
        (&json!("other"), &json!("high")),
        "it stays"
    );
    daemon.prompt("again");
    let records = records(&home.session_files()[0]);
    let changes: Vec<&str> = records
        .iter()
        .rev()
        .skip_while(|record| record["message"]["role"] != "user")
        .skip(1)
        .take_while(|record| record["message"]["role"] != "assistant")
        .filter_map(|record| record["type"].as_str())
        .collect();
    // Those of the branch, then those of the commands, from the end.
    assert_eq!(
        changes,
        ["thinking_level_change", "model_change", "thinking_level_change", "model_change"]
            .into_iter()
            .collect::<Vec<_>>(),
        "{records:?}"
    );
}

#[test]
fn the_model_of_a_session_that_went_back_outlives_its_leaving_memory() {
    let server = MockServer::start(answers(&["One.", "Two."]));
    let home = Home::new();
    let mut models = agentd_e2e::home::models(&server.base_url());
    let list = models["providers"]["fake"]["models"].as_array_mut().unwrap();
    let mut other = list[0].clone();
    other["id"] = json!("other");
    list.push(other);
    home.configure(&models);
    home.settings(&json!({"daemon": {"idleUnloadMs": 1}}));
    let service = Service::start(&home, &[]);
    let mut watcher = service.client();
    watcher.done(json!({"type": "watch_sessions"}));
    let mut client = service.client();
    let opened = client.done(json!({"type": "open_session", "cwd": home.project(), "model": "fake/fake"}));
    let mut gone = || {
        watcher.until("a session that left memory", |line| {
            line["type"] == "session_changed"
                && line["session"]["id"] == opened["sessionId"]
                && line["session"]["live"] == false
        })
    };
    client.say("first");
    gone();
    let entry = client.fork_messages()[0].0.clone();
    // In one go, so that it leaves memory only afterwards.
    client.send_bytes(
        format!(
            "{}\n{}\n",
            json!({"type": "set_model", "provider": "fake", "modelId": "other"}),
            json!({"id": "went", "type": "navigate_tree", "entryId": entry})
        )
        .as_bytes(),
    );
    client.until("the way back", |line| line["id"] == "went");
    gone();
    assert_eq!(client.state()["model"]["id"], "other", "the branch says fake");
    gone();
    client.say("again");
    let records = records(&home.session_files()[0]);
    let changes =
        records.iter().filter(|record| record["type"] == "model_change" && record["modelId"] == "other");
    assert_eq!(changes.count(), 2, "once for the command, once for the branch");
}

#[test]
fn where_a_session_went_back_to_outlives_its_leaving_memory() {
    let server = MockServer::start(answers(&["One.", "Two."]));
    let home = Home::with_model(&server);
    home.settings(&json!({"daemon": {"idleUnloadMs": 1}}));
    let service = Service::start(&home, &[]);
    let mut watcher = service.client();
    watcher.done(json!({"type": "watch_sessions"}));
    let mut client = service.client();
    let id = client.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone();
    let mut gone = || {
        watcher.until("a session that left memory", |line| {
            line["type"] == "session_changed"
                && line["session"]["id"] == id
                && line["session"]["live"] == false
        })
    };
    client.say("first");
    gone();
    let entries = client.done(json!({"type": "get_entries"}))["entries"].clone();
    let root = entries[0]["id"].as_str().unwrap().to_owned();
    gone();
    navigate(&mut client, &root);
    gone();
    assert_eq!(client.done(json!({"type": "get_tree"}))["leafId"], json!(root));
    gone();
    assert_eq!(client.context(), Vec::<String>::new());
}

#[test]
fn a_prompt_takes_the_place_of_the_run() {
    let replies = [Reply::stream(sse::text("half")).hang(), Reply::stream(sse::answer("Whole."))];
    both(&replies, &[], |_, server, client| {
        client.done(json!({"type": "prompt", "message": "first"}));
        client.lines_until("a delta", &|line| line["assistantMessageEvent"]["delta"] == "half");
        let lines = client.told_until_done(json!({"type": "abort_and_prompt", "message": "instead"}));
        let settled =
            lines.iter().position(|line| line["type"] == "agent_settled").expect("the old run settles first");
        assert_eq!(lines[settled]["aborted"], json!(true));
        assert_eq!(settled, lines.len() - 2, "nothing comes in between");
        assert_eq!(lines.last().unwrap()["data"], json!({"disposition": "started"}));
        let rest = client.lines_until("the end", &|line| line["type"] == "agent_settled");
        assert_eq!(rest.last().unwrap()["aborted"], json!(false));
        server.wait_for_disconnects(1);
        assert_eq!(client.context().last().unwrap(), "assistant: Whole.");
    });
}

#[test]
fn of_two_that_take_the_place_the_last_one_gets_it_and_an_idle_session_just_runs() {
    let replies = [
        Reply::stream(sse::answer("Zero.")),
        Reply::stream(sse::text("half")).hang(),
        // Where the first of the two is quick, it has an answer before the second takes its place.
        Reply::stream(sse::answer("Whole.")),
        Reply::stream(sse::answer("Whole.")),
    ];
    let server = MockServer::start(replies);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "abort_and_prompt", "message": "zero"}));
    daemon.settled();
    daemon.done(json!({"type": "prompt", "message": "first"}));
    daemon.until("a delta", |line| line["assistantMessageEvent"]["delta"] == "half");
    let both = "{\"id\":\"a\",\"type\":\"abort_and_prompt\",\"message\":\"a\"}\n{\"id\":\"b\",\"type\":\"abort_and_prompt\",\"message\":\"b\"}\n";
    daemon.send_bytes(both.as_bytes());
    let lines = daemon.all_until("the answer to b", |line| line["id"] == "b");
    let a = lines.iter().find(|line| line["id"] == "a").expect("a is answered");
    let b = lines.last().unwrap();
    assert_eq!(b["success"], json!(true), "{b}");
    if a["success"] == json!(false) {
        assert_eq!(a["code"], "aborted", "{a}");
    }
    daemon.until("the end of b", |line| line["type"] == "agent_settled" && line["aborted"] == false);
    assert_eq!(daemon.context().last().unwrap(), "assistant: Whole.");
}

#[test]
fn a_repetition_stops_nothing() {
    let gate = Gate::new();
    let replies = [
        Reply::stream(sse::text("half")).hang(),
        Reply::stream(sse::text("Who")).gate(&gate).then(sse::answer("le.")),
    ];
    let server = MockServer::start(replies);
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "prompt", "message": "first"}));
    daemon.until("a delta", |line| line["assistantMessageEvent"]["delta"] == "half");
    let command = json!({"type": "abort_and_prompt", "message": "instead", "requestKey": "k"});
    assert_eq!(daemon.done(command.clone())["disposition"], "started");
    daemon.until("a delta", |line| line["assistantMessageEvent"]["delta"] == "Who");
    assert_eq!(daemon.done(command)["disposition"], "started");
    gate.open();
    let settled = daemon.settled();
    assert_eq!(settled.last().unwrap()["aborted"], json!(false));
    assert_eq!(daemon.context().last().unwrap(), "assistant: Whole.");
}

#[test]
fn what_steering_stopped_is_not_on_the_receipt_of_a_later_abort() {
    let call = sse::calls(&[("call_1", "bash", json!({"command": "echo begun; sleep 1000"}))]);
    let server = MockServer::start([Reply::stream(call), Reply::stream(sse::text("Heard")).hang()]);
    let home = Home::with_model(&server);
    home.settings(&json!({"interruptMode": "immediate"}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.done(json!({"type": "prompt", "message": "go"}));
    daemon.until("output", |line| line["partialResult"]["content"][0]["text"] == "begun\n");
    daemon.done(json!({"type": "steer", "message": "listen"}));
    daemon.until("a delta", |line| line["assistantMessageEvent"]["delta"] == "Heard");
    let receipt = daemon.done(json!({"type": "abort", "scope": "tools"}));
    assert_eq!(receipt, json!({"ended": [], "survives": [{"kind": "turn"}]}));
}

#[test]
fn steering_interrupts_tools_or_waits_for_them() {
    for (mode, interrupted) in [("immediate", true), ("wait", false)] {
        let command = if interrupted { "echo begun; sleep 1000" } else { "echo begun; cat fifo" };
        let call = sse::calls(&[("call_1", "bash", json!({"command": command}))]);
        let server = MockServer::start([Reply::stream(call), Reply::stream(sse::answer("Heard."))]);
        let home = Home::with_model(&server);
        let mut daemon = Daemon::start(&home, &[]);
        daemon.done(json!({"type": "set_interrupt_mode", "mode": mode}));
        let state = daemon.done(json!({"type": "get_state"}));
        assert_eq!(state.get("interruptMode"), interrupted.then(|| json!("immediate")).as_ref());
        let fifo = home.project().join("fifo");
        let status = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(status.success());
        daemon.done(json!({"type": "prompt", "message": "go"}));
        daemon.until("output", |line| line["partialResult"]["content"][0]["text"] == "begun\n");
        daemon.done(json!({"type": "steer", "message": "listen"}));
        if !interrupted {
            std::fs::write(&fifo, "waited\n").unwrap();
        }
        daemon.settled();
        let context = daemon.context();
        let [_, _, result, steered, answer] = context.as_slice() else { panic!("{context:?}") };
        assert_eq!((steered.as_str(), answer.as_str()), ("user: listen", "assistant: Heard."));
        assert_eq!(result.contains("waited"), !interrupted, "{result}");
        let settings = std::fs::read_to_string(home.agent_dir().join("settings.json")).unwrap();
        assert!(settings.contains(&format!("\"interruptMode\": \"{mode}\"")), "{settings}");
    }
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let refused = daemon.refused(json!({"type": "set_interrupt_mode", "mode": "later"}));
    assert_eq!(refused["code"], "invalid_field", "{refused}");
}

#[test]
fn a_host_that_waits_for_it_is_told_that_commands_are_taken() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session", "--ready"]);
    assert_eq!(daemon.line(), json!({"type": "ready"}));
    let _service = Service::start(&home, &[]);
    let mut shared = Daemon::start_shared(&home, &["--no-session", "--ready"]);
    assert_eq!(shared.line(), json!({"type": "ready"}));
    shared.done(json!({"type": "get_state"}));
}
