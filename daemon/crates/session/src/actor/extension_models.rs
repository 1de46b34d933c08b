//! Calls of extensions about models.

use std::sync::Arc;

use agentd_extensions::SessionCall;
use serde_json::{Value, json};

use super::session_actor::Actor;
use crate::extensions::{ExtensionRequest, ask_model, model_auth};

impl Actor {
    /// Answers a call about models: in a task, where that takes a model or a file.
    pub(super) async fn on_model_call(&mut self, call: SessionCall) {
        let SessionCall { method, params, responder, .. } = call;
        let context = Arc::clone(&self.context);
        match method.as_str() {
            "model.stream" => {
                let actor = self.extension_requests.0.clone();
                self.context.services.tasks.spawn(async move {
                    let answer = ask_model(&context, params, &responder).await;
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
                self.tell_extensions();
                responder.send(&Ok(json!({"aborted": false, "errors": {}})));
            }
            other => {
                let what = match other {
                    "model.classify" => "classify",
                    "model.images" => "generate images with",
                    other => other,
                };
                let provider = params["model"]["provider"].as_str().unwrap_or("unknown");
                let text = format!("agentd cannot {what} models of its own ({provider}).");
                responder.send(&Err::<Value, _>(agentd_extensions::HostFailure::new("unsupported", text)));
            }
        }
    }
}
