//! Calls of extensions about models.

use std::sync::{Arc, atomic::Ordering};

use agentd_agent::HostError;
use agentd_extensions::{HostFailure, NonChat, SessionCall};
use agentd_protocol::{entry::EntryBody, event::EntryAppended};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::session_actor::Actor;
use crate::{
    extensions::{
        ExtensionRequest, STATE_ENTRY, ask_model, is_virtual, model_auth, modify_models, run_non_chat,
    },
    open::with_models,
};

impl Actor {
    /// The models as the extensions have them now.
    pub(super) async fn use_extension_models(&mut self) {
        if let Some(link) = &self.extension_link {
            // Before the look: what comes after it is another change.
            link.models_due.store(false, Ordering::Release);
        }
        let (context, options) = (Arc::clone(&self.context), Arc::clone(self.trust.options()));
        let stamp = self.context.models_stamp;
        let made = spawn_blocking(move || {
            let models = Arc::clone(context.models.base());
            with_models(&context, &options, models, stamp)
        });
        match made.await {
            Ok(made) => self.use_models(made).await,
            Err(error) => tracing::error!(%error, "the models of extensions could not be looked at"),
        }
    }

    /// Has extensions change the lists of their models for the logins that are stored, in a task.
    pub(super) fn modify_extension_models(&mut self) {
        let Some(extensions) = self.context.extensions.clone() else { return };
        if extensions.modifying_providers().is_empty() {
            return;
        }
        let (auth, models) = (self.context.auth.clone(), Arc::clone(self.context.models.base()));
        let actor = self.extension_requests.0.clone();
        let cancel = self.server_prompts.cancel.clone();
        self.context.services.tasks.spawn(async move {
            let modifying = modify_models(&extensions, &auth, &models);
            if cancel.run_until_cancelled(modifying).await == Some(true) {
                // Without the actor nobody has models.
                let _ = actor.send(ExtensionRequest::ModelsModified);
            }
        });
    }

    /// What the router of the chosen model has kept on this branch.
    pub(super) fn route_state(&self) -> Option<Value> {
        let model = self.chooser.in_use().model;
        if !is_virtual(&model) {
            return None;
        }
        let branch = self.journal.tree().branch();
        branch.into_iter().rev().find_map(|entry| {
            let mut entry: Value = serde_json::from_str(entry.json().ok()?.text()).ok()?;
            let data = (entry["customType"] == STATE_ENTRY).then(|| entry["data"].take())?;
            let is_own = data["provider"] == model.provider.as_str() && data["modelId"] == model.id.as_str();
            is_own.then(|| data["state"].clone())
        })
    }

    /// Stores what a router keeps.
    pub(super) async fn keep_route(&mut self, data: Value) -> Result<(), HostError> {
        let failed = |error: String| HostError::NotStored(error);
        let body = EntryBody::Custom { custom_type: STATE_ENTRY.to_owned(), data: Some(data) };
        self.journal.append(&body).await.map_err(|failure| failed(failure.error))?;
        if let Some(entry) = self.journal.tree().leaf() {
            let entry = entry.json().map_err(|error| failed(error.to_string()))?;
            self.publish(&EntryAppended { entry }.into());
        }
        Ok(())
    }

    /// Answers a call about models: in a task, where that takes a model or a file.
    pub(super) async fn on_model_call(&mut self, call: SessionCall) {
        let SessionCall { method, params, responder, is_in_stream, .. } = call;
        let context = Arc::clone(&self.context);
        match method.as_str() {
            "model.stream" => {
                let actor = self.extension_requests.0.clone();
                self.context.services.tasks.spawn(async move {
                    let answer = ask_model(&context, params, (&responder, is_in_stream)).await;
                    // On record before the extension goes on; without the actor there is no record.
                    let _ = actor.send(ExtensionRequest::Spent);
                    responder.send(&answer);
                });
            }
            "model.auth" => {
                self.context.services.tasks.spawn(async move {
                    let found = responder
                        .cancelled()
                        .clone()
                        .run_until_cancelled(model_auth(&context, &params))
                        .await;
                    let aborted = || json!({"ok": false, "error": "aborted"});
                    responder.send(&Ok(found.unwrap_or_else(aborted)));
                });
            }
            "model.refresh" => {
                self.refresh_models().await;
                let Some(extensions) = context.extensions.clone() else { return };
                let actor = self.extension_requests.0.clone();
                let network = params["allowNetwork"] != false;
                self.context.services.tasks.spawn(async move {
                    let (mut errors, mut is_changed) = (serde_json::Map::new(), false);
                    for provider in extensions.providers() {
                        let asked = json!({"allowNetwork": network, "force": params["force"] == true});
                        match extensions.refresh_provider(&provider.id, &asked).await {
                            Ok(found) => is_changed |= found.is_some(),
                            Err(error) => drop(errors.insert(provider.id, error.into())),
                        }
                    }
                    if is_changed {
                        // In order: the answer is read after the models have changed.
                        let _ = actor.send(ExtensionRequest::ModelsChanged);
                    }
                    responder.send(&Ok(json!({"aborted": false, "errors": errors})));
                });
            }
            "model.classify" | "model.images" => {
                let kind = if method == "model.images" { NonChat::Image } else { NonChat::Classifier };
                self.context.services.tasks.spawn(async move {
                    let asked = run_non_chat(&context, kind, &params);
                    let answer = responder.cancelled().clone().run_until_cancelled(asked).await;
                    let aborted = || Err(HostFailure::new("aborted", "The request was aborted"));
                    responder.send(&answer.unwrap_or_else(aborted));
                });
            }
            other => {
                let text = format!("agentd knows no call {other}");
                responder.send(&Err::<Value, _>(HostFailure::new("unsupported", text)));
            }
        }
    }
}
