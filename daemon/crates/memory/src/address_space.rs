//! How much of its address space a process has left, where the system limits that (`ulimit -v`). An allocation larger
//! than what is left fails, which ends a program that does not expect it.

use std::{fs::File, os::unix::fs::FileExt as _};

use rustix::process::{Resource, getrlimit};

use crate::refused::MemoryRefused;

/// What asks for less is not looked at: in bytes.
const SMALL: u64 = 1 << 20;

/// The address space of this process.
#[derive(Debug, Default)]
pub struct AddressSpace {
    /// What the system allows, in bytes.
    limit: Option<u64>,
    /// Says how much is in use. Opened once: it can be read when there is no descriptor left.
    statm: Option<File>,
}

impl AddressSpace {
    /// One without a limit.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::default()
    }

    /// The one of this process, as its limit is now. Opens a file where there is a limit.
    #[must_use]
    pub fn of_this_process() -> Self {
        let limit = getrlimit(Resource::As).current;
        Self { limit, statm: limit.and_then(|_| File::open("/proc/self/statm").ok()) }
    }

    /// What the system allows, in bytes; `None` for no limit.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Whether `bytes` can be there `times` times.
    pub(crate) fn check(&self, bytes: u64, times: u64) -> Result<(), MemoryRefused> {
        let Some(limit) = self.limit.filter(|_| bytes >= SMALL) else { return Ok(()) };
        // Where the system does not tell, the limit alone has to do.
        let left = limit.saturating_sub(self.used().unwrap_or(limit / 2));
        if bytes.saturating_mul(times) > left {
            Err(MemoryRefused::AddressSpace { limit, left })
        } else {
            Ok(())
        }
    }

    /// What is in use, in bytes.
    fn used(&self) -> Option<u64> {
        let mut text = [0; 64];
        let count = self.statm.as_ref()?.read_at(&mut text, 0).ok()?;
        let pages: u64 = str::from_utf8(&text[..count]).ok()?.split(' ').next()?.parse().ok()?;
        Some(pages * rustix::param::page_size() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_measured() {
        let statm = File::open("/proc/self/statm").ok();
        let used = AddressSpace { limit: Some(0), statm: None }.used();
        assert_eq!(used, None);
        let space = AddressSpace { limit: Some(u64::MAX), statm };
        let used = space.used().unwrap();
        assert!(used > 1 << 20);
        let tight = AddressSpace { limit: Some(used + (64 << 20)), ..space };
        assert_eq!(tight.check(SMALL - 1, 1000), Ok(()));
        assert_eq!(tight.check(8 << 20, 4), Ok(()));
        let refused = tight.check(60 << 20, 4).unwrap_err();
        assert!(refused.to_string().contains("ulimit -v"), "{refused}");
    }
}
