//! Questions of the guard rails to the user of the client, in the revisions with a handshake.

use agentd_e2e::{Home, MockServer};
use serde_json::{Value, json};

use super::agent::Agent;
use crate::asking::{calling, decisions, home};

fn forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn asking(command: &str) -> (MockServer, Home) {
    let server = calling(command);
    let home = home(&server, &json!({"preset": "workspace"}));
    (server, home)
}

fn question(agent: &mut Agent) -> Value {
    agent.until("a question", |message| message["method"] == "elicitation/create")
}

/// The data of the prompt.
fn data(agent: &mut Agent, id: u64) -> Value {
    let result = agent.reply(id)["result"].clone();
    assert_ne!(result["isError"], true, "{result}");
    result["structuredContent"].clone()
}

#[test]
fn a_client_with_forms_is_asked_and_a_yes_lets_the_call_run() {
    let (_server, home) = asking("touch made");
    let mut agent = Agent::ready(&home, &[], &forms());
    let id = agent.begin("prompt", &json!({"prompt": "Make it."}));
    let asked = question(&mut agent);
    let params = &asked["params"];
    assert_eq!(params["mode"], "form");
    assert!(params["message"].as_str().unwrap().contains("$ touch made"), "{params}");
    let field = &params["requestedSchema"]["properties"]["decision"];
    let options: Vec<&str> =
        field["oneOf"].as_array().unwrap().iter().map(|option| option["const"].as_str().unwrap()).collect();
    // A rule for good is no decision of an agent's user.
    assert_eq!(options, ["once", "session", "deny"]);
    agent.answer(&asked, &json!({"action": "accept", "content": {"decision": "once"}}));
    let data = data(&mut agent, id);
    assert_eq!((&data["answer"], data.get("denied")), (&json!("Done."), None));
    assert!(home.project().join("made").exists());
    let decided = decisions(&home);
    assert_eq!((&decided[0]["by"], &decided[0]["client"]), (&json!("user"), &json!("other-agent")));
}

#[test]
fn a_no_and_whatever_is_no_yes_keep_the_call_from_running() {
    for answer in [
        json!({"action": "accept", "content": {"decision": "deny"}}),
        json!({"action": "accept", "content": {"decision": "always"}}),
        json!({"action": "accept", "content": {"decision": true}}),
        json!({"action": "accept"}),
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
        json!({}),
        Value::Null,
    ] {
        let (_server, home) = asking("touch made");
        let mut agent = Agent::ready(&home, &[], &forms());
        let id = agent.begin("prompt", &json!({"prompt": "Make it."}));
        let asked = question(&mut agent);
        agent.answer(&asked, &answer);
        let data = data(&mut agent, id);
        assert_eq!(data["denied"][0]["tool"], "bash", "{answer}");
        assert!(!home.project().join("made").exists(), "{answer}");
    }
}

#[test]
fn a_client_that_cannot_ask_after_all_is_a_no() {
    let (server, home) = asking("touch made");
    let mut agent = Agent::ready(&home, &[], &forms());
    let id = agent.begin("prompt", &json!({"prompt": "Make it."}));
    let asked = question(&mut agent);
    let error = json!({"code": -32601, "message": "no forms today"});
    agent.line(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}).to_string());
    data(&mut agent, id);
    assert!(!home.project().join("made").exists());
    let told = server.requests()[1].messages().last().unwrap()["content"].to_string();
    assert!(told.contains("no forms today"), "{told}");
}

/// Nobody can be asked: the rule for that counts at once, and the caller hears of it.
#[test]
fn without_forms_the_rule_for_nobody_counts() {
    for (on_timeout, runs) in [("deny", false), ("allow", true)] {
        let server = calling("touch made");
        let permissions = json!({"preset": "ask", "askTimeoutMs": 600_000, "onTimeout": on_timeout});
        let home = home(&server, &permissions);
        let mut agent = Agent::ready(&home, &[], &json!({"elicitation": {"url": {}}}));
        let id = agent.begin("prompt", &json!({"prompt": "Make it."}));
        let data = data(&mut agent, id);
        assert_eq!(data.get("denied").is_some(), !runs, "{data}");
        assert_eq!(home.project().join("made").exists(), runs);
        assert_eq!(decisions(&home)[0]["by"], "nobody");
    }
}

#[test]
fn a_question_of_a_cancelled_prompt_is_withdrawn() {
    let (_server, home) = asking("touch made");
    let mut agent = Agent::ready(&home, &[], &forms());
    let id = agent.begin("prompt", &json!({"prompt": "Make it."}));
    let asked = question(&mut agent);
    agent.cancel(id);
    let withdrawn =
        agent.until("the end of the question", |message| message["method"] == "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
    // An answer that comes too late changes nothing.
    agent.answer(&asked, &json!({"action": "accept", "content": {"decision": "once"}}));
    assert_eq!(agent.call("ping", json!({})), json!({}));
    assert!(!home.project().join("made").exists());
}

#[test]
fn older_clients_are_asked_in_their_form() {
    let (_server, home) = asking("touch made");
    let mut agent = Agent::start(&home, &[]);
    agent.initialize("2025-06-18", &json!({"elicitation": {}}));
    let id = agent.begin("prompt", &json!({"prompt": "Make it."}));
    let asked = question(&mut agent);
    assert_eq!(asked["params"].get("mode"), None);
    let field = &asked["params"]["requestedSchema"]["properties"]["decision"];
    assert_eq!(field["enum"], json!(["once", "session", "deny"]));
    agent.answer(&asked, &json!({"action": "accept", "content": {"decision": "session"}}));
    data(&mut agent, id);
    assert!(home.project().join("made").exists());
}

/// Whether a project is trusted is asked of the user's own clients alone.
#[test]
fn other_questions_of_the_daemon_do_not_come_to_an_agent() {
    let server = MockServer::start([agentd_e2e::Reply::stream(agentd_e2e::sse::answer("Done."))]);
    let home = Home::with_model(&server);
    home.write(".pi/settings.json", r#"{"defaultModel":"x"}"#);
    let mut agent = Agent::ready(&home, &[], &forms());
    assert_eq!(agent.tool("prompt", &json!({"prompt": "a"}))["answer"], "Done.");
    assert!(agent.seen.iter().all(|message| message["method"] != "elicitation/create"));
}
