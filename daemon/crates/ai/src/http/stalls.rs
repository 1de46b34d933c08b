//! Servers that take too long, phase by phase, and servers that count what they get.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agentd_protocol::{Json, message::Message, model::Model};
use futures::StreamExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Deadlines, Delta, Network, OnStall, ProgressLimit, Provider, Request, Stall, StallPhase,
    failure::{Failure, FailureKind, classify_message},
    http::HttpProvider,
    providers::openai_completions::OpenAiCompletions,
};

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n";
const EMPTY: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"\"}}]}\n\n";
const END: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

const SHORT: Duration = Duration::from_millis(60);

/// The behaviour of a server on the connection of its nth request, from 0.
type Behaviour = Arc<dyn Fn(usize, TcpStream) -> futures::future::BoxFuture<'static, ()> + Send + Sync>;

/// A server that counts requests, on however many connections.
async fn server(behaviour: Behaviour) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (count, behaviour) = (Arc::clone(&counted), Arc::clone(&behaviour));
            tokio::spawn(async move {
                if read_request(&mut stream).await {
                    behaviour(count.fetch_add(1, Ordering::SeqCst), stream).await;
                }
            });
        }
    });
    (base, count)
}

/// Reads one request; false where the connection ends before it does.
async fn read_request(stream: &mut TcpStream) -> bool {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).await.unwrap_or(0);
        request.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return true;
            }
        }
        if count == 0 {
            return false;
        }
    }
}

/// Sends a beginning, and then the same again and again until the client is gone.
fn droning(beginning: &str, again: &'static str) -> Behaviour {
    let beginning = beginning.to_owned();
    Arc::new(move |_, mut stream| {
        let beginning = beginning.clone();
        Box::pin(async move {
            stream.write_all(beginning.as_bytes()).await.unwrap();
            let mut ticks = tokio::time::interval(Duration::from_millis(5));
            loop {
                ticks.tick().await;
                if stream.write_all(again.as_bytes()).await.is_err() {
                    return;
                }
            }
        })
    })
}

fn request(base_url: &str, deadlines: Deadlines) -> Request {
    let message: Json<Message> = serde_json::from_str(r#"{"role":"user","content":"hi"}"#).unwrap();
    let model =
        Model { base_url: base_url.into(), provider: "p".into(), id: "m".into(), ..Model::placeholder() };
    Request {
        idle_timeout: Some(Duration::from_secs(20)),
        deadlines,
        ..Request::new(Arc::new(model), vec![message])
    }
}

async fn all(request: Request) -> Vec<Delta> {
    let provider = HttpProvider::new(Arc::default(), OpenAiCompletions);
    provider.stream(request, CancellationToken::new()).collect().await
}

/// The stall that a failed answer tells of right before its failure, and that failure.
fn stalled(deltas: &[Delta]) -> (Stall, &Failure) {
    let [.., Delta::Stalled(stall), Delta::Failed { failure, .. }] = deltas else { panic!("{deltas:?}") };
    assert_eq!(failure.stall.as_ref(), Some(stall));
    // A session file keeps the text alone.
    assert_eq!(classify_message("p", &failure.message), failure.kind, "{failure}");
    assert!(stall.waited >= stall.limit, "{stall:?}");
    (*stall, failure)
}

#[tokio::test]
async fn each_phase_has_its_limit_and_names_its_setting() {
    let check = async |behaviour: Behaviour, deadlines: Deadlines, phase: StallPhase, setting: &str| {
        let (base, count) = server(behaviour).await;
        let deltas = all(request(&base, deadlines)).await;
        let (stall, failure) = stalled(&deltas);
        assert_eq!((stall.phase, stall.limit, stall.sent_again), (phase, SHORT, false), "{failure}");
        assert_eq!((failure.kind, stall.may_pass), (FailureKind::Retryable, true));
        assert!(failure.message.ends_with(&format!("The limit is the setting {setting} (60).")), "{failure}");
        assert_eq!(count.load(Ordering::SeqCst), 1);
        let given_up = Deadlines { on_stall: OnStall::Fail, ..deadlines };
        let deltas = all(request(&base, given_up)).await;
        let (stall, failure) = stalled(&deltas);
        assert_eq!((failure.kind, stall.may_pass), (FailureKind::Fatal, false), "{failure}");
        assert!(failure.message.contains("deadlines.onStall"), "{failure}");
    };
    let none = Deadlines { progress: ProgressLimit::Unlimited, ..Deadlines::default() };
    let first_byte = Deadlines { first_byte: Some(SHORT), ..none };
    let hung: Behaviour = Arc::new(|_, stream| Box::pin(async move { drain(stream).await }));
    check(hung, first_byte, StallPhase::FirstByte, "deadlines.firstByteMs").await;
    // Headers alone are no beginning of an answer.
    let headers: Behaviour = Arc::new(|_, mut stream| {
        Box::pin(async move {
            stream.write_all(HEAD.as_bytes()).await.unwrap();
            drain(stream).await;
        })
    });
    check(headers, first_byte, StallPhase::FirstByte, "deadlines.firstByteMs").await;
    let progress = Deadlines { progress: ProgressLimit::Within(SHORT), ..none };
    for again in [": ping\n\n", EMPTY] {
        let beginning = format!("{HEAD}{TEXT}");
        check(droning(&beginning, again), progress, StallPhase::Progress, "deadlines.progressMs").await;
    }
    let request = Deadlines { request: Some(SHORT), ..none };
    check(droning(HEAD, TEXT), request, StallPhase::Request, "deadlines.requestMs").await;
}

async fn drain(mut stream: TcpStream) {
    let mut rest = Vec::new();
    // A reset also means that the client is gone.
    let _ = stream.read_to_end(&mut rest).await;
}

#[tokio::test]
async fn content_in_time_is_no_stall() {
    let behaviour: Behaviour = Arc::new(|_, mut stream| {
        Box::pin(async move {
            stream.write_all(HEAD.as_bytes()).await.unwrap();
            for _ in 0..4 {
                tokio::time::sleep(Duration::from_millis(150)).await;
                stream.write_all(TEXT.as_bytes()).await.unwrap();
            }
            stream.write_all(END.as_bytes()).await.unwrap();
        })
    });
    let (base, _) = server(behaviour).await;
    let deadlines =
        Deadlines { progress: ProgressLimit::Within(Duration::from_millis(500)), ..Deadlines::default() };
    let deltas = all(request(&base, deadlines)).await;
    assert!(matches!(deltas.last(), Some(Delta::Done { .. })), "{deltas:?}");
    assert!(!deltas.iter().any(|delta| matches!(delta, Delta::Stalled(_))), "{deltas:?}");
}

#[tokio::test]
async fn a_request_that_is_sent_again_says_so_first() {
    let behaviour: Behaviour = Arc::new(|nth, mut stream| {
        Box::pin(async move {
            if nth == 0 {
                drain(stream).await;
            } else {
                stream.write_all(format!("{HEAD}{TEXT}{END}").as_bytes()).await.unwrap();
            }
        })
    });
    let (base, count) = server(behaviour).await;
    let deadlines = Deadlines { first_byte: Some(Duration::from_millis(300)), ..Deadlines::default() };
    let mut request = request(&base, deadlines);
    request.retries.max = 1;
    let deltas = all(request).await;
    assert!(matches!(deltas[0], Delta::Stalled(Stall { sent_again: true, .. })), "{deltas:?}");
    assert!(matches!(deltas[1], Delta::Started) && matches!(deltas.last(), Some(Delta::Done { .. })));
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_connection_that_does_not_come_about() {
    let deadlines = Deadlines::default();
    let network = Network { connect_timeout: Some(SHORT), ..Network::default() };
    let (listener, _waiting) = full_listener().await;
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let deltas = all(Request { network: Some(Arc::new(network)), ..request(&base, deadlines) }).await;
    let (stall, failure) = stalled(&deltas);
    assert_eq!((stall.phase, stall.limit), (StallPhase::Connect, SHORT));
    assert!(failure.message.contains("deadlines.connectMs (60)"), "{failure}");
}

/// A listener whose queue is full: the system answers no more connections.
async fn full_listener() -> (TcpListener, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = tokio::time::timeout(SHORT * 2, TcpStream::connect(address)).await {
        waiting.push(stream.unwrap());
        assert!(waiting.len() < 100, "the queue of the listener has no end");
    }
    (listener, waiting)
}

/// A pooled connection that the server closes as the next request comes: whether that was read is not to be known, so it
/// must not be sent again unseen.
#[tokio::test]
async fn no_request_is_sent_twice_by_the_library() {
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    let behaviour: Behaviour = Arc::new(move |nth, mut stream| {
        let counted = Arc::clone(&counted);
        Box::pin(async move {
            counted.fetch_add(1, Ordering::SeqCst);
            if nth > 0 {
                return;
            }
            let body = format!("{TEXT}{END}");
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
            let answer = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
            stream.write_all(answer.as_bytes()).await.unwrap();
            // The second request on the same connection is read, and not answered.
            if read_request(&mut stream).await {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        })
    });
    let (base, _) = server(behaviour).await;
    let provider = HttpProvider::new(Arc::default(), OpenAiCompletions);
    let ask = async || -> Vec<Delta> {
        provider.stream(request(&base, Deadlines::default()), CancellationToken::new()).collect().await
    };
    assert!(matches!(ask().await.last(), Some(Delta::Done { .. })));
    let second = ask().await;
    assert!(matches!(second.last(), Some(Delta::Failed { .. })), "{second:?}");
    assert_eq!(seen.load(Ordering::SeqCst), 2);
}
