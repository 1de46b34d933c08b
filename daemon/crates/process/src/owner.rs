//! Identifies the owner of a process: every command's processes carry their daemon's mark, and a file tells whether
//! that daemon lives.
//!
//! The file is in a folder of the agent directory and named after the mark. It holds the owner's process id and start
//! time, and its owner holds a lock on it. So an unlocked file belongs to a daemon that was killed. If that daemon was
//! killed together with its guard and supervisors, processes with its mark may be left.
//!
//! The mark is also set as a limit (of file locks), and any process may have any limit. So a file that no owner would
//! have written kills nothing, and marks are larger than limits that people set.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

use agentd_files::fail_point::{self, Point};
use agentd_files::lock;
use agentd_safe_open::{LinkPolicy, OpenRules};

use crate::linux::{self, DeadOwner, OwnerMark};

/// How owner files are opened: only agentd makes them, so none is a link, and none is longer than two numbers.
const RULES: OpenRules<'_> = OpenRules::new(LinkPolicy::Refused).max_bytes(64);

/// A process, and when it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProcessLife {
    pid: i32,
    /// In clock ticks since the machine started.
    started: u64,
}

impl ProcessLife {
    fn own() -> io::Result<Self> {
        let (pid, started) = linux::own_life()
            .ok_or_else(|| io::Error::other("/proc does not say when this process started"))?;
        Ok(Self { pid, started })
    }

    /// One number per line: readers of a lock's holder take the first line.
    fn text(self) -> String {
        format!("{}\n{}\n", self.pid, self.started)
    }

    /// `None` for anything that no owner wrote completely: an owner writes the file before it starts a process.
    fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (pid, started) = text.strip_suffix('\n')?.split_once('\n')?;
        Some(Self { pid: pid.parse().ok().filter(|pid| *pid > 0)?, started: started.parse().ok()? })
    }

    /// Whether the process still runs, and its id was not given to another.
    fn goes_on(self) -> bool {
        linux::life_of(self.pid) == Some(self.started)
    }
}

/// A living owner's file. Removed on drop.
#[derive(Debug)]
pub(crate) struct OwnerFile {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

impl OwnerFile {
    /// Creates and locks the file. Blocks.
    ///
    /// # Errors
    /// The file system's, which may also have no locks.
    pub(crate) fn create(dir: &Path, mark: OwnerMark) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let path = dir.join(mark.text());
        fail_point::call(Point::OwnerCreate)?;
        loop {
            let mut file = RULES.open_or_create(&path)?;
            file.lock()?;
            // Another daemon may have removed it before it was locked, taking it for a dead owner's.
            if same_file(&file, &path)? {
                file.write_all(ProcessLife::own()?.text().as_bytes())?;
                fail_point::hit(Point::OwnerCreated);
                return Ok(Self { path, _file: file });
            }
        }
    }
}

impl Drop for OwnerFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "cannot remove the note of a daemon's life");
        }
    }
}

fn same_file(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) => Ok((own.dev(), own.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Kills what the dead owners in `dir` left, and removes their files. Returns the number of killed processes. Blocks.
pub(crate) fn sweep(dir: &Path) -> usize {
    // Usually the folder is missing or empty.
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let dead = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let mark = OwnerMark::parse(entry.file_name().to_str()?)?;
        let file = match RULES.open(&entry.path()) {
            Ok(file) => file,
            Err(error) => {
                tracing::debug!(%error, "no note of a daemon's life");
                return None;
            }
        };
        match lock::try_lock(&file) {
            Ok(true) => {
                let life =
                    RULES.read_open(&file, &entry.path()).ok().and_then(|text| ProcessLife::parse(&text));
                // Where the file system's locks do not work, the owner's process decides.
                let is_over = life.is_none_or(|life| !life.goes_on());
                let left = life.map(|life| DeadOwner { mark, since: life.started });
                is_over.then(|| (left, entry.path(), file))
            }
            // The owner lives, or another daemon is already sweeping it.
            Ok(false) => None,
            Err(error) => {
                tracing::warn!(%error, path = %entry.path().display(), "cannot tell whether a daemon lives");
                None
            }
        }
    });
    // Hold the locks until all is done, so that no other daemon sweeps the same files.
    let dead: Vec<_> = dead.collect();
    if dead.is_empty() {
        return 0;
    }
    let left: Vec<DeadOwner> = dead.iter().filter_map(|(left, ..)| *left).collect();
    let killed = if left.is_empty() { 0 } else { linux::kill_marked(&left) };
    for (_, path, _lock) in &dead {
        fail_point::hit(Point::OwnerSwept);
        if let Err(error) = fs::remove_file(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, path = %path.display(), "cannot remove the note of a dead daemon");
        }
    }
    killed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_differ_and_have_a_name() {
        let (one, other) = (OwnerMark::new(), OwnerMark::new());
        assert_ne!(one, other);
        assert_eq!(OwnerMark::parse(&one.text()), Some(one));
        for text in [
            "",
            "0000000000000000",
            "12",
            "00000000000000zz",
            "+000000000000001",
            "0000000000000001.tmp",
            "0000000000010000",
            "00000000ffffffff",
        ] {
            assert_eq!(OwnerMark::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_life_is_read_as_it_is_written_and_nothing_else_is_one() {
        let own = ProcessLife::own().unwrap();
        assert_eq!(ProcessLife::parse(own.text().as_bytes()), Some(own));
        assert!(own.goes_on());
        assert!(!ProcessLife { started: own.started + 1, ..own }.goes_on());
        for text in ["", "1", "1\n", "1\n2", "\n2\n", "0\n2\n", "-1\n2\n", "1\n2\n3\n", "x\n2\n"] {
            assert_eq!(ProcessLife::parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn a_living_owner_is_spared_and_a_dead_one_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let owners = dir.path().join("run/owners");
        assert_eq!(sweep(&owners), 0, "no folder");
        let living = OwnerFile::create(&owners, OwnerMark::new()).unwrap();
        let dead = owners.join(OwnerMark::new().text());
        fs::write(&dead, "").unwrap();
        fs::write(owners.join("README"), "not ours").unwrap();
        assert_eq!(sweep(&owners), 0);
        assert!(living.path.exists() && !dead.exists() && owners.join("README").exists());
        let path = living.path.clone();
        drop(living);
        assert!(!path.exists());
    }
}
