//! A session's surroundings, as its options and settings have them.

use std::{path::PathBuf, sync::Arc, time::Duration};

use agentd_agent::{Tool, hooks::HookGate, observer::SessionObserver};
use agentd_ai::CacheRetention;
use agentd_auth::{Auth, scrub_diagnostic};
use agentd_checkpoints::{SessionCheckpoints, SessionFacts, UndoLimits};
use agentd_config::{
    AgentDir, ProjectFolders, StartingFiles,
    models::{ModelRegistry, ModelsStamp},
    resolve_path,
    resources::ResourceLists,
    settings::http_idle_timeout,
    temp_dir,
};
use agentd_extensions::{NestedBook, SessionExtensions};
use agentd_files::QuickAccess;
use agentd_hooks::{HookFacts, HookSet};
use agentd_kernels::{Language, SessionKernels};
use agentd_mcp::{MCP_LOG, McpConfig, McpSession, ServerContext};
use agentd_process::{ArtifactFolder, BackgroundProcesses, OutputStorage, ProcessGroup, ShellSession};
use agentd_prompt_history::HistoryFile;
use agentd_protocol::{
    eval::EVAL_TOOL,
    resources::{Diagnostic, DiagnosticKind},
    settings::Settings,
};
use agentd_tools::{
    ChangeJournals, JobsSwitch, RemoteHostOptions, RemoteHosts, SessionFolder, SessionUrls, SshUrls,
    TodoList, UrlReader,
};

use super::{
    remote_hosts::{HostPlace, remote_hosts},
    settings_values::{deadlines, http_retries, network, process_limits, syntax_timeout, thinking_budgets},
    target::same_folder,
};
use crate::{
    budget::SessionBudget,
    cell_calls::CellCalls,
    child_environment::{ChildSources, child_environment},
    client_tools::{CallLimits, EvalExecutorsLink, HostUrlsLink},
    context::{ContextLink, PromptSources, SessionContext},
    current_model::CurrentModel,
    discovery_switches::DiscoverySwitches,
    extensions::ExtensionHooks,
    jobs::{JobNews, JobUrls, SessionJobs, WaitTool},
    language_servers::LanguageServerSources,
    mcp_resources::McpResources,
    models::{FallbackChain, RetryPolicy},
    options::{SessionOptions, ToolSelection, async_is_on, default_tools},
    permissions::{ChangeGate, PermissionGate},
    plan::SessionPlans,
    resource_urls::resource_urls,
    sandbox::SessionSandbox,
    services::{Services, ToolContext, Toolbox},
    session_tools::OwnTools,
    session_user::SessionUser,
    shell_hooks::{HookSurroundings, SessionHooks},
    stream_rules::SessionRules,
    subagents::{SubagentHistories, SubagentResults, Subagents, TaskTool, YieldTool, may_start},
    tool_files::{FileToolHost, ToolFilePlace, load_tool_files},
    web::WebSources,
    web_search::SessionSearch,
};

/// Time that streamed text may be missing from the intent log.
const CRASH_FLUSH: Duration = Duration::from_secs(1);

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
    /// Its trusted files; `None` where it is not trusted.
    pub(super) trusted: Option<Arc<StartingFiles>>,
    /// Changes since it was trusted: files, or its folder itself.
    pub(super) changed: Vec<PathBuf>,
    pub(super) resources: ResourceLists,
}

/// A gate that asks the extensions, too.
pub(crate) fn with_extensions(gate: HookGate, extensions: Option<&SessionExtensions>) -> HookGate {
    match extensions {
        Some(extensions) => gate.with_hooks(Arc::new(ExtensionHooks(extensions.clone()))),
        None => gate,
    }
}

/// A gate that asks the shell hooks first.
fn with_shell_hooks(gate: HookGate, hooks: Option<&Arc<SessionHooks>>) -> HookGate {
    match hooks {
        Some(hooks) => gate.after_first(Arc::clone(hooks) as _),
        None => gate,
    }
}

/// Where the user's prompts are recorded. A session that is not stored leaves no trace of them.
fn prompt_history(settings: &Settings, is_stored: bool, agent_dir: &AgentDir) -> Option<HistoryFile> {
    let is_on = settings.prompt_history.as_ref().and_then(|of| of.enabled).unwrap_or(true);
    (is_on && is_stored).then(|| HistoryFile::of_agent_dir(agent_dir.path()))
}

/// A session's surroundings, as its options and settings have them.
pub(super) fn build_context(
    carried_over: CarriedOver,
    options: &SessionOptions,
    settings: Settings,
    project: Project,
    mut found: Vec<Diagnostic>,
) -> SessionContext {
    let CarriedOver {
        services,
        session_id,
        session_file,
        agent_dir,
        processes,
        background,
        models,
        models_stamp,
        auth,
        key_provider,
        cwd,
        budget,
        observer,
        permissions,
        sandbox,
        mcp,
        mcp_config,
        hooks,
        hook_set,
        todos,
        current_model,
        user,
        job_news,
        subagents,
        host_urls,
        eval_executors,
        jobs,
        own_files,
        stream_rules,
        plans,
        kernels,
        shell_session,
        cell_calls,
        nested,
        extensions,
        undo,
    } = carried_over;
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
    let outputs = outputs.limited(services.limits.output_bytes, services.outputs.clone());
    let network = Arc::new(network(&settings, &options.environment, agent_dir.path()));
    let mcp = mcp_config.map_or_else(
        || mcp.clone(),
        |config| {
            // Servers whose configuration is as it was stay as they are.
            if let Some(mcp) = mcp.as_ref().filter(|mcp| *mcp.config() == config) {
                return Some(Arc::clone(mcp));
            }
            let context = ServerContext {
                cwd: cwd.clone(),
                folders: options.additional_directories.clone(),
                variables: options.environment.clone(),
                child_environment: Arc::clone(&child_environment),
                launcher: services.launcher.clone(),
                tasks: services.tasks.clone(),
                http: Arc::clone(services.mcp_servers.http()),
                network: Arc::clone(&network),
                log: services.program_logs.at(agent_dir.path().join(MCP_LOG)),
                agent_dir: agent_dir.clone(),
                auth: Some(auth.clone()),
                memory: services.memory.clone(),
            };
            McpSession::new(config, &context, outputs.clone(), &services.mcp_servers, options.mcp_on_demand)
        },
    );
    let temp_dir = temp_dir(&options.environment);
    let shell_path =
        settings.shell_path.as_deref().map(|path| resolve_path(path, &cwd, &options.environment));
    processes.set_limits(process_limits(settings.processes.unwrap_or_default()));
    let defaults = default_tools(&settings, options.into());
    let mut selection = options.tools.clone();
    selection.exclude.extend(settings.exclude_tools.iter().flatten().cloned());
    let is_active: Arc<dyn Fn(&str) -> bool + Send + Sync> = {
        let (selection, defaults) = (selection.clone(), defaults.clone());
        Arc::new(move |name| selection.is_active(name, &defaults))
    };
    let environment = match &sandbox {
        Some(sandbox) => sandbox.environment(&child_environment),
        None => Arc::clone(&child_environment),
    };
    let hooks = match hook_set {
        Some(set) => SessionHooks::of(
            set,
            HookSurroundings {
                processes: &processes,
                shell: shell_path.clone(),
                env: &child_environment,
                sandbox: sandbox.as_deref().map(|sandbox| (sandbox, &environment)),
                settings: settings.shell_hooks.as_ref(),
                facts: HookFacts {
                    session_id: session_id.clone(),
                    transcript_path: session_file.clone(),
                    cwd: cwd.clone(),
                },
                of_subagent: options.subagent.is_some(),
            },
        ),
        None => hooks,
    };
    let file_tool_host = FileToolHost {
        processes: processes.clone(),
        shell: shell_path.clone(),
        env: Arc::clone(&environment),
        sandbox: sandbox.as_ref().map(|sandbox| Arc::clone(sandbox.policy())),
        outputs: outputs.clone(),
        undo: undo.clone(),
    };
    let link = ContextLink::default();
    let is_on = |switch: Option<bool>| switch.unwrap_or(false);
    let async_is_on = async_is_on(&settings, options.async_jobs);
    let has_jobs = options.ssh.is_none()
        && (async_is_on
            || is_on(settings.task.as_ref().and_then(|task| task.background))
            || is_on(settings.bash.as_ref().and_then(|bash| bash.background)));
    let mut urls: Vec<Arc<dyn UrlReader>> = vec![
        McpResources::of(mcp.as_ref()),
        Arc::new(SubagentResults(subagents.clone())),
        Arc::new(SubagentHistories(subagents.clone())),
    ];
    if has_jobs {
        urls.push(Arc::new(JobUrls(jobs.clone())));
    }
    let language_servers = LanguageServerSources {
        services: &services,
        options,
        settings: &settings,
        cwd: &cwd,
        agent_dir: &agent_dir,
        folders: &project.folders,
        is_trusted: project.trusted.is_some(),
        link: &link,
    };
    let lsp = language_servers.parts(&mut found);
    let web = WebSources {
        session_id: &session_id,
        settings: settings.web.as_ref(),
        network: &network,
        permissions: &permissions,
        sandbox: sandbox.as_deref(),
    };
    let place = HostPlace {
        agent_dir: &agent_dir,
        project: project.trusted.is_some().then_some((&project.folders, &*cwd)),
        environment: &options.environment,
        sandbox: sandbox.as_ref().map(|sandbox| &**sandbox.policy()),
    };
    let remote_hosts = remote_hosts(settings.ssh.as_ref(), &place, &mut found).and_then(|hosts| {
        RemoteHosts::new(RemoteHostOptions {
            hosts,
            host_keys: settings.ssh.as_ref().and_then(|ssh| ssh.host_keys).unwrap_or_default(),
            connections: services.launcher.group(),
            commands: processes.clone(),
            env: Arc::clone(&child_environment),
            temp_dir: temp_dir.clone(),
        })
    });
    urls.extend(remote_hosts.clone().map(|hosts| Arc::new(SshUrls(hosts)) as Arc<dyn UrlReader>));
    let Toolbox { mut tools, changes, shell, gate } = (services.tools)(ToolContext {
        session_id: session_id.clone(),
        cwd: cwd.clone(),
        folders: options.additional_directories.clone(),
        processes: processes.clone(),
        ssh: options.ssh.clone().map(|target| (target, services.launcher.group())),
        remote_hosts,
        shell_path,
        urls: SessionUrls::new(
            urls.into_iter().chain(resource_urls(&link)).collect(),
            Some(host_urls.source(CallLimits::of(&settings))),
        ),
        jobs: JobsSwitch {
            is_on: async_is_on,
            wakes: is_on(settings.task.as_ref().and_then(|task| task.wake_up)),
        },
        job_recorder: Arc::new(jobs.clone()),
        shell_command_prefix: settings.shell_command_prefix.clone(),
        environment,
        temp_dir,
        outputs: outputs.clone(),
        artifacts: artifacts.clone(),
        bash: settings.bash.clone(),
        eval: settings.eval.clone(),
        kernels: kernels.clone(),
        shell_session: shell_session.clone(),
        cell_calls: Arc::new(cell_calls.clone()),
        cell_executors: eval_executors.for_tool(CallLimits::of(&settings)),
        is_trusted: project.trusted.is_some(),
        client_terminal: settings.acp.as_ref().and_then(|acp| acp.client_terminal).unwrap_or(false),
        background: background.clone(),
        is_active,
        home: PathBuf::from(options.environment.non_empty("HOME").unwrap_or("/")),
        agent_dir: agent_dir.path().to_owned(),
        agent_dir_writable: settings.agent_dir_writable.clone().unwrap_or_default(),
        sandbox: sandbox.as_ref().map(|sandbox| Arc::clone(sandbox.policy())),
        undo: undo.clone(),
        journals: (session_file.is_some() && options.ssh.is_none())
            .then(|| ChangeJournals::of_session(&agent_dir.run_dir(), &session_id)),
        todos: todos.clone(),
        own_files: own_files.clone(),
        plans: Arc::new(plans.clone()),
        plan_timeout: settings
            .plan
            .as_ref()
            .and_then(|plan| plan.timeout_ms)
            .filter(|timeout| *timeout > 0)
            .map(Duration::from_millis),
        user: Arc::new(user.clone()),
        ask_timeout: settings
            .ask
            .as_ref()
            .and_then(|ask| ask.timeout_ms)
            .filter(|timeout| *timeout > 0)
            .map(Duration::from_millis),
        syntax_timeout: syntax_timeout(&settings),
        change_approval: Arc::new(ChangeGate(Arc::clone(&permissions))),
        is_stored: session_file.is_some(),
        lsp,
        web: web.options(),
        search: SessionSearch {
            auth: auth.clone(),
            link: link.clone(),
            model: current_model.clone(),
            budget: Arc::clone(&budget),
            is_replayed: services.providers.player().is_some(),
        }
        .options(settings.web_search.as_ref(), &web),
    });
    if may_start(options.subagent.as_deref(), settings.task.as_ref()) {
        tools.push(Arc::new(TaskTool::new(subagents.clone(), settings.task.as_ref())));
    }
    if has_jobs {
        tools.push(Arc::new(WaitTool { jobs: jobs.clone(), news: job_news.clone() }));
    }
    if let Some(own) = options.subagent.as_ref().filter(|own| own.of_extension.is_none()) {
        tools.push(Arc::new(YieldTool { state: Arc::clone(&own.state) }));
    }
    // Programs of this machine would work on other files than the tools of another host.
    let file_tools = match options.ssh {
        Some(_) => Vec::new(),
        None => {
            let place = ToolFilePlace {
                agent_dir: &agent_dir,
                project: project.trusted.is_some().then_some(&project.folders),
                is_built_in: &|name| tools.iter().any(|tool| tool.spec().name == name),
                host: &file_tool_host,
            };
            load_tool_files(&place, &mut found)
        }
    };
    found.extend(eval_problems(&settings, options, &tools));
    let others: Vec<&str> = file_tools.iter().map(|tool| tool.spec().name.as_str()).collect();
    found.extend(unknown_tools(&options.tools, &tools, &others));
    let fallbacks = FallbackChain::new(
        options.fallback_models.as_deref().or(settings.fallback_models.as_deref()).unwrap_or_default(),
    );
    let resizes = settings.images.as_ref().and_then(|images| images.auto_resize).unwrap_or(true);
    let images = services.images.resizing(resizes);
    let prompt_history = prompt_history(&settings, session_file.is_some(), &agent_dir);
    let home = options.environment.non_empty("HOME").map(str::to_owned);
    SessionContext {
        services,
        session_id,
        session_file,
        agent_files: QuickAccess::new([agent_dir.path().to_owned()]),
        prompt_access: QuickAccess::new(
            [cwd.clone(), agent_dir.path().to_owned()].into_iter().chain(home.map(PathBuf::from)),
        ),
        agent_dir,
        prompt_history,
        environment: options.environment.clone(),
        outputs,
        artifacts,
        processes,
        background,
        tools: OwnTools::new(tools, selection, &defaults),
        changes,
        shell,
        gate: with_extensions(
            with_shell_hooks(gate, hooks.as_ref()).after_permissions(Arc::clone(&permissions) as _),
            extensions.as_ref(),
        ),
        hooks,
        file_tools,
        permissions,
        sandbox,
        mcp,
        todos,
        current_model,
        own_files,
        link,
        stream_rules,
        plans,
        user,
        job_news,
        subagents,
        host_urls,
        eval_executors,
        jobs,
        kernels,
        shell_session,
        cell_calls,
        nested,
        mode: options.mode,
        extensions,
        child_environment,
        undo,
        is_elsewhere: options.ssh.is_some(),
        folders: options.additional_directories.clone(),
        shell_prefix: settings.shell_command_prefix.clone(),
        models,
        models_stamp,
        removed_model: None,
        auth,
        key_provider,
        prompt: PromptSources {
            system: options.system_prompt.clone(),
            appended: options.append_system_prompt.clone(),
            context_files: !options.no_context_files,
            folders: project.folders,
            is_of_cwd: same_folder(&options.cwd, &cwd),
            trusted_as: project.trusted,
            changed: project.changed,
            lists: project.resources,
            flags: options.resources.clone(),
            no_mcp: options.no_mcp,
        },
        discovery: DiscoverySwitches::of(settings.discovery.as_ref()),
        idle_timeout: http_idle_timeout(&settings),
        deadlines: deadlines(&settings),
        network,
        images,
        block_images: settings.images.as_ref().and_then(|images| images.block_images).unwrap_or(false),
        cache_retention: match options.environment.get("PI_CACHE_RETENTION") {
            Some("long") => CacheRetention::Long,
            _ => CacheRetention::Short,
        },
        crash_flush: CRASH_FLUSH,
        retry: RetryPolicy::of(&settings),
        auto_retry: settings.retry.as_ref().and_then(|of| of.enabled).unwrap_or(true).into(),
        fallbacks,
        http_retries: http_retries(&settings),
        thinking_budgets: thinking_budgets(&settings),
        budget,
        observer,
        auto_compaction: settings.compaction.as_ref().and_then(|of| of.enabled).unwrap_or(true).into(),
        cwd,
        settings,
        diagnostics: found.into_iter().map(scrub_diagnostic).collect(),
    }
}

/// Opens what keeps the changes of a session's tools, if undo is on. Blocks.
pub(super) fn open_undo(
    services: &Services,
    options: &SessionOptions,
    settings: &Settings,
    facts: SessionFacts,
    found: &mut Vec<Diagnostic>,
) -> Option<Arc<SessionCheckpoints>> {
    let setting = settings.undo.clone().unwrap_or_default();
    if !options.undo.or(setting.enabled).unwrap_or(false) {
        return None;
    }
    let opened = if options.ssh.is_some() {
        Err("Changes are not kept for undo: the session works on another host.".to_owned())
    } else {
        SessionCheckpoints::open(&services.undo, facts, UndoLimits::of(&setting))
    };
    opened.map_err(|why| found.push(Diagnostic::warning(DiagnosticKind::Settings, why))).ok()
}

/// What is wrong with the setting `eval`, where it is on.
fn eval_problems(settings: &Settings, options: &SessionOptions, tools: &[Arc<dyn Tool>]) -> Vec<Diagnostic> {
    let Some(eval) = settings.eval.as_ref().filter(|eval| eval.enabled == Some(true)) else {
        return Vec::new();
    };
    let unknown = eval.languages.iter().flatten().filter(|name| Language::of(name).is_none());
    let mut problems: Vec<String> = unknown
        .map(|name| format!("the setting eval.languages names \"{name}\"; there are py, js and jupyter:NAME"))
        .collect();
    if options.ssh.is_some() {
        problems.push("the tool eval is not there: the session works on another host".to_owned());
    } else if !tools.iter().any(|tool| tool.spec().name == EVAL_TOOL) {
        problems.push(
            "the tool eval is not there: no interpreter of its languages was found on the search path (settings eval.languages, eval.python, \
             eval.javascript)"
                .to_owned(),
        );
    }
    let warning = |problem| Diagnostic::warning(DiagnosticKind::Tools, problem);
    problems.into_iter().map(warning).collect()
}

/// One for each name in `--tools` and `--exclude-tools` that no tool has.
fn unknown_tools(selection: &ToolSelection, tools: &[Arc<dyn Tool>], others: &[&str]) -> Vec<Diagnostic> {
    let names = tools.iter().map(|tool| tool.spec().name.as_str());
    let names: Vec<&str> = names.chain(others.iter().copied()).collect();
    let unknown = selection.unknown(&names);
    unknown
        .into_iter()
        .map(|name| {
            let names = names.join(", ");
            let message =
                format!("no tool is called \"{name}\"; there are {names}, and those that clients provide");
            Diagnostic::warning(DiagnosticKind::Tools, message)
        })
        .collect()
}
