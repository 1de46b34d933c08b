//! The model that a session uses, for tools that are made before it is known.

use std::sync::{Arc, Mutex, PoisonError};

use agentd_protocol::model::Model;

/// The model that a session uses, for tools. Cheap to clone; all clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct CurrentModel(Arc<Mutex<Option<Arc<Model>>>>);

impl CurrentModel {
    /// The session uses another model.
    pub(crate) fn set(&self, model: &Arc<Model>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(model));
    }

    /// The model, once it is known.
    pub(crate) fn get(&self) -> Option<Arc<Model>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
