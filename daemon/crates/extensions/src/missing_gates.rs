//! Gates of hosts that are down: a gate must not vanish by crashing.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::event::EventSet;

/// The events that hosts decided about, until these are there again.
#[derive(Debug, Default)]
pub(crate) struct MissingGates(Mutex<HashMap<usize, EventSet>>);

impl MissingGates {
    /// A host is down that decided about these. What it decided about when it was last there still counts.
    pub(crate) fn are_gone(&self, host: usize, gates: EventSet) {
        if gates != EventSet::default() {
            let mut missing = self.lock();
            let known = missing.entry(host).or_default();
            *known = known.with(gates);
        }
    }

    /// A host is there again, with its handlers.
    pub(crate) fn are_back(&self, host: usize) {
        self.lock().remove(&host);
    }

    /// The events that some host decides about that is not there.
    pub(crate) fn events(&self) -> EventSet {
        self.lock().values().fold(EventSet::default(), |all, gates| all.with(*gates))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<usize, EventSet>> {
        // No method panics halfway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventKind;

    #[test]
    fn gates_are_missing_until_their_host_is_back() {
        let missing = MissingGates::default();
        let mut gates = EventSet::default();
        gates.insert(EventKind::ToolCall);
        missing.are_gone(1, gates);
        // A start that fails half-way has registered nothing.
        missing.are_gone(1, EventSet::default());
        assert!(missing.events().contains(EventKind::ToolCall));
        missing.are_back(0);
        assert!(missing.events().contains(EventKind::ToolCall));
        missing.are_back(1);
        assert_eq!(missing.events(), EventSet::default());
    }
}
