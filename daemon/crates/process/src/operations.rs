//! What runs the shell commands of a session, wherever that is.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use agentd_protocol::command::Work;
use tokio_util::sync::CancellationToken;

use crate::{
    group::ProcessGroup,
    input::InputPipe,
    shell::{ShellError, resolve_shell},
    shell_run::{ShellCommand, ShellOutcome, ShellRun},
    streams::CommandStreams,
    terminal::TerminalSize,
};

/// What a [`Shell`] gives later.
pub type ShellFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Runs the shell commands of one session: on this machine ([`LocalShell`]), or elsewhere.
pub trait Shell: Send + Sync {
    /// The working directory there of a session whose own is `cwd`: on this machine, the same.
    ///
    /// # Errors
    /// [`ShellError`] when the place cannot be reached. Cancel safe.
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
    /// What the shell runs, as one argument after `-c`.
    pub command: String,
    /// The working directory, absolute, as [`Shell::directory`] tells.
    pub cwd: PathBuf,
    /// The complete environment in the place of the one that the shell gives to all commands. What runs on another machine has
    /// that machine's own.
    pub base: Option<Arc<[(OsString, OsString)]>>,
    /// Variables on top of those; of two with one name the later counts.
    pub env: Vec<(OsString, OsString)>,
    /// When to kill it, with all that it started; `None` lets it run for ever.
    pub timeout: Option<Duration>,
    /// Fires when it is to be killed at once, with all that it started.
    pub cancel: CancellationToken,
    /// What it reads from and writes to. Other machines give commands output only.
    pub streams: CommandStreams,
    /// What it works for, in lists of processes.
    pub work: Work,
}

/// A command that runs. Dropping it kills the command, unless its shell has exited.
pub trait RunningCommand: Send {
    /// The next piece of output, in the order in which it was written; `None` at the end. Cancel safe.
    ///
    /// A caller that is slow to ask again slows the command down: nothing piles up.
    fn next(&mut self) -> ShellFuture<'_, Option<&[u8]>>;

    /// Takes out what the command reads from, where its streams have that.
    fn take_input(&mut self) -> Option<InputPipe> {
        None
    }

    /// Gives the command's terminal another size.
    ///
    /// # Errors
    /// The system's; also where there is no terminal.
    fn resize(&self, _: TerminalSize) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Why it is not known how the command ended, once [`Self::next`] has given `None`: a sentence for the user. Only
    /// commands on other machines have such an end.
    fn failure(&self) -> Option<String> {
        None
    }

    /// How the command ended. To be called after [`Self::next`] has given `None`; a command that still runs is killed by
    /// this.
    fn finish(self: Box<Self>) -> ShellOutcome;
}

impl RunningCommand for ShellRun {
    fn next(&mut self) -> ShellFuture<'_, Option<&[u8]>> {
        Box::pin(ShellRun::next(self))
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
    /// Where the commands run, and what they leave in the background.
    pub group: ProcessGroup,
    /// The setting `shellPath`: the shell to use instead of the system's.
    pub path: Option<PathBuf>,
    /// The environment of all commands, complete.
    pub env: Arc<[(OsString, OsString)]>,
}

impl LocalShell {
    /// What a job comes to here: its shell, and its whole environment.
    ///
    /// # Errors
    /// [`ShellError::ShellMissing`].
    pub(crate) async fn command(&self, job: ShellJob) -> Result<ShellCommand, ShellError> {
        let ShellJob { command, cwd, base, env: added, timeout, cancel, streams, work: _ } = job;
        let mut env = base.as_ref().unwrap_or(&self.env).to_vec();
        env.extend(added);
        let shell = resolve_shell(self.path.as_deref(), &env).await?;
        Ok(ShellCommand { shell, command, cwd, env, timeout, cancel, streams })
    }

    async fn run(&self, job: ShellJob) -> Result<Box<dyn RunningCommand>, ShellError> {
        let work = job.work.clone();
        let command = self.command(job).await?;
        Ok(Box::new(ShellRun::start(&self.group.working_for(work), command).await?))
    }
}

impl Shell for LocalShell {
    fn start(&self, job: ShellJob) -> ShellFuture<'_, Result<Box<dyn RunningCommand>, ShellError>> {
        Box::pin(self.run(job))
    }
}
