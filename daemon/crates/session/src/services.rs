//! The services that the sessions of a daemon share, and the limits of each session.

use std::{path::PathBuf, sync::Arc, time::Duration};

use agentd_agent::{Tool, hooks::HookGate, observer::Observers};
use agentd_ai::ProviderRegistry;
use agentd_auth::Auth;
use agentd_checkpoints::{SessionCheckpoints, UndoServices};
use agentd_config::models::{DEMO_PROVIDER, SharedModels};
use agentd_discovery::DiscoveryCache;
use agentd_images::Images;
use agentd_kernels::{CellExecutors, KernelPool, SessionKernels, ToolCaller};
use agentd_lsp::{LspParts, SharedLanguageServers};
use agentd_mcp::SharedServers;
use agentd_memory::MemoryAccount;
use agentd_process::{
    ArtifactFolder, BackgroundProcesses, Launcher, OutputMeter, OutputStorage, ProcessGroup, Shell,
    ShellSession,
};
use agentd_program_log::ProgramLogs;
use agentd_prompt_history::PromptRecorder;
use agentd_protocol::{
    error::{ErrorCode, Failure},
    settings::{BashSettings, EvalSettings},
};
use agentd_sandbox::SandboxPolicy;
use agentd_tools::{
    AskUser, ChangeApproval, ChangeJournals, FileQueue, JobRecorder, JobsSwitch, PlanReview, ProposedPlan,
    RemoteHosts, SessionFolder, SessionUrls, Successor, TodoList, operations::SshTarget,
};
use agentd_web::{SearchOptions, WebOptions};
use futures::future::BoxFuture;
use tokio_util::task::TaskTracker;

use crate::sandbox::SupportCache;
use crate::{
    child_environment::ChildEnvironment,
    event_log::FeedLimits,
    interner::Interner,
    subagent_host::{SubagentHosting, SubagentSlots},
};

/// The services that all sessions of a daemon share.
pub struct Services {
    /// The provider APIs of this build.
    pub providers: ProviderRegistry,
    /// Starts child processes.
    pub launcher: Launcher,
    /// Owns the sessions' tasks.
    pub tasks: TaskTracker,
    /// The models, for as long as models.json stays as it is.
    pub models: SharedModels,
    /// The environments of child processes.
    pub child_environments: Interner<ChildEnvironment>,
    /// Caches for finding credentials, kept for the daemon's life.
    pub auth_services: agentd_auth::AuthServices,
    /// Makes images fit for models, and bounds what that takes of memory.
    pub images: Images,
    /// Names the daemon's life.
    pub epoch: String,
    /// The limits of one session.
    pub limits: Limits,
    /// The memory of queued messages, over all sessions.
    pub memory: MemoryAccount,
    /// Counts what is written to long outputs.
    pub outputs: OutputMeter,
    /// What this system offers for sandboxes.
    pub sandbox_support: SupportCache,
    /// MCP servers that sessions share.
    pub mcp_servers: SharedServers,
    /// Language servers that sessions share.
    pub language_servers: Arc<SharedLanguageServers>,
    /// What is in the files of other tools, for as long as none of them changes.
    pub discovery: DiscoveryCache,
    /// The logs of what these servers and extensions say.
    pub program_logs: ProgramLogs,
    /// Records the user's prompts.
    pub prompt_recorder: PromptRecorder,
    /// The interpreters of all sessions.
    pub kernels: KernelPool,
    /// What sessions with undo share.
    pub undo: UndoServices,
    /// Makes the observers of sessions, where telemetry is on.
    pub observers: Option<Arc<dyn Observers>>,
    /// Opens the sessions of subagents.
    pub subagent_hosting: SubagentHosting,
    /// The turns of subagents, over all sessions.
    pub subagent_slots: SubagentSlots,
    /// Hears of changes of sessions.
    pub watch: Arc<dyn SessionWatch>,
    /// Makes the tools of one session.
    pub tools: Box<dyn Fn(ToolContext) -> Toolbox + Send + Sync>,
}

/// The tools, the shell and the hooks of one session.
pub struct Toolbox {
    /// The tools, in the order in which models see them.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Makes changes of one file wait for each other: those of the tools, and those of extensions.
    pub changes: FileQueue,
    /// Runs the commands of the user.
    pub shell: Arc<dyn Shell>,
    /// Asked before a tool call of the model or a command of the user starts.
    pub gate: HookGate,
}

/// The limits of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The limits of its feed.
    pub feed: FeedLimits,
    /// Idle time before [`SessionWatch::idle`] is called; `None`: never.
    pub idle_after: Option<Duration>,
    /// Time that a dialog without a limit of its own waits while no client is there to answer: 10 minutes.
    pub ui_timeout: Duration,
    /// The limits of messages and entries.
    pub intake: IntakeLimits,
    /// Bytes of the output of one command that go to a file: 1 GiB.
    pub output_bytes: u64,
}

/// The limits of messages and entries. The largest value of a type means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntakeLimits {
    /// Bytes of a message's text and of its images' base64: 32 MiB.
    pub message_bytes: u64,
    /// Messages that wait: 1000.
    pub queued_messages: u64,
    /// The same of all messages that wait: 64 MiB.
    pub queued_bytes: u64,
    /// Bytes of the entries of all branches, at which no more messages are taken: 512 MiB.
    pub session_bytes: u64,
}

impl Default for IntakeLimits {
    fn default() -> Self {
        Self {
            message_bytes: 32 << 20,
            queued_messages: 1000,
            queued_bytes: 64 << 20,
            session_bytes: 512 << 20,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            feed: FeedLimits::default(),
            idle_after: None,
            ui_timeout: Duration::from_secs(600),
            intake: IntakeLimits::default(),
            output_bytes: 1 << 30,
        }
    }
}

/// The values that the tools of one session are made from.
pub struct ToolContext {
    /// The session's id.
    pub session_id: String,
    /// The session's folder.
    pub cwd: PathBuf,
    /// Further folders of its workspace.
    pub folders: Vec<PathBuf>,
    /// The session's processes.
    pub processes: ProcessGroup,
    /// The host to work on instead of this machine, and a group for the processes that hold the connection to it.
    pub ssh: Option<(SshTarget, ProcessGroup)>,
    /// The hosts of the tool `ssh`; `None` where the session does without it.
    pub remote_hosts: Option<RemoteHosts>,
    /// The setting `shellPath`.
    pub shell_path: Option<PathBuf>,
    /// The setting `shellCommandPrefix`.
    pub shell_command_prefix: Option<String>,
    /// The URLs that are no files.
    pub urls: SessionUrls,
    /// Whether commands can be jobs.
    pub jobs: JobsSwitch,
    /// Keeps the session's record of background processes.
    pub job_recorder: Arc<dyn JobRecorder>,
    /// The complete environment of child processes.
    pub environment: ChildEnvironment,
    /// The folder for temporary files.
    pub temp_dir: PathBuf,
    /// Where long outputs go.
    pub outputs: OutputStorage,
    /// Where they are found again; `None` for a session that has no file.
    pub artifacts: Option<ArtifactFolder>,
    /// The setting `bash`.
    pub bash: Option<BashSettings>,
    /// The setting `eval`.
    pub eval: Option<EvalSettings>,
    /// The session's interpreters.
    pub kernels: SessionKernels,
    /// The session's shell that stays.
    pub shell_session: ShellSession,
    /// Runs the calls of tools that cells make.
    pub cell_calls: Arc<dyn ToolCaller>,
    /// Knows the clients that run cells instead of kernels.
    pub cell_executors: Arc<dyn CellExecutors>,
    /// Whether the project of the session's folder is trusted.
    pub is_trusted: bool,
    /// The setting `acp.clientTerminal`.
    pub client_terminal: bool,
    /// The session's background processes.
    pub background: BackgroundProcesses,
    /// Whether a tool is active, by its name.
    pub is_active: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// The folder for `~`: `HOME` of the session's environment, else the root folder.
    pub home: PathBuf,
    /// The agent directory.
    pub agent_dir: PathBuf,
    /// The setting `agentDirWritable`.
    pub agent_dir_writable: Vec<String>,
    /// What commands and file tools may touch; `None` without a sandbox.
    pub sandbox: Option<Arc<SandboxPolicy>>,
    /// Keeps what tool calls change; `None` while undo is off.
    pub undo: Option<Arc<SessionCheckpoints>>,
    /// Notes changes of several files; `None` for a session without a file, and for one that works on another host.
    pub journals: Option<ChangeJournals>,
    /// The folder of the session's own files.
    pub own_files: SessionFolder,
    /// What becomes of plans.
    pub plans: Arc<dyn PlanReview>,
    /// The setting `plan.timeoutMs`; `None` for 0.
    pub plan_timeout: Option<Duration>,
    /// The session's list of tasks.
    pub todos: TodoList,
    /// The session's user.
    pub user: Arc<dyn AskUser>,
    /// The setting `ask.timeoutMs`; `None` for 0.
    pub ask_timeout: Option<Duration>,
    /// The setting `syntax.timeoutMs`.
    pub syntax_timeout: Duration,
    /// Decides about changes of files that calls do not name.
    pub change_approval: Arc<dyn ChangeApproval>,
    /// Whether the session has a file.
    pub is_stored: bool,
    /// What language servers need of it; `None` where it has none.
    pub lsp: Option<LspParts>,
    /// How it reads pages of the web.
    pub web: WebOptions,
    /// How it searches the web.
    pub search: SearchOptions,
}

impl Services {
    /// Whether requests to a provider can be authorised. Those that are played back need nothing, and no others are made then.
    pub(crate) fn has_auth(&self, auth: &Auth, provider: &str) -> bool {
        match self.providers.player() {
            Some(player) => player.has(provider) || provider == DEMO_PROVIDER,
            None => auth.is_configured(provider),
        }
    }
}

/// Hears of changes of sessions. Called from a session's own task: must be quick and never wait.
pub trait SessionWatch: Send + Sync {
    /// The [`Summary`](crate::Summary) of a session has news: another name, a begin or an end of work.
    fn changed(&self, id: &str);

    /// A session has had nothing to do for [`Limits::idle_after`](crate::Limits::idle_after). OpenEvents again after as long
    /// a time, if it still has not.
    fn idle(&self, id: &str);

    /// An extension of a session wants it to end, and it has nothing to do.
    fn quits(&self, _id: &str) {}

    /// Opens a session with the options of this one, which begins with carrying out a plan. What waits is the future.
    fn carry_out(&self, _id: &str, _plan: ProposedPlan) -> BoxFuture<'static, Result<Successor, Failure>> {
        let failure = Failure::new(ErrorCode::Unsupported, "There are no other sessions here.");
        Box::pin(async { Err(failure) })
    }
}

/// Ignores all changes.
impl SessionWatch for () {
    fn changed(&self, _id: &str) {}

    fn idle(&self, _id: &str) {}
}
