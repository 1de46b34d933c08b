//! The adapter against TCP servers that misbehave.

use std::{future::Future, sync::Arc, time::Duration};

use agentd_protocol::{Json, message::Message, model::Model};
use futures::StreamExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::failure::FailureKind;
use crate::{Credentials, Delta, Provider, Secret, failure::classify_message, http::HttpProvider};

const KEY: &str = "sk-secret-0123456789";

/// A server for one connection: reads the request, then runs `then`.
async fn serve<F, T>(
    behaviour: impl FnOnce(TcpStream) -> F + Send + 'static,
) -> (String, tokio::task::JoinHandle<T>)
where
    F: Future<Output = T> + Send,
    T: Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await;
        behaviour(stream).await
    });
    (base, task)
}

/// Reads one request: its headers and its body.
async fn read_request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).await.unwrap();
        request.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&request);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return text.into_owned();
            }
        }
        assert!(count > 0, "the request was cut");
    }
}

fn request(base_url: &str) -> Request {
    let message: Json<Message> = serde_json::from_str(r#"{"role":"user","content":"hi"}"#).unwrap();
    let model =
        Model { base_url: base_url.into(), provider: "p".into(), id: "m".into(), ..Model::placeholder() };
    Request {
        session_id: "s".into(),
        credentials: Credentials {
            api_key: Some(Secret::new(KEY)),
            headers: Vec::new(),
            ..Credentials::default()
        },
        idle_timeout: Some(Duration::from_secs(20)),
        ..Request::new(Arc::new(model), vec![message])
    }
}

fn provider() -> HttpProvider<OpenAiCompletions> {
    HttpProvider::new(Arc::default(), OpenAiCompletions)
}

async fn all(request: Request) -> Vec<Delta> {
    provider().stream(request, CancellationToken::new()).collect().await
}

async fn failure(request: Request) -> Failure {
    match all(request).await.pop() {
        Some(Delta::Failed { failure, .. }) => {
            // A session file keeps only the message, which has to mean the same.
            assert_eq!(classify_message("p", &failure.message), failure.kind, "{failure}");
            failure
        }
        other => panic!("{other:?}"),
    }
}

/// The failure of a server that sends these bytes and closes.
async fn answered(bytes: &str) -> Failure {
    let bytes = bytes.to_owned();
    let (base, task) = serve(|mut stream| async move {
        stream.write_all(bytes.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
    })
    .await;
    let failure = failure(request(&base)).await;
    task.await.unwrap();
    failure
}

fn response(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
const HELLO: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n";

#[tokio::test]
async fn statuses_become_failures_with_their_body() {
    let failure = answered(&response("503 Unavailable", r#"{"error":{"message":"overloaded"}}"#)).await;
    assert_eq!(
        (failure.kind, failure.message.as_str()),
        (FailureKind::Retryable, r#"503: {"message":"overloaded"}"#)
    );
    let failure = answered(&response("502 Bad Gateway", "<html>bad</html>")).await;
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Retryable, "502: <html>bad</html>"));
    let failure = answered(&response("500 Oops", "")).await;
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Retryable, "500: (no body)"));
    let failure = answered(&response("413 Too Large", "big")).await;
    assert_eq!(failure.kind, FailureKind::ContextOverflow);
    let failure =
        answered("HTTP/1.1 308 Moved\r\nLocation: https://elsewhere/\r\nContent-Length: 0\r\n\r\n").await;
    assert!(
        failure.message.contains("redirects to https://elsewhere/") && failure.message.contains("baseUrl"),
        "{failure}"
    );
}

#[tokio::test]
async fn a_key_that_the_server_repeats_is_not_shown() {
    let body = format!(r#"{{"error":{{"message":"bad key {KEY} in Bearer {KEY}"}}}}"#);
    let failure = answered(&response("401 No", &body)).await;
    assert_eq!(failure.message, r#"401: {"message":"bad key [redacted] in Bearer [redacted]"}"#);
    assert_eq!(failure.kind, FailureKind::Auth);
    let failure = answered(&format!("{HEAD}data: {{\"error\":\"{KEY}\"}}\n\n")).await;
    assert_eq!(failure.message, "[redacted]");
    let failure = answered(&format!("{HEAD}{KEY} is no event stream")).await;
    assert!(!failure.message.contains(KEY), "{failure}");
    let failure = answered(&format!("{HEAD}data: {KEY}\n\n")).await;
    assert!(!failure.message.contains(KEY), "{failure}");
}

#[tokio::test]
async fn an_answer_streams_and_ends() {
    let (base, task) = serve(|mut stream| async move {
        stream.write_all(format!("{HEAD}{HELLO}").as_bytes()).await.unwrap();
        stream
            .write_all(b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
            .await
            .unwrap();
        // The answer ends although the connection does not.
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap()
    })
    .await;
    let deltas = all(request(&base)).await;
    assert_eq!(deltas.first(), Some(&Delta::Started));
    assert!(matches!(deltas.last(), Some(Delta::Done { .. })), "{deltas:?}");
    assert_eq!(task.await.unwrap(), 0);
}

#[tokio::test]
async fn a_cut_stream_is_told_from_a_lost_connection() {
    let failure = answered(&format!("{HEAD}{HELLO}")).await;
    assert_eq!(
        (failure.kind, failure.message.as_str()),
        (FailureKind::Retryable, "Stream ended without finish_reason")
    );
    let chunked =
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{HELLO}\r\n", HELLO.len());
    let failure = answered(&chunked).await;
    assert_eq!(failure.kind, FailureKind::Retryable);
    assert!(
        failure.message.starts_with("Connection lost in the middle of the answer of 127.0.0.1:"),
        "{failure}"
    );
    let failure = answered("").await;
    assert_eq!(failure.kind, FailureKind::Retryable);
    assert!(failure.message.starts_with("Connection lost before 127.0.0.1:"), "{failure}");
}

#[tokio::test]
async fn a_web_page_is_no_answer() {
    let failure = answered(&response("200 OK", "<!doctype html><title>Log in</title>")).await;
    assert!(failure.message.contains("/v1/chat/completions answered with a web page"), "{failure}");
}

#[tokio::test]
async fn a_refused_connection_names_the_address() {
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let failure = failure(request(&format!("http://user:pass@127.0.0.1:{port}/v1?k=1"))).await;
    assert_eq!(failure.kind, FailureKind::Retryable);
    let start = format!("Cannot connect to http://127.0.0.1:{port}/v1");
    assert!(failure.message.starts_with(&start) && failure.message.contains("refused"), "{failure}");
    assert!(
        failure.message.contains("Check that the server is running") && !failure.message.contains("pass"),
        "{failure}"
    );
}

/// A server that sends `bytes` and then nothing, until the client is gone.
async fn silent_server(bytes: String) -> (String, tokio::task::JoinHandle<usize>, oneshot::Receiver<()>) {
    let (sent, was_sent) = oneshot::channel();
    let (base, task) = serve(|mut stream| async move {
        stream.write_all(bytes.as_bytes()).await.unwrap();
        // Some tests do not wait for this.
        let _ = sent.send(());
        let mut rest = Vec::new();
        // A reset also means that the client is gone.
        stream.read_to_end(&mut rest).await.unwrap_or(0)
    })
    .await;
    (base, task, was_sent)
}

#[tokio::test]
async fn silence_before_and_inside_of_an_answer_times_out() {
    for bytes in [String::new(), format!("{HEAD}{HELLO}")] {
        let (base, task, _) = silent_server(bytes).await;
        let mut request = request(&base);
        request.idle_timeout = Some(Duration::from_millis(50));
        let failure = failure(request).await;
        assert_eq!(failure.kind, FailureKind::Retryable);
        let host = base.trim_start_matches("http://").trim_end_matches("/v1");
        let expected = format!(
            "The request timed out: {host} sent nothing for 0.05 s. The limit is the setting httpIdleTimeoutMs (50)."
        );
        assert_eq!(failure.message, expected);
        task.await.unwrap();
    }
}

#[tokio::test]
async fn the_time_until_an_answer_begins_has_a_limit_of_its_own() {
    let (base, task, _) = silent_server(String::new()).await;
    let mut request = request(&base);
    request.retries.first_byte_timeout = Some(Duration::from_millis(40));
    let failure = failure(request).await;
    assert_eq!(failure.kind, FailureKind::Retryable);
    let limit = "began no answer within 0.04 s. The limit is the setting retry.provider.timeoutMs (40).";
    assert!(failure.message.ends_with(limit), "{failure}");
    task.await.unwrap();
}

#[tokio::test]
async fn what_does_not_pass_is_sent_once() {
    let quota = r#"{"error":{"type":"insufficient_quota","message":"You exceeded your current quota"}}"#;
    let overflow = r#"{"error":{"message":"request (3030 tokens) exceeds the available context size"}}"#;
    for (status, body, kind) in [
        ("429 No", quota, FailureKind::Fatal),
        ("429 No\r\nx-should-retry: true", quota, FailureKind::Fatal),
        ("500 No", overflow, FailureKind::ContextOverflow),
    ] {
        let bytes = response(status, body);
        // One connection only: a second attempt would fail differently.
        let (base, task) = serve(|mut stream| async move {
            stream.write_all(bytes.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        })
        .await;
        let mut request = request(&base);
        request.retries.max = 3;
        let failure = failure(request).await;
        task.await.unwrap();
        assert_eq!(failure.kind, kind, "{status}: {failure}");
        assert!(failure.message.starts_with(&format!("{}: {{", &status[..3])), "{failure}");
    }
}

#[tokio::test]
async fn an_abort_closes_the_connection_and_keeps_the_text() {
    for (bytes, started) in [(String::new(), false), (format!("{HEAD}{HELLO}"), true)] {
        let (base, task, was_sent) = silent_server(bytes).await;
        let cancel = CancellationToken::new();
        let mut stream = provider().stream(request(&base), cancel.clone());
        let mut deltas = Vec::new();
        if started {
            while !matches!(deltas.last(), Some(Delta::Extend { .. })) {
                deltas.push(stream.next().await.unwrap());
            }
            cancel.cancel();
        } else {
            let abort = async {
                was_sent.await.unwrap();
                cancel.cancel();
            };
            let (first, ()) = tokio::join!(stream.next(), abort);
            deltas.push(first.unwrap());
        }
        deltas.extend(stream.by_ref().collect::<Vec<_>>().await);
        assert!(
            matches!(deltas.last(), Some(Delta::Failed { failure, .. }) if *failure == Failure::aborted()),
            "{deltas:?}"
        );
        assert_eq!(deltas.iter().any(|delta| matches!(delta, Delta::Seal { .. })), started);
        // The server sees the end although the stream still exists.
        assert_eq!(task.await.unwrap(), 0);
        drop(stream);
    }
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let (base, task, _) = silent_server(format!("{HEAD}{HELLO}")).await;
    let mut stream = provider().stream(request(&base), CancellationToken::new());
    assert_eq!(stream.next().await, Some(Delta::Started));
    drop(stream);
    assert_eq!(task.await.unwrap(), 0);
}

#[tokio::test]
async fn a_bad_address_or_key_is_said_before_anything_is_sent() {
    let failed = failure(request("")).await;
    assert!(failed.message.contains("baseUrl of provider \"p\" is missing"), "{failed}");
    let mut request = request("http://127.0.0.1:1/v1");
    request.credentials.api_key = Some(Secret::new("a\nbcdef"));
    let failed = failure(request).await;
    assert!(failed.message.contains("API key") && !failed.message.contains("bcdef"), "{failed}");
}
