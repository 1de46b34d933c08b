//! The adapter over a real connection.

use std::sync::Arc;

use agentd_protocol::{Json, message::Message, model::Model};
use futures::StreamExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{Credentials, Delta, Provider, Secret, http::HttpProvider};

#[tokio::test]
async fn a_request_goes_to_its_address_and_its_answer_streams() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1/", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        let mut buffer = [0; 4096];
        while !request.ends_with(b"}") {
            let count = stream.read(&mut buffer).await.unwrap();
            assert!(count > 0, "the request was cut");
            request.extend_from_slice(&buffer[..count]);
        }
        let answer = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n\
             data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\n\
             data: {\"type\":\"response.completed\",\"response\":{}}\n\n";
        stream.write_all(answer.as_bytes()).await.unwrap();
        // The answer ends although the connection does not.
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        String::from_utf8(request).unwrap()
    });
    let message: Json<Message> = serde_json::from_str(r#"{"role":"user","content":"hi"}"#).unwrap();
    let model = Model { base_url, id: "m".into(), provider: "p".into(), ..Model::placeholder() };
    let mut request = Request::new(Arc::new(model), vec![message]);
    request.credentials = Credentials {
        api_key: Some(Secret::new("sk-secret")),
        headers: Vec::new(),
        ..Credentials::default()
    };
    let provider = HttpProvider::new(Arc::default(), OpenAiResponses);
    let deltas: Vec<Delta> = provider.stream(request, CancellationToken::new()).collect().await;
    assert_eq!(deltas.first(), Some(&Delta::Started));
    assert!(deltas.contains(&Delta::Extend { index: 0, delta: "Hi".into() }), "{deltas:?}");
    assert!(matches!(deltas.last(), Some(Delta::Done { .. })), "{deltas:?}");
    drop(provider);
    let request = server.await.unwrap();
    assert!(request.starts_with("POST /v1/responses HTTP/1.1\r\n"), "{request}");
    assert!(request.to_ascii_lowercase().contains("authorization: bearer sk-secret\r\n"), "{request}");
}

#[test]
fn a_bad_address_is_said_before_anything_is_sent() {
    let model = Model { provider: "p".into(), ..Model::placeholder() };
    let request = Request::new(Arc::new(model), Vec::new());
    let failure = OpenAiResponses.outgoing(&request).map(|_| ()).unwrap_err();
    assert!(failure.message.contains("baseUrl of provider \"p\" is missing"), "{failure}");
    assert!(failure.message.contains("https://api.openai.com/v1"), "{failure}");
}
