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
        fits(limit, self.used().unwrap_or(limit / 2), bytes.saturating_mul(times))
    }

    /// What is in use, in bytes.
    fn used(&self) -> Option<u64> {
        let mut text = [0; 64];
        let count = self.statm.as_ref()?.read_at(&mut text, 0).ok()?;
        let pages: u64 = str::from_utf8(&text[..count]).ok()?.split(' ').next()?.parse().ok()?;
        Some(pages * rustix::param::page_size() as u64)
    }
}

/// Whether `bytes` more fit where `used` of `limit` are in use.
fn fits(limit: u64, used: u64, bytes: u64) -> Result<(), MemoryRefused> {
    let left = limit.saturating_sub(used);
    if bytes > left { Err(MemoryRefused::AddressSpace { limit, left }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_is_measured() {
        assert_eq!(AddressSpace { limit: Some(0), statm: None }.used(), None);
        let space = AddressSpace { limit: Some(u64::MAX), statm: File::open("/proc/self/statm").ok() };
        assert!(space.used().unwrap() > 1 << 20);
        assert_eq!(space.check(8 << 20, 4), Ok(()));
        // Tests beside this one take address space at any time, but never less than the program itself is in use.
        let full = AddressSpace { limit: Some(1 << 20), ..space };
        assert_eq!(full.check(SMALL - 1, 1000), Ok(()));
        let refused = full.check(SMALL, 1).unwrap_err();
        assert_eq!(refused, MemoryRefused::AddressSpace { limit: 1 << 20, left: 0 });
        assert!(refused.to_string().contains("ulimit -v"), "{refused}");
    }

    #[test]
    fn what_is_left_decides() {
        let (limit, used) = (100 << 20, 36 << 20);
        assert_eq!(fits(limit, used, 64 << 20), Ok(()));
        assert_eq!(
            fits(limit, used, (64 << 20) + 1),
            Err(MemoryRefused::AddressSpace { limit, left: 64 << 20 })
        );
        assert_eq!(fits(limit, limit + 1, 1), Err(MemoryRefused::AddressSpace { limit, left: 0 }));
    }

    #[test]
    fn where_the_system_does_not_tell_half_of_the_limit_counts() {
        let space = AddressSpace { limit: Some(100 << 20), statm: None };
        assert_eq!(space.check(25 << 20, 2), Ok(()));
        assert!(space.check(26 << 20, 2).is_err());
    }
}
