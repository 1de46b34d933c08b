//! What could not be stored when it should have been, because the disk failed: it is stored before the session works again.

use agentd_protocol::{
    Json,
    error::{ErrorCode, Failure},
    event::{MessageEnd, MessageStart},
    message::Message,
};
use agentd_store::{
    StoreError,
    intent_log::{IntentRecord, MadeCalls, UnfinishedWork},
};

use super::{broken::ended, plan, words::InterruptionCause};
use crate::{actor::Actor, clock::now_ms};

/// What is due, and of whom.
#[derive(Default)]
pub(crate) struct UnflushedWrites {
    due: Due,
    /// Results of the run under way that the disk did not take: one at most for each call of an answer.
    results: Vec<Json<Message>>,
    /// Why it could not be stored when that was tried last.
    failure: Option<Failure>,
}

#[derive(Default)]
enum Due {
    #[default]
    Nothing,
    /// What a crash left. The intent log knows it.
    OfACrash,
    /// The results of calls of a run that ended because of that. The intent log stays for as long, too.
    OfARun(Box<UnfinishedWork>),
    /// Results of the user's commands, which wait with them.
    OfCommands,
}

impl UnflushedWrites {
    /// Of a session that was just opened; `is_due` when recovery could not store what a crash left.
    pub(crate) fn of_recovery(is_due: bool) -> Self {
        let due = if is_due { Due::OfACrash } else { Due::Nothing };
        Self { due, ..Self::default() }
    }

    /// Whether anything is due: the intent log must stay.
    pub(crate) fn is_due(&self) -> bool {
        !matches!(self.due, Due::Nothing)
    }

    /// Whether what is due would be lost with the session: it must stay in memory.
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.due, Due::OfARun(_) | Due::OfCommands)
    }

    /// The disk did not take the result of a command of the user's.
    pub(crate) fn results_wait(&mut self, error: &StoreError) {
        (self.due, self.failure) = (Due::OfCommands, Some(refusal(error)));
    }

    /// What whoever asks for work is open_events: the session must not, as long as something is due.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.failure.clone()
    }

    /// A run begins.
    pub(crate) fn begin(&mut self) {
        self.results.clear();
    }

    /// The disk did not take this message.
    pub(crate) fn keep(&mut self, message: Json<Message>) {
        if matches!(message.get(), Some(Message::ToolResult(_))) {
            self.results.push(message);
        }
    }
}

impl Actor {
    /// The run ends because the disk did not take a message. Calls that are open get their results, if not now, then later.
    pub(crate) async fn on_not_stored(&mut self) {
        if self.unflushed.is_due() {
            return;
        }
        let open = self.open_events.snapshot();
        let known = match self.journal.intent_log().left().await {
            Ok(known) => known.filter(|left| left.run.is_some()),
            Err(error) => {
                tracing::warn!(%error, "what a run had begun is not known exactly");
                None
            }
        };
        let mut left = known.unwrap_or_else(|| self.known_without_intent_log(&open));
        // What streamed is not stored for an answer that failed, and commands of the user's go on.
        (left.answer, left.commands) = (None, Vec::new());
        let results = std::mem::take(&mut self.unflushed.results);
        if let Some(answer) = self.last_answer_entry() {
            let made = left.calls.get_or_insert_default();
            if made.entry != answer {
                *made = MadeCalls { entry: answer, ..MadeCalls::default() };
            }
            for message in results {
                if let Some(Message::ToolResult(result)) = message.get() {
                    made.done.insert(result.tool_call_id.clone(), Some(message));
                }
            }
        }
        self.unflushed.due = Due::OfARun(Box::new(left));
        self.retry_failed_writes().await;
    }

    /// Adds what could not be stored before, because the disk failed: before anything else is said to be under way, which would
    /// take the place of what the intent log says. While the disk still fails, the session can be read, and must not work
    /// ([`UnflushedWrites::failure`]).
    pub(crate) async fn retry_failed_writes(&mut self) {
        if !self.unflushed.is_due() {
            return;
        }
        if let Err(error) = self.write_unflushed().await {
            // Whoever asked is told.
            tracing::debug!(%error, "what the disk did not take before could not be stored once more");
            self.unflushed.failure = Some(refusal(&error));
            return;
        }
        (self.unflushed.due, self.unflushed.failure) = (Due::Nothing, None);
        if !self.run.is_active() {
            self.store_bash_messages().await;
            self.settle_intent_log();
        }
    }

    /// The intent log need not know of the run any more, unless something of it is to be stored yet.
    pub(crate) fn settle_intent_log(&self) {
        if !self.unflushed.is_due() {
            self.journal.intent_log().settle();
        }
    }

    async fn write_unflushed(&mut self) -> Result<(), StoreError> {
        match &self.unflushed.due {
            Due::Nothing | Due::OfCommands => {}
            Due::OfACrash => {
                if let Some(left) = self.journal.intent_log().left().await? {
                    let plan = plan::plan(self.journal.tree(), &left, now_ms())?;
                    self.add_late(plan).await?;
                    let waiting = super::waiting(&left, self.journal.tree());
                    let records = waiting.iter().cloned().map(IntentRecord::Queued).collect();
                    self.journal.intent_log().replace(records).await?;
                    let waiting = self.held_back.take_in(waiting);
                    self.queues.reserve(self.held_back.messages());
                    if !waiting.is_empty() {
                        self.let_wait(waiting);
                        self.queues.publish(&self.feed);
                    }
                }
            }
            Due::OfARun(left) => {
                let plan = plan::plan_after(InterruptionCause::Disk, self.journal.tree(), left, now_ms())?;
                self.add_late(plan).await?;
            }
        }
        Ok(())
    }

    async fn add_late(&mut self, plan: plan::Plan) -> Result<(), StoreError> {
        let open = self.open_events.snapshot();
        for entry in plan.entries {
            let message = self.add_recovered(entry).await?;
            if let Some(Message::ToolResult(result)) = message.get()
                && open.calls.contains(&result.tool_call_id)
            {
                let end = ended(result).into();
                self.open_events.event(&end);
                self.publish(&end);
            }
            self.publish(&MessageStart { message: message.clone() }.into());
            self.publish(&MessageEnd { message }.into());
        }
        Ok(())
    }
}

fn refusal(error: &StoreError) -> Failure {
    let text = format!("What the disk did not take before has to be stored first, and could not be: {error}");
    Failure::new(ErrorCode::Io, text).hint(
        "See that the disk has room and the session's folder can be written; then send the command again.",
    )
}
