//! The extensions of a session: how they are started with it, how they reach its actor, and where its work asks them.
//!
//! The actor never waits for an extension: a handler may call the session while it is asked. Who waits is the run, or a task.

mod builtin_tools;
mod command_runs;
mod custom_queue;
mod drafts;
mod file_locks;
mod hooks;
mod image_calls;
mod link;
mod logins;
mod memory_watch;
mod model_calls;
mod model_facts;
mod non_chat_calls;
mod operations_shell;
mod prompt_spans;
mod provider_hooks;
mod route;
mod start;
mod surroundings;

use agentd_extensions::InputVerdict;

pub(crate) use self::{
    builtin_tools::{BuiltinCall, run_builtin},
    command_runs::{CommandRuns, RunningCommand},
    custom_queue::{CustomDelivery, CustomQueue},
    drafts::{drafted, with_drafts},
    file_locks::FileLocks,
    hooks::ExtensionHooks,
    image_calls::{ResizeCall, resize_image},
    link::{ExtensionLink, ExtensionRequest, all_taken, notice},
    logins::{login_renewer, modify_models},
    memory_watch::MemoryWatch,
    model_calls::ask_model,
    model_facts::{model_auth, models_topic},
    non_chat_calls::run_non_chat,
    operations_shell::OperationsShell,
    prompt_spans::PromptSpans,
    provider_hooks::provider_hooks,
    route::{RouteQuestion, STATE_ENTRY, is_virtual, reason_of, route, route_directly},
    start::{ExtensionsPlan, load_extensions, load_extensions_again, setup},
    surroundings::ExtensionSurroundings,
};
use crate::{requests::PendingRequest, server_prompts::MessageCommand};

/// The entries that the extensions were told, and the leaf among them.
pub(crate) struct EntriesTold {
    pub(crate) count: usize,
    pub(crate) leaf: Option<String>,
}

/// A message that the extensions have seen.
pub(crate) struct SeenInput {
    pub(crate) command: MessageCommand,
    pub(crate) request: PendingRequest,
    /// `None` where they were given up.
    pub(crate) verdict: Option<InputVerdict>,
    /// Whether skills, prompt templates and prompts of servers are expanded in it.
    pub(crate) expands: bool,
}
