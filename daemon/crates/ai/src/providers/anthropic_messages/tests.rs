//! The adapter over a real connection.

use std::{sync::Arc, time::Duration};

use agentd_protocol::{Json, message::Message};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::failure::FailureKind;
use crate::{Credentials, Delta, Provider, Secret, http::HttpProvider};

const KEY: &str = "sk-ant-0123456789";

/// Asks a server that gives `answer` to any request; the deltas, and what it was sent.
async fn ask(answer: &str) -> (Vec<Delta>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1/", listener.local_addr().unwrap());
    let answer = answer.to_owned();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        // The body comes last and is JSON.
        while !request.ends_with(b"}") {
            let count = stream.read_buf(&mut request).await.unwrap();
            assert!(count > 0, "the request was cut");
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(request).unwrap()
    });
    let message: Json<Message> = serde_json::from_str(r#"{"role":"user","content":"hi"}"#).unwrap();
    let model = Model { base_url, id: "m".into(), ..Model::placeholder() };
    let request = Request {
        credentials: Credentials {
            api_key: Some(Secret::new(KEY)),
            headers: Vec::new(),
            ..Credentials::default()
        },
        idle_timeout: Some(Duration::from_secs(20)),
        ..Request::new(Arc::new(model), vec![message])
    };
    let provider = HttpProvider::new(Arc::default(), AnthropicMessages);
    let deltas = provider.stream(request, CancellationToken::new()).collect().await;
    (deltas, server.await.unwrap())
}

#[tokio::test]
async fn a_request_and_its_answer() {
    let body = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"m\"}}\n\n\
                event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let (deltas, request) = ask(&answer).await;
    let done = Delta::Done { stop_reason: agentd_protocol::message::StopReason::Stop, raw_stop_reason: None };
    assert_eq!(deltas, [Delta::Started, Delta::ResponseId("msg_1".into()), done]);
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/messages?beta=true HTTP/1.1\r\n"), "{head}");
    assert!(
        head.contains(&format!("x-api-key: {KEY}")) && head.contains("anthropic-version: 2023-06-01"),
        "{head}"
    );
    let content = json!([{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]);
    assert_eq!(
        serde_json::from_str::<Value>(body).unwrap(),
        json!({"model": "m", "max_tokens": 16_384, "stream": true, "messages": [{"role": "user", "content": content}]})
    );
}

#[tokio::test]
async fn a_refusal_does_not_show_the_key() {
    let body = json!({"type": "error", "error": {"type": "authentication_error", "message": format!("bad key {KEY}")}});
    let body = body.to_string();
    let answer = format!("HTTP/1.1 401 Unauthorized\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let (deltas, _) = ask(&answer).await;
    let [Delta::Failed { failure, .. }] = &deltas[..] else { panic!("{deltas:?}") };
    assert_eq!(failure.kind, FailureKind::Auth);
    assert!(failure.message.contains("authentication_error") && !failure.message.contains(KEY), "{failure}");
}

#[test]
fn addresses_may_name_the_version() {
    let check = |base: &str, expected: &str| {
        let model = Model { base_url: base.into(), ..Model::placeholder() };
        assert_eq!(address(&model).unwrap().as_str(), expected);
    };
    check("https://api.anthropic.com", "https://api.anthropic.com/v1/messages?beta=true");
    check(" http://h:1/v1/ ", "http://h:1/v1/messages?beta=true");
    check("http://h/v1?x=1", "http://h/v1/messages?beta=true&x=1");
    check("https://h/v1/a/anthropic/", "https://h/v1/a/anthropic/v1/messages?beta=true");
    assert!(address(&Model::placeholder()).unwrap_err().message.contains("https://api.anthropic.com"));
}
