//! Routes lines from the daemon: responses to the calls that wait for them, events to their receiver.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use agentd_protocol::{error::ErrorCode, event::Event, lines::Line};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

/// The line of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventLine {
    /// The `type`.
    pub kind: String,
    /// The whole line, without its LF.
    pub text: String,
}

impl EventLine {
    /// The parsed event; `None` for one that this version does not know or cannot read.
    pub fn event(&self) -> Option<Event> {
        Event::parse(&self.kind, &self.text)?.ok()
    }
}

#[derive(Clone, Deserialize)]
pub(super) struct ResponseBody {
    pub(super) success: bool,
    #[serde(default)]
    pub(super) data: Option<Box<RawValue>>,
    #[serde(default)]
    pub(super) error: Option<String>,
    #[serde(default)]
    pub(super) code: Option<String>,
    #[serde(default)]
    pub(super) hint: Option<String>,
}

/// The calls that wait for a response; `None` once the connection has ended.
#[derive(Clone)]
pub(super) struct PendingCalls {
    waiting: Arc<Mutex<Option<WaitingCalls>>>,
    /// The response of a daemon that refuses the connection.
    farewell: Arc<OnceLock<ResponseBody>>,
}

/// The waiting calls by the ids of their commands.
type WaitingCalls = HashMap<String, oneshot::Sender<ResponseBody>>;

impl PendingCalls {
    pub(super) fn new() -> Self {
        Self { waiting: Arc::new(Mutex::new(Some(HashMap::new()))), farewell: Arc::default() }
    }

    /// Registers a call. Its receiver fails when the connection has ended, or ends before the response.
    pub(super) fn expect(&self, id: String) -> oneshot::Receiver<ResponseBody> {
        let (sender, answer) = oneshot::channel();
        if let Some(waiting) = self.lock().as_mut() {
            waiting.insert(id, sender);
        }
        answer
    }

    fn take(&self, id: &str) -> Option<oneshot::Sender<ResponseBody>> {
        self.lock().as_mut()?.remove(id)
    }

    /// The response of a daemon that refuses the connection.
    pub(super) fn farewell(&self) -> Option<ResponseBody> {
        self.farewell.get().cloned()
    }

    /// Ends all calls, the waiting ones and later ones.
    pub(super) fn end(&self) {
        *self.lock() = None;
    }

    /// Nothing panics while the map is locked; after a panic it would still be whole.
    fn lock(&self) -> MutexGuard<'_, Option<WaitingCalls>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends a response to its call; gives an event back.
pub(super) fn route(line: Line, pending: &PendingCalls) -> Option<EventLine> {
    #[derive(Deserialize)]
    struct ResponseHead {
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        id: Option<serde_json::Value>,
        #[serde(default)]
        code: Option<ErrorCode>,
    }
    // A line that is not text belongs to no call.
    let Line::Text(text) = line else { return None };
    let head: ResponseHead = serde_json::from_str(&text).ok()?;
    if head.kind != "response" {
        return Some(EventLine { kind: head.kind, text });
    }
    let Some(id) = head.id else {
        // Other responses without an id answer lines that could not be read; no call waits for them.
        if head.code == Some(ErrorCode::LimitReached)
            && let Ok(farewell) = serde_json::from_str(&text)
        {
            // The first one counts: the connection ends with it.
            let _ = pending.farewell.set(farewell);
        }
        return None;
    };
    let waiting = pending.take(id.as_str()?)?;
    // Dropping the sender would mean that the daemon has ended.
    let reply = serde_json::from_str(&text).unwrap_or_else(|error| ResponseBody {
        success: false,
        data: None,
        error: Some(format!("agentd sent a response that cannot be read: {error}")),
        code: None,
        hint: None,
    });
    // The caller may have given up.
    let _ = waiting.send(reply);
    None
}
