//! How the actor answers commands that may be repeated.

use agentd_config::Environment;
use agentd_protocol::{
    command::{Accepted, BashOutput, Disposition},
    error::{ErrorCode, Failure},
    message::{BashExecutionMessage, Message},
};

use super::{CachedAnswer, CommandKind, RequestKey, RequestRecord, cache::Admission};
use crate::{actor::Actor, feed::Feed, reply::Reply};

/// A command that is done once: whom to answer, and the key that it can be repeated by.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    reply: Reply,
    key: Option<RequestKey>,
}

impl PendingRequest {
    /// The command's `id`.
    pub(crate) fn id(&self) -> Option<&serde_json::Value> {
        self.reply.id.as_ref()
    }

    /// The command's key.
    pub(crate) fn key(&self) -> Option<&RequestKey> {
        self.key.as_ref()
    }

    /// The environment of whoever sent it, where that is one of his own.
    pub(crate) fn environment(&self) -> Option<&Environment> {
        self.reply.environment.as_ref()
    }

    /// What the entry of a message is to say of the command.
    pub(crate) fn record(&self, disposition: Disposition) -> Option<RequestRecord> {
        self.key.clone().map(|key| RequestRecord { key, disposition })
    }
}

impl Actor {
    /// Takes a command in that is to be done. A repetition is answered here, now or when the first one is; one that must not
    /// be done now is refused.
    pub(crate) fn first(
        &mut self,
        key: Option<String>,
        means: CommandKind,
        reply: Reply,
    ) -> Option<PendingRequest> {
        let request = self.admit(key, means, reply)?;
        let Some(failure) = self.unflushed.failure() else { return Some(request) };
        self.refuse(request, failure);
        None
    }

    fn admit(&mut self, key: Option<String>, means: CommandKind, reply: Reply) -> Option<PendingRequest> {
        let Some(key) = key.map(RequestKey::from) else { return Some(PendingRequest { reply, key: None }) };
        match self.requests.admit(&key, means, reply) {
            Admission::First(reply) => return Some(PendingRequest { reply, key: Some(key) }),
            Admission::Waits => {}
            Admission::Answered(reply, answer) => answer.send(reply, &self.feed),
            Admission::OtherKind(reply, means) => {
                let of = match means {
                    CommandKind::Message => "a message",
                    CommandKind::Bash => "a bash command",
                };
                let text =
                    format!("Invalid field \"requestKey\": expected a key of its own, got that of {of}");
                reply.fail(&self.feed, Failure::new(ErrorCode::InvalidField, text));
            }
            Admission::TooMany(reply) => {
                let text = "Too many repetitions of commands wait for their answers.";
                let failure = Failure::new(ErrorCode::Busy, text);
                reply.fail(&self.feed, failure.hint("The command is being done; wait for its answer."));
            }
        }
        None
    }

    /// Answers a message, and its repetitions.
    pub(crate) fn accept(&mut self, request: PendingRequest, disposition: Disposition) {
        self.answer(request, CachedAnswer::Accepted(disposition));
    }

    /// Answers a command, and its repetitions.
    pub(crate) fn answer(&mut self, PendingRequest { reply, key }: PendingRequest, answer: CachedAnswer) {
        let waiting = key.map(|key| self.requests.answer(key, answer.clone())).unwrap_or_default();
        for reply in std::iter::once(reply).chain(waiting) {
            answer.send(reply, &self.feed);
        }
    }

    /// Says why a command is not done, to its repetitions as well. The next one of its key is the first again.
    pub(crate) fn refuse(&mut self, PendingRequest { reply, key }: PendingRequest, failure: Failure) {
        let waiting = key.map(|key| self.requests.refuse(&key)).unwrap_or_default();
        for reply in std::iter::once(reply).chain(waiting) {
            reply.fail(&self.feed, failure.clone());
        }
    }

    /// Answers the repetitions of commands that will not be answered any more.
    pub(crate) fn give_up_requests(&mut self) {
        for reply in self.requests.give_up() {
            let text = "The session ended before the command was answered.";
            reply.fail(&self.feed, Failure::new(ErrorCode::ShuttingDown, text));
        }
    }
}

impl CachedAnswer {
    fn send(&self, reply: Reply, feed: &Feed) {
        match self {
            Self::Accepted(disposition) => reply.data(feed, Accepted { disposition: *disposition }),
            Self::Bash(message) => match message.get() {
                Some(Message::BashExecution(message)) => reply.data(feed, bash_output(message)),
                _ => {
                    let text = "The entry of the first command of this requestKey cannot be read.";
                    reply.fail(feed, Failure::new(ErrorCode::Internal, text));
                }
            },
        }
    }
}

/// What the entry of a `bash` command says, as the command's answer.
fn bash_output(message: &BashExecutionMessage) -> BashOutput {
    BashOutput {
        output: message.output.clone(),
        exit_code: message.exit_code,
        cancelled: message.cancelled,
        truncated: message.truncated,
        full_output_path: message.full_output_path.clone(),
    }
}
