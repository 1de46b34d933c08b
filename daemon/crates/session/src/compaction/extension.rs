//! Extensions that look at a compaction before it is made: they may prevent it, or write the summary themselves.

use std::sync::atomic::Ordering;

use agentd_extensions::EventKind;
use agentd_protocol::{
    compaction::{CompactionReason, CompactionResult},
    message::Usage,
    model::Model,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    error::CompactionError,
    plan::Plan,
    policy::CompactionPolicy,
    worker::{CompactionMessage, CompactionWorker},
};

/// A compaction that an extension has made.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MadeByExtension {
    pub(super) summary: String,
    pub(super) first_kept_entry_id: String,
    pub(super) tokens_before: u64,
    #[serde(default)]
    pub(super) usage: Option<Usage>,
    #[serde(default)]
    pub(super) details: Option<Value>,
}

impl CompactionWorker {
    /// Asks the extensions about a compaction; `None` where it is made as planned.
    ///
    /// # Errors
    /// [`CompactionError::Cancelled`] where one prevents it; [`CompactionError::Broken`] where one returns something else.
    pub(super) async fn made_by_extension(
        &self,
        (reason, model): (CompactionReason, &Model),
        plan: &Plan,
        focus: Option<&str>,
    ) -> Result<Option<MadeByExtension>, CompactionError> {
        let Some(extensions) = &self.context.extensions else { return Ok(None) };
        if !extensions.listens(EventKind::SessionBeforeCompact) {
            return Ok(None);
        }
        let switch = self.context.auto_compaction.load(Ordering::Relaxed);
        let policy = CompactionPolicy::of(&self.context.settings, switch, model);
        let mut preparation = json!({
            "firstKeptEntryId": plan.first_kept,
            "messagesToSummarize": plan.history,
            "turnPrefixMessages": plan.turn_prefix,
            "isSplitTurn": !plan.turn_prefix.is_empty(),
            "tokensBefore": plan.tokens_before,
            "fileOps": plan.files.shown(),
            "settings": {
                "enabled": policy.enabled, "reserveTokens": policy.reserve, "keepRecentTokens": policy.keep_recent,
            },
        });
        if let Some(previous) = &plan.previous {
            preparation["previousSummary"] = previous.as_str().into();
        }
        let branch = self.ask(|reply| CompactionMessage::Branch { reply }).await?;
        let mut event = json!({
            "type": "session_before_compact", "preparation": preparation, "branchEntries": branch, "reason": reason,
            "willRetry": reason == CompactionReason::Overflow, "signal": true,
        });
        if let Some(focus) = focus {
            event["customInstructions"] = focus.into();
        }
        let asked = extensions.before(EventKind::SessionBeforeCompact, &event);
        let Some(answer) = self.cancel.run_until_cancelled(asked).await else {
            return Err(CompactionError::Cancelled);
        };
        let Some(mut answer) = answer else { return Ok(None) };
        if answer.get("cancel") == Some(&Value::Bool(true)) {
            return Err(CompactionError::Cancelled);
        }
        let Some(made) = answer.remove("compaction").filter(|made| !made.is_null()) else { return Ok(None) };
        let made = serde_json::from_value(made);
        made.map(Some).map_err(|error| {
            CompactionError::Broken(format!("the compaction of an extension cannot be used: {error}"))
        })
    }

    /// Tells the extensions, and shell hooks, how a compaction ended.
    pub(crate) async fn tell_extensions(
        &self,
        reason: CompactionReason,
        result: &Result<CompactionResult, CompactionError>,
        will_retry: bool,
    ) {
        if result.is_ok() {
            self.begin_again_for_hooks().await;
        }
        let Some(extensions) = &self.context.extensions else { return };
        let (kind, event) = match result {
            Ok(_) if !extensions.listens(EventKind::SessionCompact) => return,
            Ok(_) => {
                let branch = self.ask(|reply| CompactionMessage::Branch { reply }).await.unwrap_or_default();
                let entry = branch.into_iter().rev().map(|entry| json!(entry));
                let entry = entry.into_iter().find(|entry| entry["type"] == "compaction").unwrap_or_default();
                let event = json!({
                    "type": "session_compact", "fromExtension": entry["fromHook"] == true, "compactionEntry": entry,
                    "reason": reason, "willRetry": will_retry,
                });
                (EventKind::SessionCompact, event)
            }
            Err(error) => {
                let aborted = matches!(error, CompactionError::Cancelled);
                let mut event = json!({
                    "type": "session_compact_failed", "reason": reason, "aborted": aborted, "willRetry": false,
                    "fromExtension": false,
                });
                if !aborted {
                    event["errorMessage"] = error.to_string().into();
                }
                (EventKind::SessionCompactFailed, event)
            }
        };
        extensions.notify(kind, &event).await;
    }
}
