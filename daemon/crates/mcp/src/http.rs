//! Servers that are reached by streamable HTTP: each message is a POST, whose answer is one JSON object or a stream of events.
//!
//! The revisions with `initialize` only: the server may name a session, which every later request then carries.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use agentd_http::deepest_cause;
use bytes::Bytes;
use reqwest::{
    Client, RequestBuilder, Response, StatusCode, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde_json::Value;
use tokio::{
    sync::{Semaphore, mpsc},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    message::{self, OutgoingHead},
    oauth::{AfterRefusal, Authorization, Challenge, RequestCourse},
    peer::{Peer, PeerHandler, RequestError},
    sse::SseReader,
    transport::Transport,
};

/// What we take as an answer.
const ACCEPTED: &str = "application/json, text/event-stream";

/// The header with the name of the session.
const SESSION: &str = "mcp-session-id";

/// The header with the revision.
const REVISION: &str = "mcp-protocol-version";

/// The header that says which event was the last.
const LAST_EVENT: &str = "last-event-id";

/// Requests of one connection at a time; more wait.
const AT_ONCE: usize = 32;

/// The longest answer that is one JSON object, in bytes.
const MAX_ANSWER: usize = 16 << 20;

/// Bytes that are read of the body of an error, and bytes that are shown of it.
const ERROR_BODY: (usize, usize) = (8 << 10, 500);

/// Time for a notification: later messages wait for it.
const NOTIFICATION_WAIT: Duration = Duration::from_secs(10);

/// Time to say goodbye.
const GOODBYE_WAIT: Duration = Duration::from_secs(1);

/// Pauses before connecting is tried again.
const CONNECT_PAUSES: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];

/// How often a broken stream is resumed without any event in between.
const MAX_RESUMES: u32 = 5;

/// The longest pause before a broken stream is resumed.
const LONGEST_RESUME_PAUSE: Duration = Duration::from_secs(30);

/// A server's address and what is sent with each request.
pub(crate) struct HttpEndpoint {
    pub(crate) client: Client,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// Gives each request its token, where no header does.
    pub(crate) authorization: Option<Arc<Authorization>>,
}

/// What all tasks of a connection share.
struct Shared {
    endpoint: HttpEndpoint,
    peer: Peer,
    over: CancellationToken,
    /// What `initialize` brought: the session and the revision.
    established: Mutex<Established>,
}

#[derive(Default, Clone)]
struct Established {
    session: Option<HeaderValue>,
    revision: Option<HeaderValue>,
}

/// Begins a connection. Nothing is sent before the first message.
pub(crate) fn start(endpoint: HttpEndpoint, tasks: &TaskTracker, handler: Arc<dyn PeerHandler>) -> Transport {
    let (peer, messages) = Peer::new(handler);
    let (over, gone) = (CancellationToken::new(), CancellationToken::new());
    let shared =
        Arc::new(Shared { endpoint, peer: peer.clone(), over: over.clone(), established: Mutex::default() });
    tasks.spawn({
        let (gone, tasks) = (gone.clone(), tasks.clone());
        async move {
            shared.over.run_until_cancelled(send_all(&shared, messages, &tasks)).await;
            shared.peer.close("the connection was closed");
            shared.say_goodbye().await;
            gone.cancel();
        }
    });
    Transport { peer, pid: None, over, gone }
}

/// Sends messages: notifications one after the other, requests each in a task of its own.
async fn send_all(shared: &Arc<Shared>, mut messages: mpsc::Receiver<Bytes>, tasks: &TaskTracker) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(body) = messages.recv().await {
        let head = message::outgoing_head(&body);
        let Some(id) = head.id else {
            let sent = timeout(NOTIFICATION_WAIT, shared.notify(body)).await;
            let error = sent.unwrap_or_else(|_| Err("no answer".to_owned())).err();
            if let Some(error) = error {
                tracing::debug!(error, "a message to an MCP server was not taken");
            } else if head.method.as_deref() == Some("notifications/initialized") {
                let shared = Arc::clone(shared);
                tasks.spawn(async move { shared.over.clone().run_until_cancelled(shared.listen()).await });
            }
            continue;
        };
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        // Without a token the request was given up already.
        let Some(ended) = shared.peer.ended(id) else { continue };
        let shared = Arc::clone(shared);
        tasks.spawn(async move {
            let _place = place;
            let asking = shared.request(&head, id, body);
            let done = tokio::select! {
                done = asking => done,
                // Closes the connection of the request.
                () = ended.cancelled() => return,
                () = shared.over.cancelled() => return,
            };
            if let Err(error) = done {
                shared.peer.fail(id, error);
            }
        });
    }
}

impl Shared {
    /// A request with all headers.
    fn headed(&self, request: RequestBuilder) -> RequestBuilder {
        let Established { session, revision } = self.established();
        let mut headers = self.endpoint.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static(ACCEPTED));
        session.map(|session| headers.insert(SESSION, session));
        revision.map(|revision| headers.insert(REVISION, revision));
        request.headers(headers)
    }

    /// Sends a request with its token, and again while another token is worth it: a request that was refused did not run.
    async fn send(&self, request: impl Fn() -> RequestBuilder + Send) -> Result<Response, RequestError> {
        let failed = |error: reqwest::Error| RequestError::Http(deepest_cause(&error));
        let Some(authorization) = &self.endpoint.authorization else {
            return self.headed(request()).send().await.map_err(failed);
        };
        let mut course = RequestCourse::default();
        loop {
            let token = authorization.token().await.map_err(RequestError::Unauthorized)?;
            let mut headed = self.headed(request());
            if let Some(token) = &token {
                let value = HeaderValue::try_from(format!("Bearer {}", token.expose()));
                let mut value =
                    value.map_err(|_| RequestError::Unauthorized("its token cannot be sent".to_owned()))?;
                value.set_sensitive(true);
                headed = headed.header(AUTHORIZATION, value);
            }
            let response = headed.send().await.map_err(failed)?;
            let status = response.status();
            if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                authorization.accepted();
                return Ok(response);
            }
            let challenge = Challenge::of(response.headers());
            match authorization.refused(&mut course, status, challenge, token.as_ref()).await {
                AfterRefusal::Repeat => {}
                AfterRefusal::SignIn(text) | AfterRefusal::Fail(text) => {
                    return Err(RequestError::Unauthorized(text));
                }
                AfterRefusal::Other => return Ok(response),
            }
        }
    }

    async fn post(&self, body: Bytes) -> Result<Response, RequestError> {
        let post = || {
            let request = self.endpoint.client.post(self.endpoint.url.clone());
            request.header(CONTENT_TYPE, "application/json").body(body.clone())
        };
        self.send(post).await
    }

    async fn notify(&self, body: Bytes) -> Result<(), String> {
        let response = self.post(body).await.map_err(|error| error.to_string())?;
        if response.status().is_success() { Ok(()) } else { Err(refusal(response).await) }
    }

    /// Sends a request and passes on what comes until it is answered.
    async fn request(&self, head: &OutgoingHead, id: u64, body: Bytes) -> Result<(), RequestError> {
        let is_first = head.method.as_deref() == Some("initialize");
        let response = self.first_answer(is_first, body).await?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && self.established().session.is_some() {
            // The server did not run it.
            self.peer.refuse_more("the server has ended the session");
            return Err(RequestError::SessionExpired);
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Err(RequestError::Http(format!("the server answered with HTTP {status} and no result")));
        }
        if !status.is_success() {
            return Err(RequestError::Http(refusal(response).await));
        }
        if is_first {
            self.lock().session = response.headers().get(SESSION).cloned();
        }
        let kind =
            response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.trim_start().starts_with("text/event-stream") {
            return self.follow(response, id).await;
        }
        let bytes = limited(response, MAX_ANSWER).await?;
        let messages = tokio::task::spawn_blocking(move || read_all(&bytes)).await;
        let messages = messages.map_err(|error| RequestError::Http(error.to_string()))?;
        self.take(messages.map_err(|why| RequestError::Http(format!("the answer is {why}")))?);
        if self.peer.ended(id).is_some() {
            return Err(RequestError::Http("the server's answer belongs to another request".to_owned()));
        }
        Ok(())
    }

    /// The answer to a POST; connecting is tried again where the server cannot have run anything.
    async fn first_answer(&self, is_first: bool, body: Bytes) -> Result<Response, RequestError> {
        let mut pauses = CONNECT_PAUSES.iter().filter(|_| is_first);
        loop {
            let answer = self.post(body.clone()).await;
            let is_transient = match &answer {
                Ok(response) => is_transient(response.status()),
                Err(error) => !matches!(error, RequestError::Unauthorized(_)),
            };
            match pauses.next().filter(|_| is_transient) {
                Some(pause) => sleep(*pause).await,
                None => return answer,
            }
        }
    }

    /// Reads a stream until the request is answered. One that breaks is resumed where the server has given its events ids.
    async fn follow(&self, response: Response, id: u64) -> Result<(), RequestError> {
        let mut response = response;
        let mut reader = SseReader::default();
        let mut resumes = 0;
        loop {
            let had_events = self.pump(&mut response, &mut reader).await?;
            if self.peer.ended(id).is_none() {
                return Ok(());
            }
            if had_events {
                resumes = 0;
            }
            let Some(last) = reader.last_id().map(str::to_owned).filter(|_| resumes < MAX_RESUMES) else {
                let text = "the server closed the stream before it answered";
                return Err(RequestError::Http(text.to_owned()));
            };
            sleep(reader.retry().unwrap_or_else(|| resume_pause(resumes))).await;
            resumes += 1;
            let pause = reader.retry();
            match self.get(Some(&last)).await {
                Ok(next) if next.status().is_success() => {
                    response = next;
                    // What came of an event that broke off is sent again.
                    reader = SseReader::resumed(last, pause);
                }
                Ok(refused) if !is_transient(refused.status()) => {
                    return Err(RequestError::Http(refusal(refused).await));
                }
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// Passes on what a stream brings until it ends; whether it brought something.
    async fn pump(&self, response: &mut Response, reader: &mut SseReader) -> Result<bool, RequestError> {
        let mut had_events = false;
        loop {
            let Ok(Some(chunk)) = response.chunk().await else { return Ok(had_events) };
            let events = reader.push(&chunk).map_err(|_| RequestError::TooLong { limit: MAX_ANSWER })?;
            for event in events.into_iter().filter(|event| event.is_message) {
                had_events = true;
                let data = event.data;
                let read = tokio::task::spawn_blocking(move || read_all(&data)).await;
                match read.unwrap_or_else(|error| Err(error.to_string())) {
                    Ok(messages) => self.take(messages),
                    Err(why) => tracing::debug!(why, "an event of an MCP server was passed over"),
                }
            }
        }
    }

    /// Listens to what the server sends by itself, if it offers that; gives up without a word.
    async fn listen(&self) {
        let mut reader = SseReader::default();
        let mut failures = 0;
        while failures < MAX_RESUMES {
            let last = reader.last_id().map(str::to_owned);
            match self.get(last.as_deref()).await {
                Ok(mut response) if response.status().is_success() => {
                    match self.pump(&mut response, &mut reader).await {
                        Ok(true) => failures = 0,
                        Ok(false) => failures += 1,
                        Err(_) => return,
                    }
                }
                Ok(response) if !is_transient(response.status()) => return,
                Ok(_) | Err(_) => failures += 1,
            }
            sleep(reader.retry().unwrap_or_else(|| resume_pause(failures))).await;
        }
    }

    async fn get(&self, last_event: Option<&str>) -> Result<Response, RequestError> {
        let last = last_event.and_then(|last| HeaderValue::from_str(last).ok());
        let get = || {
            let request = self.endpoint.client.get(self.endpoint.url.clone());
            last.iter().fold(request, |request, last| request.header(LAST_EVENT, last))
        };
        self.send(get).await
    }

    /// Ends the session at the server.
    async fn say_goodbye(&self) {
        if self.established().session.is_none() {
            return;
        }
        let goodbye = self.send(|| self.endpoint.client.delete(self.endpoint.url.clone()));
        // A server that does not answer forgets the session by itself.
        let _ = timeout(GOODBYE_WAIT, goodbye).await;
    }

    /// Passes messages on. The first result with a revision is that of `initialize`.
    fn take(&self, messages: Vec<message::Incoming>) {
        for incoming in messages {
            if let message::Incoming::Response { outcome: Ok(result), .. } = &incoming
                && let Some(revision) = result.get("protocolVersion").and_then(Value::as_str)
            {
                let mut established = self.lock();
                if established.revision.is_none() {
                    established.revision = HeaderValue::from_str(revision).ok();
                }
            }
            self.peer.receive(incoming);
        }
    }

    fn established(&self) -> Established {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Established> {
        // No method panics halfway.
        self.established.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One message, or an array of them.
fn read_all(bytes: &[u8]) -> Result<Vec<message::Incoming>, String> {
    if bytes.trim_ascii_start().first() != Some(&b'[') {
        return message::read(bytes).map(|message| vec![message]);
    }
    let parts: Vec<&serde_json::value::RawValue> =
        serde_json::from_slice(bytes).map_err(|error| format!("not JSON (column {})", error.column()))?;
    parts.into_iter().map(|part| message::read(part.get().as_bytes())).collect()
}

fn is_transient(status: StatusCode) -> bool {
    matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
        || (status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED)
}

fn resume_pause(attempt: u32) -> Duration {
    Duration::from_secs(1).saturating_mul(1 << attempt.min(10)).min(LONGEST_RESUME_PAUSE)
}

/// What a server said that refused.
async fn refusal(response: Response) -> String {
    let status = response.status();
    let (read, shown) = ERROR_BODY;
    let body = limited(response, read).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&body);
    let text = agentd_protocol::text_bounds::head(text.trim(), shown);
    match status {
        StatusCode::UNAUTHORIZED => format!(
            "the server wants a sign-in (HTTP {status}): put a token into \"headers\" of its entry in mcp.json {text}"
        ),
        _ if text.is_empty() => format!("the server answered with HTTP {status}"),
        _ => format!("the server answered with HTTP {status}: {text}"),
    }
}

/// A body of at most `limit` bytes. Of the body of an error, the rest does not matter.
async fn limited(mut response: Response, limit: usize) -> Result<Vec<u8>, RequestError> {
    let is_error = !response.status().is_success();
    let mut body = Vec::new();
    loop {
        let chunk = response.chunk().await.map_err(|error| RequestError::Http(deepest_cause(&error)))?;
        let Some(chunk) = chunk else { return Ok(body) };
        if body.len() + chunk.len() > limit {
            if is_error {
                return Ok(body);
            }
            return Err(RequestError::TooLong { limit });
        }
        body.extend_from_slice(&chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_bounded() {
        let seconds: Vec<u64> = (0..7).map(|attempt| resume_pause(attempt).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30]);
    }

    #[test]
    fn answers_are_one_message_or_several() {
        assert_eq!(read_all(br#" {"id":1,"result":2}"#).unwrap().len(), 1);
        assert_eq!(read_all(br#"[{"id":1,"result":2},{"method":"x"}]"#).unwrap().len(), 2);
        assert!(read_all(b"[1]").is_err() && read_all(b"").is_err());
    }

    #[test]
    fn what_passes_is_tried_again() {
        for (status, expected) in
            [(408, true), (429, true), (500, true), (503, true), (501, false), (404, false)]
        {
            assert_eq!(is_transient(StatusCode::from_u16(status).unwrap()), expected, "{status}");
        }
    }
}
