//! The interface by which a session's shell commands run, on this machine or another.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use agentd_protocol::{command::Work, tool::Truncation};
use agentd_sandbox::SandboxPolicy;
use tokio_util::sync::CancellationToken;

use crate::{
    command::CommandStreams,
    group::ProcessGroup,
    output_storage::OutputStorage,
    plain_text::{OutputCleaner, Utf8Stream},
    shell_path::resolve_shell,
    shell_run::{ShellCommand, ShellError, ShellOutcome, ShellRun},
    shell_snapshot::{ShellSnapshot, SnapshotShell},
    streams::InputPipe,
    tail::{FullOutput, OutputTail},
    terminal::TerminalSize,
};

/// A future of a [`Shell`].
pub type ShellFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Runs the shell commands of one session: on this machine ([`LocalShell`]), or elsewhere.
pub trait Shell: Send + Sync {
    /// The working directory on the shell's machine for a session in `cwd`: on this machine, `cwd` itself.
    ///
    /// # Errors
    /// [`ShellError`] when the machine cannot be reached. Cancel safe.
    fn directory<'a>(&'a self, cwd: &'a Path) -> ShellFuture<'a, Result<PathBuf, ShellError>> {
        Box::pin(async move { Ok(cwd.to_owned()) })
    }

    /// Starts a command.
    ///
    /// # Errors
    /// [`ShellError`]. Cancel safety: if dropped, whatever was started is killed.
    fn start(&self, job: ShellJob) -> ShellFuture<'_, Result<Box<dyn RunningCommand>, ShellError>>;
}

/// A command to start.
#[derive(Clone)]
pub struct ShellJob {
    /// The script, as one argument after `-c`.
    pub command: String,
    /// The working directory, absolute, as [`Shell::directory`] returned it.
    pub cwd: PathBuf,
    /// The complete environment instead of the shell's usual one. Commands on another machine get that machine's own
    /// environment.
    pub base: Option<Arc<[(OsString, OsString)]>>,
    /// Variables on top of it; the later of two with one name wins.
    pub env: Vec<(OsString, OsString)>,
    /// When to kill the command with all that it started; `None` sets no limit.
    pub timeout: Option<Duration>,
    /// Fires to kill the command with all that it started at once.
    pub cancel: CancellationToken,
    /// The standard streams. Other machines support output only.
    pub streams: CommandStreams,
    /// The work that the command belongs to, for lists of processes.
    pub work: Work,
    /// Whether the command runs outside of the shell's sandbox.
    pub outside_sandbox: bool,
}

/// A running command. Dropping it kills the command, unless its shell has exited.
pub trait RunningCommand: Send {
    /// The next piece of output, in the order in which it was written; `None` at the end. Cancel safe.
    ///
    /// A caller that is slow to ask again slows the command down: nothing piles up.
    fn next(&mut self) -> ShellFuture<'_, Option<&[u8]>>;

    /// Says that pieces of output may have up to a megabyte: a flood takes less time so.
    fn allow_large_pieces(&mut self) {}

    /// Takes the command's input, if its streams have one.
    fn take_input(&mut self) -> Option<InputPipe> {
        None
    }

    /// Resizes the command's terminal.
    ///
    /// # Errors
    /// The system's, or `Unsupported` without a terminal.
    fn resize(&self, _: TerminalSize) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Why it is unknown how the command ended, once [`Self::next`] has returned `None`: a sentence for the user. Only
    /// commands that others run, on another machine or in an editor, can end so.
    fn failure(&self) -> Option<String> {
        None
    }

    /// What is missing of the output, once [`Self::next`] has returned `None`: a sentence for the user.
    fn missing_output(&self) -> Option<String> {
        None
    }

    /// What the model has to know of how the command ran: a sentence.
    fn notice(&self) -> Option<String> {
        None
    }

    /// How the command ended. Call it after [`Self::next`] has returned `None`; it kills a command that still runs.
    fn finish(self: Box<Self>) -> ShellOutcome;
}

impl RunningCommand for ShellRun {
    fn next(&mut self) -> ShellFuture<'_, Option<&[u8]>> {
        Box::pin(ShellRun::next(self))
    }

    fn allow_large_pieces(&mut self) {
        ShellRun::allow_large_pieces(self);
    }

    fn take_input(&mut self) -> Option<InputPipe> {
        ShellRun::take_input(self)
    }

    fn resize(&self, size: TerminalSize) -> io::Result<()> {
        ShellRun::resize(self, size)
    }

    fn finish(self: Box<Self>) -> ShellOutcome {
        ShellRun::finish(*self)
    }
}

/// Runs commands on this machine.
#[derive(Debug, Clone)]
pub struct LocalShell {
    /// The group in which the commands and their background processes run.
    pub group: ProcessGroup,
    /// The setting `shellPath`: the shell to use instead of the default.
    pub path: Option<PathBuf>,
    /// The complete environment of all commands.
    pub env: Arc<[(OsString, OsString)]>,
    /// What commands may touch; `None` confines nothing.
    pub sandbox: Option<Arc<SandboxPolicy>>,
    /// The functions and aliases of the user's shell, which commands begin with; `None` for none.
    pub snapshot: Option<ShellSnapshot>,
}

impl LocalShell {
    /// Completes a job with its shell and its environment, and begins it with the snapshot of the user's shell.
    ///
    /// # Errors
    /// [`ShellError::ShellMissing`].
    pub(crate) async fn command(&self, job: ShellJob) -> Result<ShellCommand, ShellError> {
        let (mut command, snapshot) = self.prepared(job).await?;
        command.command.insert_str(0, &snapshot);
        Ok(command)
    }

    /// A job with its shell and its environment, and the line that reads the snapshot of the user's shell.
    ///
    /// # Errors
    /// [`ShellError::ShellMissing`].
    pub(crate) async fn prepared(&self, job: ShellJob) -> Result<(ShellCommand, String), ShellError> {
        let ShellJob { command, cwd, base, env: added, timeout, cancel, streams, work, outside_sandbox } =
            job;
        let mut env = base.as_ref().unwrap_or(&self.env).to_vec();
        let of_commands = env.len();
        env.extend(added);
        let shell = resolve_shell(self.path.as_deref(), &env).await?;
        let sandbox = self.sandbox.clone().filter(|_| !outside_sandbox);
        let line = match &self.snapshot {
            // What commands in the sandbox could change must not count outside of it.
            Some(snapshot) if !outside_sandbox || self.sandbox.is_none() => {
                let shell = SnapshotShell {
                    group: &self.group.working_for(work),
                    shell: &shell,
                    cwd: &cwd,
                    env: &env[..of_commands],
                    sandbox: sandbox.as_ref(),
                    cancel: &cancel,
                };
                snapshot.line(shell).await
            }
            _ => String::new(),
        };
        Ok((ShellCommand { shell, command, cwd, env, timeout, cancel, streams, sandbox }, line))
    }

    /// Starts a command, as [`Shell::start`].
    ///
    /// # Errors
    /// [`ShellError`]. Cancel safety: if dropped, whatever was started is killed.
    pub async fn start_run(&self, job: ShellJob) -> Result<ShellRun, ShellError> {
        let work = job.work.clone();
        let command = self.command(job).await?;
        ShellRun::start(&self.group.working_for(work), command).await
    }

    async fn run(&self, job: ShellJob) -> Result<Box<dyn RunningCommand>, ShellError> {
        Ok(Box::new(self.start_run(job).await?))
    }
}

impl Shell for LocalShell {
    fn start(&self, job: ShellJob) -> ShellFuture<'_, Result<Box<dyn RunningCommand>, ShellError>> {
        Box::pin(self.run(job))
    }
}

/// A running command whose output comes as clean text (see [`OutputCleaner`]). Dropping it kills the command.
///
/// ```text
/// let mut run = CleanedRun::start(&shell, job, place).await?;
/// while let Some(text) = run.next().await { … }
/// let output = run.finish();
/// ```
pub struct CleanedRun {
    run: Box<dyn RunningCommand>,
    tail: OutputTail,
    decoder: Utf8Stream,
    cleaner: OutputCleaner,
    over: bool,
}

/// The result of a [`CleanedRun`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanedOutput {
    /// The end of the output.
    pub output: Truncation,
    /// The file with all of the output, when the output is long.
    pub full_output: Option<PathBuf>,
    /// How the command ended.
    pub outcome: ShellOutcome,
}

impl CleanedRun {
    /// Starts a command with `shell`. Long output goes to a file in `place`.
    ///
    /// # Errors
    /// See [`ShellError`]. Cancel safety: if dropped, whatever was started is killed.
    pub async fn start(shell: &dyn Shell, job: ShellJob, place: OutputStorage) -> Result<Self, ShellError> {
        Ok(Self {
            run: shell.start(job).await?,
            tail: OutputTail::new(place),
            decoder: Utf8Stream::new(),
            cleaner: OutputCleaner::new(),
            over: false,
        })
    }

    /// The next piece of text, never empty; `None` once the command has ended. The command waits while nothing is read.
    pub async fn next(&mut self) -> Option<String> {
        while !self.over {
            let (text, raw_bytes) = match self.run.next().await {
                Some(chunk) => (self.cleaner.clean(&self.decoder.push(chunk)), chunk.len()),
                None => {
                    self.over = true;
                    (self.cleaner.clean(self.decoder.finish()), 0)
                }
            };
            let text = text.to_string();
            self.tail.push_text(&text, raw_bytes).await;
            if self.over {
                self.tail.finish().await;
            }
            if !text.is_empty() {
                return Some(text);
            }
        }
        None
    }

    /// The result, once [`Self::next`] has returned `None`.
    ///
    /// # Errors
    /// [`ShellError::Unreachable`] when the connection to the other machine was lost, so that the end is unknown.
    pub fn finish(self) -> Result<CleanedOutput, ShellError> {
        if let Some(failure) = self.run.failure() {
            return Err(ShellError::Unreachable(failure));
        }
        let full_output = match self.tail.full_output() {
            FullOutput::File(path) => Some(path.to_path_buf()),
            FullOutput::Shown | FullOutput::Lost(_) => None,
        };
        Ok(CleanedOutput { output: self.tail.snapshot(), full_output, outcome: self.run.finish() })
    }
}
