//! Events of a run: turns, messages, tool calls.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Json,
    message::{Message, ToolCall, Usage},
    tool::ToolResult,
};

/// A run began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentStart {}

/// A run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgentEnd {
    /// Every message that the run added, prompts included.
    pub messages: Vec<Json<Message>>,
    /// Whether the failed answer is retried automatically.
    #[serde(default)]
    pub will_retry: bool,
}

/// The session is idle again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentSettled {
    /// Whether someone stopped the run.
    #[serde(default)]
    pub aborted: bool,
}

/// A turn began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnStart {}

/// A turn ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TurnEnd {
    /// The answer.
    pub message: Json<Message>,
    /// The results of its tool calls, in the order of the calls.
    pub tool_results: Vec<Json<Message>>,
}

/// A message began. An answer has no content yet: build it from the updates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageStart {
    /// The message; for an answer, without content.
    pub message: Json<Message>,
}

/// A message is complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageEnd {
    /// The message, as in the session file.
    pub message: Json<Message>,
}

/// An answer grew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MessageUpdate {
    /// Tokens so far; zeros until the provider reports them.
    #[serde(default = "zero_usage")]
    pub usage: Json<Usage>,
    /// The added text.
    pub assistant_message_event: AssistantMessageEvent,
}

fn zero_usage() -> Json<Usage> {
    Json::from_raw(serde_json::value::RawValue::NULL.to_owned())
}

/// An addition to an answer. `contentIndex` is the block's index in the answer's content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum AssistantMessageEvent {
    /// A text block began.
    #[serde(rename = "text_start")]
    TextStart {
        /// The block's index in the content.
        content_index: usize,
    },
    /// Text was added.
    #[serde(rename = "text_delta")]
    TextDelta {
        /// The block's index in the content.
        content_index: usize,
        /// The added text.
        delta: String,
    },
    /// A text block ended.
    #[serde(rename = "text_end")]
    TextEnd {
        /// The block's index in the content.
        content_index: usize,
        /// The whole text.
        content: String,
    },
    /// A thinking block began.
    #[serde(rename = "thinking_start")]
    ThinkingStart {
        /// The block's index in the content.
        content_index: usize,
    },
    /// Thinking was added.
    #[serde(rename = "thinking_delta")]
    ThinkingDelta {
        /// The block's index in the content.
        content_index: usize,
        /// The added text.
        delta: String,
    },
    /// A thinking block ended.
    #[serde(rename = "thinking_end")]
    ThinkingEnd {
        /// The block's index in the content.
        content_index: usize,
        /// The whole thinking.
        content: String,
    },
    /// A tool call began.
    #[serde(rename = "toolcall_start")]
    ToolcallStart {
        /// The block's index in the content.
        content_index: usize,
        /// The call's id.
        #[serde(default)]
        id: String,
        /// The tool.
        #[serde(default)]
        tool_name: String,
    },
    /// A part of the arguments' JSON text was added.
    #[serde(rename = "toolcall_delta")]
    ToolcallDelta {
        /// The block's index in the content.
        content_index: usize,
        /// The added text.
        delta: String,
    },
    /// A tool call is complete.
    #[serde(rename = "toolcall_end")]
    ToolcallEnd {
        /// The block's index in the content.
        content_index: usize,
        /// The whole call.
        tool_call: ToolCallBlock,
    },
}

/// A tool call as a content block: with its `type`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type")]
pub enum ToolCallBlock {
    /// The only kind.
    #[serde(rename = "toolCall")]
    ToolCall(ToolCall),
}

/// A tool call began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolExecutionStart {
    /// The call.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// The arguments as the model gave them, before any preparation.
    pub args: Json<Map<String, Value>>,
    /// The call of a tool that makes this one, which is no call of the model then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<String>,
}

/// A tool call has new output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolExecutionUpdate {
    /// The call.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// The arguments as the model gave them.
    pub args: Json<Map<String, Value>>,
    /// The result so far. It replaces that of earlier updates.
    pub partial_result: ToolResult,
    /// The call of a tool that makes this one, which is no call of the model then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<String>,
}

/// A tool call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolExecutionEnd {
    /// The call.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// The result.
    pub result: ToolResult,
    /// Whether the call failed.
    pub is_error: bool,
    /// The tool's running time in milliseconds; absent when it never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The call of a tool that makes this one, which is no call of the model then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<String>,
}
