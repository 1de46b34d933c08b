//! What is shown to the user and asked of them through their clients: dialogs, which are answered, and notices, which are
//! not.

use serde::{Deserialize, Serialize};
use serde_json::Value;

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
        /// What there is to choose from; the answer is the `value` of one.
        options: Vec<String>,
        /// How long it can be answered, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<u64>,
    },
    /// Asks for a yes (`confirmed`). Without an answer: no.
    Confirm {
        /// The question.
        title: String,
        /// More about it.
        message: String,
        /// How long it can be answered, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<u64>,
    },
    /// Asks for a line of text. Without an answer: none.
    Input {
        /// What for.
        title: String,
        /// An example, shown while nothing is typed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        placeholder: Option<String>,
        /// How long it can be answered, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<u64>,
    },
    /// Asks for a text of any length. Without an answer: none.
    Editor {
        /// What for.
        title: String,
        /// The text to begin with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prefill: Option<String>,
    },
    /// Tells the user something.
    Notify {
        /// What.
        message: String,
        /// How much it matters; default `info`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notify_type: Option<NotifyType>,
    },
    /// Shows a short status, or takes it away.
    SetStatus {
        /// Which one.
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
        /// Where; default `aboveEditor`.
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
        matches!(self, Self::Select { .. } | Self::Confirm { .. } | Self::Input { .. } | Self::Editor { .. })
    }

    /// How long it can be answered, in milliseconds, where it says so.
    #[must_use]
    pub fn timeout(&self) -> Option<u64> {
        match self {
            Self::Select { timeout, .. } | Self::Confirm { timeout, .. } | Self::Input { timeout, .. } => {
                *timeout
            }
            _ => None,
        }
    }
}

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum NotifyType {
    /// For information.
    Info,
    /// Something may be wrong.
    Warning,
    /// Something went wrong.
    Error,
}

/// Where lines are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum WidgetPlacement {
    /// Above the place to type.
    AboveEditor,
    /// Below it.
    BelowEditor,
}

/// What a client sends to answer a dialog: a line `extension_ui_response` with one of `value`, `confirmed` and `cancelled`.
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

/// A dialog is over; to clients that name sessions, also to the one that answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UiRequestResolved {
    /// The dialog.
    pub id: String,
    /// Who answered: the name that the client said in `hello`, else its number. Absent when nobody did and the dialog took
    /// its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

#[cfg(test)]
mod tests {
    use crate::event::Event;

    /// Read and written again, a line of the reference is the same line.
    fn check(line: &str) {
        let event = Event::parse("extension_ui_request", line).unwrap().unwrap();
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
    }

    #[test]
    fn requests_have_the_keys_of_the_reference() {
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
