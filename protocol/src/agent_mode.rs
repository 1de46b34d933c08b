//! The mode of a session: whether the model works, or only plans and changes nothing.

use serde::{Deserialize, Serialize};

/// The `customType` of the entry that keeps a change of the mode.
pub const MODE_ENTRY: &str = "agentd.mode-change";

/// The name of the tool by which the model proposes a plan.
pub const PROPOSE_PLAN_TOOL: &str = "propose_plan";

/// The `customType` of the hidden message that gives the model an approved plan.
pub const PLAN_MESSAGE: &str = "agentd.approved-plan";

/// The beginning of URLs of files in the session's own folder.
pub const LOCAL_URL: &str = "local://";

/// The mode of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AgentMode {
    /// The model works as the permissions let it.
    #[default]
    Default,
    /// The model looks around and proposes a plan; calls that change something are refused.
    Plan,
}

impl AgentMode {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Plan => "plan",
        }
    }

    pub(crate) fn is_default(&self) -> bool {
        *self == Self::Default
    }
}

/// The fields of `set_mode`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetModeParams {
    /// The mode.
    pub mode: AgentMode,
    /// The client that sent it. Set by the connection.
    #[serde(skip)]
    pub client: String,
}

/// The answer to `set_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModeState {
    /// The mode that counts now.
    pub mode: AgentMode,
}

/// The mode of the session is another one; only after `hello`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModeChanged {
    /// The mode that counts now.
    pub mode: AgentMode,
    /// The client that changed it; absent where the approval of a plan did, or where the session was opened with the mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The plan that the user has approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<ApprovedPlan>,
}

/// A plan that the user has approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApprovedPlan {
    /// The title: letters, digits, `_` and `-`.
    pub title: String,
    /// The plan's file, as the tools name it: `local://TITLE-plan.md`.
    pub url: String,
    /// The session that carries it out; absent where the session that planned does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The file of that session; absent for one in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
}
