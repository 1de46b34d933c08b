//! Notices that other processes have changed the day's sum, or have ended.

use std::io;

use agentd_budget::{DayFile, Holder};
use futures::future::select_all;
use rustix::{
    fd::OwnedFd,
    fs::inotify::{self, CreateFlags, WatchFlags},
};
use tokio::{io::unix::AsyncFd, sync::Mutex};

/// Held by the one waiting step of this process that watches: the number of watches of a user is limited. A process has one agent
/// directory.
pub(super) static WATCHER: Mutex<()> = Mutex::const_new(());

/// A watch for the first change after it was made.
pub(super) struct DayWatch {
    others: Vec<Holder>,
    fds: Vec<AsyncFd<OwnedFd>>,
}

impl DayWatch {
    /// Watches the sum and the processes that have something reserved in it, from inside of a runtime. `None` when something has
    /// changed already.
    ///
    /// # Errors
    /// The system's, where it does not allow watching.
    pub(super) fn new(file: &DayFile, others: Vec<Holder>) -> io::Result<Option<Self>> {
        let sum = match watch(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            sum => sum?,
        };
        let mut fds = vec![register(sum)?];
        for other in &others {
            let Some(end) = other.end()? else { return Ok(None) };
            fds.push(register(end)?);
        }
        Ok(Some(Self { others, fds }))
    }

    /// Whether it notices the end of all these processes.
    pub(super) fn covers(&self, others: &[Holder]) -> bool {
        others.iter().all(|other| self.others.contains(other))
    }

    /// Waits for the first change.
    pub(super) async fn changed(&self) -> io::Result<()> {
        let (ready, ..) = select_all(self.fds.iter().map(|fd| Box::pin(fd.readable()))).await;
        ready.map(drop)
    }
}

fn watch(file: &DayFile) -> io::Result<OwnedFd> {
    let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    // A file that is removed changes its number of links.
    let what = WatchFlags::MODIFY | WatchFlags::ATTRIB | WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF;
    inotify::add_watch(&inotify, file.path(), what)?;
    Ok(inotify)
}

#[expect(
    deprecated,
    reason = "meant for types that name a wrong descriptor, which OwnedFd does not; the other way is unsafe"
)]
fn register(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(fd)
}
