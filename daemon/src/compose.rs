//! The one place that names concrete providers and tools.

use std::{path::Path, sync::Arc, time::Duration};

use agentd_agent::{Tool, hooks::HookGate, observer::Observers};
use agentd_ai::ExchangeMode;
use agentd_auth::AuthServices;
use agentd_config::{
    AgentDir, Environment,
    models::{ModelRegistry, SharedModels},
};
use agentd_images::Images;
use agentd_kernels::{EvalOptions, EvalTool, InterpreterSources, KernelPool, Language};
use agentd_lsp::{DiagnosedTool, LspPlace, LspTool, SessionServers};
use agentd_memory::MemoryAccount;
use agentd_process::{GuardCommand, Launcher, LocalShell, OutputMeter, Shell};
use agentd_prompt_history::PromptRecorder;
use agentd_protocol::{
    patch::PATCH_TOOL,
    syntax::{AST_EDIT_TOOL, AST_GREP_TOOL},
    tool::ToolSpec,
    web::WEB_FETCH_TOOL,
};
use agentd_session::{
    Interner, Services, SubagentHosting, SubagentSlots, SupportCache, ToolContext, Toolbox,
};
#[cfg(target_os = "linux")]
use agentd_tools::operations::SandboxedHost;
use agentd_tools::{
    AskTool, AstEditOptions, AstEditTool, AstGrepTool, BashFeatures, BashOptions, BashTool, ChangePlace,
    EditTool, FileQueue, FindTool, GrepTool, LsTool, PatchOptions, PatchTool, ProposePlanTool, ReadTool,
    SshTool, SyntaxProgram, TodoTool, WriteTool,
    operations::{EditorAccess, EditorHost, EditorShell, FileHost, GuardedHost, SshHost, SshOptions},
    process_tools,
};
use agentd_web::{PdfReader, WebFetchTool, WebReader, WebSearchTool, WebStore, web_urls};
use tokio_util::task::TaskTracker;

use crate::{hub::ServiceInputs, record_replay};

/// Makes the services that all sessions share. Child processes are started by a guard, which is this program run again.
///
/// Processes that a killed daemon of the same agent directory left are ended in the background; the first command waits for that.
///
/// # Errors
/// A sentence for stderr when exchanges with providers cannot be recorded or replayed.
///
/// Must be called within the runtime. The arguments are those of [`AgentDir::find`]; without an agent directory no left processes are
/// looked for. At most `max_commands` commands of all sessions run at the same time. Incoming data is charged to `memory`. Sessions are
/// shown to `observers`, and their texts and terminals are those of `editor`, where there is one.
pub fn services(
    environment: &Environment,
    compat: bool,
    cwd: &Path,
    max_commands: usize,
    memory: &MemoryAccount,
    observers: Option<Arc<dyn Observers>>,
    editor: Option<EditorAccess>,
) -> Result<impl FnOnce(ServiceInputs) -> Arc<Services> + use<>, String> {
    let exchanges = record_replay::open(environment, cwd)?;
    let guard = GuardCommand::this_program();
    let owners = AgentDir::find(environment, compat, cwd).ok().map(|agent_dir| agent_dir.owners_dir());
    let launcher = Launcher::limited(guard, owners, max_commands);
    let sweeping = launcher.clone();
    // Detached: nothing waits for the sweep at the end.
    tokio::spawn(async move { sweeping.sweep().await });
    let memory = memory.clone();
    Ok(move |inputs| Arc::new(shared(inputs, launcher, exchanges, memory, observers, editor)))
}

fn shared(
    ServiceInputs { epoch, limits, watch }: ServiceInputs,
    launcher: Launcher,
    exchanges: ExchangeMode,
    memory: MemoryAccount,
    observers: Option<Arc<dyn Observers>>,
    editor: Option<EditorAccess>,
) -> Services {
    let changes = FileQueue::new();
    let specs = Interner::default();
    let web_store = WebStore::default();
    // A replay uses the models of the recording, whatever the configuration says now.
    let models = match &exchanges {
        ExchangeMode::Replayed(player) => SharedModels::fixed(ModelRegistry::only(player.models().to_vec())),
        ExchangeMode::Live | ExchangeMode::Recorded(_) => SharedModels::default(),
    };
    let syntax = SyntaxProgram::beside_this_program(launcher.clone());
    let tasks = TaskTracker::new();
    Services {
        epoch,
        limits,
        observers,
        watch,
        providers: agentd_ai::ProviderRegistry::with_exchange_mode(exchanges, memory.clone()),
        launcher,
        subagent_hosting: SubagentHosting::default(),
        subagent_slots: SubagentSlots::default(),
        prompt_recorder: PromptRecorder::new(tasks.clone()),
        tasks: tasks.clone(),
        models,
        child_environments: Interner::default(),
        auth_services: AuthServices::default(),
        images: Images::default(),
        memory,
        outputs: OutputMeter::default(),
        sandbox_support: SupportCache::default(),
        mcp_servers: agentd_mcp::SharedServers::default(),
        language_servers: Arc::default(),
        discovery: agentd_discovery::DiscoveryCache::default(),
        program_logs: agentd_session::ProgramLogs::default(),
        kernels: KernelPool::new(tasks),
        undo: agentd_checkpoints::UndoServices::default(),
        tools: Box::new(move |context| {
            tools(context, &changes, &specs, editor.as_ref(), (&web_store, syntax.as_ref()))
        }),
    }
}

/// The file system and the shell that the tools of one session work with.
fn hosts(context: &ToolContext) -> (Arc<dyn FileHost>, Arc<dyn Shell>) {
    let Some((target, connections)) = context.ssh.clone() else {
        // The user's own commands begin with nothing else.
        let shell = LocalShell { snapshot: None, ..local_shell(context) };
        return (files_here(context), Arc::new(shell));
    };
    let (group, env) = (context.processes.clone(), Arc::clone(&context.environment));
    let temp_dir = context.temp_dir.clone();
    let options = SshOptions { target, arguments: Vec::new(), connections, commands: group, env, temp_dir };
    let host = SshHost::new(options);
    (Arc::new(host.clone()), Arc::new(host))
}

/// The files of this machine, as the session's sandbox permits them.
fn files_here(context: &ToolContext) -> Arc<dyn FileHost> {
    let guarded = GuardedHost::new(&context.agent_dir, context.agent_dir_writable.clone());
    match &context.sandbox {
        #[cfg(target_os = "linux")]
        Some(policy) => Arc::new(SandboxedHost::new(Arc::clone(policy), guarded)),
        _ => Arc::new(guarded),
    }
}

/// The shell of this machine, in the session's sandbox.
fn local_shell(context: &ToolContext) -> LocalShell {
    LocalShell {
        group: context.processes.clone(),
        path: context.shell_path.clone(),
        env: Arc::clone(&context.environment),
        sandbox: context.sandbox.clone(),
        snapshot: (context.bash.as_ref().and_then(|bash| bash.snapshot) == Some(true))
            .then(|| context.shell_session.snapshot(context.temp_dir.clone())),
    }
}

/// The features of `bash` beyond its plain form. Terminals and background processes exist on this machine alone.
fn features(context: &ToolContext) -> BashFeatures {
    let local = local_shell(context);
    let is_active = Arc::clone(&context.is_active);
    let processes = (&context.background, &context.job_recorder);
    let mut features = BashFeatures::of(
        context.bash.as_ref(),
        processes,
        (&local, &context.shell_session),
        is_active,
        context.jobs,
    );
    if context.ssh.is_some() {
        features.pty = None;
        features.session = None;
        features.background = None;
        features.jobs = None;
    }
    features
}

/// The language servers of a session, where it has some. `host` has the files on disk.
fn language_servers(
    context: &mut ToolContext,
    host: &Arc<dyn FileHost>,
    changes: &ChangePlace,
) -> Option<Arc<SessionServers>> {
    // Servers of this machine know no files of another one.
    let parts = context.lsp.take().filter(|_| context.ssh.is_none())?;
    let place = LspPlace {
        cwd: context.cwd.clone(),
        folders: context.folders.clone(),
        home: context.home.clone(),
        environment: Arc::clone(&context.environment),
        sandbox: context.sandbox.clone(),
        host: Arc::clone(host),
        changes: changes.clone(),
    };
    Some(SessionServers::new(parts, place))
}

/// The tool `eval`, where the settings switch it on and one of its languages has an interpreter. Without that setting nothing is looked for.
/// Cells run on this machine alone.
fn eval_tool(context: &ToolContext, specs: &Interner<Arc<ToolSpec>>) -> Option<EvalTool> {
    let setting = context.eval.as_ref().filter(|eval| eval.enabled == Some(true))?;
    if context.ssh.is_some() {
        return None;
    }
    let path = |set: &Option<String>| {
        let set = set.as_deref()?;
        let below_home = set.strip_prefix("~/").map(|rest| context.home.join(rest));
        Some(below_home.unwrap_or_else(|| context.cwd.join(set)))
    };
    let (python, javascript) = (path(&setting.python), path(&setting.javascript));
    let sources = InterpreterSources {
        environment: &context.environment,
        project: context.is_trusted.then_some(&*context.cwd),
        python: python.as_deref(),
        javascript: javascript.as_deref(),
    };
    let wanted: Vec<Language> = match &setting.languages {
        Some(names) => names.iter().filter_map(|name| Language::of(name)).collect(),
        None => Language::ALL.to_vec(),
    };
    let interpreters = EvalOptions::available(&wanted, |language| sources.find(language));
    if interpreters.is_empty() {
        return None;
    }
    let idle_ms = setting.idle_ms.unwrap_or(900_000);
    let options = EvalOptions {
        kernels: context.kernels.clone(),
        interpreters,
        environment: Arc::clone(&context.environment),
        passed: setting.environment.clone().unwrap_or_default(),
        sandbox: context.sandbox.clone(),
        memory_bytes: setting.max_memory_bytes.unwrap_or(4 << 30),
        idle: (idle_ms > 0).then(|| Duration::from_millis(idle_ms)),
        most: setting.max_kernels.map_or(8, |most| usize::try_from(most.get()).unwrap_or(usize::MAX)),
        outputs: context.outputs.clone(),
        executors: Arc::clone(&context.cell_executors),
        tools: Arc::clone(&context.cell_calls),
        undo: context.undo.clone(),
    };
    Some(EvalTool::new(options).with_shared_spec(|spec| specs.intern(spec)))
}

/// The tools of one session, in the order in which models see them.
///
/// With an `editor`, the texts of the workspace are read and written through it, and the model's commands run in its terminal if
/// the settings say so: where files and commands are of this machine, and no sandbox has a say about them. Sessions share the tools'
/// descriptions, those that depend on the session through `specs`.
fn tools(
    mut context: ToolContext,
    changes: &FileQueue,
    specs: &Interner<Arc<ToolSpec>>,
    editor: Option<&EditorAccess>,
    (web_store, syntax): (&WebStore, Option<&SyntaxProgram>),
) -> Toolbox {
    // Sessions share the queue, so that two changes of one file of this machine are not made at once. A path on another host is
    // another file.
    let files = if context.ssh.is_some() { FileQueue::new() } else { changes.beside() };
    let (host, shell) = hosts(&context);
    let editor = editor.filter(|_| context.ssh.is_none() && context.sandbox.is_none());
    let texts: Arc<dyn FileHost> = match editor {
        Some(editor) => {
            let (host, files) = (Arc::clone(&host), Arc::clone(&editor.files));
            let folders = std::iter::once(&context.cwd).chain(&context.folders).cloned().collect();
            Arc::new(EditorHost::new(host, files, &context.session_id, folders))
        }
        None => Arc::clone(&host),
    };
    let terminal = editor.filter(|_| context.client_terminal);
    let commands: Arc<dyn Shell> = match terminal {
        Some(editor) => {
            let terminals = Arc::clone(&editor.terminals);
            Arc::new(EditorShell::new(local_shell(&context), terminals, &context.session_id))
        }
        None if context.ssh.is_none() => Arc::new(local_shell(&context)),
        None => Arc::clone(&shell),
    };
    let eval = eval_tool(&context, specs);
    let mut features = features(&context);
    if terminal.is_some() {
        // What runs in the editor's terminal stays there.
        features.session = None;
        if let Some(jobs) = features.jobs.as_mut() {
            jobs.auto_after = None;
        }
    }
    let long_outputs = context.outputs.clone();
    let of_processes =
        features.background.as_ref().map(|feature| process_tools(&feature.list)).unwrap_or_default();
    let place = ChangePlace {
        queue: files.clone(),
        host: Arc::clone(&texts),
        undo: context.undo.clone(),
        journals: context.journals.clone(),
    };
    let language_servers = language_servers(&mut context, &host, &place);
    let pdf = PdfReader { processes: context.processes.clone(), program: "/proc/self/exe".into() };
    let web = WebReader::new(web_store.clone(), context.web, Some(pdf));
    let of_web = if (context.is_active)(WEB_FETCH_TOOL) { web_urls(&web) } else { Vec::new() };
    let urls = context.urls.with(of_web);
    let outputs = context.outputs.clone();
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(
            ReadTool::new()
                .with_home(&context.home)
                .with_host(Arc::clone(&texts))
                .with_artifacts(context.artifacts)
                .with_own_files(context.own_files.clone())
                .with_urls(urls.clone()),
        ),
        Arc::new(
            BashTool::new(BashOptions {
                shell: commands,
                command_prefix: context.shell_command_prefix,
                outputs: context.outputs,
                home: Some(context.home.clone()),
                features,
                undo: context.undo.clone(),
            })
            .with_shared_spec(|spec| specs.intern(spec)),
        ),
        Arc::new(
            EditTool::new(files.clone())
                .with_home(&context.home)
                .with_host(Arc::clone(&texts))
                .with_own_files(context.own_files.clone())
                .with_undo(context.undo.clone()),
        ),
        Arc::new(
            WriteTool::new(files.clone())
                .with_home(&context.home)
                .with_host(Arc::clone(&texts))
                .with_own_files(context.own_files.clone())
                .with_urls(urls)
                .with_undo(context.undo.clone()),
        ),
        Arc::new(GrepTool::new().with_home(&context.home).with_host(Arc::clone(&host))),
        Arc::new(FindTool::new().with_home(&context.home).with_host(Arc::clone(&host))),
        Arc::new(LsTool::new().with_home(&context.home).with_host(Arc::clone(&host))),
    ];
    // Only where a session begins with it, as with the next two.
    if (context.is_active)(PATCH_TOOL) {
        let (home, place) = (context.home.clone(), place.clone());
        let approval = Arc::clone(&context.change_approval);
        tools.push(Arc::new(PatchTool::new(PatchOptions { home, place, approval })));
    }
    // Only where a session begins with one of them. A session that wants them without the program does without; `agentctl doctor` says so.
    let wants_syntax = [AST_GREP_TOOL, AST_EDIT_TOOL].into_iter().any(|tool| (context.is_active)(tool));
    if let Some(program) = syntax.filter(|program| wants_syntax && program.is_installed()) {
        let (home, timeout) = (context.home.clone(), context.syntax_timeout);
        tools.push(Arc::new(AstGrepTool::new(program.clone(), home.clone(), Arc::clone(&host), timeout)));
        tools.push(Arc::new(AstEditTool::new(AstEditOptions {
            program: program.clone(),
            home,
            host: Arc::clone(&host),
            timeout,
            place,
            approval: context.change_approval,
        })));
    }
    if let Some(hosts) = context.remote_hosts {
        let share = |spec| specs.intern(spec);
        tools.push(Arc::new(SshTool::new(hosts, long_outputs, share)));
    }
    tools.push(Arc::new(TodoTool::new(context.todos, context.is_stored)));
    tools.push(Arc::new(AskTool::new(Arc::clone(&context.user), context.ask_timeout)));
    let (folder, user) = (context.own_files, context.user);
    tools.push(Arc::new(ProposePlanTool::new(folder, user, context.plans, context.plan_timeout)));
    tools.push(Arc::new(WebFetchTool::new(web, outputs)));
    tools.push(Arc::new(WebSearchTool::new(context.search)));
    tools.extend(eval.map(|tool| Arc::new(tool) as Arc<dyn Tool>));
    tools.extend(of_processes);
    if let Some(servers) = language_servers {
        for tool in &mut tools {
            let inner = Arc::clone(tool);
            match inner.spec().name.as_str() {
                "read" => *tool = DiagnosedTool::reading(inner, &servers),
                "edit" | "write" | PATCH_TOOL => *tool = DiagnosedTool::changing(inner, &servers),
                _ => {}
            }
        }
        tools.push(Arc::new(LspTool::new(servers)));
    }
    Toolbox { tools, changes: files, shell, gate: HookGate::default() }
}
