//! Making a session: settings, models, keys, the file, the tools; then its actor.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_agent::ToolSet;
use agentd_auth::{Auth, AuthSources};
use agentd_config::{
    AgentDir, NoAgentDir, SessionDir as SessionDirRule,
    models::{
        ModelRegistry, Offer, ReferenceError, RestoredChoice, Scope, Startup, StartupRequest, choose_startup,
        resolve_scope,
    },
    resolve_path, session_dir,
    settings::{LoadedSettings, http_idle_timeout, load},
    temp_dir,
};
use agentd_protocol::{
    entry::EntryBody,
    error::{ErrorCode, Failure},
    model::{Model, ThinkingLevel},
    session::QueueMode,
    settings::Durability as DurabilitySetting,
};
use agentd_store::{
    Durability, Found, NewEntry, NewSession, OpenSession, SessionDir, Store, StoreError, StoreOptions,
    check_session_id, create_dirs, find, find_by_id, looks_like_path, newest,
};
use tokio::{
    sync::mpsc,
    task::{JoinError, JoinSet},
};
use tokio_util::sync::CancellationToken;

use crate::{
    SessionOptions, Target,
    actor::Actor,
    choice::{Choice, Chooser},
    clock::now_ms,
    feed::{DEFAULT_FEED_BYTES, Feed},
    handle::{AbortSwitch, INBOX, SessionHandle},
    journal::{Journal, store_failure},
    options::default_tools,
    queues::SessionQueues,
    run_slot::RunSlot,
    shared::{PromptSources, Services, Shared, Shell, ToolContext, child_environment},
    step::STEPS,
    user_bash::UserBash,
};

/// A session that was opened.
pub struct Opened {
    /// The way in.
    pub handle: SessionHandle,
    /// What to tell the user: a sentence each.
    pub warnings: Vec<String>,
}

/// Why a session could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no home for settings and sessions.
    #[error(transparent)]
    AgentDir(#[from] NoAgentDir),
    /// The session file does not open.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No session has that id.
    #[error("No session found matching '{0}'")]
    NotFound(String),
    /// The session belongs to another working directory.
    #[error(
        "Session '{id}' belongs to another working directory: {cwd}. Start in that directory, or name the file {}.",
        path.display()
    )]
    Elsewhere {
        /// The id, or its beginning.
        id: String,
        /// The directory of the session.
        cwd: String,
        /// The session's file.
        path: PathBuf,
    },
    /// The folder of session files cannot be read.
    #[error("cannot look for sessions in {}: {source}", dir.display())]
    Search {
        /// The folder.
        dir: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The folder that the session works in is gone.
    #[error(
        "Stored session working directory does not exist: {cwd}\nSession file: {}\nCurrent working directory: {}",
        file.display(),
        current.display()
    )]
    NoCwd {
        /// The folder.
        cwd: String,
        /// The session's file.
        file: PathBuf,
        /// Where we are.
        current: PathBuf,
    },
    /// The command line asks for a model that is not there.
    #[error("{error}{}", load_error.as_ref().map(|text| format!("\n{text}")).unwrap_or_default())]
    Model {
        /// Why.
        #[source]
        error: ReferenceError,
        /// What is wrong with models.json, which may be the reason.
        load_error: Option<String>,
    },
    /// The daemon is ending.
    #[error("the daemon is ending")]
    Ending(#[from] JoinError),
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let code = match &error {
            OpenError::Store(error) => return store_failure(error),
            OpenError::NotFound(_) | OpenError::Elsewhere { .. } => ErrorCode::SessionNotFound,
            OpenError::Model { .. } => ErrorCode::NoModel,
            OpenError::AgentDir(_) | OpenError::NoCwd { .. } | OpenError::Search { .. } => ErrorCode::Io,
            OpenError::Ending(_) => ErrorCode::ShuttingDown,
        };
        Self::new(code, error.to_string())
    }
}

/// Opens a session and starts its actor.
///
/// # Errors
/// [`OpenError`]; nothing was written then, but for folders that were missing.
pub async fn open(services: Arc<Services>, options: SessionOptions) -> Result<Opened, OpenError> {
    let prepared = tokio::task::spawn_blocking(move || prepare(&services, &options)).await??;
    let Prepared { shared, session, chooser, modes, warnings } = prepared;
    let journal = Journal::new(session);
    let feed = Feed::new(DEFAULT_FEED_BYTES);
    let (inbox, commands) = mpsc::channel(INBOX);
    let (steps, taken) = mpsc::channel(STEPS);
    let (abort, closing) = (AbortSwitch::default(), CancellationToken::new());
    let handle = SessionHandle {
        id: shared.session_id.as_str().into(),
        feed: feed.clone(),
        inbox,
        abort: abort.clone(),
        closing: closing.clone(),
    };
    let actor = Actor {
        shared: Arc::new(shared),
        feed,
        journal,
        queues: SessionQueues::new(modes.0, modes.1),
        chooser,
        run: RunSlot::default(),
        user_bash: UserBash::default(),
        abort,
        steps,
        tasks: JoinSet::new(),
        idle_waiters: Vec::new(),
        closing: false,
    };
    // The actor ends when it is closed or when the last handle is gone; its handle is how others wait for that.
    tokio::spawn(actor.run(commands, taken, closing));
    Ok(Opened { handle, warnings })
}

/// Everything of a session before its actor runs.
struct Prepared {
    shared: Shared,
    session: OpenSession,
    chooser: Chooser,
    modes: (QueueMode, QueueMode),
    warnings: Vec<String>,
}

/// Reads files; blocks.
fn prepare(services: &Arc<Services>, options: &SessionOptions) -> Result<Prepared, OpenError> {
    let agent_dir = AgentDir::find(&options.environment, options.compat, &options.cwd)?;
    let LoadedSettings { settings, folders, trust, mut warnings } =
        load(&agent_dir, &options.cwd, &options.environment, options.approve);
    let (session, existing) = open_session(options, &agent_dir, &settings)?;
    warnings.extend(session.report.warning());
    let cwd = working_directory(&session, options)?;

    let models = Arc::new(ModelRegistry::load(&agent_dir.models_file()));
    warnings.extend(models.load_error().map(str::to_owned));
    let auth = Auth::load(AuthSources {
        agent_dir: agent_dir.clone(),
        environment: options.environment.clone(),
        registry: Arc::clone(&models),
        commands: services.key_commands.clone(),
    });
    warnings.extend(auth.load_error());
    let mut session = session;
    let apis: Vec<&str> = services.providers.apis().collect();
    let has_auth = |provider: &str| auth.is_configured(provider);
    let offer = Offer { registry: &models, apis: &apis, has_auth: &has_auth };
    let patterns = options.models.as_deref().or(settings.enabled_models.as_deref()).unwrap_or_default();
    let Scope { models: scope, warnings: of_scope } = resolve_scope(&offer, patterns);
    warnings.extend(of_scope);
    let restored = existing.then(|| restored_choice(&session));
    let request = StartupRequest {
        provider: options.provider.as_deref(),
        model: options.model.as_deref(),
        thinking: options.thinking,
        scope: &scope,
        session: restored.as_ref(),
        settings: &settings,
    };
    let Startup { model, level, warnings: of_choice } = choose_startup(&offer, &request)
        .map_err(|error| OpenError::Model { error, load_error: models.load_error().map(str::to_owned) })?;
    warnings.extend(of_choice);
    if let Some(key) = &options.api_key {
        auth.set_override(model.provider.clone(), key.clone());
    }
    record_start(&mut session, &model, level, options.name.as_deref(), restored.as_ref())?;

    let processes = services.launcher.group();
    let child_environment = child_environment(&options.environment, agent_dir.path(), options.compat);
    let temp_dir = temp_dir(&options.environment);
    let shell_path =
        settings.shell_path.as_deref().map(|path| resolve_path(path, &cwd, &options.environment));
    let defaults = default_tools(settings.default_tools.as_deref());
    let tools = (services.tools)(ToolContext {
        processes: processes.clone(),
        shell_path: shell_path.clone(),
        shell_command_prefix: settings.shell_command_prefix.clone(),
        environment: child_environment.clone(),
        temp_dir: temp_dir.clone(),
        home: PathBuf::from(options.environment.non_empty("HOME").unwrap_or("/")),
    });
    let active = tools.into_iter().filter(|tool| options.tools.is_active(&tool.spec().name, &defaults));
    let modes = (settings.steering_mode.unwrap_or_default(), settings.follow_up_mode.unwrap_or_default());
    let shared = Shared {
        services: Arc::clone(services),
        session_id: session.tree.header().id().to_owned(),
        session_file: session.writer.path().map(Path::to_owned),
        agent_dir,
        environment: options.environment.clone(),
        child_environment,
        temp_dir,
        processes,
        tools: Arc::new(ToolSet::new(active)),
        shell: Shell { path: shell_path, prefix: settings.shell_command_prefix.clone() },
        models,
        auth,
        prompt: PromptSources {
            system: options.system_prompt.clone(),
            appended: options.append_system_prompt.clone(),
            context_files: !options.no_context_files,
            folders,
            trusted: trust.trusted,
        },
        idle_timeout: http_idle_timeout(&settings),
        block_images: settings.images.as_ref().and_then(|images| images.block_images).unwrap_or(false),
        auto_compaction: settings.compaction.as_ref().and_then(|of| of.enabled).unwrap_or(true),
        cwd,
        settings,
    };
    Ok(Prepared { shared, session, chooser: Chooser::new(Choice { model, level }, scope), modes, warnings })
}

/// The session that the options ask for, and whether it has a past.
fn open_session(
    options: &SessionOptions,
    agent_dir: &AgentDir,
    settings: &agentd_protocol::settings::Settings,
) -> Result<(OpenSession, bool), OpenError> {
    let store = Store::new(StoreOptions {
        durability: match settings.durability.unwrap_or_default() {
            DurabilitySetting::Os => Durability::Os,
            DurabilitySetting::Fsync => Durability::Fsync,
        },
        run_dir: Some(agent_dir.run_dir()),
        ..StoreOptions::default()
    });
    let cwd = options.cwd.display().to_string();
    let new =
        |id: Option<&str>| NewSession { id: id.map(str::to_owned), ..NewSession::new(cwd.clone(), now_ms()) };
    if let Target::Ephemeral(id) = &options.target {
        return Ok((store.in_memory(new(id.as_deref()))?, false));
    }
    let root = agent_dir.sessions_dir();
    let rule = session_dir(
        options.session_dir.as_deref(),
        &options.environment,
        settings.session_dir.as_deref(),
        agent_dir,
        &options.cwd,
    );
    let dir = match rule {
        SessionDirRule::PerCwd(root) => SessionDir::of_cwd(&root, &options.cwd),
        SessionDirRule::Exact(path) => SessionDir::custom(path, &root, &options.cwd),
    };
    create_dirs(&dir.path)?;
    let existing = match &options.target {
        Target::New | Target::Child(_) | Target::Ephemeral(_) => None,
        Target::Continue => newest(&dir, &cwd).map_err(unsearchable(&dir))?,
        Target::Existing(text) => Some(existing_file(text, options, &dir, &root)?),
        Target::Id(id) => {
            check_session_id(id)?;
            find_by_id(id, &dir, &cwd).map_err(unsearchable(&dir))?
        }
    };
    if let Some(path) = existing {
        let session = store.open(&path, new(None))?;
        let has_past = !session.tree.entries().is_empty();
        return Ok((session, has_past));
    }
    let made = match &options.target {
        Target::Child(parent) => {
            let parent_session = Some(parent.clone());
            store.create(&dir.path, NewSession { parent_session, ..new(None) })?
        }
        Target::Id(id) => store.create(&dir.path, new(Some(id)))?,
        _ => store.create(&dir.path, new(None))?,
    };
    Ok((made, false))
}

/// What `--session` means: a path, an id, or the beginning of one.
fn existing_file(
    text: &str,
    options: &SessionOptions,
    dir: &SessionDir,
    root: &Path,
) -> Result<PathBuf, OpenError> {
    if looks_like_path(text) {
        return Ok(resolve_path(text, &options.cwd, &options.environment));
    }
    let id = text.to_owned();
    match find(text, dir, root, &options.cwd.display().to_string()).map_err(unsearchable(dir))? {
        Some(Found::Local(path)) => Ok(path),
        Some(Found::Elsewhere { path, cwd }) => Err(OpenError::Elsewhere { id, cwd, path }),
        None => Err(OpenError::NotFound(id)),
    }
}

fn unsearchable(dir: &SessionDir) -> impl FnOnce(std::io::Error) -> OpenError + '_ {
    |source| OpenError::Search { dir: dir.path.clone(), source }
}

/// The folder that the session's header names.
fn working_directory(session: &OpenSession, options: &SessionOptions) -> Result<PathBuf, OpenError> {
    let cwd = session.tree.header().cwd();
    if cwd.is_empty() {
        return Ok(options.cwd.clone());
    }
    if Path::new(cwd).is_dir() {
        return Ok(PathBuf::from(cwd));
    }
    Err(OpenError::NoCwd {
        cwd: cwd.to_owned(),
        file: session.writer.path().map(Path::to_owned).unwrap_or_default(),
        current: options.cwd.clone(),
    })
}

/// The model and level that an existing session was last used with.
fn restored_choice(session: &OpenSession) -> RestoredChoice {
    let context = agentd_store::Context::new(&session.tree);
    RestoredChoice {
        model: context.model().map(|model| (model.provider.clone(), model.model_id.clone())),
        level: context.thinking_level().and_then(ThinkingLevel::from_name),
    }
}

/// Puts on record what a session begins with. An existing one only gets what it lacks.
fn record_start(
    session: &mut OpenSession,
    model: &Model,
    level: ThinkingLevel,
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
        Some(restored) if restored.level.is_none() && has_messages => {
            entries.push(NewEntry::from_body(&level_entry)?);
        }
        Some(_) => {}
    }
    for entry in entries {
        let entry = session.tree.prepare(entry, now_ms());
        session.writer.append(&entry)?;
        session.tree.push(entry);
    }
    Ok(())
}
