//! One process of a hook, from its start to its end.

use std::{ffi::OsString, path::PathBuf, pin::pin, sync::Arc, time::Duration};

use agentd_process::{
    CommandStreams, InputPipe, OutputPipe, ProcessGroup, ShellCommand, ShellRun, StopCause, resolve_shell,
};
use agentd_sandbox::SandboxPolicy;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    select,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// The bytes of each output that are kept: arguments that a hook changes can be long. What goes on to the model or the user is cut shorter.
pub(crate) const MAX_KEPT: usize = 1 << 20;

/// How long errors may still come once the process and its output have ended: something that it left running may hold them open.
const LAST_ERRORS: Duration = Duration::from_millis(100);

/// Bytes of errors that are read at once.
const CHUNK: usize = 8 << 10;

/// A process to run.
pub(crate) struct HookProcess<'a> {
    pub(crate) group: &'a ProcessGroup,
    /// The setting `shellPath`.
    pub(crate) shell: Option<&'a PathBuf>,
    pub(crate) line: String,
    pub(crate) cwd: PathBuf,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) timeout: Duration,
    /// What it may touch; `None` confines nothing.
    pub(crate) sandbox: Option<Arc<SandboxPolicy>>,
    pub(crate) input: &'a [u8],
    pub(crate) cancel: CancellationToken,
}

/// How a process ended, and what it printed.
#[derive(Debug)]
pub(crate) struct ProcessEnd {
    pub(crate) how: HowEnded,
    pub(crate) output: Captured,
    pub(crate) errors: Captured,
}

/// How a process ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HowEnded {
    /// By itself.
    Exited(i32),
    /// It was killed after its time.
    TimedOut,
    /// It was stopped with the work that it is about.
    Aborted,
    /// It was killed: by what.
    Killed(String),
    /// It was never there: why.
    NotStarted(String),
}

/// An output, of which the beginning is kept.
#[derive(Debug, Default)]
pub(crate) struct Captured {
    bytes: Vec<u8>,
    pub(crate) is_cut: bool,
}

impl Captured {
    fn push(&mut self, bytes: &[u8]) {
        let room = MAX_KEPT - self.bytes.len();
        self.is_cut |= bytes.len() > room;
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// The text of it.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim().to_owned()
    }

    #[cfg(test)]
    pub(crate) fn of(text: &str) -> Self {
        let mut captured = Self::default();
        captured.push(text.as_bytes());
        captured
    }
}

impl HookProcess<'_> {
    /// Runs the process. Dropped early, it is killed with all that it started.
    pub(crate) async fn run(self) -> ProcessEnd {
        let (mut output, mut errors) = (Captured::default(), Captured::default());
        let not_started = |why: String| ProcessEnd {
            how: HowEnded::NotStarted(why),
            output: Captured::default(),
            errors: Captured::default(),
        };
        let shell = match resolve_shell(self.shell.map(PathBuf::as_path), &self.env).await {
            Ok(shell) => shell,
            Err(error) => return not_started(error.to_string()),
        };
        let command = ShellCommand {
            shell,
            command: self.line,
            cwd: self.cwd,
            env: self.env,
            timeout: Some(self.timeout),
            cancel: self.cancel,
            streams: CommandStreams::Separate,
            sandbox: self.sandbox,
        };
        let mut run = match ShellRun::start(self.group, command).await {
            Ok(run) => run,
            Err(error) => return not_started(error.to_string()),
        };
        {
            let (input, stderr) = (run.take_input(), run.take_errors());
            let mut beside =
                pin!(async { tokio::join!(write(input, self.input), read(stderr, &mut errors)) });
            let mut is_done = false;
            loop {
                select! {
                    biased;
                    chunk = run.next() => match chunk {
                        Some(chunk) => output.push(chunk),
                        None => break,
                    },
                    _ = &mut beside, if !is_done => is_done = true,
                }
            }
            if !is_done {
                // What has come until then is enough.
                let _ = timeout(LAST_ERRORS, beside).await;
            }
        }
        let outcome = run.finish();
        let how = match (outcome.stopped, outcome.exit) {
            (Some(StopCause::TimedOut), _) => HowEnded::TimedOut,
            (Some(StopCause::Aborted), _) => HowEnded::Aborted,
            (Some(StopCause::Limit(limit)), _) => HowEnded::Killed(limit.to_string()),
            (None, Some(exit)) => match exit.signal {
                Some(signal) => HowEnded::Killed(format!("signal {signal}")),
                None => HowEnded::Exited(exit.code),
            },
            (None, None) => HowEnded::Killed("something unknown".to_owned()),
        };
        ProcessEnd { how, output, errors }
    }
}

/// A hook need not read what it is told.
async fn write(input: Option<InputPipe>, bytes: &[u8]) {
    if let Some(mut input) = input {
        let _ = input.write_all(bytes).await;
    }
}

async fn read(errors: Option<OutputPipe>, into: &mut Captured) {
    let Some(mut errors) = errors else { return };
    let mut buffer = vec![0; CHUNK];
    // A pipe that cannot be read is at its end.
    while let Ok(count @ 1..) = errors.read(&mut buffer).await {
        into.push(&buffer[..count]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_is_kept() {
        let mut captured = Captured::default();
        captured.push(&vec![b'a'; MAX_KEPT - 1]);
        captured.push(b"b");
        assert!(!captured.is_cut);
        captured.push(b"c");
        assert!(captured.is_cut && captured.bytes.len() == MAX_KEPT && captured.text().ends_with("ab"));
        assert_eq!(Captured::of(" x\n").text(), "x");
    }
}
