//! The setting `task`: subagents.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::isolation::{CommitMessages, IsolationBackend, IsolationMode};

/// The tool `task`, which starts subagents.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct TaskSettings {
    /// Whether the tool is active in new sessions; default false, for `agentctl` and in editors (`agentd acp`) true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether calls may leave subagents at work and go on (`background`), and the tool `wait` waits for them; default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<bool>,
    /// Whether the end of a job, of a background process, too, begins a run when the session is idle; default false: the model is told of it
    /// with the next prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wake_up: Option<bool>,
    /// Whether calls may say how much a subagent should think (`effort`); default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_effort: Option<bool>,
    /// How many subagents of one session work at the same time; default 8, 0 for no limit. Others wait for their turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u64>,
    /// How deep subagents may start subagents: 1 for those of the user's session alone; default 2, negative for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_recursion_depth: Option<i64>,
    /// The time that a subagent has, in milliseconds; default 0, which is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_runtime_ms: Option<u64>,
    /// Answers of its model after which a subagent is told to come to its end; default 200, 0 for no limit. After half as many again it is
    /// stopped, and what it has found counts as its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft_request_budget: Option<u64>,
    /// How long the session of a subagent stays in memory after it has ended, in milliseconds; default 420000. Then only its file is left; a
    /// message to it has it go on either way. 0: as long as other sessions (`daemon.idleUnloadMs`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// Models in the place of those that definitions of agents name, by the name of the agent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agent_model_overrides: BTreeMap<String, String>,
    /// Subagents in copies of the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<TaskIsolationSettings>,
    /// Agents that are not started, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disabled_agents: Vec<String>,
}

/// Subagents in copies of the repository (`isolated` in a call).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct TaskIsolationSettings {
    /// Whether calls may ask for it; default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether the changes of a subagent that has succeeded are brought back at once; default true. Else `apply_patch` and `discard_patch` decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply: Option<bool>,
    /// How they are brought back; default `patch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge: Option<IsolationMode>,
    /// With `merge: branch`: where the message of the commit for what a subagent has not committed itself comes from; default `generic`. `ai` asks
    /// the session's model, within its budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commits: Option<CommitMessages>,
}

/// How isolated copies are made.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct IsolationSettings {
    /// How; default `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<IsolationBackend>,
    /// Folders of the repository that copies have as links to the originals, such as `node_modules`; default none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
}
