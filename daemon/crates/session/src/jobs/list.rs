//! The jobs of a session as one list. Pure but for the clocks of processes.

use agentd_process::{BackgroundProcess, BackgroundProcesses, BackgroundState, EndedBy};
use agentd_protocol::{
    jobs::{JobInfo, JobKind, JobStatus},
    subagent::{SubagentSnapshot, SubagentStatus},
};

use crate::subagents::Subagents;

/// All jobs, those that have ended included.
pub(crate) fn jobs(processes: &BackgroundProcesses, subagents: &Subagents) -> Vec<JobInfo> {
    let of_processes = processes.list();
    let of_processes = of_processes.iter().map(|process| of_process(process));
    of_processes.chain(subagents.list().iter().map(of_subagent)).collect()
}

fn of_process(process: &BackgroundProcess) -> JobInfo {
    let (status, exit_code) = match process.state() {
        BackgroundState::Running | BackgroundState::ShellEnded(_) => (JobStatus::Running, None),
        BackgroundState::Ended(end) => {
            let status = match end.by {
                Some(EndedBy::Request) => JobStatus::Aborted,
                None if end.exit.code == 0 => JobStatus::Completed,
                None | Some(EndedBy::Timeout) => JobStatus::Failed,
            };
            (status, Some(end.exit.code))
        }
    };
    JobInfo {
        id: process.id().to_owned(),
        kind: JobKind::Process,
        label: process.label().to_owned(),
        status,
        duration_ms: u64::try_from(process.age().as_millis()).unwrap_or(u64::MAX),
        exit_code,
        session_id: None,
        tool_call_id: None,
    }
}

fn of_subagent(subagent: &SubagentSnapshot) -> JobInfo {
    JobInfo {
        id: subagent.id.clone(),
        kind: JobKind::Subagent,
        label: subagent.task.clone().unwrap_or_default(),
        status: match subagent.status {
            SubagentStatus::Pending | SubagentStatus::Running => JobStatus::Running,
            SubagentStatus::Completed => JobStatus::Completed,
            SubagentStatus::Failed => JobStatus::Failed,
            SubagentStatus::Aborted | SubagentStatus::Interrupted => JobStatus::Aborted,
        },
        duration_ms: subagent.progress.as_ref().map_or(0, |progress| progress.duration_ms),
        exit_code: None,
        session_id: subagent.session_id.clone(),
        tool_call_id: subagent.parent_tool_call_id.clone(),
    }
}
