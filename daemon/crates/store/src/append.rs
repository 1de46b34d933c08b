//! Writes entries to disk: one entry, one line, one write.

use std::{
    io, mem,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    Entry, Header, StoreError,
    intent_log::{IntentLog, intent_log_path},
    io::{Durability, FileIo, FileState, Io},
    lock::{Note, StoreContext},
};

/// The only writer of a session file. Blocks; may move between threads.
///
/// A new session has no file until it holds a message of the user or of the model. Then the file is created with everything
/// appended so far; it must not exist yet. From then on the file is locked until the writer is dropped.
///
/// An entry whose append failed is not in the file (its bytes are cut off again, at the latest before the next append), so it
/// must not go into the tree either. A later append may succeed.
pub struct SessionWriter {
    with: StoreContext,
    state: State,
}

enum State {
    /// Nothing is ever written.
    Memory,
    /// The file does not exist yet; `pending` are its first lines.
    Deferred {
        path: PathBuf,
        pending: Vec<u8>,
        /// The remains of an attempt to make the file that could not be removed either. Held open, so that no other session
        /// takes them.
        left: Option<Box<dyn FileIo>>,
    },
    Open(OpenFile),
}

struct OpenFile {
    path: PathBuf,
    /// Declared before the file, so that the note goes while the lock still holds: otherwise the next holder's note could be
    /// removed.
    _note: Option<Note>,
    file: Box<dyn FileIo>,
    /// The bytes that are certainly in the file: those read or written. If the file is shorter, another program cut it.
    saved: u64,
    tail: Tail,
}

/// The end of the file.
enum Tail {
    /// A whole line.
    Clean,
    /// A line without LF that another program left.
    NoNewline,
    /// The beginning of a line whose append failed, from `start` to `end`.
    Torn { start: u64, end: u64 },
}

impl SessionWriter {
    pub(crate) fn memory(with: StoreContext) -> Self {
        Self { with, state: State::Memory }
    }

    /// A writer for a file that does not exist yet.
    pub(crate) fn deferred(with: StoreContext, path: PathBuf, header: &Header) -> Self {
        let mut pending = header.line().as_bytes().to_vec();
        pending.push(b'\n');
        Self { with, state: State::Deferred { path, pending, left: None } }
    }

    /// A writer for a file that does not exist yet, with its first lines.
    pub(crate) fn resumed(with: StoreContext, path: PathBuf, lines: &[u8]) -> Self {
        Self { with, state: State::Deferred { path, pending: lines.to_vec(), left: None } }
    }

    /// A writer for an existing, locked file.
    pub(crate) fn open(
        with: StoreContext,
        path: PathBuf,
        file: Box<dyn FileIo>,
        lacks_newline: bool,
    ) -> Self {
        let note = with.notes.leave(&*with.io, &path);
        let tail = if lacks_newline { Tail::NoNewline } else { Tail::Clean };
        // A file whose state cannot be read now is checked before the first write.
        let saved = file.state().map_or(0, |state| state.len);
        let mut open = OpenFile { path, file, saved, tail, _note: note };
        // When the disk is full, the line break goes out with the next entry.
        if lacks_newline
            && open.file.is_writable()
            && let Err(error) = open.write(b"", &with)
        {
            tracing::warn!(%error, "cannot end the last line of a session file");
        }
        Self { with, state: State::Open(open) }
    }

    /// The path of the session file, which may not exist yet; `None` for a session in memory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.state {
            State::Memory => None,
            State::Deferred { path, .. } => Some(path),
            State::Open(open) => Some(&open.path),
        }
    }

    /// Returns whether there is a file.
    #[must_use]
    pub fn is_on_disk(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Returns whether this user may not write to the file: every append fails.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        matches!(&self.state, State::Open(open) if !open.file.is_writable())
    }

    /// The log of the work that is under way in this session.
    #[must_use]
    pub fn intent_log(&self) -> IntentLog {
        let path = self.path().map(intent_log_path);
        IntentLog::new(Arc::clone(&self.with.io), self.with.durability, path, self.is_on_disk())
    }

    /// The lines that wait in memory because there is no file yet; [`Store::resume`](crate::Store::resume) takes them.
    #[must_use]
    pub fn unsaved(&self) -> Option<&[u8]> {
        match &self.state {
            State::Deferred { pending, .. } => Some(pending),
            State::Memory | State::Open(_) => None,
        }
    }

    /// Saves an entry as durably as the store's [`Durability`] demands. Without a file, it waits in memory.
    ///
    /// # Errors
    /// [`StoreError`]; the entry is then not saved.
    pub fn append(&mut self, entry: &Entry) -> Result<(), StoreError> {
        self.append_all(std::slice::from_ref(entry))
    }

    /// Saves several entries with one write: all of them or none.
    ///
    /// # Errors
    /// [`StoreError`]; none of the entries is then saved.
    pub fn append_all(&mut self, entries: &[Entry]) -> Result<(), StoreError> {
        let limit = self.with.max_line_bytes;
        if let Some(size) = entries.iter().map(Entry::line_len).find(|size| *size > limit) {
            return Err(StoreError::EntryTooLarge { size, limit });
        }
        if entries.is_empty() || matches!(self.state, State::Memory) {
            return Ok(());
        }
        // Kept for this write alone: most of the time a session is idle.
        let mut lines = Vec::with_capacity(entries.iter().map(|entry| entry.line_len() + 1).sum());
        for entry in entries {
            entry.write_line(&mut lines);
            lines.push(b'\n');
        }
        match &mut self.state {
            State::Memory => Ok(()),
            State::Deferred { pending, .. } if !entries.iter().any(Entry::starts_the_file) => {
                pending.extend_from_slice(&lines);
                Ok(())
            }
            State::Deferred { .. } => self.create(&lines),
            State::Open(open) => open.write(&lines, &self.with),
        }
    }

    /// Writes the header of a session into an open, empty file.
    pub(crate) fn write_header(&mut self, header: &Header) -> Result<(), StoreError> {
        let line = format!("{}\n", header.line());
        match &mut self.state {
            State::Open(open) => open.write(line.as_bytes(), &self.with),
            State::Memory | State::Deferred { .. } => Ok(()),
        }
    }

    /// Creates the file now, with everything appended so far.
    ///
    /// # Errors
    /// [`StoreError`]; there is no file then, and the lines wait as before.
    pub fn create_now(&mut self) -> Result<(), StoreError> {
        if matches!(self.state, State::Deferred { .. }) { self.create(&[]) } else { Ok(()) }
    }

    /// Creates the file with the pending lines and `lines`.
    fn create(&mut self, lines: &[u8]) -> Result<(), StoreError> {
        let State::Deferred { path, pending, left } = &mut self.state else { return Ok(()) };
        let before = pending.len();
        pending.extend_from_slice(lines);
        match create(path, pending, &self.with, left) {
            Ok(open) => {
                self.state = State::Open(open);
                Ok(())
            }
            Err(error) => {
                pending.truncate(before);
                Err(error)
            }
        }
    }
}

impl std::fmt::Debug for SessionWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match self.state {
            State::Memory => "in memory",
            State::Deferred { .. } => "no file yet",
            State::Open(_) => "open",
        };
        f.debug_struct("SessionWriter")
            .field("path", &self.path())
            .field("state", &state)
            .finish_non_exhaustive()
    }
}

/// The number of folders whose lists of names are synced with a new file: its own, that folder's parent (the sessions), and the
/// parent's parent (the agent directory).
const NEW_FOLDERS: usize = 3;

/// Creates a file, locks it and writes its first lines. On failure the file is removed again; if that fails, it is `left`, and
/// the next attempt removes it.
fn create(
    path: &Path,
    content: &[u8],
    with: &StoreContext,
    left: &mut Option<Box<dyn FileIo>>,
) -> Result<OpenFile, StoreError> {
    let io = &*with.io;
    if let Some(file) = left {
        remove_left(io, &**file, path).map_err(StoreError::io("remove what was left of", path))?;
        *left = None;
    }
    if let Some(dir) = path.parent() {
        io.create_dirs(dir).map_err(StoreError::io("create the folder", dir))?;
    }
    let file = io.create_new(path).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => StoreError::Exists { path: path.to_owned() },
        _ => StoreError::Io { action: "create the session file", path: path.to_owned(), source },
    })?;
    let locked = file.try_lock().map_err(StoreError::io("lock the session file", path));
    if matches!(locked, Ok(false)) {
        // Another process opened it in this moment: the file is now that process's.
        return Err(with.notes.locked(path));
    }
    let mut open = OpenFile { path: path.to_owned(), file, saved: 0, tail: Tail::Clean, _note: None };
    let written = locked.and_then(|_| open.write(content, with)).and_then(|()| {
        match (with.durability, path.parent()) {
            // The folder itself, and its parent, may be as new as the file.
            (Durability::Fsync, Some(dir)) => dir
                .ancestors()
                .take(NEW_FOLDERS)
                .filter(|dir| !dir.as_os_str().is_empty())
                .try_for_each(|dir| io.sync_dir(dir).map_err(StoreError::io("sync the folder", dir))),
            _ => Ok(()),
        }
    });
    if let Err(error) = written {
        if let Err(failed) = io.remove(path) {
            tracing::warn!(error = %failed, path = %path.display(), "cannot remove a session file that was not finished");
            *left = Some(open.file);
        }
        return Err(error);
    }
    open._note = with.notes.leave(io, path);
    Ok(open)
}

/// Removes an unfinished file, unless its name belongs to another file by now.
fn remove_left(io: &dyn Io, file: &dyn FileIo, path: &Path) -> io::Result<()> {
    let ours = file.state()?.identity;
    match io.stat(path) {
        Ok(FileState { identity, .. }) if identity.is_some() && identity == ours => io.remove(path),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

impl OpenFile {
    /// Appends whole lines. Empty `lines` only repair the end of the file.
    fn write(&mut self, lines: &[u8], with: &StoreContext) -> Result<(), StoreError> {
        if !self.file.is_writable() {
            return Err(StoreError::ReadOnly { path: self.path.clone() });
        }
        let state = self.file.state().map_err(StoreError::io("read the state of", &*self.path))?;
        if !state.has_name {
            return Err(StoreError::Removed { path: self.path.clone() });
        }
        if state.len < self.saved {
            // Behind half a line, or without the header or the parent entry, nothing could be read again.
            return Err(StoreError::Cut { path: self.path.clone(), found: state.len, saved: self.saved });
        }
        let mut start = state.len;
        if let Tail::Torn { start: whole, end } = self.tail {
            if start == end {
                self.file.set_len(whole).map_err(StoreError::io("repair the end of", &*self.path))?;
                start = whole;
                self.tail = Tail::Clean;
            } else {
                // Another program wrote behind it, and its bytes are not ours to cut off.
                self.tail = Tail::NoNewline;
            }
        }
        let before = mem::replace(&mut self.tail, Tail::Clean);
        let with_break;
        let bytes = if matches!(before, Tail::NoNewline) {
            with_break = [b"\n", lines].concat();
            &*with_break
        } else {
            lines
        };
        let mut written = 0;
        let result = write_all(&mut *self.file, bytes, &mut written).and_then(|()| match with.durability {
            Durability::Os => Ok(()),
            Durability::Fsync => self.file.sync(),
        });
        self.saved = if result.is_ok() { start + written as u64 } else { start };
        result.map_err(|source| {
            self.cut(start, written as u64, before);
            StoreError::Io { action: "write to the session file", path: self.path.clone(), source }
        })
    }

    /// Cuts off the `written` bytes from `start` on, if no other program wrote behind them.
    fn cut(&mut self, start: u64, written: u64, before: Tail) {
        let end = start + written;
        let is_last = self.file.state().is_ok_and(|state| state.len == end);
        if written == 0 || (is_last && self.file.set_len(start).is_ok()) {
            self.tail = before;
        } else if matches!(before, Tail::NoNewline) {
            // The line break may stay; it does no harm.
            self.tail = Tail::Torn { start: start + 1, end };
        } else {
            self.tail = Tail::Torn { start, end };
        }
    }
}

/// Usually one system call. A signal or a limit may split it.
pub(crate) fn write_all(file: &mut dyn FileIo, mut bytes: &[u8], written: &mut usize) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.append(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                *written += count;
                bytes = &bytes[count..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
