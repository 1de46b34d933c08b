//! The model that a session begins with: chosen once its extensions are loaded, which may bring models of their own.

use std::{path::PathBuf, sync::Arc};

use agentd_auth::scrub_diagnostic;
use agentd_config::{
    models::{RestoredChoice, VIRTUAL_API},
    settings::place_of,
};
use agentd_process::ArtifactFolder;
use agentd_protocol::{
    entry::EntryBody,
    resources::{Diagnostic, DiagnosticKind},
    subagent::SUBAGENT_SESSION_ENTRY,
};
use agentd_store::{EntryKind, NewEntry, OpenSession};

use super::{
    error::OpenError,
    initial_choice::{ChoiceSources, InitialChoice, append, record_start},
};
use crate::{
    context::SessionContext,
    extensions::login_renewer,
    models::{Chooser, extend_models},
    options::SessionOptions,
};

/// A session whose model is not chosen yet.
pub(crate) struct UnbegunSession {
    pub(super) session: OpenSession,
    /// The choice of before, for a session that has a past.
    pub(super) restored: Option<RestoredChoice>,
    /// Whether the settings of the project count.
    pub(super) trusted: bool,
    /// The provider that a key of the options was for, before the session was unloaded.
    pub(super) key_provider: Option<String>,
    pub(super) unfinished_copy: Option<UnfinishedCopy>,
    /// The place of what is found among the diagnostics.
    pub(super) found_at: usize,
}

/// The file of a copied session that is not prepared yet. Dropped before [`Self::keep`], it removes the file.
pub(super) struct UnfinishedCopy(Option<PathBuf>);

impl UnfinishedCopy {
    /// `None` for a copy that has no file yet.
    pub(super) fn of(session: &OpenSession) -> Option<Self> {
        let file = session.writer.path().filter(|_| session.writer.is_on_disk())?;
        Some(Self(Some(file.to_owned())))
    }

    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for UnfinishedCopy {
    fn drop(&mut self) {
        if let Some(file) = &self.0
            && let Err(error) =
                ArtifactFolder::beside(file).remove().and_then(|()| std::fs::remove_file(file))
        {
            tracing::warn!(%error, path = %file.display(), "cannot remove a copy that is of no use");
        }
    }
}

/// A session with its model.
pub(crate) struct BegunSession {
    pub(crate) context: SessionContext,
    pub(crate) session: OpenSession,
    pub(crate) chooser: Chooser,
}

/// Chooses the first model and level of a session, and puts them on record. Reads and writes files; blocks.
///
/// # Errors
/// The model that is asked for is not there; the copy that the session was made from is removed then.
pub(crate) fn begin(
    mut context: SessionContext,
    options: &SessionOptions,
    unbegun: UnbegunSession,
) -> Result<BegunSession, OpenError> {
    let UnbegunSession { mut session, restored, trusted, key_provider, unfinished_copy, found_at } = unbegun;
    let mut found = Vec::new();
    let (models, unusable) = extend_models(&context.models, context.extensions.as_ref());
    if !Arc::ptr_eq(&models, &context.models) {
        let renewer = login_renewer(context.extensions.as_ref());
        context.auth = context.auth.with_registry(Arc::clone(&models)).with_login_renewer(renewer);
        context.models = models;
    }
    found.extend(
        unusable.into_iter().map(|it| {
            Diagnostic::warning(DiagnosticKind::Extension, format!("{}: {}", it.extension, it.error))
        }),
    );
    let restored = restored.map(|restored| with_virtual_model(restored, &context, &session));
    let (agent_dir, folders) = (&context.agent_dir, &context.prompt.folders);
    let place = |setting: (&str, Option<&str>)| place_of(agent_dir, folders, trusted, setting);
    let sources = ChoiceSources {
        services: &context.services,
        models: &context.models,
        auth: &context.auth,
        settings: &context.settings,
        extensions: context.extensions.as_ref(),
        place: &place,
    };
    let InitialChoice { choice, level_is_asked, scope } =
        sources.choose(options, restored.as_ref(), &mut found)?;
    if let Some(key) = &options.api_key {
        let provider = key_provider.unwrap_or_else(|| choice.model.provider.clone());
        context.auth.set_override(provider.clone(), key.clone());
        context.key_provider = Some(provider);
    }
    let name = options.name.as_deref();
    if let Err(error) = record_start(&mut session, &choice, level_is_asked, name, restored.as_ref()) {
        // A session on a full disk can still be read.
        let text = format!("what the session goes on with could not be stored: {error}");
        found.push(Diagnostic::warning(DiagnosticKind::Session, text));
    }
    if let Some(own) =
        options.subagent.as_ref().filter(|own| restored.is_none() && own.of_extension.is_none())
    {
        let data = serde_json::json!({ "id": own.id(), "agent": own.agent() });
        let body = EntryBody::Custom { custom_type: SUBAGENT_SESSION_ENTRY.to_owned(), data: Some(data) };
        let stored = NewEntry::from_body(&body).and_then(|entry| append(&mut session, entry));
        if let Err(error) = stored {
            let text = format!("whose session this is could not be stored: {error}");
            found.push(Diagnostic::warning(DiagnosticKind::Session, text));
        }
    }
    let at = found_at.min(context.diagnostics.len());
    context.diagnostics.splice(at..at, found.into_iter().map(scrub_diagnostic));
    if let Some(copy) = unfinished_copy {
        copy.keep();
    }
    let chooser = Chooser::new(choice, scope).shown_in(context.current_model.clone());
    Ok(BegunSession { context, session, chooser })
}

/// A virtual model stays chosen until another one is: answers name the models that it was routed to.
fn with_virtual_model(
    restored: RestoredChoice,
    context: &SessionContext,
    session: &OpenSession,
) -> RestoredChoice {
    let branch = session.tree.branch();
    let change = branch.iter().rev().find(|entry| entry.kind() == EntryKind::ModelChange);
    let Some(change) = change.and_then(|entry| serde_json::to_value(entry.json().ok()?).ok()) else {
        return restored;
    };
    let (Some(provider), Some(id)) = (change["provider"].as_str(), change["modelId"].as_str()) else {
        return restored;
    };
    match context.models.find(provider, id) {
        Some(model) if model.api == VIRTUAL_API => {
            RestoredChoice { model: Some((provider.to_owned(), id.to_owned())), ..restored }
        }
        _ => restored,
    }
}
