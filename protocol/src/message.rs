//! The neutral transcript vocabulary: messages, content blocks, usage, stop reasons.
//!
//! The same JSON is used in the protocol, in session files, and between the parts of the daemon. The order of fields is
//! pi's.

mod content;

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

pub(crate) use self::content::null_as_default;
pub use self::content::{ContentBlock, ImageContent, MessageContent, ToolCall};
pub use crate::usage::{Cost, Usage};
use crate::{error::ErrorCode, number, tool::ToolSpec};

/// One message of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "role", rename_all = "camelCase")]
pub enum Message {
    /// Instructions for the model about itself, its tools and its environment; later ones change earlier ones.
    System(SystemMessage),
    /// A message of the user, or of a program in their name.
    User(UserMessage),
    /// An answer of the model.
    Assistant(AssistantMessage),
    /// The result of a tool call.
    ToolResult(ToolResultMessage),
    /// A shell command that the user ran in the session.
    BashExecution(BashExecutionMessage),
    /// A message of an extension; a user message to the model.
    Custom(CustomMessage),
    /// A summary of an abandoned branch; derived, never stored as a message.
    BranchSummary(BranchSummaryMessage),
    /// A summary of everything before this point; derived, never stored as a message.
    CompactionSummary(CompactionSummaryMessage),
}

/// A change of the system state: `content` is appended, sections are replaced by name, tools are added and removed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SystemMessage {
    /// Text appended to the system prompt.
    #[serde(default)]
    pub content: MessageContent,
    /// Named sections of the system prompt in order; `null` removes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sections: Option<Map<String, Value>>,
    /// Unix time in milliseconds.
    #[serde(default, deserialize_with = "number::lenient_i64")]
    pub timestamp: i64,
    /// Tools that the model can call from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_added: Option<Vec<Arc<ToolSpec>>>,
    /// Tools that the model can no longer call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_removed: Option<Vec<ToolName>>,
}

/// The name of a removed tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolName {
    /// The tool's name.
    pub name: String,
}

/// A prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UserMessage {
    /// Text and images.
    #[serde(default)]
    pub content: MessageContent,
    /// Unix time in milliseconds.
    #[serde(default, deserialize_with = "number::lenient_i64")]
    pub timestamp: i64,
}

/// An answer of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessage {
    /// Text, thinking and tool calls in the order in which the model began them.
    #[serde(default, deserialize_with = "null_as_default")]
    pub content: Vec<ContentBlock>,
    /// The provider API that was used.
    #[serde(default)]
    pub api: String,
    /// The provider.
    #[serde(default)]
    pub provider: String,
    /// The requested model.
    #[serde(default)]
    pub model: String,
    /// Tokens and their cost.
    #[serde(default)]
    pub usage: Usage,
    /// The reason why the answer ended.
    pub stop_reason: StopReason,
    /// Unix time in milliseconds at which the request was made.
    #[serde(default, deserialize_with = "number::lenient_i64")]
    pub timestamp: i64,
    /// The model that answered, if it is not the requested one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_model: Option<String>,
    /// The provider's id of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// The stop reason in the provider's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_stop_reason: Option<String>,
    /// The error, with the stop reasons `error` and `aborted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// The kind of failure, with the stop reason `error`: `model_refused` if the model refused. pi does not have this field.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known_code")]
    pub code: Option<ErrorCode>,
    /// From request to end in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The requested thinking level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<String>,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolResultMessage {
    /// The call that this answers.
    pub tool_call_id: String,
    /// The tool that was called.
    #[serde(default)]
    pub tool_name: String,
    /// Text and images for the model.
    #[serde(default, deserialize_with = "null_as_default")]
    pub content: Vec<ContentBlock>,
    /// Facts for clients; their shape depends on the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Tokens that the tool itself used on models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The calls that the tool itself made.
    #[serde(default, deserialize_with = "of_other_programs", skip_serializing_if = "Option::is_none")]
    pub nested_calls: Option<NestedCalls>,
    /// Whether the tool failed.
    #[serde(default)]
    pub is_error: bool,
    /// The tool's running time in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Unix time in milliseconds.
    #[serde(default, deserialize_with = "number::lenient_i64")]
    pub timestamp: i64,
}

/// The calls, or none where another program wrote something else there: the message is of use all the same.
fn of_other_programs<'de, D: Deserializer<'de>>(calls: D) -> Result<Option<NestedCalls>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(calls)?).ok())
}

/// The calls that a tool made while it ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct NestedCalls {
    /// The calls, in the order in which they began.
    pub calls: Vec<NestedCall>,
    /// Whether nothing is left out, and all have ended.
    pub complete: bool,
}

/// A call that a tool made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NestedCall {
    /// The call: the id of the one that made it, and a number.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, unless they are long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Map<String, Value>>,
    /// The bytes of arguments that are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_bytes: Option<u64>,
    /// `ok`, `error` or `unfinished`.
    pub status: String,
    /// The running time in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The beginning of the failure's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A shell command that the user ran, and its output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BashExecutionMessage {
    /// The command line.
    pub command: String,
    /// The end of its output.
    #[serde(default)]
    pub output: String,
    /// The exit code; absent when the command was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Whether the user cancelled it.
    #[serde(default)]
    pub cancelled: bool,
    /// Whether `output` is only a part.
    #[serde(default)]
    pub truncated: bool,
    /// The file with all output, when there was much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<String>,
    /// Unix time in milliseconds.
    #[serde(default, deserialize_with = "number::lenient_i64")]
    pub timestamp: i64,
    /// Whether it is kept from the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude_from_context: Option<bool>,
}

/// A message of an extension.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CustomMessage {
    /// The extension's name for this kind of message.
    pub custom_type: String,
    /// Text and images.
    #[serde(default)]
    pub content: MessageContent,
    /// Whether clients show it.
    #[serde(default)]
    pub display: bool,
    /// The extension's own data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Unix time in milliseconds.
    #[serde(default, deserialize_with = "number::lenient_i64")]
    pub timestamp: i64,
}

/// A summary of a branch that the conversation left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BranchSummaryMessage {
    /// The summary.
    pub summary: String,
    /// The leaf that was left, or `root`.
    #[serde(default)]
    pub from_id: String,
    /// Unix time in milliseconds.
    #[serde(default, deserialize_with = "number::lenient_i64")]
    pub timestamp: i64,
}

/// A summary of the conversation so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CompactionSummaryMessage {
    /// The summary.
    pub summary: String,
    /// Estimated tokens of the context that was summarised.
    #[serde(default, deserialize_with = "number::lenient_u64")]
    pub tokens_before: u64,
    /// Unix time in milliseconds.
    #[serde(default, deserialize_with = "number::lenient_i64")]
    pub timestamp: i64,
}

/// The reason why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    /// It has not ended; never stored.
    Pending,
    /// The model was done.
    Stop,
    /// The limit of output tokens was reached.
    Length,
    /// The model waits for tool results.
    ToolUse,
    /// An error occurred.
    Error,
    /// It was stopped.
    Aborted,
    /// The provider continues in the background.
    Deferred,
}

impl Message {
    /// The role's name in JSON.
    #[must_use]
    pub fn role(&self) -> &'static str {
        match self {
            Self::System(_) => "system",
            Self::User(_) => "user",
            Self::Assistant(_) => "assistant",
            Self::ToolResult(_) => "toolResult",
            Self::BashExecution(_) => "bashExecution",
            Self::Custom(_) => "custom",
            Self::BranchSummary(_) => "branchSummary",
            Self::CompactionSummary(_) => "compactionSummary",
        }
    }
}

impl AssistantMessage {
    /// The frame of an answer that is about to stream: no content, no tokens, `stopReason` pending.
    #[must_use]
    pub fn pending(api: &str, provider: &str, model: &str, timestamp: i64) -> Self {
        Self {
            content: Vec::new(),
            api: api.to_owned(),
            provider: provider.to_owned(),
            model: model.to_owned(),
            usage: Usage::default(),
            stop_reason: StopReason::Pending,
            timestamp,
            response_model: None,
            response_id: None,
            raw_stop_reason: None,
            error_message: None,
            code: None,
            duration_ms: None,
            thinking_level: None,
        }
    }

    /// The tool calls in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|block| match block {
            ContentBlock::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// The text blocks, concatenated.
    #[must_use]
    pub fn text(&self) -> String {
        self.content.iter().filter_map(ContentBlock::as_text).collect()
    }
}

impl ToolResultMessage {
    /// The text blocks joined by LF.
    #[must_use]
    pub fn text(&self) -> String {
        self.content.iter().filter_map(ContentBlock::as_text).collect::<Vec<_>>().join("\n")
    }
}

/// Reads an unknown code as none, so that the message can still be read.
fn known_code<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<ErrorCode>, D::Error> {
    Ok(ErrorCode::deserialize(Value::deserialize(deserializer)?).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of pi are written back byte for byte.
    fn check_round_trip(line: &str) {
        let message: Message = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&message).unwrap(), line);
    }

    #[test]
    fn messages_of_pi_round_trip() {
        check_round_trip(r#"{"role":"user","content":[{"type":"text","text":"TOOL please"}],"timestamp":0}"#);
        check_round_trip(
            r#"{"role":"assistant","content":[{"type":"text","text":"Running."},{"type":"toolCall","id":"call_1","name":"bash","arguments":{"command":"echo hi; exit 3"}}],"api":"openai-completions","provider":"fake","model":"fake","usage":{"input":100,"output":20,"cacheRead":0,"cacheWrite":0,"reasoning":0,"totalTokens":120,"cost":{"input":0,"output":0.000006,"cacheRead":0,"cacheWrite":0,"total":0.45,"totalFromProvider":false}},"stopReason":"toolUse","timestamp":0,"responseId":"r1","rawStopReason":"tool_calls","durationMs":0,"thinkingLevel":"off"}"#,
        );
        check_round_trip(
            r#"{"role":"toolResult","toolCallId":"call_1","toolName":"bash","content":[{"type":"text","text":"hi"}],"isError":true,"durationMs":0,"timestamp":0}"#,
        );
        check_round_trip(
            r#"{"role":"system","content":"","sections":{"preamble":"…","docs":null},"timestamp":0,"toolsAdded":[{"name":"read","description":"…","parameters":{"type":"object"},"constrainedSampling":{"type":"json_schema","strict":"prefer"}}]}"#,
        );
        check_round_trip(
            r#"{"role":"bashExecution","command":"ls","output":"a\n","exitCode":0,"cancelled":false,"truncated":false,"timestamp":5}"#,
        );
    }

    #[test]
    fn odd_content_of_other_programs_is_read() {
        let message: Message = serde_json::from_str(r#"{"role":"user","content":null}"#).unwrap();
        let Message::User(user) = message else { panic!("not a user message") };
        assert!(user.content.blocks().is_empty());
        let line = r#"{"role":"assistant","content":null,"stopReason":"stop","timestamp":1.5,"usage":{"input":1.0}}"#;
        let Message::Assistant(answer) = serde_json::from_str(line).unwrap() else { panic!("not an answer") };
        assert_eq!((answer.content.len(), answer.timestamp, answer.usage.input), (0, 1, 1));
    }
}
