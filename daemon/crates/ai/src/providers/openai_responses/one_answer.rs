//! A server for tests that answers one request.

use std::sync::Arc;

use futures::StreamExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_util::sync::CancellationToken;

use crate::{
    Delta, Provider, Request,
    failure::Failure,
    http::{Adapter, HttpProvider},
};

/// An HTTP answer with its length.
pub(crate) fn answer(status: &str, media_type: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// Sends a request to a local server that gives `answer` and closes the connection; returns the deltas and the request that the server
/// received. `request` gets the server's address.
pub(crate) async fn ask<A: Adapter>(
    adapter: A,
    request: impl FnOnce(&str) -> Request,
    answer: String,
) -> (Vec<Delta>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let request = request(&format!("http://{}", listener.local_addr().unwrap()));
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
    let provider = HttpProvider::new(Arc::default(), adapter);
    let deltas = provider.stream(request, CancellationToken::new()).collect().await;
    (deltas, server.await.unwrap())
}

/// The failure of an answer.
pub(crate) fn failure(deltas: &[Delta]) -> &Failure {
    match deltas.last() {
        Some(Delta::Failed { failure, .. }) => failure,
        _ => panic!("the answer did not fail: {deltas:?}"),
    }
}
