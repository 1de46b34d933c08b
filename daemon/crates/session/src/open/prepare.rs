//! Everything of a session before its actor runs.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_auth::{Auth, AuthSources};
use agentd_config::{
    AgentDir, StartingFiles, TrustBasis, TrustDecision,
    models::ModelsStamp,
    note_trusted_files,
    settings::{LoadedSettings, load_as_given, place_of},
};
use agentd_process::{ArtifactFolder, BackgroundProcesses};
use agentd_protocol::{
    resources::{Diagnostic, DiagnosticKind},
    session::QueueMode,
};
use agentd_store::{NewEntry, intent_log::QueuedRecord, network_warning, read_header};

use super::{
    build_context::{CarriedOver, Project, build_context},
    error::OpenError,
    initial_choice::{ChoiceSources, InitialChoice, append, last_background, record_start, restored_choice},
    session_file::{file_diagnostics, origin, project_file_diagnostic, read_only_diagnostic},
    target::{SessionFiles, adopt, open_session, reopen, working_directory},
};
use crate::{
    context::SessionContext,
    messages::BranchCopy,
    models::Chooser,
    options::{SessionOptions, ToolSelection},
    recovery::{AfterCrash, Origin, UnflushedWrites, recover},
    reply::Reply,
    requests::IdempotencyCache,
    services::Services,
    session_tools::{ToolChoice, choice_entry, chosen_on},
    transcript::{Journal, SessionIntentLog},
    unload::Unloaded,
};

/// A session that lacks only its actor.
pub(crate) struct PreparedSession {
    pub(crate) context: SessionContext,
    /// Whether someone would have to be asked if the project's own settings are to count.
    pub(crate) trust_is_open: bool,
    /// The project's files that trust is for, while it lasts.
    pub(crate) trusted_files: Option<StartingFiles>,
    pub(crate) journal: Journal,
    /// Whether another program has changed its file while it was not in memory.
    pub(crate) was_changed: bool,
    /// What becomes of a turn that a crash interrupted.
    pub(crate) after_crash: AfterCrash,
    /// What of that could not be stored.
    pub(crate) unflushed: UnflushedWrites,
    /// Messages that waited in queues when the daemon was killed.
    pub(crate) waiting: Vec<QueuedRecord>,
    /// Messages that are to wait only when the user says so.
    pub(crate) held_back: Vec<QueuedRecord>,
    /// Whose the session is.
    pub(crate) origin: Origin,
    pub(crate) requests: IdempotencyCache<Reply>,
    pub(crate) tools: ToolChoice,
    pub(crate) chooser: Chooser,
    pub(crate) modes: (QueueMode, QueueMode),
    /// The session that this one was forked from.
    pub(crate) parent_id: Option<String>,
    /// Whether it went back to another entry and no run has begun there yet.
    pub(crate) has_moved: bool,
    /// What is wrong with skills, prompt templates and the like.
    pub(crate) of_resources: Vec<Diagnostic>,
}

/// Where the entries of a session come from.
pub(crate) enum SessionSource {
    /// From where the options say.
    Options,
    /// From where it was left.
    Unloaded(Unloaded),
    /// From another session.
    Copy(BranchCopy),
}

/// Reads files; blocks. A session that comes back is as it was: what the options say of its beginning does not count. A
/// copy that cannot be used leaves no file.
pub(crate) fn prepare(
    services: &Arc<Services>,
    options: &SessionOptions,
    beginning: SessionSource,
) -> Result<PreparedSession, OpenError> {
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
    beginning: SessionSource,
    copy_file: &mut Option<PathBuf>,
) -> Result<PreparedSession, OpenError> {
    let (unloaded, copied) = match beginning {
        SessionSource::Options => (None, None),
        SessionSource::Unloaded(unloaded) => (Some(unloaded), None),
        SessionSource::Copy(copied) => (None, Some(copied)),
    };
    let (unloaded, of_copy) = (unloaded.as_ref(), copied.as_ref().map(|copied| copied.tools.clone()));
    let as_it_was = unloaded.map(|_| options.without_beginning());
    let options = as_it_was.as_ref().unwrap_or(options);

    let agent_dir = AgentDir::find(&options.environment, options.compat, &options.cwd)?;
    let given = unloaded.and_then(|unloaded| unloaded.trusted_files.as_deref());
    let approve = options.approve.or(unloaded.and_then(|unloaded| unloaded.trusted.then_some(true)));
    let LoadedSettings { settings, folders, trust, resources, diagnostics: mut found } =
        load_as_given(&agent_dir, &options.cwd, &options.environment, approve, given);
    let trust_is_open =
        matches!(trust.basis, TrustBasis::Unasked | TrustBasis::Changed(_) | TrustBasis::Replaced(_))
            && trust.warning.is_none();
    found.extend(note_first_sight(&agent_dir, &trust));
    let files = SessionFiles {
        agent_dir: &agent_dir,
        settings: &settings,
        epoch: &services.epoch,
        session_bytes: services.limits.intake.session_bytes,
    };
    let mut was_changed = false;
    let mut passed_over = None;
    let (mut session, has_past) = match (unloaded, copied) {
        (Some(unloaded), _) => {
            let session = reopen(unloaded, &files)?;
            was_changed = unloaded.has_changed();
            (session, true)
        }
        (None, Some(copied)) => {
            let session = adopt(copied, &files)?;
            *copy_file = session.writer.path().filter(|_| session.writer.is_on_disk()).map(Path::to_owned);
            let has_past = !session.tree.entries().is_empty();
            (session, has_past)
        }
        (None, None) => {
            let opened = open_session(options, &files)?;
            passed_over = opened.passed_over;
            (opened.session, opened.has_past)
        }
    };
    found.extend(passed_over.as_deref().map(project_file_diagnostic));
    found.extend(file_diagnostics(&session.report, session.writer.path()));
    found.extend(session.writer.path().filter(|_| session.writer.is_read_only()).map(read_only_diagnostic));
    found.extend(session.writer.path().and_then(Path::parent).and_then(|folder| {
        let text = network_warning(folder)?;
        Some(Diagnostic::warning(DiagnosticKind::Session, text).at(folder))
    }));
    let cwd = working_directory(&session, options)?;
    let (origin, claims) = match session.writer.path() {
        Some(file) => origin(file, [&options.cwd, &cwd], &agent_dir, options),
        None => (Origin::User, None),
    };
    let recovered = recover(&mut session, settings.crash_recovery.unwrap_or_default(), origin, claims);
    found.extend(recovered.diagnostics);

    let models_stamp = ModelsStamp::of(&agent_dir);
    let models = services.models.load(&agent_dir);
    found.extend(models.diagnostics().cloned());
    let auth = Auth::load(AuthSources {
        agent_dir: agent_dir.clone(),
        environment: options.environment.clone(),
        registry: Arc::clone(&models),
        services: services.auth_services.clone(),
    });
    found.extend(auth.load_error().map(|text| Diagnostic::warning(DiagnosticKind::Credentials, text)));
    let moved = unloaded.and_then(|unloaded| unloaded.moved.clone());
    let has_moved = moved.is_some();
    let restored = has_past.then(|| moved.unwrap_or_else(|| restored_choice(&session)));
    let place = |setting: (&str, Option<&str>)| place_of(&agent_dir, &folders, trust.trusted, setting);
    let sources =
        ChoiceSources { services, models: &models, auth: &auth, settings: &settings, place: &place };
    let InitialChoice { choice, level_is_asked, scope } =
        sources.choose(options, restored.as_ref(), &mut found)?;
    let key_provider = options.api_key.as_ref().map(|key| {
        let before = unloaded.and_then(|unloaded| unloaded.key_provider.as_deref());
        let provider = before.unwrap_or(&choice.model.provider).to_owned();
        auth.set_override(provider.clone(), key.clone());
        provider
    });
    let on_branch = chosen_on(&session.tree);
    // What was chosen in a session goes on with it. A file is opened as flags have it, where there are any.
    let tools = match (unloaded, &of_copy) {
        (Some(unloaded), _) => unloaded.tools.clone(),
        (None, Some(of_original)) => of_original.clone(),
        (None, None) if options.tools == ToolSelection::default() => on_branch.clone(),
        (None, None) => None,
    };
    if of_copy.is_some() && tools != on_branch {
        append(&mut session, NewEntry::from_body(&choice_entry(tools.as_deref()))?)?;
    }
    let recorded =
        record_start(&mut session, &choice, level_is_asked, options.name.as_deref(), restored.as_ref());
    if let Err(error) = recorded {
        // A full disk keeps nobody from reading.
        let text = format!("what the session goes on with could not be stored: {error}");
        found.push(Diagnostic::warning(DiagnosticKind::Session, text));
    }

    let parent = session.tree.info().parent_session.as_deref().map(Path::new);
    let parent_id = parent.and_then(|path| read_header(path).ok().flatten()).map(|it| it.id().to_owned());
    let modes = (settings.steering_mode.unwrap_or_default(), settings.follow_up_mode.unwrap_or_default());
    let processes = services.launcher.group();
    let has_background = settings.bash.as_ref().is_some_and(|bash| bash.background == Some(true));
    let last = if has_background { last_background(&session) } else { 0 };
    let lasting = CarriedOver {
        services: Arc::clone(services),
        session_id: session.tree.header().id().to_owned(),
        session_file: session.writer.path().map(Path::to_owned),
        agent_dir,
        background: BackgroundProcesses::new(processes.clone(), last),
        processes,
        models,
        models_stamp,
        auth,
        key_provider,
        cwd,
    };
    // What comes to a project that has nothing yet is looked at when it is opened the next time.
    let trusted = trust.trusted && trust.basis != TrustBasis::NothingToTrust;
    let trusted_files = trusted.then_some(trust.files);
    let changed = match trust.basis {
        TrustBasis::Changed(files) => files,
        TrustBasis::Replaced(folder) => vec![folder],
        _ => Vec::new(),
    };
    let project = Project { folders, trusted: trusted_files.clone().map(Arc::new), changed, resources };
    let context = build_context(lasting, options, (settings, project), found);
    context.fallbacks.choose(unloaded.and_then(|unloaded| unloaded.fallback_models.clone()));
    // What comes back has told it before.
    let of_resources = if unloaded.is_none() { context.resource_diagnostics() } else { Vec::new() };
    Ok(PreparedSession {
        context,
        trust_is_open,
        trusted_files,
        requests: IdempotencyCache::of(&session.tree),
        tools,
        was_changed,
        journal: Journal::new(session, SessionIntentLog::of(recovered.intent_log)),
        after_crash: recovered.next,
        unflushed: UnflushedWrites::of_recovery(recovered.is_due),
        waiting: recovered.waiting,
        held_back: recovered.held_back,
        origin,
        chooser: Chooser::new(choice, scope),
        modes,
        parent_id,
        has_moved,
        of_resources,
    })
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
