//! The jobs of a session: the commands about them, and what its model is told of their ends.

use std::{sync::Arc, time::Duration};

use agentd_process::{ArtifactPart, BackgroundProcess, EndedBy};
use agentd_protocol::{
    error::{ErrorCode, Failure},
    jobs::{
        JobEnd, JobInfo, JobKind, JobList, JobOutput, JobOutputParams, JobParams, JobRecord, JobStart,
        JobStatus,
    },
    message::CustomMessage,
    text_bounds,
};

use super::session_actor::Actor;
use crate::{
    jobs::{JobMessage, RecordedJobs, end_message, job_entry, jobs_in, late_message, of_process},
    reply::Reply,
};

/// The lines of a process that `job_output` shows where it is not asked for a place.
const LINES: usize = 1_000;

/// The default length of one part: 256 KiB.
const DEFAULT_BYTES: u64 = 256 << 10;

/// The most that one answer has: 1 MiB.
const MAX_BYTES: u64 = 1 << 20;

/// The time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

impl Actor {
    pub(super) fn list_jobs(&self, reply: Reply) {
        self.restore_subagents();
        reply.data(&self.feed, JobList { jobs: self.context.jobs.list() });
    }

    fn job(&self, id: &str) -> Result<JobInfo, Failure> {
        self.restore_subagents();
        self.context.jobs.find(id).map_err(|text| Failure::new(ErrorCode::InvalidField, text))
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
        let (context, feed) = (Arc::clone(&self.context), self.feed.clone());
        self.tasks.spawn(async move {
            match job.kind {
                JobKind::Process | JobKind::Service => {
                    if let Some(process) = context.background.get(&job.id) {
                        process.terminate(GRACE, EndedBy::User).await;
                    }
                }
                JobKind::Subagent => {
                    let mut news = context.job_news.listen();
                    context.subagents.stop(&job.id);
                    while context.subagents.find(&job.id).is_some_and(|it| it.status.is_active()) {
                        if news.changed().await.is_err() {
                            break;
                        }
                    }
                }
            }
            reply.data(&feed, context.jobs.find(&job.id).unwrap_or(job));
        });
    }

    /// Reads files on a blocking thread; the session waits, as for other answers from its files.
    pub(super) async fn job_output(&self, params: JobOutputParams, reply: Reply) {
        let job = match self.job(&params.job_id) {
            Ok(job) => job,
            Err(failure) => return reply.fail(&self.feed, failure),
        };
        let limit = usize::try_from(params.limit.unwrap_or(DEFAULT_BYTES).min(MAX_BYTES)).unwrap_or_default();
        let part = match job.kind {
            JobKind::Process | JobKind::Service => self.process_output(&job, params.offset, limit).await,
            JobKind::Subagent => {
                let text = match job.status {
                    JobStatus::Running => String::new(),
                    _ => self.context.subagents.result_text(&job.id).await.unwrap_or_default(),
                };
                Ok(part_of(&text, params.offset.unwrap_or(0), limit))
            }
        };
        let output = part.map(|JobPart { output, offset, total_bytes }| {
            let next_offset = offset + output.len() as u64;
            let eof = job.status != JobStatus::Running && next_offset >= total_bytes;
            JobOutput { job, output, offset, next_offset, total_bytes, eof }
        });
        reply.result(&self.feed, output);
    }

    /// The output of a process: its end from memory, or from a place on, where its file has that.
    async fn process_output(
        &self,
        job: &JobInfo,
        offset: Option<u64>,
        limit: usize,
    ) -> Result<JobPart, Failure> {
        let process = self.context.background.get(&job.id);
        let file = process.as_ref().map(|process| process.file());
        let kept = file.as_ref().map_or(u64::MAX, |file| file.bytes);
        let total = process.as_ref().map(|process| process.total_bytes());
        let id = file.and_then(|file| file.artifact_id).or_else(|| job.artifact_id.clone());
        let from = offset.or_else(|| process.is_none().then_some(0));
        if let (Some(id), Some(offset)) = (id, from.filter(|offset| *offset < kept)) {
            let folder = self.context.artifacts.clone();
            let read = move || folder.map_or(Ok(None), |folder| folder.read(&id, offset, limit));
            let read = tokio::task::spawn_blocking(read).await.map_err(std::io::Error::other).flatten();
            let unreadable =
                |error| Failure::new(ErrorCode::Io, format!("the output cannot be read: {error}"));
            // What was written a moment ago may be in memory alone.
            let is_there = |part: &ArtifactPart| !part.text.is_empty() || process.is_none();
            if let Some(part) = read.map_err(unreadable)?.filter(is_there) {
                let total_bytes = total.unwrap_or(part.artifact.bytes);
                return Ok(JobPart { output: part.text, offset, total_bytes });
            }
        }
        let Some(process) = process else {
            return Ok(JobPart {
                output: String::new(),
                offset: 0,
                total_bytes: job.output_bytes.unwrap_or(0),
            });
        };
        let excerpt = match offset {
            Some(offset) => process.since(offset),
            None => process.last_lines(LINES),
        };
        let text = match offset {
            Some(_) => text_bounds::head(&excerpt.text, limit.max(4)),
            None => text_bounds::tail(&excerpt.text, limit.max(4)),
        };
        let from = excerpt.from + if offset.is_some() { 0 } else { (excerpt.text.len() - text.len()) as u64 };
        Ok(JobPart { output: text.to_owned(), offset: from, total_bytes: process.total_bytes() })
    }

    pub(super) async fn on_job_message(&mut self, message: JobMessage) {
        let JobMessage::Began { process, done } = message;
        let began = if self.closing {
            Err(Failure::new(ErrorCode::NoSession, "The session is ending."))
        } else {
            self.record_beginning(&process).await
        };
        // The call may have been given up; then the process is in the list all the same.
        let _ = done.send(began.map_err(|failure| failure.error));
    }

    /// On record first, once.
    async fn record_beginning(&mut self, process: &BackgroundProcess) -> Result<(), Failure> {
        if !self.context.jobs.begin(process.id()) {
            return Ok(());
        }
        let job = JobInfo { status: JobStatus::Running, ..of_process(process) };
        if process.facts().is_recorded {
            let record = JobRecord { job: job.clone(), told: false };
            self.journal.append(&job_entry(&self.context.session_id, record)).await?;
        }
        self.publish_to_introduced(&JobStart { job }.into());
        Ok(())
    }

    /// A background process has ended: on record first, then those who listen and the model are told.
    pub(super) async fn on_process_end(&mut self, process: &BackgroundProcess) {
        // One that was quick may have ended before its call has said that it began.
        if let Err(failure) = self.record_beginning(process).await {
            tracing::error!(
                error = failure.error,
                job = process.id(),
                "the beginning of a job could not be recorded"
            );
        }
        let tells = process.delivery().settle();
        let job = of_process(process);
        self.context.jobs.keep(job.clone());
        self.context.job_news.job_ended();
        if process.facts().is_recorded {
            let record = JobRecord { job: job.clone(), told: !tells };
            if let Err(failure) = self.journal.append(&job_entry(&self.context.session_id, record)).await {
                // The session says when it is opened again that the job was interrupted.
                tracing::error!(
                    error = failure.error,
                    job = job.id,
                    "the end of a job could not be recorded"
                );
            }
        }
        self.tell_process_end(process);
        self.publish_to_introduced(&JobEnd { job: job.clone() }.into());
        if tells {
            self.tell_job_end(end_message(process, &job)).await;
        }
    }

    /// What the file says of jobs of before: the model is told of the ends that it does not know.
    pub(super) async fn restore_jobs(&mut self) {
        let RecordedJobs { jobs, untold } = jobs_in(self.journal.tree(), &self.context.session_id);
        for job in jobs {
            self.context.jobs.keep(job);
        }
        for job in untold {
            if let Err(failure) = self.store_custom(late_message(&job)).await {
                tracing::warn!(error = failure.error, job = job.id, "the end of a job could not be told");
            }
        }
    }

    /// Whether the end of a job begins a run, where there is none.
    pub(super) fn job_ends_wake(&self) -> bool {
        self.context.settings.task.as_ref().and_then(|task| task.wake_up).unwrap_or(false)
    }

    /// Takes a message of another agent: as steering in the running turn, else with the next prompt or in a run of its own, as the end of a
    /// job.
    pub(super) async fn take_agent_message(&mut self, message: CustomMessage) {
        if self.closing {
            return;
        }
        self.context.job_news.message_came();
        let wakes = self.job_ends_wake().then_some(true);
        if let Err(failure) = self.take_custom(message, wakes, Some("steer")).await {
            tracing::error!(error = failure.message, "a message of another agent was lost");
        }
    }

    /// Tells the model that a job has ended: in the running turn, with a run of its own where the settings say so, else with the next prompt.
    pub(super) async fn tell_job_end(&mut self, message: CustomMessage) {
        let told = if self.closing {
            self.store_custom(message).await.map_err(|failure| failure.error)
        } else {
            let wakes = self.job_ends_wake();
            self.take_custom(message, Some(wakes), Some("steer"))
                .await
                .map(drop)
                .map_err(|failure| failure.message)
        };
        if let Err(error) = told {
            // The session tells it when it is opened again.
            tracing::error!(error, "the end of a job could not be told");
        }
    }
}

/// A part of the output of a job.
struct JobPart {
    output: String,
    offset: u64,
    total_bytes: u64,
}

/// The part of a text from a place on.
fn part_of(text: &str, offset: u64, limit: usize) -> JobPart {
    let at = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
    let at = text_bounds::ceil(text, at);
    let output = text_bounds::head(&text[at..], limit.max(4)).to_owned();
    JobPart { output, offset: at as u64, total_bytes: text.len() as u64 }
}
