//! The memory of extension hosts: looked at when a turn ends, told once it is more than the setting `extensionHost.maxHostMb`.

use std::sync::atomic::{AtomicBool, Ordering};

use agentd_extensions::SessionExtensions;

/// The default of the setting, in MiB.
const MAX_HOST_MB: u64 = 1024;

/// Warns of hosts that need much memory.
#[derive(Debug, Default)]
pub(crate) struct MemoryWatch {
    /// Whether that was told: again only after it was less.
    is_told: AtomicBool,
}

impl MemoryWatch {
    /// Looks at the hosts of a session. Nothing is ended.
    pub(crate) fn look(&self, extensions: &SessionExtensions, max_mb: Option<u64>) {
        let max_mb = max_mb.unwrap_or(MAX_HOST_MB);
        if max_mb == 0 {
            return;
        }
        let largest = extensions.pids().into_iter().filter_map(resident_mb).max().unwrap_or_default();
        let is_much = largest > max_mb;
        if self.is_told.swap(is_much, Ordering::Relaxed) != is_much && is_much {
            tracing::warn!(mib = largest, max_mb, "an extension host needs much memory");
        }
    }
}

/// The resident memory of a process in MiB; `None` where nobody says.
fn resident_mb(pid: i32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib >> 10)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(resident_mb(own).is_some_and(|mib| mib > 0));
        assert_eq!(resident_mb(-1), None);
    }
}
