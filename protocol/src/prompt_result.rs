//! How prompts end, for clients with the capability `promptResult`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ErrorCode;

/// A prompt of this client has ended. It comes once for each `prompt`, `abort_and_prompt` and `continue` that was answered with
/// `agentInvoked: true`, after that answer, and before the `agent_settled` of its run. It is no event of the session: it has no `seq`, and
/// nobody else gets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PromptResult {
    /// The `id` of the command, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    /// Always true: a prompt for which the model is not asked has no such end.
    pub agent_invoked: bool,
    /// How it ended.
    pub status: PromptStatus,
    /// The failure, with the status `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<PromptError>,
    /// Whether nothing will wake the session any more: no run is active, and nothing waits. If not, `session_settled` follows once
    /// that is so.
    pub session_settled: bool,
    /// The session.
    pub session_id: String,
}

/// How a prompt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum PromptStatus {
    /// The run ended with an answer.
    Completed,
    /// The run was stopped, or the message was taken back before a model saw it.
    Aborted,
    /// The run ended with an error.
    Error,
}

/// Why a prompt ended with an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PromptError {
    /// The error, as in the `errorMessage` of the answer.
    pub message: String,
    /// The provider that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The HTTP status of the provider, where it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// The kind of failure, where it has a code: `model_refused`, `limit_reached`, `io`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// Whether the failure is of a kind that passes: the same prompt may succeed later. agentd's own retries are used up.
    pub retryable: bool,
}

/// Nothing will wake the session any more: no run is active, no message waits, and nothing is under way that could begin a run. Comes
/// behind `agent_settled`, only for clients with the capability `promptResult`; it has no `seq`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionSettled {}
