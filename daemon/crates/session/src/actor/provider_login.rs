//! Logins with providers of extensions.

use tokio::sync::oneshot;

use super::session_actor::Actor;
use crate::{
    extensions::ExtensionRequest,
    login_request::{LogIn, LogInAnswer},
    provider_login::LoginSurroundings,
};

impl Actor {
    /// Logs in, where an extension does that, once the extensions are there.
    pub(super) fn log_in(&mut self, login: LogIn) {
        let aborted = self.server_prompts.cancel.clone();
        if self.pending_start.is_some() {
            let (started, requests) = (self.extensions_started.clone(), self.extension_requests.0.clone());
            self.tasks.spawn(async move {
                if aborted.run_until_cancelled(started.cancelled()).await.is_some() {
                    // Without the actor the client hears that nobody logs in.
                    let _ = requests.send(ExtensionRequest::LogIn(Box::new(login)));
                }
            });
            return;
        }
        let extensions = self.context.extensions.clone();
        let providers = extensions.as_ref().map(|all| all.logins().providers()).unwrap_or_default();
        let Some(extensions) = extensions.filter(|_| providers.contains(&login.provider)) else {
            // The client may have left.
            let _ = login.answer.send(LogInAnswer::NotOfExtensions(providers));
            return;
        };
        let with = LoginSurroundings {
            context: self.context.clone(),
            extensions,
            ui: self.ui(),
            requests: self.extension_requests.0.clone(),
            aborted,
        };
        self.tasks.spawn(login.run(with));
    }

    /// A login is stored: counts the models of the provider that are on offer now.
    pub(super) async fn on_logged_in(&mut self, provider: String, counted: oneshot::Sender<u64>) {
        self.use_extension_models().await;
        let count = self.context.with_usable_models(move |usable| {
            usable.available().iter().filter(|model| model.provider == provider).count() as u64
        });
        // Who waits may have given up.
        let _ = counted.send(count.await);
    }
}
