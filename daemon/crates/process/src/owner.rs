//! Who owns a process: a mark on everything that a daemon's commands start, and a file that tells whether that daemon lives.
//!
//! The file is in a folder of the agent directory, named for the mark, has the owner's process id, and its owner holds a lock on
//! it. So a file without a
//! lock is one of a daemon that was killed; if it was killed together with its guard and its scopes, processes with its mark
//! may be left.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use agentd_fail_point::{self as fail_point, Point};
use agentd_file_lock as file_lock;
use uuid::Uuid;

use crate::linux;

/// The variable that every process of a command is started with: 16 hexadecimal digits, the mark of its daemon.
pub const OWNER_VARIABLE: &str = "AGENTD_OWNER";

/// What marks the processes of one life of a daemon. Never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(pub(crate) u64);

impl Mark {
    /// A mark that nobody else has.
    pub(crate) fn new() -> Self {
        let (random, _) = Uuid::new_v4().as_u64_pair();
        // Also a limit, and so none of the values that mean "none", and no larger than processes here can be given.
        let most = linux::largest_mark().min(u64::MAX >> 4);
        let mark = if most >> 32 == 0 { random >> 4 } else { random % most };
        Self(mark.max(1))
    }

    /// As it stands in names of files and in [`OWNER_VARIABLE`].
    pub(crate) fn text(self) -> String {
        format!("{:016x}", self.0)
    }

    fn parse(text: &str) -> Option<Self> {
        let digits = text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let mark = u64::from_str_radix(text, 16).ok().filter(|mark| digits && *mark != 0)?;
        Some(Self(mark))
    }
}

/// The file of a living owner. Dropped, it goes.
#[derive(Debug)]
pub(crate) struct OwnerFile {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

impl OwnerFile {
    /// Makes the file and takes its lock. Blocks.
    ///
    /// # Errors
    /// Those of the file system, which may also have no locks.
    pub(crate) fn create(dir: &Path, mark: Mark) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let path = dir.join(mark.text());
        fail_point::call(Point::OwnerCreate)?;
        loop {
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&path)?;
            file.lock()?;
            // Somebody who took it for a dead owner's, before it was locked, has removed it by now.
            if same_file(&file, &path)? {
                writeln!(file, "{}", std::process::id())?;
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

/// Kills what the dead owners of `dir` left, and forgets them. Returns how many processes that were. Blocks.
pub(crate) fn sweep(dir: &Path) -> usize {
    // Usually there is no such folder, or nothing in it.
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let dead = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let mark = Mark::parse(entry.file_name().to_str()?)?;
        let file = File::open(entry.path()).ok()?;
        match file_lock::try_lock(&file) {
            Ok(true) => Some((mark, entry.path(), file)),
            // Its owner lives, or another daemon is at it already.
            Ok(false) => None,
            Err(error) => {
                tracing::warn!(%error, path = %entry.path().display(), "cannot tell whether a daemon lives");
                None
            }
        }
    });
    // The locks are held until all is done, so that nobody else starts on it as well.
    let dead: Vec<_> = dead.collect();
    if dead.is_empty() {
        return 0;
    }
    let marks: Vec<Mark> = dead.iter().map(|(mark, ..)| *mark).collect();
    let killed = linux::kill_marked(&marks);
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
        let (one, other) = (Mark::new(), Mark::new());
        assert_ne!(one, other);
        assert_eq!(Mark::parse(&one.text()), Some(one));
        for text in
            ["", "0000000000000000", "12", "00000000000000zz", "+000000000000001", "0000000000000001.tmp"]
        {
            assert_eq!(Mark::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_living_owner_is_spared_and_a_dead_one_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let owners = dir.path().join("run/owners");
        assert_eq!(sweep(&owners), 0, "no folder");
        let living = OwnerFile::create(&owners, Mark::new()).unwrap();
        let dead = owners.join(Mark::new().text());
        fs::write(&dead, "").unwrap();
        fs::write(owners.join("README"), "not ours").unwrap();
        assert_eq!(sweep(&owners), 0);
        assert!(living.path.exists() && !dead.exists() && owners.join("README").exists());
        let path = living.path.clone();
        drop(living);
        assert!(!path.exists());
    }
}
