//! Hooks: they see tool calls and bash commands of the user before they start, and tool calls after they have ended.
//!
//! [`Hooks`] is the trait, and [`HookGate`] the one place that calls it: for the loop with tool calls of the model, for the session with
//! commands of the user. Permissions, where a session has them, come before all but the first hooks. A gate without hooks costs a check or two.

use std::{
    panic::AssertUnwindSafe,
    path::Path,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use agentd_protocol::tool::ToolResult;
use futures::FutureExt;
use serde_json::Value;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::arguments::ArgumentSchema;

/// Time that hooks have for a result once its call was stopped: less than what calls have in which to end.
const AFTER_STOP: Duration = Duration::from_millis(500);

/// A hook's answer, later.
pub type HookFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// The requester of an action.
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

/// The argument of `bash` by which a model asks to run one command outside of the sandbox. The hooks of a session
/// with a sandbox have to ask the user before such a call.
pub const OUTSIDE_SANDBOX: &str = "outsideSandbox";

/// An action that is about to start, or has ended.
#[derive(Clone, Copy)]
pub struct Action<'a> {
    /// The requester.
    pub by: Requester<'a>,
    /// The tool. A shell command of the user is one of `bash`.
    pub tool: &'a str,
    /// The arguments. Those of a call of the model have passed the tool's schema.
    pub arguments: &'a Value,
    /// The working directory, absolute.
    pub cwd: &'a Path,
    /// As [`Tool::is_trusted_read`](crate::Tool::is_trusted_read) says.
    pub is_trusted_read: bool,
    /// As [`Tool::declares_reading`](crate::Tool::declares_reading) says.
    pub declares_reading: bool,
    /// Checks arguments that take the place of these; `None` for commands of the user.
    pub schema: Option<&'a ArgumentSchema>,
    /// Why the user is to be asked in any case: a hook that was asked before wants that.
    pub must_ask: Option<&'a str>,
}

/// Decides about actions before they start, and may change results afterwards. An error takes the place of the result.
///
/// A hook may take long. When `stop` fires, its future is dropped.
pub trait Hooks: Send + Sync {
    /// Whether everything may start now, unchanged: then nothing else of this trait is called.
    fn is_idle(&self) -> bool {
        false
    }

    /// Called before an action starts: for the calls of a model in their order, before any call of the batch runs.
    fn before<'a>(
        &'a self,
        _action: &'a Action<'a>,
        _stop: &'a CancellationToken,
    ) -> HookFuture<'a, HookVerdict> {
        Box::pin(async { Ok(HookVerdict::Run) })
    }

    /// May change the result of a tool call of the model. `failed`: the call counts as failed so far.
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

/// The decision of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookVerdict {
    /// The action may start.
    Run,
    /// The action may start, with other arguments. They are not checked against the tool's schema again. Means `Run` for commands of the
    /// user.
    RunWith {
        /// The arguments.
        arguments: Value,
    },
    /// The action may start if the user says so, who is asked by the permissions. Of hooks that are asked before these; of others it blocks.
    Ask {
        /// Why the user is asked.
        reason: String,
        /// Other arguments.
        arguments: Option<Value>,
    },
    /// The action must not start.
    Block {
        /// The reason for the requester; a standard sentence if absent.
        reason: Option<String>,
        /// Whether the run may end after this batch of calls. Means nothing for commands of the user.
        terminate: bool,
    },
}

/// The decision of the gate about an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateDecision {
    /// The action may start, with other arguments where a hook has changed them.
    Free {
        /// The arguments.
        arguments: Option<Value>,
    },
    /// The action must not start, or the hook failed.
    Blocked {
        /// The reason for the requester.
        reason: String,
        /// Whether the run may end after this batch of calls.
        terminate: bool,
    },
    /// The action was stopped before the hook answered.
    Stopped,
}

/// Asks the permissions and the hooks of a session, if it has any.
///
/// First come hooks whose changes and wishes the permissions are to know, then the permissions, then all other hooks. Each can prevent
/// an action, and none can allow what another one prevents. Results pass through the first hooks before the others.
#[derive(Clone, Default)]
pub struct HookGate {
    first: Option<Arc<dyn Hooks>>,
    permissions: Option<Arc<dyn Hooks>>,
    hooks: Option<Arc<dyn Hooks>>,
}

impl HookGate {
    /// A gate that asks `hooks`.
    #[must_use]
    pub fn new(hooks: Arc<dyn Hooks>) -> Self {
        Self { first: None, permissions: None, hooks: Some(hooks) }
    }

    /// The same gate, which asks `first` before the permissions.
    #[must_use]
    pub fn after_first(self, first: Arc<dyn Hooks>) -> Self {
        Self { first: Some(first), ..self }
    }

    /// The same gate, which asks `permissions` before all but the first hooks.
    #[must_use]
    pub fn after_permissions(self, permissions: Arc<dyn Hooks>) -> Self {
        Self { permissions: Some(permissions), ..self }
    }

    /// The same gate, which asks `hooks` after the permissions.
    #[must_use]
    pub fn with_hooks(self, hooks: Arc<dyn Hooks>) -> Self {
        Self { hooks: Some(hooks), ..self }
    }

    /// Whether nobody is to be asked.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.in_order().all(|(_, hooks)| hooks.is_idle())
    }

    fn in_order(&self) -> impl Iterator<Item = (Place, &dyn Hooks)> {
        [(Place::First, &self.first), (Place::Permissions, &self.permissions), (Place::Last, &self.hooks)]
            .into_iter()
            .filter_map(|(place, hooks)| Some((place, hooks.as_deref()?)))
    }

    /// Asks whether an action may start; returns at once when `stop` fires.
    pub async fn before(&self, action: &Action<'_>, stop: &CancellationToken) -> GateDecision {
        let mut changed: Option<Value> = None;
        let mut must_ask: Option<String> = None;
        for (place, hooks) in self.in_order() {
            // The permissions ask the user, whether or not they have anything to say themselves.
            let asks = must_ask.is_some() && place == Place::Permissions;
            if hooks.is_idle() && !asks {
                continue;
            }
            let action = &Action {
                arguments: changed.as_ref().unwrap_or(action.arguments),
                must_ask: must_ask.as_deref().filter(|_| asks),
                ..*action
            };
            let verdict = unless_stopped(async { hooks.before(action, stop).await }, action, stop).await;
            if asks {
                must_ask = None;
            }
            let decision = match verdict {
                Some(Ok(HookVerdict::Run)) => continue,
                Some(Ok(HookVerdict::RunWith { arguments })) => {
                    changed = Some(arguments);
                    continue;
                }
                Some(Ok(HookVerdict::Ask { reason, arguments })) => {
                    if place == Place::First {
                        changed = arguments.or(changed);
                        must_ask = Some(reason);
                        continue;
                    }
                    GateDecision::Blocked { reason: nobody_asks(&reason), terminate: false }
                }
                Some(Ok(HookVerdict::Block { reason, terminate })) => {
                    let reason = reason.unwrap_or_else(|| "Tool execution was blocked".to_owned());
                    GateDecision::Blocked { reason, terminate }
                }
                Some(Err(reason)) => GateDecision::Blocked { reason, terminate: false },
                None => GateDecision::Stopped,
            };
            return decision;
        }
        match must_ask {
            Some(reason) => GateDecision::Blocked { reason: nobody_asks(&reason), terminate: false },
            None => GateDecision::Free { arguments: changed },
        }
    }

    /// Passes a result through the hooks, which may change it. Where `stop` has fired, they have half a second left; `None` when they
    /// have not answered by then. Permissions change no results.
    ///
    /// # Errors
    /// The message takes the place of the result.
    pub async fn after(
        &self,
        action: &Action<'_>,
        mut result: ToolResult,
        mut failed: bool,
        stop: &CancellationToken,
    ) -> Option<Result<(ToolResult, bool), String>> {
        let mut over = pin!(async {
            stop.cancelled().await;
            sleep(AFTER_STOP).await;
        });
        for hooks in [&self.first, &self.hooks].into_iter().flatten() {
            let passing = async { hooks.after(action, result, failed, stop).await };
            match unless(&mut over, passing, action).await? {
                Ok(passed) => (result, failed) = passed,
                Err(message) => return Some(Err(message)),
            }
        }
        Some(Ok((result, failed)))
    }
}

/// Where hooks stand in the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    First,
    Permissions,
    Last,
}

fn nobody_asks(reason: &str) -> String {
    format!("It needs the user's permission, and nobody can be asked here: {reason}")
}

/// The decision of a hook; `None` if the stop came first. A decision that is ready is always returned.
async fn unless_stopped<T>(
    hook: impl Future<Output = Result<T, String>> + Send,
    action: &Action<'_>,
    stop: &CancellationToken,
) -> Option<Result<T, String>> {
    unless(stop.cancelled(), hook, action).await
}

/// The decision of a hook; `None` if `over` came first. A decision that is ready is always returned.
async fn unless<T>(
    over: impl Future<Output = ()>,
    hook: impl Future<Output = Result<T, String>> + Send,
    action: &Action<'_>,
) -> Option<Result<T, String>> {
    tokio::select! {
        biased;
        answer = AssertUnwindSafe(hook).catch_unwind() => Some(answer.unwrap_or_else(|_| {
            tracing::error!(tool = action.tool, "a hook panicked");
            Err(format!("A hook failed unexpectedly at {}.", action.tool))
        })),
        () = over => None,
    }
}
