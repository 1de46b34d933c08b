//! The tool `process_kill`.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use agentd_agent::{Invocation, Tool, ToolError, ToolFuture};
use agentd_process::{BackgroundProcess, BackgroundProcesses, EndedBy};
use agentd_protocol::{
    message::ContentBlock,
    tool::{ConstrainedSampling, ToolResult, ToolSpec},
};
use serde::Deserialize;
use serde_json::json;
use tokio::select;

use super::{
    find,
    show::{COMES_WITH, OutputPart, SIGNALS, output, output_with, status},
};
use crate::arguments::parse;

/// The time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
    Arc::new(ToolSpec {
    name: "process_kill".into(),
    description: "Ends a background process with everything that it started: SIGTERM, and SIGKILL two seconds later. With \
        signal, sends only that."
        .into(),
    parameters: json!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "description": "The process, as bg-1" },
            "signal": { "type": "string", "description": "A signal to send instead, as SIGINT, SIGHUP, SIGKILL or SIGUSR1 (optional)" },
        },
        "required": ["id"],
    }),
    constrained_sampling: Some(ConstrainedSampling::prefer_strict()),
})
});

#[derive(Deserialize)]
struct KillArguments {
    id: String,
    signal: Option<String>,
}

/// Ends background processes.
pub(super) struct ProcessKill {
    list: BackgroundProcesses,
}

impl ProcessKill {
    pub(super) fn new(list: BackgroundProcesses) -> Self {
        Self { list }
    }

    async fn run(&self, invocation: Invocation) -> Result<ToolResult, ToolError> {
        let KillArguments { id, signal } = parse(invocation.arguments)?;
        let signal = signal.as_deref().map(named).transpose()?;
        let process = find::running(&self.list, &id)?;
        select! {
            told = end(&process, signal) => Ok(with_output(&process, &told)),
            () = invocation.cancel.cancelled() => Err(ToolError("Operation aborted".into())),
        }
    }
}

/// Ends a process with everything that it started, and says how it ended and what it had written last.
pub async fn kill_process(process: &BackgroundProcess) -> ToolResult {
    let outcome = end(process, None).await;
    with_output(process, &outcome)
}

/// The outcome of ending a process.
struct KillOutcome {
    text: String,
    /// Whether the text says how the process has ended.
    has_ended: bool,
}

/// Ends the process, or sends the signal; returns the outcome.
async fn end(process: &BackgroundProcess, signal: Option<(&'static str, u8)>) -> KillOutcome {
    // The result tells its end.
    process.delivery().hold();
    let ended = match signal {
        None => process.terminate(GRACE, EndedBy::Request).await,
        Some((_, KILL)) => process.kill(EndedBy::Request).await,
        Some((_, number)) => {
            process.signal(number);
            process.ended(GRACE).await
        }
    };
    if ended.is_some() || !process.delivery().release() {
        process.delivery().told();
    }
    let id = process.id();
    let text = match (ended, signal) {
        (Some(_), None) => format!("{id} {}", status(process)),
        (Some(_), Some((name, _))) => format!("Sent {name} to {id}. It {}", status(process)),
        (None, Some((name, number))) if number != KILL => {
            format!("Sent {name} to {id}, which is still running")
        }
        (None, _) => format!("{id} survives SIGKILL: it waits for the system, or belongs to another user"),
    };
    KillOutcome { text, has_ended: ended.is_some() }
}

/// The outcome, and the output that was not shown yet. The end of a process is reported once.
fn with_output(process: &BackgroundProcess, told: &KillOutcome) -> ToolResult {
    let shown = if told.has_ended {
        output_with(process, OutputPart::New, None)
    } else {
        output(process, OutputPart::New)
    };
    let text = shown.content.iter().find_map(ContentBlock::as_text).unwrap_or_default();
    let text = format!("{}\n\n{text}", told.text);
    ToolResult { content: vec![ContentBlock::text(text)], ..shown }
}

const KILL: u8 = 9;

/// The signal of that name, with or without `SIG`.
fn named(name: &str) -> Result<(&'static str, u8), ToolError> {
    let wanted = name.trim().to_ascii_uppercase();
    let is_it = |known: &str| known == wanted || known.strip_prefix("SIG") == Some(&wanted);
    SIGNALS.into_iter().find(|(known, _)| is_it(known)).ok_or_else(|| {
        ToolError(format!(
            "Unknown signal {name:?}. There are: {}.",
            SIGNALS.map(|(name, _)| name).join(", ")
        ))
    })
}

impl Tool for ProcessKill {
    fn spec(&self) -> &Arc<ToolSpec> {
        &SPEC
    }

    fn snippet(&self) -> Option<&str> {
        Some("End a background process, or send it a signal")
    }

    fn comes_with(&self) -> Option<&str> {
        Some(COMES_WITH)
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(self.run(invocation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names() {
        assert_eq!(named("SIGINT"), Ok(("SIGINT", 2)));
        assert_eq!(named("hup"), Ok(("SIGHUP", 1)));
        let error = named("9").unwrap_err().0;
        assert!(error.starts_with("Unknown signal \"9\". There are: SIGTERM, SIGKILL,"), "{error}");
    }
}
