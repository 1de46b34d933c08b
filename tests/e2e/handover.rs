//! One conversation that moves from model to model over every pair of APIs: each request is legal for its API, and nothing
//! of the conversation is lost.

use agentd_e2e::{
    Daemon, Home, MockServer, Reply,
    apis::{Block, ProviderApi},
};
use serde_json::{Value, json};

use crate::support::{answers, text};

const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A home with a model for each API.
fn home(servers: &[(ProviderApi, &MockServer)]) -> Home {
    let home = Home::new();
    let providers: serde_json::Map<String, Value> =
        servers.iter().map(|(api, server)| (api.model().to_owned(), api.provider(server))).collect();
    home.configure(&json!({ "providers": providers }));
    home.settings(&json!({"retry": {"enabled": false}, "defaultThinkingLevel": "high"}));
    home
}

fn choose(daemon: &mut Daemon, api: ProviderApi) {
    daemon.done(json!({"type": "set_model", "provider": api.model(), "modelId": api.model()}));
}

/// An answer with thinking, text and two tool calls.
fn busy(api: ProviderApi) -> Reply {
    Reply::stream(api.stream(&[
        Block::Thinking("Let me think of zebras.", "c2lnbmF0dXJl"),
        Block::Text("Looking at both."),
        Block::Call("call_a1", "bash", json!({"command": "echo alpha"})),
        Block::Call("call_b2", "bash", json!({"command": "echo beta; exit 3"})),
    ]))
}

fn prompt_with_image(daemon: &mut Daemon, message: &str) -> Vec<Value> {
    daemon.send(&json!({"id": "i", "type": "prompt", "message": message,
        "images": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]}));
    daemon.settled()
}

#[test]
fn a_conversation_goes_over_every_pair_of_apis() {
    for from in ProviderApi::ALL {
        for to in ProviderApi::ALL.into_iter().filter(|to| *to != from) {
            let first = MockServer::start([busy(from), Reply::stream(from.answer("Both seen."))]);
            let second = MockServer::start([busy(to), Reply::stream(to.answer("Seen again."))]);
            let home = home(&[(from, &first), (to, &second)]);
            let mut daemon = Daemon::start(&home, &[]);
            choose(&mut daemon, from);
            let events = prompt_with_image(&mut daemon, "Look at this.");
            assert_eq!(text(answers(&events)[1]), "Both seen.", "{from:?}");
            choose(&mut daemon, to);
            let events = prompt_with_image(&mut daemon, "And at this.");
            assert_eq!(text(answers(&events)[1]), "Seen again.", "{from:?} to {to:?}");
            first.push(Reply::stream(from.answer("Back home.")));
            choose(&mut daemon, from);
            let events = daemon.prompt("Where were we?");
            assert_eq!(text(answers(&events)[0]), "Back home.", "{to:?} back to {from:?}");

            for (api, requests) in [(from, first.requests()), (to, second.requests())] {
                for request in &requests {
                    assert_eq!(request.target, api.target());
                    api.assert_legal(&request.body);
                }
            }
            let body = second.requests()[1].body.to_string();
            let said = [
                "Look at this.",
                "Looking at both.",
                "echo alpha",
                "alpha\\n",
                "beta\\n",
                "Both seen.",
                PIXEL,
            ];
            for said in said {
                assert!(body.contains(said), "{said} is lost from {from:?} to {to:?}: {body}");
            }
            // Thinking and its signature go only to the model that wrote them.
            let handed_over = &second.requests()[0].body.to_string();
            assert!(
                !handed_over.contains("zebras") && !handed_over.contains("c2lnbmF0dXJl"),
                "{handed_over}"
            );
            let back = first.requests()[2].body.to_string();
            assert_eq!(back.matches("zebras").count(), 1, "{from:?} sees its own thoughts again: {back}");
            let signs = usize::from(from != ProviderApi::Chat);
            assert_eq!(back.matches("c2lnbmF0dXJl").count(), signs, "{from:?}: {back}");
        }
    }
}

#[test]
fn every_api_continues_a_session_that_broke_off() {
    for api in ProviderApi::ALL {
        let server = MockServer::start([Reply::stream(api.answer("Going on."))]);
        let home = home(&[(api, &server)]);
        let other = |content: Value, stop: &str| {
            json!({"role": "assistant", "content": content, "api": "google-generative-ai", "provider": "google",
                "model": "g", "usage": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2,
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}},
                "stopReason": stop, "timestamp": 5})
        };
        let messages = [
            json!({"role": "user", "content": "Begin.", "timestamp": 1}),
            other(
                json!([
                    {"type": "thinking", "thinking": "secret thought", "thinkingSignature": "sig"},
                    {"type": "toolCall", "id": "a very/odd id|with parts and much more than forty characters", "name": "read", "arguments": {"path": "x.png"}},
                    {"type": "toolCall", "id": "lost", "name": "bash", "arguments": {"command": "true"}},
                ]),
                "toolUse",
            ),
            json!({"role": "toolResult", "toolCallId": "a very/odd id|with parts and much more than forty characters",
                "toolName": "read", "isError": false, "timestamp": 6, "content": [
                    {"type": "text", "text": "An image."}, {"type": "image", "data": PIXEL, "mimeType": "image/png"}]}),
            json!({"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "Where is it?"}], "timestamp": 7}),
            other(json!([{"type": "text", "text": "half an ans"}]), "aborted"),
            other(json!([]), "error"),
            other(json!([]), "stop"),
        ];
        let mut lines = vec![
            json!({"type": "session", "version": 3, "id": "s1", "timestamp": "2026-11-21T00:00:00.000Z", "cwd": home.project()}),
        ];
        for (index, message) in messages.iter().enumerate() {
            let parent = (index > 0).then(|| format!("{:08x}", index - 1));
            lines.push(json!({"type": "message", "id": format!("{index:08x}"), "parentId": parent,
                "timestamp": "2026-11-21T00:00:00.000Z", "message": message}));
        }
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        home.write("old.jsonl", &text);
        let model = format!("{0}/{0}", api.model());
        let mut daemon = Daemon::start(&home, &["--session", "old.jsonl", "--model", &model]);
        let events = daemon.prompt("Go on.");
        assert_eq!(crate::support::text(answers(&events)[0]), "Going on.", "{api:?}");
        let body = &server.requests()[0].body;
        api.assert_legal(body);
        let body = body.to_string();
        for said in ["Begin.", "Where is it?", "Go on.", "An image.", PIXEL, "No result provided"] {
            assert!(body.contains(said), "{said} is missing for {api:?}: {body}");
        }
        for hidden in ["secret thought", "half an ans"] {
            assert!(!body.contains(hidden), "{hidden} is shown to {api:?}: {body}");
        }
    }
}

#[test]
fn a_model_that_sees_no_images_is_told_so() {
    for api in ProviderApi::ALL {
        let server = MockServer::start([Reply::stream(api.answer("I cannot see it."))]);
        let home = home(&[(api, &server)]);
        let mut provider = api.provider(&server);
        provider["models"][0]["input"] = json!(["text"]);
        home.configure(&json!({"providers": {api.model(): provider}}));
        let mut daemon = Daemon::start(&home, &["--no-session"]);
        prompt_with_image(&mut daemon, "What is this?");
        let body = &server.requests()[0].body;
        api.assert_legal(body);
        let body = body.to_string();
        assert!(
            body.contains("(image omitted: model does not support images)") && !body.contains(PIXEL),
            "{body}"
        );
    }
}
