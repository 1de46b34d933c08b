//! How extensions reach the session: calls and notices go to the actor, questions to the user by tasks.

use std::{
    collections::HashSet,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use agentd_extensions::{ExtensionFailure, ExtensionSession, SessionCall, SessionExtensions};
use agentd_protocol::{credentials::LoginUpdate, ui::UiMethod};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio_util::{sync::DropGuard, task::TaskTracker};

use super::{file_locks::FileLocks, prompt_spans::PromptSpans};
use crate::{
    login_request::LogIn,
    reply::Reply,
    ui::{Asker, Dialog, DialogAnswer, Ui},
};

/// A message of an extension to the actor. Small: each session has room for the first of them.
pub(crate) enum ExtensionRequest {
    /// A call that it answers.
    Call(Box<SessionCall>),
    /// A question to the user.
    Ask(Box<(Dialog, SessionCall)>),
    /// Something for the user that needs no answer.
    Show(Box<Map<String, Value>>),
    /// An extension failed.
    Failed(Box<ExtensionFailure>),
    /// The tools of extensions are others now.
    ToolsChanged,
    /// The providers or virtual models of extensions are others now.
    ModelsChanged,
    /// The models of extensions for the logins that are stored are others now.
    ModelsModified,
    /// A client logs in, after the extensions were started.
    LogIn(Box<LogIn>),
    /// A login of an extension has something for the user.
    LoginUpdate(Box<LoginUpdate>),
    /// A login with this provider is stored: the models are looked at, and those of the provider counted.
    LoggedIn(String, oneshot::Sender<u64>),
    /// A model call of an extension has ended.
    Spent,
    /// Somebody came who can answer questions, or the last one left.
    PresenceChanged,
    /// A client asked for the commands before they all were there.
    ListCommands(Box<Reply>),
    /// All that was sent before is taken.
    Reached(oneshot::Sender<()>),
    /// A host that has ended waits for the end of the turn.
    BetweenTurns(oneshot::Sender<()>),
}

/// Waits until the actor has taken what extensions sent so far, or is gone. Cancel safe.
pub(crate) async fn all_taken(requests: &mpsc::UnboundedSender<ExtensionRequest>) {
    let (reached, taken) = oneshot::channel();
    if requests.send(ExtensionRequest::Reached(reached)).is_ok() {
        // An error means that the actor is gone.
        let _ = taken.await;
    }
}

/// The way of the extensions of a session to its actor.
pub(crate) struct ExtensionLink {
    /// Unbounded: extensions wait for their calls, and a host that floods has its output stopped by its pipe.
    pub(crate) requests: mpsc::UnboundedSender<ExtensionRequest>,
    pub(crate) ui: Ui,
    pub(crate) tasks: TaskTracker,
    /// Whether the actor has yet to look at other models: many registrations are one change.
    pub(crate) models_due: AtomicBool,
    pub(crate) locks: FileLocks,
    pub(crate) extensions: SessionExtensions,
    /// Questions of extensions, which their handlers hear of.
    pub(crate) prompts: PromptSpans,
    /// Time that a question without a limit of its own waits while no client is there.
    pub(crate) dialog_wait: Duration,
    /// The tools that extensions have ever had, by their names.
    pub(crate) known_tools: Mutex<HashSet<String>>,
    /// Whether a client was ever there that answers questions.
    pub(crate) ui_was_there: AtomicBool,
    /// Fires when the actor lets go of it.
    pub(crate) _over: DropGuard,
}

impl ExtensionLink {
    fn send(&self, request: ExtensionRequest) {
        // Without the actor a call is dropped, and so answered.
        let _ = self.requests.send(request);
    }

    /// Asks the user in a task.
    pub(crate) fn ask(&self, dialog: Dialog, call: SessionCall) {
        let ui = Ui { timeout: self.ui.timeout.min(self.dialog_wait), ..self.ui.clone() };
        let span = self.prompts.begin(&self.extensions, &call.method, call.params["title"].as_str());
        self.tasks.spawn(async move {
            let answer = ui.ask(Asker::Extension, dialog, call.responder.cancelled()).await;
            let value = match answer {
                DialogAnswer::Value(text) => Value::String(text),
                DialogAnswer::Confirmed(yes) => Value::Bool(yes),
                DialogAnswer::Permission { .. } | DialogAnswer::Nothing => Value::Null,
            };
            // Handlers hear of the end before the extension goes on.
            drop(span);
            call.responder.send(&Ok(value));
        });
    }
}

impl ExtensionSession for ExtensionLink {
    fn call(&self, call: SessionCall) {
        match dialog(&call) {
            // In its turn: notices that came before it are shown before it.
            Some(dialog) => self.send(ExtensionRequest::Ask(Box::new((dialog, call)))),
            None => self.send(ExtensionRequest::Call(Box::new(call))),
        }
    }

    fn show(&self, fields: Map<String, Value>) {
        if fields.get("method").is_some_and(|method| method == "custom") {
            // What would draw on a terminal is over at once.
            drop(self.prompts.begin(&self.extensions, "ui.custom", None));
        }
        self.send(ExtensionRequest::Show(Box::new(fields)));
    }

    fn failed(&self, failure: ExtensionFailure) {
        self.send(ExtensionRequest::Failed(Box::new(failure)));
    }

    fn tools_changed(&self) {
        self.send(ExtensionRequest::ToolsChanged);
    }

    fn models_changed(&self) {
        if !self.models_due.swap(true, Ordering::AcqRel) {
            self.send(ExtensionRequest::ModelsChanged);
        }
    }

    fn between_turns(&self, reached: oneshot::Sender<()>) {
        self.send(ExtensionRequest::BetweenTurns(reached));
    }
}

/// The question of a call, if it is one.
fn dialog(call: &SessionCall) -> Option<Dialog> {
    let text = |key: &str| call.params[key].as_str().map(str::to_owned);
    let title = text("title").unwrap_or_default();
    let dialog = match call.method.as_str() {
        "ui.select" => {
            let options = call.params["options"].as_array().into_iter().flatten();
            Dialog::select(title, options.filter_map(Value::as_str))
        }
        "ui.confirm" => Dialog::confirm(title, text("message").unwrap_or_default()),
        "ui.input" => Dialog::input(title, text("placeholder")),
        "ui.editor" => Dialog::editor(title, text("prefill")),
        _ => return None,
    };
    Some(match call.params["timeout"].as_u64() {
        Some(timeout) => dialog.within(Duration::from_millis(timeout)),
        None => dialog,
    })
}

/// A notice as clients get it.
///
/// # Errors
/// What is wrong with its fields.
pub(crate) fn notice(mut fields: Map<String, Value>) -> Result<UiMethod, serde_json::Error> {
    // The one method that clients know by another name than extensions.
    if fields.get("method").is_some_and(|method| method == "setEditorText") {
        fields.insert("method".to_owned(), "set_editor_text".into());
    }
    serde_json::from_value(Value::Object(fields))
}
