//! Tells what keeps the changes of tools when a command begins and ends. Nothing happens where undo is off.

use std::sync::Arc;

use agentd_agent::hooks::Requester;
use agentd_checkpoints::{CommandGuard, SessionCheckpoints};

/// A command whose changes are kept. Dropped early, the end is told on a thread of its own.
pub struct CommandWatch(Option<CommandGuard>);

impl CommandWatch {
    /// Tells that a command is about to start, once the index of the folder is made. The user's own commands are told, too, so that
    /// their changes are not taken for the agent's.
    ///
    /// Cancel safe: a command that was told and does not start has no changes.
    pub async fn begin(
        undo: Option<&Arc<SessionCheckpoints>>,
        call_id: Option<&str>,
        tool: &'static str,
        by: Requester<'_>,
    ) -> Self {
        let Some(undo) = undo.cloned() else { return Self(None) };
        let call_id = call_id.map(str::to_owned);
        let is_agent = by != Requester::User;
        let begun = tokio::task::spawn_blocking(move || undo.begin_command(call_id, tool, is_agent)).await;
        if let Err(error) = &begun {
            tracing::error!(%error, "changes of a command are not kept for undo");
        }
        Self(begun.ok())
    }

    /// Tells that the command ended, and waits until what it changed is kept.
    pub async fn end(self) {
        let Some(guard) = self.0 else { return };
        if let Err(error) = tokio::task::spawn_blocking(move || guard.end()).await {
            tracing::error!(%error, "changes of a command are not kept for undo");
        }
    }
}
