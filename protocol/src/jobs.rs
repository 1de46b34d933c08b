//! Jobs: what works for a session beside its run: background processes and subagents.

use serde::{Deserialize, Serialize};

/// The name of the tool that waits for a job.
pub const WAIT_TOOL: &str = "wait";

/// The `customType` of the message that tells a session's model of the end of a job.
pub const JOB_MESSAGE: &str = "agentd.job";

/// The kind of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum JobKind {
    /// A background process that `bash` started.
    Process,
    /// A subagent that `task` started.
    Subagent,
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum JobStatus {
    /// It works, or waits for its turn.
    Running,
    /// It has ended well: a process with the exit code 0, a subagent with a result.
    Completed,
    /// It has ended otherwise.
    Failed,
    /// It was stopped.
    Aborted,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct JobInfo {
    /// Its id: `bg-1` and so on for processes, its own for a subagent.
    pub id: String,
    /// Its kind.
    pub kind: JobKind,
    /// The command, or what the subagent is to do.
    pub label: String,
    /// Its state.
    pub status: JobStatus,
    /// The time that it has taken so far, in milliseconds.
    pub duration_ms: u64,
    /// The exit code of a process that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The session of a subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The call of a tool that started it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

/// The answer to `list_jobs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobList {
    /// The jobs of the session, those that have ended included: processes first, each kind in the order of its beginning.
    pub jobs: Vec<JobInfo>,
}

/// The fields of `kill_job` and `job_output`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct JobParams {
    /// The job's id.
    pub job_id: String,
}

/// The answer to `job_output`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobOutput {
    /// The job.
    pub job: JobInfo,
    /// The last 1,000 lines of a process; the result of a subagent, empty while it has none.
    pub output: String,
}
