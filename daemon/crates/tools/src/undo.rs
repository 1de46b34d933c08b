//! Tells what keeps the changes of tools when a command begins and ends. Nothing happens where undo is off.

use std::sync::Arc;

use agentd_agent::{ToolError, hooks::Requester};
use agentd_checkpoints::{CommandGuard, Gap, SessionCheckpoints};
use agentd_protocol::{message::ContentBlock, tool::ToolResult};

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
        tool: &str,
        by: Requester<'_>,
    ) -> Self {
        let Some(undo) = undo.cloned() else { return Self(None) };
        let (call_id, tool) = (call_id.map(str::to_owned), tool.to_owned());
        let is_agent = by != Requester::User;
        let begun = tokio::task::spawn_blocking(move || undo.begin_command(call_id, &tool, is_agent)).await;
        if let Err(error) = &begun {
            tracing::error!(%error, "changes of a command are not kept for undo");
        }
        Self(begun.ok())
    }

    /// Tells that the command ended, and waits until what it changed is kept. Says what of it there was no room for.
    pub async fn end(self) -> Option<Gap> {
        let guard = self.0?;
        let ended = tokio::task::spawn_blocking(move || guard.end()).await;
        ended.unwrap_or_else(|error| {
            tracing::error!(%error, "changes of a command are not kept for undo");
            None
        })
    }
}

/// Says in the result of a call that it cannot be undone. The call has not failed by that.
///
/// # Errors
/// The error of `done`.
pub fn explain_gap(done: Result<ToolResult, ToolError>, gap: Option<Gap>) -> Result<ToolResult, ToolError> {
    let Some(gap) = gap else { return done };
    let note = format!("[Undo: {gap}.]");
    match done {
        Ok(mut result) => {
            if let Some(ContentBlock::Text { text, .. }) = result.content.last_mut() {
                text.push_str("\n\n");
                text.push_str(&note);
            } else {
                result.content.extend(ToolResult::text(note).content);
            }
            Ok(result)
        }
        Err(ToolError(text)) => Err(ToolError(format!("{text}\n\n{note}"))),
    }
}
