//! The process that holds a reservation, told from a later one of the same id.

use std::fs;

use rustix::{
    io::Errno,
    process::{Pid, test_kill_process},
};
use serde::{Deserialize, Serialize};

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holder {
    pid: i32,
    /// When it started, in the kernel's ticks since boot; 0 where that is not known.
    start: u64,
}

impl Holder {
    /// This process.
    pub(crate) fn current() -> Self {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        Self { pid, start: start_of(pid).unwrap_or_default() }
    }

    /// Whether it still runs. A process that cannot be looked at counts as running.
    pub(crate) fn is_alive(self) -> bool {
        let Some(pid) = Pid::from_raw(self.pid) else { return false };
        if test_kill_process(pid) == Err(Errno::SRCH) {
            return false;
        }
        self.start == 0 || start_of(self.pid).is_none_or(|start| start == self.start)
    }

    #[cfg(test)]
    pub(crate) fn dead() -> Self {
        Self { start: 1, ..Self::current() }
    }
}

/// The 22nd field of the process's state; the second is the program's name in brackets, which may hold anything.
fn start_of(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_a_later_one_of_its_id() {
        assert!(Holder::current().is_alive());
        assert!(!Holder::dead().is_alive());
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let ended = Holder { pid: i32::try_from(child.id()).unwrap(), start: 0 };
        assert!(!ended.is_alive());
    }
}
