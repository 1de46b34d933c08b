//! Starts the guard with the first command, and again when it was killed.

use std::{
    ffi::OsString,
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::{net::UnixStream as StdStream, process::CommandExt as _},
    },
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use agentd_files::fail_point::{self, Point};
use tokio::{
    io::Interest,
    net::UnixStream,
    sync::{Mutex, OnceCell},
};

use crate::{
    command::SpawnError,
    idle_supervisors::{IdleSupervisors, SupervisorLink},
    limits,
    linux::{self, OwnerMark},
    owner::{self, OwnerFile},
};

/// The command line of a program that calls [`crate::run_guard`].
#[derive(Debug, Clone)]
pub struct GuardCommand {
    /// The program.
    pub program: PathBuf,
    /// The arguments that make it run as the guard.
    pub args: Vec<OsString>,
}

impl GuardCommand {
    /// The running program itself, with `guard` as its only argument.
    ///
    /// The path is the kernel's link to it, which stays valid when an upgrade replaces the file.
    #[must_use]
    pub fn this_program() -> Self {
        Self { program: "/proc/self/exe".into(), args: vec!["guard".into()] }
    }
}

/// Starts processes for the whole daemon. Cheap to clone; the guard ends with the last clone.
///
/// Belongs to one tokio runtime, with its I/O driver on.
#[derive(Debug, Clone)]
pub struct Launcher {
    inner: Arc<LauncherState>,
}

#[derive(Debug)]
struct LauncherState {
    command: GuardCommand,
    /// Before the guard, so that it reaps those that end with the launcher.
    idle: IdleSupervisors,
    guard: Mutex<Option<Guard>>,
    /// Marks every process that is started.
    mark: OwnerMark,
    /// The folder of owner files.
    owners: Option<PathBuf>,
    swept: OnceCell<()>,
    /// The number of running commands.
    commands: Arc<AtomicUsize>,
    most_commands: usize,
    /// Created before the first child; removed with the last clone of the launcher.
    owner_file: OnceCell<Option<OwnerFile>>,
}

impl Launcher {
    /// A launcher that starts its guard with the first command, by `guard`.
    #[must_use]
    pub fn new(guard: GuardCommand) -> Self {
        Self::with(guard, None, usize::MAX)
    }

    /// A launcher for a daemon that may be killed together with its guard and all its supervisors. `owners` is a
    /// folder, created when needed, in which each launcher keeps a file while it lives. Before its first command, a
    /// launcher ends the processes of launchers that were killed; see [`Launcher::sweep`].
    #[must_use]
    pub fn with_owners(guard: GuardCommand, owners: PathBuf) -> Self {
        Self::with(guard, Some(owners), usize::MAX)
    }

    /// As [`Self::with_owners`], or without a folder as [`Self::new`], and at most `most_commands` commands run at a
    /// time.
    #[must_use]
    pub fn limited(guard: GuardCommand, owners: Option<PathBuf>, most_commands: usize) -> Self {
        Self::with(guard, owners, most_commands)
    }

    fn with(command: GuardCommand, owners: Option<PathBuf>, most_commands: usize) -> Self {
        let (swept, owner_file) = (OnceCell::new(), OnceCell::new());
        let inner = LauncherState {
            command,
            idle: IdleSupervisors::default(),
            guard: Mutex::new(None),
            mark: OwnerMark::new(),
            owners,
            swept,
            commands: Arc::default(),
            most_commands,
            owner_file,
        };
        Self { inner: Arc::new(inner) }
    }

    /// The number of running commands of all groups, and the limit.
    #[must_use]
    pub fn commands(&self) -> (usize, usize) {
        (self.inner.commands.load(Ordering::Relaxed), self.inner.most_commands)
    }

    /// Counts one more command until the permit is dropped.
    pub(crate) fn admit(&self) -> Result<CommandPermit, SpawnError> {
        let (commands, limit) = (&self.inner.commands, self.inner.most_commands);
        let one_more = |count| (count < limit).then_some(count + 1);
        match commands.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) {
            Ok(_) => Ok(CommandPermit(Arc::clone(commands))),
            Err(_) => Err(SpawnError::TooMany { limit }),
        }
    }

    /// Ends, once in this launcher's life, the processes of launchers that were killed together with everything that
    /// would have ended them. The first command waits for it; calling it earlier spares that wait.
    ///
    /// Usually it only lists a folder. Cancel safety: if dropped, it continues, and may be called again.
    pub async fn sweep(&self) {
        let sweep = async {
            let Some(owners) = self.inner.owners.clone() else { return };
            match tokio::task::spawn_blocking(move || owner::sweep(&owners)).await {
                Ok(0) => {}
                Ok(count) => tracing::warn!(count, "killed what a killed daemon had left running"),
                Err(error) => tracing::warn!(%error, "cannot look for what a killed daemon left running"),
            }
        };
        self.inner.swept.get_or_init(|| sweep).await;
    }

    /// The mark of every process that this launcher starts.
    pub(crate) fn mark(&self) -> OwnerMark {
        self.inner.mark
    }

    /// Creates the owner file, before the first child starts.
    async fn note_life(&self) {
        let note = async {
            let (dir, mark) = (self.inner.owners.clone()?, self.inner.mark);
            let made = tokio::task::spawn_blocking(move || OwnerFile::create(&dir, mark)).await;
            match made.map_err(io::Error::other).flatten() {
                Ok(file) => Some(file),
                Err(error) => {
                    // Commands run without it, too; but if everything is killed at once, their processes may be left.
                    tracing::warn!(%error, "cannot note which processes are this daemon's");
                    None
                }
            }
        };
        self.inner.owner_file.get_or_init(|| note).await;
    }

    /// Finds a supervisor for a command: one that has nothing to do, or else a new one that the guard forks. It talks through `supervisor`, and its
    /// command gets `streams`.
    ///
    /// A guard that is gone is replaced, once. Cancel safety: if dropped, the request was made or not; a supervisor
    /// without a peer does nothing.
    pub(crate) async fn request(
        &self,
        supervisor: OwnedFd,
        streams: Vec<OwnedFd>,
    ) -> Result<SupervisorLink, SpawnError> {
        let command: Vec<BorrowedFd<'_>> =
            [&supervisor].into_iter().chain(&streams).map(AsFd::as_fd).collect();
        if let Some(link) = self.inner.idle.start(&command) {
            return Ok(link);
        }
        self.sweep().await;
        self.note_life().await;
        let (control, theirs) = StdStream::pair().map_err(SpawnError::Resources)?;
        let fds: Vec<BorrowedFd<'_>> = [theirs.as_fd()].into_iter().chain(command).collect();
        let link = SupervisorLink::new(control.into());
        let mut slot = self.inner.guard.lock().await;
        if let Some(guard) = &*slot {
            match guard.send(&fds).await {
                Ok(()) => {
                    fail_point::hit(Point::GuardAsked);
                    return Ok(link);
                }
                Err(error) => {
                    tracing::warn!(%error, "the process guard is gone; starting another");
                    *slot = None;
                }
            }
        }
        let failed = |source| SpawnError::Guard { program: self.inner.command.program.clone(), source };
        let guard = slot.insert(Guard::start(&self.inner.command).await.map_err(failed)?);
        fail_point::hit(Point::GuardStarted);
        guard.send(&fds).await.map_err(failed)?;
        fail_point::hit(Point::GuardAsked);
        Ok(link)
    }

    /// The supervisors that wait for another command.
    pub(crate) fn idle(&self) -> &IdleSupervisors {
        &self.inner.idle
    }

    /// Continues the guard if it was stopped; with `or_end`, ends it then, so that the next request starts another.
    pub(crate) async fn wake_guard(&self, or_end: bool) {
        let mut slot = self.inner.guard.lock().await;
        let Some(Ok(pid)) = slot.as_ref().map(|guard| i32::try_from(guard.child.0.id())) else { return };
        if linux::Adopted::wake(pid) {
            tracing::warn!(pid, "the process guard was stopped; it was told to go on");
            if or_end {
                *slot = None;
            }
        }
    }

    /// The guard's process id, while it runs.
    pub async fn guard_pid(&self) -> Option<u32> {
        self.inner.guard.lock().await.as_ref().map(|guard| guard.child.0.id())
    }
}

/// The permit of one running command.
#[derive(Debug)]
pub(crate) struct CommandPermit(Arc<AtomicUsize>);

impl Drop for CommandPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Guard {
    control: UnixStream,
    child: GuardProcess,
}

impl Guard {
    async fn start(command: &GuardCommand) -> io::Result<Self> {
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let command = command.clone();
        let child = tokio::task::spawn_blocking(move || start_guard(&command, theirs.into())).await??;
        let control = UnixStream::from_std(ours)?;
        Ok(Self { control, child })
    }

    /// Sends a request; waits only while the guard is behind with its requests.
    async fn send(&self, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let send = || linux::send_request(&self.control, fds).map_err(io::Error::from);
        self.control.async_io(Interest::WRITABLE, send).await
    }
}

fn start_guard(command: &GuardCommand, control: OwnedFd) -> io::Result<GuardProcess> {
    let mut guard = Command::new(&command.program);
    guard.arg0("agentd").args(&command.args).env_clear().current_dir("/").stdin(Stdio::from(control));
    // A pipe of the daemon's parent, held open by the guard, would hide the daemon's end from the parent.
    guard.stdout(Stdio::null()).stderr(Stdio::null());
    let guard = linux::Adopted::start_guard(&mut guard).map(GuardProcess)?;
    // The guard has started nothing yet.
    limits::restore_file_limit_for(guard.0.id());
    Ok(guard)
}

#[derive(Debug)]
struct GuardProcess(Child);

impl Drop for GuardProcess {
    /// Kills the guard. Supervisors do not need it, so no command is harmed, and a killed process can be waited for at
    /// once.
    fn drop(&mut self) {
        if let Err(error) = self.0.kill().and_then(|()| self.0.wait()) {
            tracing::warn!(%error, pid = self.0.id(), "cannot end the process guard");
        }
        if let Ok(pid) = i32::try_from(self.0.id()) {
            linux::Adopted::forget(pid);
        }
    }
}
