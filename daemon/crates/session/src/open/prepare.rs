//! Everything of a session before its actor runs.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_agent::observer::SessionObserver;
use agentd_auth::{Auth, AuthSources};
use agentd_checkpoints::SessionFacts;
use agentd_config::{
    AgentDir, Environment, ProjectFolders, StartingFiles, TrustBasis, TrustDecision,
    models::ModelsStamp,
    note_trusted_files,
    resources::ResourceLists,
    settings::{LoadedSettings, load_as_given},
    temp_dir,
};
use agentd_extensions::NestedBook;
use agentd_files::looking_once;
use agentd_kernels::SessionKernels;
use agentd_process::{ArtifactFolder, BackgroundProcesses, ShellSession};
use agentd_protocol::{
    agent_mode::AgentMode,
    resources::{Diagnostic, DiagnosticKind},
    session::QueueMode,
    settings::Settings,
};
use agentd_store::{OpenSession, intent_log::QueuedRecord, read_header};
use agentd_tools::{ChangeJournals, SessionFolder, TakenBack, TodoList};

use super::{
    beginning::UnbegunSession,
    build_context::{build_context, open_undo},
    error::OpenError,
    initial_choice::{last_background, restored_choice},
    mcp_servers::{McpSources, mcp_config},
    opened_file::{OpenedFile, SessionSource, open_file},
    session_file::origin,
    surroundings::{CarriedOver, Project},
    target::{SessionFiles, working_directory},
    trust_pass::TrustPass,
};
use crate::{
    budget::SessionBudget,
    cell_calls::CellCalls,
    client_tools::{EvalExecutorsLink, HostUrlsLink},
    context::SessionContext,
    current_model::CurrentModel,
    jobs::{JobNews, SessionJobs, last_number},
    options::{InitialMode, SessionOptions, async_is_on},
    permissions::{PermissionFault, PermissionSources, session_rules},
    plan::SessionPlans,
    project_answer::ProjectAnswer,
    recovery::{AfterCrash, Origin, UnflushedWrites, recover},
    reply::Reply,
    requests::IdempotencyCache,
    sandbox::SandboxSources,
    services::Services,
    session_tools::ToolChoice,
    session_user::SessionUser,
    shell_hooks::{HookPlace, load_hooks},
    stream_rules::SessionRules,
    subagent_place::ChildObserver,
    subagents::Subagents,
    transcript::SessionIntentLog,
    unload::Unloaded,
};

/// A session that lacks only its actor.
pub(crate) struct PreparedSession {
    pub(crate) context: SessionContext,
    /// Whether someone would have to be asked if the project's own settings are to count.
    pub(crate) trust_is_open: bool,
    /// The project's files that trust is for, while it lasts.
    pub(crate) trusted_files: Option<StartingFiles>,
    /// Chooses its model once its extensions are loaded.
    pub(crate) unbegun: UnbegunSession,
    pub(crate) intent_log: SessionIntentLog,
    /// Whether another program has changed its file while it was not in memory.
    pub(crate) was_changed: bool,
    /// What happens with a turn that a crash interrupted.
    pub(crate) after_crash: AfterCrash,
    /// Writes of crash recovery that the disk did not take.
    pub(crate) unflushed: UnflushedWrites,
    /// Messages that waited in queues when the daemon was killed.
    pub(crate) waiting: Vec<QueuedRecord>,
    /// Messages that are to wait only when the user says so.
    pub(crate) held_back: Vec<QueuedRecord>,
    /// Whose the session is.
    pub(crate) origin: Origin,
    pub(crate) requests: IdempotencyCache<Reply>,
    pub(crate) tools: ToolChoice,
    pub(crate) modes: (QueueMode, QueueMode),
    /// The mode that it begins in.
    pub(crate) mode: AgentMode,
    /// The session that this one was forked from.
    pub(crate) parent_id: Option<String>,
    /// Whether the session went back to another entry and no run has begun there yet.
    pub(crate) has_moved: bool,
    /// Problems with skills, prompt templates and the like.
    pub(crate) of_resources: Vec<Diagnostic>,
}

/// Who decides whether the project is trusted, where no flag does.
pub(crate) enum TrustSource {
    /// `trust.json` and the settings.
    Files,
    /// The user's extensions are asked first.
    Extensions,
    /// What extensions said.
    Said(ProjectAnswer),
}

impl TrustSource {
    fn answer(&self) -> Option<&ProjectAnswer> {
        match self {
            Self::Said(answer) => Some(answer),
            Self::Files | Self::Extensions => None,
        }
    }
}

/// What comes of preparing a session.
pub(crate) enum Preparation {
    /// It is ready.
    Done(Box<PreparedSession>),
    /// Extensions are to be asked about the project first, and the session is prepared again from its source.
    Asks(Box<TrustPass>, SessionSource),
}

/// Prepares a session. A session that was unloaded is as it was: options about its beginning do not count. A copy that
/// cannot be used leaves no file. Reads files; blocks.
pub(crate) fn prepare(
    services: &Arc<Services>,
    options: &Arc<SessionOptions>,
    source: SessionSource,
    trust_source: &TrustSource,
) -> Result<Preparation, OpenError> {
    let options = match source {
        SessionSource::Unloaded(_) => &Arc::new(options.without_beginning()),
        SessionSource::Options | SessionSource::Copy(_) => options,
    };
    let agent_dir = AgentDir::find(&options.environment, options.compat, &options.cwd)?;
    let loaded =
        looking_once(|| load_settings(&agent_dir, options, source.unloaded(), trust_source.answer()));
    if matches!(trust_source, TrustSource::Extensions)
        && let Some(pass) = TrustPass::of(services, options, &agent_dir, &loaded.trust)
    {
        return Ok(Preparation::Asks(Box::new(pass), source));
    }
    // Apart from the settings: what a crash left is taken back, and files that were looked at may change by that.
    let prepared = looking_once(|| prepare_from(services, options, source, (agent_dir, loaded)))?;
    Ok(Preparation::Done(Box::new(prepared)))
}

/// Takes back the changes of several files that a killed daemon left half made, and tells the user. Blocks.
fn taken_back(
    session: &OpenSession,
    agent_dir: &AgentDir,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<TakenBack> {
    let Some(file) = session.writer.path() else { return Vec::new() };
    let journals = ChangeJournals::of_session(&agent_dir.run_dir(), session.tree.header().id());
    let mut tell = |text: String, hint: &str| {
        diagnostics.push(Diagnostic::warning(DiagnosticKind::Session, text).hint(hint).at(file));
    };
    let taken = journals.take_back().unwrap_or_else(|error| {
        tell(
            format!("a change of several files that a crash interrupted could not be taken back: {error}"),
            "see that the folder run/changes of the agent directory can be read and written; it is tried again when the session is opened",
        );
        Vec::new()
    });
    for TakenBack { tool, files, left, .. } in &taken {
        let what = format!("a change by {tool} was interrupted by a crash of the daemon");
        if left.is_empty() {
            tell(
                format!("{what}: the {files} files that it had changed are as before"),
                "nothing is to be done",
            );
        } else {
            tell(
                format!("{what}: {files} files are as before again, these are not: {}", left.join("; ")),
                "look at these files; remove the folder with the old contents when it is not needed",
            );
        }
    }
    taken
}

fn prepare_from(
    services: &Arc<Services>,
    options: &Arc<SessionOptions>,
    source: SessionSource,
    (agent_dir, loaded): (AgentDir, LoadedSettings),
) -> Result<PreparedSession, OpenError> {
    let LoadedSettings { settings, folders, trust, resources, mut diagnostics, guard_rails_fault } = loaded;
    if let Some(fault) = guard_rails_fault {
        return Err(PermissionFault::Setting(fault).into());
    }
    if options.initial_mode == InitialMode::Plan
        && settings.plan.as_ref().is_some_and(|it| it.enabled == Some(false))
    {
        return Err(OpenError::PlanModeOff);
    }
    diagnostics.extend(note_first_sight(&agent_dir, &trust));

    let files = SessionFiles {
        agent_dir: &agent_dir,
        settings: &settings,
        epoch: &services.epoch,
        session_bytes: services.limits.intake.session_bytes,
    };
    let OpenedFile { mut session, unloaded, unfinished_copy, has_past, was_changed, tools, mode } =
        open_file(source, options, &files, &mut diagnostics)?;
    let cwd = working_directory(&session, options)?;
    let (origin, claims) = match session.writer.path() {
        Some(file) => origin(file, [&options.cwd, &cwd], &agent_dir, options),
        None => (Origin::User, None),
    };
    let taken_back = taken_back(&session, &agent_dir, &mut diagnostics);
    let recovered =
        recover(&mut session, &taken_back, settings.crash_recovery.unwrap_or_default(), origin, claims);
    diagnostics.extend(recovered.diagnostics);

    let models_stamp = ModelsStamp::of(&agent_dir);
    let models = services.models.load(&agent_dir);
    diagnostics.extend(models.diagnostics().cloned());
    let auth = Auth::load(AuthSources {
        agent_dir: agent_dir.clone(),
        environment: options.environment.clone(),
        registry: Arc::clone(&models),
        services: services.auth_services.clone(),
    });
    diagnostics.extend(auth.load_error().map(|text| Diagnostic::warning(DiagnosticKind::Credentials, text)));

    let moved = unloaded.as_ref().and_then(|unloaded| unloaded.moved.clone());
    let has_moved = moved.is_some();
    let restored = has_past.then(|| moved.unwrap_or_else(|| restored_choice(&session)));
    let found_at = diagnostics.len();

    // A file of others would allow itself what it likes.
    let answers = if origin == Origin::User { session_rules(&session.tree) } else { Vec::new() };
    let permissions = PermissionSources {
        settings: settings.permissions.as_ref(),
        options: &options.permissions,
        project: trust.trusted.then_some(&folders),
        cwd: &cwd,
        folders: &options.additional_directories,
        is_elsewhere: options.ssh.is_some(),
        environment: &options.environment,
        agent_dir: &agent_dir,
    }
    .gate(unloaded.as_ref().and_then(|unloaded| unloaded.permissions.as_deref().cloned()), answers)?;
    let sandbox = SandboxSources {
        settings: settings.sandbox.as_ref(),
        options: &options.sandbox,
        cwd: &cwd,
        folders: &options.additional_directories,
        is_elsewhere: options.ssh.is_some(),
        environment: &options.environment,
        agent_dir: &agent_dir,
        support: &services.sandbox_support,
    }
    .open()?
    .map(Arc::new);
    let modes = (settings.steering_mode.unwrap_or_default(), settings.follow_up_mode.unwrap_or_default());
    let parent_id = parent_id(&session);
    let processes = services.launcher.group();
    let parent_permissions = options.subagent.as_deref().map(|own| Arc::clone(&own.parent.permissions));
    let parent_budget = options.subagent.as_deref().map(|own| Arc::clone(&own.parent.budget));
    let budget = SessionBudget::new(
        settings.budgets.as_ref(),
        options.budget,
        agent_dir.path(),
        &session.tree,
        parent_budget,
    );
    let facts = SessionFacts {
        id: session.tree.header().id().to_owned(),
        cwd: cwd.clone(),
        agent_dir: agent_dir.path().to_owned(),
    };
    let undo = open_undo(services, options, &settings, facts, &mut diagnostics);
    // A file that came since the project was found to have nothing to trust counts from the next opening.
    let is_trusted = trust.trusted && trust.basis != TrustBasis::NothingToTrust;
    let sources = McpSources {
        services,
        options,
        agent_dir: &agent_dir,
        cwd: &cwd,
        discovery: settings.discovery.as_ref(),
        trusted: is_trusted.then_some(&folders),
    };
    let mcp_config = mcp_config(&sources, &mut diagnostics);
    let hook_set = load_hooks(
        &HookPlace {
            agent_dir: &agent_dir,
            environment: &options.environment,
            cwd: &options.cwd,
            folders: &folders,
            trusted: is_trusted.then_some(&trust.files),
            settings: &settings,
        },
        &mut diagnostics,
    );
    let observer = services.observers.as_ref().map(|observers| observers.session(session.tree.header().id()));
    let observer: Option<Arc<dyn SessionObserver>> = match &options.subagent {
        Some(own) => Some(Arc::new(ChildObserver::new(Arc::clone(&own.state), observer))),
        None => observer,
    };
    let subagents =
        Subagents::new(Arc::clone(options), services.subagent_slots.clone(), session.writer.path());
    let host_urls = HostUrlsLink::default();
    let shell_session = ShellSession::default();
    let permissions = permissions
        .with_sandbox(sandbox.is_some())
        .with_host_urls(host_urls.clone())
        .with_shell_session(shell_session.clone());
    let permissions = Arc::new(permissions.under(parent_permissions));
    let plans =
        SessionPlans::new(session.tree.header().id(), Arc::clone(&permissions), Arc::clone(&services.watch));
    let background =
        BackgroundProcesses::new(processes.clone(), last_background_number(&session, &settings, options));
    let kernels = SessionKernels::new(services.kernels.clone(), processes.clone());
    let carried_over = CarriedOver {
        services: Arc::clone(services),
        session_id: session.tree.header().id().to_owned(),
        session_file: session.writer.path().map(Path::to_owned),
        agent_dir,
        background: background.clone(),
        processes,
        models,
        models_stamp,
        auth,
        key_provider: None,
        cwd,
        budget,
        observer,
        permissions,
        sandbox,
        mcp: None,
        mcp_config: Some(mcp_config),
        hooks: None,
        hook_set: Some(hook_set),
        todos: TodoList::default(),
        current_model: CurrentModel::default(),
        user: SessionUser::default(),
        job_news: JobNews::default(),
        jobs: SessionJobs::new(background, subagents.clone()),
        subagents,
        host_urls,
        eval_executors: EvalExecutorsLink::default(),
        own_files: own_files(session.writer.path(), &options.environment),
        stream_rules: SessionRules::default(),
        plans,
        kernels,
        shell_session,
        cell_calls: CellCalls::default(),
        nested: NestedBook::default(),
        extensions: None,
        undo,
    };
    let trusted = trust.trusted;
    let trust_is_open = is_open(&trust);
    let (project, trusted_files) = project(folders, trust, resources);
    let context = build_context(carried_over, options, settings, project, diagnostics);
    context.fallbacks.choose(unloaded.as_ref().and_then(|unloaded| unloaded.fallback_models.clone()));
    // A session that comes back has reported them before.
    let of_resources = if unloaded.is_none() { context.resource_diagnostics() } else { Vec::new() };
    Ok(PreparedSession {
        context,
        trust_is_open,
        trusted_files,
        requests: IdempotencyCache::of(&session.tree),
        unbegun: UnbegunSession {
            session,
            restored,
            trusted,
            key_provider: unloaded.and_then(|unloaded| unloaded.key_provider.map(String::from)),
            unfinished_copy,
            found_at,
        },
        tools,
        was_changed,
        intent_log: SessionIntentLog::of(recovered.intent_log),
        after_crash: recovered.next,
        unflushed: UnflushedWrites::of_recovery(recovered.is_due),
        waiting: recovered.waiting,
        held_back: recovered.held_back,
        origin,
        modes,
        mode,
        parent_id,
        has_moved,
        of_resources,
    })
}

/// Loads the settings. Trust that was given to a session before it was unloaded, or by extensions, counts for the same files.
fn load_settings(
    agent_dir: &AgentDir,
    options: &SessionOptions,
    unloaded: Option<&Unloaded>,
    said: Option<&ProjectAnswer>,
) -> LoadedSettings {
    let of_session = unloaded.and_then(|unloaded| unloaded.trusted_files.as_deref());
    let approve = options.approve.or(unloaded.and_then(|unloaded| unloaded.trusted.then_some(true)));
    let (approve, given) = match said.and_then(|said| Some((said.trusted?, &said.files))) {
        Some((trusted, files)) if approve.is_none() => (Some(trusted), Some(files)),
        _ => (approve, of_session),
    };
    let loaded = load_as_given(agent_dir, &options.cwd, &options.environment, approve, given);
    with_overrides(loaded, options)
}

/// The settings with those that an extension says which has opened the session.
pub(super) fn with_overrides(loaded: LoadedSettings, options: &SessionOptions) -> LoadedSettings {
    match options.subagent.as_ref().and_then(|own| own.of_extension.as_ref()) {
        Some(part) => LoadedSettings { settings: part.over(loaded.settings), ..loaded },
        None => loaded,
    }
}

/// The id of the session that this one was forked from.
fn parent_id(session: &OpenSession) -> Option<String> {
    let parent = session.tree.info().parent_session.as_deref().map(Path::new);
    let header = parent.and_then(|path| read_header(path).ok().flatten());
    header.map(|header| header.id().to_owned())
}

/// The number of the last background process in the transcript; 0 where none can be started.
fn last_background_number(session: &OpenSession, settings: &Settings, options: &SessionOptions) -> u64 {
    let is_on = settings.bash.as_ref().is_some_and(|bash| bash.background == Some(true));
    let of_results = if is_on { last_background(session) } else { 0 };
    let has_jobs = is_on || async_is_on(settings, options.async_jobs);
    if has_jobs { of_results.max(last_number(&session.tree)) } else { 0 }
}

/// Whether the user has yet to be asked whether the project is trusted.
fn is_open(trust: &TrustDecision) -> bool {
    matches!(trust.basis, TrustBasis::Unasked | TrustBasis::Changed(_) | TrustBasis::Replaced(_))
        && trust.warning.is_none()
}

/// The project as the session uses it, and its trusted files.
fn project(
    folders: ProjectFolders,
    trust: TrustDecision,
    resources: ResourceLists,
) -> (Project, Option<StartingFiles>) {
    let (changed, trusted_files) = (changed_files(&trust), trusted_files(&trust));
    let trusted = trusted_files.clone().map(Arc::new);
    (Project { folders, is_untrusted: !trust.trusted, trusted, changed, resources }, trusted_files)
}

/// The project's files that trust is for, where it is trusted. Files that a project without any gets later are checked when the session is
/// opened the next time.
pub(super) fn trusted_files(trust: &TrustDecision) -> Option<StartingFiles> {
    let is_trusted = trust.trusted && trust.basis != TrustBasis::NothingToTrust;
    is_trusted.then(|| trust.files.clone())
}

/// Changes of the project since it was trusted: files, or its folder itself.
pub(super) fn changed_files(trust: &TrustDecision) -> Vec<PathBuf> {
    match &trust.basis {
        TrustBasis::Changed(files) => files.clone(),
        TrustBasis::Replaced(folder) => vec![folder.clone()],
        _ => Vec::new(),
    }
}

/// Notes the files of a project that is trusted without them.
fn note_first_sight(agent_dir: &AgentDir, trust: &TrustDecision) -> Option<Diagnostic> {
    if trust.first_sight.is_empty() {
        return None;
    }
    let seen = trust.first_sight.iter().map(|(folder, files)| (folder.as_path(), Some(files)));
    let error = note_trusted_files(agent_dir, seen).err()?;
    let text = format!("which files of the project are trusted could not be noted: {error}");
    let hint = "until they are, changes of them are not noticed";
    Some(Diagnostic::warning(DiagnosticKind::Trust, text).at(agent_dir.trusted_files_file()).hint(hint))
}

/// The folder of the session's own files: beside its long outputs, if it has a file.
fn own_files(file: Option<&Path>, environment: &Environment) -> SessionFolder {
    match file {
        Some(file) => SessionFolder::at(ArtifactFolder::beside(file).own_files()),
        None => SessionFolder::temporary(temp_dir(environment)),
    }
}
