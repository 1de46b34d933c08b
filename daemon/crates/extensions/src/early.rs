//! Extensions that are loaded before the others of their session, since they are asked whether its project is trusted. They stay loaded: the
//! session's extensions take them over with their hosts.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use crate::{load_states::LoadState, registrations::Registrations};

/// An extension that is loaded.
pub(crate) struct EarlyExtension {
    /// Its file: the same extension is found by it.
    pub(crate) entry: PathBuf,
    /// Its number in the host protocol.
    pub(crate) number: usize,
    pub(crate) state: LoadState,
}

/// Extensions that are loaded, with what they have registered.
#[derive(Default)]
pub(crate) struct EarlyExtensions {
    /// In load order, as their registrations are.
    pub(crate) extensions: Vec<EarlyExtension>,
    /// Shared with the runtime that loaded them, which may be taking another registration.
    pub(crate) registrations: Arc<Mutex<Registrations>>,
}

impl EarlyExtensions {
    /// The extension of that file.
    pub(crate) fn of(&self, entry: &Path) -> Option<&EarlyExtension> {
        self.extensions.iter().find(|extension| extension.entry == entry)
    }

    /// The first number that none of them has.
    pub(crate) fn free_number(&self) -> usize {
        self.extensions.iter().map(|extension| extension.number + 1).max().unwrap_or(0)
    }

    /// What they have registered; nothing is left of it here.
    pub(crate) fn take_registrations(&self) -> Registrations {
        std::mem::take(&mut *self.registrations.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
