//! What a session begins with: model and level, and the entries that say so.

use agentd_auth::Auth;
use agentd_config::models::{
    ModelRegistry, Offer, RestoredChoice, Scope, ScopedModel, Startup, StartupRequest, choose_startup,
    resolve_fallbacks, resolve_scope,
};
use agentd_protocol::{
    entry::EntryBody,
    model::ThinkingLevel,
    resources::{Diagnostic, DiagnosticKind},
    settings::Settings,
};
use agentd_store::{Context, NewEntry, OpenSession, StoreError};

use super::OpenError;
use crate::{SessionOptions, choice::Choice, clock::now_ms, shared::Services};

/// What the first choice of model and level depends on, besides the options.
pub(super) struct ChoiceSources<'a> {
    pub(super) services: &'a Services,
    pub(super) models: &'a ModelRegistry,
    pub(super) auth: &'a Auth,
    pub(super) settings: &'a Settings,
}

/// The first choice.
pub(super) struct Chosen {
    pub(super) choice: Choice,
    /// Whether the options ask for a level.
    pub(super) level_is_asked: bool,
    /// The models to go through.
    pub(super) scope: Vec<ScopedModel>,
}

impl ChoiceSources<'_> {
    pub(super) fn choose(
        &self,
        options: &SessionOptions,
        restored: Option<&RestoredChoice>,
        found: &mut Vec<Diagnostic>,
    ) -> Result<Chosen, OpenError> {
        let Self { services, models, auth, settings } = *self;
        let apis: Vec<&str> = services.providers.apis().collect();
        let has_auth = |provider: &str| services.has_auth(auth, provider);
        let offer = Offer { registry: models, apis: &apis, has_auth: &has_auth };
        let patterns = options.models.as_deref().or(settings.enabled_models.as_deref()).unwrap_or_default();
        let Scope { models: scope, warnings: of_scope } = resolve_scope(&offer, patterns);
        let of_models = |text| Diagnostic::warning(DiagnosticKind::Models, text);
        found.extend(of_scope.into_iter().map(of_models));
        let names = options.fallback_models.as_deref().or(settings.fallback_models.as_deref());
        let Scope { warnings: of_fallbacks, .. } = resolve_fallbacks(&offer, names.unwrap_or_default());
        found.extend(of_fallbacks.into_iter().map(of_models));
        let request = StartupRequest {
            provider: options.provider.as_deref(),
            model: options.model.as_deref(),
            thinking: options.thinking,
            scope: &scope,
            session: restored,
            settings,
        };
        let Startup { model, level, level_is_asked, warnings: of_choice } = choose_startup(&offer, &request)
            .map_err(|error| OpenError::Model {
                error,
                load_error: models.load_error().map(str::to_owned),
            })?;
        found.extend(of_choice.into_iter().map(of_models));
        Ok(Chosen { choice: Choice { model, level }, level_is_asked, scope })
    }
}

/// The model and level that an existing session was last used with.
pub(super) fn restored_choice(session: &OpenSession) -> RestoredChoice {
    let context = Context::new(&session.tree);
    RestoredChoice {
        model: context.model().map(|model| (model.provider.clone(), model.model_id.clone())),
        level: context.thinking_level().and_then(ThinkingLevel::from_name),
    }
}

/// Puts on record what a session begins with. An existing one only gets what it lacks.
pub(super) fn record_start(
    session: &mut OpenSession,
    Choice { model, level }: &Choice,
    level_is_asked: bool,
    name: Option<&str>,
    restored: Option<&RestoredChoice>,
) -> Result<(), StoreError> {
    let has_messages = session.tree.entries().iter().any(|entry| entry.message().is_some());
    let mut entries = Vec::new();
    if let Some(name) = name.map(str::trim).filter(|name| !name.is_empty()) {
        entries.push(NewEntry::session_info(name));
    }
    let level_entry = EntryBody::ThinkingLevelChange { thinking_level: level.as_str().into() };
    match restored {
        None => {
            if !model.is_placeholder() {
                let (provider, model_id) = (model.provider.clone(), model.id.clone());
                entries.push(NewEntry::from_body(&EntryBody::ModelChange { provider, model_id })?);
            }
            entries.push(NewEntry::from_body(&level_entry)?);
        }
        // The model goes on record with the next answer; a level has no other place.
        Some(restored)
            if (restored.level.is_none() && has_messages)
                || (level_is_asked && model.reasoning && restored.level != Some(*level)) =>
        {
            entries.push(NewEntry::from_body(&level_entry)?);
        }
        Some(_) => {}
    }
    entries.into_iter().try_for_each(|entry| append(session, entry))
}

pub(super) fn append(session: &mut OpenSession, entry: NewEntry) -> Result<(), StoreError> {
    let entry = session.tree.prepare(entry, now_ms());
    session.writer.append(&entry)?;
    session.tree.push(entry);
    Ok(())
}
