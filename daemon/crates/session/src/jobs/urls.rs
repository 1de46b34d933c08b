//! `proc://` in the tools `read` and `write`: the state of jobs, their input, their end.

use agentd_agent::ToolError;
use agentd_protocol::{
    jobs::{JOB_URL, JobInfo, JobKind, JobStatus},
    tool::ToolResult,
};
use agentd_tools::{UrlContent, UrlReader, UrlWritten, job_line, job_state_text, kill_process, write_input};
use tokio_util::sync::CancellationToken;

use super::{table::SessionJobs, texts::late_text};

/// What follows an id to end the job.
const KILL: &str = "kill";

/// What follows an id to end its input.
const END_OF_INPUT: &str = "eof";

/// Reads and writes jobs: `proc://`, `proc://<id>`, `proc://<id>/kill`, `proc://<id>/eof`.
pub(crate) struct JobUrls(pub(crate) SessionJobs);

impl UrlReader for JobUrls {
    fn start(&self) -> &str {
        JOB_URL
    }

    fn read<'a>(&'a self, rest: &'a str, _: &'a CancellationToken) -> UrlContent<'a> {
        Box::pin(async move { self.content(rest).map(String::into_bytes).map_err(ToolError) })
    }

    fn write<'a>(&'a self, rest: &'a str, content: String, cancel: &'a CancellationToken) -> UrlWritten<'a> {
        Box::pin(async move { self.take(rest, &content, cancel).await })
    }

    fn is_writable(&self) -> bool {
        true
    }
}

impl JobUrls {
    fn content(&self, rest: &str) -> Result<String, String> {
        let rest = rest.trim_end_matches('/');
        if rest.is_empty() {
            return Ok(self.overview());
        }
        if let Some((id, what)) = rest.split_once('/') {
            return Err(format!(
                "{JOB_URL}{id}/{what} cannot be read. Read {JOB_URL}{id} for its state and output."
            ));
        }
        if let Some(process) = self.0.processes().get(rest) {
            return Ok(job_state_text(&process));
        }
        let job = self.0.find(rest)?;
        Ok(match job.kind {
            JobKind::Subagent => subagent_text(&job),
            JobKind::Process | JobKind::Service => late_text(&job) + "\n",
        })
    }

    fn overview(&self) -> String {
        let jobs = self.0.list();
        let line =
            |job: &JobInfo| match self.0.processes().get(&job.id).filter(|_| job.kind != JobKind::Subagent) {
                Some(process) => job_line(&process),
                None => {
                    let label = job.label.lines().next().unwrap_or_default();
                    format!("{} ({}) {}: {label}", job.id, job.kind.as_str(), job.state_text())
                }
            };
        match jobs.as_slice() {
            [] => "This session has no jobs.\n".to_owned(),
            jobs => jobs.iter().map(|job| line(job) + "\n").collect(),
        }
    }

    async fn take(
        &self,
        rest: &str,
        content: &str,
        cancel: &CancellationToken,
    ) -> Result<ToolResult, ToolError> {
        let (id, what) = rest.split_once('/').map_or((rest, None), |(id, what)| (id, Some(what)));
        let job = self.0.find(id).map_err(ToolError)?;
        if let Some(what) = what.filter(|what| ![KILL, END_OF_INPUT].contains(what)) {
            return Err(ToolError(format!(
                "Unknown: {JOB_URL}{id}/{what}. There are {JOB_URL}{id} for its input, {JOB_URL}{id}/{END_OF_INPUT} for the last of it, \
                 and {JOB_URL}{id}/{KILL} to end it."
            )));
        }
        if job.status != JobStatus::Running {
            return Err(ToolError(format!("{} has ended already: it {}.", job.id, job.state_text())));
        }
        if job.kind == JobKind::Subagent {
            return match what {
                Some(KILL) => {
                    self.0.subagents().stop(&job.id);
                    Ok(ToolResult::text(format!("The subagent {} is being stopped.", job.id)))
                }
                _ => Err(ToolError(format!("The subagent {} takes no input.", job.id))),
            };
        }
        let process = self.0.processes().get(&job.id);
        let process = process.ok_or_else(|| ToolError(format!("{} has ended.", job.id)))?;
        match what {
            Some(KILL) => tokio::select! {
                killed = kill_process(&process) => Ok(killed),
                () = cancel.cancelled() => Err(ToolError("Operation aborted".to_owned())),
            },
            what => write_input(&process, content, what.is_some(), cancel).await.map(ToolResult::text),
        }
    }
}

fn subagent_text(job: &JobInfo) -> String {
    let result = match job.status {
        JobStatus::Completed => format!("Its result: agent://{}\n", job.id),
        _ => String::new(),
    };
    format!("The subagent {} {}.\n{}\n{result}", job.id, job.state_text(), job.label)
}
