//! The session's run, of which there is at most one: how to stop it, and who waits for it.

use agentd_protocol::command::PromptParams;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    abort::AbortWaiter,
    queues::{Delivered, WaitingSize, message_bytes},
    reply::Reply,
    requests::{PendingRequest, RequestRecord},
    summary_asker::SummaryAsker,
};

/// The place of the session's run.
#[derive(Default)]
pub(crate) struct RunSlot(Option<Active>);

struct Active {
    cancel: CancellationToken,
    /// Asks the run what is in flight. Room for one question, whose answer goes to all who wait.
    questions: mpsc::Sender<()>,
    /// The command that started the run, until it is accepted.
    request: Option<PendingRequest>,
    /// The user's message that comes next.
    next: NextUserMessage,
    /// Between `agent_end` and `agent_settled`.
    ending: bool,
    /// Ends the pause before a retry, while there is one.
    pause: Option<CancellationToken>,
    aborting: Vec<AbortWaiter>,
    /// Aborts of tool calls that wait until the calls have ended.
    stopping: Vec<Reply>,
    waiting: Vec<(PromptParams, PendingRequest)>,
    continuing: Vec<PendingRequest>,
}

/// A message of the user that is about to become an entry.
#[derive(Default)]
pub(crate) struct NextUserMessage {
    /// The request key and disposition for its entry.
    pub(crate) record: Option<RequestRecord>,
    /// The message, if it waited in a queue.
    pub(crate) delivered: Option<Delivered>,
}

/// A run that is over, and those that waited for its end.
pub(crate) struct FinishedRun {
    /// A message that was taken out of its queue and not stored.
    pub(crate) undelivered: Option<Delivered>,
    /// The prompt's sender, if the prompt was never accepted.
    pub(crate) request: Option<PendingRequest>,
    /// Whether someone stopped the run.
    pub(crate) aborted: bool,
    /// Aborts that wait for its end.
    pub(crate) aborting: Vec<AbortWaiter>,
    /// Aborts of its tool calls that were not answered yet.
    pub(crate) stopping: Vec<Reply>,
    /// Prompts that came while it was ending.
    pub(crate) waiting: Vec<(PromptParams, PendingRequest)>,
    /// `continue` commands that came while it was ending.
    pub(crate) continuing: Vec<PendingRequest>,
}

impl RunSlot {
    /// Begins a run; gives the token that stops it, and the receiver of questions about what is in flight.
    pub(crate) fn start(
        &mut self,
        request: Option<PendingRequest>,
    ) -> (CancellationToken, mpsc::Receiver<()>) {
        let cancel = CancellationToken::new();
        let (questions, questioned) = mpsc::channel(1);
        self.0 = Some(Active {
            cancel: cancel.clone(),
            questions,
            request,
            next: NextUserMessage::default(),
            ending: false,
            pause: None,
            aborting: Vec::new(),
            stopping: Vec::new(),
            waiting: Vec::new(),
            continuing: Vec::new(),
        });
        (cancel, questioned)
    }

    /// Asks the run what is in flight; false when there is no run. The answer is a run message, or the end of the run.
    pub(crate) fn ask(&self) -> bool {
        let Some(run) = &self.0 else { return false };
        // Full: the run is asked already. Closed: its end is on the way.
        let _ = run.questions.try_send(());
        true
    }

    /// From the prompt until the session has settled.
    pub(crate) fn is_active(&self) -> bool {
        self.0.is_some()
    }

    /// Whether a prompt that comes now waits for the end instead of being refused.
    pub(crate) fn is_ending(&self) -> bool {
        self.0.as_ref().is_some_and(|run| run.ending)
    }

    /// The prompt was accepted; gives the command to answer.
    pub(crate) fn accept(&mut self) -> Option<PendingRequest> {
        self.0.as_mut()?.request.take()
    }

    /// A message of the user's is about to come.
    pub(crate) fn comes_next(&mut self, next: NextUserMessage) {
        if let Some(run) = &mut self.0 {
            run.next = next;
        }
    }

    /// A message of the user's has come: which.
    pub(crate) fn take_next(&mut self) -> NextUserMessage {
        self.0.as_mut().map(|run| std::mem::take(&mut run.next)).unwrap_or_default()
    }

    /// `agent_start` goes out.
    pub(crate) fn begin(&mut self) {
        if let Some(run) = &mut self.0 {
            run.ending = false;
        }
    }

    /// `agent_end` goes out.
    pub(crate) fn end(&mut self) {
        if let Some(run) = &mut self.0 {
            run.ending = true;
        }
    }

    /// A pause before a retry begins or is over.
    pub(crate) fn set_pause(&mut self, pause: Option<CancellationToken>) {
        if let Some(run) = &mut self.0 {
            run.pause = pause;
        }
    }

    /// Whether the run pauses before a retry.
    pub(crate) fn is_pausing(&self) -> bool {
        self.0.as_ref().is_some_and(|run| run.pause.is_some())
    }

    /// Gives up the retry whose pause is under way.
    pub(crate) fn abort_retry(&self) {
        if let Some(pause) = self.0.as_ref().and_then(|run| run.pause.as_ref()) {
            pause.cancel();
        }
    }

    /// Keeps a prompt until the run has settled; gives it back when there is no run.
    pub(crate) fn wait(
        &mut self,
        params: PromptParams,
        request: PendingRequest,
    ) -> Option<(PromptParams, PendingRequest)> {
        match &mut self.0 {
            Some(run) => {
                run.waiting.push((params, request));
                None
            }
            None => Some((params, request)),
        }
    }

    /// Keeps a wish to go on without a prompt until the run has settled.
    pub(crate) fn wait_to_continue(&mut self, request: PendingRequest) {
        if let Some(run) = &mut self.0 {
            run.continuing.push(request);
        }
    }

    /// The prompts that wait for the run to settle.
    pub(crate) fn waiting(&self) -> WaitingSize {
        let prompts = self.0.iter().flat_map(|run| &run.waiting);
        prompts.fold(WaitingSize::default(), |sum, (params, _)| WaitingSize {
            messages: sum.messages + 1,
            bytes: sum.bytes + message_bytes(&params.message, &params.images),
        })
    }

    /// The prompts that wait for the run to settle; they wait no longer.
    pub(crate) fn take_waiting(&mut self) -> Vec<(PromptParams, PendingRequest)> {
        self.0.as_mut().map(|run| std::mem::take(&mut run.waiting)).unwrap_or_default()
    }

    /// Whether there is a run that is to stop.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.as_ref().is_some_and(|run| run.cancel.is_cancelled())
    }

    /// Fires when the run is to stop; `None` where there is no run.
    pub(crate) fn stop_token(&self) -> Option<CancellationToken> {
        self.0.as_ref().map(|run| run.cancel.clone())
    }

    /// Stops the run.
    pub(crate) fn cancel(&self) {
        if let Some(run) = &self.0 {
            run.cancel.cancel();
        }
    }

    /// Stops the run and keeps the waiter until it has settled; gives it back when there is no run.
    pub(crate) fn abort(&mut self, asker: AbortWaiter) -> Option<AbortWaiter> {
        self.cancel();
        match &mut self.0 {
            Some(run) => {
                run.aborting.push(asker);
                None
            }
            None => Some(asker),
        }
    }

    /// Takes the compactions that wait for the end of the run.
    pub(crate) fn give_up_compactions(&mut self) -> Vec<SummaryAsker> {
        let waiting = self.0.as_mut().map(|run| &mut run.aborting);
        let mut askers = Vec::new();
        if let Some(waiting) = waiting {
            let (compactions, others) = std::mem::take(waiting)
                .into_iter()
                .partition::<Vec<_>, _>(|asker| matches!(asker, AbortWaiter::Compact(..)));
            *waiting = others;
            askers.extend(compactions.into_iter().filter_map(|waiter| match waiter {
                AbortWaiter::Compact(_, asker) => Some(asker),
                _ => None,
            }));
        }
        askers
    }

    /// Keeps the waiter until the stopped calls have ended; gives it back when there is no run.
    pub(crate) fn await_tools(&mut self, reply: Reply) -> Option<Reply> {
        match &mut self.0 {
            Some(run) => {
                run.stopping.push(reply);
                None
            }
            None => Some(reply),
        }
    }

    /// The stopped calls have ended; gives the waiters.
    pub(crate) fn tools_ended(&mut self) -> Vec<Reply> {
        self.0.as_mut().map(|run| std::mem::take(&mut run.stopping)).unwrap_or_default()
    }

    /// Ends the run.
    pub(crate) fn finish(&mut self) -> Option<FinishedRun> {
        self.0.take().map(|run| FinishedRun {
            undelivered: run.next.delivered,
            request: run.request,
            aborted: run.cancel.is_cancelled(),
            aborting: run.aborting,
            stopping: run.stopping,
            waiting: run.waiting,
            continuing: run.continuing,
        })
    }
}
