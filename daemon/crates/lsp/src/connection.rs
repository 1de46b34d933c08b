//! Requests and notifications to one server, and their answers. Knows no processes.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    framing::framed,
    message::{self, RpcError},
};

/// Messages that wait to be written. Those that come then wait for their turn.
const QUEUE: usize = 32;

/// Time for a message to be taken by a server that reads.
const WRITE_WAIT: Duration = Duration::from_secs(10);

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestError {
    /// The server is gone; the text says how it ended.
    #[error("{0}")]
    Closed(String),
    /// There was no answer in time.
    #[error("it did not answer {method} within {} s", limit.as_secs_f64())]
    Timeout { method: String, limit: Duration },
    /// It does not read what is written to it.
    #[error("it does not read its input")]
    Stuck,
    /// The call was aborted.
    #[error("Operation aborted")]
    Aborted,
    /// The server refused.
    #[error("{} (code {})", .0.message, .0.code)]
    Refused(RpcError),
    /// The answer was dropped.
    #[error("{0}")]
    Dropped(String),
}

type Waiting = HashMap<u64, oneshot::Sender<Result<Value, RequestError>>>;

/// The side of agentd of a connection. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Connection(Arc<State>);

struct State {
    out: mpsc::Sender<Vec<u8>>,
    last_id: AtomicU64,
    waiting: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    requests: Waiting,
    /// How the connection ended.
    closed: Option<String>,
}

impl Connection {
    /// A connection, and the messages that are to be written.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Vec<u8>>) {
        let (out, messages) = mpsc::channel(QUEUE);
        let state = State { out, last_id: AtomicU64::new(0), waiting: Mutex::default() };
        (Self(Arc::new(state)), messages)
    }

    /// Asks, and waits for the answer: at most `limit`. Where it is not waited for any more, the server is told.
    ///
    /// Cancel safety: dropped early, the server is not told, and its answer is passed over.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: &Value,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Result<Value, RequestError> {
        let id = self.0.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (answered, mut answer) = oneshot::channel();
        {
            let mut pending = self.pending();
            if let Some(why) = &pending.closed {
                return Err(RequestError::Closed(why.clone()));
            }
            pending.requests.insert(id, answered);
        }
        let _forgotten = Forget { connection: self, id };
        let asked = async {
            self.send(&message::request(id, method, params)).await?;
            match (&mut answer).await {
                Ok(result) => result,
                Err(_) => Err(RequestError::Closed("the connection was closed".to_owned())),
            }
        };
        let error = match cancel.run_until_cancelled(timeout(limit, asked)).await {
            Some(Ok(result)) => return result,
            Some(Err(_)) => RequestError::Timeout { method: method.to_owned(), limit },
            None => RequestError::Aborted,
        };
        // A server that hangs does not read this either: nothing waits for it.
        let told = framed(&message::notification("$/cancelRequest", &json!({"id": id})));
        let _ = self.0.out.try_send(told);
        Err(error)
    }

    /// Notifies the server. Waits while it takes its time to read.
    pub(crate) async fn notify(&self, method: &str, params: &Value) -> Result<(), RequestError> {
        self.send(&message::notification(method, params)).await
    }

    async fn send(&self, message: &Value) -> Result<(), RequestError> {
        match timeout(WRITE_WAIT, self.0.out.send(framed(message))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(RequestError::Closed(self.reason())),
            Err(_) => Err(RequestError::Stuck),
        }
    }

    /// Answers a request of the server. False where the answers that it does not read fill the queue.
    pub(crate) fn respond(&self, id: &Value, result: Result<Value, RpcError>) -> bool {
        let message = framed(&message::response(id, result));
        !matches!(self.0.out.try_send(message), Err(mpsc::error::TrySendError::Full(_)))
    }

    /// Passes an answer on to its request.
    pub(crate) fn answered(&self, id: u64, result: Result<Value, RpcError>) {
        if let Some(answered) = self.pending().requests.remove(&id) {
            // A request that is not waited for any more is gone.
            let _ = answered.send(result.map_err(RequestError::Refused));
        }
    }

    /// Ends all open requests: an answer was lost, and nobody knows whose.
    pub(crate) fn drop_answers(&self, why: &str) {
        for (_, answered) in self.pending().requests.drain() {
            let _ = answered.send(Err(RequestError::Dropped(why.to_owned())));
        }
    }

    /// Closes the connection. The first reason stays.
    pub(crate) fn close(&self, why: &str) {
        let mut pending = self.pending();
        let why = pending.closed.get_or_insert_with(|| why.to_owned()).clone();
        for (_, answered) in pending.requests.drain() {
            let _ = answered.send(Err(RequestError::Closed(why.clone())));
        }
    }

    /// How it ended; `None` while it is open.
    pub(crate) fn closed(&self) -> Option<String> {
        self.pending().closed.clone()
    }

    /// Whether answers are waited for.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.pending().requests.is_empty()
    }

    fn reason(&self) -> String {
        self.closed().unwrap_or_else(|| "the connection was closed".to_owned())
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        // No method panics halfway.
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets a request that is not waited for any more.
struct Forget<'a> {
    connection: &'a Connection,
    id: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.connection.pending().requests.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);

    fn body(bytes: &[u8]) -> Value {
        let text = std::str::from_utf8(bytes).unwrap();
        serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    #[tokio::test]
    async fn answers_come_to_their_requests() {
        let (connection, mut sent) = Connection::new();
        let cancel = CancellationToken::new();
        let (one, other) = (json!({"a": 1}), Value::Null);
        let answering = async {
            let (first, second) = (body(&sent.recv().await.unwrap()), body(&sent.recv().await.unwrap()));
            assert_eq!((&first["params"], second.get("params")), (&json!({"a": 1}), None));
            connection.answered(second["id"].as_u64().unwrap(), Ok(json!("second")));
            let refused = RpcError { code: 3, message: "no".into() };
            connection.answered(first["id"].as_u64().unwrap(), Err(refused));
            connection.answered(77, Ok(Value::Null));
        };
        let (first, second, ()) = tokio::join!(
            connection.request("one", &one, LIMIT, &cancel),
            connection.request("two", &other, LIMIT, &cancel),
            answering
        );
        assert_eq!(first.unwrap_err().to_string(), "no (code 3)");
        assert_eq!(second.unwrap(), json!("second"));
        assert!(connection.pending().requests.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_is_told_what_is_not_waited_for() {
        let (connection, mut sent) = Connection::new();
        let (cancel, aborted) = (CancellationToken::new(), CancellationToken::new());
        aborted.cancel();
        let late = connection.request("slow", &Value::Null, LIMIT, &cancel).await;
        assert_eq!(late.unwrap_err().to_string(), "it did not answer slow within 5 s");
        assert_eq!(body(&sent.recv().await.unwrap())["method"], "slow");
        assert_eq!(
            body(&sent.recv().await.unwrap()),
            json!({
                "jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1},
            })
        );
        let gone = connection.request("slow", &Value::Null, LIMIT, &aborted).await;
        assert_eq!(gone, Err(RequestError::Aborted));
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_ends_what_waits_and_what_comes() {
        let (connection, _sent) = Connection::new();
        let cancel = CancellationToken::new();
        let closing = async { connection.close("it crashed") };
        let (open, ()) = tokio::join!(connection.request("m", &Value::Null, LIMIT, &cancel), closing);
        connection.close("another reason");
        let later = connection.request("m", &Value::Null, LIMIT, &cancel).await;
        let closed = Err(RequestError::Closed("it crashed".into()));
        assert_eq!((open, later), (closed.clone(), closed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_read_is_noticed() {
        let (connection, _sent) = Connection::new();
        let mut answers = 0;
        while connection.respond(&json!(answers), Ok(Value::Null)) {
            answers += 1;
        }
        assert_eq!(answers, QUEUE);
        assert_eq!(connection.notify("m", &Value::Null).await, Err(RequestError::Stuck));
    }
}
