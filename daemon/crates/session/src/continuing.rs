//! `continue`: a run without a new message.

use agentd_protocol::{
    error::{ErrorCode, Failure},
    message::Message,
};

use crate::{
    actor::Actor,
    commands::shutting_down,
    reply::Reply,
    requests::{CommandKind, PendingRequest},
    run::RunBeginning,
};

impl Actor {
    /// Goes on from the context as it stands, or with what waits in the queues.
    pub(crate) fn continue_run(&mut self, reply: Reply) {
        if let Some(request) = self.first(None, CommandKind::Message, reply) {
            self.take_continue(request);
        }
    }

    /// Starts a run without a prompt, or says why not.
    pub(crate) fn take_continue(&mut self, request: PendingRequest) {
        if self.closing {
            return self.refuse(request, shutting_down());
        }
        if self.compacting.is_asked_for() {
            let text =
                "Cannot continue while compaction is in progress. Wait for compaction to finish and retry.";
            return self.refuse(request, Failure::new(ErrorCode::Busy, text));
        }
        if self.run.is_ending() {
            return self.run.wait_to_continue(request);
        }
        if self.run.is_active() {
            let text = "Agent is already processing. Wait for agent_settled before continuing.";
            let hint = "steer and follow_up queue a message for the active run.";
            return self.refuse(request, Failure::new(ErrorCode::Busy, text).hint(hint));
        }
        if let Err(failure) = self.check_message("", &[]) {
            return self.refuse(request, failure);
        }
        match self.where_to_continue() {
            Ok(beginning) => {
                self.going_on.give_up();
                self.start(beginning, Some(request));
            }
            Err(text) => {
                let hint = "Send a prompt, or queue a message with steer or follow_up first.";
                self.refuse(request, Failure::new(ErrorCode::Unsupported, text).hint(hint));
            }
        }
    }

    /// What a run without a prompt begins with.
    fn where_to_continue(&self) -> Result<RunBeginning, &'static str> {
        let messages = self.journal.messages().iter().rev().filter_map(|message| message.get());
        let last = messages.into_iter().find(|message| !matches!(message, Message::System(_)));
        match last {
            Some(Message::Assistant(_)) | None if self.queues.len() > 0 => Ok(RunBeginning::Queued),
            Some(Message::Assistant(_)) => Err("Cannot continue from message role: assistant"),
            None => Err("Cannot continue: no messages in context"),
            Some(_) => Ok(RunBeginning::Context),
        }
    }
}
