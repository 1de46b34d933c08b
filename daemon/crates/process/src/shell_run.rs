//! Runs one shell command from start to end.

use std::{ffi::OsString, mem, path::PathBuf, sync::Arc, time::Duration};

use agentd_sandbox::SandboxPolicy;
use tokio::{
    select,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    command::{CommandSpec, CommandStreams, ExitStatus, SpawnError},
    group::ProcessGroup,
    limits::LimitReached,
    output_pace::OutputPace,
    process::{CommandWatch, KILL_WAIT, Process},
    streams::{InputPipe, OutputPipe},
    terminal::TerminalSize,
};

/// How long the output must be silent after the shell has exited before the command counts as ended.
const SILENCE: Duration = Duration::from_millis(100);

/// Bytes read at once: what a pipe holds.
const CHUNK: usize = 64 * 1024;

/// Reads of a killed command's pipe: enough for a full pipe, even if each read returns one page.
const READS_AFTER_KILL: usize = 16;

/// A command for a shell.
#[derive(Clone)]
pub struct ShellCommand {
    /// The shell; see [`crate::resolve_shell`].
    pub shell: PathBuf,
    /// The script, as one argument after `-c`.
    pub command: String,
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// The complete environment.
    pub env: Vec<(OsString, OsString)>,
    /// When to kill the command with all that it started; `None` sets no limit.
    pub timeout: Option<Duration>,
    /// Fires to kill the command with all that it started at once.
    pub cancel: CancellationToken,
    /// The standard streams: [`ShellRun::next`] returns the output, without the errors where these are separate.
    pub streams: CommandStreams,
    /// What it may touch; `None` confines nothing.
    pub sandbox: Option<Arc<SandboxPolicy>>,
}

/// Why a command was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCause {
    /// Its cancellation token fired.
    Aborted,
    /// Its timeout passed.
    TimedOut,
    /// It, or its session's commands together, exceeded a limit.
    Limit(LimitReached),
}

/// How a shell command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShellOutcome {
    /// How the shell ended; `None` only when it could not be killed.
    pub exit: Option<ExitStatus>,
    /// Why the command was killed, if it was.
    pub stopped: Option<StopCause>,
    /// How long after its start the shell exited by itself, if it did so before the command was stopped: background
    /// processes then kept the command going.
    pub shell_exited_after: Option<Duration>,
    /// From the start to the end.
    pub wall_time: Duration,
}

/// A running shell command. Dropping it kills the command, unless its shell has exited.
///
/// ```text
/// let mut run = ShellRun::start(&group, command).await?;
/// while let Some(chunk) = run.next().await { … }
/// let outcome = run.finish();
/// ```
///
/// It ends when the shell has exited and its output is closed. When background processes keep the output open, it ends
/// after 100 ms of silence; they continue in the group.
#[derive(Debug)]
pub struct ShellRun {
    process: Process,
    cancel: CancellationToken,
    buffer: Vec<u8>,
    pace: OutputPace,
    /// Bytes of the buffer that were last returned.
    last_count: usize,
    started: Instant,
    deadline: Option<Instant>,
    output_open: bool,
    exited: Option<(ExitStatus, Instant)>,
    /// The last moment after which more output may follow.
    last_news: Instant,
    stop: Option<OngoingStop>,
    ended: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct OngoingStop {
    why: StopCause,
    at: Instant,
    /// Nothing of the command is left, or waiting longer is useless.
    over: bool,
    /// Reads still allowed after that: a process that cannot be killed could write without end.
    reads_left: usize,
}

enum RunEvent {
    Stop(StopCause),
    Exited(ExitStatus),
    KillOver,
    Read(usize),
    Closed,
    Silence,
}

impl ShellRun {
    /// Starts `command` in `group`.
    ///
    /// # Errors
    /// See [`ShellError`]. Cancel safety: if dropped, whatever was started is killed.
    pub async fn start(group: &ProcessGroup, command: ShellCommand) -> Result<Self, ShellError> {
        let ShellCommand { shell, command, cwd, env, timeout, cancel, streams, sandbox } = command;
        let args = vec!["-c".into(), command.into()];
        let spec = CommandSpec { program: shell.into(), args, cwd, env, streams, sandbox };
        let process = group.spawn(spec).await?;
        let started = Instant::now();
        Ok(Self {
            process,
            cancel,
            buffer: vec![0; CHUNK],
            pace: OutputPace::default(),
            last_count: 0,
            started,
            // A deadline too far away to be represented is none.
            deadline: timeout.and_then(|timeout| started.checked_add(timeout)),
            output_open: true,
            exited: None,
            last_news: started,
            stop: None,
            ended: None,
        })
    }

    /// The next piece of output, in the order in which it was written; `None` at the end. Cancel safe.
    ///
    /// A caller that is slow to ask again slows the command down: nothing piles up here.
    pub async fn next(&mut self) -> Option<&[u8]> {
        // Only now: the last piece was still in the buffer.
        self.pace.note(mem::take(&mut self.last_count), &self.process.output, &mut self.buffer);
        let count = loop {
            if self.is_over() {
                break self.read_rest();
            }
            match self.news().await {
                RunEvent::Stop(why) => self.stop(why),
                RunEvent::Exited(status) => {
                    self.last_news = Instant::now();
                    self.exited = Some((status, self.last_news));
                }
                RunEvent::KillOver => self.stop = self.stop.map(|stop| OngoingStop { over: true, ..stop }),
                RunEvent::Read(count) => {
                    self.last_news = Instant::now();
                    break count;
                }
                RunEvent::Closed => self.output_open = false,
                // The runtime learns of new output a little late. If this task did not run for a while, the silence may have
                // passed although there is output: only the pipe itself knows.
                RunEvent::Silence => match self.process.output.try_read(&mut self.buffer) {
                    Ok(count @ 1..) => {
                        self.last_news = Instant::now();
                        break count;
                    }
                    Ok(0) | Err(_) => self.detach(),
                },
            }
        };
        if count == 0 {
            self.ended.get_or_insert_with(Instant::now);
            return None;
        }
        self.last_count = count;
        Some(&self.buffer[..count])
    }

    /// From now on, pieces of a long output may have up to a megabyte: a flood takes less time so. Before, a piece has at most 64 KiB.
    pub fn allow_large_pieces(&mut self) {
        self.pace = OutputPace::for_large_pieces();
    }

    /// Takes the command's input; see [`Process::take_input`].
    #[must_use]
    pub fn take_input(&mut self) -> Option<InputPipe> {
        self.process.take_input()
    }

    /// Takes the command's errors, with [`CommandStreams::Separate`]. They must be read besides the output.
    #[must_use]
    pub fn take_errors(&mut self) -> Option<OutputPipe> {
        self.process.errors.take()
    }

    /// Resizes the command's terminal.
    ///
    /// # Errors
    /// See [`Process::resize`].
    pub fn resize(&self, size: TerminalSize) -> std::io::Result<()> {
        self.process.resize(size)
    }

    /// The process id of the shell.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        self.process.pid()
    }

    /// When it started.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    pub(crate) fn watch(&self) -> CommandWatch {
        self.process.watch().clone()
    }

    /// How the shell ended, as far as [`ShellRun::next`] has noticed.
    #[must_use]
    pub fn shell_exit(&self) -> Option<ExitStatus> {
        self.exited.map(|(status, _)| status)
    }

    /// How the command ended. Call it after [`ShellRun::next`] has returned `None`; it kills a command that still runs.
    #[must_use]
    pub fn finish(self) -> ShellOutcome {
        let exit = self.exited.map(|(status, _)| status).or_else(|| self.process.exit());
        let before = |(_, at): &(ExitStatus, Instant)| self.stop.is_some_and(|stop| *at <= stop.at);
        ShellOutcome {
            exit,
            stopped: self
                .stop
                .map(|stop| stop.why)
                .or_else(|| self.process.limit_reached().map(StopCause::Limit)),
            shell_exited_after: self.exited.filter(before).map(|(_, at)| at - self.started),
            wall_time: self.ended.unwrap_or_else(Instant::now) - self.started,
        }
    }

    /// Waits for the next event. The order of the branches matters: a flood of output must not delay the others.
    async fn news(&mut self) -> RunEvent {
        let (running, stopping) = (self.exited.is_none(), self.stop.is_some());
        let deadline = self.deadline.unwrap_or(self.started);
        let kill_deadline = self.stop.map_or(self.started, |stop| stop.at) + KILL_WAIT;
        let watch = self.process.watch().clone();
        select! {
            biased;
            () = self.cancel.cancelled(), if !stopping => RunEvent::Stop(StopCause::Aborted),
            () = sleep_until(deadline), if !stopping && self.deadline.is_some() => RunEvent::Stop(StopCause::TimedOut),
            status = watch.wait(), if running => RunEvent::Exited(status),
            () = watch.gone(), if stopping => RunEvent::KillOver,
            () = sleep_until(kill_deadline), if stopping => RunEvent::KillOver,
            read = self.pace.read(&mut self.process.output, &mut self.buffer), if self.output_open => match read {
                Ok(count @ 1..) => RunEvent::Read(count),
                // A pipe that cannot be read is at its end.
                Ok(0) | Err(_) => RunEvent::Closed,
            },
            () = sleep_until(self.last_news + SILENCE), if !running && !stopping => RunEvent::Silence,
        }
    }

    fn is_over(&self) -> bool {
        match self.stop {
            Some(stop) => stop.over,
            None => self.exited.is_some() && !self.output_open,
        }
    }

    fn stop(&mut self, why: StopCause) {
        self.stop = Some(OngoingStop { why, at: Instant::now(), over: false, reads_left: READS_AFTER_KILL });
        self.process.start_kill();
    }

    /// Leaves the background processes that hold the output open to the group.
    fn detach(&mut self) {
        self.output_open = false;
        self.process.forget_output();
    }

    /// Reads what is left in the pipe of a stopped command, without waiting.
    fn read_rest(&mut self) -> usize {
        let Some(stop) = self.stop.as_mut().filter(|stop| self.output_open && stop.reads_left > 0) else {
            return 0;
        };
        stop.reads_left -= 1;
        // An error means that the pipe is empty now: a process that could not be killed holds it open.
        self.process.output.try_read(&mut self.buffer).unwrap_or(0)
    }
}

/// Why a shell command could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// The shell that the settings name does not exist.
    #[error("Custom shell path not found: {}", .0.display())]
    ShellMissing(PathBuf),
    /// The working directory does not exist.
    #[error("Working directory does not exist: {}\nCannot execute bash commands.", .0.display())]
    WorkingDirectoryMissing(PathBuf),
    /// The machine where commands run cannot be reached: what happened, and what to do.
    #[error("{0}")]
    Unreachable(String),
    /// Anything else.
    #[error(transparent)]
    Spawn(SpawnError),
}

impl From<SpawnError> for ShellError {
    fn from(error: SpawnError) -> Self {
        use std::io::ErrorKind::{NotADirectory, NotFound};
        match error {
            SpawnError::WorkingDirectory { path, source }
                if matches!(source.kind(), NotFound | NotADirectory) =>
            {
                Self::WorkingDirectoryMissing(path)
            }
            other => Self::Spawn(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::shell_run::*;

    #[test]
    fn a_missing_directory_has_its_own_message() {
        let source = std::io::Error::from_raw_os_error(libc::ENOENT);
        let error = ShellError::from(SpawnError::WorkingDirectory { path: "/gone".into(), source });
        assert_eq!(
            error.to_string(),
            "Working directory does not exist: /gone\nCannot execute bash commands."
        );
    }
}
