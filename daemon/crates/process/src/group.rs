//! Owns the processes of one session.

use std::{
    io,
    os::{fd::OwnedFd, unix::net::UnixStream as StdStream},
    sync::{Arc, MutexGuard},
    time::Duration,
};

use agentd_protocol::command::Work;
use rustix::net::SendFlags;
use tokio::net::UnixStream;

use crate::{
    command::{CommandSpec, CommandStreams, SpawnError},
    frames::{self, CommandTerms, StartStage, SupervisorOrder},
    group_state::{GroupMembers, GroupState},
    launcher::Launcher,
    limits::{LimitedResource, ProcessLimits},
    listing::ProcessView,
    process::{KILL_WAIT, Process},
    streams::StreamEnds,
    supervisor::{CommandState, SupervisorHandle},
};

/// How long a command may take to start before the guard is checked.
const LAUNCH_WAIT: Duration = Duration::from_millis(500);

/// How often a command is handed to a supervisor, while none reads it.
const MOST_ATTEMPTS: u32 = 3;

/// How often a stopped guard is continued before it is replaced.
const GUARD_WAKE_UPS: u32 = 3;

/// All processes of one session, including those that finished commands left running. Cheap to clone.
///
/// When the last clone and the last [`Process`] of the group are gone, everything in it is killed.
#[derive(Debug, Clone)]
pub struct ProcessGroup {
    inner: Arc<GroupState>,
    /// The work that commands started through this clone belong to.
    work: Option<Arc<Work>>,
    /// The most memory of each command that is started through this clone, if that is less than the group's.
    memory_bytes: Option<u64>,
}

impl Launcher {
    /// A new, empty group of processes.
    #[must_use]
    pub fn group(&self) -> ProcessGroup {
        ProcessGroup::new(self.clone())
    }
}

impl ProcessGroup {
    fn new(launcher: Launcher) -> Self {
        Self { inner: Arc::new(GroupState::new(launcher)), work: None, memory_bytes: None }
    }

    /// The same group, for commands that belong to `work`, which [`ProcessView::list`] then names.
    #[must_use]
    pub fn working_for(&self, work: Work) -> Self {
        Self { work: Some(Arc::new(work)), ..self.clone() }
    }

    /// The same group, for commands of which each may take so many bytes of memory with all that it starts, where the group's own limit is
    /// not less. 0 is no limit.
    #[must_use]
    pub fn with_memory_limit(&self, bytes: u64) -> Self {
        Self { memory_bytes: (bytes > 0).then_some(bytes), ..self.clone() }
    }

    /// The limits of a command that is started through this clone.
    fn command_limits(&self) -> ProcessLimits {
        let mut limits = self.inner.limits();
        if let Some(own) = self.memory_bytes {
            let of_group = limits.of(LimitedResource::Memory);
            limits.memory_bytes = Some(of_group.map_or(own, |of_group| of_group.min(own)));
        }
        limits
    }

    /// Sets the limits of the group's commands. Limits of all commands together take effect at once, if the running
    /// commands have limits; those of each command apply to commands started from now on.
    pub fn set_limits(&self, limits: ProcessLimits) {
        self.inner.set_limits(limits);
    }

    /// Lists what runs in the group.
    #[must_use]
    pub fn view(&self) -> ProcessView {
        ProcessView::new(Arc::downgrade(&self.inner))
    }

    /// Starts a program in a process session of its own, with the streams that it asks for.
    ///
    /// # Errors
    /// [`SpawnError`]. A guard that was killed is replaced without an error, as long as the command cannot have run.
    ///
    /// Cancel safety: if dropped, whatever was started is killed.
    pub async fn spawn(&self, command: CommandSpec) -> Result<Process, SpawnError> {
        let terms = CommandTerms { owner: self.inner.launcher.mark(), limits: self.command_limits() };
        let bytes = frames::encode_command(&command, &terms)?;
        // If the guard or a waiting supervisor is killed before it has read the command, that has not run.
        for _ in 0..MOST_ATTEMPTS {
            let (process, rest) = self.request(&bytes, command.streams, terms).await?;
            // An error means that the supervisor ended early, so that it cannot have read all of the command.
            let is_whole = process.watch().supervisor().send_rest(rest).await.is_ok();
            let state = self.launched(&process).await;
            match (state.started, state.failure) {
                (Some(_), _) => return Ok(process),
                (None, Some((stage, errno))) => return Err(spawn_error(command, stage, errno)),
                (None, None) if is_whole && !state.unread => return Err(self.lost()),
                (None, None) => {
                    tracing::warn!("the process guard was killed before it started a command; trying again")
                }
            }
        }
        Err(self.lost())
    }

    /// Waits until the command runs or has failed to start. A command can stop the guard, and with it all later
    /// commands: then the guard is continued, and replaced if it is stopped again.
    async fn launched(&self, process: &Process) -> CommandState {
        let mut attempt = 0;
        loop {
            let launched = process.watch().launched();
            if let Ok(state) = tokio::time::timeout(LAUNCH_WAIT, launched).await {
                return state;
            }
            process.watch().supervisor().wake();
            self.inner.launcher.wake_guard(attempt >= GUARD_WAKE_UPS).await;
            attempt += 1;
        }
    }

    /// The error for a supervisor that closed its socket early: the group may have been closed meanwhile.
    fn lost(&self) -> SpawnError {
        if self.members().closed { SpawnError::Closed } else { SpawnError::GuardLost }
    }

    /// Hands a command to a supervisor. Returns what of it is still to be sent.
    async fn request<'a>(
        &self,
        command: &'a [u8],
        streams: CommandStreams,
        terms: CommandTerms,
    ) -> Result<(Process, &'a [u8]), SpawnError> {
        let admitted = self.inner.launcher.admit()?;
        let (mut ends, streams) = StreamEnds::open(streams).map_err(SpawnError::Resources)?;
        let (socket, supervisor_end) = StdStream::pair().map_err(SpawnError::Resources)?;
        // The command is there before its supervisor looks. An error comes back when the rest is sent.
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let sent = rustix::net::send(&socket, command, flags).unwrap_or(0);
        let rest = &command[sent..];
        let socket = register(socket).map_err(SpawnError::Resources)?;
        let link = self.inner.launcher.request(OwnedFd::from(supervisor_end), streams).await?;

        let link = (link, rest.is_empty());
        let (supervisor, monitor) = SupervisorHandle::new(socket, link, self.work.clone(), terms);
        let supervisor = Arc::new(supervisor);
        if let Some(bytes) = terms.limits.of(LimitedResource::Output) {
            ends.limit(&supervisor, bytes);
        }
        let Some(id) = self.inner.add(&supervisor) else { return Err(SpawnError::Closed) };
        let group = Arc::downgrade(&self.inner);
        let idle = self.inner.launcher.idle().clone();
        self.inner.spawn_task(async move {
            let check = || {
                if let Some(inner) = group.upgrade() {
                    inner.check_limits();
                }
            };
            let ended = || {
                drop(admitted);
                if let Some(inner) = group.upgrade() {
                    inner.members().supervisors.remove(&id);
                }
            };
            monitor.run(check, ended, &idle).await;
        });
        Ok((Process::new(Arc::clone(&self.inner), supervisor, ends), rest))
    }

    /// Ends every process of the group and closes it: it starts no more.
    ///
    /// All are asked to end (SIGTERM); what is left after `grace` is killed. Returns when nothing is left, except for
    /// processes that SIGKILL cannot end within 5 seconds; those are logged.
    ///
    /// Cancel safety: if dropped, the group is closed, and processes that were not asked yet end with the group's last
    /// clone.
    pub async fn terminate(&self, grace: Duration) {
        let supervisors: Vec<_> = {
            let mut members = self.members();
            members.closed = true;
            members.supervisors.values().cloned().collect()
        };
        end(&supervisors, grace).await;
    }

    /// Ends every current process of the group, as [`Self::terminate`] does, and leaves the group open.
    ///
    /// Cancel safety: if dropped, processes that have not ended yet continue.
    pub async fn end_all(&self, grace: Duration) {
        end(&self.inner.supervisors(), grace).await;
    }

    /// The number of commands that have ended and left processes running in the background.
    #[must_use]
    pub fn background(&self) -> usize {
        self.background_of(|_| true)
    }

    /// [`Self::background`] for commands whose work `counts` accepts. Commands with unknown work count.
    #[must_use]
    pub fn background_of(&self, counts: impl Fn(&Work) -> bool) -> usize {
        let left_some = |state: CommandState| state.exit.is_some() && state.is_running();
        let supervisors = self.inner.supervisors();
        let found = supervisors
            .iter()
            .filter(|supervisor| left_some(supervisor.now()) && supervisor.work().is_none_or(&counts));
        found.count()
    }

    /// The number of commands with running processes, including finished commands with background processes.
    #[must_use]
    pub fn running(&self) -> usize {
        self.members().supervisors.values().filter(|supervisor| supervisor.now().is_running()).count()
    }

    /// Runs a task on behalf of the group's processes.
    pub(crate) fn spawn_task(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.inner.spawn_task(task);
    }

    fn members(&self) -> MutexGuard<'_, GroupMembers> {
        self.inner.members()
    }
}

/// Asks all to end, and kills what is left after `grace`.
async fn end(supervisors: &[Arc<SupervisorHandle>], grace: Duration) {
    supervisors.iter().for_each(|supervisor| supervisor.order(SupervisorOrder::Terminate));
    if tokio::time::timeout(grace, all_gone(supervisors)).await.is_ok() {
        return;
    }
    supervisors.iter().for_each(|supervisor| supervisor.order(SupervisorOrder::Kill));
    if tokio::time::timeout(KILL_WAIT, all_gone(supervisors)).await.is_err() {
        let left = supervisors.iter().filter(|supervisor| !supervisor.now().gone).count();
        tracing::warn!(commands = left, "processes of a session survive SIGKILL");
    }
}

async fn all_gone(supervisors: &[Arc<SupervisorHandle>]) {
    for supervisor in supervisors {
        supervisor.gone().await;
    }
}

fn register(socket: StdStream) -> io::Result<UnixStream> {
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

fn spawn_error(command: CommandSpec, stage: StartStage, errno: i32) -> SpawnError {
    let source = io::Error::from_raw_os_error(errno);
    match stage {
        StartStage::Supervisor => SpawnError::Resources(source),
        StartStage::WorkingDirectory => SpawnError::WorkingDirectory { path: command.cwd, source },
        StartStage::Sandbox(step) => SpawnError::Sandbox { step, source },
        StartStage::Program => SpawnError::Program { program: command.program, source },
    }
}
