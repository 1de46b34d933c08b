//! The tool `process_input`.

use std::{
    io,
    sync::{Arc, LazyLock},
    time::Duration,
};

use agentd_agent::{Invocation, Tool, ToolError, ToolFuture};
use agentd_process::{BackgroundProcess, BackgroundProcesses};
use agentd_protocol::tool::{ConstrainedSampling, ToolResult, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{select, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    find,
    show::{COMES_WITH, facts},
};
use crate::arguments::parse;

/// How long a process may take to read its input. Input that fits into the pipe is taken at once.
const TIME_LIMIT: Duration = Duration::from_secs(5);

static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
    Arc::new(ToolSpec {
    name: "process_input".into(),
    description: "Writes to the standard input of a background process. A line needs its line feed; on a terminal (pty), keys \
        are the characters that they send: \\r for Enter, \\u0003 for Ctrl-C, \\u001b[A for Up."
        .into(),
    parameters: json!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "description": "The process, as bg-1" },
            "text": { "type": "string", "description": "What to write" },
            "eof": { "type": "boolean", "description": "Whether the input ends after it (optional; default false)" },
        },
        "required": ["id", "text"],
    }),
    constrained_sampling: Some(ConstrainedSampling::prefer_strict()),
})
});

#[derive(Deserialize)]
struct InputArguments {
    id: String,
    text: String,
    eof: Option<bool>,
}

/// Writes to a background process.
pub(super) struct ProcessInput {
    list: BackgroundProcesses,
}

impl ProcessInput {
    pub(super) fn new(list: BackgroundProcesses) -> Self {
        Self { list }
    }

    async fn run(&self, invocation: Invocation) -> Result<ToolResult, ToolError> {
        let InputArguments { id, text, eof } = parse(invocation.arguments)?;
        let process = find::running(&self.list, &id)?;
        let said = write_input(&process, &text, eof == Some(true), &invocation.cancel).await?;
        Ok(ToolResult { details: Some(Value::Object(facts(&process))), ..ToolResult::text(said) })
    }
}

/// Writes to the input of a process, and ends it if asked to. Returns what was done, in a sentence without its dot.
///
/// # Errors
/// For the model: the process takes no input, or does not read it.
pub async fn write_input(
    process: &BackgroundProcess,
    text: &str,
    ends: bool,
    cancel: &CancellationToken,
) -> Result<String, ToolError> {
    let write = timeout(TIME_LIMIT, write(process, text, ends));
    let written = select! {
        written = write => written,
        () = cancel.cancelled() => return Err(ToolError("Operation aborted".into())),
    };
    let id = process.id();
    match written {
        Ok(Ok(())) => {
            let end = if ends { " and ended its input" } else { "" };
            Ok(format!("Wrote {} bytes to {id}{end}", text.len()))
        }
        Ok(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Err(ToolError(format!("{id} takes no input: it has closed it, or its input was ended before")))
        }
        Ok(Err(error)) => Err(ToolError(format!("Could not write to {id}: {error}"))),
        Err(_) => Err(ToolError(format!(
            "{id} does not read its input: after {} seconds it has not taken all of the text, of which it may get a \
             part",
            TIME_LIMIT.as_secs()
        ))),
    }
}

async fn write(process: &BackgroundProcess, text: &str, ends: bool) -> io::Result<()> {
    if !text.is_empty() {
        process.write(text.as_bytes()).await?;
    }
    if ends { process.end_input().await } else { Ok(()) }
}

impl Tool for ProcessInput {
    fn spec(&self) -> &Arc<ToolSpec> {
        &SPEC
    }

    fn snippet(&self) -> Option<&str> {
        Some("Write to a background process, or press keys on its terminal")
    }

    fn comes_with(&self) -> Option<&str> {
        Some(COMES_WITH)
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(self.run(invocation))
    }
}
