//! Answering commands that a client may repeat by their request key.

use agentd_agent::queue::Ticket;
use agentd_protocol::{
    command::Disposition,
    error::{ErrorCode, Failure},
};

use super::session_actor::Actor;
use crate::{
    reply::Reply,
    requests::{Admission, CachedAnswer, CommandKind, PendingRequest, RequestKey},
};

impl Actor {
    /// Takes a command in that is to be done. A repetition is answered here, now or when the first one is; one that must not
    /// be done now is refused.
    pub(super) fn first(
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
        let Some(key) = key.map(RequestKey::from) else {
            return Some(PendingRequest { reply, key: None, typed: None });
        };
        match self.requests.admit(&key, means, reply) {
            Admission::First(reply) => return Some(PendingRequest { reply, key: Some(key), typed: None }),
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
    pub(super) fn accept(&mut self, request: PendingRequest, disposition: Disposition) {
        self.accept_in_queue(request, disposition, None);
    }

    /// The same for a message that waits in a queue as `waits`.
    pub(super) fn accept_in_queue(
        &mut self,
        PendingRequest { reply, key, typed }: PendingRequest,
        disposition: Disposition,
        waits: Option<Ticket>,
    ) {
        if let Some(typed) = typed {
            self.remember(typed);
        }
        let answer = CachedAnswer::Accepted(disposition);
        let waiting = key.map(|key| self.requests.answer(key, answer.clone())).unwrap_or_default();
        for reply in std::iter::once(reply).chain(waiting) {
            if disposition != Disposition::Handled
                && let Some(listener) = reply.result_listener()
            {
                self.prompt_results.owe(listener, waits);
            }
            answer.send(reply, &self.feed);
        }
    }

    /// Answers a command, and its repetitions.
    pub(super) fn answer(&mut self, PendingRequest { reply, key, .. }: PendingRequest, answer: CachedAnswer) {
        let waiting = key.map(|key| self.requests.answer(key, answer.clone())).unwrap_or_default();
        for reply in std::iter::once(reply).chain(waiting) {
            answer.send(reply, &self.feed);
        }
    }

    /// Says why a command is not done, to its repetitions as well. The next one of its key is the first again.
    pub(super) fn refuse(&mut self, PendingRequest { reply, key, .. }: PendingRequest, failure: Failure) {
        let waiting = key.map(|key| self.requests.refuse(&key)).unwrap_or_default();
        for reply in std::iter::once(reply).chain(waiting) {
            reply.fail(&self.feed, failure.clone());
        }
    }

    /// Answers the repetitions of commands that will not be answered any more.
    pub(super) fn give_up_requests(&mut self) {
        for reply in self.requests.give_up() {
            let text = "The session ended before the command was answered.";
            reply.fail(&self.feed, Failure::new(ErrorCode::ShuttingDown, text));
        }
    }
}
