//! Background processes and subagents as jobs. Pure but for the clocks.

use agentd_process::{BackgroundProcess, BackgroundState, EndedBy};
use agentd_protocol::{
    jobs::{JobInfo, JobKind, JobStatus},
    subagent::{SubagentSnapshot, SubagentStatus},
};

use crate::clock::now_ms;

/// A background process as a job.
pub(crate) fn of_process(process: &BackgroundProcess) -> JobInfo {
    let (status, exit_code) = match process.state() {
        BackgroundState::Running | BackgroundState::ShellEnded(_) => (JobStatus::Running, None),
        BackgroundState::Ended(end) => {
            let status = match end.by {
                Some(EndedBy::Request | EndedBy::User | EndedBy::Restart) => JobStatus::Aborted,
                None if end.exit.code == 0 => JobStatus::Completed,
                None | Some(EndedBy::Timeout | EndedBy::Limit(_)) => JobStatus::Failed,
            };
            (status, Some(end.exit.code))
        }
    };
    let facts = process.facts();
    let since_start = u64::try_from(process.since_start().as_millis()).unwrap_or(u64::MAX);
    JobInfo {
        id: process.id().to_owned(),
        kind: if facts.is_service { JobKind::Service } else { JobKind::Process },
        label: process.label().to_owned(),
        status,
        duration_ms: u64::try_from(process.age().as_millis()).unwrap_or(u64::MAX),
        started_at: u64::try_from(now_ms()).ok().map(|now| now.saturating_sub(since_start)),
        name: facts.name.clone(),
        exit_code,
        output_bytes: Some(process.total_bytes()),
        artifact_id: process.file().artifact_id,
        session_id: None,
        tool_call_id: facts.call_id.clone(),
    }
}

/// A subagent as a job.
pub(crate) fn of_subagent(subagent: &SubagentSnapshot) -> JobInfo {
    JobInfo {
        id: subagent.id.clone(),
        kind: JobKind::Subagent,
        label: subagent.task.clone().unwrap_or_default(),
        status: match subagent.status {
            SubagentStatus::Pending | SubagentStatus::Running => JobStatus::Running,
            SubagentStatus::Completed => JobStatus::Completed,
            SubagentStatus::Failed => JobStatus::Failed,
            SubagentStatus::Aborted => JobStatus::Aborted,
            SubagentStatus::Interrupted => JobStatus::Interrupted,
        },
        duration_ms: subagent.progress.as_ref().map_or(0, |progress| progress.duration_ms),
        started_at: None,
        name: None,
        exit_code: None,
        output_bytes: None,
        artifact_id: None,
        session_id: subagent.session_id.clone(),
        tool_call_id: subagent.parent_tool_call_id.clone(),
    }
}
