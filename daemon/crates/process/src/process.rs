//! One running command.

use std::{io, sync::Arc, time::Duration};

use rustix::process::Signal;

use crate::{
    command::ExitStatus,
    frames::SupervisorOrder,
    group_state::GroupState,
    limits::LimitReached,
    linux,
    streams::{InputPipe, OutputPipe, StreamEnds},
    supervisor::{CommandState, SupervisorHandle},
    terminal::{Terminal, TerminalSize},
};

/// How long to wait until killed processes are gone. Only processes in an uninterruptible disk or network wait, or of
/// another user, remain then; their supervisor keeps trying.
pub(crate) const KILL_WAIT: Duration = Duration::from_secs(5);

/// One command of a [`ProcessGroup`](crate::ProcessGroup), with everything that it started.
///
/// Dropping it while the command's own process runs kills all of it. Dropping it later leaves background processes to
/// the group.
#[derive(Debug)]
pub struct Process {
    /// The output of the command and of everything that it started, in the order in which it was written; without the
    /// errors where these have a pipe of their own.
    pub output: OutputPipe,
    /// The errors, with [`crate::CommandStreams::Separate`].
    pub errors: Option<OutputPipe>,
    input: Option<InputPipe>,
    terminal: Option<Arc<Terminal>>,
    group: Arc<GroupState>,
    watch: CommandWatch,
}

/// The processes of a command at one moment: what of them is there later is not newer.
#[derive(Debug, Clone, Default)]
pub struct ProcessMark(Arc<linux::TreeMark>);

/// Observes and controls the command of a [`Process`], without its output.
#[derive(Debug, Clone)]
pub(crate) struct CommandWatch(Arc<SupervisorHandle>);

impl Process {
    pub(crate) fn new(group: Arc<GroupState>, supervisor: Arc<SupervisorHandle>, ends: StreamEnds) -> Self {
        let StreamEnds { output, errors, input, terminal } = ends;
        Self { output, errors, input, terminal, group, watch: CommandWatch(supervisor) }
    }

    pub(crate) fn watch(&self) -> &CommandWatch {
        &self.watch
    }

    /// The command's own process id, which is also the id of its process session.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        self.watch.0.now().started
    }

    /// Takes the command's input; `None` if it has none, or it was taken before.
    ///
    /// While it is not taken, the input stays open and empty until this process is dropped.
    #[must_use]
    pub fn take_input(&mut self) -> Option<InputPipe> {
        self.input.take()
    }

    /// Takes the command's output, to be read elsewhere; `None` if it was taken before. What is left is an output at its end.
    #[must_use]
    pub fn take_output(&mut self) -> Option<OutputPipe> {
        self.output.take()
    }

    /// Resizes the command's terminal, and notifies its foreground processes.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] without a terminal; otherwise the system's.
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

    /// Waits for the command's own process to end; background processes may still run. Cancel safe.
    ///
    /// If the supervisor is killed, so is the command, and the status is SIGKILL.
    pub async fn wait(&self) -> ExitStatus {
        self.watch.wait().await
    }

    /// Waits until neither the command nor anything that it started is left. Cancel safe.
    pub async fn gone(&self) {
        self.watch.gone().await;
    }

    /// Notes which processes the command has now, for [`Self::kill_newer`]. Cancel safe.
    pub async fn mark(&self) -> ProcessMark {
        let Some(supervisor) = self.watch.0.now().supervisor else { return ProcessMark::default() };
        let mark = tokio::task::spawn_blocking(move || linux::TreeMark::of(supervisor)).await;
        // An error means that the runtime ends.
        ProcessMark(Arc::new(mark.unwrap_or_default()))
    }

    /// Kills what the command has started since `mark` with all that this started, and leaves the command's own process and what was there
    /// before.
    ///
    /// Cancel safety: if dropped, the killing continues.
    pub async fn kill_newer(&self, mark: &ProcessMark) {
        let (Some(supervisor), Some(own)) = (self.watch.0.now().supervisor, self.pid()) else { return };
        let mark = mark.clone();
        let killing = tokio::task::spawn_blocking(move || mark.0.kill_newer(supervisor, own));
        // An error means that the runtime ends, and with it everything below the supervisor.
        let _ = killing.await;
    }

    /// Interrupts the innermost processes of `mark` (SIGINT): taken when the command has started nothing yet, its own program, whatever
    /// holds its sandbox. Cancel safety: as of [`Self::kill_newer`].
    pub async fn interrupt(&self, mark: &ProcessMark) {
        let Some(supervisor) = self.watch.0.now().supervisor else { return };
        let mark = mark.clone();
        let signalling =
            tokio::task::spawn_blocking(move || mark.0.signal_innermost(supervisor, Signal::INT));
        // An error means that the runtime ends.
        let _ = signalling.await;
    }

    /// Kills the command's own process, and nothing that it started. Cancel safety: as of [`Self::kill_newer`].
    pub async fn kill_own(&self) {
        let state = self.watch.0.now();
        let (Some(supervisor), Some(own), None) = (state.supervisor, state.started, state.exit) else {
            return;
        };
        let killing = tokio::task::spawn_blocking(move || linux::kill_own(supervisor, own));
        // An error means that the runtime ends.
        let _ = killing.await;
    }

    /// Asks the command and everything that it started to end (SIGTERM), without waiting.
    pub fn terminate_all(&self) {
        self.watch.terminate();
    }

    /// Leaves what the command has started to its group: dropping the process kills nothing more. Its later output is discarded.
    pub fn leave_running(mut self) {
        self.forget_output();
    }

    pub(crate) fn group(&self) -> &GroupState {
        &self.group
    }

    /// Kills the command and everything that it started, without waiting.
    pub fn start_kill(&self) {
        self.watch.start_kill();
    }

    /// Kills the command and everything that it started, and returns when they are gone.
    ///
    /// Returns after 5 seconds at the latest; processes that SIGKILL has not ended by then are logged.
    ///
    /// Cancel safety: if dropped, the killing continues.
    pub async fn kill(&self) {
        self.start_kill();
        if tokio::time::timeout(KILL_WAIT, self.gone()).await.is_err() {
            tracing::warn!(pid = self.pid(), "processes of a command survive SIGKILL");
        }
    }

    /// Stops reading: background processes stay in the group, and their later output is discarded.
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

impl CommandWatch {
    pub(crate) fn supervisor(&self) -> &SupervisorHandle {
        &self.0
    }

    /// Waits until the command runs or has failed to start.
    pub(crate) async fn launched(&self) -> CommandState {
        let settled = |state: &CommandState| state.started.is_some() || state.failure.is_some() || state.gone;
        // An error means that the monitor ended with its runtime; the last state is all that is known.
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
        self.0.order(SupervisorOrder::Terminate);
    }

    /// Sends a signal to the command and everything that it started.
    pub(crate) fn signal(&self, signal: u8) {
        self.0.order(SupervisorOrder::Signal(signal));
    }

    pub(crate) fn start_kill(&self) {
        self.0.order(SupervisorOrder::Kill);
    }
}
