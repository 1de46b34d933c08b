//! The task that summarises beside the actor, and what it sends to its session.
//!
//! The actor plans, since it has the tree; the task asks the model and hands the finished entry back by a run message. Where a run compacts
//! by itself, the run does this work (`run/compact.rs`); the command `compact` works when there is no run.

use std::sync::Arc;

use agentd_protocol::{
    Json,
    entry::{EntryBody, SessionEntry},
    event::Event,
    message::CustomMessage,
};
use bytes::Bytes;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{
    error::CompactionError,
    plan::{Plan, PlanRequest},
};
use crate::{context::SessionContext, message_sender::MessageSender, reply::encode};

/// Summarises in a task beside the actor.
pub(crate) struct CompactionWorker {
    pub(crate) context: Arc<SessionContext>,
    pub(crate) session: MessageSender<CompactionMessage>,
    /// Stops the work as long as its result is not stored.
    pub(crate) cancel: CancellationToken,
}

/// A message from a compaction to its session.
pub(crate) enum CompactionMessage {
    /// Plans a compaction.
    Plan { request: PlanRequest, reply: oneshot::Sender<Result<Plan, CompactionError>> },
    /// A compaction to store. Answered with the estimated tokens of the context from there on.
    Store { entry: Box<EntryBody>, stored: oneshot::Sender<Result<u64, CompactionError>> },
    /// What hooks tell the model after a compaction.
    StoreContext { message: Box<CustomMessage>, stored: oneshot::Sender<()> },
    /// Asks for the entries of the branch, which extensions are shown.
    Branch { reply: oneshot::Sender<Vec<Json<SessionEntry>>> },
    /// An event, as its finished line.
    Publish(Bytes),
    /// An event for clients that said hello.
    PublishToIntroduced(Bytes),
}

impl CompactionWorker {
    /// Asks the session for the plan.
    ///
    /// # Errors
    /// [`CompactionError::AlreadyCompacted`], [`CompactionError::NothingToCompact`].
    pub(crate) async fn plan(&self, request: PlanRequest) -> Result<Plan, CompactionError> {
        self.ask(|reply| CompactionMessage::Plan { request, reply }).await?
    }

    /// Publishes an event. A session that is gone needs none.
    pub(crate) async fn tell(&self, event: &Event) {
        match encode(event) {
            Ok(line) => self.session.send(CompactionMessage::Publish(line)).await,
            Err(error) => tracing::error!(%error, "cannot write an event"),
        }
    }

    /// Publishes an event for those who said hello.
    pub(super) async fn tell_introduced(&self, event: &Event) {
        match encode(event) {
            Ok(line) => self.session.send(CompactionMessage::PublishToIntroduced(line)).await,
            Err(error) => tracing::error!(%error, "cannot write an event"),
        }
    }

    /// Sends a message and waits for its answer.
    pub(super) async fn ask<T>(
        &self,
        message: impl FnOnce(oneshot::Sender<T>) -> CompactionMessage,
    ) -> Result<T, CompactionError> {
        let (reply, answer) = oneshot::channel();
        self.session.send(message(reply)).await;
        // Without the session nobody looks at the result.
        answer.await.map_err(|_| CompactionError::Broken("the session was closed".to_owned()))
    }
}
