//! Removes checkpoints that are too old or too many, and the contents that no other needs.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::{
    folder::read_index,
    records::{Lines, MAX_PRUNED_LINE, Records, keep_only, now_ms, read},
    restore,
    state::{FileState, ObjectId},
    store::Store,
};

/// What may stay.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PruneLimits {
    pub(crate) max_age: Duration,
    /// The most bytes on disk.
    pub(crate) max_bytes: u64,
}

/// What is in use, and stays in any case.
pub(crate) struct Live {
    /// The files of the indexes in use.
    pub(crate) files: HashSet<PathBuf>,
    pub(crate) contents: HashSet<ObjectId>,
}

impl Live {
    pub(crate) fn take(&mut self, state: &FileState) {
        if let FileState::File { id, .. } = state {
            self.contents.insert(*id);
        }
    }
}

/// Contents that stay, and their bytes on disk.
struct Keep<'a> {
    store: &'a Store,
    contents: HashSet<ObjectId>,
    bytes: u64,
    max_bytes: u64,
}

impl Keep<'_> {
    fn take(&mut self, contents: impl IntoIterator<Item = ObjectId>) {
        for id in contents {
            if self.contents.insert(id) {
                self.bytes += self.store.size_of(id);
            }
        }
    }

    /// Takes all of them or none: none where there would be too much.
    fn take_if_room(&mut self, contents: impl IntoIterator<Item = ObjectId>) -> bool {
        let new: HashSet<ObjectId> = contents.into_iter().filter(|id| !self.contents.contains(id)).collect();
        let more: u64 = new.iter().map(|id| self.store.size_of(*id)).sum();
        if self.bytes + more > self.max_bytes {
            return false;
        }
        self.bytes += more;
        self.contents.extend(new);
        true
    }
}

/// Removes what is too old or too much: the oldest checkpoints first, then indexes that are not in use, then the contents that
/// nothing names. Nobody else may use the folder meanwhile.
///
/// # Errors
/// The system's.
pub(crate) fn prune(folder: &Path, store: &Store, limits: PruneLimits, live: Live) -> io::Result<()> {
    let mut keep = Keep { store, contents: HashSet::new(), bytes: 0, max_bytes: limits.max_bytes };
    keep.take(live.contents);
    prune_sessions(folder, &mut keep, limits.max_age)?;
    prune_indexes(folder, &mut keep, limits.max_age, &live.files)?;
    store.sweep(&|id| keep.contents.contains(&id))
}

fn prune_sessions(folder: &Path, keep: &mut Keep<'_>, max_age: Duration) -> io::Result<()> {
    let oldest = now_ms().saturating_sub(i64::try_from(max_age.as_millis()).unwrap_or(i64::MAX));
    let mut files: Vec<(PathBuf, Lines)> = Vec::new();
    for path in list(&folder.join("sessions"))? {
        match path.extension().and_then(|end| end.to_str()) {
            // Nothing is left of it but its last id.
            Some("jsonl") if fs::metadata(&path)?.len() <= MAX_PRUNED_LINE => {}
            Some("jsonl") => {
                let lines = read(&path)?;
                files.push((path, lines));
            }
            // A restoring that was killed is completed by the next look at the session.
            Some("restoring") => keep.take(restore::contents_of(&path)),
            // What a killed process left of a file that it was about to replace.
            _ => fs::remove_file(&path)?,
        }
    }
    let mut all: Vec<(i64, usize, usize)> = Vec::new();
    for (file, (_, lines)) in files.iter().enumerate() {
        all.extend(lines.records.iter().enumerate().map(|(at, record)| (record.checkpoint.time, file, at)));
    }
    // Newest first.
    all.sort_unstable_by_key(|key| std::cmp::Reverse(*key));
    let mut kept: Vec<HashSet<usize>> = vec![HashSet::new(); files.len()];
    for (time, file, at) in all {
        if time < oldest {
            break;
        }
        let record = &files[file].1.records[at];
        // One whose list is damaged cannot be undone.
        let Ok(changes) = Records::changes(record, keep.store) else { continue };
        let states = changes.iter().flat_map(|change| [&change.before, &change.after]);
        let contents =
            states.filter_map(|state| if let FileState::File { id, .. } = state { Some(*id) } else { None });
        if !keep.take_if_room(contents.chain(record.changes)) {
            break;
        }
        kept[file].insert(at);
    }
    for ((path, lines), kept) in files.iter().zip(&kept) {
        if kept.len() < lines.records.len() || lines.records.is_empty() {
            keep_only(path, lines, kept)?;
        }
    }
    Ok(())
}

/// An index that is not in use saves the next daemon reading the folder: it stays where there is room.
fn prune_indexes(
    folder: &Path,
    keep: &mut Keep<'_>,
    max_age: Duration,
    live: &HashSet<PathBuf>,
) -> io::Result<()> {
    let mut indexes: Vec<(SystemTime, PathBuf)> = Vec::new();
    for path in list(&folder.join("folders"))?.into_iter().filter(|path| !live.contains(path)) {
        indexes.push((fs::metadata(&path)?.modified()?, path));
    }
    indexes.sort_unstable_by(|one, other| other.cmp(one));
    for (time, path) in indexes {
        let is_old = time.elapsed().is_ok_and(|age| age > max_age);
        let entries = read_index(&path).filter(|_| !is_old);
        let stays = entries.is_some_and(|entries| {
            let ids = entries.values().filter_map(|entry| {
                if let FileState::File { id, .. } = entry.state { Some(id) } else { None }
            });
            keep.take_if_room(ids)
        });
        if !stays {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
