//! Shell hooks around a compaction: they may prevent it, and tell the model again what it is to know.

use agentd_hooks::{HookEvent, HookInput};
use agentd_protocol::compaction::CompactionReason;

use super::{
    error::CompactionError,
    worker::{CompactionMessage, CompactionWorker},
};
use crate::shell_hooks::context_message;

impl CompactionWorker {
    /// Asks the `PreCompact` hooks.
    ///
    /// # Errors
    /// [`CompactionError::Prevented`] where one says no; [`CompactionError::Cancelled`].
    pub(super) async fn permitted_by_hooks(
        &self,
        reason: CompactionReason,
        focus: Option<&str>,
    ) -> Result<(), CompactionError> {
        let hooks = self.context.hooks.as_ref().filter(|hooks| hooks.has(HookEvent::PreCompact));
        let Some(hooks) = hooks else { return Ok(()) };
        let trigger = match reason {
            CompactionReason::Manual => "manual",
            CompactionReason::Threshold | CompactionReason::Overflow => "auto",
        };
        let input = HookInput::PreCompact { trigger, instructions: focus };
        let asked = hooks.ask(&input, &self.cancel);
        let Some(outcome) = self.cancel.run_until_cancelled(asked).await else {
            return Err(CompactionError::Cancelled);
        };
        let outcome = outcome.unwrap_or_default();
        match outcome.block.or(outcome.stop) {
            Some(why) => Err(CompactionError::Prevented(why)),
            None => Ok(()),
        }
    }

    /// Runs the `SessionStart` hooks for what begins after a compaction: what they told the model at the beginning may be gone from its
    /// context.
    pub(super) async fn begin_again_for_hooks(&self) {
        let hooks = self.context.hooks.as_ref().filter(|hooks| hooks.has(HookEvent::SessionStart));
        let Some(hooks) = hooks else { return };
        let asked = hooks.ask(&HookInput::SessionStart { source: "compact" }, &self.cancel);
        let Some(Some(outcome)) = self.cancel.run_until_cancelled(asked).await else { return };
        if let Some(message) = context_message(HookEvent::SessionStart, &outcome.contexts) {
            let message = Box::new(message);
            // A session that is gone needs nothing more.
            let _ = self.ask(|stored| CompactionMessage::StoreContext { message, stored }).await;
        }
    }
}
