//! Shell hooks as hooks of the agent loop: `PreToolUse` before the permissions, `PostToolUse` after a call.

use agentd_agent::hooks::{Action, HookFuture, HookVerdict, Hooks, Requester};
use agentd_hooks::{HookEvent, HookInput, NamedText, ToolCallFacts};
use agentd_protocol::{message::ContentBlock, tool::ToolResult};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::session_hooks::SessionHooks;

impl Hooks for SessionHooks {
    fn is_idle(&self) -> bool {
        !self.has(HookEvent::PreToolUse) && !self.has(HookEvent::PostToolUse)
    }

    fn before<'a>(
        &'a self,
        action: &'a Action<'a>,
        stop: &'a CancellationToken,
    ) -> HookFuture<'a, HookVerdict> {
        Box::pin(async move { Ok(self.judge(action, stop).await) })
    }

    fn after<'a>(
        &'a self,
        action: &'a Action<'a>,
        result: ToolResult,
        failed: bool,
        stop: &'a CancellationToken,
    ) -> HookFuture<'a, (ToolResult, bool)> {
        Box::pin(async move {
            match action.by {
                Requester::Model { call_id } => {
                    Ok((self.completed(action, call_id, result, failed, stop).await, failed))
                }
                Requester::User => Ok((result, failed)),
            }
        })
    }
}

impl SessionHooks {
    async fn judge(&self, action: &Action<'_>, stop: &CancellationToken) -> HookVerdict {
        let Requester::Model { call_id } = action.by else { return HookVerdict::Run };
        if let Some(why) = self.stopped() {
            return ended(&why);
        }
        let call = ToolCallFacts { tool: action.tool, call_id, arguments: action.arguments };
        let Some(outcome) = self.ask(&HookInput::PreToolUse(call), stop).await else {
            return HookVerdict::Run;
        };
        if let Some(why) = &outcome.stop {
            self.stop(why);
            return ended(why);
        }
        if let Some(reason) = outcome.block {
            return blocked(format!("Blocked by a hook: {reason}"));
        }
        let arguments = match (outcome.arguments, action.schema) {
            (Some(arguments), Some(schema)) => match schema.check_beside(action.tool, arguments).await {
                Ok(arguments) => Some(arguments),
                Err(error) => {
                    return blocked(format!(
                        "A hook changed the arguments into some that the tool does not take, so the call was not made. {error}"
                    ));
                }
            },
            (Some(arguments), None) => Some(Value::Object(arguments)),
            (None, _) => None,
        };
        self.keep(call_id, outcome.contexts);
        match (outcome.ask, arguments) {
            (Some(reason), arguments) => HookVerdict::Ask { reason, arguments },
            (None, Some(arguments)) => HookVerdict::RunWith { arguments },
            (None, None) => HookVerdict::Run,
        }
    }

    /// The result of a call, with what its hooks add.
    async fn completed(
        &self,
        action: &Action<'_>,
        call_id: &str,
        mut result: ToolResult,
        failed: bool,
        stop: &CancellationToken,
    ) -> ToolResult {
        let before = self.take(call_id);
        let call = ToolCallFacts { tool: action.tool, call_id, arguments: action.arguments };
        let outcome = match failed || stop.is_cancelled() {
            false => self.ask(&HookInput::PostToolUse(call, &result), stop).await.unwrap_or_default(),
            true => agentd_hooks::HookOutcome::default(),
        };
        if let Some(why) = &outcome.stop {
            self.stop(why);
        }
        let said = before.into_iter().chain(outcome.contexts).map(|NamedText { text, .. }| text);
        let added = said
            .chain(outcome.block.map(|reason| format!("A hook has found something to correct:\n{reason}")));
        result.content.extend(added.map(|text| ContentBlock::text(format!("\n{text}"))));
        if self.stopped().is_some() {
            result.terminate = Some(true);
        }
        result
    }
}

fn blocked(reason: String) -> HookVerdict {
    HookVerdict::Block { reason: Some(reason), terminate: false }
}

fn ended(why: &str) -> HookVerdict {
    HookVerdict::Block { reason: Some(format!("A hook has ended the work: {why}")), terminate: true }
}
