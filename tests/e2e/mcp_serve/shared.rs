//! `agentd mcp serve --shared`: sessions of the user's daemon.

use agentd_e2e::{Home, MockServer, Reply, Service, ctl, sse};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::agent::Agent;
use crate::support::OnDemand;

#[test]
fn a_shared_session_is_one_of_the_daemon_and_goes_on_without_the_agent() {
    let server =
        MockServer::start([Reply::stream(sse::answer("Hello.")), Reply::stream(sse::text("I begin")).hang()]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut agent = Agent::ready(&home, &["--shared"], &json!({}));
    let data = agent.tool("prompt", &json!({"prompt": "Hi."}));
    assert_eq!(data["answer"], "Hello.");
    let session = data["sessionId"].clone();
    agent.begin("prompt", &json!({"prompt": "Long work.", "sessionId": session}));
    let _ = server.wait_for_requests(2);
    let (_, took, status) = agent.close();
    assert!(took.as_millis() < 2000 && status.success(), "{took:?} {status}");
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    let state = client.done(json!({"type": "attach_session", "sessionId": session}));
    assert_eq!(state["state"]["isStreaming"], true, "the work goes on");
}

/// A session in which another client's prompt is worked on is busy, can be told something, and can be read.
#[test]
fn the_work_of_others_is_seen() {
    let server = MockServer::start([
        Reply::stream(sse::answer("For the agent.")),
        Reply::stream(sse::text("For the other")).hang(),
    ]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut agent = Agent::ready(&home, &["--shared"], &json!({}));
    let session = agent.tool("prompt", &json!({"prompt": "Hi."}))["sessionId"].clone();
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    client.done(json!({"type": "attach_session", "sessionId": session}));
    client.send(&json!({"type": "prompt", "sessionId": session, "message": "Mine."}));
    client.event("agent_start");
    let text = agent.failure("prompt", &json!({"prompt": "Go on.", "sessionId": session}));
    assert!(text.contains("works on a prompt"), "{text}");
    let page = agent.tool("read_session", &json!({"sessionId": session, "last": 1}));
    assert_eq!(page["messages"][0]["text"], "Mine.");
    assert_eq!(agent.tool("steer", &json!({"sessionId": session, "message": "And this."}))["queued"], true);
    assert_eq!(agent.tool("abort", &json!({"sessionId": session}))["ended"][0]["kind"], "turn");
    client.event("agent_settled");
}

#[test]
fn the_daemon_is_started_where_none_runs() {
    let home = Home::new();
    let _daemon = OnDemand(&home);
    let mut agent = Agent::ready(&home, &["--shared", "--demo"], &json!({}));
    let data = agent.tool("prompt", &json!({"prompt": "Hi."}));
    let said = ctl::run(&home, &["sessions", "--live", "--json"]);
    let list: Value = serde_json::from_str(&said.stdout).unwrap();
    assert!(list.to_string().contains(data["sessionId"].as_str().unwrap()), "{list}");
}

#[test]
fn a_session_that_is_closed_by_another_client_ends_the_prompt() {
    let server =
        MockServer::start([Reply::stream(sse::answer("Hello.")), Reply::stream(sse::text("I begin")).hang()]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut agent = Agent::ready(&home, &["--shared"], &json!({}));
    let session = agent.tool("prompt", &json!({"prompt": "Hi."}))["sessionId"].clone();
    let id = agent.begin("prompt", &json!({"prompt": "Long work.", "sessionId": session}));
    let _ = server.wait_for_requests(2);
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    client.done(json!({"type": "close_session", "sessionId": session, "mode": "abort"}));
    let result = agent.reply(id)["result"].clone();
    assert_eq!((&result["isError"], &result["structuredContent"]["sessionId"]), (&json!(true), &session));
    // It is stored, and goes on.
    server.push(Reply::stream(sse::answer("Again.")));
    assert_eq!(agent.tool("prompt", &json!({"prompt": "Go on.", "sessionId": session}))["answer"], "Again.");
}

#[test]
fn calls_of_a_daemon_that_is_killed_are_answered() {
    let server = MockServer::start([Reply::stream(sse::text("I begin")).hang()]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut agent = Agent::ready(&home, &["--shared"], &json!({}));
    let id = agent.begin("prompt", &json!({"prompt": "Long work."}));
    let _ = server.wait_for_requests(1);
    service.signal(Signal::KILL);
    let reply = agent.reply(id);
    assert_eq!(reply["error"]["code"], -32603, "{reply}");
    assert!(reply["error"]["message"].as_str().unwrap().contains("connection to agentd is lost"), "{reply}");
    let (_, _, status) = agent.close();
    assert_eq!(status.code(), Some(3));
}
