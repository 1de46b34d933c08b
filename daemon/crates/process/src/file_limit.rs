//! Raises the limit of open files for this process, and restores the original limit for its children.

use std::sync::OnceLock;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// More are of no use here, and programs that close every possible descriptor take seconds for millions.
const ENOUGH: u64 = 65_536;

/// The limit that this process was started with.
static ORIGINAL: OnceLock<Rlimit> = OnceLock::new();

/// Raises this process's limit of open files to the system's maximum, and at most to 65,536. Commands of sessions get
/// the original limit. Call it once, before there are children.
pub fn raise_file_limit() {
    let original = getrlimit(Resource::Nofile);
    let most = original.maximum.unwrap_or(ENOUGH).min(ENOUGH);
    if original.current.is_none_or(|current| current >= most) {
        return;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: original.maximum }) {
        Ok(()) => {
            // Only the first value is the original limit.
            let _ = ORIGINAL.set(original);
        }
        Err(error) => tracing::warn!(%error, "cannot raise the limit of open files"),
    }
}

/// Gives a child, and all that it starts, the limit that this process was started with.
pub(crate) fn restore_for(child: u32) {
    let Some(original) = ORIGINAL.get() else { return };
    let pid = i32::try_from(child).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid
        && let Err(error) = prlimit(Some(pid), Resource::Nofile, *original)
    {
        tracing::warn!(%error, "commands get the daemon's own limit of open files");
    }
}
