//! Models by roles, and what else a definition of an agent or a call says of how a subagent works, on the real binaries.

use agentd_e2e::{Daemon, Home, MockServer, Reply, mock_server::Request, sse};
use serde_json::{Value, json};

use crate::{
    subagents::{hand_in, is_subagent, model, run},
    support::{assert_says, text},
};

/// A home with the models `fake`, `small` and `thinker`, and these settings.
fn home(server: &MockServer, settings: &Value) -> Home {
    let home = Home::new();
    home.configure(&json!({"providers": {"fake": {
        "baseUrl": server.base_url(), "api": "openai-completions", "apiKey": "test-key-1234",
        "models": [{"id": "fake"}, {"id": "small"}, {"id": "thinker", "reasoning": true}],
    }}}));
    home.settings(settings);
    home
}

fn start(home: &Home, args: &[&str]) -> Daemon {
    let mut all = vec!["--model", "fake/fake"];
    all.extend(args);
    Daemon::start(home, &all)
}

fn models_of(server: &MockServer, of: impl Fn(&Request) -> bool) -> Vec<String> {
    let requests = server.requests().into_iter().filter(|request| of(request));
    requests.map(|request| request.body["model"].as_str().expect("a model").to_owned()).collect()
}

fn one(agent: &str) -> Value {
    json!({"tasks": [{"name": "A", "agent": agent, "task": "Look."}]})
}

fn roles(roles: Value) -> Value {
    json!({"task": {"enabled": true}, "modelRoles": roles})
}

#[test]
fn an_agent_works_with_the_model_of_its_role() {
    for (agent, settings, expected, warns) in [
        ("sonic", roles(json!({"smol": "small"})), "small", false),
        ("sonic", roles(json!({})), "fake", false),
        ("mine", roles(json!({"quick": "fake/small"})), "small", false),
        ("mine", roles(json!({})), "fake", true),
    ] {
        let server = model(one(agent), |_| hand_in(json!("done")));
        let home = home(&server, &settings);
        home.write(
            ".agentd/agents/mine.md",
            "---\nname: mine\ndescription: Mine\nmodel: '@quick'\n---\nWork.\n",
        );
        let mut daemon = start(&home, &[]);
        let result = run(&mut daemon);
        assert_eq!(models_of(&server, is_subagent), [expected], "{agent} {settings}");
        let warning =
            "The agent mine asks for the model @quick, and the setting modelRoles has no such role.";
        assert_eq!(text(&result).contains(warning), warns, "{result}");
    }
}

#[test]
fn effort_is_a_thinking_level_where_the_setting_permits_it() {
    let call = json!({"tasks": [{"name": "A", "task": "Look.", "effort": "hi"}]});
    let settings = |enabled: bool| json!({"task": {"enabled": true, "enableEffort": enabled}});
    let server = model(call.clone(), |_| hand_in(json!("done")));
    let with = home(&server, &settings(true));
    let mut daemon = Daemon::start(&with, &["--model", "fake/thinker", "--thinking", "low"]);
    assert_says(&text(&run(&mut daemon)), &["## A (task) completed"]);
    let efforts: Vec<Value> =
        server.requests().iter().map(|request| request.body["reasoning_effort"].clone()).collect();
    assert_eq!(efforts, [json!("low"), json!("high"), json!("low")]);
    assert!(server.requests()[0].body["tools"].to_string().contains("\"effort\""));

    let server = model(call, |_| hand_in(json!("done")));
    let without = home(&server, &settings(false));
    let mut daemon = start(&without, &[]);
    assert_eq!(text(&run(&mut daemon)), "effort: the setting task.enableEffort is not true.");
    assert!(!server.requests()[0].body["tools"].to_string().contains("\"effort\""));
}

#[test]
fn an_agent_begins_with_its_skills() {
    let server = model(one("mine"), |_| hand_in(json!("done")));
    let home = home(&server, &roles(json!({})));
    home.write_agent("skills/notes/SKILL.md", "---\ndescription: Notes\n---\nGroup by area.\n");
    home.write(
        ".agentd/agents/mine.md",
        "---\nname: mine\ndescription: Mine\nautoloadSkills: [notes, nothing]\n---\nWork.\n",
    );
    let mut daemon = start(&home, &[]);
    let result = run(&mut daemon);
    assert_says(&text(&result), &["The agent mine begins with the skill nothing, which there is not."]);
    let request = server.requests().into_iter().find(is_subagent).expect("a request");
    let system = text(&request.messages()[0]);
    assert_says(&system, &["Work.", "<skill name=\"notes\"", "Group by area."]);
}

#[test]
fn a_type_definition_is_a_schema_too() {
    let definition =
        json!({"properties": {"n": {"type": "uint8"}}, "optionalProperties": {"s": {"type": "string"}}});
    let call = json!({"tasks": [{"name": "A", "task": "Count.", "outputSchema": definition}]});
    let server = model(call, |request| {
        let said = request.messages().last().map(text).unwrap_or_default();
        hand_in(if said.contains("does not fit") { json!({"n": 255}) } else { json!({"n": 256}) })
    });
    let home = home(&server, &roles(json!({})));
    let mut daemon = start(&home, &[]);
    let result = run(&mut daemon);
    let of = &result["details"]["results"][0]["structuredOutput"];
    assert_eq!((&of["status"], &of["data"]), (&json!("valid"), &json!({"n": 255})), "{result}");
}

/// Which model answers a prompt.
fn answered_by(daemon: &mut Daemon, server: &MockServer) -> String {
    daemon.prompt("Hi");
    models_of(server, |_| true).pop().expect("a request")
}

#[test]
fn plan_mode_has_a_model_of_its_own_and_gives_the_other_back() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = home(&server, &roles(json!({"plan": "fake/thinker:high"})));
    let mut daemon = start(&home, &["--thinking", "low"]);
    let set = |mode: &str| json!({"type": "set_mode", "mode": mode});
    assert_eq!(answered_by(&mut daemon, &server), "fake");
    daemon.done(set("plan"));
    assert_eq!(answered_by(&mut daemon, &server), "thinker");
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!((&state["model"]["id"], &state["thinkingLevel"]), (&json!("thinker"), &json!("high")));
    // After a restart, too, the session knows what it goes back to.
    drop(daemon);
    let mut daemon = Daemon::start(&home, &["--continue"]);
    assert_eq!(answered_by(&mut daemon, &server), "thinker");
    daemon.done(set("default"));
    assert_eq!(answered_by(&mut daemon, &server), "fake");
    // What was chosen meanwhile stays.
    daemon.done(set("plan"));
    daemon.done(json!({"type": "set_model", "provider": "fake", "modelId": "small"}));
    daemon.done(set("default"));
    assert_eq!(answered_by(&mut daemon, &server), "small");
}

#[test]
fn a_session_that_is_opened_in_plan_mode_begins_with_its_model() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let mut settings = roles(json!({"plan": "thinker"}));
    settings["defaultProvider"] = json!("fake");
    settings["defaultModel"] = json!("small");
    let home = home(&server, &settings);
    let mut daemon = Daemon::start(&home, &["--plan-mode"]);
    assert_eq!(answered_by(&mut daemon, &server), "thinker");
    daemon.done(json!({"type": "set_mode", "mode": "default"}));
    assert_eq!(answered_by(&mut daemon, &server), "small");
    drop(daemon);
    // Unless a model was asked for.
    let mut daemon = start(&home, &["--plan-mode"]);
    assert_eq!(answered_by(&mut daemon, &server), "fake");
}
