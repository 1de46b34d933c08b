//! Asking the user whether the project is trusted, and taking over the settings that trust brings.

use std::sync::Arc;

use agentd_protocol::ui::NotifyType;

use super::session_actor::Actor;
use crate::{
    context::SessionContext,
    models::Choice,
    open::NewSettings,
    run::RunMessage,
    trust::{IN_USE, TrustQuestion, TrustState},
    ui::{Asker, Notice},
};

impl Actor {
    /// Asks the user, unless that is decided or was asked before.
    pub(super) fn ask_trust(&mut self) {
        if self.trust.state != TrustState::Open || self.closing {
            return;
        }
        self.trust.state = TrustState::Asked;
        let asking = TrustQuestion {
            ui: self.ui(),
            context: Arc::clone(&self.context),
            options: Arc::clone(&self.trust.options),
        };
        let to_actor = self.to_actor.clone();
        self.tasks.spawn(async move {
            if let Some(reconfigured) = asking.ask().await {
                // Without the session nobody needs them.
                let _ = to_actor.send(RunMessage::Trusted(Box::new(reconfigured))).await;
            }
        });
    }

    /// Asks those who are there already, where trust that they gave does not hold any more. Others are asked when they come.
    pub(super) fn ask_trust_again(&mut self) {
        if std::mem::take(&mut self.trust.is_withdrawn) && self.ui().is_there(Asker::Daemon) {
            self.ask_trust();
        }
    }

    /// The user trusts the project: its settings count from the next run on.
    pub(super) async fn on_trusted(&mut self, reconfigured: Box<NewSettings>) {
        self.trust.state = TrustState::Given;
        self.trust.next = Some(reconfigured);
        if !self.run.is_active() {
            self.use_settings().await;
        }
    }

    /// Takes over the settings that trust has brought, if there are any. To be called while there is no run.
    pub(super) async fn use_settings(&mut self) {
        if let Some(next) = self.trust.next.take() {
            // On the heap: the end of each run has room for this future.
            Box::pin(self.use_new_settings(*next)).await;
        }
    }

    async fn use_new_settings(&mut self, next: NewSettings) {
        let beginning = self.take_settings(next).await;
        // A choice that was made by hand since stays.
        let is_new =
            !self.has_moved && self.journal.messages().is_empty() && self.chooser.is_at_the_beginning();
        if is_new && let Err(failure) = self.begin_with(beginning).await {
            tracing::warn!(error = failure.error, "the project's choice of a model could not be stored");
        }
        self.tell_user(Notice::notify(IN_USE, NotifyType::Info));
        Box::pin(self.tell_commands()).await;
    }

    /// Takes new settings over; returns the choice that a session would begin with. To be called while there is no run.
    pub(super) async fn take_settings(&mut self, next: NewSettings) -> Choice {
        let NewSettings { context, permissions, trusted_files, of_resources, scope, modes, beginning } = next;
        self.trust.files = trusted_files;
        for diagnostic in context.diagnostics.iter().chain(&of_resources) {
            tracing::warn!("{diagnostic}");
        }
        self.interrupt_mode = context.settings.interrupt_mode.unwrap_or_default();
        self.models_file.seen(context.models_stamp);
        self.take_context(context);
        let gate = Arc::clone(&self.context.permissions);
        match tokio::task::spawn_blocking(move || gate.go_on_with(permissions)).await {
            Ok(Ok(())) => {}
            // The rules were compiled before, so that this is no fault of theirs. The permissions stay as they were.
            Ok(Err(error)) => tracing::error!(%error, "the project's permissions do not count"),
            Err(error) => tracing::error!(%error, "the project's permissions do not count"),
        }
        self.queues.set_modes(modes);
        self.chooser.set_scope(scope);
        beginning
    }

    /// Goes on in other surroundings, with the tools that they bring.
    pub(super) fn take_context(&mut self, context: SessionContext) {
        let (mcp, hooks) = (self.context.mcp.clone(), self.context.hooks.clone());
        self.context = context.shared();
        self.start_mcp(mcp.as_ref());
        self.change_hooks(hooks.as_ref());
        self.register_file_tools();
        self.tools.replace_own(&self.context.tools);
        self.tell_tools();
    }
}
