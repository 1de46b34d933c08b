//! Our side of a connection: requests with their deadlines, and what the server sends by itself.
//!
//! A [`Peer`] knows nothing of the transport: messages go out through a bounded channel and come in by [`Peer::receive`]. Whatever a server
//! does, it holds up nothing but its own calls: nothing here waits for it while a message of it is read, and what it asks of us beyond
//! what it takes is dropped.

mod questions;
mod request;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::{Instant, sleep},
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

pub(crate) use self::request::{ProgressReport, RequestError, RequestTerms};
use crate::{
    elicitation::UserInput,
    message::{self, Incoming, Outgoing, RepeatedInHeaders},
    revision,
};

/// Messages that wait for the server to read them.
pub(crate) const OUTGOING: usize = 64;

/// The least time between two reports of a call's progress: clients see them all, however often a server sends them.
const PROGRESS_PAUSE: Duration = Duration::from_millis(100);

/// Takes what a server sends by itself. Called while messages are read: must never wait.
pub(crate) trait PeerHandler: Send + Sync {
    /// The name of the server, for questions to the user.
    fn server(&self) -> &str;

    /// A notification that belongs to no request.
    fn notification(&self, method: &str, params: &Value);

    /// Something that the server wrote to its standard error.
    fn errors(&self, _text: &str) {}

    /// The answer to `roots/list`; `None` where roots were not declared.
    fn roots(&self) -> Option<Value>;
}

/// Our side of a connection. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Peer(Arc<PeerState>);

struct PeerState {
    next_id: AtomicU64,
    open: Mutex<OpenRequests>,
    outgoing: mpsc::Sender<Outgoing>,
    handler: Arc<dyn PeerHandler>,
    /// Whether requests are those of the stateless revision.
    is_stateless: AtomicBool,
    /// As [`PeerTransport`] has it.
    tells_cancellation: bool,
    /// Owns the tasks that answer the server's questions.
    tasks: TaskTracker,
}

/// How a transport is used.
pub(crate) struct PeerTransport {
    /// Whether a request of the stateless revision is given up by a notification. By HTTP, its connection is closed instead.
    pub(crate) tells_cancellation: bool,
    /// Owns the tasks that answer the server's questions.
    pub(crate) tasks: TaskTracker,
}

#[derive(Default)]
struct OpenRequests {
    requests: HashMap<u64, OpenRequest>,
    /// Why the connection has ended, once it has.
    closed: Option<Arc<str>>,
    /// Fires then.
    end: CancellationToken,
    /// Questions of the server that the user is asked.
    questions: usize,
}

struct OpenRequest {
    answer: oneshot::Sender<Result<Value, RequestError>>,
    /// Wakes the request when the server reports progress.
    heard: Arc<Notify>,
    progress: Option<ProgressReport>,
    /// When progress was passed on last.
    reported: Option<Instant>,
    /// Fires when nobody waits for the answer any more.
    ended: CancellationToken,
    user: Option<Arc<dyn UserInput>>,
    /// Questions about the request that the user is asked.
    questions: usize,
    /// Takes these questions back, however the request ends.
    over: CancellationToken,
    _over: DropGuard,
}

/// Takes an open request back when its caller leaves.
struct OpenGuard<'a> {
    peer: &'a Peer,
    id: u64,
}

impl Drop for OpenGuard<'_> {
    fn drop(&mut self) {
        if let Some(open) = self.peer.lock().requests.remove(&self.id) {
            open.ended.cancel();
        }
    }
}

impl Peer {
    /// A peer, and the messages that are to be sent.
    pub(crate) fn new(
        handler: Arc<dyn PeerHandler>,
        transport: PeerTransport,
    ) -> (Self, mpsc::Receiver<Outgoing>) {
        let PeerTransport { tells_cancellation, tasks } = transport;
        let (outgoing, messages) = mpsc::channel(OUTGOING);
        let state = PeerState {
            next_id: AtomicU64::new(1),
            open: Mutex::default(),
            outgoing,
            handler,
            is_stateless: AtomicBool::new(false),
            tells_cancellation,
            tasks,
        };
        (Self(Arc::new(state)), messages)
    }

    /// Makes requests those of the stateless revision, or of those with `initialize`, from now on.
    pub(crate) fn set_stateless(&self, is_stateless: bool) {
        self.0.is_stateless.store(is_stateless, Ordering::Relaxed);
    }

    /// Whether requests are those of the stateless revision.
    pub(crate) fn is_stateless(&self) -> bool {
        self.0.is_stateless.load(Ordering::Relaxed)
    }

    /// Sends a request and waits for its result. A request that ends without an answer is taken back from the server, except for
    /// `initialize`, which cannot be.
    ///
    /// # Errors
    /// [`RequestError`].
    pub(crate) async fn request(
        &self,
        method: &'static str,
        mut params: Value,
        terms: RequestTerms<'_>,
    ) -> Result<Value, RequestError> {
        let RequestTerms { timeout, cancel, progress, user, header_arguments } = terms;
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        if progress.is_some() {
            params["_meta"]["progressToken"] = json!(id);
        }
        let repeated = self.is_stateless().then(|| {
            let has_user = user.as_ref().is_some_and(|user| user.is_there());
            revision::introduce(&mut params, self.0.handler.roots().is_some(), has_user);
            let subject = params.get("name").or_else(|| params.get("uri")).and_then(Value::as_str);
            RepeatedInHeaders { subject: subject.map(str::to_owned), arguments: header_arguments }
        });
        let is_stateless = repeated.is_some();
        let message = message::request(id, method, &params, repeated);
        drop(params);
        let (answer, answered) = oneshot::channel();
        let heard = Arc::new(Notify::new());
        {
            let mut open = self.lock();
            if let Some(reason) = &open.closed {
                return Err(RequestError::Closed(Arc::clone(reason)));
            }
            let (ended, over) = (CancellationToken::new(), CancellationToken::new());
            let request = OpenRequest {
                answer,
                heard: Arc::clone(&heard),
                progress,
                reported: None,
                ended,
                user,
                questions: 0,
                _over: over.clone().drop_guard(),
                over,
            };
            open.requests.insert(id, request);
        }
        let _guard = OpenGuard { peer: self, id };
        let asked = async {
            // A server that does not read keeps its own callers waiting. Without a writer the answer's sender is dropped, below.
            let _ = self.0.outgoing.send(message).await;
            answered.await
        };
        let cancelled = async {
            match cancel {
                Some(cancel) => cancel.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let late = sleep(timeout);
        tokio::pin!(asked, cancelled, late);
        loop {
            let error = tokio::select! {
                biased;
                answer = &mut asked => {
                    return answer.unwrap_or_else(|_| Err(RequestError::Closed(self.closed_reason())));
                }
                () = &mut cancelled => RequestError::Cancelled,
                () = heard.notified() => {
                    late.as_mut().reset(Instant::now() + timeout);
                    continue;
                }
                () = &mut late => {
                    // The time of the user is not the server's.
                    if self.is_asked_about(id) {
                        late.as_mut().reset(Instant::now() + timeout);
                        continue;
                    }
                    RequestError::TimedOut(timeout)
                }
            };
            if method != "initialize" && (!is_stateless || self.0.tells_cancellation) {
                let reason = if error == RequestError::Cancelled { "aborted" } else { "timed out" };
                self.notify("notifications/cancelled", Some(&json!({"requestId": id, "reason": reason})));
            }
            return Err(error);
        }
    }

    /// Sends a notification; a server that has not read the messages before does not get it.
    pub(crate) fn notify(&self, method: &'static str, params: Option<&Value>) {
        self.send_now(message::notification(method, params));
    }

    /// Takes a message of the server; where it came as part of the answer to a request, with that request.
    pub(crate) fn receive(&self, incoming: Incoming, about: Option<u64>) {
        match incoming {
            Incoming::Response { id, outcome } => {
                let open = id.and_then(|id| self.lock().requests.remove(&id));
                match open {
                    // The caller may have left.
                    Some(open) => drop(open.answer.send(outcome.map_err(RequestError::Server))),
                    None => tracing::debug!(?id, "an MCP server answered a request that is not open"),
                }
            }
            Incoming::Request { id, method, params } => self.answer(id, &method, params, about),
            Incoming::Notification { method, params } if method == "notifications/progress" => {
                self.on_progress(&params);
            }
            Incoming::Notification { method, params } => self.0.handler.notification(&method, &params),
        }
    }

    /// Ends a request that will have no answer.
    pub(crate) fn fail(&self, id: u64, error: RequestError) {
        let open = self.lock().requests.remove(&id);
        if let Some(open) = open {
            // The caller may have left.
            let _ = open.answer.send(Err(error));
        }
    }

    /// Fires when nobody waits for the answer of a request any more; `None` for one that is over.
    pub(crate) fn ended(&self, id: u64) -> Option<CancellationToken> {
        self.lock().requests.get(&id).map(|open| open.ended.clone())
    }

    /// Takes no more requests; those that are open go on.
    pub(crate) fn refuse_more(&self, reason: &str) {
        self.lock().closed.get_or_insert_with(|| reason.into());
    }

    /// Ends every open request, and those to come. The first reason counts.
    pub(crate) fn close(&self, reason: &str) {
        let mut open = self.lock();
        let reason = Arc::clone(open.closed.get_or_insert_with(|| reason.into()));
        open.end.cancel();
        for (_, request) in open.requests.drain() {
            // The caller may have left.
            let _ = request.answer.send(Err(RequestError::Closed(Arc::clone(&reason))));
        }
    }

    /// Why the connection has ended, if it has.
    pub(crate) fn closed(&self) -> Option<Arc<str>> {
        self.lock().closed.clone()
    }

    /// Waits for the end of the connection.
    async fn until_closed(&self) {
        let end = self.lock().end.clone();
        end.cancelled().await;
    }

    fn closed_reason(&self) -> Arc<str> {
        self.closed().unwrap_or_else(|| "the connection has ended".into())
    }

    fn on_progress(&self, params: &Value) {
        let Some(id) = params.get("progressToken").and_then(Value::as_u64) else { return };
        let mut open = self.lock();
        let Some(request) = open.requests.get_mut(&id) else { return };
        request.heard.notify_one();
        let now = Instant::now();
        let is_soon = request.reported.is_some_and(|last| now.duration_since(last) < PROGRESS_PAUSE);
        if let Some(report) = request.progress.as_ref().filter(|_| !is_soon) {
            report(progress_text(params));
            request.reported = Some(now);
        }
    }

    fn send_now(&self, message: Outgoing) {
        if self.0.outgoing.try_send(message).is_err() {
            tracing::debug!("an MCP server does not read; a message to it was dropped");
        }
    }

    fn lock(&self) -> MutexGuard<'_, OpenRequests> {
        // No method panics halfway.
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A report of progress in words.
fn progress_text(params: &Value) -> String {
    let amount = |key: &str| params.get(key).and_then(Value::as_f64);
    match (params.get("message").and_then(Value::as_str), amount("progress"), amount("total")) {
        (Some(message), ..) if !message.trim().is_empty() => message.to_owned(),
        (_, Some(progress), Some(total)) => format!("Progress {progress}/{total}"),
        (_, Some(progress), None) => format!("Progress {progress}"),
        (_, None, _) => "Progress".to_owned(),
    }
}

#[cfg(test)]
mod tests;
