//! How many files this process may open, and how many what it starts may.

use std::sync::OnceLock;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// More is of no use here, and programs that close every descriptor there could be take seconds for millions.
const ENOUGH: u64 = 65_536;

/// What this process was started with.
static ORIGINAL: OnceLock<Rlimit> = OnceLock::new();

/// Allows this process to open as many files as the system lets it, and at most 65,536; what it starts for sessions gets the
/// limit that it was started with itself. To be called once, before there are children.
pub fn raise_file_limit() {
    let original = getrlimit(Resource::Nofile);
    let most = original.maximum.unwrap_or(ENOUGH).min(ENOUGH);
    if original.current.is_none_or(|current| current >= most) {
        return;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: original.maximum }) {
        Ok(()) => {
            // Only the first one is what we were started with.
            let _ = ORIGINAL.set(original);
        }
        Err(error) => tracing::warn!(%error, "cannot raise the limit of open files"),
    }
}

/// Gives a child, and all that it starts from now on, the limit that this process was started with.
pub(crate) fn restore_for(child: u32) {
    let Some(original) = ORIGINAL.get() else { return };
    let pid = i32::try_from(child).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid
        && let Err(error) = prlimit(Some(pid), Resource::Nofile, *original)
    {
        tracing::warn!(%error, "commands get the daemon's own limit of open files");
    }
}
