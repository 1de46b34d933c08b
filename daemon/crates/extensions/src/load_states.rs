//! What came of loading each extension, and its last failure.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agentd_protocol::text_bounds;

/// Bytes of an error that are kept.
const MAX_ERROR: usize = 2000;

/// What came of loading each extension, and its last failure.
pub(crate) struct LoadStates(Mutex<Vec<LoadState>>);

/// What came of loading an extension.
#[derive(Clone, Default)]
pub(crate) struct LoadState {
    pub(crate) is_loaded: bool,
    pub(crate) ms: Option<f64>,
    pub(crate) last_error: Option<Arc<str>>,
}

impl LoadStates {
    /// None of so many is loaded.
    pub(crate) fn of(extensions: usize) -> Self {
        Self(Mutex::new(vec![LoadState::default(); extensions]))
    }

    /// An extension was loaded, in so many milliseconds.
    pub(crate) fn loaded(&self, extension: usize, ms: Option<f64>) {
        if let Some(state) = self.lock().get_mut(extension) {
            (state.is_loaded, state.ms) = (true, ms);
        }
    }

    /// An extension is as it was before.
    pub(crate) fn set(&self, extension: usize, before: LoadState) {
        if let Some(state) = self.lock().get_mut(extension) {
            *state = before;
        }
    }

    /// An extension could not be loaded.
    pub(crate) fn failed(&self, extension: usize, error: &str) {
        self.note(extension, error);
        if let Some(state) = self.lock().get_mut(extension) {
            state.is_loaded = false;
        }
    }

    /// An extension failed in something.
    pub(crate) fn note(&self, extension: usize, error: &str) {
        if let Some(state) = self.lock().get_mut(extension) {
            state.last_error = Some(text_bounds::head(error, MAX_ERROR).into());
        }
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<LoadState> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<LoadState>> {
        // No method panics halfway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
