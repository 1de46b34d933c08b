//! What may look at tool calls before and after they run.

use std::pin::Pin;

use agentd_protocol::{message::ToolCall, tool::ToolResult};
use serde_json::Value;

/// A hook's answer, later.
pub type HookFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// Looks at tool calls before and after they run. An error becomes the call's result, for the model to read.
pub trait Hooks: Send + Sync {
    /// Is asked when a call is prepared, in the order of the calls, before any call of the batch runs.
    fn before<'a>(&'a self, _call: &'a ToolCall, _arguments: &'a Value) -> HookFuture<'a, Verdict> {
        Box::pin(async { Ok(Verdict::Run) })
    }

    /// May change a result. `failed` says whether the call counts as failed so far.
    fn after<'a>(
        &'a self,
        _call: &'a ToolCall,
        result: ToolResult,
        failed: bool,
    ) -> HookFuture<'a, (ToolResult, bool)> {
        Box::pin(async move { Ok((result, failed)) })
    }
}

/// Whether a call may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Run,
    /// It may not.
    Block {
        /// Why, for the model; a standard sentence when absent.
        reason: Option<String>,
        /// Whether the run may end after this batch.
        terminate: bool,
    },
}

/// No hooks.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {}
