//! Everything of a session before its actor runs.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use agentd_agent::Tool;
use agentd_ai::{CacheRetention, HttpRetries, ThinkingBudgets};
use agentd_auth::{Auth, AuthSources, scrub_diagnostic};
use agentd_config::{
    AgentDir, ProjectFolders, TrustBasis,
    models::{
        ModelRegistry, Offer, RestoredChoice, Scope, ScopedModel, Startup, StartupRequest, choose_startup,
        resolve_fallbacks, resolve_scope,
    },
    resolve_path,
    resources::ResourceLists,
    settings::{LoadedSettings, http_idle_timeout, load},
    temp_dir,
};
use agentd_process::{ArtifactFolder, Background, Limits, OutputPlace, ProcessGroup};
use agentd_protocol::{
    entry::EntryBody,
    model::ThinkingLevel,
    resources::{Diagnostic, DiagnosticKind},
    session::QueueMode,
    settings::{ProcessSettings, Settings},
};
use agentd_store::{Context, NewEntry, OpenSession, StoreError, network_warning, read_header};

use super::{
    Beginning, OpenError,
    network::{deadlines, network},
    oddities,
    target::{Files, adopt, open_session, reopen, working_directory},
};
use crate::{
    SessionOptions, ToolSelection,
    background::last_background,
    child_environment::{ChildSources, child_environment},
    choice::{Choice, Chooser},
    clock::now_ms,
    crash_ledger::CrashLedger,
    fallback::FallbackChain,
    journal::Journal,
    options::default_tools,
    recovery::{AfterCrash, recover},
    reply::Reply,
    requests::Ledger,
    run::RetryPolicy,
    shared::{PromptSources, Services, Shared, ToolContext, Toolbox},
    tools::{OwnTools, ToolChoice, choice_entry, chosen_on},
};

/// How long streamed text may be missing from the crash ledger.
const CRASH_FLUSH: Duration = Duration::from_secs(1);

/// A session that lacks only its actor.
pub(super) struct Prepared {
    pub(super) shared: Shared,
    /// Whether someone would have to be asked if the project's own settings are to count.
    pub(super) trust_is_open: bool,
    pub(super) journal: Journal,
    /// What becomes of a turn that a crash interrupted.
    pub(super) after_crash: AfterCrash,
    pub(super) requests: Ledger<Reply>,
    pub(super) tools: ToolChoice,
    pub(super) chooser: Chooser,
    pub(super) modes: (QueueMode, QueueMode),
    /// The session that this one was forked from.
    pub(super) parent_id: Option<String>,
    /// Whether it went back to another entry and no run has begun there yet.
    pub(super) has_moved: bool,
    /// What is wrong with skills, prompt templates and the like.
    pub(super) of_resources: Vec<Diagnostic>,
}

/// Reads files; blocks. A session that comes back is as it was: what the options say of its beginning does not count. A
/// copy that cannot be used leaves no file.
pub(super) fn prepare(
    services: &Arc<Services>,
    options: &SessionOptions,
    beginning: Beginning,
) -> Result<Prepared, OpenError> {
    let mut copy_file = None;
    let prepared = prepare_from(services, options, beginning, &mut copy_file);
    if prepared.is_err()
        && let Some(file) = copy_file
        && let Err(error) = ArtifactFolder::beside(&file).remove().and_then(|()| std::fs::remove_file(&file))
    {
        tracing::warn!(%error, path = %file.display(), "cannot remove a copy that is of no use");
    }
    prepared
}

fn prepare_from(
    services: &Arc<Services>,
    options: &SessionOptions,
    beginning: Beginning,
    copy_file: &mut Option<PathBuf>,
) -> Result<Prepared, OpenError> {
    let (rested, copied) = match beginning {
        Beginning::Options => (None, None),
        Beginning::Rested(rested) => (Some(rested), None),
        Beginning::Copy(copied) => (None, Some(copied)),
    };
    let (rested, of_copy) = (rested.as_ref(), copied.as_ref().map(|copied| copied.tools.clone()));
    let as_it_was = rested.map(|_| options.without_beginning());
    let options = as_it_was.as_ref().unwrap_or(options);

    let agent_dir = AgentDir::find(&options.environment, options.compat, &options.cwd)?;
    let approve = options.approve.or(rested.and_then(|rested| rested.trusted.then_some(true)));
    let LoadedSettings { settings, folders, trust, resources, diagnostics: mut found } =
        load(&agent_dir, &options.cwd, &options.environment, approve);
    let trust_is_open = trust.basis == TrustBasis::Unasked && trust.warning.is_none();
    let files = Files {
        agent_dir: &agent_dir,
        settings: &settings,
        epoch: &services.epoch,
        session_bytes: services.limits.intake.session_bytes,
    };
    let (mut session, has_past) = match (rested, copied) {
        (Some(rested), _) => (reopen(rested, options, &files)?, true),
        (None, Some(copied)) => {
            let session = adopt(copied, &files)?;
            *copy_file = session.writer.path().filter(|_| session.writer.is_on_disk()).map(Path::to_owned);
            let has_past = !session.tree.entries().is_empty();
            (session, has_past)
        }
        (None, None) => open_session(options, &files)?,
    };
    found.extend(oddities::of_file(&session.report, session.writer.path()));
    found.extend(session.writer.path().and_then(Path::parent).and_then(|folder| {
        let text = network_warning(folder)?;
        Some(Diagnostic::warning(DiagnosticKind::Session, text).at(folder))
    }));
    let cwd = working_directory(&session, options)?;
    let recovered = recover(&mut session, settings.crash_recovery.unwrap_or_default());
    found.extend(recovered.diagnostics);

    let models = services.models.load(&agent_dir);
    found.extend(models.diagnostics().cloned());
    let auth = Auth::load(AuthSources {
        agent_dir: agent_dir.clone(),
        environment: options.environment.clone(),
        registry: Arc::clone(&models),
        services: services.auth_services.clone(),
    });
    found.extend(auth.load_error().map(|text| Diagnostic::warning(DiagnosticKind::Credentials, text)));
    let moved = rested.and_then(|rested| rested.moved.clone());
    let has_moved = moved.is_some();
    let restored = has_past.then(|| moved.unwrap_or_else(|| restored_choice(&session)));
    let sources = ChoiceSources { services, models: &models, auth: &auth, settings: &settings };
    let Chosen { choice, level_is_asked, scope } = sources.choose(options, restored.as_ref(), &mut found)?;
    let key_provider = options.api_key.as_ref().map(|key| {
        let before = rested.and_then(|rested| rested.key_provider.as_deref());
        let provider = before.unwrap_or(&choice.model.provider).to_owned();
        auth.set_override(provider.clone(), key.clone());
        provider
    });
    let on_branch = chosen_on(&session.tree);
    // What was chosen in a session goes on with it. A file is opened as flags have it, where there are any.
    let tools = match (rested, &of_copy) {
        (Some(rested), _) => rested.tools.clone(),
        (None, Some(of_original)) => of_original.clone(),
        (None, None) if options.tools == ToolSelection::default() => on_branch.clone(),
        (None, None) => None,
    };
    if of_copy.is_some() && tools != on_branch {
        append(&mut session, NewEntry::from_body(&choice_entry(tools.as_deref()))?)?;
    }
    record_start(&mut session, &choice, level_is_asked, options.name.as_deref(), restored.as_ref())?;

    let parent = session.tree.info().parent_session.as_deref().map(Path::new);
    let parent_id = parent.and_then(|path| read_header(path).ok().flatten()).map(|it| it.id().to_owned());
    let modes = (settings.steering_mode.unwrap_or_default(), settings.follow_up_mode.unwrap_or_default());
    let processes = services.launcher.group();
    let has_background = settings.bash.as_ref().is_some_and(|bash| bash.background == Some(true));
    let last = if has_background { last_background(&session) } else { 0 };
    let lasting = Lasting {
        services: Arc::clone(services),
        session_id: session.tree.header().id().to_owned(),
        session_file: session.writer.path().map(Path::to_owned),
        agent_dir,
        background: Background::new(processes.clone(), last),
        processes,
        models,
        auth,
        key_provider,
        cwd,
    };
    let project = Project { folders, trusted: trust.trusted, resources };
    let shared = configured(lasting, options, (settings, project), found);
    shared.fallbacks.choose(rested.and_then(|rested| rested.fallback_models.clone()));
    // What comes back has told it before.
    let of_resources = if rested.is_none() { shared.resource_diagnostics() } else { Vec::new() };
    Ok(Prepared {
        shared,
        trust_is_open,
        requests: Ledger::of(&session.tree),
        tools,
        journal: Journal::new(session, CrashLedger::of(recovered.ledger)),
        after_crash: recovered.next,
        chooser: Chooser::new(choice, scope),
        modes,
        parent_id,
        has_moved,
        of_resources,
    })
}

/// What a session keeps when its settings are read anew.
struct Lasting {
    services: Arc<Services>,
    session_id: String,
    session_file: Option<PathBuf>,
    agent_dir: AgentDir,
    processes: ProcessGroup,
    background: Background,
    models: Arc<ModelRegistry>,
    auth: Auth,
    key_provider: Option<String>,
    cwd: PathBuf,
}

/// What a session has of its project, and of lists of resources.
struct Project {
    folders: ProjectFolders,
    trusted: bool,
    resources: ResourceLists,
}

/// A session's surroundings, as its options and settings have them.
fn configured(
    lasting: Lasting,
    options: &SessionOptions,
    (settings, project): (Settings, Project),
    mut found: Vec<Diagnostic>,
) -> Shared {
    let Lasting {
        services,
        session_id,
        session_file,
        agent_dir,
        processes,
        background,
        models,
        auth,
        key_provider,
        cwd,
    } = lasting;
    let child_environment = services.child_environments.share(child_environment(&ChildSources {
        environment: &options.environment,
        keys: &auth.key_variables(),
        settings: settings.child_environment.as_ref(),
        agent_dir: agent_dir.path(),
        compat: options.compat,
    }));
    let artifacts = session_file.as_deref().map(ArtifactFolder::beside);
    let outputs = match &artifacts {
        Some(folder) => OutputPlace::from(folder.clone()),
        None => OutputPlace::from(&*temp_dir(&options.environment)),
    };
    let outputs = outputs.limited(services.limits.output_bytes, services.outputs.clone());
    let temp_dir = temp_dir(&options.environment);
    let shell_path =
        settings.shell_path.as_deref().map(|path| resolve_path(path, &cwd, &options.environment));
    processes.set_limits(process_limits(settings.processes.unwrap_or_default()));
    let defaults = default_tools(settings.default_tools.as_deref());
    let mut selection = options.tools.clone();
    selection.exclude.extend(settings.exclude_tools.iter().flatten().cloned());
    let is_active: Arc<dyn Fn(&str) -> bool + Send + Sync> = {
        let (selection, defaults) = (selection.clone(), defaults.clone());
        Arc::new(move |name| selection.is_active(name, &defaults))
    };
    let Toolbox { tools, shell } = (services.tools)(ToolContext {
        processes: processes.clone(),
        ssh: options.ssh.clone().map(|target| (target, services.launcher.group())),
        shell_path,
        shell_command_prefix: settings.shell_command_prefix.clone(),
        environment: child_environment,
        temp_dir,
        outputs: outputs.clone(),
        artifacts: artifacts.clone(),
        bash: settings.bash.clone(),
        background: background.clone(),
        is_active,
        home: PathBuf::from(options.environment.non_empty("HOME").unwrap_or("/")),
    });
    found.extend(unknown_tools(&options.tools, &tools));
    let network = network(&settings, &options.environment, agent_dir.path());
    let fallbacks = FallbackChain::new(
        options.fallback_models.as_deref().or(settings.fallback_models.as_deref()).unwrap_or_default(),
    );
    let resizes = settings.images.as_ref().and_then(|images| images.auto_resize).unwrap_or(true);
    let images = services.images.resizing(resizes);
    Shared {
        services,
        session_id,
        session_file,
        agent_dir,
        environment: options.environment.clone(),
        outputs,
        artifacts,
        processes,
        background,
        tools: OwnTools::new(tools, selection, &defaults),
        shell,
        is_elsewhere: options.ssh.is_some(),
        shell_prefix: settings.shell_command_prefix.clone(),
        models,
        auth,
        key_provider,
        prompt: PromptSources {
            system: options.system_prompt.clone(),
            appended: options.append_system_prompt.clone(),
            context_files: !options.no_context_files,
            folders: project.folders,
            trusted: project.trusted,
            lists: project.resources,
            flags: options.resources.clone(),
        },
        idle_timeout: http_idle_timeout(&settings),
        deadlines: deadlines(&settings),
        network: Arc::new(network),
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
        auto_compaction: settings.compaction.as_ref().and_then(|of| of.enabled).unwrap_or(true).into(),
        cwd,
        settings,
        diagnostics: found.into_iter().map(scrub_diagnostic).collect(),
    }
}

/// A session's surroundings after a change of what its settings say.
pub(crate) struct Reconfigured {
    pub(crate) shared: Shared,
    /// What is wrong with skills, prompt templates and the like.
    pub(crate) of_resources: Vec<Diagnostic>,
    pub(crate) scope: Vec<ScopedModel>,
    pub(crate) modes: (QueueMode, QueueMode),
    /// What a new session would begin with.
    pub(crate) beginning: Choice,
}

/// Reads a session's settings anew, those of its project included. Reads files; blocks.
pub(crate) fn reconfigure(shared: &Shared, options: &SessionOptions) -> Result<Reconfigured, OpenError> {
    let LoadedSettings { settings, folders, trust, resources, diagnostics: mut found } =
        load(&shared.agent_dir, &options.cwd, &options.environment, Some(true));
    let (services, models, auth) = (&shared.services, &shared.models, &shared.auth);
    let sources = ChoiceSources { services, models, auth, settings: &settings };
    let Chosen { choice: beginning, scope, .. } = sources.choose(options, None, &mut found)?;
    let modes = (settings.steering_mode.unwrap_or_default(), settings.follow_up_mode.unwrap_or_default());
    let lasting = Lasting {
        services: Arc::clone(services),
        session_id: shared.session_id.clone(),
        session_file: shared.session_file.clone(),
        agent_dir: shared.agent_dir.clone(),
        processes: shared.processes.clone(),
        background: shared.background.clone(),
        models: Arc::clone(models),
        auth: auth.clone(),
        key_provider: shared.key_provider.clone(),
        cwd: shared.cwd.clone(),
    };
    let project = Project { folders, trusted: trust.trusted, resources };
    let chosen_fallbacks = shared.fallbacks.chosen();
    let shared = configured(lasting, options, (settings, project), found);
    shared.fallbacks.choose(chosen_fallbacks);
    let of_resources = shared.resource_diagnostics();
    Ok(Reconfigured { shared, of_resources, scope, modes, beginning })
}

/// What the first choice of model and level depends on, besides the options.
struct ChoiceSources<'a> {
    services: &'a Services,
    models: &'a ModelRegistry,
    auth: &'a Auth,
    settings: &'a Settings,
}

/// The first choice.
struct Chosen {
    choice: Choice,
    /// Whether the options ask for a level.
    level_is_asked: bool,
    /// The models to go through.
    scope: Vec<ScopedModel>,
}

impl ChoiceSources<'_> {
    fn choose(
        &self,
        options: &SessionOptions,
        restored: Option<&RestoredChoice>,
        found: &mut Vec<Diagnostic>,
    ) -> Result<Chosen, OpenError> {
        let Self { services, models, auth, settings } = *self;
        let apis: Vec<&str> = services.providers.apis().collect();
        let has_auth = |provider: &str| services.has_auth(auth, provider);
        let offer = Offer { registry: models, apis: &apis, has_auth: &has_auth };
        let patterns = options.models.as_deref().or(settings.enabled_models.as_deref()).unwrap_or_default();
        let Scope { models: scope, warnings: of_scope } = resolve_scope(&offer, patterns);
        let of_models = |text| Diagnostic::warning(DiagnosticKind::Models, text);
        found.extend(of_scope.into_iter().map(of_models));
        let names = options.fallback_models.as_deref().or(settings.fallback_models.as_deref());
        let Scope { warnings: of_fallbacks, .. } = resolve_fallbacks(&offer, names.unwrap_or_default());
        found.extend(of_fallbacks.into_iter().map(of_models));
        let request = StartupRequest {
            provider: options.provider.as_deref(),
            model: options.model.as_deref(),
            thinking: options.thinking,
            scope: &scope,
            session: restored,
            settings,
        };
        let Startup { model, level, level_is_asked, warnings: of_choice } = choose_startup(&offer, &request)
            .map_err(|error| OpenError::Model {
                error,
                load_error: models.load_error().map(str::to_owned),
            })?;
        found.extend(of_choice.into_iter().map(of_models));
        Ok(Chosen { choice: Choice { model, level }, level_is_asked, scope })
    }
}

/// One for each name in `--tools` and `--exclude-tools` that no tool has.
fn unknown_tools(selection: &ToolSelection, tools: &[Arc<dyn Tool>]) -> Vec<Diagnostic> {
    let names: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
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

/// The model and level that an existing session was last used with.
fn restored_choice(session: &OpenSession) -> RestoredChoice {
    let context = Context::new(&session.tree);
    RestoredChoice {
        model: context.model().map(|model| (model.provider.clone(), model.model_id.clone())),
        level: context.thinking_level().and_then(ThinkingLevel::from_name),
    }
}

/// Puts on record what a session begins with. An existing one only gets what it lacks.
fn record_start(
    session: &mut OpenSession,
    Choice { model, level }: &Choice,
    level_is_asked: bool,
    name: Option<&str>,
    restored: Option<&RestoredChoice>,
) -> Result<(), StoreError> {
    let has_messages = session.tree.entries().iter().any(|entry| entry.message().is_some());
    let mut entries = Vec::new();
    if let Some(name) = name.map(str::trim).filter(|name| !name.is_empty()) {
        entries.push(NewEntry::session_info(name));
    }
    let level_entry = EntryBody::ThinkingLevelChange { thinking_level: level.as_str().into() };
    match restored {
        None => {
            if !model.is_placeholder() {
                let (provider, model_id) = (model.provider.clone(), model.id.clone());
                entries.push(NewEntry::from_body(&EntryBody::ModelChange { provider, model_id })?);
            }
            entries.push(NewEntry::from_body(&level_entry)?);
        }
        // The model goes on record with the next answer; a level has no other place.
        Some(restored)
            if (restored.level.is_none() && has_messages)
                || (level_is_asked && model.reasoning && restored.level != Some(*level)) =>
        {
            entries.push(NewEntry::from_body(&level_entry)?);
        }
        Some(_) => {}
    }
    entries.into_iter().try_for_each(|entry| append(session, entry))
}

fn append(session: &mut OpenSession, entry: NewEntry) -> Result<(), StoreError> {
    let entry = session.tree.prepare(entry, now_ms());
    session.writer.append(&entry)?;
    session.tree.push(entry);
    Ok(())
}

/// The setting `processes`.
fn process_limits(settings: ProcessSettings) -> Limits {
    /// More than any work needs, and few enough that the machine stays usable.
    const MAX_COUNT: u64 = 2048;
    let ProcessSettings { max_count, max_memory_bytes, max_cpu_seconds, max_output_bytes } = settings;
    Limits {
        processes: Some(max_count.unwrap_or(MAX_COUNT)),
        memory_bytes: max_memory_bytes,
        cpu_seconds: max_cpu_seconds,
        output_bytes: max_output_bytes,
    }
}

/// The setting `retry.provider`.
fn http_retries(settings: &Settings) -> HttpRetries {
    let provider = settings.retry.as_ref().and_then(|retry| retry.provider.as_ref());
    let Some(provider) = provider else { return HttpRetries::default() };
    let default = HttpRetries::default();
    HttpRetries {
        max: provider.max_retries.unwrap_or(default.max),
        max_delay: provider.max_retry_delay_ms.map_or(default.max_delay, Duration::from_millis),
        first_byte_timeout: provider.timeout_ms.filter(|millis| *millis > 0).map(Duration::from_millis),
    }
}

/// The setting `thinkingBudgets`.
fn thinking_budgets(settings: &Settings) -> ThinkingBudgets {
    let default = ThinkingBudgets::default();
    let budgets = settings.thinking_budgets.clone().unwrap_or_default();
    ThinkingBudgets {
        minimal: budgets.minimal.unwrap_or(default.minimal),
        low: budgets.low.unwrap_or(default.low),
        medium: budgets.medium.unwrap_or(default.medium),
        high: budgets.high.unwrap_or(default.high),
    }
}
