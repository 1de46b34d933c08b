//! The fields and answers of commands about a session's tree: copies of it, its branches, its labels.

use serde::{Deserialize, Serialize};

use crate::{Json, entry::SessionEntry};

/// The fields of `switch_session`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SwitchSessionParams {
    /// The session's file. One that is not there yet is made with the first message.
    pub session_path: String,
}

/// The fields of `export_html`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExportHtmlParams {
    /// The file, relative to the session's folder; one that is there is replaced. Without it, or with an empty one:
    /// `pi-session-<name of the session file>.html` in that folder.
    #[serde(default)]
    pub output_path: Option<String>,
}

/// The answer to `export_html`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Exported {
    /// The file, as it was given, or its name.
    pub path: String,
}

/// The fields of `fork`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ForkParams {
    /// A message of the user: what came before it is copied.
    pub entry_id: String,
}

/// The answer to `fork`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Forked {
    /// The text of the message, to be changed and sent again.
    pub text: String,
    /// Whether an extension prevented it.
    pub cancelled: bool,
}

/// The answer to `get_fork_messages`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForkMessages {
    /// The user's messages that have text, of every branch, in file order.
    pub messages: Vec<ForkMessage>,
}

/// A message that a fork can begin at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ForkMessage {
    /// Its entry.
    pub entry_id: String,
    /// Its text.
    pub text: String,
}

/// The answer to `get_tree`. A conversation without branches is a chain: readers of JSON have to bear its depth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Tree {
    /// The entries that follow no other, with their descendants.
    pub tree: Json<Vec<TreeNode>>,
    /// The entry that the next one will follow; `null` when it will follow none.
    pub leaf_id: Option<String>,
}

/// An entry with those that follow it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TreeNode {
    /// The entry.
    pub entry: Json<SessionEntry>,
    /// The entries that follow it, oldest first.
    pub children: Vec<TreeNode>,
    /// Its label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When it was labelled: ISO 8601 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_timestamp: Option<String>,
}

/// The fields of `navigate_tree`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NavigateTreeParams {
    /// The entry to continue after, or before if it is a message of the user.
    pub entry_id: String,
    /// Whether a model summarises the branch that is left; default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summarize: Option<bool>,
    /// The focus of the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
}

/// The answer to `navigate_tree`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Navigated {
    /// Whether it was stopped before it was done. Nothing has changed then.
    pub cancelled: bool,
    /// The text of the user's message that the leaf moved before, to be changed and sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub editor_text: Option<String>,
    /// The entry with the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_entry_id: Option<String>,
    /// The entry that the next one will follow; `null` when it will follow none.
    pub leaf_id: Option<String>,
}

/// The fields of `set_label`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SetLabelParams {
    /// The entry.
    pub entry_id: String,
    /// The label; surrounding white space is dropped. Absent or empty removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}
