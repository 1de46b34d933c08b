//! The daemon's side of the guard: starts it with the first command, and again when it was killed.

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
    file_limit,
    group::ProcessGroup,
    linux,
    owner::{self, Mark, OwnerFile},
};

/// How to start a program that calls [`crate::run_guard`].
#[derive(Debug, Clone)]
pub struct GuardCommand {
    /// The program.
    pub program: PathBuf,
    /// The arguments that make it the guard.
    pub args: Vec<OsString>,
}

impl GuardCommand {
    /// The running program itself, with `guard` as its only argument.
    ///
    /// It is named by the kernel's link to it, which stays good when the file is replaced by an upgrade.
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
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    command: GuardCommand,
    guard: Mutex<Option<Guard>>,
    /// Marks everything that is started.
    mark: Mark,
    /// The folder of notes on who lives.
    owners: Option<PathBuf>,
    swept: OnceCell<()>,
    /// How many commands run, of how many that may.
    commands: Arc<AtomicUsize>,
    most_commands: usize,
    /// Made with the first child; gone with the last clone of the launcher.
    owner_file: OnceCell<Option<OwnerFile>>,
}

impl Launcher {
    /// A launcher whose guard is started by `guard`, with the first command and not before.
    #[must_use]
    pub fn new(guard: GuardCommand) -> Self {
        Self::with(guard, None, usize::MAX)
    }

    /// The same, for a daemon that may be killed together with its guard and all else: `owners` is a folder, made when it is
    /// needed, in which launchers note that they live. Each ends what those left that were killed, before its first command;
    /// see [`Launcher::sweep`].
    #[must_use]
    pub fn with_owners(guard: GuardCommand, owners: PathBuf) -> Self {
        Self::with(guard, Some(owners), usize::MAX)
    }

    /// As [`Self::with_owners`], or without a folder as [`Self::new`], for a launcher of whose commands at most so many run at
    /// the same time.
    #[must_use]
    pub fn limited(guard: GuardCommand, owners: Option<PathBuf>, most_commands: usize) -> Self {
        Self::with(guard, owners, most_commands)
    }

    fn with(command: GuardCommand, owners: Option<PathBuf>, most_commands: usize) -> Self {
        let (swept, owner_file) = (OnceCell::new(), OnceCell::new());
        let inner = Inner {
            command,
            guard: Mutex::new(None),
            mark: Mark::new(),
            owners,
            swept,
            commands: Arc::default(),
            most_commands,
            owner_file,
        };
        Self { inner: Arc::new(inner) }
    }

    /// How many commands of all groups run, and how many may.
    #[must_use]
    pub fn commands(&self) -> (usize, usize) {
        (self.inner.commands.load(Ordering::Relaxed), self.inner.most_commands)
    }

    /// The place of one more command, until it is dropped.
    pub(crate) fn admit(&self) -> Result<Admitted, SpawnError> {
        let (commands, limit) = (&self.inner.commands, self.inner.most_commands);
        let one_more = |count| (count < limit).then_some(count + 1);
        match commands.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) {
            Ok(_) => Ok(Admitted(Arc::clone(commands))),
            Err(_) => Err(SpawnError::TooMany { limit }),
        }
    }

    /// Ends the processes of launchers that were killed together with everything that would have ended them, once in this
    /// launcher's life. The first command waits for it; called before, nobody has to.
    ///
    /// Without such a launcher's note this only lists a folder. Cancel safety: if dropped, it goes on, and may be asked for
    /// again.
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

    /// What marks everything that this launcher starts.
    pub(crate) fn mark(&self) -> Mark {
        self.inner.mark
    }

    /// Notes that this launcher lives, before its first child does.
    async fn note_life(&self) {
        let note = async {
            let (dir, mark) = (self.inner.owners.clone()?, self.inner.mark);
            let made = tokio::task::spawn_blocking(move || OwnerFile::create(&dir, mark)).await;
            match made.map_err(io::Error::other).flatten() {
                Ok(file) => Some(file),
                Err(error) => {
                    // Commands run as well without it; only a kill of everything at once may leave some of theirs.
                    tracing::warn!(%error, "cannot note which processes are this daemon's");
                    None
                }
            }
        };
        self.inner.owner_file.get_or_init(|| note).await;
    }

    /// A new, empty group of processes.
    #[must_use]
    pub fn group(&self) -> ProcessGroup {
        ProcessGroup::new(self.clone())
    }

    /// Has the guard fork a scope that talks through `scope` and whose command gets `streams`.
    ///
    /// A guard that is gone is replaced, once. Cancel safety: if dropped, the request was made or it was not; without
    /// its other end a scope does nothing.
    pub(crate) async fn request(&self, scope: OwnedFd, streams: Vec<OwnedFd>) -> Result<(), SpawnError> {
        self.sweep().await;
        self.note_life().await;
        let fds: Vec<BorrowedFd<'_>> = [&scope].into_iter().chain(&streams).map(AsFd::as_fd).collect();
        let mut slot = self.inner.guard.lock().await;
        if let Some(guard) = &*slot {
            match guard.send(&fds).await {
                Ok(()) => {
                    fail_point::hit(Point::GuardAsked);
                    return Ok(());
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
        Ok(())
    }

    /// Has the guard go on if somebody stopped it; `or_end`: ends it then, so that the next request starts another.
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

    /// The process id of the guard, while there is one.
    pub async fn guard_pid(&self) -> Option<u32> {
        self.inner.guard.lock().await.as_ref().map(|guard| guard.child.0.id())
    }
}

/// The place of a command among all that may run.
#[derive(Debug)]
pub(crate) struct Admitted(Arc<AtomicUsize>);

impl Drop for Admitted {
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

    /// Waits only while the guard is behind with its requests.
    async fn send(&self, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let send = || linux::send_request(&self.control, fds).map_err(io::Error::from);
        self.control.async_io(Interest::WRITABLE, send).await
    }
}

fn start_guard(command: &GuardCommand, control: OwnedFd) -> io::Result<GuardProcess> {
    let mut guard = Command::new(&command.program);
    guard.arg0("agentd").args(&command.args).env_clear().current_dir("/").stdin(Stdio::from(control));
    // A pipe to the daemon's starter, held by the guard, would hide the daemon's end from it.
    guard.stdout(Stdio::null()).stderr(Stdio::null());
    let guard = linux::Adopted::start_guard(&mut guard).map(GuardProcess)?;
    // It has started nothing yet.
    file_limit::restore_for(guard.0.id());
    Ok(guard)
}

/// The guard as a child of this process.
#[derive(Debug)]
struct GuardProcess(Child);

impl Drop for GuardProcess {
    /// Scopes do not need the guard, so killing it harms no command; and a killed process can be waited for at once.
    fn drop(&mut self) {
        if let Err(error) = self.0.kill().and_then(|()| self.0.wait()) {
            tracing::warn!(%error, pid = self.0.id(), "cannot end the process guard");
        }
        if let Ok(pid) = i32::try_from(self.0.id()) {
            linux::Adopted::forget(pid);
        }
    }
}
