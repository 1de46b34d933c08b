//! `settings.json`: what users configure. Unknown keys are kept.

mod ask;
mod budgets;
mod commands;
mod daemon;
pub mod defaults;
mod discovery;
mod editors;
mod eval;
mod lsp;
mod models;
mod packages;
mod permissions;
mod plan;
mod prompt_history;
mod sandbox;
mod shell_hooks;
mod ssh;
mod syntax;
mod task;
mod telemetry;
mod todo;
mod ttsr;
mod undo;
mod web;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    model::ThinkingLevel,
    session::{InterruptMode, QueueMode},
    tool_list::ToolExecution,
};

pub use self::{
    ask::AskSettings,
    budgets::{BudgetLimits, BudgetSettings, UnknownPrice, parse_count, parse_dollars, parse_duration},
    commands::{
        AsyncSettings, AutoBackgroundSettings, BashSettings, ChildEnvironmentSettings, Intercept,
        InterceptRule, ProcessSettings, matches_pattern,
    },
    daemon::{ClientToolSettings, DaemonSettings, LimitSettings, StorageSettings},
    discovery::DiscoverySettings,
    editors::AcpSettings,
    eval::EvalSettings,
    lsp::{LspDiagnosticsOnEdit, LspSettings},
    models::{
        BranchSummarySettings, CompactionOverride, CompactionSettings, DeadlineSettings, ImageSettings,
        ProviderRetrySettings, RetrySettings, StallPolicy, ThinkingBudgetSettings, TimeLimit,
    },
    packages::{ExtensionHostSettings, PackageFilter, PackageSetting, WhenDown},
    permissions::{PermissionAction, PermissionPreset, PermissionRule, PermissionSettings, TimeoutDecision},
    plan::PlanSettings,
    prompt_history::PromptHistorySettings,
    sandbox::{NamespaceMaker, NetworkAccess, SandboxMode, SandboxSettings},
    shell_hooks::ShellHookSettings,
    ssh::{SshHostKeys, SshSettings},
    syntax::SyntaxSettings,
    task::{IsolationSettings, TaskIsolationSettings, TaskSettings},
    telemetry::{TelemetryProtocol, TelemetrySettings},
    todo::TodoSettings,
    ttsr::{RuleContextMode, RuleInterruptMode, RuleRepeatMode, StreamRuleSettings},
    undo::UndoSettings,
    web::{WebSearchProvider, WebSearchSettings, WebSettings},
};

/// The settings that this version of agentd reads. Every key is optional; a key of another product is ignored.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// The provider of the model to start with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_provider: Option<String>,
    /// The model to start with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
    /// The thinking level to start with; default `medium`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "medium")))]
    pub default_thinking_level: Option<ThinkingLevel>,
    /// Thinking levels by `provider/model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_thinking_levels: Option<BTreeMap<String, ThinkingLevel>>,
    /// The models that `cycle_model` goes through (as `--models`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled_models: Option<Vec<String>>,
    /// The models that are asked, one after the other, when the chosen one fails for good (as `--fallback-models`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub fallback_models: Option<Vec<String>>,
    /// Models by roles, such as `{"smol": "anthropic/claude-haiku-4-5"}`: where a model is named, `@smol` stands for it. agentd itself uses
    /// `smol` for the agent `sonic`, and `plan` in plan mode; without them, the session's model counts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub model_roles: BTreeMap<String, String>,
    /// The delivery of steering messages; default `one-at-a-time`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "one-at-a-time")))]
    pub steering_mode: Option<QueueMode>,
    /// The delivery of follow-up messages; default `one-at-a-time`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "one-at-a-time")))]
    pub follow_up_mode: Option<QueueMode>,
    /// What a steering message does to tool calls that run: `wait` (the default) for their end, or stop them at once
    /// (`immediate`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "wait")))]
    pub interrupt_mode: Option<InterruptMode>,
    /// How the tool calls of one answer run: side by side (`parallel`, the default), or each when the one before it has ended
    /// (`sequential`). A tool that says `sequential` of itself makes its batch so in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "parallel")))]
    pub tool_execution: Option<ToolExecution>,
    /// The tools that are active by default; `+name` and `-name` change the built-in choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = ["read", "bash", "edit", "write"])))]
    pub default_tools: Option<Vec<String>>,
    /// Tools that sessions do not have: names, with `*` for any part of one. Nobody can activate or provide such a tool (as
    /// `--exclude-tools`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub exclude_tools: Option<Vec<String>>,
    /// Tools that clients provide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_tools: Option<ClientToolSettings>,
    /// Whether a project's own settings and prompts are used where nothing else says so; default `ask`. Only read from
    /// the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "ask")))]
    pub default_project_trust: Option<ProjectTrust>,
    /// Skills besides those of the usual folders: files or folders, relative to the folder of this file. `!glob` takes some
    /// out, `-path` exactly one, and `+path` one in again. Those of the user and of the project both count.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub skills: Option<Vec<String>>,
    /// Prompt templates, as `skills`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub prompts: Option<Vec<String>>,
    /// Extensions besides those of the usual folders: files or folders, as `skills`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub extensions: Option<Vec<String>>,
    /// Packages of extensions, skills, prompt templates and themes. `agentctl install` adds one. Those of the user and of the project
    /// both count; of one package the project's entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub packages: Option<Vec<PackageSetting>>,
    /// The program that installs npm packages, with its first arguments; default `["npm"]`. pnpm and bun are known by their names.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = ["npm"])))]
    pub npm_command: Option<Vec<String>>,
    /// The program that runs extensions. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension_host: Option<ExtensionHostSettings>,
    /// Shell hooks by event, in the form of Claude Code: programs that are asked, or told, when something happens. Those of the user and of
    /// the project both count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hooks: Option<Map<String, Value>>,
    /// Which shell hooks run. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell_hooks: Option<ShellHookSettings>,
    /// Whether `get_commands` lists skills; default true. `/skill:name` works either way.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub enable_skill_commands: Option<bool>,
    /// The shell that runs commands; default `/bin/bash`, else `bash` or `sh` on the search path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell_path: Option<String>,
    /// A line put before every shell command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell_command_prefix: Option<String>,
    /// The limits of the processes of a session's commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<ProcessSettings>,
    /// The environment variables of the programs that a session starts. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_environment: Option<ChildEnvironmentSettings>,
    /// What the tools `write` and `edit` may write in the agent directory, which they leave alone else: paths relative to it, with
    /// `*` for any part of one, such as `skills/*`. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub agent_dir_writable: Option<Vec<String>>,
    /// What tools and commands may do, what is asked and what is refused. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<PermissionSettings>,
    /// Features of the tool `bash` beyond its plain form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bash: Option<BashSettings>,
    /// Commands of the tool `bash` as jobs.
    #[serde(rename = "async", skip_serializing_if = "Option::is_none")]
    pub async_jobs: Option<AsyncSettings>,
    /// Sessions of editors (`agentd acp`). Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acp: Option<AcpSettings>,
    /// What shell commands and file tools may touch. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxSettings>,
    /// Keeping what tool calls change, so that it can be undone. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<UndoSettings>,
    /// Keeping the user's prompts, so that they can be found again. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_history: Option<PromptHistorySettings>,
    /// The tool `todo`, by which the model keeps a list of what is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub todo: Option<TodoSettings>,
    /// The tools `ast_grep` and `ast_edit`, which search and change code by its structure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syntax: Option<SyntaxSettings>,
    /// The tool `ssh`, which runs commands on other hosts. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh: Option<SshSettings>,
    /// The tool `eval`, which runs cells of code. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eval: Option<EvalSettings>,
    /// The tool `task`, which starts subagents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskSettings>,
    /// Language servers. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lsp: Option<LspSettings>,
    /// How isolated copies of the repository are made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationSettings>,
    /// Reading the web. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web: Option<WebSettings>,
    /// Searching the web. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web_search: Option<WebSearchSettings>,
    /// The tool `ask`, by which the model asks the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<AskSettings>,
    /// Plan mode, in which the model changes nothing before the user has approved a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanSettings>,
    /// Rules that watch what the model writes. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttsr: Option<StreamRuleSettings>,
    /// Which files of other coding agents count. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discovery: Option<DiscoverySettings>,
    /// The folder of session files; default `sessions/` in the agent directory, a folder for each working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_dir: Option<String>,
    /// Images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<ImageSettings>,
    /// Compaction of long contexts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction: Option<CompactionSettings>,
    /// Summaries of branches that the conversation leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_summary: Option<BranchSummarySettings>,
    /// Retries of requests that failed for a transient reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetrySettings>,
    /// Tokens that each thinking level may use, where a provider takes a budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_budgets: Option<ThinkingBudgetSettings>,
    /// The longest silence of a provider, in milliseconds; 0 or `"disabled"` for no limit; default 300000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 300_000)))]
    pub http_idle_timeout_ms: Option<Value>,
    /// The time limits of requests to providers, phase by phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadlines: Option<DeadlineSettings>,
    /// The proxy of requests to providers, such as `http://proxy.example:3128`, where the environment names none. Only read
    /// from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_proxy: Option<String>,
    /// A file with certificates (PEM) that are trusted beside the system's; `~` is the home directory, and what is relative
    /// counts from the agent directory. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
    /// Whether an entry survives a kill of the daemon (`os`, the default) or a power loss (`fsync`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "os")))]
    pub durability: Option<Durability>,
    /// What becomes of a turn that a crash of the daemon interrupted, once its session is opened again: it is over (`close`, the
    /// default), the user is asked (`ask`), or it goes on by itself (`resume`). No tool is run again in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "close")))]
    pub crash_recovery: Option<CrashRecovery>,
    /// The daemon itself. Only read from the user's settings, at its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daemon: Option<DaemonSettings>,
    /// The limits of one session. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<LimitSettings>,
    /// What a run, a session and a day may spend. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budgets: Option<BudgetSettings>,
    /// The disk space of long outputs. Only read from the user's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageSettings>,
    /// Traces and metrics for an OpenTelemetry collector; off by default. Only read from the user's settings, at the daemon's start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<TelemetrySettings>,
}

/// Whether a project's own settings and prompts are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ProjectTrust {
    /// The user is asked; if no client can ask the user, they are not used.
    #[default]
    Ask,
    /// They are.
    Always,
    /// They are not.
    Never,
}

/// What happens to a turn that a crash interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CrashRecovery {
    /// It ends.
    #[default]
    Close,
    /// The user is asked; without an answer it ends.
    Ask,
    /// The request is repeated, at most twice.
    Resume,
}

/// The failures that a saved entry survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// A kill of the daemon.
    #[default]
    Os,
    /// A power loss.
    Fsync,
}
