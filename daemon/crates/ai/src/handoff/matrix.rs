//! One conversation is handed over from every API to every other, and any generated conversation to every API: the requests have to be
//! legal there.
//!
//! The requests are those of the real adapters, received by a server that only listens.

mod legality;

use std::sync::Arc;

use agentd_protocol::{Json, message::Message, model::Model, model::ThinkingLevel};
use futures::StreamExt;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

use crate::{Account, AwsKeys, Credentials, ProviderRegistry, Request, Secret};

const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A token with the claim that names an account, for the API that wants one.
const TOKEN: &str = "eyJhbGciOiJub25lIn0.\
    eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjIn0sImV4cCI6NDEwMjQ0NDgwMH0.c2ln";

/// The APIs whose requests agentd makes legal: not the test provider's, and not `pi-messages`, which takes a transcript as it is stored and
/// leaves the rest to its gateway.
fn apis() -> Vec<String> {
    let others = ["scripted", "pi-messages"];
    ProviderRegistry::builtin().apis().filter(|api| !others.contains(api)).map(str::to_owned).collect()
}

/// Two models of an API, of families that are treated differently where there are such.
fn ids(api: &str) -> [&'static str; 2] {
    match api {
        "bedrock-converse-stream" => ["anthropic.claude-sonnet-4-5-20250929-v1:0", "amazon.nova-pro-v1:0"],
        "google-generative-ai" | "google-vertex" => ["gemini-3-pro-preview", "gemini-2.5-flash"],
        _ => ["one", "two"],
    }
}

fn model(api: &str, id: &str, base_url: &str) -> Model {
    Model {
        id: id.into(),
        api: api.into(),
        provider: format!("of-{api}"),
        base_url: base_url.into(),
        reasoning: true,
        input: vec!["text".into(), "image".into()],
        context_window: 200_000,
        max_tokens: 32_000,
        ..Model::placeholder()
    }
}

/// Takes requests and refuses each.
struct Listener {
    base_url: String,
    bodies: mpsc::UnboundedReceiver<Vec<u8>>,
}

impl Listener {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, bodies) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::new();
                let (head, length) = loop {
                    assert!(stream.read_buf(&mut request).await.unwrap() > 0, "the request was cut");
                    let Some(head) = request.windows(4).position(|four| four == b"\r\n\r\n") else {
                        continue;
                    };
                    let text = String::from_utf8_lossy(&request[..head]).to_ascii_lowercase();
                    let length =
                        text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                    break (head + 4, length.unwrap_or(0_usize));
                };
                while request.len() < head + length {
                    assert!(stream.read_buf(&mut request).await.unwrap() > 0, "the request was cut");
                }
                let _ = sender.send(request[head..].to_vec());
                let answer = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
                // The client may be gone.
                let _ = stream.write_all(answer).await;
            }
        });
        Self { base_url, bodies }
    }

    /// The body of the request for a transcript.
    async fn body(&mut self, model: Model, messages: Vec<Json<Message>>) -> Value {
        self.body_of(model, messages, |request| request).await
    }

    /// The same of a changed request.
    async fn body_of(
        &mut self,
        model: Model,
        messages: Vec<Json<Message>>,
        change: impl FnOnce(Request) -> Request,
    ) -> Value {
        let api = model.api.clone();
        let credentials = Credentials {
            api_key: Some(Secret::new(TOKEN)),
            aws: (api == "bedrock-converse-stream").then(|| AwsKeys {
                access_key_id: "AKID".into(),
                secret_access_key: Secret::new("secret"),
                session_token: None,
            }),
            account: Account {
                region: Some("us-east-1".into()),
                project: Some("project".into()),
                location: Some("global".into()),
                ..Account::default()
            },
            ..Credentials::default()
        };
        let request = Request {
            thinking_level: ThinkingLevel::High,
            session_id: "session-1".into(),
            credentials,
            ..Request::new(Arc::new(model), messages)
        };
        let provider = ProviderRegistry::builtin().get(&api).unwrap();
        let mut deltas = provider.stream(change(request), CancellationToken::new());
        let mut last = None;
        while let Some(delta) = deltas.next().await {
            last = Some(delta);
        }
        let body = self.bodies.try_recv().unwrap_or_else(|_| panic!("{api} sent nothing: {last:?}"));
        serde_json::from_slice(&body).unwrap_or_else(|error| panic!("{api}: {error}"))
    }
}

/// What a body says of the tool that has to be called.
fn forced(body: &Value) -> Option<&Value> {
    let calling = &body["toolConfig"]["functionCallingConfig"];
    [&body["tool_choice"], &body["toolConfig"]["toolChoice"], calling]
        .into_iter()
        .find(|choice| choice.is_object())
}

#[tokio::test]
async fn a_model_is_made_to_call_a_tool_where_its_api_can_do_that() {
    let function = json!({"type": "function", "function": {"name": "bash"}});
    let named = json!({"type": "function", "name": "bash"});
    let allowed = json!({"mode": "ANY", "allowedFunctionNames": ["bash"]});
    let mut listener = Listener::start().await;
    for api in apis() {
        let id = ids(&api)[0];
        // With thinking off, and with thinking.
        let expected = match api.as_str() {
            "openai-completions" | "mistral-conversations" => [Some(&function), Some(&function)],
            "google-generative-ai" | "google-vertex" => [Some(&allowed), Some(&allowed)],
            "anthropic-messages" => [Some(&json!({"type": "tool", "name": "bash"})), None],
            "bedrock-converse-stream" => [Some(&json!({"tool": {"name": "bash"}})), None],
            _ => [Some(&named), Some(&named)],
        };
        let messages = |tools: Value| -> Vec<Json<Message>> {
            serde_json::from_value(json!([
                {"role": "system", "content": "Be careful.", "toolsAdded": tools, "timestamp": 0},
                {"role": "user", "content": "Go.", "timestamp": 1},
            ]))
            .unwrap()
        };
        for (level, expected) in [ThinkingLevel::Off, ThinkingLevel::High].into_iter().zip(expected) {
            let change =
                |request| Request { thinking_level: level, forced_tool: Some("bash".to_owned()), ..request };
            let model = || model(&api, id, &listener.base_url.clone());
            let (model, bare) = (model(), model());
            let body = listener.body_of(model, messages(tools()), change).await;
            assert_eq!(forced(&body), expected, "{api} at {level:?}: {body}");
            // Where there are no tools, nobody is asked to call one.
            let body = listener.body_of(bare, messages(json!([])), change).await;
            assert_eq!(forced(&body), None, "{api}: {body}");
        }
    }
}

/// The signature of an API's thinking.
fn signature(api: &str) -> Value {
    match api {
        "openai-responses" | "azure-openai-responses" | "openai-codex-responses" => json!(
            json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "ZW5jcnlwdGVk",
                "summary": [{"type": "summary_text", "text": "zebra thoughts"}]})
            .to_string()
        ),
        "openai-completions" => json!("reasoning_content"),
        "mistral-conversations" => Value::Null,
        _ => json!("c2lnbmF0dXJlMTIz"),
    }
}

fn image() -> Value {
    json!({"type": "image", "data": PIXEL, "mimeType": "image/png"})
}

fn tools() -> Value {
    let tool = |name: &str| {
        json!({"name": name, "description": "A tool.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}})
    };
    json!([tool("bash"), tool("read")])
}

/// A conversation with a model of `api` that holds everything that is hard to hand over; where it goes on with another model, with
/// odd ids of calls.
fn conversation(api: &str, id: &str, is_foreign: bool) -> Vec<Json<Message>> {
    let answer = |content: Value, stop: &str| {
        json!({"role": "assistant", "content": content, "api": api, "provider": format!("of-{api}"), "model": id,
            "stopReason": stop, "timestamp": 5})
    };
    let thinking = |text: &str| match signature(api) {
        Value::Null => json!({"type": "thinking", "thinking": text}),
        signature => json!({"type": "thinking", "thinking": text, "thinkingSignature": signature}),
    };
    let call = |id: &str, name: &str| json!({"type": "toolCall", "id": id, "name": name, "arguments": {"path": "a b/\u{e9}\u{1f600}.png", "": 1}});
    let result = |id: &str, name: &str, is_error: bool, content: Value| {
        json!({"role": "toolResult", "toolCallId": id, "toolName": name, "isError": is_error, "content": content,
            "timestamp": 6})
    };
    let user = |content: Value| json!({"role": "user", "content": content, "timestamp": 1});
    let text = |text: &str| json!({"type": "text", "text": text});
    let (first, second) = match (is_foreign, api.ends_with("-responses")) {
        (true, _) => (
            "call_a/1|fc_a%1",
            "toolu-\u{fc}ber-and-much-longer-than-forty-or-sixty-four-characters-are-0123456789",
        ),
        (false, true) => ("call_a1|fc_a1", "call_b2|fc_b2"),
        (false, false) => ("a1B2c3D4e", "f5G6h7I8j"),
    };
    serde_json::from_value(json!([
        {"role": "system", "content": "Be careful.", "sections": {"style": "Short."}, "toolsAdded": tools(), "timestamp": 0},
        user(json!([text(""), text("Look \u{1f600} at\u{2028}this."), image()])),
        answer(json!([
            thinking("zebra thoughts"),
            {"type": "thinking", "thinking": "[Reasoning redacted]", "thinkingSignature": "cmVkYWN0ZWQ=", "redacted": true},
            {"type": "text", "text": "Looking.", "textSignature": "{\"v\":1,\"id\":\"msg_0123\"}"},
            text(""), text("  \n"),
            call(first, "read"), call(second, "bash"),
        ]), "toolUse"),
        {"role": "system", "sections": {"style": "Long."}, "timestamp": 6},
        result(second, "bash", true, json!([image()])),
        result(first, "read", false, json!([text("An image:"), image(), text(" ")])),
        answer(json!([text("Seen both.")]), "stop"),
        {"role": "bashExecution", "command": "make", "output": "ok", "exitCode": 0, "timestamp": 7},
        user(json!("Again.")),
        answer(json!([thinking("lost thoughts"), text("half an ans"), call("aborted", "bash")]), "aborted"),
        {"role": "compactionSummary", "summary": "Much was said.", "tokensBefore": 5, "timestamp": 8},
        answer(json!([call("orphan", "bash")]), "toolUse"),
        answer(json!([text(" ")]), "stop"),
        answer(json!([]), "error"),
        user(json!("")),
        user(json!([text("And now?")])),
        answer(json!([text("Now this.")]), "stop"),
        user(json!("Go on.")),
    ]))
    .unwrap()
}

#[tokio::test]
async fn every_api_takes_up_what_every_other_began() {
    let mut listener = Listener::start().await;
    for from in apis() {
        for to in apis() {
            for (id, is_same) in [(ids(&to)[0], from == to), (ids(&to)[1], false)] {
                let target = model(&to, id, &listener.base_url);
                let messages = conversation(&from, ids(&from)[0], !is_same);
                let body = listener.body(target, messages).await;
                let what = format!("{from} to {to} ({id})");
                legality::check(&to, &body, &what);
                let text = body.to_string();
                let said = [
                    "Be careful.",
                    "Look \u{1f600} at",
                    "Looking.",
                    "An image:",
                    "Seen both.",
                    "make",
                    "Again.",
                    "Much was said.",
                    "No result provided",
                    "And now?",
                    "Now this.",
                    "Go on.",
                    PIXEL,
                ];
                for said in said {
                    assert!(text.contains(said), "{said} is lost, {what}: {text}");
                }
                for gone in ["half an ans", "lost thoughts", "aborted"] {
                    assert!(!text.contains(gone), "{gone} is there, {what}: {text}");
                }
                let own = ["zebra", "cmVkYWN0ZWQ", "c2lnbmF0dXJl", "ZW5jcnlwdGVk", "msg_0123"];
                if !is_same {
                    for foreign in own {
                        assert!(!text.contains(foreign), "{foreign} is shown, {what}: {text}");
                    }
                } else {
                    assert!(text.contains("zebra"), "its own thoughts are lost, {what}: {text}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_model_that_sees_no_images_gets_none_over_any_api() {
    let mut listener = Listener::start().await;
    for from in apis() {
        for to in apis() {
            let target = Model { input: vec!["text".into()], ..model(&to, ids(&to)[1], &listener.base_url) };
            let body = listener.body(target, conversation(&from, ids(&from)[0], true)).await;
            legality::check(&to, &body, &format!("{from} to {to}, blind"));
            let text = body.to_string();
            assert!(!text.contains(PIXEL), "{from} to {to}: {text}");
            assert!(
                text.contains("(image omitted: model does not support images)"),
                "{from} to {to}: {text}"
            );
            assert!(text.contains("(tool image omitted: model does not support images)"), "{from} to {to}");
        }
    }
}

/// An answer of the model that is asked next, or of another. The ids of calls that a server gave itself are as legal as it wants
/// them.
fn any_answer(mut content: Vec<Value>, api: &str, stop: &str, is_own: bool) -> Value {
    if is_own {
        for block in content.iter_mut().filter(|block| block["type"] == "toolCall") {
            let id = block["id"].as_str().unwrap_or_default();
            if !(api.ends_with("-responses") && id.starts_with("call_")) {
                block["id"] = json!(crate::providers::call_id::sanitized(id));
            }
        }
    }
    json!({"role": "assistant", "content": content, "api": api, "provider": format!("of-{api}"),
        "model": if is_own { ids(api)[0] } else { "another" }, "stopReason": stop})
}

/// A message of any kind, as odd as files may have them.
fn any_message(apis: Vec<String>) -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec!["", " ", "\n", "Yes.", "\u{1f600}", "a\u{0}b"]);
    let call_ids =
        prop::sample::select(vec!["", "a", "b", "a|b", "a/b", "a_b", "\u{fc}", "call_1|fc_1", "call_1|fc_2"]);
    let block = (0..5_u8, words.clone(), call_ids.clone()).prop_map(|(kind, text, id)| match kind {
        0 => json!({"type": "thinking", "thinking": text, "thinkingSignature": "c2ln"}),
        1 => json!({"type": "thinking", "thinking": text, "redacted": true, "thinkingSignature": "c2ln"}),
        2 => json!({"type": "toolCall", "id": id, "name": "bash", "arguments": {"path": text}}),
        _ => json!({"type": "text", "text": text}),
    });
    let part = (any::<bool>(), words.clone()).prop_map(|(is_image, text)| match is_image {
        true => image(),
        false => json!({"type": "text", "text": text}),
    });
    let parts = prop::collection::vec(part, 0..3);
    let sources = prop::sample::select(apis);
    let stops = prop::sample::select(vec!["stop", "toolUse", "toolUse", "length", "error", "aborted"]);
    prop_oneof![
        2 => parts.clone().prop_map(|content| json!({"role": "user", "content": content})),
        4 => (prop::collection::vec(block, 0..5), sources, stops, any::<bool>())
            .prop_map(|(content, api, stop, is_own)| any_answer(content, &api, stop, is_own)),
        4 => (call_ids, parts, any::<bool>()).prop_map(|(id, content, is_error)| {
            json!({"role": "toolResult", "toolCallId": id, "toolName": "bash", "content": content, "isError": is_error})
        }),
        1 => words.clone().prop_map(|text| json!({"role": "system", "content": text})),
        1 => words.clone().prop_map(|text| json!({"role": "bashExecution", "command": text, "output": text})),
        1 => words.prop_map(|text| json!({"role": "compactionSummary", "summary": text})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_conversation_is_legal_over_every_api(messages in prop::collection::vec(any_message(apis()), 0..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut listener = Listener::start().await;
            let first = json!({"role": "system", "content": "Be careful.", "toolsAdded": tools()});
            let last = json!({"role": "user", "content": "Go on."});
            let all: Vec<&Value> = [&first, &last].into_iter().chain(&messages).chain([&last]).collect();
            for api in apis() {
                for id in ids(&api) {
                    let transcript: Vec<Json<Message>> = serde_json::from_value(json!(all)).unwrap();
                    let body = listener.body(model(&api, id, &listener.base_url), transcript).await;
                    legality::check(&api, &body, &format!("to {api} ({id})"));
                }
            }
        });
    }
}
