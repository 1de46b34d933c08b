//! What decides whether calls may happen, and what of that is missing.

use std::sync::PoisonError;

use super::Runtime;
use crate::{
    event::{EventKind, EventSet},
    setup::LoadError,
};

/// The events that decide whether something may happen.
const GATES: [EventKind; 2] = [EventKind::ToolCall, EventKind::UserBash];

impl Runtime {
    /// The events of a host that decide about calls.
    pub(super) fn gates_of(&self, host: usize) -> EventSet {
        let extensions = &self.hosts[host].extensions;
        let registrations = self.registrations();
        let mut gates = EventSet::default();
        for kind in GATES {
            if registrations.handlers(kind).iter().any(|handler| extensions.contains(&handler.extension)) {
                gates.insert(kind);
            }
        }
        gates
    }

    /// An extension that decided about these could not be loaded again: they must not happen until it is.
    pub(crate) fn miss_gate(&self, error: LoadError, gates: EventSet) {
        self.unloaded_gates.lock().unwrap_or_else(PoisonError::into_inner).push((error, gates));
        self.update_events(&self.registrations());
    }

    /// Why something must not happen, whose gate is down with its host, or could not be loaded again.
    pub(crate) fn missing_gate(&self, kind: EventKind) -> Option<String> {
        if self.setup.runs_when_down {
            return None;
        }
        let unloaded = self.unloaded_gates.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((error, _)) = unloaded.iter().find(|(_, gates)| gates.contains(kind)) {
            return Some(error.to_string());
        }
        self.missing_gates.events().contains(kind).then(|| {
            let name = kind.name();
            format!("An extension that decides about this (\"{name}\") is down: its host is not running")
        })
    }

    /// The extensions that decide about something, those that are missing included: their paths, and about what.
    pub(crate) fn gates(&self) -> Vec<(String, EventSet)> {
        let unloaded = self.unloaded_gates.lock().unwrap_or_else(PoisonError::into_inner);
        let mut gates: Vec<(String, EventSet)> =
            unloaded.iter().map(|(error, gates)| (error.path.clone(), *gates)).collect();
        drop(unloaded);
        let registrations = self.registrations();
        for kind in GATES {
            for handler in registrations.handlers(kind) {
                let path = self.path(handler.extension);
                let mut decided = EventSet::default();
                decided.insert(kind);
                match gates.iter_mut().find(|(known, _)| known == path) {
                    Some((_, known)) => *known = known.with(decided),
                    None => gates.push((path.to_owned(), decided)),
                }
            }
        }
        gates
    }
}
