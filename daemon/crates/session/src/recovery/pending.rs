//! Work that crash recovery leaves open: a turn to go on with, messages to release, writes to repeat.

use agentd_protocol::{
    Json,
    error::{ErrorCode, Failure},
    message::Message,
};
use agentd_store::{
    StoreError,
    intent_log::{QueuedRecord, UnfinishedWork},
};
use tokio_util::sync::CancellationToken;

/// The owner of a session file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Origin {
    /// The user's.
    #[default]
    User,
    /// The project's: its files may come from anyone, so that nothing in them continues by itself.
    Project,
    /// A file outside of the agent directory and of the user's folder of sessions: the same goes for it.
    Outside,
}

impl Origin {
    /// Why nothing in the session goes on by itself, as the end of a sentence.
    pub(crate) fn doubt(self) -> &'static str {
        match self {
            Self::User => "",
            Self::Project => {
                "the session is a file of the project, so that the author of the project may have written it"
            }
            Self::Outside => {
                "the session is a file outside of the agent directory, so that its author may have written it"
            }
        }
    }
}

/// What happens with a turn that a crash interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterCrash {
    /// There was none, or it is over.
    Nothing,
    /// The user is asked.
    Asks,
    /// It goes on.
    GoesOn,
}

/// The question to the user whether a turn goes on, while it is open.
#[derive(Default)]
pub(crate) struct ResumeQuestion(pub(crate) Option<CancellationToken>);

impl ResumeQuestion {
    /// Whether nobody has answered it yet.
    pub(crate) fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// The answer does not matter any more; true when it was open.
    pub(crate) fn give_up(&mut self) -> bool {
        self.0.take().inspect(CancellationToken::cancel).is_some()
    }
}

/// The messages, until the user has decided.
#[derive(Default)]
pub(crate) struct HeldMessages {
    pub(crate) messages: Vec<QueuedRecord>,
    /// Decides whether messages that are found later are held back, too.
    pub(crate) origin: Origin,
    /// Somebody was asked.
    pub(crate) asked: bool,
}

impl HeldMessages {
    pub(crate) fn new(messages: Vec<QueuedRecord>, origin: Origin) -> Self {
        Self { messages, origin, asked: false }
    }

    /// Keeps these where they are to be held back; gives them back where they are to wait at once.
    pub(crate) fn take_in(&mut self, messages: Vec<QueuedRecord>) -> Vec<QueuedRecord> {
        if self.origin == Origin::User {
            return messages;
        }
        self.messages = messages;
        Vec::new()
    }

    /// The messages.
    pub(crate) fn messages(&self) -> &[QueuedRecord] {
        &self.messages
    }

    /// Nothing comes of them any more; true when there were some.
    pub(crate) fn forget(&mut self) -> bool {
        !std::mem::take(&mut self.messages).is_empty()
    }
}

/// Unflushed writes, and why they failed.
#[derive(Default)]
pub(crate) struct UnflushedWrites {
    pub(crate) due: Unflushed,
    /// Results of the run under way that the disk did not take: one at most for each call of an answer.
    pub(crate) results: Vec<Json<Message>>,
    /// Why it could not be stored when that was tried last.
    pub(crate) failure: Option<Failure>,
}

#[derive(Default)]
pub(crate) enum Unflushed {
    #[default]
    Nothing,
    /// Writes of crash recovery. The intent log has them.
    OfACrash,
    /// The results of calls of a run that ended because of that. The intent log stays for as long, too.
    OfARun(Box<UnfinishedWork>),
    /// Results of the user's commands, which wait with them.
    OfCommands,
}

impl UnflushedWrites {
    /// Of a session that was just opened; `is_due` when recovery could not store what a crash left.
    pub(crate) fn of_recovery(is_due: bool) -> Self {
        let due = if is_due { Unflushed::OfACrash } else { Unflushed::Nothing };
        Self { due, ..Self::default() }
    }

    /// Whether anything is due: the intent log must stay.
    pub(crate) fn is_due(&self) -> bool {
        !matches!(self.due, Unflushed::Nothing)
    }

    /// Whether what is due would be lost with the session: it must stay in memory.
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.due, Unflushed::OfARun(_) | Unflushed::OfCommands)
    }

    /// The disk did not take the result of a command of the user's.
    pub(crate) fn results_wait(&mut self, error: &StoreError) {
        (self.due, self.failure) = (Unflushed::OfCommands, Some(write_refused(error)));
    }

    /// The error for commands that begin work: the session must not work while writes are unflushed.
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

pub(crate) fn write_refused(error: &StoreError) -> Failure {
    let text = format!("What the disk did not take before has to be stored first, and could not be: {error}");
    Failure::new(ErrorCode::Io, text).hint(
        "See that the disk has room and the session's folder can be written; then send the command again.",
    )
}
