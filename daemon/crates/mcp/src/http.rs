//! Servers that are reached by streamable HTTP: each message is a POST, whose answer is one JSON object or a stream of events.
//!
//! In the revisions with `initialize` the server may name a session, which every later request then carries. In the stateless one each
//! request says in headers what it is, and is given up by closing its connection.

mod answers;
mod authorized;
mod stateless_headers;
mod streams;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use agentd_memory::{MemoryAccount, MemoryPurpose, MemoryReservation};
use reqwest::{
    Client, RequestBuilder, Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde_json::Value;
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(crate) use self::answers::is_transient;
use self::{
    answers::{limited, read_all, refusal},
    stateless_headers::REVISION,
};
use crate::{
    message::{self, Outgoing},
    oauth::Authorization,
    peer::{Peer, PeerHandler, PeerTransport, RequestError},
    transport::Transport,
};

/// What we take as an answer.
const ACCEPTED: &str = "application/json, text/event-stream";

/// The header with the name of the session.
const SESSION: &str = "mcp-session-id";

/// Requests of one connection at a time; more wait.
const AT_ONCE: usize = 32;

/// The longest answer that is one JSON object, in bytes.
const MAX_ANSWER: usize = 16 << 20;

/// Time for a notification: later messages wait for it.
const NOTIFICATION_WAIT: Duration = Duration::from_secs(10);

/// Time to begin listening: some servers answer when they have something to say, and not before.
const LISTEN_WAIT: Duration = Duration::from_millis(250);

/// Time to say goodbye.
const GOODBYE_WAIT: Duration = Duration::from_secs(1);

/// Pauses before connecting is tried again.
const CONNECT_PAUSES: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];

/// A server's address and what is sent with each request.
pub(crate) struct HttpEndpoint {
    pub(crate) client: Client,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// Gives each request its token, where no header does.
    pub(crate) authorization: Option<Arc<Authorization>>,
    /// What the server sends is charged to it.
    pub(crate) memory: MemoryAccount,
}

/// What all tasks of a connection share.
struct Connection {
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
    let transport = PeerTransport { tells_cancellation: false, tasks: tasks.clone() };
    let (peer, messages) = Peer::new(handler, transport);
    let (over, gone) = (CancellationToken::new(), CancellationToken::new());
    let shared = Arc::new(Connection {
        endpoint,
        peer: peer.clone(),
        over: over.clone(),
        established: Mutex::default(),
    });
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
async fn send_all(connection: &Arc<Connection>, mut messages: mpsc::Receiver<Outgoing>, tasks: &TaskTracker) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(message) = messages.recv().await {
        let Some(id) = message.id else {
            let sent = timeout(NOTIFICATION_WAIT, connection.notify(&message)).await;
            let error = sent.unwrap_or_else(|_| Err(RequestError::Http("no answer".to_owned()))).err();
            if let Some(error) = error {
                tracing::debug!(%error, "a message to an MCP server was not taken");
            } else if message.method == Some("notifications/initialized") {
                let (opened, is_open) = oneshot::channel();
                let connection = Arc::clone(connection);
                tasks.spawn(async move {
                    connection.over.clone().run_until_cancelled(connection.listen(opened)).await
                });
                // What the server asks during the first call must not be missed.
                let _ = timeout(LISTEN_WAIT, is_open).await;
            }
            continue;
        };
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        // Without a token the request was given up already.
        let Some(ended) = connection.peer.ended(id) else { continue };
        let connection = Arc::clone(connection);
        tasks.spawn(async move {
            let _place = place;
            let asking = connection.request(id, &message);
            let done = tokio::select! {
                done = asking => done,
                // Closes the connection of the request.
                () = ended.cancelled() => return,
                () = connection.over.cancelled() => return,
            };
            if let Err(error) = done {
                connection.peer.fail(id, error);
            }
        });
    }
}

impl Connection {
    /// A request with all headers. `message` is what is sent with it.
    fn headed(&self, request: RequestBuilder, message: Option<&Outgoing>) -> RequestBuilder {
        let mut headers = self.endpoint.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static(ACCEPTED));
        let stateless = message.and_then(|message| Some((message.method?, message.repeated.as_ref()?)));
        match stateless {
            Some((method, repeated)) => stateless_headers::add(&mut headers, method, repeated),
            None => {
                let Established { session, revision } = self.established();
                session.map(|session| headers.insert(SESSION, session));
                revision.map(|revision| headers.insert(REVISION, revision));
            }
        }
        request.headers(headers)
    }

    async fn post(&self, message: &Outgoing) -> Result<Response, RequestError> {
        let post = || {
            let request = self.endpoint.client.post(self.endpoint.url.clone());
            request.header(CONTENT_TYPE, "application/json").body(message.line.clone())
        };
        self.send(post, Some(message)).await
    }

    async fn notify(&self, message: &Outgoing) -> Result<(), RequestError> {
        let response = self.post(message).await?;
        if response.status().is_success() { Ok(()) } else { Err(refusal(response).await) }
    }

    /// Sends a request and passes on what comes until it is answered.
    async fn request(&self, id: u64, message: &Outgoing) -> Result<(), RequestError> {
        let is_first = matches!(message.method, Some("initialize" | "server/discover"));
        let is_stateless = message.repeated.is_some();
        let response = self.first_answer(is_first, message).await?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && !is_stateless && self.established().session.is_some() {
            // The server did not run it.
            self.peer.refuse_more("the server has ended the session");
            return Err(RequestError::SessionExpired);
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Err(RequestError::Invalid(format!(
                "the server answered with HTTP {status} and no result"
            )));
        }
        if !status.is_success() {
            return Err(refusal(response).await);
        }
        if is_first && !is_stateless {
            self.lock().session = response.headers().get(SESSION).cloned();
        }
        let kind =
            response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.trim_start().starts_with("text/event-stream") {
            return self.follow(response, id, is_stateless).await;
        }
        let mut charge = self.charge();
        let bytes = limited(response, MAX_ANSWER, Some(&mut charge)).await?;
        let messages = tokio::task::spawn_blocking(move || read_all(&bytes)).await;
        let messages = messages.map_err(|error| RequestError::Invalid(error.to_string()))?;
        self.take(messages.map_err(|why| RequestError::Invalid(format!("the answer is {why}")))?, Some(id));
        if self.peer.ended(id).is_some() {
            return Err(RequestError::Invalid("the server's answer belongs to another request".to_owned()));
        }
        Ok(())
    }

    /// For what the server sends in one answer or stream.
    fn charge(&self) -> MemoryReservation {
        self.endpoint.memory.open(MemoryPurpose::Servers)
    }

    /// The answer to a POST; connecting is tried again where the server cannot have run anything.
    async fn first_answer(&self, is_first: bool, message: &Outgoing) -> Result<Response, RequestError> {
        let mut pauses = CONNECT_PAUSES.iter().filter(|_| is_first);
        loop {
            let answer = self.post(message).await;
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

    /// Ends the session at the server.
    async fn say_goodbye(&self) {
        if self.established().session.is_none() {
            return;
        }
        let goodbye = self.with_known_token(self.endpoint.client.delete(self.endpoint.url.clone()));
        // A server that does not answer forgets the session by itself.
        let _ = timeout(GOODBYE_WAIT, goodbye.send()).await;
    }

    /// Passes messages on. The first result with a revision is that of `initialize`.
    fn take(&self, messages: Vec<message::Incoming>, about: Option<u64>) {
        for incoming in messages {
            if let message::Incoming::Response { outcome: Ok(result), .. } = &incoming
                && let Some(revision) = result.get("protocolVersion").and_then(Value::as_str)
            {
                let mut established = self.lock();
                if established.revision.is_none() {
                    established.revision = HeaderValue::from_str(revision).ok();
                }
            }
            self.peer.receive(incoming, about);
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
