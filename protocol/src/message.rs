//! The neutral transcript vocabulary: messages, content blocks, usage, stop reasons.
//!
//! The same JSON is used on the wire, in session files, and between the parts of the daemon. Field order is the
//! reference's.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use crate::usage::{Cost, Usage};
use crate::{error::ErrorCode, number, tool::ToolSpec};

/// One message of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "role", rename_all = "camelCase")]
pub enum Message {
    /// What the model is told about itself, its tools and its surroundings; later ones change earlier ones.
    System(SystemMessage),
    /// What a person, or a program in their name, said.
    User(UserMessage),
    /// What the model answered.
    Assistant(AssistantMessage),
    /// What a tool gave back.
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

/// A change of the system state: `content` is appended, sections are replaced by name, tools come and go.
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
    pub tools_added: Option<Vec<ToolSpec>>,
    /// Tools that the model can no longer call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_removed: Option<Vec<ToolName>>,
}

/// The name of a tool that is no longer there.
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
    /// The wire API that was spoken.
    #[serde(default)]
    pub api: String,
    /// The provider.
    #[serde(default)]
    pub provider: String,
    /// The model asked.
    #[serde(default)]
    pub model: String,
    /// Tokens and their cost.
    #[serde(default)]
    pub usage: Usage,
    /// Why the answer ended.
    pub stop_reason: StopReason,
    /// Unix time in milliseconds at which the request was made.
    #[serde(default, deserialize_with = "number::lenient_i64")]
    pub timestamp: i64,
    /// The model that answered, where it is not the one asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_model: Option<String>,
    /// The provider's id of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// The stop reason in the provider's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_stop_reason: Option<String>,
    /// What went wrong, with the stop reasons `error` and `aborted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// The kind of failure, with the stop reason `error`, where the model refused: `model_refused`. Not the reference's.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known_code")]
    pub code: Option<ErrorCode>,
    /// From request to end in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The thinking level asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<String>,
}

/// What a tool call gave back.
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
    /// Tokens that the tool itself spent on models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Whether the tool failed.
    #[serde(default)]
    pub is_error: bool,
    /// How long the tool worked, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Unix time in milliseconds.
    #[serde(default, deserialize_with = "number::lenient_i64")]
    pub timestamp: i64,
}

/// A shell command that the user ran, and what it printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BashExecutionMessage {
    /// The command line.
    pub command: String,
    /// The end of what it printed.
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
    /// Whether the model is spared it.
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

/// The content of a message: plain text, or a list of blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum MessageContent {
    /// Plain text.
    Text(String),
    /// Blocks.
    Blocks(Vec<ContentBlock>),
    /// Nothing (`null`, found in files of other programs).
    Nothing,
}

impl Default for MessageContent {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl MessageContent {
    /// The text of all text blocks joined by LF, or the plain text.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => {
                blocks.iter().filter_map(ContentBlock::as_text).collect::<Vec<_>>().join("\n")
            }
            Self::Nothing => String::new(),
        }
    }

    /// The content as blocks: plain text is one text block, empty text none.
    #[must_use]
    pub fn blocks(&self) -> std::borrow::Cow<'_, [ContentBlock]> {
        match self {
            Self::Text(text) if text.is_empty() => std::borrow::Cow::Owned(Vec::new()),
            Self::Text(text) => std::borrow::Cow::Owned(vec![ContentBlock::text(text.clone())]),
            Self::Blocks(blocks) => std::borrow::Cow::Borrowed(blocks),
            Self::Nothing => std::borrow::Cow::Owned(Vec::new()),
        }
    }
}

/// A piece of content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ContentBlock {
    /// Text.
    #[serde(rename_all = "camelCase")]
    Text {
        /// The text.
        text: String,
        /// The provider's opaque signature.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text_signature: Option<String>,
    },
    /// The model's reasoning, where the provider shows it.
    #[serde(rename_all = "camelCase")]
    Thinking {
        /// The reasoning.
        thinking: String,
        /// The provider's opaque signature, needed to send the block back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thinking_signature: Option<String>,
        /// Whether the provider withheld the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        redacted: Option<bool>,
    },
    /// An image.
    Image(ImageContent),
    /// A wish of the model to have a tool called.
    ToolCall(ToolCall),
}

impl ContentBlock {
    /// A text block.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), text_signature: None }
    }

    /// The text of a text block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => Some(text),
            _ => None,
        }
    }
}

/// A tool call of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The call's id, unique in the session.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, as the model gave them.
    #[serde(default, deserialize_with = "null_as_default")]
    pub arguments: Map<String, Value>,
    /// The provider's opaque signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_signature: Option<String>,
    /// The provider's name space of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Why the arguments could not be read, when they could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_error: Option<String>,
}

/// An image, inline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImageContent {
    /// The bytes in base64.
    pub data: String,
    /// Such as `image/png`.
    pub mime_type: String,
}

/// Why an answer ended.
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
    /// Something went wrong.
    Error,
    /// Someone stopped it.
    Aborted,
    /// The provider goes on in the background.
    Deferred,
}

impl Message {
    /// The role's name on the wire.
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

/// Reads `null` as the type's default: other programs write it where a list or an object is meant.
pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads a code that is not known here as none: the message is still one.
fn known_code<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<ErrorCode>, D::Error> {
    Ok(ErrorCode::deserialize(Value::deserialize(deserializer)?).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of the reference come back byte for byte.
    fn check_round_trip(line: &str) {
        let message: Message = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&message).unwrap(), line);
    }

    #[test]
    fn reference_messages_round_trip() {
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
