//! Bringing records to disk.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_files::{
    fail_point::{self, Point},
    replace::{ReplaceCalls, Replacement},
};

use super::{IntentRecord, OwnershipNotes, UnfinishedWork, ownership::LogOwnership};
use crate::{
    Durability, StoreError,
    io::{FileIo, FileState, Io},
};

/// The limit for streamed text and results in an intent log, in bytes. Beyond it only intents are written.
const MAX_BYTES: u64 = 32 << 20;

/// The growth, in bytes, at which the log is rewritten with the next question to the model: the session file holds all earlier
/// work by then.
const RENEWED_BYTES: u64 = 256 << 10;

/// The part of an intent log that is read, in bytes: enough for queues of the default limits, in their old and new form.
const MAX_READ: u64 = 8 * MAX_BYTES;

/// The intent log of one session; blocks. Only the holder of the session file's lock may write it.
///
/// The file has records while work is under way. In between it stays, open and empty, until [`Self::close`]: to make and to remove a file costs
/// ten times as much as to cut one.
pub struct IntentLog {
    io: Arc<dyn Io>,
    durability: Durability,
    /// `None` for a session in memory, which is never written.
    path: Option<PathBuf>,
    /// True if the session file exists and is locked.
    armed: bool,
    file: Option<OpenIntentLog>,
    /// The file that was emptied, and waits for the next work.
    emptied: Option<EmptiedIntentLog>,
    /// The record of the run that is under way, to be repeated in a new file.
    run: Option<IntentRecord>,
    /// The records of the user's commands that are under way, by number.
    commands: BTreeMap<u64, IntentRecord>,
    /// The numbers of the messages that wait in queues. Their texts, which may be megabytes, are in the file alone.
    waiting: BTreeSet<u64>,
    /// Records from before the session had a file: they go first into the intent log.
    early: Vec<IntentRecord>,
    /// True once a warning was logged that the log cannot be written.
    warned: bool,
    /// True while work that an earlier process left could not be stored: the file stays as it is.
    held: bool,
    /// The note that the file is ours.
    pub(super) ownership: LogOwnership,
}

/// A file without records. It stays open: to open it again takes four system calls more.
struct EmptiedIntentLog {
    file: Box<dyn FileIo>,
    /// Its device and number.
    identity: (u64, u64),
}

struct OpenIntentLog {
    file: Box<dyn FileIo>,
    /// Its device and number, where the system tells them.
    identity: Option<(u64, u64)>,
    len: u64,
    /// The length at which the log is rewritten before the next question to the model.
    renewed_at: u64,
    /// True if the last line may lack its end.
    torn: bool,
}

/// The fail points around a write.
#[derive(Clone, Copy)]
struct Places {
    before: Point,
    after: Point,
}

const INTENT: Places = Places { before: Point::IntentLogIntent, after: Point::IntentLogIntentWritten };
const OUTCOME: Places = Places { before: Point::IntentLogOutcome, after: Point::IntentLogOutcomeWritten };
const FLUSH: Places = Places { before: Point::IntentLogFlush, after: Point::IntentLogFlushed };

impl IntentLog {
    pub(crate) fn new(io: Arc<dyn Io>, durability: Durability, path: Option<PathBuf>, armed: bool) -> Self {
        Self {
            io,
            durability,
            path,
            armed,
            file: None,
            emptied: None,
            run: None,
            commands: BTreeMap::new(),
            waiting: BTreeSet::new(),
            early: Vec::new(),
            warned: false,
            held: false,
            ownership: LogOwnership::default(),
        }
    }

    /// The path of the file, whether it exists or not; `None` for a session in memory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns whether writes wait for the disk, as [`Durability::Fsync`] demands.
    #[must_use]
    pub fn waits_for_disk(&self) -> bool {
        self.durability == Durability::Fsync
    }

    /// Starts writing: the session file exists from now on.
    pub fn arm(&mut self) {
        self.armed = true;
    }

    /// Keeps the file as it is, because work that an earlier process left could not be stored yet. Until [`Self::replace`], no
    /// work may begin.
    pub fn hold(&mut self) {
        self.held = true;
    }

    /// Reads the work that an earlier process left; `None` without an intent log.
    ///
    /// # Errors
    /// [`StoreError::Io`] when it cannot be read.
    pub fn left(&self) -> Result<Option<UnfinishedWork>, StoreError> {
        let Some(path) = self.path.as_deref().filter(|_| self.armed && self.emptied.is_none()) else {
            return Ok(None);
        };
        let read = || -> io::Result<Vec<u8>> {
            let mut text = Vec::new();
            self.io.open_intent_log(path)?.take(MAX_READ).read_to_end(&mut text)?;
            Ok(text)
        };
        match read() {
            Ok(text) => Ok(Some(UnfinishedWork::read(&text))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StoreError::Io { action: "read", path: path.to_owned(), source }),
        }
    }

    /// Writes the intents, after the records that came before there was a file, as durably as the store's [`Durability`]
    /// demands.
    ///
    /// # Errors
    /// [`StoreError`]; the intended actions must not begin.
    pub fn intend(&mut self, records: &[IntentRecord]) -> Result<(), StoreError> {
        let Some(path) = self.path.clone().filter(|_| !(records.is_empty() && self.early.is_empty())) else {
            return Ok(());
        };
        if !self.armed {
            self.early
                .extend(records.iter().filter(|record| matches!(record, IntentRecord::Queued(_))).cloned());
            return Ok(());
        }
        if self.held {
            let source = io::Error::other("what a crash left has to be stored first, and could not be");
            return Err(StoreError::Io { action: "write", path, source });
        }
        let is_question = records.iter().any(|record| matches!(record, IntentRecord::Ask(_)));
        if is_question && self.file.as_ref().is_some_and(|open| open.len > open.renewed_at) {
            // Otherwise the log would grow for as long as the run goes on.
            return self.renew(records);
        }
        self.write(&path, records, INTENT, Sync::AsConfigured)?;
        records.iter().for_each(|record| self.remember(record));
        Ok(())
    }

    /// Rewrites the file with the work that is under way, and these records.
    fn renew(&mut self, records: &[IntentRecord]) -> Result<(), StoreError> {
        let left = if self.waiting.is_empty() { None } else { self.left()? };
        let messages = left.into_iter().flat_map(|left| left.messages);
        let waiting = messages
            .filter(|message| self.waiting.contains(&message.queued.number))
            .map(|message| IntentRecord::Queued(message.queued));
        let kept = self.run.iter().chain(self.commands.values()).cloned();
        let kept: Vec<IntentRecord> = kept.chain(waiting).chain(records.iter().cloned()).collect();
        self.replace(&kept)
    }

    /// Records an outcome. A failure is logged: work goes on without the record.
    pub fn note(&mut self, record: &IntentRecord) {
        if !self.armed && matches!(record, IntentRecord::Unqueued) {
            self.early.clear();
        }
        let Some(path) = self.path.clone().filter(|_| self.armed && !self.held) else { return };
        self.remember(record);
        let is_an_end = match record {
            IntentRecord::BashDone(done) => done.stored,
            IntentRecord::Unqueued => true,
            _ => false,
        };
        if is_an_end && self.clear_if_idle() {
            return;
        }
        // Without an intent in the file, its outcome is not needed.
        let Some(open) = &self.file else { return };
        let places = if matches!(record, IntentRecord::Said(_)) { FLUSH } else { OUTCOME };
        let is_bulk =
            matches!(record, IntentRecord::Said(_) | IntentRecord::Done(_) | IntentRecord::BashDone(_));
        if (open.len < MAX_BYTES || !is_bulk)
            && let Err(error) = self.write(&path, std::slice::from_ref(record), places, Sync::Never)
        {
            self.warn(&error);
        }
    }

    /// Ends the run. Without commands under way and waiting messages, the file is emptied.
    pub fn settle(&mut self) {
        self.run = None;
        if self.file.is_some() && !self.clear_if_idle() {
            self.note(&IntentRecord::Settled);
        }
    }

    /// Replaces the file by one with these records alone, in one step. Without records the file is removed.
    ///
    /// # Errors
    /// [`StoreError`]; the old file stays.
    pub fn replace(&mut self, records: &[IntentRecord]) -> Result<(), StoreError> {
        let Some(path) = self.path.clone().filter(|_| self.armed) else { return Ok(()) };
        self.held = false;
        if records.is_empty() {
            self.forget();
            return match self.io.remove_intent_log(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    Err(StoreError::Io { action: "remove", path, source })
                }
                _ => {
                    self.ownership.is_gone();
                    Ok(())
                }
            };
        }
        let mut text = Vec::new();
        for record in records {
            record.write_line(&mut text)?;
        }
        let mut temporary = path.clone().into_os_string();
        temporary.push(".new");
        let temporary = PathBuf::from(temporary);
        let made = (|| {
            let mut new = Replacement::create_at(ThroughIo(&*self.io), temporary)?;
            append(&mut **new.file_mut(), &text, INTENT)?;
            if self.durability == Durability::Fsync {
                new.file_mut().sync()?;
            }
            let file = new.commit(&path)?;
            self.ownership.is_made(&path);
            Ok(file)
        })();
        match made {
            Ok(file) => {
                self.forget();
                let len = text.len() as u64;
                let identity = identity_of(&*file);
                self.file = Some(OpenIntentLog {
                    file,
                    identity,
                    len,
                    renewed_at: 2 * len + RENEWED_BYTES,
                    torn: false,
                });
                records.iter().for_each(|record| self.remember(record));
                Ok(())
            }
            Err(source) => Err(StoreError::Io { action: "write", path, source }),
        }
    }

    /// Turns on ownership notes, for an intent log outside of the agent directory.
    pub fn claim_in(&mut self, notes: OwnershipNotes) {
        // An earlier daemon may have left a note.
        let noted = |log: &PathBuf| notes.note(log).symlink_metadata().is_ok();
        self.ownership.noted = self.path().map(Path::to_owned).filter(noted);
        self.ownership.notes = Some(notes);
    }

    /// Marks the records in the file as possibly another user's. While they are there, the file is not noted as ours.
    pub fn is_of_others(&mut self) {
        self.ownership.is_foreign = true;
    }

    /// Removes the file if it is empty. To be called when the session leaves memory; what comes then makes it anew.
    pub fn close(&mut self) {
        let Some(path) = &self.path else { return };
        let Some(emptied) = self.emptied.take() else { return };
        // If another file has its name, or none, it is not ours to remove.
        if emptied.is_as_it_was(&*self.io, path)
            && let Err(error) = self.io.remove_intent_log(path)
        {
            tracing::debug!(%error, path = %path.display(), "an empty intent log stays");
        }
    }

    fn forget(&mut self) {
        (self.file, self.run, self.emptied) = (None, None, None);
        self.commands.clear();
        self.waiting.clear();
    }

    fn remember(&mut self, record: &IntentRecord) {
        match record {
            IntentRecord::Run(_) => self.run = Some(record.clone()),
            IntentRecord::Bash(begun) => {
                self.commands.insert(begun.number, record.clone());
            }
            IntentRecord::BashDone(done) if done.stored => {
                self.commands.remove(&done.number);
            }
            IntentRecord::Queued(queued) => {
                self.waiting.insert(queued.number);
            }
            IntentRecord::Delivered(delivered) => {
                self.waiting.remove(&delivered.number);
            }
            IntentRecord::Unqueued => self.waiting.clear(),
            _ => {}
        }
    }

    /// Empties the file when no work is under way; false when some is.
    fn clear_if_idle(&mut self) -> bool {
        if self.run.is_some() || !self.commands.is_empty() || !self.waiting.is_empty() {
            return false;
        }
        if let Some(mut open) = self.file.take()
            && let Some(path) = &self.path
        {
            match (empty(&mut *open.file), open.identity) {
                (Ok(()), Some(identity)) => {
                    self.emptied = Some(EmptiedIntentLog { file: open.file, identity });
                    self.ownership.is_emptied();
                    return true;
                }
                (Ok(()), None) => {}
                (Err(error), _) => {
                    tracing::debug!(%error, path = %path.display(), "an intent log is removed since it cannot be emptied");
                }
            }
            if let Err(error) = self.io.remove_intent_log(path) {
                // The session file has every outcome: a later reader of the intent log finds no open work.
                tracing::warn!(%error, path = %path.display(), "cannot remove the intent log of a session");
            }
            self.ownership.is_gone();
        }
        true
    }

    fn write(
        &mut self,
        path: &Path,
        records: &[IntentRecord],
        places: Places,
        sync: Sync,
    ) -> Result<(), StoreError> {
        let failed = |source| StoreError::Io { action: "write", path: path.to_owned(), source };
        let is_new = self.file.is_none();
        let open = match &mut self.file {
            Some(open) => open,
            none => {
                let emptied = self.emptied.take().filter(|emptied| emptied.is_as_it_was(&*self.io, path));
                let (file, identity) = match emptied {
                    Some(emptied) => {
                        self.ownership.is_used_again(path);
                        (emptied.file, Some(emptied.identity))
                    }
                    None => {
                        let file = create(&*self.io, path).map_err(failed)?;
                        self.ownership.is_made(path);
                        let identity = identity_of(&*file);
                        (file, identity)
                    }
                };
                none.insert(OpenIntentLog { file, identity, len: 0, renewed_at: RENEWED_BYTES, torn: false })
            }
        };
        let mut text = Vec::new();
        if open.torn {
            text.push(b'\n');
        }
        for record in &self.early {
            record.write_line(&mut text)?;
        }
        for record in records {
            record.write_line(&mut text)?;
        }
        open.torn = true;
        let mut synced = append(&mut *open.file, &text, places);
        if sync == Sync::AsConfigured && self.durability == Durability::Fsync {
            synced = synced.and_then(|()| open.file.sync());
            if let (true, Some(dir)) = (is_new, path.parent()) {
                synced = synced.and_then(|()| self.io.sync_dir(dir));
            }
        }
        if let Err(source) = synced {
            // A refused record must not be found after a crash. If it cannot be cut off, the next record begins on a line of
            // its own.
            open.torn = open.file.set_len(open.len).is_err();
            return Err(failed(source));
        }
        open.torn = false;
        open.len += text.len() as u64;
        let early = std::mem::take(&mut self.early);
        early.iter().for_each(|record| self.remember(record));
        Ok(())
    }

    /// Warns once for a session: a full disk would fill the log, too.
    fn warn(&mut self, error: &StoreError) {
        if !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(%error, "after a crash less will be known of this session than usual");
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sync {
    AsConfigured,
    Never,
}

/// The calls of a replacement, through the layer that tests make fail.
struct ThroughIo<'a>(&'a dyn Io);

impl ReplaceCalls for ThroughIo<'_> {
    type File = Box<dyn FileIo>;

    fn create_new(&self, path: &Path) -> io::Result<Self::File> {
        create(self.0, path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &Path) {
        if let Err(error) = self.0.remove_intent_log(path) {
            tracing::debug!(%error, path = %path.display(), "cannot remove a temporary file");
        }
    }
}

impl EmptiedIntentLog {
    /// Whether the file has its name still, and no other program has written to it.
    fn is_as_it_was(&self, io: &dyn Io, path: &Path) -> bool {
        let is_this = |state: FileState| state.identity == Some(self.identity) && state.len == 0;
        io.stat(path).is_ok_and(is_this)
    }
}

fn identity_of(file: &dyn FileIo) -> Option<(u64, u64)> {
    file.state().ok()?.identity
}

fn empty(file: &mut dyn FileIo) -> io::Result<()> {
    fail_point::call(Point::IntentLogClear)?;
    file.set_len(0)
}

/// Creates an intent log. A file that an earlier process left under that name is removed.
fn create(io: &dyn Io, path: &Path) -> io::Result<Box<dyn FileIo>> {
    match io.create_intent_log(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            io.remove_intent_log(path)?;
            io.create_intent_log(path)
        }
        made => made,
    }
}

fn append(file: &mut dyn FileIo, mut bytes: &[u8], places: Places) -> io::Result<()> {
    while !bytes.is_empty() {
        match fail_point::write(places.before, bytes, |bytes| file.append(bytes)) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    fail_point::hit(places.after);
    Ok(())
}

impl Drop for IntentLog {
    /// For a session that ends without [`Self::close`].
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for IntentLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IntentLog").field("path", &self.path).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
