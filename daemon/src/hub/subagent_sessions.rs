//! The sessions of subagents: opened in the registry like those of clients, and driven without a connection.

use std::{
    num::NonZero,
    path::PathBuf,
    sync::{Arc, Weak},
    thread::available_parallelism,
};

use agentd_protocol::{
    command::SessionCommand,
    daemon::EndMode,
    error::{ErrorCode, Failure},
    frame::Response,
};
use agentd_session::{FeedItem, Reply, SessionOptions, SubagentHost, SubagentSession, Subscriber};
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::{AcquiredSession, JoinIntent, SessionLookup, SessionRegistry, SessionSlot};

/// Opens sessions in a registry.
struct RegistryHost {
    /// Weak, since the registry's services know this host.
    registry: Weak<SessionRegistry>,
    /// The places for sessions that are being opened. A call can ask for a hundred: each reads files and builds its tools on a blocking
    /// thread, and threads beyond those that the processors serve cost memory, and are not faster.
    opening: Semaphore,
}

/// How many sessions of subagents are opened at the same time, for each processor: one waits for the disk while another works.
const OPENING_PER_PROCESSOR: usize = 2;

/// A session of the registry.
struct RegistrySession {
    registry: Weak<SessionRegistry>,
    slot: Arc<SessionSlot>,
    /// Keeps the session open while clients come and go.
    _expected: JoinIntent,
}

/// The registry, which opens the sessions of its sessions' subagents from now on.
#[must_use]
pub fn hosting_subagents(registry: Arc<SessionRegistry>) -> Arc<SessionRegistry> {
    let places = available_parallelism().map_or(1, NonZero::get) * OPENING_PER_PROCESSOR;
    let host = RegistryHost { registry: Arc::downgrade(&registry), opening: Semaphore::new(places) };
    registry.subagent_hosting().set(Arc::new(host));
    registry
}

impl RegistryHost {
    /// Opens a session once there is a place.
    async fn acquire(
        &self,
        registry: &Arc<SessionRegistry>,
        options: SessionOptions,
    ) -> Result<AcquiredSession, String> {
        // It is never closed.
        let _place = self.opening.acquire().await;
        registry.open(options).await.map_err(|error| error.to_string())
    }

    fn session(&self, acquired: AcquiredSession) -> Arc<dyn SubagentSession> {
        Arc::new(RegistrySession {
            registry: Weak::clone(&self.registry),
            slot: acquired.session,
            _expected: acquired.expected,
        })
    }
}

impl SubagentHost for RegistryHost {
    fn open(&self, options: SessionOptions) -> BoxFuture<'_, Result<Arc<dyn SubagentSession>, String>> {
        Box::pin(async move {
            let registry = self.registry.upgrade().ok_or("The daemon is ending.")?;
            let acquired = self.acquire(&registry, options).await?;
            if acquired.was_open {
                // Somebody else's, who would lose it.
                return Err(format!("The session \"{}\" is open already.", acquired.session.id()));
            }
            Ok(self.session(acquired))
        })
    }

    fn reopen(
        &self,
        options: SessionOptions,
        closes_first: bool,
    ) -> BoxFuture<'_, Result<Arc<dyn SubagentSession>, String>> {
        Box::pin(async move {
            let registry = self.registry.upgrade().ok_or("The daemon is ending.")?;
            if closes_first {
                let found = registry.look_up(&options).await.map_err(|error| error.to_string())?;
                if let SessionLookup::Open(open) = found {
                    registry.close(&open, EndMode::Abort).await;
                }
            }
            let acquired = self.acquire(&registry, options).await?;
            Ok(self.session(acquired))
        })
    }
}

impl SubagentSession for RegistrySession {
    fn id(&self) -> &str {
        self.slot.id()
    }

    fn file(&self) -> Option<PathBuf> {
        self.slot.file()
    }

    fn follow(&self) -> Option<Subscriber> {
        (!self.slot.has_ended()).then(|| self.slot.feed().attach_for_now())
    }

    fn send(&self, command: SessionCommand, reply: Reply) -> BoxFuture<'static, Result<(), Failure>> {
        let (registry, slot) = (Weak::clone(&self.registry), Arc::clone(&self.slot));
        Box::pin(async move {
            let registry = registry.upgrade().ok_or_else(gone)?;
            let guard = registry.ensure_loaded(&slot).await?;
            if guard.handle.send(command, reply).await { Ok(()) } else { Err(gone()) }
        })
    }

    fn tell(&self, command: SessionCommand) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            let registry = self.registry.upgrade().ok_or_else(gone)?;
            let guard = registry.ensure_loaded(&self.slot).await?;
            let answers = self.slot.feed().attach_aside(false);
            let name = command.name();
            let reply = Reply::plain(answers.id(), None, name);
            if !guard.handle.send(command, reply).await {
                return Err(gone());
            }
            // Nothing unloads it before it has answered: the answer of a command that begins work comes when the work has begun.
            let mut items = Vec::new();
            while answers.next_items(&mut items).await {
                for item in items.drain(..) {
                    let FeedItem::Reply { line } = item else { continue };
                    let response: Response<Value> = serde_json::from_slice(&line)
                        .map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))?;
                    return response.failure.map_or(Ok(()), Err);
                }
            }
            Err(gone())
        })
    }

    fn idle(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // One that is not in memory has nothing to do.
            if let Some(handle) = self.slot.loaded() {
                handle.idle().await;
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(registry) = self.registry.upgrade() {
                registry.close(&self.slot, EndMode::Abort).await;
            }
        })
    }
}

fn gone() -> Failure {
    Failure::new(ErrorCode::NoSession, "Its session has ended.")
}
