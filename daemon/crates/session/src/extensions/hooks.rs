//! Extensions as hooks of the agent loop.

use agentd_agent::hooks::{Action, HookFuture, HookVerdict, Hooks, Requester};
use agentd_extensions::{EventKind, SessionExtensions, ToolCallVerdict};
use agentd_protocol::tool::ToolResult;
use tokio_util::sync::CancellationToken;

/// Asks the extensions of a session about tool calls of the model. They are asked beside the permissions: neither can allow what the other
/// forbids.
pub(crate) struct ExtensionHooks(pub(crate) SessionExtensions);

impl Hooks for ExtensionHooks {
    fn is_idle(&self) -> bool {
        !self.0.listens(EventKind::ToolCall) && !self.0.listens(EventKind::ToolResult)
    }

    fn before<'a>(
        &'a self,
        action: &'a Action<'a>,
        _stop: &'a CancellationToken,
    ) -> HookFuture<'a, HookVerdict> {
        Box::pin(async move {
            let Requester::Model { call_id } = action.by else { return Ok(HookVerdict::Run) };
            Ok(match self.0.tool_call(action.tool, call_id, action.arguments).await {
                ToolCallVerdict::Run(None) => HookVerdict::Run,
                ToolCallVerdict::Run(Some(arguments)) => HookVerdict::RunWith { arguments },
                ToolCallVerdict::Block { reason, terminate } => HookVerdict::Block { reason, terminate },
            })
        })
    }

    fn after<'a>(
        &'a self,
        action: &'a Action<'a>,
        result: ToolResult,
        failed: bool,
        _stop: &'a CancellationToken,
    ) -> HookFuture<'a, (ToolResult, bool)> {
        Box::pin(async move {
            match action.by {
                Requester::Model { call_id } if self.0.listens(EventKind::ToolResult) => {
                    Ok(self.0.tool_result((action.tool, call_id, action.arguments), result, failed).await)
                }
                _ => Ok((result, failed)),
            }
        })
    }
}
