//! The state of a live session, as its own task sees it, and what all command families do with it.

use std::sync::Arc;

use agentd_agent::StoppedCall;
use agentd_protocol::{
    command::Work,
    error::{ErrorCode, Failure},
    event::Event,
    session::InterruptMode,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use crate::{
    abort::AbortSwitch,
    clients::SessionClients,
    compaction::Compacting,
    context::SessionContext,
    event_log::{Audience, Feed},
    message_sender::MessageSender,
    messages::AttachQueue,
    models::Chooser,
    open::ModelsFile,
    queues::SessionQueues,
    recovery::{HeldMessages, ResumeQuestion, UnflushedWrites},
    reply::{Reply, encode},
    requests::IdempotencyCache,
    run::{DetachedCalls, OpenEvents, RunMessage, RunSlot},
    session_tools::SessionTools,
    summary::SummaryCell,
    transcript::Journal,
    trust::ProjectTrust,
    ui::{Asker, Notice, PendingDialogs, Ui, request},
    user_bash::UserBash,
};

/// A session, as its own task sees it. The fields are the concerns; the command families in the sibling modules work
/// on them.
pub(crate) struct Actor {
    pub(super) context: Arc<SessionContext>,
    pub(super) clients: SessionClients,
    /// The feed of `clients`.
    pub(super) feed: Feed,
    pub(super) journal: Journal,
    pub(super) queues: SessionQueues,
    pub(super) chooser: Chooser,
    /// Whether models.json has changed since it was read.
    pub(super) models_file: ModelsFile,
    pub(super) run: RunSlot,
    pub(super) compacting: Compacting,
    pub(super) user_bash: UserBash,
    pub(super) abort: AbortSwitch,
    pub(super) to_actor: mpsc::Sender<RunMessage>,
    /// The run and the user's commands.
    pub(super) tasks: JoinSet<()>,
    /// Who waits for the session to be idle.
    pub(super) idle_waiters: Vec<oneshot::Sender<()>>,
    /// Who waits to be attached.
    pub(super) joining: AttachQueue,
    pub(super) summary: SummaryCell,
    /// Tool calls that were stopped, until the answer to that says so.
    pub(super) stopped_tools: Vec<StoppedCall>,
    /// What ended with a run that was stopped before the command to do so was taken.
    pub(super) stopped_run: Vec<Work>,
    /// Whether calls were stopped because of a steering message, until they have ended.
    pub(super) tools_interrupted: bool,
    /// What a steering message does to tool calls.
    pub(super) interrupt_mode: InterruptMode,
    /// Which commands a client may repeat without doing them again.
    pub(super) requests: IdempotencyCache<Reply>,
    /// Whether it went back to another entry and no run has begun there yet.
    pub(super) has_moved: bool,
    /// Questions to the user that nobody has answered yet.
    pub(super) dialogs: PendingDialogs,
    /// What the model can call.
    pub(super) tools: SessionTools,
    /// Whether the project's own settings count, and who was asked.
    pub(super) trust: ProjectTrust,
    /// Whether the user is asked about a turn that a crash interrupted.
    pub(super) going_on: ResumeQuestion,
    /// What waits in a session that is the project's.
    pub(super) held_back: HeldMessages,
    /// What the run has told and not ended.
    pub(super) open_events: OpenEvents,
    /// Tool calls that were stopped and do not end.
    pub(super) survivors: DetachedCalls,
    /// How many aborts of everything have not been answered.
    pub(super) aborting_all: usize,
    /// What could not be stored yet.
    pub(super) unflushed: UnflushedWrites,
    /// Set once the session takes no new work.
    pub(super) closing: bool,
}

impl Actor {
    /// Brings what lists say of the session up to date.
    pub(super) fn show_summary(&mut self) {
        if self.summary.show(self.journal.tree(), self.run.is_active()) {
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

    /// Publishes an event to those who said hello.
    pub(super) fn publish_to_introduced(&self, event: &Event) {
        match encode(event) {
            Ok(line) => self.feed.publish_for(Audience::Introduced, line),
            Err(error) => tracing::error!(%error, event = event.name(), "cannot write an event"),
        }
    }

    /// Tells who waits for the session to be idle, if it is.
    pub(super) fn tell_idle(&mut self) {
        if self.is_idle() {
            for waiter in self.idle_waiters.drain(..) {
                // Whoever waited may have left.
                let _ = waiter.send(());
            }
        }
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
        !self.run.is_active() && !self.compacting.is_active() && !self.user_bash.is_active()
    }

    /// What reaches the session's user.
    pub(super) fn ui(&self) -> Ui {
        Ui {
            messages: MessageSender::new(&self.to_actor, |message| RunMessage::Ui(Box::new(message))),
            presence: self.clients.presence().clone(),
            timeout: self.context.services.limits.ui_timeout,
        }
    }

    /// Tells the user something in the daemon's own name.
    pub(super) fn tell_user(&self, notice: Notice) {
        if let Some((_, line)) = request(notice.into_method()) {
            self.feed.publish_for(Asker::Daemon.audience(), line);
        }
    }
}

pub(crate) fn shutting_down() -> Failure {
    Failure::new(ErrorCode::ShuttingDown, "The session is closing and takes no new work.")
}
