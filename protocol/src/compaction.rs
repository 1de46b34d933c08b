//! Compaction: the older part of a context is replaced by a summary.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{number, usage::Usage};

/// The reason for a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CompactionReason {
    /// The command `compact`.
    Manual,
    /// The context came close to what the model takes.
    Threshold,
    /// The context was too long for the model, or left too little room for its answer.
    Overflow,
}

/// The result of a compaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CompactionResult {
    /// The summary, with the lists of files at its end.
    pub summary: String,
    /// The first entry that stays in the context as it is.
    pub first_kept_entry_id: String,
    /// Estimated tokens of the context before.
    #[serde(deserialize_with = "number::lenient_u64")]
    pub tokens_before: u64,
    /// Estimated tokens of the context after.
    #[serde(default, deserialize_with = "number::lenient_u64")]
    pub estimated_tokens_after: u64,
    /// The tokens and cost of the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The files that the summarised part worked with, as [`SummaryDetails`]; what an extension says instead, where it wrote the summary.
    #[serde(default)]
    pub details: Value,
}

/// The files that the summarised part of a conversation worked with, those of earlier summaries included.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct SummaryDetails {
    /// Files that were read and not changed, sorted.
    pub read_files: Vec<String>,
    /// Files that were written or edited, sorted.
    pub modified_files: Vec<String>,
}
