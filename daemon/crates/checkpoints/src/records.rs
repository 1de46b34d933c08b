//! The checkpoints of sessions on disk: a file of JSON lines for each session, whose lists of changes are contents of the store.

use std::{
    collections::HashSet,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use agentd_files::fail_point::{self, Point};
use agentd_protocol::checkpoints::{ChangeKind, Checkpoint, CheckpointKind, PathReason};
use serde::{Deserialize, Serialize};

use crate::{
    state::{Change, ObjectId},
    store::{Store, private_folder, unique_name},
};

/// The most paths in the description of a checkpoint.
const MAX_PATHS: usize = 20;

/// One line of a session's file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) checkpoint: Checkpoint,
    /// The list of changes; `None` where it could not be stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changes: Option<ObjectId>,
}

/// The line that stands for checkpoints that were pruned, so that their ids are not used again.
#[derive(Serialize, Deserialize)]
struct Pruned {
    last: u64,
}

/// The length of a file that has no more than such a line.
pub(crate) const MAX_PRUNED_LINE: u64 = 32;

/// What a checkpoint is made of.
#[derive(Debug, Default)]
pub(crate) struct NewRecord {
    pub(crate) kind: Option<CheckpointKind>,
    pub(crate) prompt: Option<String>,
    pub(crate) call_id: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) shared: bool,
    pub(crate) skipped: Vec<PathReason>,
    pub(crate) undoes: Vec<String>,
    pub(crate) changes: Vec<Change>,
    /// Whether there was no room for some of the contents.
    pub(crate) lacks_room: bool,
}

/// The records of one session.
pub(crate) struct Records {
    pub(crate) path: PathBuf,
    pub(crate) all: Vec<Record>,
    last: u64,
    /// Lines that there was no room for, written with the next that there is room for.
    unwritten: Vec<Record>,
}

impl Records {
    /// Reads the file of a session; there may be none. A torn last line counts for nothing.
    pub(crate) fn load(folder: &Path, session: &str) -> io::Result<Self> {
        let name = ObjectId::of(session.as_bytes()).to_hex();
        let path = folder.join("sessions").join(&name[..32]).with_extension("jsonl");
        let Lines { records: all, last } = read(&path)?;
        Ok(Self { path, all, last, unwritten: Vec::new() })
    }

    /// The file was read again: what could not be written to it is known still.
    pub(crate) fn continue_after(&mut self, before: Self) {
        self.use_no_id_up_to(before.last);
        self.all.extend(before.unwritten.iter().cloned());
        self.unwritten = before.unwritten;
    }

    /// Ids up to `c` with this number are not used again.
    pub(crate) fn use_no_id_up_to(&mut self, last: u64) {
        self.last = self.last.max(last);
    }

    /// Notes that a checkpoint could not be stored. It is in the file as soon as there is room for its line, and until then in memory.
    pub(crate) fn note_lost(&mut self, checkpoint: Checkpoint) {
        let record = Record { checkpoint, changes: None };
        self.all.push(record.clone());
        self.unwritten.push(record);
        if let Err(error) = self.write(None) {
            tracing::debug!(%error, "a checkpoint that could not be stored is in memory alone");
        }
    }

    /// Adds a checkpoint; the contents are in the store before its line is in the file.
    pub(crate) fn append(&mut self, new: &mut NewRecord, store: &Store) -> io::Result<Checkpoint> {
        let NewRecord { kind, prompt, call_id, tool, shared, skipped, undoes, changes, .. } = new;
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        let of_kind = |kind| changes.iter().filter(|change| change.kind() == kind).count() as u64;
        let checkpoint = Checkpoint {
            id: format!("c{}", self.last + 1),
            kind: kind.unwrap_or(CheckpointKind::Tool),
            prompt: prompt.clone(),
            call_id: call_id.clone(),
            tool: tool.clone(),
            time: now_ms(),
            created: of_kind(ChangeKind::Created),
            modified: of_kind(ChangeKind::Modified),
            deleted: of_kind(ChangeKind::Deleted),
            paths: changes.iter().take(MAX_PATHS).map(|change| change.path.0.display().to_string()).collect(),
            shared: *shared,
            skipped: bounded(skipped.clone()),
            undoes: undoes.clone(),
            undone: false,
        };
        let list = serde_json::to_vec(changes)?;
        let len = list.len() as u64;
        let changes = if len <= crate::store::MAX_PACKED {
            store.put(&list)?
        } else {
            store.put_stream(&mut &*list)?
        };
        let record = Record { checkpoint, changes: Some(changes) };
        self.write(Some(&record))?;
        self.last += 1;
        let checkpoint = record.checkpoint.clone();
        self.all.push(record);
        Ok(checkpoint)
    }

    /// Adds the line of a record to the file, after those that there was no room for before: all or none.
    fn write(&mut self, record: Option<&Record>) -> io::Result<()> {
        fail_point::call(Point::UndoRecord)?;
        if let Some(folder) = self.path.parent() {
            private_folder(folder)?;
        }
        // A torn line of a killed process must not take this one along.
        let mut lines = Vec::new();
        if !ends_with_newline(&self.path)? {
            lines.push(b'\n');
        }
        for record in self.unwritten.iter().chain(record) {
            serde_json::to_writer(&mut lines, record)?;
            lines.push(b'\n');
        }
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
        let len = file.metadata()?.len();
        if let Err(error) = file.write_all(&lines) {
            // A line of which only the end is missing would count, and its id be used twice. The first error says what is wrong.
            let _ = file.set_len(len);
            return Err(error);
        }
        self.unwritten.clear();
        Ok(())
    }

    /// The changes of a record.
    pub(crate) fn changes(record: &Record, store: &Store) -> io::Result<Vec<Change>> {
        match record.changes {
            Some(list) => Ok(serde_json::from_slice(&store.get(list)?)?),
            None => Ok(Vec::new()),
        }
    }

    /// The ids of the checkpoints that are undone: a restoring that is not undone itself undoes them.
    pub(crate) fn undone(&self) -> HashSet<&str> {
        let mut undone = HashSet::new();
        for record in self.all.iter().rev() {
            if !undone.contains(record.checkpoint.id.as_str()) {
                undone.extend(record.checkpoint.undoes.iter().map(String::as_str));
            }
        }
        undone
    }

    /// The checkpoints of the prompt that `undo` undoes, oldest first; those of `passed` count as undone.
    pub(crate) fn to_undo(&self, passed: &[String]) -> Vec<&Record> {
        let mut undone = self.undone();
        undone.extend(passed.iter().map(String::as_str));
        let is_live = |record: &&Record| {
            record.checkpoint.kind == CheckpointKind::Tool && !undone.contains(record.checkpoint.id.as_str())
        };
        let Some(last) = self.all.iter().rfind(is_live) else { return Vec::new() };
        let prompt = &last.checkpoint.prompt;
        self.all.iter().filter(is_live).filter(|record| record.checkpoint.prompt == *prompt).collect()
    }

    /// The restoring that `redo` undoes: the last undo that is not undone, if no tool call came after it.
    pub(crate) fn to_redo(&self) -> Option<&Record> {
        let undone = self.undone();
        for record in self.all.iter().rev() {
            match record.checkpoint.kind {
                CheckpointKind::Tool => return None,
                CheckpointKind::Undo if !undone.contains(record.checkpoint.id.as_str()) => {
                    return Some(record);
                }
                CheckpointKind::Undo | CheckpointKind::Redo => {}
            }
        }
        None
    }
}

/// The first of the reasons, each path once; the last says how many are left out.
pub(crate) fn bounded(mut skipped: Vec<PathReason>) -> Vec<PathReason> {
    let mut named = HashSet::new();
    skipped.retain(|skipped| named.insert(skipped.path.clone()));
    if skipped.len() > MAX_PATHS {
        let more = skipped.split_off(MAX_PATHS - 1);
        let why = format!("and {} more paths, for reasons as these", more.len());
        skipped.extend(more.into_iter().next().map(|first| PathReason { path: first.path, why }));
    }
    skipped
}

/// Whether a file is missing, empty or complete.
fn ends_with_newline(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::FileExt as _;
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    let Some(last) = file.metadata()?.len().checked_sub(1) else { return Ok(true) };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last)?;
    Ok(byte == *b"\n")
}

/// The lines of a session's file.
#[derive(Default)]
pub(crate) struct Lines {
    pub(crate) records: Vec<Record>,
    /// The number of the last id that was used.
    pub(crate) last: u64,
}

pub(crate) fn read(path: &Path) -> io::Result<Lines> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Lines::default()),
        Err(error) => return Err(error),
    };
    let mut found = Lines::default();
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Ok(record) = serde_json::from_slice::<Record>(line) {
            found.last = found.last.max(number(&record.checkpoint.id).unwrap_or(0));
            found.records.push(record);
        } else if let Ok(Pruned { last }) = serde_json::from_slice(line) {
            found.last = found.last.max(last);
        }
    }
    Ok(found)
}

/// The number of an id; `None` for that of a checkpoint that could not be stored.
pub(crate) fn number(id: &str) -> Option<u64> {
    id.strip_prefix('c')?.parse().ok()
}

/// Leaves of a session's file only those records whose places are in `kept`, and the last id.
pub(crate) fn keep_only(path: &Path, lines: &Lines, kept: &HashSet<usize>) -> io::Result<()> {
    let mut left = serde_json::to_vec(&Pruned { last: lines.last })?;
    left.push(b'\n');
    if kept.is_empty() {
        // Written over the beginning, which needs no room on a full disk; killed in between, it has the lines after the first.
        let file = OpenOptions::new().write(true).open(path)?;
        std::os::unix::fs::FileExt::write_all_at(&file, &left, 0)?;
        return file.set_len(left.len() as u64);
    }
    for (_, record) in lines.records.iter().enumerate().filter(|(at, _)| kept.contains(at)) {
        serde_json::to_writer(&mut left, record)?;
        left.push(b'\n');
    }
    replace(path, &left)
}

/// Replaces a private file in one step.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension(unique_name());
    let mut file = crate::store::private_file(&temporary)?;
    let written = file.write_all(content).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The first error says what is wrong.
        let _ = fs::remove_file(&temporary);
    }
    written
}

pub(crate) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
