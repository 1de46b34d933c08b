//! The process that holds a reservation, told from a later one of the same id.

use std::{fs, os::fd::OwnedFd, sync::OnceLock};

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open, test_kill_process},
};
use serde::{Deserialize, Serialize};

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pid: i32,
    /// When it started, in the kernel's ticks since boot; 0 where that is not known.
    start: u64,
}

impl Holder {
    /// This process.
    pub(crate) fn current() -> Self {
        static CURRENT: OnceLock<Holder> = OnceLock::new();
        *CURRENT.get_or_init(|| {
            let pid = rustix::process::getpid().as_raw_nonzero().get();
            Self { pid, start: start_of(pid).unwrap_or_default() }
        })
    }

    /// Whether it still runs. A process that cannot be looked at counts as running.
    pub(crate) fn is_alive(self) -> bool {
        if self == Self::current() {
            return true;
        }
        let Some(pid) = Pid::from_raw(self.pid) else { return false };
        if test_kill_process(pid) == Err(Errno::SRCH) {
            return false;
        }
        self.start == 0 || start_of(self.pid).is_none_or(|start| start == self.start)
    }

    /// A descriptor that is readable once the process has ended; `None` when it has ended already.
    ///
    /// # Errors
    /// The system's, where it gives none for a process that runs.
    pub fn end(self) -> std::io::Result<Option<OwnedFd>> {
        let Some(pid) = Pid::from_raw(self.pid) else { return Ok(None) };
        let end = match pidfd_open(pid, PidfdFlags::NONBLOCK) {
            Err(Errno::SRCH) => return Ok(None),
            // Kernels before 5.10.
            Err(Errno::INVAL) => pidfd_open(pid, PidfdFlags::empty())?,
            end => end?,
        };
        // The id may have been given to another process before it was opened, and not after.
        Ok(self.is_alive().then_some(end))
    }

    #[cfg(test)]
    pub(crate) fn dead() -> Self {
        Self { start: 1, ..Self::current() }
    }

    #[cfg(test)]
    pub(crate) fn of_child(child: &std::process::Child) -> Self {
        let pid = i32::try_from(child.id()).unwrap();
        Self { pid, start: start_of(pid).unwrap() }
    }
}

/// The 22nd field of the process's state; the second is the program's name in brackets, which may hold anything.
fn start_of(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

    #[test]
    fn a_process_is_told_from_a_later_one_of_its_id() {
        assert!(Holder::current().is_alive());
        assert!(!Holder::dead().is_alive() && Holder::dead().end().unwrap().is_none());
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let holder = Holder::of_child(&child);
        let end = holder.end().unwrap().expect("it runs");
        assert!(holder.is_alive());
        child.kill().unwrap();
        poll(&mut [PollFd::new(&end, PollFlags::IN)], None).unwrap();
        child.wait().unwrap();
        assert!(!holder.is_alive() && holder.end().unwrap().is_none());
        assert!(!Holder { start: 0, ..holder }.is_alive());
    }
}
