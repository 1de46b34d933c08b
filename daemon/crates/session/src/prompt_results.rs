//! The prompts whose ends their clients want to hear of (`prompt_result`). Pure: no feed, no file.

use agentd_agent::queue::Ticket;
use agentd_protocol::prompt_result::{PromptError, PromptStatus};
use serde_json::Value;

use crate::event_log::SubscriberId;

/// Whom to tell of the end of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ResultListener {
    pub(crate) subscriber: SubscriberId,
    /// The `id` of the command.
    pub(crate) id: Option<Value>,
}

/// How the work of prompts ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromptOutcome {
    pub(crate) status: PromptStatus,
    pub(crate) error: Option<PromptError>,
}

impl PromptOutcome {
    /// The work was stopped, or never began.
    pub(crate) fn aborted() -> Self {
        Self { status: PromptStatus::Aborted, error: None }
    }

    /// The work ended with an error.
    pub(crate) fn failed(error: PromptError) -> Self {
        Self { status: PromptStatus::Error, error: Some(error) }
    }
}

/// Prompts that were accepted and have not ended. Empty, and without memory, for clients that do not ask for it.
#[derive(Debug, Default)]
pub(crate) struct PromptResults(Vec<Owed>);

#[derive(Debug)]
struct Owed {
    listener: ResultListener,
    /// The message's place in the queues, while it waits there.
    waits: Option<Ticket>,
}

impl PromptResults {
    /// A prompt was accepted: it starts a run, or waits in a queue as `waits`.
    pub(crate) fn owe(&mut self, listener: ResultListener, waits: Option<Ticket>) {
        self.0.push(Owed { listener, waits });
    }

    /// A message has left its queue, and joins the run.
    pub(crate) fn delivered(&mut self, ticket: Ticket) {
        for owed in self.0.iter_mut().filter(|owed| owed.waits == Some(ticket)) {
            owed.waits = None;
        }
    }

    /// A connection listens as another subscriber from here on.
    pub(crate) fn listen_as(&mut self, before: Option<SubscriberId>, now: SubscriberId) {
        let Some(before) = before else { return };
        for owed in self.0.iter_mut().filter(|owed| owed.listener.subscriber == before) {
            owed.listener.subscriber = now;
        }
    }

    /// The messages of these prompts are not waiting any more: they are to be told so.
    pub(crate) fn taken_back(&mut self) -> Vec<ResultListener> {
        self.end(|owed| owed.waits.is_some())
    }

    /// The run is over: the prompts that were part of it have ended.
    pub(crate) fn settled(&mut self) -> Vec<ResultListener> {
        self.end(|owed| owed.waits.is_none())
    }

    /// The session ends, and with it all prompts.
    pub(crate) fn give_up(&mut self) -> Vec<ResultListener> {
        self.end(|_| true)
    }

    fn end(&mut self, ends: impl Fn(&Owed) -> bool) -> Vec<ResultListener> {
        let (ended, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.0).into_iter().partition(ends);
        self.0 = left;
        ended.into_iter().map(|owed| owed.listener).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener(id: u64) -> ResultListener {
        ResultListener { subscriber: SubscriberId(1), id: Some(id.into()) }
    }

    fn ids(ended: Vec<ResultListener>) -> Vec<u64> {
        ended.into_iter().filter_map(|listener| listener.id?.as_u64()).collect()
    }

    #[test]
    fn a_prompt_ends_with_the_run_that_its_message_was_part_of() {
        let mut results = PromptResults::default();
        results.owe(listener(1), None);
        results.owe(listener(2), Some(10));
        results.owe(listener(3), Some(11));
        results.delivered(10);
        assert_eq!(ids(results.settled()), [1, 2]);
        assert_eq!(ids(results.settled()), [0_u64; 0]);
        results.delivered(11);
        assert_eq!(ids(results.settled()), [3]);
    }

    #[test]
    fn messages_that_are_taken_back_or_left_behind_end_their_prompts() {
        let mut results = PromptResults::default();
        results.owe(listener(1), None);
        results.owe(listener(2), Some(10));
        assert_eq!(ids(results.taken_back()), [2]);
        results.owe(listener(3), Some(11));
        assert_eq!(ids(results.settled()), [1]);
        assert_eq!(ids(results.taken_back()), [3]);
        results.owe(listener(4), Some(12));
        assert_eq!(ids(results.give_up()), [4]);
    }
}
