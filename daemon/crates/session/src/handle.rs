//! What others hold of a session: cheap to clone, and the only way in.

use std::sync::{Arc, Mutex, PoisonError};

use agentd_protocol::command::Command;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{feed::Feed, reply::Reply};

/// How many commands wait for a busy session before their senders wait.
pub(crate) const INBOX: usize = 64;

/// A live session.
#[derive(Clone)]
pub struct SessionHandle {
    pub(crate) id: Arc<str>,
    pub(crate) feed: Feed,
    pub(crate) inbox: mpsc::Sender<Message>,
    pub(crate) abort: AbortSwitch,
    /// Fires when the session is to end, whatever its listeners do.
    pub(crate) closing: CancellationToken,
}

/// What the inbox takes.
pub(crate) enum Message {
    /// A command of a client.
    Command(Box<Command>, Reply),
    /// Answers when the session is idle.
    WhenIdle(oneshot::Sender<()>),
    /// Ends the session: aborts its run, waits, flushes. Answers when everything is on disk and nothing runs.
    Close(oneshot::Sender<()>),
}

impl SessionHandle {
    /// The session's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What the session says.
    #[must_use]
    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    /// Hands over a command; its answer comes through the feed. An abort takes effect at once, before the session has
    /// looked at what is queued in front of it. False when the session has ended.
    ///
    /// Cancel safety: dropped early, the command was either handed over or not.
    pub async fn send(&self, command: Command, reply: Reply) -> bool {
        if matches!(command, Command::Abort(_)) {
            self.abort.fire();
        }
        self.inbox.send(Message::Command(Box::new(command), reply)).await.is_ok()
    }

    /// Waits until the session has nothing to do.
    pub async fn idle(&self) {
        let (done, waiting) = oneshot::channel();
        if self.inbox.send(Message::WhenIdle(done)).await.is_ok() {
            // An error means that the session has ended, which is idle enough.
            let _ = waiting.await;
        }
    }

    /// Ends the session: commands that were sent before are taken, the run is aborted and its end stored, processes are
    /// ended. Returns when nothing of it is left.
    pub async fn close(&self) {
        let (done, waiting) = oneshot::channel();
        self.closing.cancel();
        if self.inbox.send(Message::Close(done)).await.is_ok() {
            let _ = waiting.await;
        }
    }
}

/// Stops the current run from outside of the inbox.
#[derive(Clone, Default)]
pub(crate) struct AbortSwitch(Arc<Mutex<Option<CancellationToken>>>);

impl AbortSwitch {
    /// Makes `run` what [`Self::fire`] stops.
    pub(crate) fn arm(&self, run: CancellationToken) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(run);
    }

    /// There is no run to stop any more.
    pub(crate) fn disarm(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Stops the current run, if there is one.
    pub(crate) fn fire(&self) {
        if let Some(run) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            run.cancel();
        }
    }
}
