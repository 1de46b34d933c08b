//! A session's surroundings, as its options and settings have them.

use std::{path::PathBuf, sync::Arc, time::Duration};

use agentd_agent::{Tool, hooks::HookGate};
use agentd_ai::CacheRetention;
use agentd_auth::scrub_diagnostic;
use agentd_checkpoints::{SessionCheckpoints, SessionFacts, UndoLimits};
use agentd_config::{AgentDir, settings::http_idle_timeout};
use agentd_extensions::SessionExtensions;
use agentd_files::QuickAccess;
use agentd_hooks::HookFacts;
use agentd_kernels::Language;
use agentd_mcp::{MCP_LOG, McpSession, ServerContext};
use agentd_prompt_history::HistoryFile;
use agentd_protocol::{
    eval::EVAL_TOOL,
    resources::{Diagnostic, DiagnosticKind},
    settings::Settings,
};

use super::{
    settings_values::{deadlines, http_retries, process_limits, thinking_budgets},
    surroundings::{CarriedOver, Project, Surroundings},
    target::same_folder,
    tool_context::{SessionToolbox, ToolSources},
};
use crate::{
    context::{PromptSources, SessionContext},
    discovery_switches::DiscoverySwitches,
    extensions::ExtensionHooks,
    models::{FallbackChain, RetryPolicy},
    options::{SessionOptions, ToolSelection},
    services::{Services, Toolbox},
    session_tools::OwnTools,
    shell_hooks::{HookSurroundings, SessionHooks},
};

/// Time that streamed text may be missing from the intent log.
const CRASH_FLUSH: Duration = Duration::from_secs(1);

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

/// The servers of mcp.json, where it was read anew, else those of before. Servers whose configuration is as it was stay as they are.
fn mcp_session(
    carried: &mut CarriedOver,
    options: &SessionOptions,
    made: &Surroundings,
) -> Option<Arc<McpSession>> {
    let mcp = carried.mcp.take();
    let Some(config) = carried.mcp_config.take() else { return mcp };
    if let Some(mcp) = mcp.filter(|mcp| *mcp.config() == config) {
        return Some(mcp);
    }
    let services = &carried.services;
    let context = ServerContext {
        cwd: carried.cwd.clone(),
        folders: options.additional_directories.clone(),
        variables: options.environment.clone(),
        child_environment: Arc::clone(&made.child_environment),
        launcher: services.launcher.clone(),
        tasks: services.tasks.clone(),
        http: Arc::clone(services.mcp_servers.http()),
        network: Arc::clone(&made.network),
        log: services.program_logs.at(carried.agent_dir.path().join(MCP_LOG)),
        agent_dir: carried.agent_dir.clone(),
        auth: Some(carried.auth.clone()),
        memory: services.memory.clone(),
    };
    McpSession::new(config, &context, made.outputs.clone(), &services.mcp_servers, options.mcp_on_demand)
}

/// The shell hooks, where they were read anew, else those of before.
fn shell_hooks(
    carried: &mut CarriedOver,
    options: &SessionOptions,
    settings: &Settings,
    made: &Surroundings,
) -> Option<Arc<SessionHooks>> {
    let Some(set) = carried.hook_set.take() else { return carried.hooks.take() };
    SessionHooks::of(
        set,
        HookSurroundings {
            processes: &carried.processes,
            shell: made.shell_path.clone(),
            env: &made.child_environment,
            sandbox: carried.sandbox.as_deref().map(|sandbox| (sandbox, &made.environment)),
            settings: settings.shell_hooks.as_ref(),
            facts: HookFacts {
                session_id: carried.session_id.clone(),
                transcript_path: carried.session_file.clone(),
                cwd: carried.cwd.clone(),
            },
            of_subagent: options.subagent.is_some(),
        },
    )
}

/// A session's surroundings, as its options and settings have them.
pub(super) fn build_context(
    mut carried: CarriedOver,
    options: &SessionOptions,
    settings: Settings,
    project: Project,
    mut found: Vec<Diagnostic>,
) -> SessionContext {
    carried.processes.set_limits(process_limits(settings.processes.unwrap_or_default()));
    let made = Surroundings::of(&carried, options, &settings);
    carried.mcp = mcp_session(&mut carried, options, &made);
    carried.hooks = shell_hooks(&mut carried, options, &settings, &made);
    let sources =
        ToolSources { carried: &carried, options, settings: &settings, project: &project, made: &made };
    let SessionToolbox { toolbox: Toolbox { tools, changes, shell, gate }, file_tools } =
        sources.tools(&mut found);
    found.extend(eval_problems(&settings, options, &tools));
    let others: Vec<&str> = file_tools.iter().map(|tool| tool.spec().name.as_str()).collect();
    found.extend(unknown_tools(&options.tools, &tools, &others));
    let fallbacks = FallbackChain::new(
        options.fallback_models.as_deref().or(settings.fallback_models.as_deref()).unwrap_or_default(),
    );
    let resizes = settings.images.as_ref().and_then(|images| images.auto_resize).unwrap_or(true);
    let home = options.environment.non_empty("HOME").map(str::to_owned);
    let Surroundings { child_environment, artifacts, outputs, network, selection, defaults, link, .. } = made;
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
        mcp_config: _,
        hooks,
        hook_set: _,
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
    } = carried;
    SessionContext {
        images: services.images.resizing(resizes),
        prompt_history: prompt_history(&settings, session_file.is_some(), &agent_dir),
        services,
        session_id,
        session_file,
        agent_files: QuickAccess::new([agent_dir.path().to_owned()]),
        prompt_access: QuickAccess::new(
            [cwd.clone(), agent_dir.path().to_owned()].into_iter().chain(home.map(PathBuf::from)),
        ),
        agent_dir,
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
            is_untrusted: project.is_untrusted,
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
