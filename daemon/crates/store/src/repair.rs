//! Checks session files as a whole, and copies the readable part of a damaged one.

use std::{
    borrow::Cow,
    cell::Cell,
    collections::HashSet,
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use crate::{
    Entry, EntryKind, Header, LinePosition, LoadReport, NewSession, OddityKind, SessionTree, Store,
    StoreError,
    ids::new_entry_id,
    io::{FileIo, Io, open_to_read},
    lines::{Content, each_line},
    load::{Loaded, Session, load, salvage},
    new_session_id,
    object::{Object, quoted},
    read_header,
    replace::with_end,
};

/// The result of checking a session file.
#[derive(Debug)]
pub struct FileCheck {
    /// The session's id; `None` without a header that names one.
    pub id: Option<String>,
    /// The readable entries.
    pub entries: usize,
    /// The oddities.
    pub report: LoadReport,
    /// The version of its header, when it is later than ours: entries may then have an unknown meaning.
    pub too_new: Option<u32>,
}

/// The result of a repair.
#[derive(Debug)]
pub struct RepairResult {
    /// The copy.
    pub path: PathBuf,
    /// Its session id.
    pub id: String,
    /// Its entries.
    pub entries: usize,
    /// Entries with a new id, because a later entry has theirs.
    pub renamed: usize,
    /// Entries that follow another one than their line says.
    pub relinked: usize,
    /// Lines and runs of zeros that are not in the copy.
    pub dropped: u64,
}

impl Store {
    /// Reads as much of a session file as possible. Locks and changes nothing.
    ///
    /// # Errors
    /// [`StoreError::NotASession`] when it holds no entry, [`StoreError::NotAFile`], [`StoreError::Io`].
    pub fn check(&self, path: &Path) -> Result<FileCheck, StoreError> {
        let found = self.salvage(path)?;
        let has_header = found.session.report.count(OddityKind::MissingHeader) == 0 || found.has_late_header;
        Ok(FileCheck {
            id: has_header.then(|| found.session.tree.header().id().to_owned()),
            entries: found.session.tree.entries().len(),
            report: found.session.report,
            too_new: found.too_new,
        })
    }

    /// Writes the readable part of a session file into `<its name>.repaired.jsonl` beside it: a session of its own, with the
    /// original as `parentSession`, and without oddities. The original is locked meanwhile and stays as it is. If its header is
    /// lost, the copy gets the working directory of the sessions beside it, else that of `new`.
    ///
    /// # Errors
    /// [`StoreError::Locked`] while the session is open, [`StoreError::Exists`] when the copy exists already,
    /// [`StoreError::TooNew`] for a session of a later version, and those of [`Self::check`]; there is no copy then.
    pub fn repair(&self, path: &Path, new: NewSession) -> Result<RepairResult, StoreError> {
        let _held = self.hold(path)?;
        let Salvaged { session, too_new, .. } = self.salvage(path)?;
        if let Some(found) = too_new {
            return Err(StoreError::TooNew { path: path.to_owned(), found });
        }
        let target = path.with_extension("repaired.jsonl");
        let Session { tree, report, .. } = session;
        let header = new_header(&tree, path, new)?;
        let id = header.id().to_owned();
        let Mended { tree, renamed, relinked } = mend(&tree, header);
        self.write_new(&target, &tree)?;
        let skipped = [
            OddityKind::TornTail,
            OddityKind::Broken,
            OddityKind::TooLong,
            OddityKind::Zeros,
            OddityKind::NoEntry,
            OddityKind::SecondHeader,
            OddityKind::Repeated,
        ];
        Ok(RepairResult {
            path: target,
            id,
            entries: tree.entries().len(),
            renamed,
            relinked,
            dropped: skipped.iter().map(|kind| report.count(*kind)).sum(),
        })
    }

    /// Returns whether a process has the session open.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn is_open(&self, path: &Path) -> Result<bool, StoreError> {
        match self.hold(path) {
            Ok(_) => Ok(false),
            Err(StoreError::Locked { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Takes the session's lock without write access.
    fn hold(&self, path: &Path) -> Result<File, StoreError> {
        let file = open_to_read(path)?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(self.context().notes.locked(path)),
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(file),
            Err(TryLockError::Error(error)) => Err(StoreError::io("lock the session file", path)(error)),
        }
    }

    fn salvage(&self, path: &Path) -> Result<Salvaged, StoreError> {
        let mut file = open_to_read(path)?;
        let too_new = Cell::new(None);
        let found = salvage(&mut file, self.context().max_line_bytes, &|header| match header {
            Some(header) => {
                too_new.set(Some(header.version()));
                Some(header.clone())
            }
            None => Header::new("unknown".into(), String::new(), String::new(), None).ok(),
        });
        match found.map_err(StoreError::io("read the session file", path))? {
            Loaded::Session(session) => Ok(Salvaged {
                has_late_header: session.tree.header().id() != "unknown",
                session: *session,
                too_new: too_new.get(),
            }),
            Loaded::Empty | Loaded::Invalid | Loaded::TooNew(_) => {
                Err(StoreError::NotASession { path: path.to_owned() })
            }
        }
    }

    /// Writes a session into a new file of that name: whole and verified, or not at all.
    fn write_new(&self, target: &Path, tree: &SessionTree) -> Result<(), StoreError> {
        let io = &*self.context().io;
        if target.symlink_metadata().is_ok() {
            return Err(StoreError::Exists { path: target.to_owned() });
        }
        let temporary = with_end(target, ".writing");
        let error = || StoreError::io("write the repaired copy", target);
        if temporary.symlink_metadata().is_ok() {
            // A crash left it: only one repair at a time holds the session's lock.
            io.remove(&temporary).map_err(error())?;
        }
        let written = (|| {
            let mut file = io.create_new(&temporary).map_err(error())?;
            write(&mut *file, tree).map_err(error())?;
            self.verify(&temporary, target, tree)?;
            give_name(io, &temporary, target)
        })();
        if temporary.exists()
            && let Err(error) = io.remove(&temporary)
        {
            tracing::warn!(%error, path = %temporary.display(), "cannot remove a temporary file");
        }
        written?;
        target.parent().map_or(Ok(()), |dir| io.sync_dir(dir).map_err(StoreError::io("sync the folder", dir)))
    }

    /// Reads a copy again: it must equal the written tree, without oddities.
    fn verify(&self, written: &Path, target: &Path, tree: &SessionTree) -> Result<(), StoreError> {
        let error = |text: &str| StoreError::io("trust the repaired copy", target)(io::Error::other(text));
        let loaded = load(&mut open_to_read(written)?, self.context().max_line_bytes);
        match loaded.map_err(StoreError::io("read the repaired copy", target))? {
            Loaded::Session(again) if !again.report.is_clean() => {
                Err(error("it is odd when it is read again"))
            }
            Loaded::Session(again) if again.tree.parents() != tree.parents() => {
                Err(error("its entries are others when it is read again"))
            }
            Loaded::Session(_) => Ok(()),
            _ => Err(error("it is no session when it is read again")),
        }
    }
}

/// The lines of a JSON Lines file that are no objects, and their number. The list is bounded, the number counts all.
///
/// # Errors
/// When the file cannot be read.
pub fn unreadable_lines(
    path: &Path,
    max_line_bytes: usize,
) -> Result<(Vec<(OddityKind, LinePosition)>, u64), StoreError> {
    let mut file = open_to_read(path)?;
    let (mut places, mut count) = (Vec::new(), 0);
    let read = each_line(&mut file, max_line_bytes, &mut |line| {
        let kind = match line.content {
            Content::Zeros => OddityKind::Zeros,
            Content::TooLong => OddityKind::TooLong,
            content @ (Content::Bytes(_) | Content::Text(_)) => {
                let bytes = content.bytes().unwrap_or_default();
                let is_blank = bytes.trim_ascii().is_empty();
                if is_blank || serde_json::from_slice::<&serde_json::value::RawValue>(bytes).is_ok() {
                    return;
                }
                OddityKind::Broken
            }
        };
        count += 1;
        if places.len() < crate::KEPT_ODDITIES {
            places.push((kind, line.place));
        }
    });
    read.map_err(StoreError::io("read", path))?;
    Ok((places, count))
}

struct Salvaged {
    session: Session,
    too_new: Option<u32>,
    /// True if a header came behind the first entry.
    has_late_header: bool,
}

/// The header of the copy. Without an original, the sessions beside it tell the working directory.
fn new_header(tree: &SessionTree, path: &Path, new: NewSession) -> Result<Header, StoreError> {
    let info = tree.info();
    let cwd = match info.cwd.as_str() {
        "" => neighbour(path).unwrap_or(new.cwd),
        cwd => cwd.to_owned(),
    };
    let timestamp = match info.timestamp.as_str() {
        "" => tree.entries().first().map(|entry| entry.timestamp().into_owned()),
        time => Some(time.to_owned()),
    };
    let timestamp =
        timestamp.filter(|time| !time.is_empty()).unwrap_or_else(|| crate::iso_timestamp(new.now_ms));
    Ok(Header::new(new_session_id(), timestamp, cwd, Some(path.display().to_string()))?)
}

fn neighbour(path: &Path) -> Option<String> {
    let mut names = fs::read_dir(path.parent()?).ok()?.flatten().map(|entry| entry.path());
    names.find_map(|other| {
        let is_session = other != path && other.extension().is_some_and(|end| end == "jsonl");
        let header = is_session.then(|| read_header(&other).ok().flatten()).flatten()?;
        Some(header.cwd().to_owned()).filter(|cwd| !cwd.is_empty())
    })
}

/// Writes in pieces, so that a long session is not in memory twice.
fn write(file: &mut dyn FileIo, tree: &SessionTree) -> io::Result<()> {
    const PIECE: usize = 1 << 20;
    let mut text = tree.header().line().as_bytes().to_vec();
    text.push(b'\n');
    for entry in tree.entries() {
        entry.write_line(&mut text);
        text.push(b'\n');
        if text.len() >= PIECE {
            crate::append::write_all(file, &text, &mut 0)?;
            text.clear();
        }
    }
    crate::append::write_all(file, &text, &mut 0)?;
    file.sync()
}

/// Never replaces an existing file.
fn give_name(io: &dyn Io, file: &Path, name: &Path) -> Result<(), StoreError> {
    match io.link(file, name) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(StoreError::Exists { path: name.to_owned() })
        }
        // The file system has no hard links. A race could only be lost to a program that takes just this name between these two
        // calls.
        Err(_) if !name.exists() => {
            io.rename(file, name).map_err(StoreError::io("write the repaired copy", name))
        }
        Err(error) => Err(StoreError::io("write the repaired copy", name)(error)),
    }
}

/// A tree without oddities.
pub(super) struct Mended {
    pub(super) tree: SessionTree,
    /// Entries that got another id.
    pub(super) renamed: usize,
    /// Entries whose line names another parent.
    pub(super) relinked: usize,
}

/// Writes the tree as it is read: each entry follows its assumed parent. Of several entries with one id the last keeps it,
/// since references to the id mean that one.
pub(super) fn mend(tree: &SessionTree, header: Header) -> Mended {
    let mut mended = Mended { tree: SessionTree::new(header), renamed: 0, relinked: 0 };
    // New ids by index; nearly always empty.
    let mut ids: Vec<(u32, String)> = Vec::new();
    let mut taken: HashSet<String> = HashSet::new();
    let is_taken = |id: &str, taken: &HashSet<String>| tree.place_of(id).is_some() || taken.contains(id);
    for (at, entry) in (0u32..).zip(tree.entries()) {
        if tree.place_of(entry.id()) != Some(at) {
            let id = new_entry_id(|id| is_taken(id, &taken));
            taken.insert(id.clone());
            ids.push((at, id));
        }
    }
    let id_of = |at: u32| match ids.binary_search_by_key(&at, |(at, _)| *at) {
        Ok(found) => ids[found].1.as_str(),
        Err(_) => tree.entry(at).id(),
    };
    for (at, entry) in (0u32..).zip(tree.entries()) {
        let parent = tree.parent(at).map(id_of);
        let id = id_of(at);
        let kept = if ids.is_empty() { None } else { first_kept(tree, at, &id_of) };
        let (is_renamed, is_relinked) = (id != entry.id(), parent != entry.parent_id());
        mended.renamed += usize::from(is_renamed);
        mended.relinked += usize::from(is_relinked);
        let changed =
            (is_renamed || is_relinked || kept.is_some()).then(|| changed(entry, id, parent, kept)).flatten();
        mended.tree.push(changed.unwrap_or_else(|| entry.clone()));
    }
    mended
}

fn changed(entry: &Entry, id: &str, parent: Option<&str>, kept: Option<&str>) -> Option<Entry> {
    let line = entry.line();
    let mut fields = Object::parse(&line)?;
    fields.set_at("id", quoted(id), 1);
    fields.set_at("parentId", parent.map_or(Cow::Borrowed("null"), |id| quoted(id).into()), 2);
    if let Some(kept) = kept {
        fields.set("firstKeptEntryId", quoted(kept));
    }
    Entry::parse(&fields.text())
}

/// For a compaction: the new id of the first entry that it keeps, if that one got a new id. It is on the path to the
/// compaction, and the first of its id there.
fn first_kept<'a>(tree: &SessionTree, at: u32, id_of: &impl Fn(u32) -> &'a str) -> Option<&'a str> {
    let entry = tree.entry(at);
    if entry.kind() != EntryKind::Compaction {
        return None;
    }
    let fields = Object::parse(entry.frame())?;
    let named = fields.string("firstKeptEntryId")?;
    let first = tree.path(tree.parent(at)).into_iter().find(|above| tree.entry(*above).id() == named)?;
    Some(id_of(first)).filter(|id| *id != named)
}

#[cfg(test)]
mod tests;
