//! The first model and level of a session, and the entries that record them.

use std::path::PathBuf;

use agentd_auth::Auth;
use agentd_config::models::{
    DefaultModel, ModelRegistry, ModelScope, RestoredChoice, ScopedModel, StartupChoice, StartupRequest,
    UsableModels, choose_startup, default_model, resolve_fallbacks, resolve_scope,
};
use agentd_extensions::SessionExtensions;
use agentd_protocol::{
    entry::EntryBody,
    model::ThinkingLevel,
    resources::{Diagnostic, DiagnosticKind},
    settings::Settings,
};
use agentd_store::{Choices, EntryKind, NewEntry, OpenSession, Role, StoreError};

use super::error::OpenError;
use crate::{
    clock::now_ms,
    models::{Choice, spoken_apis},
    options::SessionOptions,
    services::Services,
};

/// The inputs of the first choice of model and level, besides the options.
pub(super) struct ChoiceSources<'a> {
    pub(super) services: &'a Services,
    pub(super) models: &'a ModelRegistry,
    pub(super) auth: &'a Auth,
    pub(super) settings: &'a Settings,
    pub(super) extensions: Option<&'a SessionExtensions>,
    /// The file and line of a setting, and of an item of its list.
    pub(super) place: &'a dyn Fn((&str, Option<&str>)) -> Option<(PathBuf, u32)>,
}

/// The first choice.
pub(super) struct InitialChoice {
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
    ) -> Result<InitialChoice, OpenError> {
        let Self { services, models, auth, settings, .. } = *self;
        let apis = spoken_apis(services, self.extensions);
        let apis: Vec<&str> = apis.iter().map(String::as_str).collect();
        let has_auth = |provider: &str| services.has_auth(auth, provider);
        let plan = |provider: &str| auth.available_models(provider);
        let usable_models = UsableModels { registry: models, apis: &apis, has_auth: &has_auth, plan: &plan };
        let patterns = options.models.as_deref().or(settings.enabled_models.as_deref()).unwrap_or_default();
        let ModelScope { models: scope, warnings: of_scope } = resolve_scope(&usable_models, patterns);
        let of_models = |text| Diagnostic::warning(DiagnosticKind::Models, text);
        let key = options.models.is_none().then_some("enabledModels");
        found.extend(self.of_list(key, patterns, of_scope));
        let names = options.fallback_models.as_deref().or(settings.fallback_models.as_deref());
        let names = names.unwrap_or_default();
        let ModelScope { warnings: of_fallbacks, .. } = resolve_fallbacks(&usable_models, names);
        let key = options.fallback_models.is_none().then_some("fallbackModels");
        found.extend(self.of_list(key, names, of_fallbacks));
        found.extend(self.of_default(&usable_models));
        let request = StartupRequest {
            provider: options.provider.as_deref(),
            model: options.model.as_deref(),
            thinking: options.thinking,
            scope: &scope,
            session: restored,
            settings,
        };
        let StartupChoice { model, level, level_is_asked, warnings: of_choice } =
            choose_startup(&usable_models, &request).map_err(|error| OpenError::Model {
                error,
                load_error: models.load_error().map(str::to_owned),
            })?;
        found.extend(of_choice.into_iter().map(of_models));
        Ok(InitialChoice { choice: Choice { model, level }, level_is_asked, scope })
    }
}

impl ChoiceSources<'_> {
    /// Problems with model names in a list: those of a setting (`key`), with its line, or those of a flag.
    fn of_list<'a>(
        &'a self,
        key: Option<&'a str>,
        names: &'a [String],
        warnings: Vec<String>,
    ) -> impl Iterator<Item = Diagnostic> + 'a {
        // In a replay only what was recorded is there, and the settings do not count for less because of that.
        let told = key.is_none() || self.services.providers.player().is_none();
        warnings.into_iter().filter(move |_| told).map(move |text| {
            let Some(key) = key else { return Diagnostic::warning(DiagnosticKind::Models, text) };
            let item =
                names.iter().map(|name| name.trim()).find(|name| text.contains(&format!("\"{name}\"")));
            self.at((key, item), Diagnostic::warning(DiagnosticKind::Models, format!("\"{key}\": {text}")))
        })
    }

    /// The problem with the default model of the settings.
    fn of_default(&self, usable_models: &UsableModels<'_>) -> Option<Diagnostic> {
        if self.services.providers.player().is_some() {
            return None;
        }
        let DefaultModel { problem, .. } = default_model(usable_models, self.settings);
        let problem = problem?;
        let told = Diagnostic::warning(DiagnosticKind::Models, problem.message);
        let told = match problem.hint {
            Some(hint) => told.hint(hint),
            None => told,
        };
        Some(self.at((problem.key, None), told))
    }

    fn at(&self, setting: (&str, Option<&str>), told: Diagnostic) -> Diagnostic {
        match (self.place)(setting) {
            Some((path, line)) => told.at(path).line(line),
            None => told,
        }
    }
}

/// The model and level that an existing session was last used with.
pub(super) fn restored_choice(session: &OpenSession) -> RestoredChoice {
    let Choices { model, thinking_level } = Choices::of(&session.tree);
    RestoredChoice {
        model: model.map(|model| (model.provider, model.model_id)),
        level: thinking_level.as_deref().and_then(ThinkingLevel::from_name),
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
    if session.writer.is_read_only() && name.is_none() {
        // The choice counts while the session is open.
        return Ok(());
    }
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

/// The number in the name of the last background process that the transcript knows of: names are not given twice, also
/// after the daemon was started anew.
pub(crate) fn last_background(session: &OpenSession) -> u64 {
    const MARK: &str = "\"process_id\":\"bg-";
    let results =
        session.tree.entries().iter().filter(|it| it.kind() == EntryKind::Message(Role::ToolResult));
    let highest_in = |text: &str| {
        let number = |(at, _): (usize, &str)| text[at + MARK.len()..].split('"').next()?.parse::<u64>().ok();
        text.match_indices(MARK).filter_map(number).max()
    };
    results.filter_map(|entry| entry.message()?.with_text(highest_in)).max().unwrap_or(0)
}
