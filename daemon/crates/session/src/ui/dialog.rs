//! Dialogs, notices and answers, and the clients that answer them.

use std::{sync::Arc, time::Duration};

use agentd_protocol::{
    permissions::{PermissionAnswer, PermissionQuestion},
    ui::{NotifyType, UiMethod, UiResponse, WidgetPlacement},
};
use serde_json::Value;
use tokio::sync::watch;

use crate::event_log::Audience;

/// The part that asks, which decides the clients that are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// The daemon itself: only clients that said that they answer its questions.
    Daemon,
    /// The daemon, about a call: also clients that said that they answer such questions.
    Permissions,
    /// An extension: also clients that did not say hello, as in pi.
    Extension,
}

impl Asker {
    pub(crate) fn audience(self) -> Audience {
        match self {
            Self::Daemon | Self::Permissions => Audience::Asked,
            Self::Extension => Audience::Everyone,
        }
    }
}

/// A question to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialog(UiMethod);

impl Dialog {
    /// Which of these? Answered by [`DialogAnswer::Value`], which need not be one of them.
    #[must_use]
    pub fn select(title: impl Into<String>, options: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let options = options.into_iter().map(Into::into).collect();
        Self(UiMethod::Select { title: title.into(), options, timeout: None })
    }

    /// Yes or no? Answered by [`DialogAnswer::Confirmed`].
    #[must_use]
    pub fn confirm(title: impl Into<String>, message: impl Into<String>) -> Self {
        Self(UiMethod::Confirm { title: title.into(), message: message.into(), timeout: None })
    }

    /// A line of text, with an example to show. Answered by [`DialogAnswer::Value`].
    #[must_use]
    pub fn input(title: impl Into<String>, placeholder: Option<String>) -> Self {
        Self(UiMethod::Input { title: title.into(), placeholder, timeout: None })
    }

    /// A text of any length, with one to begin with. Answered by [`DialogAnswer::Value`].
    #[must_use]
    pub fn editor(title: impl Into<String>, prefill: Option<String>) -> Self {
        Self(UiMethod::Editor { title: title.into(), prefill })
    }

    /// May this call run? Answered by [`DialogAnswer::Permission`], or by [`DialogAnswer::Value`] where a client was asked by a
    /// `select`.
    #[must_use]
    pub fn permission(question: PermissionQuestion) -> Self {
        Self(UiMethod::Permission(Box::new(question)))
    }

    /// Limits the time for an answer, even while clients are there. An editor has no such limit.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        if let UiMethod::Select { timeout, .. }
        | UiMethod::Confirm { timeout, .. }
        | UiMethod::Input { timeout, .. } = &mut self.0
        {
            *timeout = Some(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        }
        self
    }

    /// The same question, of a subagent to the user of the session that it works for.
    #[must_use]
    pub(crate) fn of_subagent(mut self, id: &str) -> Self {
        let title = match &mut self.0 {
            UiMethod::Select { title, .. }
            | UiMethod::Confirm { title, .. }
            | UiMethod::Input { title, .. }
            | UiMethod::Editor { title, .. } => title,
            UiMethod::Permission(question) => &mut question.title,
            _ => return self,
        };
        *title = format!("{id}: {title}");
        self
    }

    pub(crate) fn limit(&self) -> Option<Duration> {
        self.0.timeout().map(Duration::from_millis)
    }

    /// The answer when no client answers.
    pub(crate) fn default_answer(&self) -> DialogAnswer {
        match self.0 {
            UiMethod::Confirm { .. } => DialogAnswer::Confirmed(false),
            _ => DialogAnswer::Nothing,
        }
    }

    pub(crate) fn into_method(self) -> UiMethod {
        self.0
    }
}

/// The answer to a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DialogAnswer {
    /// A text: chosen or typed.
    Value(String),
    /// Yes or no.
    Confirmed(bool),
    /// An answer to a question about a call.
    Permission {
        /// The answer.
        decision: PermissionAnswer,
        /// Words to the model.
        message: Option<String>,
    },
    /// No text: nobody answered, or the user did not want to.
    Nothing,
}

/// An answer, and the client that gave it.
#[derive(Debug)]
pub(crate) struct ClientAnswer {
    pub(crate) answer: DialogAnswer,
    /// The client's name.
    pub(crate) by: String,
}

impl DialogAnswer {
    /// Reads a client's response to a dialog; the default where the expected key is missing.
    pub(crate) fn read(method: &UiMethod, response: &UiResponse) -> Self {
        let is_yes = |key: &Option<Value>| key.as_ref() == Some(&Value::Bool(true));
        let cancelled = is_yes(&response.cancelled);
        match (method, &response.value) {
            (UiMethod::Confirm { .. }, _) => Self::Confirmed(!cancelled && is_yes(&response.confirmed)),
            (_, Some(Value::String(value))) if !cancelled => Self::Value(value.clone()),
            _ => Self::Nothing,
        }
    }
}

/// A message to the user that needs no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice(UiMethod);

impl Notice {
    /// A message.
    #[must_use]
    pub fn notify(message: impl Into<String>, kind: NotifyType) -> Self {
        Self(UiMethod::Notify { message: message.into(), notify_type: Some(kind) })
    }

    /// A short status under a key; `None` takes it away.
    #[must_use]
    pub fn status(key: impl Into<String>, text: Option<String>) -> Self {
        Self(UiMethod::SetStatus { status_key: key.into(), status_text: text })
    }

    /// Lines under a key; `None` takes them away.
    #[must_use]
    pub fn widget(
        key: impl Into<String>,
        lines: Option<Vec<String>>,
        placement: Option<WidgetPlacement>,
    ) -> Self {
        let (widget_key, widget_lines, widget_placement) = (key.into(), lines, placement);
        Self(UiMethod::SetWidget { widget_key, widget_lines, widget_placement })
    }

    /// The title of the window.
    #[must_use]
    pub fn title(title: impl Into<String>) -> Self {
        Self(UiMethod::SetTitle { title: title.into() })
    }

    /// A text for the place to type.
    #[must_use]
    pub fn editor_text(text: impl Into<String>) -> Self {
        Self(UiMethod::SetEditorText { text: text.into() })
    }

    pub(crate) fn into_method(self) -> UiMethod {
        self.0
    }
}

/// Whose questions a client answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UiAbilities {
    /// The daemon's own.
    pub daemon: bool,
    /// Those about calls.
    pub permissions: bool,
    /// Those of extensions.
    pub extensions: bool,
}

impl UiAbilities {
    /// All.
    pub const ALL: Self = Self { daemon: true, permissions: true, extensions: true };
    /// Those of extensions: a client that did not say hello.
    pub const EXTENSIONS: Self = Self { daemon: false, permissions: false, extensions: true };

    /// Whether such a client answers what `asker` asks.
    pub(crate) fn answer(self, asker: Asker) -> bool {
        match asker {
            Asker::Daemon => self.daemon,
            Asker::Permissions => self.permissions,
            Asker::Extension => self.extensions,
        }
    }
}

/// Counts the clients of a session that answer questions.
#[derive(Debug, Clone)]
pub(crate) struct Presence(Arc<watch::Sender<Counts>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Counts {
    daemon: usize,
    permissions: usize,
    extensions: usize,
}

impl Counts {
    fn change(&mut self, abilities: UiAbilities, change: impl Fn(&mut usize)) {
        let UiAbilities { daemon, permissions, extensions } = abilities;
        for (is_able, count) in [
            (daemon, &mut self.daemon),
            (permissions, &mut self.permissions),
            (extensions, &mut self.extensions),
        ] {
            if is_able {
                change(count);
            }
        }
    }

    fn can_answer(self, asker: Asker) -> bool {
        let count = match asker {
            Asker::Daemon => self.daemon,
            Asker::Permissions => self.permissions,
            Asker::Extension => self.extensions,
        };
        count > 0
    }
}

/// A client that answers questions, until this is dropped.
#[derive(Debug)]
pub struct PresenceGuard(Presence, UiAbilities);

impl Default for Presence {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Counts::default())))
    }
}

impl Presence {
    /// Counts a client that answers questions.
    pub(crate) fn enter(&self, abilities: UiAbilities) -> PresenceGuard {
        self.0.send_modify(|counts| counts.change(abilities, |count| *count += 1));
        PresenceGuard(self.clone(), abilities)
    }

    /// Whether somebody can answer `asker`.
    pub(crate) fn is_there(&self, asker: Asker) -> bool {
        self.0.borrow().can_answer(asker)
    }

    /// Waits until a client can answer `asker`, or until none can. Cancel safe.
    pub(crate) async fn until(&self, asker: Asker, is_there: bool) {
        let mut changes = self.0.subscribe();
        // It fails only when the sender is gone, and we hold it.
        let _ = changes.wait_for(|counts| counts.can_answer(asker) == is_there).await;
    }
}

impl Drop for PresenceGuard {
    fn drop(&mut self) {
        self.0.0.send_modify(|counts| counts.change(self.1, |count| *count -= 1));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(dialog: Dialog, response: Value, expected: DialogAnswer) {
        let mut response = response;
        response["id"] = json!("i");
        let read = serde_json::from_value(response.clone()).unwrap();
        assert_eq!(DialogAnswer::read(&dialog.into_method(), &read), expected, "{response}");
    }

    #[test]
    fn answers_are_read_as_pi_reads_them() {
        let value = |text: &str| DialogAnswer::Value(text.into());
        let select = || Dialog::select("t", ["a", "b"]);
        check(select(), json!({"value": "b"}), value("b"));
        check(select(), json!({"value": "none of them"}), value("none of them"));
        check(select(), json!({"value": "b", "cancelled": true}), DialogAnswer::Nothing);
        check(select(), json!({"value": "b", "cancelled": false}), value("b"));
        check(select(), json!({"confirmed": true}), DialogAnswer::Nothing);
        check(select(), json!({"value": 3}), DialogAnswer::Nothing);
        check(Dialog::input("t", None), json!({"value": ""}), value(""));
        check(Dialog::editor("t", None), json!({}), DialogAnswer::Nothing);
        let confirm = || Dialog::confirm("t", "m");
        check(confirm(), json!({"confirmed": true}), DialogAnswer::Confirmed(true));
        check(confirm(), json!({"confirmed": true, "cancelled": true}), DialogAnswer::Confirmed(false));
        check(confirm(), json!({"confirmed": "yes"}), DialogAnswer::Confirmed(false));
        check(confirm(), json!({"value": "yes"}), DialogAnswer::Confirmed(false));
    }

    #[test]
    fn an_editor_has_all_the_time() {
        let second = Duration::from_secs(1);
        assert_eq!(Dialog::editor("t", None).within(second).limit(), None);
        assert_eq!(Dialog::confirm("t", "m").within(second).limit(), Some(second));
    }
}
