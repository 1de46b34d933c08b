//! The ends of prompts, for clients that want to hear of them, and whether the session has settled for good.

use agentd_ai::failure::{FailureKind, classify_answer, stated_status};
use agentd_protocol::{
    event::{AgentSettled, Event},
    message::{Message, StopReason},
    prompt_result::{PromptError, PromptResult, PromptStatus, SessionSettled},
};
use bytes::Bytes;

use super::session_actor::Actor;
use crate::{
    event_log::Audience,
    prompt_results::{PromptOutcome, ResultListener},
    reply::encode,
    run::FinishedRun,
};

impl Actor {
    /// Whether nothing will wake the session any more: no run is active, no message waits, and nothing that could begin a run is
    /// under way.
    pub(super) fn is_settled(&self) -> bool {
        !self.run.is_active()
            && !self.compacting.is_active()
            && self.queues.len() == 0
            && !self.has_pending_async_work()
    }

    /// Whether something is under way that can begin a run without a further command: a command of an extension, a message that
    /// waits for the prompt of a server, the start of extensions, the question whether an interrupted turn goes on, a subagent or a
    /// process whose end wakes the session.
    pub(super) fn has_pending_async_work(&self) -> bool {
        self.server_prompts.is_active()
            || self.pending_start.is_some()
            || !self.command_runs.is_empty()
            || !self.command_runs.after_run.is_empty()
            || self.going_on.is_open()
            || (self.job_ends_wake()
                && (self.context.subagents.has_active() || self.context.jobs.has_awaited_process()))
    }

    /// Tells of the end of a run: first those whose prompts it had, then all.
    pub(super) fn tell_settled(&mut self, finished: &FinishedRun) {
        let is_settled = self.is_settled() && finished.waiting.is_empty() && finished.continuing.is_empty();
        let listeners = self.prompt_results.settled();
        if !listeners.is_empty() {
            let outcome = self.outcome(finished.aborted);
            self.tell_results(listeners, &outcome, is_settled);
        }
        let settled = encode(&Event::from(AgentSettled { aborted: finished.aborted }));
        let for_good = if is_settled { encode(&Event::from(SessionSettled {})) } else { Ok(Bytes::new()) };
        match (settled, for_good) {
            (Ok(settled), Ok(for_good)) => {
                let split = u32::try_from(settled.len()).unwrap_or(u32::MAX);
                let line = Bytes::from([settled, for_good].concat());
                self.feed.publish_for(Audience::Settled { split }, line);
            }
            (Err(error), _) | (_, Err(error)) => tracing::error!(%error, "cannot write an event"),
        }
    }

    /// Tells of the ends of prompts whose messages were taken back.
    pub(super) fn tell_taken_back(&mut self) {
        let listeners = self.prompt_results.taken_back();
        self.tell_results(listeners, &PromptOutcome::aborted(), self.is_settled());
    }

    /// Tells that the session has ended before the prompts did.
    pub(super) fn give_up_prompt_results(&mut self) {
        let listeners = self.prompt_results.give_up();
        self.tell_results(listeners, &PromptOutcome::aborted(), true);
    }

    fn tell_results(&self, listeners: Vec<ResultListener>, outcome: &PromptOutcome, session_settled: bool) {
        for ResultListener { subscriber, id } in listeners {
            let result = PromptResult {
                id,
                agent_invoked: true,
                status: outcome.status,
                error: outcome.error.clone(),
                session_settled,
                session_id: self.context.session_id.clone(),
            };
            match encode(&Event::from(result)) {
                Ok(line) => self.feed.address(subscriber, line),
                Err(error) => tracing::error!(%error, "cannot write the end of a prompt"),
            }
        }
    }

    /// How the run ended, by its last answer.
    fn outcome(&self, aborted: bool) -> PromptOutcome {
        if aborted {
            return PromptOutcome::aborted();
        }
        if let Some(failure) = self.unflushed.failure() {
            return PromptOutcome::failed(PromptError {
                message: failure.error,
                provider: None,
                model: None,
                http_status: None,
                code: Some(failure.code),
                retryable: false,
            });
        }
        let messages = self.journal.messages().iter().rev().filter_map(|message| message.get());
        let last =
            messages.into_iter().find(|message| matches!(message, Message::Assistant(_) | Message::User(_)));
        match last {
            Some(Message::Assistant(answer)) if answer.stop_reason == StopReason::Aborted => {
                PromptOutcome::aborted()
            }
            Some(Message::Assistant(answer)) if answer.stop_reason == StopReason::Error => {
                let message = answer.error_message.clone().unwrap_or_default();
                PromptOutcome::failed(PromptError {
                    provider: Some(answer.provider.clone()).filter(|name| !name.is_empty()),
                    model: Some(answer.model.clone()).filter(|name| !name.is_empty()),
                    http_status: stated_status(&message),
                    code: answer.code,
                    retryable: classify_answer(answer, 0) == Some(FailureKind::Retryable),
                    message,
                })
            }
            _ => PromptOutcome { status: PromptStatus::Completed, error: None },
        }
    }
}
