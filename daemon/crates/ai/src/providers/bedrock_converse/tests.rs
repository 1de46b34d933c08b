//! The adapter over a real connection.

use std::{sync::Arc, time::Duration};

use agentd_http::AwsKeys;
use agentd_protocol::{Json, message::Message, model::Model};
use futures::StreamExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    Credentials, Delta, Provider, Secret,
    http::{
        HttpProvider,
        event_stream::tests::{event, exception},
    },
};

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

/// An answer as servers write it.
fn http(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn good() -> Vec<u8> {
    let body = [
        event("messageStart", r#"{"role":"assistant"}"#),
        event("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"hi"}}"#),
        event("contentBlockStop", r#"{"contentBlockIndex":0}"#),
        event("messageStop", r#"{"stopReason":"end_turn"}"#),
        event("metadata", r#"{"usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}"#),
    ];
    http("200 OK", "content-type: application/vnd.amazon.eventstream\r\n", &body.concat())
}

fn keys() -> Credentials {
    let mut credentials = Credentials {
        aws: Some(AwsKeys {
            access_key_id: "AKIDEXAMPLE".into(),
            secret_access_key: Secret::new(SECRET),
            session_token: Some(Secret::new("session-token-1")),
        }),
        ..Credentials::default()
    };
    credentials.account.region = Some("eu-west-3".into());
    credentials
}

/// Asks a server that gives one of `answers` to each request; the deltas, and the heads of the requests.
async fn ask(answers: Vec<Vec<u8>>, credentials: Credentials) -> (Vec<Delta>, Vec<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let mut requests = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            // The body comes last and is JSON.
            while !request.ends_with(b"}}") {
                let count = stream.read_buf(&mut request).await.unwrap();
                assert!(count > 0, "the request was cut");
            }
            stream.write_all(&answer).await.unwrap();
            requests.push(String::from_utf8(request).unwrap());
        }
        requests
    });
    let message: Json<Message> = serde_json::from_str(r#"{"role":"user","content":"hi"}"#).unwrap();
    let model = Model {
        base_url,
        id: "a.b-v1:0".into(),
        provider: "amazon-bedrock".into(),
        max_tokens: 9,
        ..Model::placeholder()
    };
    let request = Request {
        credentials,
        idle_timeout: Some(Duration::from_secs(20)),
        ..Request::new(Arc::new(model), vec![message])
    };
    let provider = HttpProvider::new(Arc::default(), BedrockConverse);
    let deltas = provider.stream(request, CancellationToken::new()).collect().await;
    (deltas, server.await.unwrap())
}

fn failure(deltas: &[Delta]) -> &Failure {
    match deltas {
        [Delta::Failed { failure, .. }] => failure,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_signed_request_and_its_answer() {
    let (deltas, requests) = ask(vec![good()], keys()).await;
    assert!(matches!(deltas.last(), Some(Delta::Done { .. })), "{deltas:?}");
    let request = requests[0].to_lowercase();
    assert!(request.starts_with("post /model/a.b-v1%3a0/converse-stream http/1.1\r\n"), "{request}");
    for part in [
        "accept: application/vnd.amazon.eventstream\r\n",
        "x-amz-security-token: session-token-1\r\n",
        "authorization: aws4-hmac-sha256 credential=akidexample/",
        "/eu-west-3/bedrock/aws4_request, signedheaders=content-type;host;x-amz-date;x-amz-security-token, signature=",
        "user-agent: agentd/",
    ] {
        assert!(request.contains(part), "{part} in {request}");
    }
    assert!(!requests[0].contains(SECRET));
}

#[tokio::test]
async fn a_bearer_key_is_not_signed() {
    let credentials = Credentials {
        api_key: Some(Secret::new("bedrock-api-key-1")),
        aws: keys().aws,
        ..Credentials::default()
    };
    let (deltas, requests) = ask(vec![good()], credentials).await;
    assert!(matches!(deltas.last(), Some(Delta::Done { .. })), "{deltas:?}");
    assert!(requests[0].contains("authorization: Bearer bedrock-api-key-1\r\n"), "{}", requests[0]);
    assert!(!requests[0].contains("x-amz-date"), "{}", requests[0]);
}

#[tokio::test]
async fn a_missing_region_is_named_before_anything_is_sent() {
    let mut credentials = keys();
    credentials.account.region = None;
    let (deltas, _) = ask(Vec::new(), credentials).await;
    assert!(failure(&deltas).message.contains("Set AWS_REGION"), "{deltas:?}");
}

#[tokio::test]
async fn refusals_say_what_they_are() {
    let body = br#"{"message":"You cannot use this model; session-token-1"}"#;
    let refused = http("403 Forbidden", "x-amzn-ErrorType: AccessDeniedException:http://x/\r\n", body);
    let (deltas, _) = ask(vec![refused], keys()).await;
    let refused = failure(&deltas);
    assert_eq!(refused.kind, FailureKind::Auth);
    assert_eq!(refused.message, "AccessDeniedException: You cannot use this model; [redacted]");
    // An exception before the first event has a status of success.
    let body = exception("serviceUnavailableException", r#"{"message":"Bedrock is busy."}"#);
    let (deltas, _) = ask(vec![http("200 OK", "", &body)], keys()).await;
    let Some(Delta::Failed { failure, .. }) = deltas.last() else { panic!("{deltas:?}") };
    assert_eq!(failure.message, "Service unavailable: Bedrock is busy.");
}

/// The refusal of a signature by a server whose clock is `hours` ahead.
fn late(hours: u64) -> Vec<u8> {
    let time = std::time::SystemTime::now() + Duration::from_secs(hours * 3600);
    let headers =
        format!("x-amzn-ErrorType: InvalidSignatureException\r\ndate: {}\r\n", httpdate::fmt_http_date(time));
    let body = br#"{"message":"Signature expired: 20150830T123600Z is now earlier than 20150830T133600Z"}"#;
    http("403 Forbidden", &headers, body)
}

fn signed_at(request: &str) -> String {
    let (_, rest) = request.split_once("x-amz-date: ").unwrap();
    rest[..16].to_owned()
}

#[tokio::test]
async fn a_wrong_clock_is_made_up_for() {
    let (deltas, requests) = ask(vec![late(30), good()], keys()).await;
    assert!(matches!(deltas.last(), Some(Delta::Done { .. })), "{deltas:?}");
    let (first, second) = (signed_at(&requests[0]), signed_at(&requests[1]));
    assert!(first[..8] < second[..8], "{first} {second}");
}

#[tokio::test]
async fn a_clock_that_cannot_be_made_up_for_is_named() {
    let (deltas, requests) = ask(vec![late(2), late(2)], keys()).await;
    let failure = failure(&deltas);
    assert!(failure.message.contains("the clock of this machine is 2 h behind: set it"), "{failure}");
    assert_eq!((requests.len(), failure.kind), (2, FailureKind::Auth));
}
