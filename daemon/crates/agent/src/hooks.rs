//! Who may look at tool calls and at commands of the user before they start, and at calls after they have ended.
//!
//! [`Hooks`] is the trait, and [`HookGate`] the one place where it is asked: by the loop for calls of the model, by the session for commands
//! of the user. A gate without hooks costs a look at an `Option`.

use std::{panic::AssertUnwindSafe, path::Path, pin::Pin, sync::Arc};

use agentd_protocol::tool::ToolResult;
use futures::FutureExt;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// A hook's answer, later.
pub type HookFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// Who wants something done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requester<'a> {
    /// The model, by a tool call.
    Model {
        /// The id of the call.
        call_id: &'a str,
    },
    /// The user, by a command of a client.
    User,
}

/// What is about to be done, or was done.
#[derive(Debug, Clone, Copy)]
pub struct Action<'a> {
    /// Who wants it.
    pub by: Requester<'a>,
    /// The tool. A shell command of the user is one of `bash`.
    pub tool: &'a str,
    /// The arguments. Those of a call of the model have passed the tool's schema.
    pub arguments: &'a Value,
    /// The working directory, absolute.
    pub cwd: &'a Path,
}

/// Looks at what is about to be done, and at what was done. An error is the answer in the place of a result.
///
/// A hook may take its time. When `stop` fires nobody waits for it any more, and its future is dropped.
pub trait Hooks: Send + Sync {
    /// Is asked before something starts; the calls of a model in their order, before any call of the batch runs.
    fn before<'a>(
        &'a self,
        _action: &'a Action<'a>,
        _stop: &'a CancellationToken,
    ) -> HookFuture<'a, HookVerdict> {
        Box::pin(async { Ok(HookVerdict::Run) })
    }

    /// May change the result of a tool call of the model. `failed` says whether the call counts as failed so far.
    fn after<'a>(
        &'a self,
        _action: &'a Action<'a>,
        result: ToolResult,
        failed: bool,
        _stop: &'a CancellationToken,
    ) -> HookFuture<'a, (ToolResult, bool)> {
        Box::pin(async move { Ok((result, failed)) })
    }
}

/// Whether something may be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookVerdict {
    /// It may.
    Run,
    /// It may not.
    Block {
        /// Why, for whoever wanted it; a standard sentence when absent.
        reason: Option<String>,
        /// Whether the run may end after this batch of calls. Means nothing for commands of the user.
        terminate: bool,
    },
}

/// What came of the question whether something may be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateDecision {
    /// It may.
    Free,
    /// It may not, or the hook failed.
    Blocked {
        /// Why, for whoever wanted it.
        reason: String,
        /// Whether the run may end after this batch of calls.
        terminate: bool,
    },
    /// It was stopped before the hook had answered.
    Stopped,
}

/// Asks the hooks of a session, if it has any.
#[derive(Clone, Default)]
pub struct HookGate(Option<Arc<dyn Hooks>>);

impl HookGate {
    /// A gate that asks `hooks`.
    #[must_use]
    pub fn new(hooks: Arc<dyn Hooks>) -> Self {
        Self(Some(hooks))
    }

    /// Whether nobody is asked.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.0.is_none()
    }

    /// Asks whether something may be done; returns at once when `stop` fires.
    pub async fn before(&self, action: &Action<'_>, stop: &CancellationToken) -> GateDecision {
        let Some(hooks) = &self.0 else { return GateDecision::Free };
        match unless_stopped(async { hooks.before(action, stop).await }, action, stop).await {
            Some(Ok(HookVerdict::Run)) => GateDecision::Free,
            Some(Ok(HookVerdict::Block { reason, terminate })) => {
                let reason = reason.unwrap_or_else(|| "Tool execution was blocked".to_owned());
                GateDecision::Blocked { reason, terminate }
            }
            Some(Err(reason)) => GateDecision::Blocked { reason, terminate: false },
            None => GateDecision::Stopped,
        }
    }

    /// Shows a result, which may be another afterwards; returns at once with `None` when `stop` fires.
    ///
    /// # Errors
    /// The message takes the place of the result.
    pub async fn after(
        &self,
        action: &Action<'_>,
        result: ToolResult,
        failed: bool,
        stop: &CancellationToken,
    ) -> Option<Result<(ToolResult, bool), String>> {
        let Some(hooks) = &self.0 else { return Some(Ok((result, failed))) };
        unless_stopped(async { hooks.after(action, result, failed, stop).await }, action, stop).await
    }
}

/// A hook's answer; `None` when the stop came first. A hook that has its answer ready gives it in any case.
async fn unless_stopped<T>(
    hook: impl Future<Output = Result<T, String>> + Send,
    action: &Action<'_>,
    stop: &CancellationToken,
) -> Option<Result<T, String>> {
    tokio::select! {
        biased;
        answer = AssertUnwindSafe(hook).catch_unwind() => Some(answer.unwrap_or_else(|_| {
            tracing::error!(tool = action.tool, "a hook panicked");
            Err(format!("A hook failed unexpectedly at {}.", action.tool))
        })),
        () = stop.cancelled() => None,
    }
}
