//! The tool `process_output`.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use agentd_agent::{Invocation, Tool, ToolError, ToolFuture};
use agentd_process::BackgroundProcesses;
use agentd_protocol::tool::{ConstrainedSampling, ToolResult, ToolSpec};
use serde::Deserialize;
use serde_json::json;
use tokio::select;

use super::{
    find,
    show::{COMES_WITH, OutputPart, output},
};
use crate::{
    arguments::parse,
    bash::MAX_TIMEOUT,
    limits::{MAX_LINES, MAX_SIZE},
};

static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
    Arc::new(ToolSpec {
        name: "process_output".into(),
        description: format!(
            "Returns what a background process has written since the last time you looked, and whether it still runs. \
         At most {MAX_LINES} lines or {MAX_SIZE} come back, the newest; since reads on from any place, lines repeats the last lines."
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "id": { "type": "string", "description": "The process, as bg-1" },
                "since": { "type": "number", "description": "Return the output from this place on, in bytes from its beginning (optional)" },
                "lines": { "type": "number", "description": "Return the last so many lines, shown before or not (optional)" },
                "wait": { "type": "number", "description": "Wait up to so many seconds for new output or the end of the process (optional; default: do not wait)" },
            },
            "required": ["id"],
        }),
        constrained_sampling: Some(ConstrainedSampling::prefer_strict()),
    })
});

#[derive(Deserialize)]
struct OutputArguments {
    id: String,
    since: Option<f64>,
    lines: Option<f64>,
    wait: Option<f64>,
}

/// Reads the output of a background process.
pub(super) struct ProcessOutput {
    list: BackgroundProcesses,
}

impl ProcessOutput {
    pub(super) fn new(list: BackgroundProcesses) -> Self {
        Self { list }
    }

    async fn run(&self, invocation: Invocation) -> Result<ToolResult, ToolError> {
        let OutputArguments { id, since, lines, wait } = parse(invocation.arguments)?;
        let process = find::process(&self.list, &id)?;
        let wanted = match (since, lines) {
            (Some(_), Some(_)) => {
                return Err(ToolError("Give since or lines, not both.".into()));
            }
            (Some(since), None) => OutputPart::Since(whole("since", since)?),
            (None, Some(lines)) => {
                let lines = whole("lines", lines)?;
                OutputPart::Lines(usize::try_from(lines).unwrap_or(MAX_LINES).min(MAX_LINES))
            }
            (None, None) => OutputPart::New,
        };
        let wait = wait.map(wait_time).transpose()?;
        let from = if let OutputPart::Since(from) = wanted { from } else { process.shown() };
        // Taken before checking the output, so that output which has come is not waited for.
        let mark = process.mark();
        if let Some(limit) = wait
            && process.total_bytes() <= from
        {
            select! {
                () = process.written_since(mark, limit) => {}
                () = invocation.cancel.cancelled() => return Err(ToolError("Operation aborted".into())),
            }
        }
        Ok(output(&process, wanted))
    }
}

impl Tool for ProcessOutput {
    fn spec(&self) -> &Arc<ToolSpec> {
        &SPEC
    }

    fn snippet(&self) -> Option<&str> {
        Some("Read what a background process has written, and wait for more")
    }

    fn guidelines(&self) -> Vec<&str> {
        vec![
            "Run servers, watchers and long jobs with background in bash, follow them with process_output, and end with process_kill what is no longer needed.",
        ]
    }

    fn comes_with(&self) -> Option<&str> {
        Some(COMES_WITH)
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(self.run(invocation))
    }
}

/// Converts a whole number.
fn whole(name: &str, number: f64) -> Result<u64, ToolError> {
    if number >= 0.0 && number.fract() == 0.0 {
        // The conversion saturates, which is larger than any output.
        return Ok(number as u64);
    }
    Err(ToolError(format!("Invalid {name}: must be a whole number, 0 or more")))
}

fn wait_time(seconds: f64) -> Result<Duration, ToolError> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if time <= MAX_TIMEOUT => Ok(time),
        Ok(_) | Err(_) => Err(ToolError("Invalid wait: must be a number of seconds, 0 or more".into())),
    }
}
