//! Permissions of a session on the wire: changing them, and questions about calls.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    policy_check::VerdictCommand,
    session::PermissionState,
    settings::{PermissionPreset, PermissionRule, PermissionSettings, TimeoutDecision},
};

/// The fields of `set_permissions`. What is absent stays as it is; without any the answer only tells the permissions in force.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SetPermissionsParams {
    /// The preset, in the place of that of the settings and flags. A stricter one of the project still counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<PermissionPreset>,
    /// The rules of the session, in the place of earlier ones and of those that answers gave it. The rules of the settings, of the
    /// project and of flags stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<PermissionRule>>,
    /// The decision when nobody answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<TimeoutDecision>,
    /// The time that a question waits, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_timeout_ms: Option<u64>,
    /// The client that sent it. Set by the connection.
    #[serde(skip)]
    pub client: String,
}

impl SetPermissionsParams {
    /// What is to be changed.
    #[must_use]
    pub fn changes(self) -> PermissionSettings {
        let Self { preset, rules, on_timeout, ask_timeout_ms, client: _ } = self;
        PermissionSettings { preset, ask_timeout_ms, on_timeout, rules }
    }
}

/// The session's permissions were changed by a command; only after `hello`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionsChanged {
    /// The permissions in force.
    pub permissions: PermissionState,
    /// The client that changed them.
    pub by: String,
}

/// A question about a call: what it would do, why it is asked about, and what can be answered. Clients that did not say
/// `permissions` get a `select` in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionQuestion {
    /// The whole question as text.
    pub title: String,
    /// The tool call; absent for a command of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The tool.
    pub tool: String,
    /// The shell command of `bash`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The simple commands that it consists of, each before those that it starts: `sudo rm x` before `rm x`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parsed: Vec<VerdictCommand>,
    /// The file or folder that is read or written, absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What `edit` and `write` would change, as a unified diff of at most 64 KiB; absent for files that are long or no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Whether the diff is longer, and its end is missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub diff_cut: bool,
    /// The arguments of other tools; absent where they are longer than 16 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// Why it is asked about.
    pub reason: String,
    /// Where the rule comes from that asks: `user`, `project`, `flags` or `session`; absent where the preset asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// That rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<PermissionRule>,
    /// What can be answered.
    pub options: Vec<PermissionOption>,
    /// The time to answer it in milliseconds.
    pub timeout: u64,
    /// The end of that time, in milliseconds since 1970.
    pub deadline: u64,
}

/// Something that can be answered to a question about a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionOption {
    /// The answer, for `permission_response`.
    pub decision: PermissionAnswer,
    /// The same for people.
    pub text: String,
    /// The rule that the answer `session` or `always` makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<PermissionRule>,
}

/// An answer to a question about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum PermissionAnswer {
    /// The call runs.
    Once,
    /// The call runs, and what is like it from now on, in this session.
    Session,
    /// The call runs, and what is like it from now on, in every session: the rule is saved in the user's settings.
    Always,
    /// The call does not run.
    Deny,
}

impl PermissionAnswer {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
            Self::Deny => "deny",
        }
    }

    /// The answer as the end of a sentence: "was …".
    #[must_use]
    pub const fn done(self) -> &'static str {
        match self {
            Self::Once => "allowed this once",
            Self::Session => "allowed for this session",
            Self::Always => "allowed for good",
            Self::Deny => "denied",
        }
    }
}

impl PermissionQuestion {
    /// The option of a `select` that asks for words to the model, too.
    pub const NO_WITH_WORDS: &str = "No, and tell the model why";

    /// The option for an answer.
    #[must_use]
    pub fn option(&self, answer: PermissionAnswer) -> Option<&PermissionOption> {
        self.options.iter().find(|option| option.decision == answer)
    }
}

/// The fields of `permission_response`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionResponseParams {
    /// The question: its `id`.
    pub request_id: String,
    /// The answer: one of the question's options.
    pub decision: PermissionAnswer,
    /// With `deny`: words to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The client that sent it. Set by the connection.
    #[serde(skip)]
    pub client: String,
}
