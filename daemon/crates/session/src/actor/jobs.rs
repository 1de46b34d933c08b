//! The jobs of a session: the commands about them, and what its model is told of their ends.

use std::time::Duration;

use agentd_process::EndedBy;
use agentd_protocol::{
    error::{ErrorCode, Failure},
    jobs::{JobInfo, JobKind, JobList, JobOutput, JobParams, JobStatus},
    message::CustomMessage,
};

use super::session_actor::Actor;
use crate::{jobs::jobs, reply::Reply};

/// The lines of a process that `job_output` shows.
const LINES: usize = 1_000;

/// The time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

impl Actor {
    fn jobs(&self) -> Vec<JobInfo> {
        self.restore_subagents();
        jobs(&self.context.background, &self.context.subagents)
    }

    pub(super) fn list_jobs(&self, reply: Reply) {
        reply.data(&self.feed, JobList { jobs: self.jobs() });
    }

    fn job(&self, id: &str) -> Result<JobInfo, Failure> {
        let jobs = self.jobs();
        let known = jobs.iter().map(|job| job.id.as_str()).collect::<Vec<_>>().join(", ");
        jobs.into_iter().find(|job| job.id == id).ok_or_else(|| {
            let known = if known.is_empty() { "none".to_owned() } else { known };
            Failure::new(
                ErrorCode::InvalidField,
                format!("The session has no job \"{id}\"; there are: {known}."),
            )
        })
    }

    /// Answers in a task, when the job has ended.
    pub(super) fn kill_job(&mut self, params: JobParams, reply: Reply) {
        let job = match self.job(&params.job_id) {
            Ok(job) => job,
            Err(failure) => return reply.fail(&self.feed, failure),
        };
        if job.status != JobStatus::Running {
            return reply.data(&self.feed, job);
        }
        let (context, feed, id) = (std::sync::Arc::clone(&self.context), self.feed.clone(), params.job_id);
        self.tasks.spawn(async move {
            match job.kind {
                JobKind::Process => {
                    if let Some(process) = context.background.get(&id) {
                        process.terminate(GRACE, EndedBy::Request).await;
                    }
                }
                JobKind::Subagent => {
                    let mut news = context.job_news.listen();
                    context.subagents.stop(&id);
                    while context.subagents.find(&id).is_some_and(|it| it.status.is_active()) {
                        if news.changed().await.is_err() {
                            break;
                        }
                    }
                }
            }
            let now = jobs(&context.background, &context.subagents).into_iter().find(|now| now.id == id);
            reply.data(&feed, now.unwrap_or(job));
        });
    }

    pub(super) async fn job_output(&self, params: JobParams, reply: Reply) {
        let job = match self.job(&params.job_id) {
            Ok(job) => job,
            Err(failure) => return reply.fail(&self.feed, failure),
        };
        let output = match job.kind {
            JobKind::Process => {
                let process = self.context.background.get(&job.id);
                process.map(|process| process.last_lines(LINES).text).unwrap_or_default()
            }
            JobKind::Subagent if job.status == JobStatus::Running => String::new(),
            JobKind::Subagent => self.context.subagents.result_text(&job.id).await.unwrap_or_default(),
        };
        reply.data(&self.feed, JobOutput { job, output });
    }

    /// Whether the end of a job begins a run, where there is none.
    pub(super) fn job_ends_wake(&self) -> bool {
        self.context.settings.task.as_ref().and_then(|task| task.wake_up).unwrap_or(false)
    }

    /// Tells the model that a job has ended: in the running turn, with a run of its own where the settings say so, else with the next prompt.
    pub(super) async fn tell_job_end(&mut self, message: CustomMessage) {
        if self.closing {
            return;
        }
        let wakes = self.job_ends_wake();
        if let Err(failure) = self.take_custom(message, Some(wakes), Some("steer")).await {
            tracing::error!(error = failure.message, "the end of a job could not be told");
        }
    }
}
