//! What a session's surroundings are made from.

use std::{path::PathBuf, sync::Arc};

use agentd_agent::observer::SessionObserver;
use agentd_ai::Network;
use agentd_auth::Auth;
use agentd_checkpoints::SessionCheckpoints;
use agentd_config::{
    AgentDir, ProjectFolders, StartingFiles,
    models::{ModelRegistry, ModelsStamp},
    resolve_path,
    resources::ResourceLists,
    temp_dir,
};
use agentd_extensions::{NestedBook, SessionExtensions};
use agentd_hooks::HookSet;
use agentd_kernels::SessionKernels;
use agentd_mcp::{McpConfig, McpSession};
use agentd_process::{ArtifactFolder, BackgroundProcesses, OutputStorage, ProcessGroup, ShellSession};
use agentd_protocol::settings::Settings;
use agentd_tools::{SessionFolder, TodoList};

use super::settings_values::network;
use crate::{
    budget::SessionBudget,
    cell_calls::CellCalls,
    child_environment::{ChildEnvironment, ChildSources, child_environment},
    client_tools::{EvalExecutorsLink, HostUrlsLink},
    context::ContextLink,
    current_model::CurrentModel,
    jobs::{JobNews, SessionJobs},
    options::{SessionOptions, ToolSelection, default_tools},
    permissions::PermissionGate,
    plan::SessionPlans,
    sandbox::SessionSandbox,
    services::Services,
    session_user::SessionUser,
    shell_hooks::SessionHooks,
    stream_rules::SessionRules,
    subagents::Subagents,
};

/// The parts of a session that are kept when its settings are read again.
pub(super) struct CarriedOver {
    pub(super) services: Arc<Services>,
    pub(super) session_id: String,
    pub(super) session_file: Option<PathBuf>,
    pub(super) agent_dir: AgentDir,
    pub(super) processes: ProcessGroup,
    pub(super) background: BackgroundProcesses,
    pub(super) models: Arc<ModelRegistry>,
    pub(super) models_stamp: ModelsStamp,
    pub(super) auth: Auth,
    pub(super) key_provider: Option<String>,
    pub(super) cwd: PathBuf,
    pub(super) budget: Arc<SessionBudget>,
    pub(super) observer: Option<Arc<dyn SessionObserver>>,
    pub(super) permissions: Arc<PermissionGate>,
    pub(super) sandbox: Option<Arc<SessionSandbox>>,
    /// The MCP servers of before, if there were some.
    pub(super) mcp: Option<Arc<McpSession>>,
    /// What mcp.json says, where it was read anew.
    pub(super) mcp_config: Option<McpConfig>,
    /// The shell hooks of before, if there were some.
    pub(super) hooks: Option<Arc<SessionHooks>>,
    /// The shell hooks that there are now, where they were read anew.
    pub(super) hook_set: Option<HookSet>,
    pub(super) todos: TodoList,
    pub(super) current_model: CurrentModel,
    pub(super) user: SessionUser,
    pub(super) job_news: JobNews,
    pub(super) subagents: Subagents,
    pub(super) host_urls: HostUrlsLink,
    pub(super) eval_executors: EvalExecutorsLink,
    pub(super) jobs: SessionJobs,
    pub(super) own_files: SessionFolder,
    pub(super) stream_rules: SessionRules,
    pub(super) plans: SessionPlans,
    pub(super) kernels: SessionKernels,
    pub(super) shell_session: ShellSession,
    pub(super) cell_calls: CellCalls,
    pub(super) nested: NestedBook,
    /// The extensions of before, if there were some.
    pub(super) extensions: Option<SessionExtensions>,
    /// What keeps its changes: opened with the session, if undo is on.
    pub(super) undo: Option<Arc<SessionCheckpoints>>,
}

/// The project of a session, and its lists of resources.
pub(super) struct Project {
    pub(super) folders: ProjectFolders,
    /// Whether it has something that needs trust, and is not trusted.
    pub(super) is_untrusted: bool,
    /// Its trusted files; `None` where it is not trusted, or has nothing that needs it.
    pub(super) trusted: Option<Arc<StartingFiles>>,
    /// Changes since it was trusted: files, or its folder itself.
    pub(super) changed: Vec<PathBuf>,
    pub(super) resources: ResourceLists,
}

/// What the options and settings make of a session's surroundings before its tools are made.
pub(super) struct Surroundings {
    /// The environment of the session's programs.
    pub(super) child_environment: ChildEnvironment,
    /// The same, as the sandbox has it.
    pub(super) environment: ChildEnvironment,
    pub(super) artifacts: Option<ArtifactFolder>,
    pub(super) outputs: OutputStorage,
    pub(super) network: Arc<Network>,
    pub(super) temp_dir: PathBuf,
    pub(super) shell_path: Option<PathBuf>,
    /// The tools that are active where nobody chose.
    pub(super) defaults: Vec<String>,
    pub(super) selection: ToolSelection,
    pub(super) link: ContextLink,
}

impl Surroundings {
    /// What they make of these.
    pub(super) fn of(carried: &CarriedOver, options: &SessionOptions, settings: &Settings) -> Self {
        let CarriedOver { services, session_file, agent_dir, auth, cwd, sandbox, .. } = carried;
        let child_environment = services.child_environments.intern(child_environment(&ChildSources {
            environment: &options.environment,
            keys: &auth.key_variables(),
            settings: settings.child_environment.as_ref(),
            agent_dir: agent_dir.path(),
            compat: options.compat,
        }));
        let artifacts = session_file.as_deref().map(ArtifactFolder::beside);
        let outputs = match &artifacts {
            Some(folder) => OutputStorage::from(folder.clone()),
            None => OutputStorage::from(&*temp_dir(&options.environment)),
        };
        let mut selection = options.tools.clone();
        selection.exclude.extend(settings.exclude_tools.iter().flatten().cloned());
        Self {
            environment: match sandbox {
                Some(sandbox) => sandbox.environment(&child_environment),
                None => Arc::clone(&child_environment),
            },
            child_environment,
            artifacts,
            outputs: outputs.limited(services.limits.output_bytes, services.outputs.clone()),
            network: Arc::new(network(settings, &options.environment, agent_dir.path())),
            temp_dir: temp_dir(&options.environment),
            shell_path: settings
                .shell_path
                .as_deref()
                .map(|path| resolve_path(path, cwd, &options.environment)),
            defaults: default_tools(settings, options.into()),
            selection,
            link: ContextLink::default(),
        }
    }
}
