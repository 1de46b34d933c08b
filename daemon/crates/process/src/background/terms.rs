//! What a background process is to its session: its name, the call behind it, and who tells the model of its end.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes each piece of a process's output as text, as soon as it is read, and the line of its terminal's cursor as it is then (empty
/// without a terminal). Must be quick and never wait.
pub type OutputListener = Box<dyn FnMut(&str, &str) + Send>;

/// What a background process is to its session.
#[derive(Default)]
pub struct JobTerms {
    /// What its starter says of it.
    pub facts: JobFacts,
    /// Whether its output goes to a file from its first byte on, so that a crash leaves it.
    pub keeps_file: bool,
    /// Whether the session's model is told of its end.
    pub delivery: Delivery,
    /// Hears its output.
    pub listener: Option<OutputListener>,
}

/// What the starter of a background process says of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobFacts {
    /// The name of a service. A service that is started takes the place of the one of its name.
    pub name: Option<String>,
    /// Whether it is a service: something that others use while it runs.
    pub is_service: bool,
    /// Whether it is a job: its session keeps a record of it.
    pub is_recorded: bool,
    /// The tool call that started it.
    pub call_id: Option<String>,
}

/// Whether a session's model is told of the end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delivery {
    /// It is not: nobody waits for it, or a call has told it.
    #[default]
    Never,
    /// It is.
    Due,
    /// A call is at work that tells it if the process ends meanwhile.
    Held,
}

/// The [`Delivery`] of one process. It is settled once: by the call that holds it, or by the session at the process's end.
#[derive(Debug, Default)]
pub struct DeliveryState(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    delivery: Delivery,
    /// Whether the session has dealt with the end.
    is_settled: bool,
}

impl DeliveryState {
    pub(super) fn new(delivery: Delivery) -> Self {
        Self(Mutex::new(State { delivery, is_settled: false }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is one assignment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call begins that tells the end, should it come.
    pub fn hold(&self) {
        let mut state = self.state();
        if state.delivery == Delivery::Due {
            state.delivery = Delivery::Held;
        }
    }

    /// The call that holds it ends without having told an end. False when the session has dealt with the end by then: the call has to
    /// tell it after all.
    #[must_use]
    pub fn release(&self) -> bool {
        let mut state = self.state();
        if state.delivery != Delivery::Held {
            return true;
        }
        state.delivery = Delivery::Due;
        !state.is_settled
    }

    /// A call has told the end.
    pub fn told(&self) {
        self.state().delivery = Delivery::Never;
    }

    /// The session deals with the end: whether it has to tell the model.
    #[must_use]
    pub fn settle(&self) -> bool {
        let mut state = self.state();
        state.is_settled = true;
        state.delivery == Delivery::Due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_once_by_the_first_who_can() {
        let plain = DeliveryState::new(Delivery::Never);
        plain.hold();
        assert!(plain.release() && !plain.settle());
        let due = DeliveryState::new(Delivery::Due);
        assert!(due.settle());
        let held = DeliveryState::new(Delivery::Due);
        held.hold();
        assert!(!held.settle(), "the call tells it");
        assert!(!held.release(), "and learns that it has to");
        let ready = DeliveryState::new(Delivery::Held);
        assert!(ready.release() && ready.settle(), "an end after the call is the session's");
        let told = DeliveryState::new(Delivery::Held);
        told.told();
        assert!(told.release() && !told.settle());
    }
}
