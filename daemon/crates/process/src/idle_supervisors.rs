//! Supervisors whose command has ended: kept for a while, since the next command needs one, too.

use std::{
    mem,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use rustix::io::Errno;
use tokio::{runtime::Handle, time::Instant};

use crate::linux;

/// How many are kept: each is a small process, and more than two commands at a time are rare.
const MOST_IDLE: usize = 2;

/// How long one is kept. A model that thinks for longer between two commands does not notice a fork.
const KEPT: Duration = Duration::from_secs(10);

/// The daemon's hold on a supervisor beyond its present command. A supervisor without one ends after its command.
#[derive(Debug)]
pub(crate) struct SupervisorLink {
    /// `None` once this was dropped.
    control: Option<OwnedFd>,
    /// The supervisor's process id, once it has reported it.
    pid: Option<i32>,
}

impl SupervisorLink {
    /// The link to a supervisor that is about to be forked.
    pub(crate) fn new(control: OwnedFd) -> Self {
        Self { control: Some(control), pid: None }
    }

    /// Notes what the supervisor has reported.
    pub(crate) fn is_process(&mut self, pid: i32) {
        self.pid = Some(pid);
    }

    pub(crate) fn pid(&self) -> Option<i32> {
        self.pid
    }

    /// Gives the supervisor another command, of which these are its ends. Does not block.
    ///
    /// # Errors
    /// The system's, when the supervisor has ended.
    fn send(&self, fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        linux::send_request(self.control.as_ref().ok_or(Errno::PIPE)?.as_fd(), fds)
    }
}

impl Drop for SupervisorLink {
    /// Lets the supervisor end, which its parent reaps: usually the guard, and this process when the guard is gone.
    fn drop(&mut self) {
        drop(self.control.take());
        let Some(pid) = self.pid.filter(|pid| linux::Adopted::release(*pid)) else { return };
        // Without a runtime the daemon is ending, and takes its zombies along.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn_blocking(move || linux::Adopted::reap(pid));
        }
    }
}

/// The kept supervisors of a launcher. Cheap to clone; all of them end with the last clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct IdleSupervisors(Arc<Mutex<Idle>>);

#[derive(Debug, Default)]
struct Idle {
    /// Each with the moment at which its command ended, the latest last.
    kept: Vec<(SupervisorLink, Instant)>,
    /// Whether a task ends those that were kept long enough.
    is_watched: bool,
}

impl IdleSupervisors {
    /// Gives a command to a kept supervisor. `None` when there is none.
    pub(crate) fn start(&self, fds: &[BorrowedFd<'_>]) -> Option<SupervisorLink> {
        loop {
            // The latest one, whose memory is most likely in the processor's caches.
            let (link, _) = lock(&self.0).kept.pop()?;
            match link.send(fds) {
                Ok(()) => return Some(link),
                Err(error) => {
                    tracing::debug!(%error, pid = link.pid, "a process that waited for a command was killed")
                }
            }
        }
    }

    /// Keeps a supervisor that waits for another command.
    pub(crate) fn keep(&self, link: SupervisorLink) {
        let mut idle = lock(&self.0);
        idle.kept.push((link, Instant::now()));
        let surplus = (idle.kept.len() > MOST_IDLE).then(|| idle.kept.remove(0));
        let is_watched = mem::replace(&mut idle.is_watched, true);
        drop(idle);
        // Not under the lock: this looks at a process.
        drop(surplus);
        if !is_watched {
            tokio::spawn(end_old(Arc::downgrade(&self.0)));
        }
    }
}

/// Ends supervisors that were kept long enough, until none is left.
async fn end_old(idle: Weak<Mutex<Idle>>) {
    loop {
        tokio::time::sleep(KEPT).await;
        let Some(idle) = idle.upgrade() else { return };
        let mut idle = lock(&idle);
        let now = Instant::now();
        let first_young = idle.kept.partition_point(|(_, since)| now.duration_since(*since) >= KEPT);
        let old: Vec<_> = idle.kept.drain(..first_young).collect();
        idle.is_watched = !idle.kept.is_empty();
        let is_over = !idle.is_watched;
        drop(idle);
        drop(old);
        if is_over {
            return;
        }
    }
}

fn lock(idle: &Mutex<Idle>) -> MutexGuard<'_, Idle> {
    // A list of descriptors is never half changed, even by a panic.
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}
