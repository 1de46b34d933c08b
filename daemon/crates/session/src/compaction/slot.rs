//! The summary that a command asked for, of which there is at most one: how to stop it, and who waits for it.

use agentd_protocol::command::{PromptParams, Work, WorkKind};
use tokio_util::sync::CancellationToken;

use crate::{abort::AbortWaiter, requests::PendingRequest, summary_asker::SummaryAsker};

/// A compaction, or a summary of a branch, in lists of work.
pub(crate) const WORK: Work = Work { kind: WorkKind::Compaction, id: None, name: None };

/// The place of the session's compaction.
#[derive(Default)]
pub(crate) struct Compacting {
    asked_for: Option<RequestedSummary>,
    /// Whether the run compacts.
    pub(crate) in_run: bool,
    /// Whether one was stopped whose stop nobody was told of yet: the command that did it may still be on its way here.
    stopped: bool,
}

/// A summary that a command asked for. No run is active meanwhile.
struct RequestedSummary {
    cancel: CancellationToken,
    ending: SummaryEnding,
}

/// Waiters for the end of a summary that a command asked for.
pub(crate) struct SummaryEnding {
    /// Who asked for it.
    pub(crate) asker: SummaryAsker,
    /// Aborts that wait for its end.
    pub(crate) aborting: Vec<AbortWaiter>,
    /// Prompts that stopped it to take its place.
    pub(crate) waiting: Vec<(PromptParams, PendingRequest)>,
}

impl Compacting {
    /// Whether a summary is in the making.
    pub(crate) fn is_active(&self) -> bool {
        self.is_asked_for() || self.in_run
    }

    /// Whether one is that a command asked for.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.asked_for.is_some()
    }

    /// Takes the place, which must be free; gives the token that stops the work.
    pub(crate) fn begin(&mut self, asker: SummaryAsker) -> CancellationToken {
        let cancel = CancellationToken::new();
        self.stopped = false;
        let ending = SummaryEnding { asker, aborting: Vec::new(), waiting: Vec::new() };
        self.asked_for = Some(RequestedSummary { cancel: cancel.clone(), ending });
        cancel
    }

    /// Ends the run. `stopped`: the work did not come to its end.
    pub(crate) fn finish(&mut self, stopped: bool) -> Option<SummaryEnding> {
        let ending = self.asked_for.take()?.ending;
        self.stopped = stopped && ending.aborting.is_empty();
        Some(ending)
    }

    /// Whether one that a command asked for is to stop.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.asked_for.as_ref().is_some_and(|asked_for| asked_for.cancel.is_cancelled())
    }

    /// Stops what a command asked for.
    pub(crate) fn cancel(&self) {
        if let Some(asked_for) = &self.asked_for {
            asked_for.cancel.cancel();
        }
    }

    /// Stops it and keeps the asker until it has ended; gives the asker back when there is none.
    pub(crate) fn abort(&mut self, asker: AbortWaiter) -> Option<AbortWaiter> {
        self.cancel();
        match &mut self.asked_for {
            Some(asked_for) => {
                asked_for.ending.aborting.push(asker);
                None
            }
            None => Some(asker),
        }
    }

    /// Stops it and keeps a prompt until it has ended; gives the prompt back when there is none.
    pub(crate) fn replace(
        &mut self,
        params: PromptParams,
        request: PendingRequest,
    ) -> Option<(PromptParams, PendingRequest)> {
        self.cancel();
        match &mut self.asked_for {
            Some(asked_for) => {
                asked_for.ending.waiting.push((params, request));
                None
            }
            None => Some((params, request)),
        }
    }

    /// The work that an abort ended before its command was taken.
    pub(crate) fn just_stopped(&mut self) -> Vec<Work> {
        if std::mem::take(&mut self.stopped) { vec![WORK] } else { Vec::new() }
    }

    /// A new run begins: earlier stops are not reported any more.
    pub(crate) fn forget_stopped(&mut self) {
        self.stopped = false;
    }
}
