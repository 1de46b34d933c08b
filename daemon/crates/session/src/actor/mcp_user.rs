//! The user of a session, as its MCP servers ask them.

use std::time::Duration;

use agentd_mcp::{UserAnswer, UserInput};
use agentd_protocol::terminal_text::visible;
use tokio_util::sync::CancellationToken;

use crate::ui::{Asker, Dialog, DialogAnswer, Ui};

/// The time for an answer. A call waits for it.
const ANSWER_WAIT: Duration = Duration::from_secs(10 * 60);

/// Asks through the dialogs of the session, which all clients have that answer extensions.
pub(super) struct McpUser {
    ui: Ui,
}

impl McpUser {
    pub(super) fn new(ui: Ui) -> Self {
        Self { ui }
    }

    /// Asks in a task of its own, which takes the dialog back when nobody waits for the answer any more.
    fn ask(&self, dialog: Dialog) -> UserAnswer<'_> {
        Box::pin(async move {
            let cancel = CancellationToken::new();
            let _withdrawn = cancel.clone().drop_guard();
            let ui = self.ui.clone();
            let dialog = dialog.within(ANSWER_WAIT);
            let asked = tokio::spawn(async move { ui.ask(Asker::Extension, dialog, &cancel).await });
            match asked.await {
                Ok(DialogAnswer::Value(text)) => Some(text),
                _ => None,
            }
        })
    }
}

impl UserInput for McpUser {
    fn is_there(&self) -> bool {
        self.ui.is_there(Asker::Extension)
    }

    fn select(&self, title: String, options: Vec<String>) -> UserAnswer<'_> {
        // Texts of a server must not move the cursor of a terminal. An answer is compared with the option as the server wrote it.
        let shown: Vec<String> = options.iter().map(|option| visible(option).into_owned()).collect();
        let asked = self.ask(Dialog::select(visible(&title), shown.clone()));
        Box::pin(async move {
            let answer = asked.await?;
            let at = shown.iter().position(|option| *option == answer);
            Some(at.and_then(|at| options.get(at).cloned()).unwrap_or(answer))
        })
    }

    fn input(&self, title: String, placeholder: Option<String>) -> UserAnswer<'_> {
        let placeholder = placeholder.map(|text| visible(&text).into_owned());
        self.ask(Dialog::input(visible(&title), placeholder))
    }
}
