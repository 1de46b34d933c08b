//! Modes, options and slash commands.

use agentd_e2e::{Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use super::editor::Editor;

fn option<'a>(options: &'a Value, id: &str) -> &'a Value {
    options["configOptions"].as_array().unwrap().iter().find(|option| option["id"] == id).unwrap()
}

fn values(option: &Value) -> Vec<&str> {
    option["options"].as_array().unwrap().iter().map(|value| value["value"].as_str().unwrap()).collect()
}

/// CONFIG-003: the answer to a change has all options.
#[test]
fn options_are_changed_one_at_a_time_and_told_all_together() {
    let home = Home::new();
    let server = MockServer::start([]);
    let mut models = agentd_e2e::home::models(&server.base_url());
    let thinking = json!({"id": "thinker", "reasoning": true, "contextWindow": 50000, "maxTokens": 1000});
    models["providers"]["fake"]["models"].as_array_mut().unwrap().push(thinking);
    home.configure(&models);
    let mut editor = Editor::ready(&home, &["--model", "fake/fake"], &json!({}));
    let opened = editor.call("session/new", json!({"cwd": home.project(), "mcpServers": []}));
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(option(&opened, "model")["currentValue"], "fake/fake");
    assert!(values(option(&opened, "model")).contains(&"fake/thinker"));
    let set = |id: &str, value: &str| json!({"sessionId": session, "configId": id, "value": value});
    let changed = editor.call("session/set_config_option", set("model", "fake/thinker"));
    assert_eq!(option(&changed, "model")["currentValue"], "fake/thinker");
    // Another model has levels to choose.
    assert!(values(option(&changed, "thinking")).contains(&"high"));
    let changed = editor.call("session/set_config_option", set("thinking", "high"));
    assert_eq!(option(&changed, "thinking")["currentValue"], "high");
    let changed = editor.call("session/set_config_option", set("mode", "read-only"));
    assert_eq!(option(&changed, "mode")["currentValue"], "read-only");
    assert_eq!(option(&changed, "model")["currentValue"], "fake/thinker");
    for (id, value) in [("model", "no/such"), ("thinking", "x"), ("mode", "x"), ("colour", "red")] {
        let error = editor.refused("session/set_config_option", set(id, value));
        assert_eq!(error["code"], -32602, "{id}: {error}");
    }
    let told = editor.updates("config_option_update").len();
    assert_eq!(told, 0, "what the answers said is not repeated");
}

#[test]
fn a_mode_is_a_preset_of_permissions() {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("call_1", "bash", json!({"command": "touch made"}))])),
        Reply::stream(sse::answer("Done.")),
    ]);
    let home = Home::with_model(&server);
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let session = editor.new_session(&home);
    editor.call("session/set_mode", json!({"sessionId": session, "modeId": "read-only"}));
    assert_eq!(editor.turn(&session, "Make it."), "end_turn");
    assert!(!home.project().join("made").exists());
    let error = editor.refused("session/set_mode", json!({"sessionId": session, "modeId": "x"}));
    assert_eq!(error["code"], -32602);
}

#[test]
fn templates_and_skills_are_commands() {
    let server = MockServer::start([Reply::stream(sse::answer("Done."))]);
    let home = Home::with_model(&server);
    home.write_agent(
        "prompts/review.md",
        "---\ndescription: Reviews a file\nargument-hint: <file>\n---\nReview $1 well.",
    );
    let mut editor = Editor::ready(&home, &[], &json!({}));
    let session = editor.new_session(&home);
    let told = editor.update("available_commands_update");
    let expected = json!({"name": "review", "description": "Reviews a file", "input": {"hint": "<file>"}});
    assert!(told["availableCommands"].as_array().unwrap().contains(&expected), "{told}");
    assert_eq!(editor.turn(&session, "/review a.rs"), "end_turn");
    let sent = server.requests()[0].messages().last().unwrap().to_string();
    assert!(sent.contains("Review a.rs well."), "{sent}");
}
