//! The user of a session, as the tool `ask` reaches them. The tools are made before the session's clients can be asked.

use std::sync::{Arc, OnceLock};

use agentd_tools::{AskUser, UserAnswer};
use futures::{FutureExt as _, future::BoxFuture};
use tokio_util::sync::CancellationToken;

use crate::ui::{Asker, Dialog, DialogAnswer, Ui};

/// The user of a session. Cheap to clone; all clones are the same user.
#[derive(Clone, Default)]
pub(crate) struct SessionUser(Arc<OnceLock<Ui>>);

impl SessionUser {
    /// Says how the clients are reached. Only the first time counts.
    pub(crate) fn is_reached_by(&self, ui: Ui) {
        // A session has one way to its clients.
        let _ = self.0.set(ui);
    }

    async fn ask(&self, dialog: Dialog, cancel: &CancellationToken) -> UserAnswer {
        let Some(ui) = self.0.get() else { return UserAnswer::Nobody };
        // Clients that did not say hello are asked, too: they know such dialogs from extensions.
        match ui.ask_whom(Asker::Extension, dialog, cancel).await {
            (DialogAnswer::Value(text), _) => UserAnswer::Text(text),
            (_, Some(_)) => UserAnswer::Declined,
            (_, None) => UserAnswer::Nobody,
        }
    }
}

impl AskUser for SessionUser {
    fn choose<'a>(
        &'a self,
        title: String,
        options: Vec<String>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, UserAnswer> {
        self.ask(Dialog::select(title, options), cancel).boxed()
    }

    fn type_in<'a>(&'a self, title: String, cancel: &'a CancellationToken) -> BoxFuture<'a, UserAnswer> {
        self.ask(Dialog::input(title, None), cancel).boxed()
    }
}
