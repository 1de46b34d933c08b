//! The states of a prompt that was sent, up to the end of its run. Pure.

use std::time::Duration;

use agentd_protocol::command::{Accepted, Disposition};

use crate::exit::Exit;

/// How long a run may take to stop after SIGTERM or SIGHUP. Nobody is there to send a second signal.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// A prompt and its run, as far as they determine what comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PromptState {
    phase: RunPhase,
    stop: StopProgress,
}

/// The progress of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunPhase {
    /// The prompt is sent, and not answered yet.
    Submitted,
    /// The prompt is accepted; its run goes on.
    Running,
    /// An extension took the prompt, and may have begun a run, which is worth waiting for: the session is asked whether it is at work.
    Handled,
    /// An extension took the prompt, and nothing is under way.
    Done,
    /// The run is over; only output is left to write.
    Settled,
}

/// The progress of the user's wish to stop, with the exit that the signal stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopProgress {
    /// No signal came.
    NotRequested,
    /// `abort` is to be sent as soon as the prompt is accepted, or waits for its answer.
    Requested(Exit),
    /// `abort` is answered. Its answer comes after the last event.
    Done(Exit),
}

/// An input of the state machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptInput {
    /// SIGINT, SIGTERM or SIGHUP came.
    Signal(Exit),
    /// [`PromptState::stop_timeout`] is over.
    StopTimeout,
    /// The daemon accepted the prompt.
    Accepted,
    /// The daemon gave the prompt to an extension, which is done with it.
    Handled,
    /// The session is at work after that, or is not.
    AtWork(bool),
    /// The daemon answered `abort`.
    AbortAnswered,
    /// The run is over.
    Settled,
}

impl PromptInput {
    /// The meaning of the daemon's answer to the prompt.
    pub(super) fn of(accepted: &Accepted) -> Self {
        match accepted.disposition {
            Disposition::Handled => Self::Handled,
            Disposition::Started | Disposition::Queued => Self::Accepted,
        }
    }
}

/// The consequence of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transition {
    /// The prompt goes on in this state.
    To(PromptState),
    /// Nobody waits for the rest.
    Abandon(Exit),
}

impl PromptState {
    /// A prompt that is sent.
    pub(super) const SUBMITTED: Self = Self { phase: RunPhase::Submitted, stop: StopProgress::NotRequested };

    /// The state after an input.
    pub(super) fn next(self, input: PromptInput) -> Transition {
        let Self { phase, stop } = self;
        let next = match (input, stop) {
            (PromptInput::Signal(exit), StopProgress::NotRequested) => {
                Self { stop: StopProgress::Requested(exit), ..self }
            }
            // The second signal does not wait for the run to stop.
            (PromptInput::Signal(exit), StopProgress::Requested(_) | StopProgress::Done(_)) => {
                return Transition::Abandon(exit);
            }
            (PromptInput::StopTimeout, StopProgress::Requested(exit) | StopProgress::Done(exit)) => {
                return Transition::Abandon(exit);
            }
            (PromptInput::AbortAnswered, StopProgress::Requested(exit)) => {
                Self { stop: StopProgress::Done(exit), ..self }
            }
            (PromptInput::Accepted, _) if phase == RunPhase::Submitted => {
                Self { phase: RunPhase::Running, ..self }
            }
            (PromptInput::Handled, _) if phase == RunPhase::Submitted => {
                Self { phase: RunPhase::Handled, ..self }
            }
            (PromptInput::AtWork(at_work), _) if phase == RunPhase::Handled => {
                Self { phase: if at_work { RunPhase::Running } else { RunPhase::Done }, ..self }
            }
            // A run of the prompt begins after its answer: this is one that an extension began while it had the prompt.
            (PromptInput::Settled, _) if matches!(phase, RunPhase::Submitted | RunPhase::Handled) => self,
            (PromptInput::Settled, _) => Self { phase: RunPhase::Settled, ..self },
            (
                PromptInput::StopTimeout
                | PromptInput::Accepted
                | PromptInput::Handled
                | PromptInput::AtWork(_)
                | PromptInput::AbortAnswered,
                _,
            ) => self,
        };
        Transition::To(next)
    }

    /// Whether the answer to the prompt is still to come.
    pub(super) fn awaits_acceptance(self) -> bool {
        self.phase == RunPhase::Submitted
    }

    /// Whether `abort` is to be sent, or its answer awaited. A prompt that is not accepted yet has no run to abort.
    pub(super) fn awaits_abort(self) -> bool {
        !self.awaits_acceptance() && matches!(self.stop, StopProgress::Requested(_))
    }

    /// How long the run may take to stop; `None` for as long as it takes.
    pub(super) fn stop_timeout(self) -> Option<Duration> {
        self.stopped_by().filter(|exit| *exit != Exit::Interrupted).map(|_| STOP_TIMEOUT)
    }

    /// Whether no event is worth waiting for. After an abort, and after a prompt that an extension took, those that are there already still
    /// count.
    pub(super) fn is_over(self, events_wait: bool) -> bool {
        self.phase == RunPhase::Settled
            || (self.is_done() || matches!(self.stop, StopProgress::Done(_))) && !events_wait
    }

    /// Whether it is to be asked if the session is at work.
    pub(super) fn asks_for_work(self) -> bool {
        self.phase == RunPhase::Handled
    }

    /// Whether an extension took the prompt, and began no run that had to be waited for.
    pub(super) fn is_done(self) -> bool {
        self.phase == RunPhase::Done
    }

    /// The exit of the signal that stopped the run.
    pub(super) fn stopped_by(self) -> Option<Exit> {
        match self.stop {
            StopProgress::NotRequested => None,
            StopProgress::Requested(exit) | StopProgress::Done(exit) => Some(exit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PromptInput::{AbortAnswered, Accepted, AtWork, Handled, Settled, Signal, StopTimeout};

    /// The state after some inputs.
    fn after(inputs: &[PromptInput]) -> PromptState {
        inputs.iter().fold(PromptState::SUBMITTED, |state, input| match state.next(*input) {
            Transition::To(next) => next,
            Transition::Abandon(exit) => panic!("abandoned with {exit:?} at {input:?} in {state:?}"),
        })
    }

    const CTRL_C: PromptInput = Signal(Exit::Interrupted);

    #[test]
    fn a_run_settles_without_a_stop() {
        assert!(after(&[]).awaits_acceptance() && !after(&[]).is_over(false));
        let running = after(&[Accepted]);
        assert!(!running.awaits_acceptance() && !running.awaits_abort() && !running.is_over(false));
        let settled = after(&[Accepted, Settled]);
        assert!(settled.is_over(true) && settled.stopped_by().is_none());
        assert_eq!(after(&[Accepted, Settled, Accepted, AbortAnswered]), settled);
    }

    #[test]
    fn what_an_extension_took_is_over_with_the_runs_that_it_began() {
        let handled = after(&[Handled]);
        assert!(handled.asks_for_work() && !handled.is_over(false));
        let done = after(&[Handled, AtWork(false)]);
        assert!(done.is_done() && done.is_over(false) && !done.is_over(true));
        let running = after(&[Handled, AtWork(true)]);
        assert_eq!(running, after(&[Accepted]));
        // A run that was over before.
        assert_eq!(after(&[Settled, Handled, Settled, AtWork(false)]), done);
    }

    #[test]
    fn a_signal_aborts_once_the_prompt_is_accepted() {
        let early = after(&[CTRL_C]);
        assert!(early.awaits_acceptance() && !early.awaits_abort());
        let aborting = after(&[CTRL_C, Accepted]);
        assert_eq!(aborting, after(&[Accepted, CTRL_C]));
        assert!(aborting.awaits_abort() && !aborting.is_over(false));
        assert_eq!(aborting.stopped_by(), Some(Exit::Interrupted));
    }

    #[test]
    fn events_before_the_answer_to_abort_are_shown() {
        let aborted = after(&[Accepted, CTRL_C, AbortAnswered]);
        assert!(!aborted.awaits_abort() && !aborted.is_over(true) && aborted.is_over(false));
        assert!(after(&[Accepted, CTRL_C, Settled]).is_over(true));
    }

    #[test]
    fn a_second_signal_abandons_the_run() {
        for inputs in
            [&[CTRL_C][..], &[Accepted, CTRL_C], &[Accepted, CTRL_C, AbortAnswered], &[Settled, CTRL_C]]
        {
            assert_eq!(after(inputs).next(Signal(Exit::Terminated)), Transition::Abandon(Exit::Terminated));
        }
    }

    #[test]
    fn only_ctrl_c_waits_for_as_long_as_it_takes() {
        assert_eq!(after(&[Accepted]).stop_timeout(), None);
        assert_eq!(after(&[Accepted, CTRL_C]).stop_timeout(), None);
        for exit in [Exit::Terminated, Exit::HungUp] {
            for inputs in [&[Signal(exit)][..], &[Accepted, Signal(exit), AbortAnswered]] {
                assert_eq!(after(inputs).stop_timeout(), Some(STOP_TIMEOUT));
                assert_eq!(after(inputs).next(StopTimeout), Transition::Abandon(exit));
            }
        }
        assert_eq!(after(&[Accepted]).next(StopTimeout), Transition::To(after(&[Accepted])));
    }
}
