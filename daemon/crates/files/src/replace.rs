//! Replaces the content of a file in one step: a reader sees the old content or the new, and a crash leaves one of them.
//!
//! The content goes to a temporary file in the same folder, which then takes the name of the old one. [`Replacement`] owns that
//! temporary file and removes it unless it was committed. Callers decide what the new file keeps of the old one (mode, owner,
//! attributes), whether links are followed, and whether the content is forced to the disk.

use std::{
    collections::hash_map::RandomState,
    fs::{self, File, OpenOptions},
    hash::{BuildHasher as _, Hasher as _},
    io::{self, ErrorKind, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use crate::fail_point::{self, Point};

/// The number of taken names that are skipped before giving up.
const ATTEMPTS: u32 = 1 << 16;

/// The system calls of a replacement. A caller with a file system of its own for tests implements it.
pub trait ReplaceCalls {
    /// An open temporary file.
    type File;

    /// Makes a file that was not there.
    ///
    /// # Errors
    /// The system's.
    fn create_new(&self, path: &Path) -> io::Result<Self::File>;

    /// Gives a file the name of another, which is gone then.
    ///
    /// # Errors
    /// The system's.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a temporary file that was not committed. A failure is at most logged: the caller reports what came first.
    fn remove(&self, path: &Path);
}

/// The file system of this machine.
#[derive(Debug, Clone, Copy)]
pub struct Disk {
    /// The mode of the temporary file, less the umask.
    mode: u32,
}

impl ReplaceCalls for Disk {
    type File = File;

    fn create_new(&self, path: &Path) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).mode(self.mode).open(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) {
        let _ = fs::remove_file(path);
    }
}

/// A new file that is about to replace another. Dropped before it is committed, it is removed.
#[derive(Debug)]
pub struct Replacement<C: ReplaceCalls = Disk> {
    calls: C,
    temporary: PathBuf,
    /// `None` once the file is committed.
    file: Option<C::File>,
}

/// The temporary file could not be made.
#[derive(Debug)]
pub struct CreateError {
    /// Its path.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

impl From<CreateError> for io::Error {
    fn from(error: CreateError) -> Self {
        error.source
    }
}

impl Replacement {
    /// Makes an empty file in `folder`, with a name of its own between `prefix` and `suffix`.
    ///
    /// # Errors
    /// [`CreateError`].
    pub fn create(folder: &Path, prefix: &str, suffix: &str, mode: u32) -> Result<Self, CreateError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let path = folder.join(format!("{prefix}{}{suffix}", random_letters()));
            match Self::create_at(Disk { mode }, path) {
                Err(error) if error.source.kind() == ErrorKind::AlreadyExists && attempt < ATTEMPTS => {}
                made => return made,
            }
        }
    }

    /// Writes all bytes, past a fail point.
    ///
    /// # Errors
    /// The system's, or the one that a test asked for.
    pub fn write_all_at(&mut self, point: Point, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match fail_point::write(point, bytes, |bytes| self.file_mut().write(bytes))? {
                0 => return Err(ErrorKind::WriteZero.into()),
                written => bytes = &bytes[written..],
            }
        }
        Ok(())
    }

    /// Commits, past a fail point, a file that survives a power failure: the content is on the disk before the file takes its
    /// name, and the name is on the disk afterwards.
    ///
    /// # Errors
    /// The system's, or the one that a test asked for.
    pub fn commit_durably(mut self, target: &Path, point: Point) -> io::Result<()> {
        // Otherwise a power failure could leave an empty file under the name.
        self.file_mut().sync_all()?;
        fail_point::call(point)?;
        let folder =
            target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        self.commit(target)?;
        File::open(folder)?.sync_all()
    }
}

impl<C: ReplaceCalls> Replacement<C> {
    /// Makes an empty file at `temporary`, which must not be there.
    ///
    /// # Errors
    /// [`CreateError`].
    pub fn create_at(calls: C, temporary: PathBuf) -> Result<Self, CreateError> {
        match calls.create_new(&temporary) {
            Ok(file) => Ok(Self { calls, temporary, file: Some(file) }),
            Err(source) => Err(CreateError { path: temporary, source }),
        }
    }

    /// The temporary file.
    ///
    /// # Panics
    /// Never: only [`Self::commit`], which consumes the replacement, takes the file out.
    #[expect(clippy::expect_used, reason = "the file is there until the replacement is consumed")]
    pub fn file_mut(&mut self) -> &mut C::File {
        self.file.as_mut().expect("a replacement that is not committed has its file")
    }

    /// The path of the temporary file.
    #[must_use]
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Puts the file in the place of `target`. Returns the file, still open.
    ///
    /// # Errors
    /// The system's; the old file is as it was.
    #[expect(clippy::expect_used, reason = "the file is there until the replacement is consumed")]
    pub fn commit(mut self, target: &Path) -> io::Result<C::File> {
        self.calls.rename(&self.temporary, target)?;
        Ok(self.file.take().expect("a replacement that is not committed has its file"))
    }
}

impl<C: ReplaceCalls> Drop for Replacement<C> {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            self.calls.remove(&self.temporary);
        }
    }
}

/// Unguessable letters: another user with write access to the folder cannot take the names beforehand.
fn random_letters() -> String {
    const LETTERS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut number = RandomState::new().build_hasher().finish();
    let mut letters = String::with_capacity(10);
    for _ in 0..10 {
        letters.push(char::from(LETTERS[(number % 36) as usize]));
        number /= 36;
    }
    letters
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_old_content_stays_until_the_new_one_is_committed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let names = || fs::read_dir(folder.path()).unwrap().count();
        fs::write(&path, "old").unwrap();
        let mut dropped = Replacement::create(folder.path(), ".tmp-", "", 0o600).unwrap();
        dropped.file_mut().write_all(b"never").unwrap();
        assert_eq!(names(), 2);
        drop(dropped);
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names()), ("old", 1));
        let mut new = Replacement::create(folder.path(), ".tmp-", ".x", 0o640).unwrap();
        let name = new.temporary().file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name.starts_with(".tmp-") && name.ends_with(".x") && name.len() == 17, "{name}");
        new.write_all_at(Point::SettingsWrite, b"new").unwrap();
        new.commit_durably(&path, Point::SettingsRename).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names()), ("new", 1));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn what_fails_leaves_nothing_and_names_the_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let missing = Replacement::create(&folder.path().join("no"), ".tmp-", "", 0o600).unwrap_err();
        assert_eq!(missing.source.kind(), ErrorKind::NotFound);
        assert!(missing.path.starts_with(folder.path().join("no")));
        let new = Replacement::create(folder.path(), ".tmp-", "", 0o600).unwrap();
        new.commit(&folder.path().join("no/file")).unwrap_err();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
