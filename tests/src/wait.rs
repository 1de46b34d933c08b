//! Waiting: the deadline of every wait, and gates that a test opens.

use std::{
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

/// The time limit of every wait in a test, long enough for a loaded machine.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// The time limit of what takes a debug build long on a loaded machine, such as a hundred thousand deltas.
pub const LONG_DEADLINE: Duration = Duration::from_secs(300);

#[derive(Default)]
struct State {
    reached: bool,
    open: bool,
}

/// A gate at which a mock server waits until the test opens it. Clones are the same gate.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<State>, Condvar)>);

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens the gate for present and later arrivals.
    pub fn open(&self) {
        self.change(|state| state.open = true);
    }

    /// Waits for an arrival.
    pub fn wait_until_reached(&self) {
        self.wait(|state| state.reached, DEADLINE, "nobody came to the gate");
    }

    /// Arrives, and waits for the opening: longer than a test waits for anything else.
    pub fn pass(&self) {
        self.change(|state| state.reached = true);
        self.wait(|state| state.open, LONG_DEADLINE, "nobody opened the gate");
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
    }

    fn wait(&self, done: impl Fn(&State) -> bool, deadline: Duration, complaint: &str) {
        let state = self.0.0.lock().unwrap();
        let (_state, waited) = self.0.1.wait_timeout_while(state, deadline, |state| !done(state)).unwrap();
        assert!(!waited.timed_out(), "{complaint} within {deadline:?}");
    }
}
