//! The commands about models, thinking levels and fallback models; models.json that was edited while the session is open.

use std::sync::Arc;

use agentd_config::models::{
    ModelScope, ScopedModel, UsableModels, cycle, level_after_switch, resolve_fallbacks,
};
use agentd_extensions::EventKind;
use agentd_protocol::{
    command::{
        CycledLevel, CycledModel, FallbackModel, FallbackModels, Models, SetFallbackModelsParams,
        SetModelParams, SetThinkingLevelParams,
    },
    entry::EntryBody,
    error::{ErrorCode, Failure},
    event::{Event, ThinkingLevelChanged},
    model::{Model, ThinkingLevel},
    ui::NotifyType,
};
use serde_json::json;

use super::session_actor::Actor;
use crate::{
    models::{Choice, Substitute, check_names},
    open::{ModelsChange, NewModels, look_at_models},
    reply::Reply,
    transcript::model_change,
    ui::Notice,
};

impl Actor {
    pub(super) async fn set_model(&mut self, params: SetModelParams, reply: Reply) {
        let result = self.try_set_model(params).await;
        reply.result(&self.feed, result);
    }

    async fn try_set_model(&mut self, params: SetModelParams) -> Result<Model, Failure> {
        self.refresh_models().await;
        let name = |name: Option<String>| name.unwrap_or_else(|| "undefined".into());
        let (provider, id) = (name(params.provider), name(params.model_id));
        let (found, reason) = {
            let (provider, id) = (provider.clone(), id.clone());
            let look =
                move |usable_models: &UsableModels<'_>| match usable_models.find_available(&provider, &id) {
                    Some(model) => (Some(model), None),
                    None => (None, usable_models.why_not(&provider, &id)),
                };
            self.context.with_usable_models(look).await
        };
        let model = found.ok_or_else(|| {
            let hint = "get_available_models lists the models that credentials are configured for.";
            let hint = reason.map_or_else(|| hint.to_owned(), |reason| format!("{reason} {hint}"));
            Failure::new(ErrorCode::NoModel, format!("Model not found: {provider}/{id}")).hint(hint)
        })?;
        let pinned = self.chooser.pinned(&model);
        self.use_model(Arc::clone(&model), pinned).await?;
        Ok((*model).clone())
    }

    pub(super) async fn cycle_model(&mut self, reply: Reply) {
        let result = self.try_cycle_model().await;
        reply.result(&self.feed, result);
    }

    async fn try_cycle_model(&mut self) -> Result<Option<CycledModel>, Failure> {
        self.refresh_models().await;
        let (scope, current) = (self.chooser.scope().to_vec(), self.chooser.current().model);
        let next = self
            .context
            .with_usable_models(move |usable_models| cycle(usable_models, &scope, &current))
            .await;
        let Some(next) = next else { return Ok(None) };
        self.use_model(Arc::clone(&next.model), next.level).await?;
        Ok(Some(CycledModel {
            model: (*next.model).clone(),
            thinking_level: self.chooser.current().level,
            is_scoped: next.is_scoped,
        }))
    }

    pub(super) async fn get_available_models(&mut self, reply: Reply) {
        self.refresh_models().await;
        let models = self.context.with_usable_models(|usable_models| usable_models.available()).await;
        reply.data(&self.feed, Models { models: models.iter().map(|model| (**model).clone()).collect() });
    }

    pub(super) async fn set_thinking_level(&mut self, params: &SetThinkingLevelParams, reply: Reply) {
        let outcome = self.use_level(ThinkingLevel::from_name(&params.level)).await;
        reply.outcome(&self.feed, outcome);
    }

    pub(super) async fn cycle_thinking_level(&mut self, reply: Reply) {
        let result = match self.chooser.next_level() {
            None => Ok(None),
            Some(level) => self.use_level(Some(level)).await.map(|()| Some(CycledLevel { level })),
        };
        reply.result(&self.feed, result);
    }

    /// Changes the model, and the level to what fits it; on record first.
    pub(super) async fn use_model(
        &mut self,
        model: Arc<Model>,
        pinned: Option<ThinkingLevel>,
    ) -> Result<(), Failure> {
        self.journal.append(&model_change(&model)).await?;
        // A chosen model replaces a substitute at once.
        self.chooser.end_substitution();
        self.context.fallbacks.end_suspension(&model.name());
        let before = self.chooser.current().level;
        let level = level_after_switch(&model, pinned, &self.context.settings, before);
        let previous = self.chooser.current().model;
        self.chooser.set(Choice { model: Arc::clone(&model), level: before });
        self.change_level(level).await?;
        if previous.name() != model.name() {
            let previous = (!previous.is_placeholder()).then_some(&*previous);
            let mut event = json!({"type": "model_select", "model": &*model, "source": "set"});
            if let Some(previous) = previous {
                event["previousModel"] = json!(previous);
            }
            self.notify_extensions(EventKind::ModelSelect, event);
        }
        Ok(())
    }

    /// Goes over to what a session begins with, where it has not begun.
    pub(super) async fn begin_with(&mut self, choice: Choice) -> Result<(), Failure> {
        let current = self.chooser.current();
        if (&current.model.provider, &current.model.id) != (&choice.model.provider, &choice.model.id) {
            self.journal.append(&model_change(&choice.model)).await?;
        }
        self.chooser.set(Choice { model: choice.model, level: current.level });
        self.change_level(choice.level).await
    }

    /// Changes the level to what the model has for a wish; `None` stands for a name that is no level.
    pub(super) async fn use_level(&mut self, wish: Option<ThinkingLevel>) -> Result<(), Failure> {
        let level = self.chooser.current().model.clamp_thinking(wish);
        self.change_level(level).await
    }

    async fn change_level(&mut self, level: ThinkingLevel) -> Result<(), Failure> {
        let current = self.chooser.current();
        if current.level == level {
            return Ok(());
        }
        let body = EntryBody::ThinkingLevelChange { thinking_level: level.as_str().into() };
        self.journal.append(&body).await?;
        let previous = current.level;
        self.chooser.set(Choice { level, ..current });
        self.publish(&Event::from(ThinkingLevelChanged { level }));
        let event = json!({"type": "thinking_level_select", "level": level, "previousLevel": previous});
        self.notify_extensions(EventKind::ThinkingLevelSelect, event);
        Ok(())
    }

    /// Reads models.json again where it has changed, unless a run or a compaction is under way. A file that cannot be
    /// read changes nothing, and the user is told once.
    pub(super) async fn refresh_models(&mut self) {
        if self.run.is_active() || self.compacting.is_active() {
            return;
        }
        let (context, options, before) =
            (Arc::clone(&self.context), Arc::clone(self.trust.options()), self.models_file.stamp);
        let looked =
            match self.context.agent_files.run(move || look_at_models(&context, &options, before)).await {
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
            ModelsChange::Other(remodelled) => Box::pin(self.use_models(*remodelled)).await,
        }
    }

    pub(super) async fn use_models(&mut self, NewModels { mut context, scope }: NewModels) {
        let current = self.chooser.current();
        let (provider, id) = (&current.model.provider, &current.model.id);
        let now = context.models.find(provider, id);
        // One that only its provider knows was never there.
        let was_there = self.context.models.find(provider, id).is_some()
            || self.context.removed_model.as_ref() == Some(&current.model.name());
        if now.is_none() && was_there {
            context.removed_model = Some(current.model.name());
        }
        self.context = context.shared();
        self.tools.replace_own(&self.context.tools);
        self.tell_tools();
        self.chooser.set_scope(scope);
        let Some(model) = now else { return };
        let level = model.clamp_thinking(Some(current.level));
        self.chooser.renew(model);
        if let Err(failure) = self.change_level(level).await {
            tracing::warn!(error = failure.error, "the level that the changed model has could not be stored");
        }
    }

    /// Another model takes the place of the chosen one until the run settles; on record first.
    pub(super) async fn fall_back(&mut self, substitute: Substitute) -> Result<(), Failure> {
        let Substitute { choice, event } = substitute;
        self.journal.append(&model_change(&choice.model)).await?;
        self.chooser.substitute(choice);
        self.publish_to_introduced(&event.into());
        Ok(())
    }

    /// The chosen model is in its place again.
    pub(super) async fn end_fallback(&mut self) {
        if self.chooser.end_substitution()
            && let Err(error) = self.journal.append(&model_change(&self.chooser.current().model)).await
        {
            // The choice in memory is right; the next write reports the same error.
            tracing::error!(%error, "the return to the chosen model could not be recorded");
        }
    }

    pub(super) async fn set_fallback_models(&mut self, params: SetFallbackModelsParams, reply: Reply) {
        let names: Vec<String> = params.models.iter().map(|name| name.trim().to_owned()).collect();
        if let Some(failure) = check_names(&names) {
            return reply.fail(&self.feed, failure);
        }
        self.context.fallbacks.choose(Some(names.into()));
        self.get_fallback_models(reply).await;
    }

    pub(super) async fn get_fallback_models(&self, reply: Reply) {
        let names = self.context.fallbacks.names();
        let models = names.to_vec();
        let ModelScope { models: found, warnings } = self
            .context
            .with_usable_models(move |usable_models| resolve_fallbacks(usable_models, &names))
            .await;
        let resolved = found.into_iter().map(|ScopedModel { model, level }| FallbackModel {
            provider: model.provider.clone(),
            id: model.id.clone(),
            thinking_level: level,
        });
        reply.data(&self.feed, FallbackModels { models, resolved: resolved.collect(), warnings });
    }
}
