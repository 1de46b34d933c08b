//! The tool `wait`: until a job ends, or a message of the user comes.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use agentd_agent::{Invocation, Tool, ToolError, ToolFuture};
use agentd_protocol::{
    jobs::{JobInfo, JobStatus, WAIT_TOOL},
    tool::{ToolResult, ToolSpec},
};
use serde_json::json;
use tokio::time::sleep;

use super::{news::JobNews, table::SessionJobs};

/// The longest wait.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// The tool's description for models; the same in all sessions.
static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
    Arc::new(ToolSpec {
        name: WAIT_TOOL.to_owned(),
        description: "Wait until a job of this session ends (a command or a subagent in the background; services do not count), or a message \
                      of the user or another agent comes; 30 minutes at most. Use it when there is nothing else to do meanwhile, instead of \
                      asking again and again."
            .to_owned(),
        parameters: json!({"type": "object", "properties": {}}),
        constrained_sampling: None,
    })
});

/// The tool.
pub(crate) struct WaitTool {
    pub(crate) jobs: SessionJobs,
    pub(crate) news: JobNews,
}

impl WaitTool {
    async fn run(&self, invocation: Invocation) -> Result<ToolResult, ToolError> {
        // Before the look: what happens in between is not missed.
        let mut news = self.news.listen();
        let running = self.jobs.awaited();
        if running.is_empty() {
            let services = self.jobs.list().iter().any(|job| job.status == JobStatus::Running);
            let why = if services { " Services run until they are ended." } else { "" };
            return Ok(ToolResult::text(format!("Nothing to wait for.{why}")));
        }
        let waited = async {
            loop {
                if news.changed().await.is_err() {
                    return "The session is ending.";
                }
                let left = self.jobs.awaited();
                if running.iter().any(|job| !left.iter().any(|other| other.id == job.id)) {
                    return "";
                }
                if self.news.take_message() {
                    return "A message has come.";
                }
            }
        };
        let why = tokio::select! {
            biased;
            () = invocation.cancel.cancelled() => return Err(ToolError("Operation aborted".to_owned())),
            why = waited => why,
            () = sleep(LONGEST) => "Nothing has ended within 30 minutes.",
        };
        let now = self.jobs.list();
        let ended = now
            .iter()
            .filter(|job| job.status != JobStatus::Running && running.iter().any(|one| one.id == job.id));
        let mut lines: Vec<String> = Vec::new();
        lines.extend((!why.is_empty()).then(|| why.to_owned()));
        lines.extend(ended.map(|job| format!("{} has ended: {}", job.id, how(job))));
        let left: Vec<&str> =
            now.iter().filter(|job| job.status == JobStatus::Running).map(|job| job.id.as_str()).collect();
        lines.push(if left.is_empty() {
            "Nothing is running any more.".to_owned()
        } else {
            format!("Still running: {}", left.join(", "))
        });
        let details = json!({ "jobs": now });
        Ok(ToolResult { details: Some(details), ..ToolResult::text(lines.join("\n")) })
    }
}

fn how(job: &JobInfo) -> String {
    match (job.status, job.exit_code) {
        (JobStatus::Completed, None) => "it is done".to_owned(),
        (JobStatus::Completed | JobStatus::Failed, Some(code)) => format!("exit code {code}"),
        (JobStatus::Aborted | JobStatus::Interrupted, _) => "it was stopped".to_owned(),
        _ => "it has failed".to_owned(),
    }
}

impl Tool for WaitTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &SPEC
    }

    fn snippet(&self) -> Option<&str> {
        Some("Wait until a background job ends")
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(self.run(invocation))
    }
}
