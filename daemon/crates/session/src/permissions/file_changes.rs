//! Changes of files that a call does not name: each is judged, and asked about, as a call of `edit`.

use std::sync::Arc;

use agentd_agent::hooks::{Action, HookVerdict, Hooks as _, Requester};
use agentd_tools::{ApprovalFuture, ChangeApproval, ProposedChange};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::PermissionGate;

/// The tool as which changes are judged.
const TOOL: &str = "edit";

/// The permissions of a session, for changes of files.
pub(crate) struct ChangeGate(pub(crate) Arc<PermissionGate>);

impl ChangeApproval for ChangeGate {
    fn approve<'a>(&'a self, change: ProposedChange<'a>, stop: &'a CancellationToken) -> ApprovalFuture<'a> {
        Box::pin(async move {
            if self.0.is_idle() {
                return Ok(());
            }
            let Some(path) = change.path.to_str() else {
                let shown = change.path.display();
                return Err(format!("The permissions cannot judge {shown}: its name is not UTF-8."));
            };
            let arguments = json!({"path": path, "content": change.content});
            let action = Action {
                by: Requester::Model { call_id: change.call_id },
                tool: TOOL,
                arguments: &arguments,
                cwd: change.cwd,
                is_trusted_read: false,
                declares_reading: false,
                schema: None,
                must_ask: None,
            };
            match self.0.before(&action, stop).await? {
                HookVerdict::Run | HookVerdict::RunWith { .. } => Ok(()),
                HookVerdict::Ask { reason, .. } => Err(reason),
                HookVerdict::Block { reason, .. } => {
                    Err(reason.unwrap_or_else(|| "Permission denied.".to_owned()))
                }
            }
        })
    }
}
