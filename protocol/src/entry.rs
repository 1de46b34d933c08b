//! Session files: a header line, then one entry a line, linked to a tree by `parentId`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    message::{Message, MessageContent, Usage},
    number,
};

/// The version of the session format that agentd writes.
pub const SESSION_VERSION: u32 = 3;

/// The longest session file that is read: 4 GiB. What is longer is no conversation: it would be looked through for hours.
pub const MAX_SESSION_FILE_BYTES: u64 = 4 << 30;

/// The first line of a session file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionHeader {
    /// Always `session`.
    #[serde(rename = "type")]
    pub kind: SessionTag,
    /// The format's version; absent means 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The session's id.
    pub id: String,
    /// When the session was made (ISO 8601, UTC, milliseconds).
    #[serde(default)]
    pub timestamp: String,
    /// The folder that the session works in.
    #[serde(default)]
    pub cwd: String,
    /// The session file that this one was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
}

/// The `type` of a header line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SessionTag {
    /// The only value.
    #[default]
    #[serde(rename = "session")]
    Session,
}

/// The fields that every entry has. Reading only these is enough to place an entry in the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EntryHead {
    /// The kind of entry. Unknown kinds are kept and passed on.
    #[serde(rename = "type")]
    pub kind: String,
    /// Unique in the file.
    pub id: String,
    /// The entry that this one follows; `null` for a root.
    #[serde(default)]
    pub parent_id: Option<String>,
    /// When the entry was made (ISO 8601, UTC, milliseconds).
    #[serde(default)]
    pub timestamp: String,
}

/// The content of an entry, by its `type`, beside the fields of [`EntryHead`] in one JSON object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum EntryBody {
    /// A message of the transcript.
    Message {
        /// The message.
        message: Message,
    },
    /// The thinking level from here on.
    ThinkingLevelChange {
        /// The level's name.
        thinking_level: String,
    },
    /// The model from here on.
    ModelChange {
        /// The provider.
        provider: String,
        /// The model.
        model_id: String,
    },
    /// Tokens spent outside of any message.
    Usage {
        /// The purpose, such as `cache_warm`.
        #[serde(default)]
        kind: String,
        /// The provider.
        #[serde(default)]
        provider: String,
        /// The model.
        #[serde(default)]
        model: String,
        /// The tokens and their cost.
        usage: Usage,
        /// A remark.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Everything before `firstKeptEntryId` is replaced by a summary.
    Compaction {
        /// The summary.
        summary: String,
        /// The first entry before this one that stays in the context; this entry's own id: none does.
        #[serde(default)]
        first_kept_entry_id: String,
        /// Estimated tokens of the context before.
        #[serde(default, deserialize_with = "number::lenient_u64")]
        tokens_before: u64,
        /// Files read and modified in the summarised part.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
        /// The tokens and cost of the summary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Whether an extension supplied it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from_hook: Option<bool>,
        /// The whole system state at this point.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system_message: Option<Value>,
    },
    /// A summary of a branch that the conversation left.
    BranchSummary {
        /// The leaf that was left, or `root`.
        #[serde(default)]
        from_id: String,
        /// The summary.
        summary: String,
        /// Files read and modified in the summarised part.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
        /// The tokens and cost of the summary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Whether an extension supplied it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from_hook: Option<bool>,
    },
    /// Another entry's message is replaced, or left out of the context.
    ContextEdit {
        /// The entry whose message is changed.
        target_id: String,
        /// The new content; `null` leaves the message out.
        replacement: Option<ContextReplacement>,
    },
    /// Data of an extension, not for the model.
    #[serde(rename_all = "camelCase")]
    Custom {
        /// The extension's name for this kind of data.
        custom_type: String,
        /// The data.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
    },
    /// A message of an extension.
    CustomMessage {
        /// The extension's name for this kind of message.
        custom_type: String,
        /// Text and images.
        #[serde(default)]
        content: MessageContent,
        /// Whether clients show it.
        #[serde(default)]
        display: bool,
        /// The extension's own data.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
    },
    /// A bookmark on another entry.
    Label {
        /// The entry.
        target_id: String,
        /// The label; absent or empty removes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    },
    /// The session's name.
    SessionInfo {
        /// The name; empty clears it.
        #[serde(default)]
        name: String,
    },
}

/// The content that a context edit puts in the place of a message's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContextReplacement {
    /// Text or blocks.
    pub content: MessageContent,
}

/// One line of a session file after the header.
// The fields of `EntryHead` and of `EntryBody` in one object. Carried as text (`crate::Json`); this type names it in the schemas.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionEntry {
    /// Unique in the file.
    pub id: String,
    /// The entry that this one follows; `null` for a root.
    #[serde(default)]
    pub parent_id: Option<String>,
    /// When the entry was made.
    #[serde(default)]
    pub timestamp: String,
    /// The content.
    #[serde(flatten)]
    pub body: EntryBody,
}
