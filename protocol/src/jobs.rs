//! Jobs: what works for a session beside its run: background processes and subagents.

use serde::{Deserialize, Serialize};

/// The name of the tool that waits for a job.
pub const WAIT_TOOL: &str = "wait";

/// The `customType` of the message that tells a session's model of the end of a job. The `details` of that of a process are
/// `{"job":…}`, a [`JobInfo`].
pub const JOB_MESSAGE: &str = "agentd.job";

/// The `customType` of the entries by which a session knows its processes that are jobs: a [`JobRecords`]. A later record with the same
/// id takes the place of an earlier one.
pub const JOB_ENTRY: &str = "agentd.jobs";

/// URLs of jobs in the tools `read` and `write` begin so.
pub const JOB_URL: &str = "proc://";

/// The kind of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum JobKind {
    /// A background process that `bash` started.
    Process,
    /// A background process with a name, or one that said when it was ready: something that others use while it runs.
    Service,
    /// A subagent that `task` started.
    Subagent,
}

impl JobKind {
    /// The word of the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Service => "service",
            Self::Subagent => "subagent",
        }
    }
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
    /// The daemon ended while it worked.
    Interrupted,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// When a process began, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<u64>,
    /// The name of a service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The exit code of a process that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The length of a process's output so far, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// The artifact that has a process's output from its beginning (`get_artifact`, `artifact://ID` in the tool `read`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_id: Option<String>,
    /// The session of a subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The call of a tool that started it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

impl JobInfo {
    /// How it is, or how it ended, as the rest of a sentence about it.
    #[must_use]
    pub fn state_text(&self) -> String {
        match (self.status, self.exit_code) {
            (JobStatus::Running, _) => "is running".to_owned(),
            (JobStatus::Interrupted, _) => "was interrupted".to_owned(),
            (JobStatus::Aborted, _) => "was stopped".to_owned(),
            (_, Some(code)) => format!("exited with code {code}"),
            (JobStatus::Completed, None) => "is done".to_owned(),
            (JobStatus::Failed, None) => "has failed".to_owned(),
        }
    }
}

/// The answer to `list_jobs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobList {
    /// The jobs of the session, those that have ended included: processes first, each kind in the order of its beginning.
    pub jobs: Vec<JobInfo>,
}

/// What a session's file says of its processes that are jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobRecords {
    /// The id of the session that they work for: a copy of the session has the entry, too, and not the jobs.
    pub session: String,
    /// Jobs that began or ended.
    pub jobs: Vec<JobRecord>,
}

/// A job in a session's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobRecord {
    /// The job as it was then.
    #[serde(flatten)]
    pub job: JobInfo,
    /// Whether the model knows of its end from the result of a call, so that no message tells it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told: bool,
}

/// A job began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobStart {
    /// The job.
    pub job: JobInfo,
}

/// A job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobEnd {
    /// The job.
    pub job: JobInfo,
}

/// The fields of `kill_job`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct JobParams {
    /// The job's id, or the name of a service.
    pub job_id: String,
}

/// The fields of `job_output`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct JobOutputParams {
    /// The job's id, or the name of a service.
    pub job_id: String,
    /// Where to begin, in bytes of the output; without it, the end of the output comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The most bytes to get; default 262144 (256 KiB), at most 1048576 (1 MiB).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// The answer to `job_output`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct JobOutput {
    /// The job.
    pub job: JobInfo,
    /// Without `offset`, the last 1,000 lines of a process; else its output from there on. The result of a subagent, empty while it has
    /// none.
    pub output: String,
    /// Where this part begins, in bytes of the whole: later than asked for where the output before it was not kept.
    pub offset: u64,
    /// Where the next part begins.
    pub next_offset: u64,
    /// The length of the whole so far.
    pub total_bytes: u64,
    /// Whether the job has ended and this part is the last one.
    pub eof: bool,
}
