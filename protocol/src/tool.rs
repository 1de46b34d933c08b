//! Tools as models and clients see them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    message::{ContentBlock, Usage},
    number,
};

/// A tool, as a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolSpec {
    /// The name, case sensitive.
    pub name: String,
    /// Its description for the model.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the arguments.
    #[serde(default)]
    pub parameters: Value,
    /// The provider's enforcement of the schema while the model samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constrained_sampling: Option<ConstrainedSampling>,
}

/// What a provider says of its tool, such as an MCP server (`annotations` of `tools/list`). They are claims that nobody has checked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether it changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// Whether it may destroy something, where it changes anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Whether a second call with the same arguments changes nothing more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// Whether it reaches out into an open world, such as the web, and not only into a closed one, such as a memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// A wish for constrained sampling of tool arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConstrainedSampling {
    /// The kind of constraint: `json_schema`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `prefer` asks for strict mode where the provider has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<Value>,
}

impl ConstrainedSampling {
    /// Strict JSON Schema sampling where the provider offers it.
    #[must_use]
    pub fn prefer_strict() -> Self {
        Self { kind: "json_schema".into(), strict: Some(Value::from("prefer")) }
    }
}

/// The result of a tool, complete or so far.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// Text and images for the model. For a running `bash`: the end of all output so far, not what was added.
    #[serde(default)]
    pub content: Vec<ContentBlock>,
    /// Facts for clients; their shape depends on the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// The result for programs; its shape depends on the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// Tokens that the tool itself used on models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Present and true when the tool failed in a way that it reports itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Whether the run may end after this batch of calls without asking the model again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminate: Option<bool>,
}

impl ToolResult {
    /// A result of plain text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ContentBlock::text(text)], ..Self::default() }
    }

    /// The result that stands for a call that failed: the message, and empty `details`.
    #[must_use]
    pub fn failure(message: impl Into<String>) -> Self {
        Self { details: Some(Value::Object(serde_json::Map::new())), ..Self::text(message) }
    }
}

/// The part of a long output that was left out, and the limit that cut it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Truncation {
    /// The part that was kept.
    pub content: String,
    /// Whether anything was left out.
    pub truncated: bool,
    /// The limit that was hit first: `lines`, `bytes`, or `null`.
    pub truncated_by: Option<TruncatedBy>,
    /// Lines of the whole.
    #[serde(deserialize_with = "number::lenient_u64")]
    pub total_lines: u64,
    /// Bytes of the whole.
    #[serde(deserialize_with = "number::lenient_u64")]
    pub total_bytes: u64,
    /// Lines kept.
    #[serde(deserialize_with = "number::lenient_u64")]
    pub output_lines: u64,
    /// Bytes kept.
    #[serde(deserialize_with = "number::lenient_u64")]
    pub output_bytes: u64,
    /// Whether the last line alone was too long, so that only its end was kept.
    pub last_line_partial: bool,
    /// Whether the first line alone was too long, so that nothing was kept.
    pub first_line_exceeds_limit: bool,
    /// The limit in lines.
    #[serde(deserialize_with = "number::lenient_u64")]
    pub max_lines: u64,
    /// The limit in bytes.
    #[serde(deserialize_with = "number::lenient_u64")]
    pub max_bytes: u64,
}

/// The limit that cut an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TruncatedBy {
    /// The limit in lines.
    Lines,
    /// The limit in bytes.
    Bytes,
}
