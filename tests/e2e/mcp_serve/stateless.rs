//! The revision 2026-07-28: every request says all by itself, and questions stand in results.

use agentd_e2e::{Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use super::agent::{Agent, LEGACY, MODERN};
use crate::asking::{calling, calls, home};

fn forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn answer_of(agent: &mut Agent, method: &str, params: Value, capabilities: &Value) -> Value {
    let id = agent.ask_as(MODERN, method, params, capabilities);
    agent.reply(id)
}

/// Calls `prompt`, and gives the result.
fn prompt(agent: &mut Agent, capabilities: &Value) -> Value {
    let params = json!({"name": "prompt", "arguments": {"prompt": "Make it."}});
    answer_of(agent, "tools/call", params, capabilities)["result"].clone()
}

/// Comes back with answers to the questions of a result.
fn come_back(agent: &mut Agent, state: &Value, answers: &Value, capabilities: &Value) -> Value {
    let params = json!({
        "name": "prompt", "arguments": {"prompt": "Make it."}, "requestState": state, "inputResponses": answers,
    });
    answer_of(agent, "tools/call", params, capabilities)
}

fn asking() -> (MockServer, Home) {
    let server = calling("touch made");
    let home = home(&server, &json!({"preset": "workspace"}));
    (server, home)
}

/// The one question of a result.
fn key(result: &Value) -> String {
    assert_eq!(result["resultType"], "input_required", "{result}");
    result["inputRequests"].as_object().unwrap().keys().next().unwrap().clone()
}

fn yes() -> Value {
    json!({"action": "accept", "content": {"decision": "once"}})
}

#[test]
fn discovery_and_lists_say_how_long_they_hold() {
    let home = Home::new();
    let mut agent = Agent::start(&home, &[]);
    let found = answer_of(&mut agent, "server/discover", json!({}), &json!({}))["result"].clone();
    assert_eq!(found["supportedVersions"], json!([MODERN]));
    assert_eq!(found["capabilities"], json!({"tools": {}}));
    let list = answer_of(&mut agent, "tools/list", json!({}), &json!({}))["result"].clone();
    for result in [&found, &list] {
        assert_eq!(result["resultType"], "complete");
        assert!(result["ttlMs"].as_u64().is_some() && result["cacheScope"] == "public", "{result}");
        assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "agentd");
    }
    assert_eq!(list["tools"].as_array().unwrap().len(), 5);
}

#[test]
fn requests_that_do_not_say_all_are_refused() {
    let home = Home::new();
    let mut agent = Agent::start(&home, &[]);
    let version = "io.modelcontextprotocol/protocolVersion";
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    for (meta, says) in
        [(json!({}), version), (json!({capabilities: {}}), version), (json!({version: MODERN}), capabilities)]
    {
        let error = agent.refused("server/discover", json!({"_meta": meta}));
        assert_eq!(error["code"], -32602, "{meta}");
        assert!(error["message"].as_str().unwrap().contains(says), "{error}");
    }
    for asked in ["v999.0.0", LEGACY] {
        let params = json!({"_meta": {version: asked, capabilities: {}}});
        let error = agent.refused("server/discover", params);
        assert_eq!(error["code"], -32022);
        assert_eq!(error["data"], json!({"supported": [MODERN], "requested": asked}));
    }
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "no/such"] {
        let reply = answer_of(&mut agent, method, json!({}), &json!({}));
        assert_eq!(reply["error"]["code"], -32601, "{method}: {reply}");
    }
}

/// A client of either era is served on one connection, by what each request says.
#[test]
fn both_eras_are_served_side_by_side() {
    let server = MockServer::start([Reply::stream(sse::answer("One.")), Reply::stream(sse::answer("Two."))]);
    let home = Home::with_model(&server);
    let mut agent = Agent::ready(&home, &[], &json!({}));
    let first = agent.tool("prompt", &json!({"prompt": "a"}));
    let params = json!({"name": "prompt", "arguments": {"prompt": "b", "sessionId": first["sessionId"]}});
    let second = answer_of(&mut agent, "tools/call", params, &json!({}))["result"].clone();
    assert_eq!(second["structuredContent"]["answer"], "Two.");
}

#[test]
fn a_subscription_is_acknowledged_and_ends_in_an_orderly_way() {
    let home = Home::new();
    let mut agent = Agent::start(&home, &[]);
    let wishes = json!({"notifications": {"toolsListChanged": true}});
    let ids = [1, 2].map(|_| agent.ask_as(MODERN, "subscriptions/listen", wishes.clone(), &json!({})));
    for id in ids {
        let first = agent.next().unwrap();
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
        // The tools never change: there is nothing to be told of.
        assert_eq!(first["params"]["notifications"], json!({}));
    }
    agent.cancel(ids[0]);
    assert_eq!(answer_of(&mut agent, "subscriptions/listen", json!({}), &json!({}))["error"]["code"], -32602);
    let (rest, _, status) = agent.close();
    let answered: Vec<&Value> = rest.iter().map(|message| &message["id"]).collect();
    assert_eq!(answered, [&json!(ids[1])], "{rest:?}");
    assert!(status.success());
}

#[test]
fn a_question_stands_in_the_result_and_its_answer_in_the_next_call() {
    let (_server, home) = asking();
    let mut agent = Agent::stateless(&home, &[]);
    let result = prompt(&mut agent, &forms());
    let question = key(&result);
    let asked = &result["inputRequests"][&question];
    assert_eq!(asked["method"], "elicitation/create");
    assert!(asked["params"]["message"].as_str().unwrap().contains("$ touch made"), "{asked}");
    let reply = come_back(&mut agent, &result["requestState"], &json!({question: yes()}), &forms());
    assert_eq!(reply["result"]["structuredContent"]["answer"], "Done.");
    assert!(home.project().join("made").exists());
}

#[test]
fn answers_that_are_missing_or_none_leave_the_question_open() {
    let (_server, home) = asking();
    let mut agent = Agent::stateless(&home, &[]);
    let result = prompt(&mut agent, &forms());
    let (question, state) = (key(&result), result["requestState"].clone());
    // Without an answer it is asked again.
    let again = come_back(&mut agent, &state, &json!({"other": yes()}), &forms());
    assert_eq!((key(&again["result"]), &again["result"]["requestState"]), (question.clone(), &state));
    for (answers, says) in [
        (json!({&question: {"action": "perhaps"}}), "perhaps"),
        (json!({&question: {"action": "accept", "content": {"decision": "always"}}}), "none of the options"),
        (json!({&question: {"action": "accept"}}), "expected one of the options"),
    ] {
        let error = come_back(&mut agent, &state, &answers, &forms())["error"].clone();
        assert_eq!(error["code"], -32602, "{answers}");
        assert!(error["message"].as_str().unwrap().contains(says), "{error}");
    }
    let error = come_back(&mut agent, &state, &json!({}), &json!({}))["error"].clone();
    assert_eq!(error["code"], -32021);
    assert_eq!(error["data"]["requiredCapabilities"], json!({"elicitation": {"form": {}}}));
    let tampered = format!("{}x", state.as_str().unwrap());
    let error =
        come_back(&mut agent, &json!(tampered), &json!({&question: yes()}), &forms())["error"].clone();
    assert_eq!(error["code"], -32602, "{error}");
    let params =
        json!({"name": "prompt", "arguments": {"prompt": "Make it."}, "inputResponses": {&question: yes()}});
    assert_eq!(answer_of(&mut agent, "tools/call", params, &forms())["error"]["code"], -32602);
    assert!(!home.project().join("made").exists());
    let declined = come_back(&mut agent, &state, &json!({question: {"action": "decline"}}), &forms());
    assert_eq!(declined["result"]["structuredContent"]["denied"][0]["tool"], "bash");
    assert!(!home.project().join("made").exists());
}

/// Two calls of one answer are two questions, one after the other or together.
#[test]
fn a_call_comes_back_as_often_as_there_are_questions() {
    let server = MockServer::start([calls(&["touch one", "touch two"]), Reply::stream(sse::answer("Done."))]);
    let home = home(&server, &json!({"preset": "workspace"}));
    let mut agent = Agent::stateless(&home, &[]);
    let mut result = prompt(&mut agent, &forms());
    let mut rounds = 0;
    while result["resultType"] == "input_required" {
        rounds += 1;
        assert!(rounds <= 3, "{result}");
        let questions = result["inputRequests"].as_object().unwrap().keys();
        let answers: serde_json::Map<String, Value> = questions.map(|key| (key.clone(), yes())).collect();
        result = come_back(&mut agent, &result["requestState"], &json!(answers), &forms())["result"].clone();
    }
    assert_eq!(result["structuredContent"]["answer"], "Done.");
    assert!(home.project().join("one").exists() && home.project().join("two").exists());
}

/// The question takes its default, the work goes on, and the client still gets the result.
#[test]
fn a_client_that_comes_back_late_gets_the_result() {
    let server = calling("touch made");
    let home = home(&server, &json!({"preset": "ask", "askTimeoutMs": 50}));
    let mut agent = Agent::stateless(&home, &[]);
    let result = prompt(&mut agent, &forms());
    let question = key(&result);
    let _ = server.wait_for_requests(2);
    let reply = come_back(&mut agent, &result["requestState"], &json!({question: yes()}), &forms());
    assert_eq!(reply["result"]["structuredContent"]["answer"], "Done.", "{reply}");
    assert_eq!(reply["result"]["structuredContent"]["denied"][0]["tool"], "bash");
    assert!(!home.project().join("made").exists());
    // A result is given once.
    let again = come_back(&mut agent, &result["requestState"], &json!({}), &forms());
    assert_eq!(again["error"]["code"], -32602);
}

/// What one request said of its client is no word about another one.
#[test]
fn a_call_without_forms_is_a_no_beside_one_with_them() {
    let server = MockServer::start([
        calls(&["touch first"]),
        Reply::stream(sse::answer("Done.")),
        calls(&["touch second"]),
        Reply::stream(sse::answer("Done.")),
    ]);
    let home = home(&server, &json!({"preset": "workspace"}));
    let mut agent = Agent::stateless(&home, &[]);
    let asked = prompt(&mut agent, &forms());
    let question = key(&asked);
    come_back(&mut agent, &asked["requestState"], &json!({question: yes()}), &forms());
    let denied = prompt(&mut agent, &json!({}));
    assert_eq!(denied["structuredContent"]["denied"][0]["tool"], "bash");
    assert!(home.project().join("first").exists() && !home.project().join("second").exists());
}
