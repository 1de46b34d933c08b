//! The commands about checkpoints, and the entries and events of new ones.

use std::sync::Arc;

use agentd_checkpoints::{CheckpointError, CheckpointSink, SessionCheckpoints, SessionFacts, UndoLimits};
use agentd_protocol::{
    checkpoints::{Checkpoint, DiffCheckpointParams, RestoreCheckpointParams},
    entry::EntryBody,
    error::{ErrorCode, Failure},
    event::CheckpointCreated,
};
use agentd_store::{EntryKind, Role};
use serde::Serialize;
use tokio::{
    sync::{mpsc, oneshot},
    task::{JoinError, spawn_blocking},
};

use super::session_actor::Actor;
use crate::{context::SessionContext, reply::Reply, run::RunMessage};

/// The type of the entry of a checkpoint.
const ENTRY_TYPE: &str = "checkpoint";

impl Actor {
    /// Connects what keeps the changes of tools with this session, and begins the index of its folder. Nothing where undo is off.
    pub(super) fn begin_undo(&self) {
        let Some(undo) = &self.context.undo else { return };
        undo.set_sink(sink(self.to_actor.clone()));
        let branch = self.journal.tree().branch();
        let is_prompt = |entry: &&agentd_store::Entry| entry.kind() == EntryKind::Message(Role::User);
        undo.set_prompt(branch.iter().rev().copied().find(is_prompt).map(|entry| entry.id().to_owned()));
        self.continue_ids(undo);
        let undo = Arc::clone(undo);
        // A thread of its own: the end of the daemon does not wait for it.
        let index = move || undo.prepare();
        if let Err(error) = std::thread::Builder::new().name("undo-index".into()).spawn(index) {
            tracing::warn!(%error, "the index for undo is made by the first command");
        }
    }

    /// The ids that the session file names are not used again, whatever the store has lost.
    fn continue_ids(&self, undo: &SessionCheckpoints) {
        let custom = self.journal.tree().entries().iter().filter(|entry| entry.kind() == EntryKind::Custom);
        for entry in custom {
            if let Some(EntryBody::Custom { custom_type, data: Some(data) }) = entry.body()
                && custom_type == ENTRY_TYPE
                && let Some(id) = data["id"].as_str()
            {
                undo.continue_after(id);
            }
        }
    }

    /// Stores the entry of a checkpoint, then tells of it.
    pub(super) async fn on_checkpoint(&mut self, checkpoint: Checkpoint) {
        let data = match serde_json::to_value(&checkpoint) {
            Ok(data) => data,
            Err(error) => return tracing::error!(%error, "cannot write a checkpoint"),
        };
        let entry = EntryBody::Custom { custom_type: ENTRY_TYPE.to_owned(), data: Some(data) };
        if let Err(failure) = self.journal.append(&entry).await {
            return tracing::error!(error = failure.error, "the entry of a checkpoint could not be stored");
        }
        self.publish_to_introduced(&CheckpointCreated { checkpoint }.into());
    }

    pub(super) fn list_checkpoints(&mut self, reply: Reply) {
        self.with_undo(reply, |undo| undo.list());
    }

    pub(super) fn diff_checkpoint(&mut self, params: DiffCheckpointParams, reply: Reply) {
        self.with_undo(reply, move |undo| undo.diff(&params));
    }

    /// Refused while something works that may change files.
    pub(super) fn restore_checkpoint(&mut self, params: RestoreCheckpointParams, reply: Reply) {
        if !self.is_idle() {
            let text = "The session is at work: changes cannot be undone meanwhile.";
            let hint = "Wait for agent_settled, or abort first.";
            return reply.fail(&self.feed, Failure::new(ErrorCode::Busy, text).hint(hint));
        }
        self.with_undo(reply, move |undo| undo.restore(&params));
    }

    /// Answers from a blocking thread; the session goes on meanwhile.
    fn with_undo<T: Serialize + Send + 'static>(
        &mut self,
        reply: Reply,
        work: impl FnOnce(&SessionCheckpoints) -> Result<T, CheckpointError> + Send + 'static,
    ) {
        let (context, to_actor) = (Arc::clone(&self.context), self.to_actor.clone());
        let feed = self.feed.clone();
        self.tasks.spawn(async move {
            let failed = |error: JoinError| Failure::new(ErrorCode::Internal, error.to_string());
            let of_checkpoints = to_actor.clone();
            let done = spawn_blocking(move || {
                let undo = match &context.undo {
                    Some(undo) => Arc::clone(undo),
                    None => reopen(&context, of_checkpoints)?,
                };
                work(&undo).map_err(|error| failure(&error))
            });
            let done = done.await.map_err(failed).and_then(|done| done);
            // The checkpoint of a restoring is on its way to the actor: the answer comes after its entry.
            let (handled, all_handled) = oneshot::channel();
            if to_actor.send(RunMessage::CheckpointsHandled(handled)).await.is_ok() {
                // An actor that ends has stored what it could.
                let _ = all_handled.await;
            }
            reply.result(&feed, done);
        });
    }
}

fn sink(to_actor: mpsc::Sender<RunMessage>) -> CheckpointSink {
    Box::new(move |checkpoint| {
        // A session that is gone has no file to write to.
        let _ = to_actor.blocking_send(RunMessage::Checkpoint(Box::new(checkpoint)));
    })
}

/// What was kept for a session while undo was on, though it is off now. Blocks.
fn reopen(
    context: &SessionContext,
    to_actor: mpsc::Sender<RunMessage>,
) -> Result<Arc<SessionCheckpoints>, Failure> {
    let agent_dir = context.agent_dir.path().to_owned();
    if context.is_elsewhere || !context.agent_dir.undo_dir().is_dir() {
        return Err(Failure::new(ErrorCode::Unsupported, "Undo is off: no changes of tool calls are kept.").hint(
            "The setting {\"undo\": {\"enabled\": true}} or the flag --undo on turns it on, for changes from then on.",
        ));
    }
    let limits = UndoLimits::of(&context.settings.undo.clone().unwrap_or_default());
    let facts = SessionFacts { id: context.session_id.clone(), cwd: context.cwd.clone(), agent_dir };
    let undo = SessionCheckpoints::open(&context.services.undo, facts, limits)
        .map_err(|error| Failure::new(ErrorCode::Io, error))?;
    undo.set_sink(sink(to_actor));
    Ok(undo)
}

fn failure(error: &CheckpointError) -> Failure {
    let code = match error {
        CheckpointError::Unknown(_) | CheckpointError::Nothing(_) | CheckpointError::OtherFiles => {
            ErrorCode::NotFound
        }
        CheckpointError::Choice => ErrorCode::InvalidField,
        CheckpointError::Io(_) => ErrorCode::Io,
    };
    Failure::new(code, error.to_string())
}
