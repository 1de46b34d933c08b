//! The states of a prompt that was sent, up to the end of its run. Pure.

use std::time::Duration;

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
    /// The daemon answered `abort`.
    AbortAnswered,
    /// The run is over.
    Settled,
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
                Self { phase, stop: StopProgress::Requested(exit) }
            }
            // The second signal does not wait for the run to stop.
            (PromptInput::Signal(exit), StopProgress::Requested(_) | StopProgress::Done(_)) => {
                return Transition::Abandon(exit);
            }
            (PromptInput::StopTimeout, StopProgress::Requested(exit) | StopProgress::Done(exit)) => {
                return Transition::Abandon(exit);
            }
            (PromptInput::AbortAnswered, StopProgress::Requested(exit)) => {
                Self { phase, stop: StopProgress::Done(exit) }
            }
            (PromptInput::Accepted, _) if phase == RunPhase::Submitted => {
                Self { phase: RunPhase::Running, stop }
            }
            (PromptInput::Settled, _) => Self { phase: RunPhase::Settled, stop },
            (PromptInput::StopTimeout | PromptInput::Accepted | PromptInput::AbortAnswered, _) => self,
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

    /// Whether no event is worth waiting for. After an abort, those that are there already still count.
    pub(super) fn is_over(self, events_wait: bool) -> bool {
        self.phase == RunPhase::Settled || matches!(self.stop, StopProgress::Done(_)) && !events_wait
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
    use PromptInput::{AbortAnswered, Accepted, Settled, Signal, StopTimeout};

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
