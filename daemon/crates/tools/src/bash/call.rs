//! Runs one `bash` call from start to end.

use std::{borrow::Cow, time::Duration};

use agentd_agent::{ToolError, ToolProgress};
use agentd_process::{
    CommandStreams, HeadTailBuffer, InputPipe, OutputStorage, OutputTail, Shell, ShellJob, TerminalText,
    Utf8Stream,
};
use agentd_protocol::tool::ToolResult;
use tokio::{
    io::AsyncWriteExt as _,
    select,
    time::{Instant, sleep_until},
};

use super::{report, timeout::BashTimeout};

/// The least time between two progress updates.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// Runs a command, reports its output to `progress`, and returns the result.
pub(crate) async fn run(
    shell: &dyn Shell,
    job: ShellJob,
    timeout: Option<BashTimeout>,
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
    run.allow_large_pieces();
    let input = run.take_input().filter(|_| on_terminal);
    let mut input = InputEnd::begin(input).await;
    let mut output = CallOutput {
        terminal: on_terminal.then(Default::default),
        ..CallOutput::new(OutputTail::new(outputs))
    };
    let mut updates = Updates::new(progress);
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
    let (missing, notice) = (run.missing_output(), run.notice());
    let result = report::result(&output.tail, output.halves, &run.finish(), timeout);
    let result = match missing {
        Some(missing) => report::incomplete(result, &missing),
        None => result,
    };
    match notice {
        Some(notice) => report::noticed(result, &notice),
        None => result,
    }
}

/// A command's output, for the model and for programs.
pub(super) struct CallOutput {
    pub(super) tail: OutputTail,
    pub(super) halves: HeadTailBuffer,
    /// Present on a terminal.
    terminal: Option<(Utf8Stream, TerminalText)>,
}

impl CallOutput {
    /// No output yet, on no terminal.
    pub(super) fn new(tail: OutputTail) -> Self {
        Self { tail, halves: HeadTailBuffer::new(), terminal: None }
    }

    /// Takes a piece for the model alone, and returns it as text, with the number of its bytes. Not for a terminal.
    pub(super) async fn tail_text<'a>(&mut self, chunk: &'a [u8]) -> (Cow<'a, str>, usize) {
        (self.tail.push(chunk).await, chunk.len())
    }

    pub(super) async fn push(&mut self, chunk: &[u8]) {
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

    pub(super) async fn finish(&mut self) {
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
pub(super) struct Updates<'a> {
    progress: &'a ToolProgress,
    next: Instant,
    /// Whether there is output that no update has shown.
    dirty: bool,
}

impl<'a> Updates<'a> {
    pub(super) fn new(progress: &'a ToolProgress) -> Self {
        Self { progress, next: Instant::now(), dirty: false }
    }

    /// When the next update is due, if there is something new.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Whether there is output that no update has shown.
    pub(super) fn are_due(&self) -> bool {
        self.dirty
    }

    pub(super) fn changed(&mut self, output: &CallOutput) {
        self.dirty = true;
        // While output flows, the timer's branch does not run.
        if Instant::now() >= self.next {
            self.send(output);
        }
    }

    pub(super) fn send(&mut self, output: &CallOutput) {
        self.progress.report(report::update(&output.tail, &output.current()));
        self.dirty = false;
        self.next = Instant::now() + UPDATE_INTERVAL;
    }
}

/// The character that ends a program's input on a terminal by default: Ctrl-D.
const END_OF_INPUT: u8 = 4;

/// How often it is typed at the start, so that this many reads of lines find the end at once.
const AT_START: usize = 8;

/// How often it is typed at most: less than a terminal's buffer holds, so that writing never waits.
const MOST: usize = 2000;

/// How long a command is silent before it may be waiting for a key.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause before the next end.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Types the end of input at the start, and again whenever the command has been silent for a while: for programs that
/// read single keys, or discard what was typed before they asked.
pub(super) struct InputEnd {
    /// Held until the command ends.
    input: Option<InputPipe>,
    next: Instant,
    pause: Duration,
    typed: usize,
}

impl InputEnd {
    /// Without an input there is nothing to end.
    pub(super) async fn begin(input: Option<InputPipe>) -> Self {
        let mut end = Self { input, next: Instant::now() + FIRST_PAUSE, pause: FIRST_PAUSE, typed: 0 };
        end.press(AT_START).await;
        end
    }

    /// Restarts the silence: the command wrote something.
    pub(super) fn heard(&mut self) {
        self.pause = FIRST_PAUSE;
        self.next = Instant::now() + self.pause;
    }

    /// Waits until the command has been silent for long enough; for ever when no more ends are due. Cancel safe.
    pub(super) async fn silence(&self) {
        if self.input.is_none() || self.typed >= MOST {
            std::future::pending().await
        }
        sleep_until(self.next).await;
    }

    /// Types the end once more.
    pub(super) async fn again(&mut self) {
        self.press(1).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.next = Instant::now() + self.pause;
    }

    async fn press(&mut self, times: usize) {
        self.typed += times;
        if let Some(input) = &mut self.input
            && input.write_all(&[END_OF_INPUT; AT_START][..times]).await.is_err()
        {
            // The command has ended and reads no more.
            self.input = None;
        }
    }
}
