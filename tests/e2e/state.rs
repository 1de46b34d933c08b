//! State of a session: what a client can read and set.

use agentd_e2e::{Daemon, Home, MockServer, Reply, home::models, sse};
use serde_json::{Value, json};

use crate::support::records;

/// Three models: without thinking, with thinking, and with all thinking levels.
fn three_models(home: &Home, server: &MockServer) {
    let mut file = models(&server.base_url());
    file["providers"]["fake"]["models"] = json!([
        {"id": "plain", "contextWindow": 1000, "cost": {"input": 1, "output": 2}},
        {"id": "thinker", "reasoning": true},
        {"id": "deep", "reasoning": true, "thinkingLevelMap": {"off": null, "max": "max"}},
    ]);
    home.configure(&file);
}

#[test]
fn state_of_a_new_session() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--name", "Mine"]);
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!(state["model"]["provider"], "fake");
    assert_eq!(state["model"]["contextWindow"], 128_000);
    for (key, expected) in [
        ("thinkingLevel", json!("off")),
        ("isStreaming", json!(false)),
        ("isCompacting", json!(false)),
        ("steeringMode", json!("one-at-a-time")),
        ("followUpMode", json!("one-at-a-time")),
        ("sessionName", json!("Mine")),
        ("autoCompactionEnabled", json!(true)),
        ("messageCount", json!(0)),
        ("pendingMessageCount", json!(0)),
    ] {
        assert_eq!(state[key], expected, "{key}");
    }
    // The file's name is known and its folder exists before anything is written.
    let file = state["sessionFile"].as_str().expect("a session file").to_owned();
    assert!(file.contains(state["sessionId"].as_str().unwrap()));
    let file = std::path::Path::new(&file);
    assert!(file.parent().unwrap().is_dir() && !file.exists());
    daemon.prompt("Hi");
    assert_eq!(daemon.done(json!({"type": "get_state"}))["messageCount"], 3);
    assert!(file.exists());
    let kinds: Vec<Value> = records(file)[1..4].iter().map(|record| record["type"].clone()).collect();
    assert_eq!(kinds, ["session_info", "model_change", "thinking_level_change"]);
}

#[test]
fn absent_is_not_null() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!((state.get("sessionFile"), state.get("sessionName")), (None, None));
    let stats = daemon.done(json!({"type": "get_session_stats"}));
    assert_eq!((stats.get("sessionFile"), stats.get("contextUsage")), (None, None));
    assert_eq!(daemon.done(json!({"type": "get_last_assistant_text"})), json!({}));
    for command in ["cycle_model", "cycle_thinking_level"] {
        let response = daemon.call(json!({"type": command}));
        assert_eq!(response.get("data"), Some(&Value::Null), "{command}");
    }
    let response = daemon.call(json!({"type": "abort"}));
    assert_eq!(response.get("data"), None);
}

#[test]
fn models_are_listed_set_and_cycled() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::new();
    three_models(&home, &server);
    let mut daemon = Daemon::start(&home, &["--model", "fake/plain"]);
    let listed = daemon.done(json!({"type": "get_available_models"}));
    let ids: Vec<&Value> = listed["models"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert_eq!(ids, ["plain", "thinker", "deep"]);
    let model = &listed["models"][0];
    for key in [
        "id",
        "name",
        "api",
        "provider",
        "baseUrl",
        "reasoning",
        "input",
        "cost",
        "contextWindow",
        "maxTokens",
    ] {
        assert!(model.get(key).is_some(), "{key} in {model}");
    }
    let model = daemon.done(json!({"type": "set_model", "provider": "fake", "modelId": "thinker"}));
    assert_eq!(model["id"], "thinker");
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!(state["model"], model);
    let cycled = daemon.done(json!({"type": "cycle_model"}));
    assert_eq!((&cycled["model"]["id"], &cycled["isScoped"]), (&json!("deep"), &json!(false)));
    assert_eq!(daemon.done(json!({"type": "cycle_model"}))["model"]["id"], "plain");
    daemon.prompt("Hi");
    assert_eq!(server.requests()[0].body["model"], "plain");
}

#[test]
fn a_scope_limits_cycling() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::new();
    three_models(&home, &server);
    let mut daemon = Daemon::start(&home, &["--no-session", "--models", "fake/thinker:low,plain"]);
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!((&state["model"]["id"], &state["thinkingLevel"]), (&json!("thinker"), &json!("low")));
    let cycled = daemon.done(json!({"type": "cycle_model"}));
    assert_eq!((&cycled["model"]["id"], &cycled["isScoped"]), (&json!("plain"), &json!(true)));
    assert_eq!(daemon.done(json!({"type": "cycle_model"}))["model"]["id"], "thinker");
}

#[test]
fn thinking_levels_are_clamped_told_and_stored() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::new();
    three_models(&home, &server);
    let mut daemon = Daemon::start(&home, &["--model", "fake/thinker:high"]);
    assert_eq!(daemon.done(json!({"type": "get_state"}))["thinkingLevel"], "high");
    let levels = daemon.done(json!({"type": "get_available_thinking_levels"}));
    assert_eq!(levels["levels"], json!(["off", "minimal", "low", "medium", "high"]));
    // The event comes before the response.
    daemon.send(&json!({"id": "m", "type": "set_thinking_level", "level": "max"}));
    let response = daemon.line();
    assert_eq!(
        (&response["id"], &response["success"]),
        (&json!("m"), &json!(true)),
        "high is the most it has"
    );
    daemon.send(&json!({"id": "l", "type": "set_thinking_level", "level": "low"}));
    assert_eq!(daemon.line(), json!({"type": "thinking_level_changed", "level": "low"}));
    assert_eq!(daemon.line()["id"], "l");
    assert_eq!(daemon.done(json!({"type": "cycle_thinking_level"}))["level"], "medium");
    daemon.done(json!({"type": "set_model", "provider": "fake", "modelId": "plain"}));
    assert_eq!(daemon.done(json!({"type": "get_state"}))["thinkingLevel"], "off");
    assert_eq!(daemon.done(json!({"type": "get_available_thinking_levels"}))["levels"], json!(["off"]));
    let entries = daemon.done(json!({"type": "get_entries"}));
    let stored: Vec<&Value> = entries["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["type"] == "thinking_level_change")
        .map(|entry| &entry["thinkingLevel"])
        .collect();
    assert_eq!(stored, ["high", "low", "medium", "off"]);
}

#[test]
fn names() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.send(&json!({"id": "n", "type": "set_session_name", "name": "  My  work "}));
    let event = daemon.line();
    assert_eq!(event["type"], "session_info_changed");
    assert_eq!(daemon.line()["id"], "n");
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!(state["sessionName"], event["name"]);
    let refused = daemon.refused(json!({"type": "set_session_name", "name": " "}));
    assert_eq!(refused["error"], "Session name cannot be empty");
}

#[test]
fn entries_and_stats() {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "bash", json!({"command": "true"}))])),
        Reply::stream(sse::text("Ok.") + &sse::end("stop", (60, 10, 5))),
    ]);
    let home = Home::new();
    three_models(&home, &server);
    let mut daemon = Daemon::start(&home, &["--model", "fake/plain"]);
    daemon.prompt("Go.");
    let all = daemon.done(json!({"type": "get_entries"}));
    let entries = all["entries"].as_array().unwrap();
    assert_eq!(all["leafId"], entries.last().unwrap()["id"]);
    let since = daemon.done(json!({"type": "get_entries", "since": entries[1]["id"]}));
    assert_eq!(since["entries"].as_array().unwrap()[..], entries[2..]);
    let file = &home.session_files()[0];
    assert_eq!(records(file)[1..], entries[..], "entries are the lines of the file");

    let stats = daemon.done(json!({"type": "get_session_stats"}));
    for (key, expected) in [
        ("userMessages", 1),
        ("assistantMessages", 2),
        ("toolCalls", 1),
        ("toolResults", 1),
        ("totalMessages", 5),
    ] {
        assert_eq!(stats[key], expected, "{key}");
    }
    assert_eq!(
        stats["tokens"],
        json!({"input": 60, "output": 10, "cacheRead": 10, "cacheWrite": 0, "total": 80})
    );
    // 60 input tokens at one dollar per million, 10 output tokens at two.
    let cost = stats["cost"].as_f64().unwrap();
    assert!((cost - 0.000_08).abs() < 1e-12, "{cost}");
    assert_eq!(stats["contextUsage"]["contextWindow"], 1000);
    assert!(stats["contextUsage"]["tokens"].as_u64().unwrap() >= 65, "{stats}");
    assert_eq!(daemon.done(json!({"type": "get_last_assistant_text"})), json!({"text": "Ok."}));
}

#[test]
fn a_new_session_leaves_the_old_one() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("One.");
    let old = daemon.done(json!({"type": "get_state"}));
    assert_eq!(
        daemon.done(json!({"type": "new_session", "parentSession": old["sessionFile"]})),
        json!({"cancelled": false})
    );
    let new = daemon.done(json!({"type": "get_state"}));
    assert_ne!(old["sessionId"], new["sessionId"]);
    assert_eq!(new["messageCount"], 0);
    daemon.prompt("Two.");
    assert_eq!(home.session_files().len(), 2);
    let file = new["sessionFile"].as_str().unwrap();
    assert_eq!(records(std::path::Path::new(file))[0]["parentSession"], old["sessionFile"]);
    let requests = server.requests();
    assert_eq!(requests[1].messages().len(), 2, "nothing of the old session goes to the model");
}

#[test]
fn context_files_and_system_prompts_reach_the_model() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    home.write("AGENTS.md", "Always whistle.");
    home.write("extra.md", "From a file.");
    let args = ["--no-session", "--append-system-prompt", "Hum.", "--append-system-prompt", "extra.md"];
    Daemon::start(&home, &args).prompt("Hi");
    Daemon::start(&home, &["--no-session", "-nc", "--system-prompt", "You are a teapot."]).prompt("Hi");
    let requests = server.requests();
    let system = crate::support::text(&requests[0].messages()[0]);
    for part in ["Always whistle.", "Hum.", "From a file.", &home.project().display().to_string()] {
        assert!(system.contains(part), "{part} in {system}");
    }
    let system = crate::support::text(&requests[1].messages()[0]);
    assert!(system.starts_with("You are a teapot."), "{system}");
    assert!(!system.contains("whistle"), "{system}");
}
