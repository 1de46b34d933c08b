//! Reads what is at a path, and keeps its content.

use std::{
    fs::{self, Metadata, OpenOptions},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::{
    state::{FileState, ObjectId, StoredPath, Unkept},
    store::Store,
};

/// The permission bits of a mode.
const PERMISSIONS: u32 = 0o7777;

/// The facts by which a change is noticed without reading the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stat {
    pub(crate) ino: u64,
    pub(crate) dev: u64,
    pub(crate) mode: u32,
    pub(crate) len: u64,
    pub(crate) mtime: i64,
    pub(crate) ctime: i64,
    pub(crate) links: u64,
}

impl Stat {
    pub(crate) fn of(about: &Metadata) -> Self {
        let time = |seconds: i64, nanoseconds: i64| {
            seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
        };
        Self {
            ino: about.ino(),
            dev: about.dev(),
            mode: about.mode(),
            len: about.len(),
            mtime: time(about.mtime(), about.mtime_nsec()),
            ctime: time(about.ctime(), about.ctime_nsec()),
            links: about.nlink(),
        }
    }

    /// The stat of a path, links not followed; `None` when nothing is there.
    pub(crate) fn at(path: &Path) -> io::Result<Option<Self>> {
        match fs::symlink_metadata(path) {
            Ok(about) => Ok(Some(Self::of(&about))),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.mode & 0o170_000 == 0o040_000
    }

    fn is_file(&self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }

    fn is_link(&self) -> bool {
        self.mode & 0o170_000 == 0o120_000
    }

    fn unkept(&self, why: Unkept) -> FileState {
        FileState::Unkept { why, len: self.len, mtime: self.mtime }
    }
}

/// What is at `path`, with its content in the store; `stat` is what was just found there.
pub(crate) fn capture(path: &Path, stat: Option<&Stat>, store: &Store, max_file: u64) -> FileState {
    look(path, stat, max_file, |file, len| store.put_file(file, len, max_file))
}

/// What is at `path`; `of_content` reads a file of at most `max_file` bytes.
fn look(
    path: &Path,
    stat: Option<&Stat>,
    max_file: u64,
    of_content: impl FnOnce(&fs::File, u64) -> io::Result<(ObjectId, u64)>,
) -> FileState {
    let Some(stat) = stat else { return FileState::Absent };
    let mode = stat.mode & PERMISSIONS;
    if stat.is_folder() {
        return FileState::Folder { mode };
    }
    if stat.is_link() {
        return match fs::read_link(path) {
            Ok(target) => FileState::Link(StoredPath(target)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => FileState::Absent,
            Err(_) => stat.unkept(Unkept::Unreadable),
        };
    }
    if !stat.is_file() {
        return stat.unkept(Unkept::Special);
    }
    if stat.len > max_file {
        return stat.unkept(Unkept::Long);
    }
    // A pipe that took the file's place since is not waited for.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return FileState::Absent,
        Err(_) => return stat.unkept(Unkept::Unreadable),
    };
    if !file.metadata().is_ok_and(|about| about.is_file()) {
        return stat.unkept(Unkept::Special);
    }
    match of_content(&file, stat.len) {
        Ok((id, len)) => FileState::File { id, len, mode, mtime: stat.mtime },
        Err(error) => stat.unkept(match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Unkept::Full,
            io::ErrorKind::FileTooLarge => Unkept::Long,
            _ => Unkept::Unreadable,
        }),
    }
}

/// What is at `path` now, as far as it can be one of `states`: a file that is longer than those is not read. Nothing is kept.
pub(crate) fn identify(path: &Path, states: [&FileState; 2]) -> FileState {
    let len = |state: &FileState| if let FileState::File { len, .. } = state { *len } else { 0 };
    let max = states.into_iter().map(len).max().unwrap_or(0);
    match Stat::at(path) {
        Ok(stat) => look(path, stat.as_ref(), max, |file, _| {
            let mut hasher = blake3::Hasher::new();
            // A file that grows meanwhile is not followed: with one more byte it is another one.
            let len = io::copy(&mut io::Read::take(file, max.saturating_add(1)), &mut hasher)?;
            Ok((ObjectId(*hasher.finalize().as_bytes()), len))
        }),
        Err(_) => FileState::Unkept { why: Unkept::Unreadable, len: 0, mtime: 0 },
    }
}

/// [`capture`] of whatever is at `path` now.
pub(crate) fn capture_now(path: &Path, store: &Store, max_file: u64) -> FileState {
    match Stat::at(path) {
        Ok(stat) => capture(path, stat.as_ref(), store, max_file),
        Err(_) => FileState::Unkept { why: Unkept::Unreadable, len: 0, mtime: 0 },
    }
}
