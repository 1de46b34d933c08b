//! The commands about models and thinking levels.

use std::sync::Arc;

use agentd_config::models::{UsableModels, cycle, level_after_switch};
use agentd_protocol::{
    command::{CycledLevel, CycledModel, Models, SetModelParams, SetThinkingLevelParams},
    entry::EntryBody,
    error::{ErrorCode, Failure},
    event::{Event, ThinkingLevelChanged},
    model::{Model, ThinkingLevel},
};

use crate::{actor::Actor, choice::Choice, journal::model_change, reply::Reply};

impl Actor {
    pub(crate) async fn set_model(&mut self, params: SetModelParams, reply: Reply) {
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

    pub(crate) async fn cycle_model(&mut self, reply: Reply) {
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

    pub(crate) async fn get_available_models(&mut self, reply: Reply) {
        self.refresh_models().await;
        let models = self.context.with_usable_models(|usable_models| usable_models.available()).await;
        reply.data(&self.feed, Models { models: models.iter().map(|model| (**model).clone()).collect() });
    }

    pub(crate) async fn set_thinking_level(&mut self, params: &SetThinkingLevelParams, reply: Reply) {
        let outcome = self.use_level(ThinkingLevel::from_name(&params.level)).await;
        reply.outcome(&self.feed, outcome);
    }

    pub(crate) async fn cycle_thinking_level(&mut self, reply: Reply) {
        let result = match self.chooser.next_level() {
            None => Ok(None),
            Some(level) => self.use_level(Some(level)).await.map(|()| Some(CycledLevel { level })),
        };
        reply.result(&self.feed, result);
    }

    /// Changes the model, and the level to what fits it; on record first.
    pub(crate) async fn use_model(
        &mut self,
        model: Arc<Model>,
        pinned: Option<ThinkingLevel>,
    ) -> Result<(), Failure> {
        self.journal.append(&model_change(&model)).await?;
        // Who chooses a model wants that one, now.
        self.chooser.end_substitution();
        self.context.fallbacks.wake(&model.name());
        let before = self.chooser.current().level;
        let level = level_after_switch(&model, pinned, &self.context.settings, before);
        self.chooser.set(Choice { model, level: before });
        self.change_level(level).await
    }

    /// Goes over to what a session begins with, where it has not begun.
    pub(crate) async fn begin_with(&mut self, choice: Choice) -> Result<(), Failure> {
        let current = self.chooser.current();
        if (&current.model.provider, &current.model.id) != (&choice.model.provider, &choice.model.id) {
            self.journal.append(&model_change(&choice.model)).await?;
        }
        self.chooser.set(Choice { model: choice.model, level: current.level });
        self.change_level(choice.level).await
    }

    /// Changes the level to what the model has for a wish; `None` stands for a name that is no level.
    pub(crate) async fn use_level(&mut self, wish: Option<ThinkingLevel>) -> Result<(), Failure> {
        let level = self.chooser.current().model.clamp_thinking(wish);
        self.change_level(level).await
    }

    pub(crate) async fn change_level(&mut self, level: ThinkingLevel) -> Result<(), Failure> {
        let current = self.chooser.current();
        if current.level == level {
            return Ok(());
        }
        let body = EntryBody::ThinkingLevelChange { thinking_level: level.as_str().into() };
        self.journal.append(&body).await?;
        self.chooser.set(Choice { level, ..current });
        self.publish(&Event::from(ThinkingLevelChanged { level }));
        Ok(())
    }
}
