//! Owns the processes of one session.

use std::{
    collections::HashMap,
    io,
    os::{fd::OwnedFd, unix::net::UnixStream as StdStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agentd_protocol::command::Work;
use tokio::net::UnixStream;
use tokio_util::task::TaskTracker;

use crate::{
    command::{CommandSpec, SpawnError},
    drain,
    launcher::Launcher,
    limits::{LimitedResource, ProcessLimits},
    listing::ProcessView,
    output::OutputPipe,
    process::{KILL_WAIT, Process},
    scope::{Scope, State},
    streams::CommandStreams,
    wire::{self, Order, Stage, Terms},
};

/// How long a command may take to start before the guard is checked.
const LAUNCH_WAIT: Duration = Duration::from_millis(500);

/// How often a stopped guard is continued before it is replaced.
const GUARD_WAKE_UPS: u32 = 3;

/// All processes of one session, including those that finished commands left running. Cheap to clone.
///
/// When the last clone and the last [`Process`] of the group are gone, everything in it is killed.
#[derive(Debug, Clone)]
pub struct ProcessGroup {
    inner: Arc<Inner>,
    /// The work that commands started through this clone belong to.
    work: Option<Arc<Work>>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    launcher: Launcher,
    limits: Mutex<ProcessLimits>,
    members: Mutex<Members>,
    tasks: TaskTracker,
}

#[derive(Debug, Default)]
struct Members {
    closed: bool,
    next: u64,
    scopes: HashMap<u64, Arc<Scope>>,
}

impl ProcessGroup {
    pub(crate) fn new(launcher: Launcher) -> Self {
        let inner = Inner {
            launcher,
            limits: Mutex::default(),
            members: Mutex::default(),
            tasks: TaskTracker::new(),
        };
        Self { inner: Arc::new(inner), work: None }
    }

    /// The same group, for commands that belong to `work`, which [`ProcessView::list`] then names.
    #[must_use]
    pub fn working_for(&self, work: Work) -> Self {
        Self { inner: Arc::clone(&self.inner), work: Some(Arc::new(work)) }
    }

    /// Sets the limits of the group's commands. Limits of all commands together take effect at once, if the running
    /// commands have limits; those of each command apply to commands started from now on.
    pub fn set_limits(&self, limits: ProcessLimits) {
        *self.inner.limits.lock().unwrap_or_else(PoisonError::into_inner) = limits;
    }

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
        let terms = Terms { owner: self.inner.launcher.mark(), limits: self.inner.limits() };
        let bytes = wire::encode_command(&command, &terms)?;
        // If the guard is killed between taking the request and forking, the command has not run.
        for _ in 0..2 {
            let process = self.request(command.streams, terms).await?;
            // An error only means that the supervisor ended early; its reports say why.
            let _ = process.watch().scope().send(&bytes).await;
            let state = self.launched(&process).await;
            match (state.started, state.failure) {
                (Some(_), _) => return Ok(process),
                (None, Some((stage, errno))) => return Err(spawn_error(command, stage, errno)),
                (None, None) if state.scope.is_some() => return Err(self.lost()),
                (None, None) => {
                    tracing::warn!("the process guard was killed before it started a command; trying again")
                }
            }
        }
        Err(self.lost())
    }

    /// Waits until the command runs or has failed to start. A command can stop the guard, and with it all later
    /// commands: then the guard is continued, and replaced if it is stopped again.
    async fn launched(&self, process: &Process) -> State {
        let mut attempt = 0;
        loop {
            let launched = process.watch().launched();
            if let Ok(state) = tokio::time::timeout(LAUNCH_WAIT, launched).await {
                return state;
            }
            process.watch().scope().wake();
            self.inner.launcher.wake_guard(attempt >= GUARD_WAKE_UPS).await;
            attempt += 1;
        }
    }

    /// The error for a supervisor that closed its socket early: the group may have been closed meanwhile.
    fn lost(&self) -> SpawnError {
        if self.members().closed { SpawnError::Closed } else { SpawnError::GuardLost }
    }

    /// Requests a supervisor, which then waits for its command.
    async fn request(&self, streams: CommandStreams, terms: Terms) -> Result<Process, SpawnError> {
        let admitted = self.inner.launcher.admit()?;
        let (mut ends, streams) = streams.open().map_err(SpawnError::Resources)?;
        let (socket, scope_end) = StdStream::pair().map_err(SpawnError::Resources)?;
        let socket = register(socket).map_err(SpawnError::Resources)?;
        self.inner.launcher.request(OwnedFd::from(scope_end), streams).await?;

        let (scope, monitor) = Scope::new(socket, self.work.clone(), terms);
        let scope = Arc::new(scope);
        if let Some(bytes) = terms.limits.of(LimitedResource::Output) {
            ends.limit(&scope, bytes);
        }
        let id = {
            let mut members = self.members();
            if members.closed {
                return Err(SpawnError::Closed);
            }
            members.next += 1;
            let id = members.next;
            members.scopes.insert(id, Arc::clone(&scope));
            id
        };
        let group = Arc::downgrade(&self.inner);
        self.inner.tasks.spawn(async move {
            let check = || {
                if let Some(inner) = group.upgrade() {
                    inner.check_limits();
                }
            };
            monitor.run(check).await;
            drop(admitted);
            if let Some(inner) = group.upgrade() {
                inner.members().scopes.remove(&id);
            }
        });
        Ok(Process::new(self.clone(), scope, ends))
    }

    /// Ends every process of the group and closes it: it starts no more.
    ///
    /// All are asked to end (SIGTERM); what is left after `grace` is killed. Returns when nothing is left, except for
    /// processes that SIGKILL cannot end within 5 seconds; those are logged.
    ///
    /// Cancel safety: if dropped, the group is closed, and processes that were not asked yet end with the group's last
    /// clone.
    pub async fn terminate(&self, grace: Duration) {
        let scopes: Vec<_> = {
            let mut members = self.members();
            members.closed = true;
            members.scopes.values().cloned().collect()
        };
        end(&scopes, grace).await;
    }

    /// Ends every current process of the group, as [`Self::terminate`] does, and leaves the group open.
    ///
    /// Cancel safety: if dropped, processes that have not ended yet continue.
    pub async fn end_all(&self, grace: Duration) {
        end(&self.inner.scopes(), grace).await;
    }

    /// The number of commands that have ended and left processes running in the background.
    #[must_use]
    pub fn background(&self) -> usize {
        self.background_of(|_| true)
    }

    /// [`Self::background`] for commands whose work `counts` accepts. Commands with unknown work count.
    #[must_use]
    pub fn background_of(&self, counts: impl Fn(&Work) -> bool) -> usize {
        let left_some = |state: State| state.exit.is_some() && state.is_running();
        let scopes = self.inner.scopes();
        let found = scopes.iter().filter(|scope| left_some(scope.now()) && scope.work().is_none_or(&counts));
        found.count()
    }

    /// The number of commands with running processes, including finished commands with background processes.
    #[must_use]
    pub fn running(&self) -> usize {
        self.members().scopes.values().filter(|scope| scope.now().is_running()).count()
    }

    /// Runs a task on behalf of the group's processes.
    pub(crate) fn spawn_task(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.inner.tasks.spawn(task);
    }

    /// Keeps reading, and discards, the output of processes that a finished command left in the background.
    pub(crate) fn drain(&self, output: OutputPipe) {
        self.inner.tasks.spawn(drain::drain(output));
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.inner.members()
    }
}

impl Inner {
    /// The supervisors of commands that may still run.
    pub(crate) fn scopes(&self) -> Vec<Arc<Scope>> {
        self.members().scopes.values().cloned().collect()
    }

    fn limits(&self) -> ProcessLimits {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills the largest command if all together use too much.
    fn check_limits(&self) {
        let limits = self.limits();
        let running: Vec<_> = self
            .scopes()
            .into_iter()
            .map(|scope| (scope.now(), scope))
            .filter(|(state, _)| !state.gone)
            .collect();
        // A command that is already being killed may free enough.
        if running.iter().any(|(state, _)| state.limit.is_some()) {
            return;
        }
        let check = |resource, unit: u64, order, used: fn(&State) -> u64| {
            let total: u64 = running.iter().map(|(state, _)| used(state)).sum();
            if limits.of(resource).is_some_and(|limit| total.saturating_mul(unit) > limit)
                && let Some((_, largest)) = running.iter().max_by_key(|(state, _)| used(state))
            {
                largest.order(order);
            }
        };
        check(LimitedResource::Processes, 1, Order::TooManyProcesses, |state| state.usage.0);
        check(LimitedResource::Memory, 1024, Order::TooMuchMemory, |state| state.usage.1);
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        // No holder of this lock can panic with a half-made change.
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks all to end, and kills what is left after `grace`.
async fn end(scopes: &[Arc<Scope>], grace: Duration) {
    scopes.iter().for_each(|scope| scope.order(Order::Terminate));
    if tokio::time::timeout(grace, all_gone(scopes)).await.is_ok() {
        return;
    }
    scopes.iter().for_each(|scope| scope.order(Order::Kill));
    if tokio::time::timeout(KILL_WAIT, all_gone(scopes)).await.is_err() {
        let left = scopes.iter().filter(|scope| !scope.now().gone).count();
        tracing::warn!(commands = left, "processes of a session survive SIGKILL");
    }
}

async fn all_gone(scopes: &[Arc<Scope>]) {
    for scope in scopes {
        scope.gone().await;
    }
}

fn register(socket: StdStream) -> io::Result<UnixStream> {
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

fn spawn_error(command: CommandSpec, stage: Stage, errno: i32) -> SpawnError {
    let source = io::Error::from_raw_os_error(errno);
    match stage {
        Stage::Scope => SpawnError::Resources(source),
        Stage::WorkingDirectory => SpawnError::WorkingDirectory { path: command.cwd, source },
        Stage::Program => SpawnError::Program { program: command.program, source },
    }
}
