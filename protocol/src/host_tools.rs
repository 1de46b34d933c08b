//! Tools that a host provides, in the words of omp's clients: the same as client tools (`register_tools`), by other names.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    client_tools::{CallForm, ClientTool, ClientToolResult, ToolProgressParams, ToolResponseParams},
    frame::{FieldError, parse_params},
    message::null_as_default,
};

/// The time limit of a call of a host's tool, in milliseconds: an hour.
pub const HOST_TOOL_TIMEOUT_MS: u64 = 60 * 60 * 1000;

/// The fields of `set_host_tools`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetHostToolsParams {
    /// All tools of this host: they replace those of the command before. An empty list removes them.
    pub tools: Vec<HostTool>,
}

/// A tool of a host.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostTool {
    /// The name: 1 to 64 letters, digits, `_` and `-`, and no other tool's of the session.
    pub name: String,
    /// The name that people see; default the `name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its description for the model.
    pub description: String,
    /// JSON Schema of the arguments: an object with `"type": "object"`.
    pub parameters: Value,
    /// Accepted for omp's clients, without effect: every tool of a host is active at once; `set_active_tools` deactivates it.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// Accepted for omp's clients, without effect: the model has every active tool from the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_mode: Option<String>,
}

impl From<HostTool> for ClientTool {
    fn from(tool: HostTool) -> Self {
        Self {
            name: tool.name,
            description: tool.description,
            parameters: tool.parameters,
            label: tool.label.filter(|label| !label.trim().is_empty()),
            timeout_ms: Some(HOST_TOOL_TIMEOUT_MS),
            calls: CallForm::HostToolCall,
            ..Self::default()
        }
    }
}

/// The answer to `set_host_tools`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostTools {
    /// The names of the host's tools, in its order.
    pub tool_names: Vec<String>,
}

/// The model calls a tool of this host: answer with `host_tool_result`, or with `host_tool_update` lines and then that. It comes after the
/// call's `tool_execution_start`. It is no event of the session: it has no `seq`, and nobody else gets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostToolCall {
    /// Names the call for its answers: a UUID of version 4.
    pub id: String,
    /// The id of the call in the session.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// The arguments, which fit the tool's schema: an object.
    pub arguments: Value,
    /// The session.
    pub session_id: String,
}

/// A call needs no answer any more: it was aborted, or took too long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostToolCancel {
    /// Names this line: a UUID of version 4.
    pub id: String,
    /// The `id` of the call.
    pub target_id: String,
    /// The session.
    pub session_id: String,
}

/// The result so far of a call. No command: it has a response only if it cannot be used.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostToolUpdate {
    /// The `id` of the call.
    pub id: String,
    /// The result so far: it replaces what was shown before. It becomes a `tool_execution_update` of the session.
    pub partial_result: ClientToolResult,
}

/// The result of a call. No command: it has a response only if it cannot be used.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostToolResult {
    /// The `id` of the call.
    pub id: String,
    /// The result.
    pub result: ClientToolResult,
    /// Whether the call failed, in a way that the result's `content` tells; default false.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

impl HostToolUpdate {
    /// The `type` of its line.
    pub const TYPE: &'static str = "host_tool_update";

    /// Reads it from its line.
    ///
    /// # Errors
    /// Names the field that is missing or unusable, and what was expected.
    pub fn parse(line: &str) -> Result<Self, FieldError> {
        parse_params(line)
    }
}

impl HostToolResult {
    /// The `type` of its line.
    pub const TYPE: &'static str = "host_tool_result";

    /// Reads it from its line.
    ///
    /// # Errors
    /// Names the field that is missing or unusable, and what was expected.
    pub fn parse(line: &str) -> Result<Self, FieldError> {
        parse_params(line)
    }
}

impl From<HostToolUpdate> for ToolProgressParams {
    fn from(update: HostToolUpdate) -> Self {
        Self { request_id: update.id, partial_result: update.partial_result }
    }
}

impl From<HostToolResult> for ToolResponseParams {
    fn from(HostToolResult { id, mut result, is_error }: HostToolResult) -> Self {
        if is_error {
            result.is_error = Some(true);
        }
        Self { request_id: id, result: Some(result), error: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_omps_clients_are_read() {
        let line = r#"{"type":"host_tool_result","id":"c","result":{"content":[{"type":"text","text":"x"}],"details":{}},"isError":true}"#;
        let params = ToolResponseParams::from(HostToolResult::parse(line).unwrap());
        assert_eq!(params.request_id, "c");
        assert_eq!(params.result.unwrap().is_error, Some(true));
        let error = HostToolResult::parse(r#"{"type":"host_tool_result","id":"c"}"#).unwrap_err();
        assert_eq!(error.to_string(), "Missing field \"result\"");
        let line = r#"{"type":"host_tool_update","id":"c","partialResult":{"content":[]}}"#;
        assert_eq!(HostToolUpdate::parse(line).unwrap().id, "c");
    }
}
