//! Who opens the sessions of subagents: the registry of sessions, which the session crate does not know.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use agentd_protocol::{command::SessionCommand, error::Failure};
use futures::future::BoxFuture;

use crate::{event_log::Subscriber, options::SessionOptions, reply::Reply};

/// Opens the sessions of subagents.
pub trait SubagentHost: Send + Sync {
    /// Opens a session, as for a client. Cancel safety: dropped early, the session may stay open.
    fn open(&self, options: SessionOptions) -> BoxFuture<'_, Result<Arc<dyn SubagentSession>, String>>;

    /// The same for one that exists, and may be open. With `closes_first`, it is closed then, so that it has these options; without, it is as it
    /// is. Cancel safety: as of [`Self::open`].
    fn reopen(
        &self,
        options: SessionOptions,
        closes_first: bool,
    ) -> BoxFuture<'_, Result<Arc<dyn SubagentSession>, String>>;
}

/// The session of a subagent. Until it is dropped, the session is not closed because a client leaves it.
pub trait SubagentSession: Send + Sync {
    /// The session's id.
    fn id(&self) -> &str;

    /// The session's file, which need not be there yet; `None` for a session in memory.
    fn file(&self) -> Option<PathBuf>;

    /// Follows the session: all its events and answers from here on. `None` once it has ended.
    fn follow(&self) -> Option<Subscriber>;

    /// Sends a command, whose answer comes to the subscriber of `reply`. The session is loaded where it is not in memory.
    fn send(&self, command: SessionCommand, reply: Reply) -> BoxFuture<'static, Result<(), Failure>>;

    /// Sends a command, as a client does, and waits for its answer. The session is loaded where it is not in memory.
    fn tell(&self, command: SessionCommand) -> BoxFuture<'_, Result<(), Failure>>;

    /// Waits until nothing works in the session.
    fn idle(&self) -> BoxFuture<'_, ()>;

    /// Ends the session with all that it runs.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// The host, once there is one: services are made before the registry that uses them.
#[derive(Clone, Default)]
pub struct SubagentHosting(Arc<OnceLock<Arc<dyn SubagentHost>>>);

impl SubagentHosting {
    /// Only the first host counts.
    pub fn set(&self, host: Arc<dyn SubagentHost>) {
        // A daemon has one registry.
        let _ = self.0.set(host);
    }

    pub(crate) fn get(&self) -> Option<&Arc<dyn SubagentHost>> {
        self.0.get()
    }
}
