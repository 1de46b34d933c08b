//! What the model is told of the ends of jobs. Pure but for the clock.

use agentd_process::BackgroundProcess;
use agentd_protocol::{
    jobs::{JOB_MESSAGE, JobInfo, JobStatus},
    message::{CustomMessage, MessageContent},
};
use agentd_tools::job_end_text;
use serde_json::json;

use crate::clock::now_ms;

fn message(text: String, job: &JobInfo) -> CustomMessage {
    CustomMessage {
        custom_type: JOB_MESSAGE.to_owned(),
        content: MessageContent::Text(text),
        display: true,
        details: Some(json!({ "job": job })),
        timestamp: now_ms(),
    }
}

/// The message about a process that has ended.
pub(crate) fn end_message(process: &BackgroundProcess, job: &JobInfo) -> CustomMessage {
    message(job_end_text(process), job)
}

/// The message about a process that ended while nobody could tell it: in another life of the session.
pub(crate) fn late_message(job: &JobInfo) -> CustomMessage {
    message(late_text(job), job)
}

/// A job of another life, in sentences.
pub(super) fn late_text(job: &JobInfo) -> String {
    let called = match &job.name {
        Some(name) => format!("Service {name} (job {})", job.id),
        None => format!("Job {}", job.id),
    };
    let how = match (job.status, job.exit_code) {
        (JobStatus::Interrupted, _) => {
            "was interrupted: agentd ended while it ran, and it was ended with everything that it had started."
                .to_owned()
        }
        (_, Some(code)) => format!("exited with code {code} after {:.1} seconds.", job.duration_ms as f64 / 1e3),
        (_, None) => "has ended.".to_owned(),
    };
    let output = match &job.artifact_id {
        Some(id) => format!("Its output: artifact://{id}"),
        None => "It has no output that was kept.".to_owned(),
    };
    format!("{called} {how}\n$ {}\n\n{output}", job.label)
}
