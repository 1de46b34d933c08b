//! The sessions of subagents: opened in the registry like those of clients, and driven without a connection.

use std::{
    path::PathBuf,
    sync::{Arc, Weak},
};

use agentd_protocol::{
    command::SessionCommand,
    daemon::EndMode,
    error::{ErrorCode, Failure},
    frame::Response,
};
use agentd_session::{FeedItem, Reply, SessionOptions, SubagentHost, SubagentSession};
use futures::future::BoxFuture;
use serde_json::Value;

use super::{JoinIntent, SessionRegistry, SessionSlot};

/// Opens sessions in a registry. Weak, since the registry's services know it.
struct RegistryHost(Weak<SessionRegistry>);

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
    registry.subagent_hosting().set(Arc::new(RegistryHost(Arc::downgrade(&registry))));
    registry
}

impl SubagentHost for RegistryHost {
    fn open(&self, options: SessionOptions) -> BoxFuture<'_, Result<Arc<dyn SubagentSession>, String>> {
        Box::pin(async move {
            let registry = self.0.upgrade().ok_or("The daemon is ending.")?;
            let acquired = registry.open(options).await.map_err(|error| error.to_string())?;
            let session = RegistrySession {
                registry: Weak::clone(&self.0),
                slot: acquired.session,
                _expected: acquired.expected,
            };
            Ok(Arc::new(session) as Arc<dyn SubagentSession>)
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

    fn tell(&self, command: SessionCommand) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            let gone = || Failure::new(ErrorCode::NoSession, "Its session has ended.");
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
