//! What is shown to the user and asked of them through their clients: dialogs, which are answered, and notices, which are
//! not.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::permissions::{PermissionAnswer, PermissionQuestion};

/// A dialog or a notice for the user. A dialog is answered by an [`UiResponse`] with its `id`; a notice by nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExtensionUiRequest {
    /// Names the request: a UUID of version 4.
    pub id: String,
    /// What is shown or asked.
    #[serde(flatten)]
    pub method: UiMethod,
}

impl ExtensionUiRequest {
    /// The request for a client that does not know questions about permissions.
    #[must_use]
    pub fn plain(self) -> Self {
        match self.method {
            UiMethod::Permission(question) => Self { id: self.id, method: question.as_select() },
            method => Self { id: self.id, method },
        }
    }
}

impl PermissionQuestion {
    /// The question for clients that do not know this one.
    #[must_use]
    pub fn as_select(&self) -> UiMethod {
        let options = self.options.iter().map(|option| option.text.clone());
        let options = options.chain([Self::NO_WITH_WORDS.to_owned()]).collect();
        UiMethod::Select { title: self.title.clone(), options, timeout: Some(self.timeout) }
    }
}

/// What is shown or asked. `select`, `confirm`, `input` and `editor` are dialogs. A `timeout` is in milliseconds; after it the
/// default is taken, and an answer is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "method", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum UiMethod {
    /// Asks for one of several options. Without an answer: none of them.
    Select {
        /// The question.
        title: String,
        /// The options; the answer is the `value` of one.
        options: Vec<String>,
        /// The time to answer it in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<u64>,
    },
    /// Asks for a yes (`confirmed`). Without an answer: no.
    Confirm {
        /// The question.
        title: String,
        /// More about it.
        message: String,
        /// The time to answer it in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<u64>,
    },
    /// Asks for a line of text. Without an answer: none.
    Input {
        /// The purpose.
        title: String,
        /// An example, shown while nothing is typed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        placeholder: Option<String>,
        /// The time to answer it in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<u64>,
    },
    /// Asks for a text of any length. Without an answer: none.
    Editor {
        /// The purpose.
        title: String,
        /// The text to begin with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prefill: Option<String>,
    },
    /// Asks whether a call may run; only for clients that said `permissions`, and answered by the command `permission_response`.
    /// Without an answer: what the permissions say.
    Permission(Box<PermissionQuestion>),
    /// Tells the user something.
    Notify {
        /// The text.
        message: String,
        /// The severity; default `info`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notify_type: Option<NotifyType>,
    },
    /// Shows a short status, or takes it away.
    SetStatus {
        /// The key of the status.
        status_key: String,
        /// The text; absent: there is no such status any more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status_text: Option<String>,
    },
    /// Shows lines beside the place to type, or takes them away.
    SetWidget {
        /// Which ones.
        widget_key: String,
        /// The lines; absent: there are none any more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        widget_lines: Option<Vec<String>>,
        /// The position; default `aboveEditor`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        widget_placement: Option<WidgetPlacement>,
    },
    /// Sets the title of the window.
    SetTitle {
        /// The title.
        title: String,
    },
    /// Puts a text into the place to type.
    #[serde(rename = "set_editor_text")]
    SetEditorText {
        /// The text.
        text: String,
    },
}

impl UiMethod {
    /// Whether it is a dialog, which waits for an answer.
    #[must_use]
    pub fn is_dialog(&self) -> bool {
        matches!(
            self,
            Self::Select { .. }
                | Self::Confirm { .. }
                | Self::Input { .. }
                | Self::Editor { .. }
                | Self::Permission(_)
        )
    }

    /// The time to answer it in milliseconds, if limited.
    #[must_use]
    pub fn timeout(&self) -> Option<u64> {
        match self {
            Self::Select { timeout, .. } | Self::Confirm { timeout, .. } | Self::Input { timeout, .. } => {
                *timeout
            }
            Self::Permission(question) => Some(question.timeout),
            _ => None,
        }
    }
}

/// The severity of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum NotifyType {
    /// For information.
    Info,
    /// Something may be wrong.
    Warning,
    /// An error occurred.
    Error,
}

/// The position of shown lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum WidgetPlacement {
    /// Above the place to type.
    AboveEditor,
    /// Below it.
    BelowEditor,
}

/// The answer of a client to a dialog: a line `extension_ui_response` with one of `value`, `confirmed` and `cancelled`.
/// It has no response. `cancelled` wins over the others; an answer without the key that the dialog wants means its default,
/// and a `value` is not checked against the options. The first answer wins; later ones, and those to a dialog that is over,
/// are ignored.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UiResponse {
    /// The id of the request.
    pub id: String,
    /// The session that asked; without it, it is looked for among those that the connection follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The answer to `select`, `input` and `editor`: a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The answer to `confirm`: a boolean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<Value>,
    /// Whether the user closed the dialog without an answer: a boolean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<Value>,
}

impl UiResponse {
    /// The `type` of the line.
    pub const TYPE: &str = "extension_ui_response";
}

/// A dialog is over; to clients that name sessions, also to the one that answered; of questions about calls, to those that said
/// `permissions`, too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UiRequestResolved {
    /// The dialog.
    pub id: String,
    /// The client that answered: its name from `hello`, else its number. Absent when none did and the dialog took
    /// its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The answer, to a question about a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<PermissionAnswer>,
}

#[cfg(test)]
mod tests {
    use crate::event::Event;

    /// A line of pi, read and written again, is the same line.
    fn check(line: &str) {
        let event = Event::parse("extension_ui_request", line).unwrap().unwrap();
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
    }

    #[test]
    fn requests_have_the_keys_of_pi() {
        for body in [
            r#""method":"select","title":"t","options":["a","b"],"timeout":5"#,
            r#""method":"confirm","title":"t","message":"m""#,
            r#""method":"input","title":"t","placeholder":"p","timeout":1"#,
            r#""method":"editor","title":"t","prefill":"x""#,
            r#""method":"notify","message":"m","notifyType":"warning""#,
            r#""method":"setStatus","statusKey":"k","statusText":"t""#,
            r#""method":"setWidget","widgetKey":"k","widgetLines":["l"],"widgetPlacement":"belowEditor""#,
            r#""method":"setTitle","title":"t""#,
            r#""method":"set_editor_text","text":"t""#,
        ] {
            check(&format!(r#"{{"type":"extension_ui_request","id":"i",{body}}}"#));
        }
    }
}
