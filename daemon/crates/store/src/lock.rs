//! One writer for each session file: a lock on the file itself, and a note of who has it.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_files::lock;

use crate::{
    Holder, StoreError,
    io::{Durability, FileIo, Io, NOTE},
};

/// The number of attempts to open a file that is replaced at the same time.
const OPEN_ATTEMPTS: usize = 8;

/// The folder and the content of notes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes {
    /// The folder of the notes; without one, none are left.
    pub(crate) dir: Option<PathBuf>,
    pub(crate) epoch: String,
}

/// The context that the writers of one store share.
#[derive(Clone)]
pub(crate) struct StoreContext {
    pub(crate) io: Arc<dyn Io>,
    pub(crate) notes: Notes,
    pub(crate) durability: Durability,
    pub(crate) max_line_bytes: usize,
}

/// A note that goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Note(PathBuf);

impl Drop for Note {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0) {
            tracing::debug!(%error, "cannot remove the note of an open session");
        }
    }
}

impl Notes {
    /// Says that this process has the file.
    pub(crate) fn leave(&self, io: &dyn Io, path: &Path) -> Option<Note> {
        let note = self.place_of(path)?;
        let holder = Holder { pid: std::process::id(), epoch: self.epoch.clone(), path: real(path) };
        let written = note.parent().map_or(Ok(()), |dir| io.create_dirs(dir)).and_then(|()| {
            let text = serde_json::to_vec(&holder).map_err(io::Error::other)?;
            let mut file = NOTE.open_or_create(&note)?;
            file.set_len(0)?;
            file.write_all(&text)
        });
        match written {
            Ok(()) => Some(Note(note)),
            Err(error) => {
                tracing::warn!(%error, "cannot note who has a session open; the lock itself is in place");
                None
            }
        }
    }

    fn holder(&self, path: &Path) -> Option<Holder> {
        let text = NOTE.read(&self.place_of(path)?).ok()??;
        let holder: Holder = serde_json::from_slice(&text).ok()?;
        (holder.path == real(path)).then_some(holder)
    }

    fn place_of(&self, path: &Path) -> Option<PathBuf> {
        let hash = fnv1a(real(path).as_os_str().as_encoded_bytes());
        Some(self.dir.as_ref()?.join(format!("session-{hash:016x}.json")))
    }

    /// The error for a file that someone else has.
    pub(crate) fn locked(&self, path: &Path) -> StoreError {
        StoreError::Locked { path: path.to_owned(), holder: self.holder(path) }
    }
}

/// Opens a file and takes it.
///
/// # Errors
/// [`StoreError::Locked`] when another handle has it, [`StoreError::NotAFile`] for folders and devices,
/// [`StoreError::Io`].
pub(crate) fn open_locked(io: &dyn Io, notes: &Notes, path: &Path) -> Result<Box<dyn FileIo>, StoreError> {
    for _ in 0..OPEN_ATTEMPTS {
        // Before opening: to open a pipe is to wait for its other end.
        if !io.stat(path).map_err(StoreError::io("open the session file", path))?.is_file {
            return Err(StoreError::NotAFile { path: path.to_owned() });
        }
        let file = io.open(path).map_err(StoreError::io("open the session file", path))?;
        let holder = || notes.holder(path).map(|holder| holder.pid);
        let is_ours = lock::try_lock_with(|| file.try_lock(), holder);
        if !is_ours.map_err(StoreError::io("lock the session file", path))? {
            return Err(notes.locked(path));
        }
        // The last holder may have replaced the file just before, and a lock on the old one is no lock.
        let opened = file.state().map_err(StoreError::io("read the state of", path))?;
        let named = io.stat(path).map_err(StoreError::io("open the session file", path))?;
        if opened.identity == named.identity {
            return Ok(file);
        }
    }
    Err(notes.locked(path))
}

/// The path with links resolved, as far as it exists.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// FNV-1a of 64 bits: a stable name for a path, no secret.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{io::Disk, testing::FaultyDisk};

    #[test]
    fn the_second_to_open_is_told_who_was_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        fs::write(&path, "x").unwrap();
        let notes = Notes { dir: Some(dir.path().join("run")), epoch: "e1".into() };

        let first = open_locked(&Disk, &notes, &path).unwrap();
        let note = notes.leave(&Disk, &path).unwrap();
        let error = open_locked(&Disk, &notes, &path).err().unwrap();
        let StoreError::Locked { holder: Some(holder), .. } = &error else { panic!("{error}") };
        assert_eq!((holder.pid, &*holder.epoch), (std::process::id(), "e1"));
        assert!(error.to_string().contains("another session of this process"), "{error}");

        drop((first, note));
        assert_eq!(fs::read_dir(dir.path().join("run")).unwrap().count(), 0);
        open_locked(&Disk, &notes, &path).unwrap();
    }

    #[test]
    fn stale_and_missing_notes_do_no_harm() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        fs::write(&path, "x").unwrap();
        let notes = Notes { dir: Some(dir.path().join("run")), epoch: String::new() };
        std::mem::forget(notes.leave(&Disk, &path).unwrap());
        let file = open_locked(&Disk, &notes, &path).unwrap();
        // A note that is none, and no folder for notes.
        fs::write(notes.place_of(&path).unwrap(), "{").unwrap();
        for notes in [notes, Notes::default()] {
            let error = open_locked(&Disk, &notes, &path).err().unwrap();
            assert!(matches!(&error, StoreError::Locked { holder: None, .. }), "{error}");
            assert!(error.to_string().contains("is in use by another process"), "{error}");
        }
        drop(file);
        // Notes that cannot be written are not needed either.
        let notes = Notes { dir: Some(path.join("below a file")), epoch: String::new() };
        assert!(notes.leave(&Disk, &path).is_none());
    }

    #[cfg(unix)]
    #[test]
    fn what_lies_in_the_place_of_a_note_is_neither_waited_for_nor_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        fs::write(&path, "x").unwrap();
        let notes = Notes { dir: Some(dir.path().to_owned()), epoch: String::new() };
        let (note, precious) = (notes.place_of(&path).unwrap(), dir.path().join("precious"));
        fs::write(&precious, "precious").unwrap();
        std::os::unix::fs::symlink(&precious, &note).unwrap();
        assert!(notes.leave(&Disk, &path).is_none());
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
        fs::remove_file(&note).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &note, rustix::fs::Mode::RUSR).unwrap();
        assert!(notes.leave(&Disk, &path).is_none());
        let _file = open_locked(&Disk, &notes, &path).unwrap();
        assert!(matches!(open_locked(&Disk, &notes, &path), Err(StoreError::Locked { holder: None, .. })));
    }

    #[test]
    fn a_link_leads_to_the_same_lock_and_note() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("s.jsonl"), dir.path().join("link.jsonl"));
        fs::write(&path, "x").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(&path, &link).unwrap();
        #[cfg(not(unix))]
        fs::hard_link(&path, &link).unwrap();
        let notes = Notes { dir: Some(dir.path().join("run")), epoch: String::new() };
        let _file = open_locked(&Disk, &notes, &link).unwrap();
        let _note = notes.leave(&Disk, &link).unwrap();
        let error = open_locked(&Disk, &notes, &path).err().unwrap();
        assert!(matches!(&error, StoreError::Locked { .. }), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_was_replaced_while_it_was_opened_is_opened_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        fs::write(&path, "x").unwrap();
        let disk = FaultyDisk::default();
        disk.plan().replacements = 2;
        let file = open_locked(&disk, &Notes::default(), &path).unwrap();
        assert_eq!(file.state().unwrap().identity, disk.stat(&path).unwrap().identity);
        let error = open_locked(&disk, &Notes::default(), &path).err().unwrap();
        assert!(matches!(&error, StoreError::Locked { .. }), "{error}");
    }

    #[test]
    fn folders_are_no_sessions() {
        let dir = tempfile::tempdir().unwrap();
        let error = open_locked(&Disk, &Notes::default(), dir.path()).err().unwrap();
        assert!(matches!(error, StoreError::NotAFile { .. }), "{error}");
        let error = open_locked(&Disk, &Notes::default(), &dir.path().join("no")).err().unwrap();
        assert!(
            matches!(&error, StoreError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound),
            "{error}"
        );
    }
}
