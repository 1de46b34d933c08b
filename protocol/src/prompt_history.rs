//! The prompts that a user has sent, over all sessions of an agent directory: how they are found and deleted.

use serde::{Deserialize, Serialize};

/// The fields of `search_history`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchHistoryParams {
    /// Words that all occur in the prompt, or parts of words, in any case and order. Without it all prompts fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Only prompts that were last sent in this folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The most prompts; default 50, at most 1,000. Prompts of more than 4 MiB together are cut off earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// The answer to `search_history`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PromptHistoryList {
    /// The prompts, last sent first.
    pub entries: Vec<PromptHistoryEntry>,
}

/// A prompt; the same text sent again is the same one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PromptHistoryEntry {
    /// Its id, for `delete_history`.
    pub id: String,
    /// What the user typed, before prompt templates and skills were put in.
    pub prompt: String,
    /// When it was last sent, in milliseconds since 1970; 0 where that is not known.
    pub created_at: i64,
    /// The folder of the session that it was last sent to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// That session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// How often it was sent.
    pub use_count: u64,
}

/// The fields of `delete_history`: either `entryId` or `all`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeleteHistoryParams {
    /// The `id` of the prompt to delete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<String>,
    /// True: all prompts are deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
}

/// The answer to `delete_history`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeletedHistory {
    /// The number of prompts that were deleted.
    pub deleted: u64,
}
