//! Tools that clients provide: a client registers them, is asked for each call, and answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    message::{ContentBlock, ImageContent, null_as_default},
    tool::ToolResult,
    tool_list::ToolExecution,
};

/// The fields of `register_tools`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RegisterToolsParams {
    /// The tools. One that this connection has registered already is replaced. All of them are taken, or none.
    pub tools: Vec<ClientTool>,
    /// The session that gets them, and no other; the connection must follow it. Without it: the current session, if there is
    /// one, and every session that the connection opens, attaches or goes on to from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// A tool that a client provides.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClientTool {
    /// The name: 1 to 64 letters, digits, `_` and `-`, and no other tool's of the session.
    pub name: String,
    /// Its description for the model.
    pub description: String,
    /// JSON Schema of the arguments: an object with `"type": "object"`. Calls are checked against it before the client is
    /// asked. References to other documents are not followed.
    pub parameters: Value,
    /// The name that people see; default the `name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// A line for the list of tools in the system prompt; without one the tool is not in that list, and the model still
    /// gets its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snippet: Option<String>,
    /// Advice for the system prompt, a sentence each.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub guidelines: Vec<String>,
    /// Whether calls may run beside others; default `parallel`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub execution: ToolExecution,
    /// The time limit of a call in milliseconds; 0 for no limit. Default: the setting
    /// `clientTools.timeoutMs` (10 minutes).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The form of its calls. Set by the connection.
    #[serde(skip)]
    pub calls: CallForm,
}

/// The form in which calls of a tool come to its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallForm {
    /// `tool_request` and `tool_cancel`.
    #[default]
    ToolRequest,
    /// `host_tool_call` and `host_tool_cancel`, as omp's clients know them.
    HostToolCall,
}

/// The answer to `register_tools`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RegisteredTools {
    /// The names of the tools.
    pub tools: Vec<String>,
    /// The session that has them now; absent where the connection has none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// The fields of `unregister_tools`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UnregisterToolsParams {
    /// The names of tools that this connection has registered; default all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The session that is to lose them, and no other. Without it: every session, now and later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// The answer to `unregister_tools`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnregisteredTools {
    /// The names of the tools that are gone, sorted.
    pub tools: Vec<String>,
}

/// The model calls a tool of this client: answer with `tool_response`, or with `tool_progress` and then `tool_response`.
/// It comes after the call's `tool_execution_start`. It is no event of the session: it has no `seq`, and nobody else gets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolRequest {
    /// Names the request: a UUID of version 4.
    pub request_id: String,
    /// The session.
    pub session_id: String,
    /// The id of the call in the session.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// The arguments, which fit the tool's schema: an object.
    pub args: Value,
}

/// A call needs no answer any more: one that comes all the same is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolCancel {
    /// The request.
    pub request_id: String,
    /// The session.
    pub session_id: String,
    /// Why.
    pub reason: ToolCancelReason,
}

/// Why a call needs no answer any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ToolCancelReason {
    /// The run was stopped, or its tool calls were.
    Aborted,
    /// The client took too long.
    Timeout,
}

/// The fields of `tool_response`: `result`, or `error`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolResponseParams {
    /// The request.
    pub request_id: String,
    /// The result of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ClientToolResult>,
    /// Why the call failed, for the model to act on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The fields of `tool_progress`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolProgressParams {
    /// The request.
    pub request_id: String,
    /// The result so far: it replaces what was shown before. It becomes a `tool_execution_update` of the session.
    pub partial_result: ClientToolResult,
}

/// The result of a client's tool, complete or so far.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClientToolResult {
    /// Text and images for the model.
    pub content: Vec<ToolContent>,
    /// Facts for clients that show the call; any JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Whether the call failed in a way that `content` tells; default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Whether the run may end with this answer's calls, without asking the model again: it does when every result of the
    /// answer says so. Means nothing in a `partialResult`. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminate: Option<bool>,
}

impl From<ClientToolResult> for ToolResult {
    fn from(result: ClientToolResult) -> Self {
        let ClientToolResult { content, details, is_error, terminate } = result;
        let content = content.into_iter().map(|block| match block {
            ToolContent::Text { text } => ContentBlock::text(text),
            ToolContent::Image(image) => ContentBlock::Image(image),
        });
        Self {
            content: content.collect(),
            details,
            is_error: is_error.filter(|failed| *failed),
            terminate: terminate.filter(|ends| *ends),
            ..Self::default()
        }
    }
}

/// A block of a tool's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ToolContent {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image: PNG, JPEG, GIF or WebP.
    Image(ImageContent),
}
