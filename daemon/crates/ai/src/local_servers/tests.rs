use std::{net::SocketAddr, time::Instant};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::mpsc,
};

use super::*;

/// A server that takes one connection at a time, reads what is sent first, and writes its answer. What it was sent comes
/// through the channel.
async fn server(answer: Vec<u8>, then_close: bool) -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = vec![0; 4096];
            let count = stream.read(&mut buffer).await.unwrap_or(0);
            sender.send(String::from_utf8_lossy(&buffer[..count]).into_owned()).ok();
            // A client that has seen enough closes while the rest is being written.
            stream.write_all(&answer).await.ok();
            if !then_close {
                open.push(stream);
            }
        }
    });
    (address, requests)
}

fn ok(body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into()
}

/// A server with this answer, asked as a default port is.
async fn asked(answer: Vec<u8>) -> Result<LocalServer, String> {
    let (address, _requests) = server(answer, true).await;
    let url = parse(&format!("http://{address}/v1")).unwrap();
    let found = ask(&HttpClients::default(), &url, Duration::from_secs(20)).await;
    found.map_err(|error| error.to_string().replace(&format!("http://{address}/v1/models"), "URL"))
}

#[tokio::test]
async fn a_listing_is_read_and_nothing_but_the_question_is_sent() {
    let (address, mut requests) =
        server(ok(r#"{"data":[{"id":"a"},{"id":"nomic-embed-text"}]}"#), true).await;
    let found = probe_url(&format!("http://{address}")).await.unwrap();
    assert_eq!(found.base_url, format!("http://{address}/v1"));
    assert_eq!(found.name, None);
    let kinds: Vec<_> = found.models.iter().map(|model| (model.id.as_str(), model.is_embedding())).collect();
    assert_eq!(kinds, [("a", false), ("nomic-embed-text", true)]);
    let request = requests.recv().await.unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("GET /v1/models HTTP/1.1\r\n") && body.is_empty(), "{request}");
    let mut names: Vec<&str> = head.lines().skip(1).filter_map(|line| line.split(':').next()).collect();
    names.sort_unstable();
    assert_eq!(names, ["accept", "accept-encoding", "host"], "{request}");
}

#[tokio::test]
async fn answers_that_are_no_listing() {
    let html = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 14\r\n\r\n<html></html>\n";
    assert_eq!(asked(html.into()).await, Err("URL is no model listing: the answer is not JSON".into()));
    assert_eq!(
        asked(ok("{\"object\":\"list\"}")).await,
        Err("URL is no model listing: the answer has no list \"data\"".into())
    );
    let moved = "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/x\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(asked(moved.into()).await, Err("URL is no model listing: it sends elsewhere (302)".into()));
    let missing = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(asked(missing.into()).await, Err("URL is no model listing: it answered 404".into()));
    let locked = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(asked(locked.into()).await, Err("URL wants a key (401)".into()));
    let garbage = asked(b"220 ready\r\nSSH-2.0\x00\xFF\r\n\r\n".into()).await.unwrap_err();
    assert!(garbage.starts_with("URL is no model listing: "), "{garbage}");
    let cut = asked(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"data\"".into()).await.unwrap_err();
    assert!(cut.starts_with("URL is no model listing: "), "{cut}");
}

#[tokio::test]
async fn a_huge_answer_is_given_up() {
    let body = format!("{{\"data\":[],\"x\":\"{}\"}}", "x".repeat(4 * MAX_LISTING_BYTES));
    let error = asked(ok(&body)).await.unwrap_err();
    assert_eq!(error, "URL is no model listing: the answer is larger than 1048576 bytes");
    let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(4 * MAX_LISTING_BYTES));
    assert!(asked(endless.into()).await.is_err());
}

#[tokio::test]
async fn ports_are_asked_at_once_and_silent_ones_hold_nothing_up() {
    let (silent, _a) = server(Vec::new(), false).await;
    let (begun, _b) = server(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{".into(), false).await;
    let (good, _c) = server(ok(r#"{"data":[{"id":"m"}]}"#), true).await;
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let start = Instant::now();
    let addresses = [vec![silent, begun, free, good], vec![silent; 40]].concat();
    let urls: Vec<_> = addresses.iter().map(|address| format!("http://{address}")).collect();
    let answers = probe_loopback(&urls).await;
    // One after another they would take forty times that.
    assert!(start.elapsed() < 10 * PROBE_TIMEOUT, "{:?}", start.elapsed());
    assert!(matches!(answers[0], Err(ProbeError::Silent { .. })), "{answers:?}");
    assert!(matches!(answers[1], Err(ProbeError::Silent { .. })), "{answers:?}");
    assert!(matches!(answers[2], Err(ProbeError::Unreachable { .. })), "{answers:?}");
    assert_eq!(answers[3].as_ref().unwrap().base_url, format!("http://{good}/v1"));
    let url = parse(&format!("http://{silent}")).unwrap();
    let error = ask(&HttpClients::default(), &url, Duration::from_millis(1)).await.unwrap_err();
    assert_eq!(error.to_string(), format!("http://{silent}/v1/models did not answer within 1 ms"));
    let error = probe_url(&format!("http://{free}")).await.unwrap_err();
    assert!(matches!(error, ProbeError::Unreachable { .. }), "{error}");
}

#[test]
fn addresses() {
    let check = |text: &str, expected: &str| assert_eq!(normal_base_url(text).unwrap(), expected, "{text}");
    check("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1");
    check(" http://127.0.0.1:8080/ ", "http://127.0.0.1:8080/v1");
    check("http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1");
    check("https://models.example.com/api/v3", "https://models.example.com/api/v3");
    check("http://[::1]:1/v1", "http://[::1]:1/v1");
    for wrong in
        ["", "localhost:8080", "ftp://h/v1", "http://", "http://u:hush@h/", "http://h/?key=hush", "file:///x"]
    {
        let error = normal_base_url(wrong).unwrap_err().to_string();
        assert!(
            error.contains("cannot be used as the address") && !error.contains("hush"),
            "{wrong}: {error}"
        );
    }
}

#[tokio::test]
async fn other_machines_are_not_asked_as_if_they_were_this_one() {
    let answers = probe_loopback(&["http://models.example.com/v1".into()]).await;
    assert!(matches!(answers[0], Err(ProbeError::Address { .. })), "{answers:?}");
    assert!(is_loopback("http://localhost:1") && !is_loopback("http://10.0.0.1:1") && !is_loopback("x"));
    assert!(is_same_server("http://localhost:1", "http://127.0.0.1:1/v1/"));
    assert!(!is_same_server("http://127.0.0.1:1/v2", "http://127.0.0.1:1/v1") && !is_same_server("x", "x"));
    assert!(default_base_urls().iter().all(|url| is_loopback(url)));
}

#[test]
fn default_ports_are_named_once() {
    for (port, name) in DEFAULT_PORTS {
        assert_eq!(DEFAULT_PORTS.iter().filter(|(other, _)| other == port).count(), 1, "{port} {name}");
    }
}
