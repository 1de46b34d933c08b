//! Runs one `bash` call from start to end.

use std::time::Duration;

use agentd_agent::{ToolError, ToolProgress};
use agentd_process::{
    CommandStreams, HeadTailBuffer, OutputStorage, OutputTail, Shell, ShellJob, TerminalText, Utf8Stream,
};
use agentd_protocol::tool::ToolResult;
use tokio::{
    select,
    time::{Instant, sleep_until},
};

use super::{input_end::InputEnd, report};

/// The least time between two progress updates.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// A timeout.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeout {
    pub(super) time: Duration,
    /// The same as the model wrote it.
    pub(super) seconds: f64,
}

/// Runs a command, reports its output to `progress`, and returns the result.
pub(super) async fn run(
    shell: &dyn Shell,
    job: ShellJob,
    timeout: Option<Timeout>,
    outputs: OutputStorage,
    progress: &ToolProgress,
) -> Result<ToolResult, ToolError> {
    progress.report(ToolResult::default());
    let cancel = job.cancel.clone();
    let on_terminal = matches!(job.streams, CommandStreams::Terminal(_));
    let started = select! {
        biased;
        () = cancel.cancelled() => return Err(ToolError(report::ABORTED.into())),
        started = shell.start(job) => started,
    };
    let mut run = started.map_err(|error| ToolError(error.to_string()))?;
    let input = run.take_input().filter(|_| on_terminal);
    let mut input = InputEnd::begin(input).await;
    let mut output = Output {
        tail: OutputTail::new(outputs),
        halves: HeadTailBuffer::new(),
        terminal: on_terminal.then(Default::default),
    };
    let mut updates = Updates { progress, next: Instant::now(), dirty: false };
    loop {
        select! {
            biased;
            chunk = run.next() => match chunk {
                Some(chunk) => {
                    input.heard();
                    output.push(chunk).await;
                    updates.changed(&output);
                }
                None => break,
            },
            () = sleep_until(updates.next), if updates.dirty => updates.send(&output),
            () = input.silence() => input.again().await,
        }
    }
    output.finish().await;
    if updates.dirty {
        updates.send(&output);
    }
    if let Some(failure) = run.failure() {
        return Err(report::lost(&output.tail, &failure));
    }
    report::result(&output.tail, output.halves, &run.finish(), timeout)
}

/// A command's output, for the model and for programs.
struct Output {
    tail: OutputTail,
    halves: HeadTailBuffer,
    /// Present on a terminal.
    terminal: Option<(Utf8Stream, TerminalText)>,
}

impl Output {
    async fn push(&mut self, chunk: &[u8]) {
        let Some((decoder, text)) = &mut self.terminal else {
            let text = self.tail.push(chunk).await;
            self.halves.push(&text);
            return;
        };
        let finished = text.push(&decoder.push(chunk));
        self.tail.push_text(&finished, chunk.len()).await;
        self.halves.push(&finished);
    }

    /// The line of a terminal's cursor.
    fn current(&self) -> String {
        self.terminal.as_ref().map(|(_, text)| text.current()).unwrap_or_default()
    }

    async fn finish(&mut self) {
        if let Some((decoder, text)) = &mut self.terminal {
            let rest = text.push(decoder.finish()) + &text.finish();
            self.tail.push_text(&rest, 0).await;
            self.halves.push(&rest);
        }
        let rest = self.tail.finish().await;
        self.halves.push(rest);
    }
}

/// Sends snapshots of the output to clients, at most one per interval.
struct Updates<'a> {
    progress: &'a ToolProgress,
    next: Instant,
    /// Whether there is output that no update has shown.
    dirty: bool,
}

impl Updates<'_> {
    fn changed(&mut self, output: &Output) {
        self.dirty = true;
        // While output flows, the timer's branch does not run.
        if Instant::now() >= self.next {
            self.send(output);
        }
    }

    fn send(&mut self, output: &Output) {
        self.progress.report(report::update(&output.tail, &output.current()));
        self.dirty = false;
        self.next = Instant::now() + UPDATE_INTERVAL;
    }
}
