//! What could not be stored when it should have been, because the disk failed: it is stored before the session works again.

use agentd_protocol::{
    Json,
    error::{ErrorCode, Failure},
    message::Message,
};
use agentd_store::{StoreError, intent_log::UnfinishedWork};

/// What is due, and of whom.
#[derive(Default)]
pub(crate) struct UnflushedWrites {
    pub(crate) due: Due,
    /// Results of the run under way that the disk did not take: one at most for each call of an answer.
    pub(crate) results: Vec<Json<Message>>,
    /// Why it could not be stored when that was tried last.
    pub(crate) failure: Option<Failure>,
}

#[derive(Default)]
pub(crate) enum Due {
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

pub(crate) fn refusal(error: &StoreError) -> Failure {
    let text = format!("What the disk did not take before has to be stored first, and could not be: {error}");
    Failure::new(ErrorCode::Io, text).hint(
        "See that the disk has room and the session's folder can be written; then send the command again.",
    )
}
