//! Which waiting call gets which response, and which lines are events.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use agentd_protocol::{error::ErrorCode, event::Event, lines::Line};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

/// An event, as its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventLine {
    /// The `type`.
    pub(crate) kind: String,
    /// The whole line, without its LF.
    pub(crate) text: String,
}

impl EventLine {
    /// The event; `None` for one that this version does not know, or cannot read.
    pub(crate) fn event(&self) -> Option<Event> {
        Event::parse(&self.kind, &self.text)?.ok()
    }
}

#[derive(Clone, Deserialize)]
pub(super) struct Reply {
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

/// Who waits for which answer; `None` once no answer can come any more.
#[derive(Clone)]
pub(super) struct PendingCalls {
    waiting: Arc<Mutex<Option<Waiting>>>,
    /// What a daemon said that does not take us in.
    farewell: Arc<OnceLock<Reply>>,
}

/// By the id of the command.
type Waiting = HashMap<String, oneshot::Sender<Reply>>;

impl PendingCalls {
    pub(super) fn new() -> Self {
        Self { waiting: Arc::new(Mutex::new(Some(HashMap::new()))), farewell: Arc::default() }
    }

    /// Waits for the answer to `id`. The receiver fails when the connection has ended, or ends before.
    pub(super) fn expect(&self, id: String) -> oneshot::Receiver<Reply> {
        let (sender, answer) = oneshot::channel();
        if let Some(waiting) = self.lock().as_mut() {
            waiting.insert(id, sender);
        }
        answer
    }

    fn take(&self, id: &str) -> Option<oneshot::Sender<Reply>> {
        self.lock().as_mut()?.remove(id)
    }

    /// What a daemon said that does not take us in.
    pub(super) fn farewell(&self) -> Option<Reply> {
        self.farewell.get().cloned()
    }

    /// Ends every call that waits, and every later one.
    pub(super) fn end(&self) {
        *self.lock() = None;
    }

    /// Nothing panics while the map is locked; were it so, the map would still be whole.
    fn lock(&self) -> MutexGuard<'_, Option<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands a response to whoever waits for it; gives an event back.
pub(super) fn route(line: Line, pending: &PendingCalls) -> Option<EventLine> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        id: Option<serde_json::Value>,
        #[serde(default)]
        code: Option<ErrorCode>,
    }
    // What is no line of the protocol can be of no use to any caller.
    let Line::Text(text) = line else { return None };
    let head: Head = serde_json::from_str(&text).ok()?;
    if head.kind != "response" {
        return Some(EventLine { kind: head.kind, text });
    }
    let Some(id) = head.id else {
        // Of other lines that could not be understood nobody waits for an answer.
        if head.code == Some(ErrorCode::LimitReached)
            && let Ok(farewell) = serde_json::from_str(&text)
        {
            // The first one counts: the connection ends with it.
            let _ = pending.farewell.set(farewell);
        }
        return None;
    };
    let waiting = pending.take(id.as_str()?)?;
    // Dropped instead of sent, the waiting call would learn that the daemon ended; it did not.
    let reply = serde_json::from_str(&text).unwrap_or_else(|error| Reply {
        success: false,
        data: None,
        error: Some(format!("agentd sent a response that cannot be read: {error}")),
        code: None,
        hint: None,
    });
    // A caller that gave up does not want it.
    let _ = waiting.send(reply);
    None
}
