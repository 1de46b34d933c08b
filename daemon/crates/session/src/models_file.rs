//! Edits of models.json reach a session that is open: at its next run, and when models are listed or chosen.
//!
//! Nothing watches the file: it is looked at when it matters. As trust that is given later, it makes another
//! [`SessionContext`](crate::context::SessionContext), while no run is under way: a run sees the models that it began with to its end.

use std::sync::Arc;

use agentd_config::models::ModelsStamp;
use agentd_protocol::{resources::Diagnostic, ui::NotifyType};
use tokio::task::spawn_blocking;

use crate::{
    SessionOptions,
    actor::Actor,
    context::SessionContext,
    open::{NewModels, with_models},
    ui::Notice,
};

/// What is known of the file.
#[derive(Debug)]
pub(crate) struct ModelsFile {
    /// What it looked like when it was last read.
    stamp: ModelsStamp,
    /// What is wrong with it, where the models are those of before.
    problem: Option<Diagnostic>,
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
enum ModelsChange {
    /// The same models.
    Same,
    /// Nothing that can be read.
    Broken(Diagnostic),
    /// Other models.
    Other(Box<NewModels>),
}

impl Actor {
    /// Sees to it that the models are those of models.json as it is now, unless something works by those of before. A file that
    /// cannot be read changes nothing, and the user is told once.
    pub(crate) async fn refresh_models(&mut self) {
        if self.run.is_active() || self.compacting.is_active() {
            return;
        }
        let (context, options, before) =
            (Arc::clone(&self.context), Arc::clone(self.trust.options()), self.models_file.stamp);
        let looked = match spawn_blocking(move || look(&context, &options, before)).await {
            Ok(looked) => looked,
            Err(error) => return tracing::error!(%error, "models.json could not be looked at"),
        };
        let Some((stamp, found)) = looked else { return };
        self.models_file.seen(stamp);
        match found {
            ModelsChange::Same => {}
            ModelsChange::Broken(problem) => {
                tracing::warn!("{problem}");
                let text = format!("The models stay as they were: {problem}");
                self.tell_user(Notice::notify(text, NotifyType::Warning));
                self.models_file.problem = Some(problem);
            }
            ModelsChange::Other(remodelled) => self.use_models(*remodelled).await,
        }
    }

    async fn use_models(&mut self, NewModels { mut context, scope }: NewModels) {
        let current = self.chooser.current();
        let (provider, id) = (&current.model.provider, &current.model.id);
        let now = context.models.find(provider, id);
        // One that only its provider knows was never there.
        let was_there = self.context.models.find(provider, id).is_some()
            || self.context.removed_model.as_ref() == Some(&current.model.name());
        if now.is_none() && was_there {
            context.removed_model = Some(current.model.name());
        }
        self.context = Arc::new(context);
        self.tools.forget();
        self.tell_tools();
        self.chooser.set_scope(scope);
        let Some(model) = now else { return };
        let level = model.clamp_thinking(Some(current.level));
        self.chooser.renew(model);
        if let Err(failure) = self.change_level(level).await {
            tracing::warn!(error = failure.error, "the level that the changed model has could not be stored");
        }
    }
}

/// Looks at the file, and reads it where it is not as it was `before`; blocks.
fn look(
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
