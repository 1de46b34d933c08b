//! The limits of the daemon as a whole on memory and files, and the measures of their use.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt as _,
    sync::OnceLock,
};

use agentd_protocol::error::Failure;
use rustix::{
    io::fcntl_dupfd_cloexec,
    process::{Resource, getrlimit},
};

use crate::limits::RESERVED_FILES;

/// The limits of the daemon as a whole. The largest value of a type is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Sessions that are known at the same time (`daemon.maxSessions`).
    pub sessions: usize,
    /// Resident memory, in bytes (`daemon.maxMemoryBytes`).
    pub memory_bytes: u64,
    /// Whether descriptors are kept free for running work.
    pub keeps_files: bool,
}

impl ResourceLimits {
    /// No limit at all.
    pub const NONE: Self = Self { sessions: usize::MAX, memory_bytes: u64::MAX, keeps_files: false };

    /// The resource of which too much is in use to begin anything new. Takes some microseconds.
    pub(super) fn exhausted(&self) -> Option<ResourceExhausted> {
        let memory = || {
            let limit = Some(self.memory_bytes).filter(|limit| *limit < u64::MAX)?;
            let used = resident_bytes().filter(|used| *used > limit)?;
            Some(ResourceExhausted::Memory { used, limit })
        };
        if self.keeps_files && files_are_short() {
            return Some(ResourceExhausted::of_files());
        }
        memory()
    }
}

/// A resource of which too much is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceExhausted {
    /// Memory, in bytes.
    Memory {
        /// The memory in use.
        used: u64,
        /// The limit.
        limit: u64,
    },
    /// Open files.
    Files {
        /// The limit.
        limit: u64,
    },
}

impl ResourceExhausted {
    /// Too many files are open.
    #[must_use]
    pub fn of_files() -> Self {
        Self::Files { limit: file_limit().unwrap_or_default() }
    }
}

impl From<ResourceExhausted> for Failure {
    fn from(exhausted: ResourceExhausted) -> Self {
        let instead = "What runs goes on; close sessions that are not needed, or wait.";
        match exhausted {
            ResourceExhausted::Memory { used, limit } => {
                let text =
                    format!("The daemon uses {used} bytes of memory, more than the limit of {limit} bytes.");
                Self::limit(text, "daemon.maxMemoryBytes", instead)
            }
            ResourceExhausted::Files { limit } => {
                let text = format!(
                    "The daemon has too many files open: of {limit} that the system allows few are left."
                );
                Self::new(agentd_protocol::error::ErrorCode::LimitReached, text).hint(format!(
                    "{instead} `ulimit -Hn` of the process that starts the daemon sets the limit."
                ))
            }
        }
    }
}

/// The resident memory of this process in bytes, where the system tells. Does not wait for any disk.
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    static STATM: OnceLock<Option<File>> = OnceLock::new();
    // Opened once, so that it can be read when no descriptor is left.
    let file = STATM.get_or_init(|| File::open("/proc/self/statm").ok()).as_ref()?;
    let mut text = [0; 128];
    let count = file.read_at(&mut text, 0).ok()?;
    let pages: u64 = str::from_utf8(&text[..count]).ok()?.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// The number of files that may be open; `None` for no limit.
#[must_use]
pub fn file_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// The number of open files, where the system tells. Blocks for a moment.
#[must_use]
pub fn open_files() -> Option<u64> {
    Some(fs::read_dir("/proc/self/fd").ok()?.count() as u64)
}

/// Whether so many files are open that the rest is kept for running work. The system gives out the lowest free descriptor, so the
/// next one tells how many are in use at least.
#[must_use]
pub fn files_are_short() -> bool {
    let Some(limit) = file_limit() else { return false };
    let threshold = limit.saturating_sub(RESERVED_FILES.min(limit / 4).max(limit / 10));
    match fcntl_dupfd_cloexec(rustix::stdio::stderr(), 0) {
        Ok(next) => std::os::fd::AsRawFd::as_raw_fd(&next) as u64 >= threshold,
        // Stderr is closed, which tells nothing.
        Err(rustix::io::Errno::BADF) => false,
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_measured_and_compared() {
        let used = resident_bytes().unwrap();
        assert!(used > 1 << 20, "{used}");
        assert_eq!(ResourceLimits::NONE.exhausted(), None);
        let tight = ResourceLimits { memory_bytes: 1, ..ResourceLimits::NONE };
        assert!(matches!(tight.exhausted(), Some(ResourceExhausted::Memory { limit: 1, .. })));
        let failure = Failure::from(ResourceExhausted::Memory { used: 2, limit: 1 });
        assert!(failure.hint.is_some_and(|hint| hint.contains("daemon.maxMemoryBytes")));
    }

    #[test]
    fn files_are_counted() {
        let before = open_files().unwrap();
        let held: Vec<File> = (0..20).map(|_| File::open("/dev/null").unwrap()).collect();
        assert!(open_files().unwrap() >= before.min(20) && !held.is_empty());
    }
}
