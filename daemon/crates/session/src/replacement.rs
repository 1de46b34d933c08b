//! Leaving a session for another one: why, what of the extensions goes along, and who waits for it.
//!
//! Clients leave by `new_session`, `switch_session`, `fork` and `clone`, and extensions by calls within a command: then the client moves whose
//! prompt called the command. The connection does both alike; a session cannot replace itself.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agentd_extensions::{CallResponder, EventKind, HostFailure, KeptHosts};
use agentd_protocol::error::Failure;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::{event_log::SubscriberId, extensions::RunningCommand, project_answer::AskedBefore};

/// How a session is left for another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leaving {
    /// For a new one, with this parent.
    New {
        /// The file of the parent.
        parent: Option<String>,
    },
    /// For the one of a file.
    Resume {
        /// The file, as it was given.
        path: String,
    },
    /// For a copy that ends before an entry.
    ForkBefore {
        /// A message of the user.
        entry_id: String,
    },
    /// For a copy that ends with an entry.
    ForkAt {
        /// The entry.
        entry_id: String,
    },
    /// For a copy of the branch.
    Clone,
}

impl Leaving {
    /// The reason, as `session_shutdown` and `session_start` say it.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::New { .. } => "new",
            Self::Resume { .. } => "resume",
            Self::ForkBefore { .. } | Self::ForkAt { .. } | Self::Clone => "fork",
        }
    }

    /// The event that asks extensions; `leaf` is that of the session. `None` where there is nothing to copy.
    pub(crate) fn question(&self, leaf: Option<&str>) -> Option<(EventKind, Value)> {
        let switch = EventKind::SessionBeforeSwitch;
        let fork = |entry_id: &str, position: &str| {
            let kind = EventKind::SessionBeforeFork;
            (kind, json!({"type": kind.name(), "entryId": entry_id, "position": position}))
        };
        Some(match self {
            Self::New { .. } => (switch, json!({"type": switch.name(), "reason": "new"})),
            Self::Resume { path } => {
                (switch, json!({"type": switch.name(), "reason": "resume", "targetSessionFile": path}))
            }
            Self::ForkBefore { entry_id } => fork(entry_id, "before"),
            Self::ForkAt { entry_id } => fork(entry_id, "at"),
            Self::Clone => fork(leaf?, "at"),
        })
    }
}

/// What the extensions of a session say about leaving it.
#[derive(Default)]
pub struct LeavingAnswer {
    /// Their answer, where somebody is asked: whether they prevent it.
    pub question: Option<oneshot::Receiver<bool>>,
    /// Whether they bring models, from which a session that comes next may begin with one.
    pub has_models: bool,
    /// What they have to do with the trust in its project.
    pub asked: AskedBefore,
}

/// The end of a session that is left for another one.
pub struct SessionEnd {
    /// `new`, `resume`, `fork`; `quit` where there is no other.
    pub reason: &'static str,
    /// The file of the session after it.
    pub target: Option<String>,
    /// Gets the hosts of its extensions. Without it, they end.
    pub hosts: Option<oneshot::Sender<KeptHosts>>,
}

/// The beginning of a session that a client goes to.
pub struct SessionBeginning {
    /// `new`, `resume` or `fork`.
    pub reason: &'static str,
    /// The file of the session before.
    pub previous_file: Option<String>,
    /// The hosts of its extensions.
    pub hosts: KeptHosts,
    /// The command of an extension that led there.
    pub command: Option<MovedCommand>,
    /// Hears of the start of the extensions: once their handlers of `session_start` have ended.
    pub started: oneshot::Sender<Result<(), Failure>>,
}

/// A command of an extension that leads to another session: its call, and the prompt that is answered once the command has ended.
pub struct MovedCommand {
    pub(crate) running: Option<Box<RunningCommand>>,
    pub(crate) call: ReplaceCall,
    /// Why what the command does after the move cannot run.
    pub(crate) fault: Option<Failure>,
}

/// The call of an extension that replaces the session.
pub(crate) struct ReplaceCall {
    pub(crate) responder: CallResponder,
    /// The function that fills the new session.
    pub(crate) setup: Option<u64>,
    /// The function that goes on in it.
    pub(crate) with_session: Option<u64>,
}

/// A call of an extension that replaces the session, within a command.
pub(crate) struct AskedMove {
    pub(crate) leaving: Leaving,
    /// The number of the command.
    pub(crate) command: u64,
    pub(crate) call: ReplaceCall,
}

impl MovedCommand {
    /// The prompt is answered through another subscription from here on.
    pub fn answer_through(&mut self, subscriber: SubscriberId) {
        if let Some(running) = &mut self.running
            && running.request.reply.subscriber != SubscriberId::NOBODY
        {
            running.request.reply.subscriber = subscriber;
        }
    }

    /// Whether a client waits for the answer of the prompt.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        let running = self.running.as_ref();
        running.is_some_and(|running| running.request.reply.subscriber != SubscriberId::NOBODY)
    }

    /// What the command does after the move cannot run.
    #[must_use]
    pub fn without_hosts(self, fault: Failure) -> Self {
        Self { fault: Some(fault), ..self }
    }

    /// The command goes on nowhere. Returns the `id` of the prompt that is to be answered, where there is one.
    #[must_use]
    pub fn give_up(self, failure: &Failure) -> Option<Option<Value>> {
        let is_awaited = self.is_awaited();
        let running = self.refuse(failure)?;
        running.cancel.cancel();
        is_awaited.then_some(running.request.reply.id)
    }

    /// The call failed: no session was left. The command goes on where it was.
    pub(crate) fn refuse(self, failure: &Failure) -> Option<Box<RunningCommand>> {
        self.call.responder.send(&Err(HostFailure::new("failed", failure.error.clone())));
        self.running
    }
}

/// An extension leads a client to another session.
pub struct MoveRequest {
    /// The session that is left.
    pub session: Arc<str>,
    /// How.
    pub leaving: Leaving,
    /// What its extensions have to do with the trust in its project.
    pub asked: AskedBefore,
    /// Its command.
    pub command: MovedCommand,
}

/// An extension wants something of a connection.
pub enum ClientOrder {
    /// To go to another session.
    Move(Box<MoveRequest>),
    /// To end, where it has a daemon of its own.
    Quit,
}

/// The connections that extensions can lead to other sessions, by their subscriptions.
#[derive(Clone, Default)]
pub(crate) struct Movers(Arc<Mutex<HashMap<u64, mpsc::UnboundedSender<ClientOrder>>>>);

impl Movers {
    /// The connection of a subscription; of nobody, the only one that there is.
    pub(crate) fn of(&self, subscriber: SubscriberId) -> Option<mpsc::UnboundedSender<ClientOrder>> {
        let movers = self.lock();
        if subscriber == SubscriberId::NOBODY {
            let mut all = movers.values();
            return all.next().filter(|_| all.next().is_none()).cloned();
        }
        movers.get(&subscriber.0).cloned()
    }

    /// Tells all connections that the session is to end.
    pub(crate) fn quit(&self) {
        for mover in self.lock().values() {
            // One that has left needs not be told.
            let _ = mover.send(ClientOrder::Quit);
        }
    }

    pub(crate) fn add(
        &self,
        subscriber: SubscriberId,
        moves: mpsc::UnboundedSender<ClientOrder>,
    ) -> MoverGuard {
        self.lock().insert(subscriber.0, moves);
        MoverGuard { movers: self.clone(), subscriber }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, mpsc::UnboundedSender<ClientOrder>>> {
        // No method panics halfway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection can be led to other sessions until it is dropped.
pub struct MoverGuard {
    movers: Movers,
    subscriber: SubscriberId,
}

impl Drop for MoverGuard {
    fn drop(&mut self) {
        self.movers.lock().remove(&self.subscriber.0);
    }
}
