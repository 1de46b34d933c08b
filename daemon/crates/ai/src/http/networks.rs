//! Proxies, certificates, HTTP/2 and compressed streams, against servers on this machine.

use std::{
    io::Write as _,
    path::Path,
    sync::{Arc, Mutex},
};

use agentd_http::{CertificateFile, NamedProxy};
use agentd_protocol::{Json, message::Message, model::Model};
use flate2::{Compression, write::GzEncoder};
use futures::StreamExt;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};
use tokio_util::sync::CancellationToken;

use crate::{
    Delta, Network, Provider, Request, http::HttpProvider, providers::openai_completions::OpenAiCompletions,
};

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n";
const END: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn text(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data/tls").join(name)
}

/// The requests that servers received, in order.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn add(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// The head of a request, as text.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// Answers a request of HTTP/1.1 whose head was read.
async fn answer(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), who: &str) {
    let mut body = Vec::new();
    while !body.ends_with(b"}") || serde_json::from_slice::<serde_json::Value>(&body).is_err() {
        body.push(stream.read_u8().await.unwrap());
    }
    let answer = format!("{HEAD}\r\n{}{END}", text(who));
    stream.write_all(answer.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
}

/// A server of plain HTTP.
async fn plain_server() -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                head(&mut stream).await;
                answer(&mut stream, "direct").await;
            });
        }
    });
    port
}

/// A server of TLS with a certificate of the tests' authority, for HTTP/2 where the client can do it.
async fn tls_server(protocols: &[&[u8]], seen: Seen) -> u16 {
    // Another test may have chosen it already.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let chain = vec![CertificateDer::from_pem_file(data("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(data("server-key.pem")).unwrap();
    let mut config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, seen) = (acceptor.clone(), seen.clone());
            tokio::spawn(async move {
                // A client that does not trust us hangs up.
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
                    seen.add("HTTP/1.1");
                    head(&mut stream).await;
                    return answer(&mut stream, "tls").await;
                }
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    seen.add(format!("{:?} {}", request.version(), request.uri().path()));
                    let response = http::Response::builder().header("content-type", "text/event-stream");
                    let mut body = respond.send_response(response.body(()).unwrap(), false).unwrap();
                    body.send_data(format!("{}{END}", text("two")).into(), true).unwrap();
                }
            });
        }
    });
    port
}

/// A proxy that has every name lead to `target`, unless that is `None`: then it refuses.
async fn proxy(target: Option<u16>, seen: Seen) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let seen = seen.clone();
            tokio::spawn(async move {
                let head = head(&mut stream).await;
                let user =
                    if head.to_lowercase().contains("proxy-authorization: basic ") { " user" } else { "" };
                seen.add(format!("{}{user}", head.lines().next().unwrap()));
                let Some(target) = target else {
                    let refusal =
                        b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                    return stream.write_all(refusal).await.unwrap();
                };
                if !head.starts_with("CONNECT ") {
                    return answer(&mut stream, "forwarded").await;
                }
                let mut server = TcpStream::connect(("127.0.0.1", target)).await.unwrap();
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                // Either side may hang up as it likes.
                let _ = copy_bidirectional(&mut stream, &mut server).await;
            });
        }
    });
    format!("http://me:hush-hush@{address}")
}

/// Trusts the tests' authority, and goes through a proxy.
fn network(proxy: Option<&str>) -> Network {
    let authority = CertificateFile { path: data("ca.pem"), source: "the setting caFile".into() };
    Network { certificates: vec![authority], ..Network::default() }
        .or_proxy(proxy.map(|url| NamedProxy::new(url, "the setting httpProxy")))
}

fn request(base_url: &str, network: Network) -> Request {
    let message: Json<Message> = serde_json::from_str(r#"{"role":"user","content":"hi"}"#).unwrap();
    let model = Model {
        base_url: base_url.into(),
        api: "openai-completions".into(),
        provider: "p".into(),
        id: "m".into(),
        ..Model::placeholder()
    };
    Request { network: Some(Arc::new(network)), ..Request::new(Arc::new(model), vec![message]) }
}

fn provider() -> HttpProvider<OpenAiCompletions> {
    HttpProvider::new(Arc::default(), OpenAiCompletions)
}

/// The text of the answer, or what went wrong.
async fn ask(base_url: &str, network: Network) -> Result<String, String> {
    let mut text = String::new();
    let mut stream = provider().stream(request(base_url, network), CancellationToken::new());
    while let Some(delta) = stream.next().await {
        match delta {
            Delta::Extend { delta, .. } => text.push_str(&delta),
            Delta::Failed { failure, .. } => return Err(failure.message),
            _ => {}
        }
    }
    Ok(text)
}

#[tokio::test]
async fn plain_http_goes_to_the_proxy_and_https_through_it() {
    let seen = Seen::default();
    let server = tls_server(&[], Seen::default()).await;
    let proxy = proxy(Some(server), seen.clone()).await;
    assert_eq!(ask("http://models.test/v1", network(Some(&proxy))).await.unwrap(), "forwarded");
    assert_eq!(seen.take(), ["POST http://models.test/v1/chat/completions HTTP/1.1 user"]);
    assert_eq!(ask("https://models.test/v1", network(Some(&proxy))).await.unwrap(), "tls");
    assert_eq!(seen.take(), ["CONNECT models.test:443 HTTP/1.1 user"]);
}

#[tokio::test]
async fn this_machine_and_what_no_proxy_names_are_reached_without_the_proxy() {
    let seen = Seen::default();
    let port = plain_server().await;
    let proxy = proxy(Some(1), seen.clone()).await;
    let loopback = format!("http://127.0.0.1:{port}/v1");
    assert_eq!(ask(&loopback, network(Some(&proxy))).await.unwrap(), "direct");
    assert!(seen.take().is_empty());
    // To the system an address of this machine, and to us one like any other.
    let any = format!("http://0.0.0.0:{port}/v1");
    assert_eq!(ask(&any, network(Some(&proxy))).await.unwrap(), "forwarded");
    assert_eq!(seen.take().len(), 1);
    let taken_out = Network { no_proxy: "other.test,0.0.0.0".into(), ..network(Some(&proxy)) };
    assert_eq!(ask(&any, taken_out).await.unwrap(), "direct");
    assert!(seen.take().is_empty());
}

#[tokio::test]
async fn a_proxy_that_refuses_or_is_not_there_is_named() {
    let seen = Seen::default();
    let refusing = proxy(None, seen.clone()).await;
    for proxy in [refusing.as_str(), "http://me:hush-hush@127.0.0.1:9"] {
        let error = ask("https://models.test/v1", network(Some(proxy))).await.unwrap_err();
        let shown = proxy.replace("me:hush-hush@", "");
        assert!(error.contains(&shown) && error.contains("the setting httpProxy"), "{error}");
        assert!(!error.contains("hush"), "{error}");
    }
    assert_eq!(seen.take()[0], "CONNECT models.test:443 HTTP/1.1 user");
}

#[tokio::test]
async fn an_authority_of_ones_own_is_trusted_where_it_is_named() {
    let port = tls_server(&[], Seen::default()).await;
    let url = format!("https://localhost:{port}/v1");
    assert_eq!(ask(&url, network(None)).await.unwrap(), "tls");
    let path = data("ca.pem").display().to_string();
    let of_variable = Network::of_environment(|name| (name == "SSL_CERT_FILE").then_some(path.as_str()));
    assert_eq!(ask(&url, of_variable).await.unwrap(), "tls");
    let error = ask(&url, Network::default()).await.unwrap_err();
    for part in ["certificate", "setting caFile", "SSL_CERT_FILE"] {
        assert!(error.contains(part), "{error}");
    }
}

#[tokio::test]
async fn http_2_is_spoken_where_the_server_can() {
    let seen = Seen::default();
    let port = tls_server(&[b"h2", b"http/1.1"], seen.clone()).await;
    assert_eq!(ask(&format!("https://localhost:{port}/v1"), network(None)).await.unwrap(), "two");
    assert_eq!(seen.take(), ["HTTP/2.0 /v1/chat/completions"]);
    let port = tls_server(&[b"http/1.1"], seen.clone()).await;
    assert_eq!(ask(&format!("https://localhost:{port}/v1"), network(None)).await.unwrap(), "tls");
    assert_eq!(seen.take(), ["HTTP/1.1"]);
}

/// The server sends the next piece only when the one before was decoded: an answer that waits for more than it needs never ends.
#[tokio::test]
async fn a_compressed_stream_is_decoded_piece_by_piece() {
    const PIECES: [&str; 4] = ["one", "two", "three", "four"];
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (next, mut wanted) = mpsc::channel::<()>(1);
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(head(&mut stream).await.to_lowercase().contains("accept-encoding: gzip"));
        let head = format!("{HEAD}Content-Encoding: gzip\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        for piece in PIECES {
            encoder.write_all(text(piece).as_bytes()).unwrap();
            encoder.flush().unwrap();
            stream.write_all(&std::mem::take(encoder.get_mut())).await.unwrap();
            wanted.recv().await.unwrap();
        }
        encoder.write_all(END.as_bytes()).unwrap();
        stream.write_all(&encoder.finish().unwrap()).await.unwrap();
    });
    let mut stream = provider().stream(request(&base_url, Network::default()), CancellationToken::new());
    let mut pieces = Vec::new();
    let mut last = None;
    while let Some(delta) = stream.next().await {
        if let Delta::Extend { delta, .. } = &delta {
            pieces.push(delta.clone());
            next.send(()).await.unwrap();
        }
        last = Some(delta);
    }
    assert_eq!(pieces, PIECES);
    assert!(matches!(last, Some(Delta::Done { .. })), "{last:?}");
}
