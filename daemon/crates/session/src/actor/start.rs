//! Opening a session: from its options to its running actor.

use std::{collections::VecDeque, panic::AssertUnwindSafe, sync::Arc};

use agentd_extensions::{HostRunner, KeptHosts};
use agentd_files::looking_once;
use agentd_protocol::resources::Diagnostic;
use futures::FutureExt;
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{
    broken_run::broke_down, event_loop::Ended, hook_start::HookStart, pending_start::PendingStart,
    session_actor::Actor,
};
use crate::{
    abort::AbortSwitch,
    clients::SessionClients,
    compaction::Compacting,
    extension_start::StartReason,
    extensions::{CommandRuns, CustomQueue, ExtensionsPlan, load_extensions, modify_models},
    handle::SessionHandle,
    message_sender::MessageSender,
    messages::{AttachQueue, BranchCopy, INBOX},
    open::{
        AskedExtensions, BegunSession, ModelsFile, OpenError, Preparation, PreparedSession, SessionSource,
        TrustSource, begin, find_extensions, prepare, with_extensions,
    },
    options::SessionOptions,
    project_answer::{AskedBefore, ProjectAnswer},
    prompt_results::PromptResults,
    queues::SessionQueues,
    recovery::{HeldMessages, ResumeQuestion},
    run::{DetachedCalls, OpenEvents, RUN_MESSAGES, RunMessage, RunSlot},
    server_prompts::PromptRequests,
    services::Services,
    session_tools::SessionTools,
    subagent_events::SubagentRelay,
    subagent_place::SubagentOptions,
    summary::SummaryCell,
    transcript::Journal,
    trust::ProjectTrust,
    ui::{PendingDialogs, Ui},
    unload::Unloaded,
    user_bash::UserBash,
};

/// A session that was opened.
pub struct Opened {
    /// The way in.
    pub handle: SessionHandle,
    /// Diagnostics of the session's files, settings and flags.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether its extensions wait for [`SessionHandle::begin`].
    pub waits: bool,
}

/// When the extensions of a session are started.
#[derive(Debug, Clone)]
pub enum ExtensionStart {
    /// With the session.
    AtOnce,
    /// By [`SessionHandle::begin`], in the hosts of the session that a client comes from. Where they are asked whether a project is trusted,
    /// and have not been asked about this one, they are started with the session.
    Later(AskedBefore),
}

/// Opens a session and starts its actor.
///
/// # Errors
/// [`OpenError`]; nothing was written then, but for folders that were missing.
pub async fn open(services: Arc<Services>, options: SessionOptions) -> Result<Opened, OpenError> {
    open_after(services, options, ExtensionStart::AtOnce, |_| 0).await
}

/// The same, for a daemon that may have told of the session before: its events are counted on from what `last_seq` gives for the
/// session's id.
///
/// # Errors
/// As [`open`].
pub async fn open_after(
    services: Arc<Services>,
    options: SessionOptions,
    extensions: ExtensionStart,
    last_seq: impl FnOnce(&str) -> u64 + Send,
) -> Result<Opened, OpenError> {
    let limits = services.limits.feed;
    let clients = |id: &str| SessionClients::starting_after(last_seq(id), limits);
    Box::pin(start(services, options, (SessionSource::Options, extensions), clients)).await
}

/// Makes a session of a copied branch and starts its actor. Of the options, the target does not count. Its events are counted as
/// by [`open_after`].
///
/// # Errors
/// [`OpenError`]; nothing is left on disk then.
pub async fn open_copy(
    services: Arc<Services>,
    options: SessionOptions,
    (copied, extensions): (BranchCopy, ExtensionStart),
    last_seq: impl FnOnce(&str) -> u64 + Send,
) -> Result<Opened, OpenError> {
    let limits = services.limits.feed;
    let clients = |id: &str| SessionClients::starting_after(last_seq(id), limits);
    Box::pin(start(services, options, (SessionSource::Copy(copied), extensions), clients)).await
}

/// Brings a session back that has left memory by [`SessionHandle::unload`]. `options` are those that it was opened with, `feed`
/// is its own: who listens there notices nothing, unless another program has changed the file meanwhile. Then those who count
/// events are told that they lag, and no `since` of before is answered by events.
///
/// # Errors
/// [`OpenError`]: its file is gone, or another process has it now. The feed stays open.
pub async fn reload(
    services: Arc<Services>,
    options: SessionOptions,
    unloaded: Unloaded,
    clients: SessionClients,
) -> Result<SessionHandle, OpenError> {
    let source = (SessionSource::Unloaded(unloaded), ExtensionStart::AtOnce);
    let started = Box::pin(start(services, options, source, |_| clients)).await;
    started.map(|opened| opened.handle)
}

/// What extensions said before the session was prepared.
#[derive(Default)]
struct Asked {
    answer: Option<ProjectAnswer>,
    /// The hosts of those that were asked.
    kept: Option<KeptHosts>,
    of_trust: Vec<Diagnostic>,
}

/// Prepares a session. Where the user's extensions are to be asked about its project, that comes first.
async fn prepare_with_trust(
    (services, options): (&Arc<Services>, &Arc<SessionOptions>),
    beginning: SessionSource,
    trust_source: TrustSource,
    reason: &'static str,
) -> Result<(Box<PreparedSession>, Asked), OpenError> {
    let prepare_by = async |beginning, trust_source: TrustSource| {
        let (services, options) = (Arc::clone(services), Arc::clone(options));
        let preparing = move || (prepare(&services, &options, beginning, &trust_source), trust_source);
        let (prepared, trust_source) = tokio::task::spawn_blocking(preparing).await?;
        Ok::<_, OpenError>((prepared?, trust_source))
    };
    let mut asked = Asked::default();
    let (mut preparation, mut trust_source) = prepare_by(beginning, trust_source).await?;
    loop {
        match preparation {
            Preparation::Done(prepared) => {
                if let TrustSource::Said(answer) = trust_source {
                    asked.answer = Some(answer);
                }
                return Ok((prepared, asked));
            }
            Preparation::Asks(pass, beginning) => {
                let AskedExtensions { answer, kept, diagnostics } = pass.ask(reason).await?;
                asked = Asked { kept: Some(kept), of_trust: diagnostics, answer: None };
                (preparation, trust_source) = prepare_by(beginning, TrustSource::Said(answer)).await?;
            }
        }
    }
}

/// Its future is large, since a session is put together in it: boxed by its callers, so that a connection does not hold the room for it
/// all the time.
async fn start(
    services: Arc<Services>,
    options: SessionOptions,
    (beginning, starts): (SessionSource, ExtensionStart),
    clients: impl FnOnce(&str) -> SessionClients + Send,
) -> Result<Opened, OpenError> {
    let options = Arc::new(options);
    let was_trusted = matches!(&beginning, SessionSource::Unloaded(unloaded) if unloaded.trusted);
    let had_trust =
        matches!(&beginning, SessionSource::Unloaded(unloaded) if unloaded.trusted_files.is_some());
    let is_reloaded = matches!(&beginning, SessionSource::Unloaded(_));
    let reason = match &beginning {
        SessionSource::Options => "startup",
        SessionSource::Unloaded(_) => "resume",
        SessionSource::Copy(_) => "fork",
    };
    let of_extension = options.subagent.as_ref().and_then(|own| own.of_extension.clone());
    let trust_source = match &starts {
        // Its extension has loaded what there is to load.
        _ if of_extension.is_some() => TrustSource::Files,
        ExtensionStart::AtOnce => TrustSource::Extensions,
        ExtensionStart::Later(asked) => match asked.about(&options.cwd) {
            Some(answer) => TrustSource::Said(answer.clone()),
            None if asked.are_asked => TrustSource::Extensions,
            None => TrustSource::Files,
        },
    };
    let (prepared, asked) =
        prepare_with_trust((&services, &options), beginning, trust_source, reason).await?;
    let Asked { answer, kept, of_trust } = asked;
    let PreparedSession {
        mut context,
        trust_is_open,
        trusted_files,
        unbegun,
        intent_log,
        was_changed,
        after_crash,
        unflushed,
        waiting,
        held_back,
        origin,
        requests,
        tools,
        modes,
        mode,
        parent_id,
        has_moved,
        of_resources,
    } = *prepared;
    context.diagnostics.extend(of_trust);
    let (sources, node);
    if let Some(part) = of_extension {
        (sources, node) = (part.sources.clone(), Some(HostRunner::Channel(part.channel.clone())));
    } else {
        if !is_reloaded {
            context.install_packages().await;
        }
        (context, (sources, node)) = find_extensions(context).await?;
    }
    let waits = matches!(starts, ExtensionStart::Later(_)) && kept.is_none() && !sources.is_empty();
    let pending_start = if waits {
        Some(Box::new(PendingStart::of((sources, node))))
    } else {
        let (flags, kept) = (options.extension_flags.clone(), kept.unwrap_or_default());
        let plan = ExtensionsPlan { sources, node, reason, flags, kept };
        context.extensions = load_extensions(context.extension_surroundings(), plan).await?;
        context.gate = with_extensions(context.gate, context.extensions.as_ref());
        if let Some(extensions) = &context.extensions {
            // For the choice of the first model.
            modify_models(extensions, &context.auth, context.models.base()).await;
        }
        None
    };
    let extensions = context.extensions.clone();
    let begun = {
        let options = Arc::clone(&options);
        let begin = move || {
            // A session that was unloaded is as it was.
            if is_reloaded {
                begin(context, &options.without_beginning(), unbegun)
            } else {
                begin(context, &options, unbegun)
            }
        };
        tokio::task::spawn_blocking(move || looking_once(begin)).await?
    };
    let BegunSession { context, session, chooser } = match begun {
        Ok(begun) => begun,
        Err(error) => {
            if let Some(extensions) = extensions {
                extensions.end().await;
            }
            return Err(error);
        }
    };
    let journal = Journal::new(session, intent_log);
    let diagnostics = context.diagnostics.iter().cloned().chain(of_resources).collect();
    let clients = clients(&context.session_id);
    if was_changed {
        clients.feed().start_over();
    }
    let interrupt_mode = context.settings.interrupt_mode.unwrap_or_default();
    let (inbox, mut commands) = mpsc::channel(INBOX);
    let (to_actor, taken) = mpsc::channel(RUN_MESSAGES);
    let (abort, closing, gone) = (AbortSwitch::default(), CancellationToken::new(), CancellationToken::new());
    let summary = SummaryCell::new(journal.tree(), parent_id);
    let handle = SessionHandle {
        id: context.session_id.as_str().into(),
        file: context.session_file.as_deref().map(Into::into),
        clients: clients.clone(),
        inbox,
        abort: abort.clone(),
        summary: summary.shown(),
        processes: context.processes.view(),
        has_sandbox: context.sandbox.is_some(),
        ui: Ui {
            is_off: !context.mode.has_ui(),
            messages: MessageSender::new(&to_actor, |message| RunMessage::Ui(Box::new(message))),
            presence: clients.presence().clone(),
            timeout: services.limits.ui_timeout,
            parent: options.subagent.as_deref().map(SubagentOptions::parent_ui),
        },
        closing: closing.clone(),
        gone: gone.clone(),
        intake: services.limits.intake,
    };
    context.user.is_reached_by(handle.ui.clone());
    context.subagents.relay().set(SubagentRelay::new(
        &context.session_id,
        clients.feed().clone(),
        clients.subagent_listeners().clone(),
    ));
    context.host_urls.set(clients.host_urls().clone());
    context.eval_executors.set(clients.eval_executors().clone());
    context
        .subagents
        .lead_to(MessageSender::new(&to_actor, |message| RunMessage::Subagent(Box::new(message))));
    context.cell_calls.lead_to(MessageSender::new(&to_actor, |call| RunMessage::CellCall(Box::new(call))));
    context.jobs.lead_to(MessageSender::new(&to_actor, |message| RunMessage::Job(Box::new(message))));
    clients
        .tool_requests()
        .lead_to(MessageSender::new(&to_actor, |request| RunMessage::ToolRequest(Box::new(request))));
    let tools = SessionTools::new(clients.tools().clone(), &context.tools, tools);
    let (told, of_session) = (OpenEvents::default(), clients.feed().clone());
    let mut actor = Box::new(Actor {
        models_file: ModelsFile::new(context.models_stamp),
        context: context.shared(),
        feed: clients.feed().clone(),
        clients,
        journal,
        queues: SessionQueues::new(
            modes.0,
            modes.1,
            services.memory.open(agentd_memory::MemoryPurpose::Queues),
        ),
        chooser,
        run: RunSlot::default(),
        survivors: DetachedCalls::default(),
        aborting_all: 0,
        compacting: Compacting::default(),
        user_bash: UserBash::default(),
        abort,
        to_actor,
        tasks: JoinSet::new(),
        idle_waiters: Vec::new(),
        joining: AttachQueue::default(),
        summary,
        stopped_tools: Vec::new(),
        stopped_run: Vec::new(),
        tools_interrupted: false,
        interrupt_mode,
        requests,
        prompt_results: PromptResults::default(),
        commands_told: None,
        has_moved,
        mode_is_due: false,
        plan_models: None,
        dialogs: PendingDialogs::default(),
        tools,
        going_on: ResumeQuestion::default(),
        held_back: HeldMessages::default(),
        trust: ProjectTrust::new(options, (trust_is_open, was_trusted), answer, trusted_files),
        open_events: told.clone(),
        unflushed,
        server_prompts: PromptRequests::default(),
        extension_requests: mpsc::unbounded_channel(),
        extension_backlog: VecDeque::new(),
        extension_link: None,
        extensions_started: CancellationToken::new(),
        hook_start: HookStart::default(),
        command_runs: CommandRuns::default(),
        pending_start,
        turn_waiters: Vec::new(),
        early_notices: Some(Vec::new()),
        entries_told: None,
        agent_run: None,
        settling: false,
        runs: 0,
        custom: CustomQueue::default(),
        closing: false,
    });
    actor.begin_mode(mode);
    if !is_reloaded && let Err(failure) = actor.begin_planning().await {
        tracing::error!(error = failure.error, "the model of the role plan could not be recorded");
    }
    actor.begin_undo();
    actor.restore_todos();
    actor.restore_rules();
    actor.start_mcp(None);
    actor.register_file_tools();
    if is_reloaded {
        actor.connect_hooks();
    } else {
        let is_new = actor.journal.messages().is_empty();
        actor.start_hooks(if is_new { "startup" } else { "resume" });
    }
    if !waits {
        actor.start_extensions(StartReason { reason, previous_file: None }, None);
    }
    actor.trust.is_withdrawn = had_trust && trust_is_open;
    actor.connect_permissions();
    actor.let_wait(waiting);
    actor.queues.reserve(&held_back);
    actor.held_back = HeldMessages::new(held_back, origin);
    // The actor ends when it is closed, when it leaves memory, or when the last handle is gone. Subscribers are told of the end
    // even if a bug brings it.
    let end = handle.clients.feed().close_at_the_end();
    let (network, of_providers) = (Arc::clone(&actor.context.network), Arc::clone(&services));
    services.tasks.spawn(async move {
        let _gone = gone.drop_guard();
        let working = actor.run(&mut commands, taken, closing, after_crash);
        let ended = AssertUnwindSafe(working).catch_unwind().await;
        // However it ended: a session that comes back makes connections of its own.
        of_providers.providers.release(&network);
        match ended {
            Ok(Ended::Closed) => drop(end),
            Err(_) => {
                tracing::error!("a session panicked");
                broke_down(&of_session, &told, &mut commands).await;
                drop(end);
            }
            Ok(Ended::Unloading(unloaded, unloading)) => {
                end.disarm();
                // The registry may be gone: then nothing brings the session back, and its file stays as it is.
                let _ = unloading.send(Some(unloaded));
            }
        }
    });
    Ok(Opened { handle, diagnostics, waits })
}
