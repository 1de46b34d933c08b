//! Measures shared memory: mapped by several processes, or held as a file in memory (`memfd_create`) that no process
//! maps. Shared memory counts once, however many processes use it.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{BufRead as _, BufReader, Read as _},
    os::unix::fs::MetadataExt as _,
};

/// From this size on, shared mappings are told apart; smaller ones count once for each process.
const WORTH_A_LOOK: u64 = 4 << 20;

/// The most descriptors that one measurement examines, of all processes of a command together.
const MOST_DESCRIPTORS: usize = 16 * 1024;

/// The most bytes read about the mappings of one process. All that a process with more shares counts as its own.
const MOST_MAPPINGS: u64 = 8 << 20;

/// The names of memory-only files in lists of mappings.
const NAMES: [&str; 4] = ["/memfd:", "/dev/zero", "/SYSV", "/dev/shm/"];

/// The result of one measurement.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Bytes of held or mapped objects, by inode.
    objects: HashMap<u64, u64>,
    /// Processes that map shared memory, and how many bytes.
    mapping: Vec<(i32, u64)>,
    descriptors: usize,
}

/// Resident memory of a process, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Resident {
    /// Anonymous memory that no other process shares.
    pub(super) private: u64,
    /// Memory that it shares with others, or could share.
    pub(super) shared: u64,
}

impl Resident {
    /// Zero for a process that has ended or is not readable.
    pub(super) fn of(pid: i32) -> Self {
        Self::read(&fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default())
    }

    fn read(status: &str) -> Self {
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            kibibytes(line).unwrap_or(0)
        };
        Self { private: bytes("RssAnon:"), shared: bytes("RssShmem:") }
    }
}

impl Shared {
    /// Adds what a process holds and maps.
    pub(super) fn add(&mut self, pid: i32, mapped: u64) {
        if mapped > 0 {
            self.mapping.push((pid, mapped));
        }
        for entry in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
            self.descriptors += 1;
            if self.descriptors > MOST_DESCRIPTORS {
                return;
            }
            let path = entry.path();
            if fs::read_link(&path)
                .is_ok_and(|link| link.as_os_str().as_encoded_bytes().starts_with(b"/memfd:"))
                && let Ok(file) = fs::metadata(&path)
            {
                self.object(file.ino(), file.blocks().saturating_mul(512));
            }
        }
    }

    fn object(&mut self, inode: u64, bytes: u64) {
        let known = self.objects.entry(inode).or_default();
        *known = bytes.max(*known);
    }

    /// The total in bytes.
    pub(super) fn bytes(mut self) -> u64 {
        let mapping = std::mem::take(&mut self.mapping);
        let at_most: u64 = mapping.iter().map(|(_, bytes)| bytes).sum();
        let mut rest = 0;
        for (pid, mapped) in mapping {
            if at_most < WORTH_A_LOOK || self.map(pid).is_none() {
                rest += mapped;
            }
        }
        self.objects.values().sum::<u64>().saturating_add(rest)
    }

    /// Adds the mappings of a process; `None` when they are not readable, or too many.
    fn map(&mut self, pid: i32) -> Option<()> {
        let file = File::open(format!("/proc/{pid}/smaps")).ok()?;
        let mut lines = BufReader::new(file.take(MOST_MAPPINGS));
        let mut found: HashMap<u64, u64> = HashMap::new();
        let (mut line, mut read, mut inode) = (String::new(), 0, None);
        loop {
            line.clear();
            match lines.read_line(&mut line) {
                Ok(0) => break,
                Ok(count) => read += count as u64,
                Err(_) => return None,
            }
            if let Some(rest) = line.strip_prefix("Rss:") {
                if let (Some(inode), Some(bytes)) = (inode, kibibytes(rest)) {
                    *found.entry(inode).or_default() += bytes;
                }
            } else if !line.split(' ').next().is_some_and(|word| word.ends_with(':')) {
                inode = inode_of(&line);
            }
        }
        if read >= MOST_MAPPINGS {
            return None;
        }
        found.into_iter().for_each(|(inode, bytes)| self.object(inode, bytes));
        Some(())
    }
}

/// The inode of a memory-only mapping: `7f0-7f1 rw-s 00000000 00:01 1026  /memfd:x (deleted)`.
fn inode_of(line: &str) -> Option<u64> {
    let mut fields = line.split_ascii_whitespace().skip(4);
    let (inode, name) = (fields.next()?, fields.next()?);
    NAMES.iter().any(|known| name.starts_with(known)).then(|| inode.parse().ok()).flatten()
}

/// Parses `   12 kB`, as bytes.
fn kibibytes(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use rustix::{
        fs::{MemfdFlags, memfd_create},
        process::getpid,
    };

    use super::*;

    #[test]
    fn private_memory_is_told_from_shared() {
        let status = "Name:\tx\nVmRSS:\t 900 kB\nRssAnon:\t     100 kB\nRssFile:\t     600 kB\nRssShmem:\t     200 kB\n";
        assert_eq!(Resident::read(status), Resident { private: 100 << 10, shared: 200 << 10 });
        let own = Resident::of(getpid().as_raw_nonzero().get());
        assert!((10_000..10_000_000_000).contains(&own.private), "{own:?}");
        assert_eq!(Resident::of(-1), Resident::default());
    }

    #[test]
    fn mappings_in_memory_are_known_by_their_names() {
        assert_eq!(inode_of("7f00-7f01 rw-s 00000000 00:01 1026    /memfd:x y (deleted)\n"), Some(1026));
        assert_eq!(inode_of("7f00-7f01 rw-s 00000000 00:01 7    /dev/zero (deleted)\n"), Some(7));
        assert_eq!(inode_of("7f00-7f01 r-xp 00000000 08:01 99    /usr/bin/bash\n"), None);
        assert_eq!(inode_of("7f00-7f01 rw-p 00000000 00:00 0 \n"), None);
    }

    #[test]
    fn what_is_held_counts_once() {
        let bytes = 3 << 20;
        let file = File::from(memfd_create("held", MemfdFlags::CLOEXEC).unwrap());
        (&file).write_all(&vec![0; bytes]).unwrap();
        let _again = file.try_clone().unwrap();
        let own = getpid().as_raw_nonzero().get();
        let mut shared = Shared::default();
        shared.add(own, 0);
        shared.add(own, 0);
        let inode = file.metadata().unwrap().ino();
        assert_eq!(shared.objects[&inode], bytes as u64);
    }
}
