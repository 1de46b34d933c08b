//! One running command.

use std::{io, sync::Arc, time::Duration};

use crate::{
    command::ExitStatus,
    group::ProcessGroup,
    input::InputPipe,
    limits::LimitReached,
    output::OutputPipe,
    scope::{Scope, State},
    streams::Ends,
    terminal::{Terminal, TerminalSize},
    wire::Order,
};

/// How long to wait for killed processes to be gone. Only those in the middle of a disk or network wait, or of another
/// user, are still there then; their scope goes on trying.
pub(crate) const KILL_WAIT: Duration = Duration::from_secs(5);

/// One command of a [`ProcessGroup`], with everything that it started.
///
/// Dropped while the command's own process runs, it kills all of it. Dropped later, it leaves what runs in the
/// background to the group.
#[derive(Debug)]
pub struct Process {
    /// What the command and everything that it started write, in the order in which they write it; without the errors
    /// where these have a pipe of their own.
    pub output: OutputPipe,
    /// The errors, with [`crate::CommandStreams::Separate`].
    pub errors: Option<OutputPipe>,
    input: Option<InputPipe>,
    terminal: Option<Arc<Terminal>>,
    group: ProcessGroup,
    watch: Watch,
}

/// The command of a [`Process`] without its output.
#[derive(Debug, Clone)]
pub(crate) struct Watch(Arc<Scope>);

impl Process {
    pub(crate) fn new(group: ProcessGroup, scope: Arc<Scope>, ends: Ends) -> Self {
        let Ends { output, errors, input, terminal } = ends;
        Self { output, errors, input, terminal, group, watch: Watch(scope) }
    }

    pub(crate) fn watch(&self) -> &Watch {
        &self.watch
    }

    /// The process id of the command's own process, which leads a session of this id.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        self.watch.0.now().started
    }

    /// Takes out what the command reads from; `None` if it has nothing to read from, or that was taken before.
    ///
    /// Left in here, the input stays open and empty until this process is dropped.
    #[must_use]
    pub fn take_input(&mut self) -> Option<InputPipe> {
        self.input.take()
    }

    /// Gives the command's terminal another size, and tells what runs in its foreground.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] when the command runs on no terminal; otherwise what the system says.
    pub fn resize(&self, size: TerminalSize) -> io::Result<()> {
        match &self.terminal {
            Some(terminal) => terminal.resize(size),
            None => Err(io::Error::new(io::ErrorKind::Unsupported, "the command runs on no terminal")),
        }
    }

    /// How the command's own process ended, if it has.
    #[must_use]
    pub fn exit(&self) -> Option<ExitStatus> {
        self.watch.exit()
    }

    /// The limit that the command was killed for, if it was.
    #[must_use]
    pub fn limit_reached(&self) -> Option<LimitReached> {
        self.watch.0.limit_reached()
    }

    /// Waits for the command's own process to end; what it left in the background may still run. Cancel safe.
    ///
    /// If the process that watches the command is killed, so is the command, and this tells of a SIGKILL.
    pub async fn wait(&self) -> ExitStatus {
        self.watch.wait().await
    }

    /// Waits until neither the command nor anything that it started is left. Cancel safe.
    pub async fn gone(&self) {
        self.watch.gone().await;
    }

    /// The group that it belongs to.
    pub(crate) fn group(&self) -> &ProcessGroup {
        &self.group
    }

    /// Has the command and everything that it started killed, without waiting for it.
    pub fn start_kill(&self) {
        self.watch.start_kill();
    }

    /// Kills the command and everything that it started, and returns when they are gone.
    ///
    /// Returns after 5 seconds at the latest; processes that SIGKILL cannot end by then are logged.
    /// Cancel safety: if dropped, the killing goes on.
    pub async fn kill(&self) {
        self.start_kill();
        if tokio::time::timeout(KILL_WAIT, self.gone()).await.is_err() {
            tracing::warn!(pid = self.pid(), "processes of a command survive SIGKILL");
        }
    }

    /// Stops reading: what runs in the background stays in the group, and may go on writing into nowhere.
    pub(crate) fn forget_output(&mut self) {
        let errors = self.errors.as_mut();
        for output in [Some(&mut self.output), errors].into_iter().flatten().filter_map(OutputPipe::take) {
            self.group.drain(output);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.exit().is_none() {
            self.start_kill();
        }
    }
}

impl Watch {
    pub(crate) fn scope(&self) -> &Scope {
        &self.0
    }

    /// Waits until the command runs or cannot.
    pub(crate) async fn launched(&self) -> State {
        let settled = |state: &State| state.started.is_some() || state.failure.is_some() || state.gone;
        // An error means that the monitor went with its runtime; the last state says what was known.
        let _ = self.0.state().wait_for(settled).await;
        self.0.now()
    }

    pub(crate) fn exit(&self) -> Option<ExitStatus> {
        self.0.now().exit
    }

    pub(crate) async fn wait(&self) -> ExitStatus {
        let _ = self.0.state().wait_for(|state| state.exit.is_some() || state.gone).await;
        self.exit().unwrap_or(ExitStatus::signaled(libc::SIGKILL))
    }

    pub(crate) async fn gone(&self) {
        self.0.gone().await;
    }

    /// Asks the command and everything that it started to end (SIGTERM).
    pub(crate) fn terminate(&self) {
        self.0.order(Order::Terminate);
    }

    /// Sends a signal to the command and everything that it started.
    pub(crate) fn signal(&self, signal: u8) {
        self.0.order(Order::Signal(signal));
    }

    pub(crate) fn start_kill(&self) {
        self.0.order(Order::Kill);
    }
}
