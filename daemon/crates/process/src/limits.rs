//! Limits for the commands of a session, the limit of open files, and what the system offers for both.

use std::{fmt, sync::OnceLock};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

use crate::linux;

/// Limits for the commands of one session. `None` and 0 are no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessLimits {
    /// Processes of all commands together.
    pub processes: Option<u64>,
    /// Private memory in bytes of all commands together. Pages that mirror files do not count, and pages shared after a
    /// fork count for each process.
    pub memory_bytes: Option<u64>,
    /// Processor time in seconds of each command with everything that it starts.
    pub cpu_seconds: Option<u64>,
    /// Bytes that each command with everything that it starts may write.
    pub output_bytes: Option<u64>,
}

/// A resource that has a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitedResource {
    /// The number of processes.
    Processes,
    /// Memory.
    Memory,
    /// Processor time.
    Cpu,
    /// Output.
    Output,
}

/// A command was killed because it, or its session, exceeded a limit. Displayed for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitReached {
    /// The exceeded resource.
    pub resource: LimitedResource,
    /// The limit.
    pub limit: u64,
    /// Whether the session's commands exceeded it together; this one was the largest.
    pub together: bool,
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = self.limit;
        let who = if self.together { "the commands of this session together" } else { "it" };
        let (what, setting) = match self.resource {
            LimitedResource::Processes => (format!("{who} had more than {limit} processes"), "maxCount"),
            LimitedResource::Memory => {
                (format!("{who} used more than {limit} bytes of memory"), "maxMemoryBytes")
            }
            LimitedResource::Cpu => {
                (format!("{who} used more than {limit} seconds of processor time"), "maxCpuSeconds")
            }
            LimitedResource::Output => (format!("{who} wrote more than {limit} bytes"), "maxOutputBytes"),
        };
        write!(f, "Command killed: {what} (setting processes.{setting})")
    }
}

impl ProcessLimits {
    /// The limit of a resource, if there is one.
    pub(crate) fn of(&self, resource: LimitedResource) -> Option<u64> {
        let limit = match resource {
            LimitedResource::Processes => self.processes,
            LimitedResource::Memory => self.memory_bytes,
            LimitedResource::Cpu => self.cpu_seconds,
            LimitedResource::Output => self.output_bytes,
        };
        limit.filter(|limit| *limit > 0)
    }

    /// Whether these limits need the processes to be measured.
    pub(crate) fn need_measuring(&self) -> bool {
        [LimitedResource::Processes, LimitedResource::Memory, LimitedResource::Cpu]
            .into_iter()
            .any(|resource| self.of(resource).is_some())
    }
}

impl LimitedResource {
    /// The resource as a byte of a frame.
    pub(crate) fn tag(self) -> u8 {
        match self {
            Self::Processes => b'n',
            Self::Memory => b'm',
            Self::Cpu => b'c',
            Self::Output => b'o',
        }
    }

    pub(crate) fn from_tag(tag: u8) -> Option<Self> {
        [Self::Processes, Self::Memory, Self::Cpu, Self::Output]
            .into_iter()
            .find(|resource| resource.tag() == tag)
    }
}

/// More are of no use here, and programs that close every possible descriptor take seconds for millions.
const MOST_OPEN_FILES: u64 = 65_536;

/// The limit that this process was started with.
static ORIGINAL_FILE_LIMIT: OnceLock<Rlimit> = OnceLock::new();

/// Raises this process's limit of open files to the system's maximum, and at most to 65,536. Commands of sessions get
/// the original limit. Call it once, before there are children.
pub fn raise_file_limit() {
    let original = getrlimit(Resource::Nofile);
    let most = original.maximum.unwrap_or(MOST_OPEN_FILES).min(MOST_OPEN_FILES);
    if original.current.is_none_or(|current| current >= most) {
        return;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: original.maximum }) {
        Ok(()) => {
            // Only the first value is the original limit.
            let _ = ORIGINAL_FILE_LIMIT.set(original);
        }
        Err(error) => tracing::warn!(%error, "cannot raise the limit of open files"),
    }
}

/// Gives a child, and all that it starts, the limit that this process was started with.
pub(crate) fn restore_file_limit_for(child: u32) {
    let Some(original) = ORIGINAL_FILE_LIMIT.get() else { return };
    let pid = i32::try_from(child).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid
        && let Err(error) = prlimit(Some(pid), Resource::Nofile, *original)
    {
        tracing::warn!(%error, "commands get the daemon's own limit of open files");
    }
}

/// Optional features of the system that owning and limiting processes can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessSupport {
    /// The kernel lists the children of a process. Otherwise measuring examines all processes of the system.
    pub lists_children: bool,
    /// Processes keep their owner's mark even when they clear their environment. Otherwise such processes may be left
    /// when a daemon is killed together with its guard and all supervisors.
    pub lasting_marks: bool,
}

impl ProcessSupport {
    /// Detects the features. Blocks briefly.
    #[must_use]
    pub fn of_this_system() -> Self {
        Self { lists_children: linux::lists_children(), lasting_marks: linux::has_lasting_marks() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_the_setting() {
        let reached = |resource, together| LimitReached { resource, limit: 7, together }.to_string();
        assert_eq!(
            reached(LimitedResource::Processes, false),
            "Command killed: it had more than 7 processes (setting processes.maxCount)"
        );
        assert_eq!(
            reached(LimitedResource::Memory, true),
            "Command killed: the commands of this session together used more than 7 bytes of memory (setting \
             processes.maxMemoryBytes)"
        );
        assert_eq!(
            reached(LimitedResource::Cpu, false),
            "Command killed: it used more than 7 seconds of processor time (setting processes.maxCpuSeconds)"
        );
        assert_eq!(
            reached(LimitedResource::Output, false),
            "Command killed: it wrote more than 7 bytes (setting processes.maxOutputBytes)"
        );
    }

    #[test]
    fn nothing_and_zero_are_no_limit() {
        let limits = ProcessLimits { processes: Some(0), output_bytes: Some(5), ..ProcessLimits::default() };
        assert_eq!(
            (limits.of(LimitedResource::Processes), limits.of(LimitedResource::Output)),
            (None, Some(5))
        );
        assert!(!limits.need_measuring());
        assert!(ProcessLimits { cpu_seconds: Some(1), ..limits }.need_measuring());
    }

    #[test]
    fn tags_come_back() {
        for resource in [
            LimitedResource::Processes,
            LimitedResource::Memory,
            LimitedResource::Cpu,
            LimitedResource::Output,
        ] {
            assert_eq!(LimitedResource::from_tag(resource.tag()), Some(resource));
        }
        assert_eq!(LimitedResource::from_tag(b'?'), None);
    }
}

#[cfg(test)]
mod mechanisms_tests {
    use crate::limits::*;

    #[test]
    fn marks_last_where_limits_can_hold_them() {
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
        let told = ProcessSupport::of_this_system();
        assert!(told.lasting_marks || !limits.contains("Max file locks            unlimited"), "{limits}");
    }
}
