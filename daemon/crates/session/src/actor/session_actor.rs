//! The state of a live session, as its own task sees it, and what all command families do with it.

use std::{collections::VecDeque, sync::Arc};

use agentd_agent::StoppedCall;
use agentd_protocol::{
    command::Work,
    error::{ErrorCode, Failure},
    event::Event,
    resources::AvailableCommand,
    session::InterruptMode,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{early_notice::EarlyNotice, hook_start::HookStart, pending_start::PendingStart};
use crate::{
    abort::AbortSwitch,
    clients::SessionClients,
    compaction::Compacting,
    context::SessionContext,
    event_log::{Audience, Feed},
    extensions::{CommandRuns, CustomQueue, EntriesTold, ExtensionLink, ExtensionRequest},
    message_sender::MessageSender,
    messages::AttachQueue,
    models::Chooser,
    open::ModelsFile,
    plan::PlanModels,
    prompt_results::PromptResults,
    queues::SessionQueues,
    recovery::{HeldMessages, ResumeQuestion, UnflushedWrites},
    reply::{Reply, encode},
    requests::IdempotencyCache,
    run::{DetachedCalls, OpenEvents, RunMessage, RunSlot},
    server_prompts::PromptRequests,
    session_tools::SessionTools,
    subagent_place::SubagentOptions,
    summary::SummaryCell,
    transcript::Journal,
    trust::ProjectTrust,
    ui::{Asker, Notice, PendingDialogs, Ui, request},
    user_bash::UserBash,
};

/// The state of a session: one field for each concern. The command families in the sibling modules work on them.
pub(crate) struct Actor {
    pub(super) context: Arc<SessionContext>,
    pub(super) clients: SessionClients,
    /// The feed of `clients`.
    pub(super) feed: Feed,
    pub(super) journal: Journal,
    pub(super) queues: SessionQueues,
    pub(super) chooser: Chooser,
    /// Detects changes of models.json since it was read.
    pub(super) models_file: ModelsFile,
    pub(super) run: RunSlot,
    pub(super) compacting: Compacting,
    pub(super) user_bash: UserBash,
    pub(super) abort: AbortSwitch,
    pub(super) to_actor: mpsc::Sender<RunMessage>,
    /// The run and the user's commands.
    pub(super) tasks: JoinSet<()>,
    /// Waiters for the session to be idle.
    pub(super) idle_waiters: Vec<oneshot::Sender<()>>,
    /// Clients that wait to be attached.
    pub(super) joining: AttachQueue,
    pub(super) summary: SummaryCell,
    /// Tool calls that were stopped, until an abort's answer names them.
    pub(super) stopped_tools: Vec<StoppedCall>,
    /// Work that ended with a run that was stopped before its abort command was taken.
    pub(super) stopped_run: Vec<Work>,
    /// Whether calls were stopped because of a steering message, until they have ended.
    pub(super) tools_interrupted: bool,
    /// Whether a steering message interrupts tool calls.
    pub(super) interrupt_mode: InterruptMode,
    /// Answers of commands that a client may repeat by their request key.
    pub(super) requests: IdempotencyCache<Reply>,
    /// Prompts whose ends their clients want to hear of.
    pub(super) prompt_results: PromptResults,
    /// Whether the session went back to another entry and no run has begun there yet.
    pub(super) has_moved: bool,
    /// Whether the mode may not be on record.
    pub(super) mode_is_due: bool,
    /// The models before and in plan mode, where it changed them.
    pub(super) plan_models: Option<PlanModels>,
    /// Unanswered questions to the user.
    pub(super) dialogs: PendingDialogs,
    /// The tools that the model can call.
    pub(super) tools: SessionTools,
    /// Whether the project is trusted, and whether the user was asked.
    pub(super) trust: ProjectTrust,
    /// The question whether an interrupted turn goes on, while it is open.
    pub(super) going_on: ResumeQuestion,
    /// Messages that wait only when the user releases them.
    pub(super) held_back: HeldMessages,
    /// Events of the run that have begun and not ended.
    pub(super) open_events: OpenEvents,
    /// Tool calls that were stopped and still run.
    pub(super) survivors: DetachedCalls,
    /// Aborts of everything that have not been answered.
    pub(super) aborting_all: usize,
    /// Writes that the disk did not take.
    pub(super) unflushed: UnflushedWrites,
    /// Messages that wait for the prompt of an MCP server.
    pub(super) server_prompts: PromptRequests,
    /// What extensions send: both ends, since extensions come and go while the session lives.
    pub(super) extension_requests:
        (mpsc::UnboundedSender<ExtensionRequest>, mpsc::UnboundedReceiver<ExtensionRequest>),
    /// Requests of extensions that were received and wait for what the run sent before them.
    pub(super) extension_backlog: VecDeque<ExtensionRequest>,
    /// The way of the extensions to this actor, which they hold weakly.
    pub(super) extension_link: Option<Arc<ExtensionLink>>,
    /// Fires once the handlers of `session_start` have ended.
    pub(super) extensions_started: CancellationToken,
    /// The shell hooks for the beginning of the session.
    pub(super) hook_start: HookStart,
    /// Commands of extensions that run.
    pub(super) command_runs: CommandRuns,
    /// Extensions that are being started while the session is open.
    pub(super) pending_start: Option<Box<PendingStart>>,
    /// Hosts that wait for the end of a turn to be started again.
    pub(super) turn_waiters: Vec<oneshot::Sender<()>>,
    /// What extensions have shown before the first client came, which gets it then; `None` once one has come.
    pub(super) early_notices: Option<Vec<EarlyNotice>>,
    /// The entries that the extensions were told, once they have asked for them.
    pub(super) entries_told: Option<EntriesTold>,
    /// The number of the run between `agent_start` and `agent_end`.
    pub(super) agent_run: Option<u64>,
    /// Whether the run is over but for what extensions are told.
    pub(super) settling: bool,
    /// The runs so far.
    pub(super) runs: u64,
    /// Messages of extensions that wait.
    pub(super) custom: CustomQueue,
    /// The commands that clients were told, once one has asked for them.
    pub(super) commands_told: Option<Vec<AvailableCommand>>,
    /// Set once the session takes no new work.
    pub(super) closing: bool,
}

impl Actor {
    /// Updates the summary that lists of sessions show.
    pub(super) fn show_summary(&mut self) {
        if self.summary.show(self.journal.tree(), self.run.is_active(), !self.is_idle()) {
            self.context.services.watch.changed(&self.context.session_id);
        }
    }

    /// Publishes an event of the actor's own.
    pub(super) fn publish(&self, event: &Event) {
        match encode(event) {
            Ok(line) => self.feed.publish([line]),
            Err(error) => tracing::error!(%error, event = event.name(), "cannot write an event"),
        }
    }

    /// Publishes an event for clients that said hello.
    pub(super) fn publish_to_introduced(&self, event: &Event) {
        match encode(event) {
            Ok(line) => self.feed.publish_for(Audience::Introduced, line),
            Err(error) => tracing::error!(%error, event = event.name(), "cannot write an event"),
        }
    }

    /// Answers the waiters for an idle session, if it is idle.
    pub(super) fn tell_idle(&mut self) {
        if self.is_idle() {
            for waiter in self.idle_waiters.drain(..) {
                // The waiter may have left.
                let _ = waiter.send(());
            }
        }
        self.quit_when_idle();
    }

    pub(super) fn when_idle(&mut self, done: oneshot::Sender<()>) {
        if self.is_idle() {
            let _ = done.send(());
        } else {
            self.idle_waiters.push(done);
        }
    }

    /// Whether nothing works for the session.
    pub(super) fn is_idle(&self) -> bool {
        !self.run.is_active()
            && !self.compacting.is_active()
            && !self.user_bash.is_active()
            && !self.server_prompts.is_active()
            && self.pending_start.is_none()
    }

    /// What reaches the session's user.
    pub(super) fn ui(&self) -> Ui {
        Ui {
            is_off: !self.context.mode.has_ui(),
            messages: MessageSender::new(&self.to_actor, |message| RunMessage::Ui(Box::new(message))),
            presence: self.clients.presence().clone(),
            timeout: self.context.services.limits.ui_timeout,
            parent: self.context.subagents.own().map(SubagentOptions::parent_ui),
        }
    }

    /// Tells the user something in the daemon's own name.
    pub(super) fn tell_user(&self, notice: Notice) {
        if self.context.mode.has_ui()
            && let Some((_, line)) = request(notice.into_method())
        {
            self.feed.publish_for(Asker::Daemon.audience(), line);
        }
    }
}

pub(crate) fn shutting_down() -> Failure {
    Failure::new(ErrorCode::ShuttingDown, "The session is closing and takes no new work.")
}
