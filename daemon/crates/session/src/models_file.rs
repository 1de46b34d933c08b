//! Edits of models.json reach a session that is open: at its next run, and when models are listed or chosen.
//!
//! Nothing watches the file: it is looked at when it matters. As trust that is given later, it makes another
//! [`SessionContext`](crate::context::SessionContext), while no run is under way: a run sees the models that it began with to its end.

use std::sync::Arc;

use agentd_config::models::ModelsStamp;
use agentd_protocol::resources::Diagnostic;

use crate::{
    SessionOptions,
    context::SessionContext,
    open::{NewModels, with_models},
};

/// What is known of the file.
#[derive(Debug)]
pub(crate) struct ModelsFile {
    /// What it looked like when it was last read.
    pub(crate) stamp: ModelsStamp,
    /// What is wrong with it, where the models are those of before.
    pub(crate) problem: Option<Diagnostic>,
}

impl ModelsFile {
    pub(crate) fn new(stamp: ModelsStamp) -> Self {
        Self { stamp, problem: None }
    }

    /// Models that were read from such a file count now.
    pub(crate) fn seen(&mut self, stamp: ModelsStamp) {
        *self = Self::new(stamp);
    }

    /// What is wrong with the file, where the models are those of before.
    pub(crate) fn problem(&self) -> Option<&Diagnostic> {
        self.problem.as_ref()
    }
}

/// What a file says that has changed.
pub(crate) enum ModelsChange {
    /// The same models.
    Same,
    /// Nothing that can be read.
    Broken(Diagnostic),
    /// Other models.
    Other(Box<NewModels>),
}

/// Looks at the file, and reads it where it is not as it was `before`; blocks.
pub(crate) fn look(
    context: &SessionContext,
    options: &SessionOptions,
    before: ModelsStamp,
) -> Option<(ModelsStamp, ModelsChange)> {
    let stamp = ModelsStamp::of(&context.agent_dir);
    if stamp == before {
        return None;
    }
    let models = context.services.models.load(&context.agent_dir);
    if Arc::ptr_eq(&models, &context.models) {
        return Some((stamp, ModelsChange::Same));
    }
    let found = match models.diagnostic() {
        Some(problem) if context.models.load_error().is_none() => ModelsChange::Broken(problem.clone()),
        _ => ModelsChange::Other(Box::new(with_models(context, options, models, stamp))),
    };
    Some((stamp, found))
}
