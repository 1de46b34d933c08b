//! Removes checkpoints that are too old or too many, and the contents that no other needs.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    folder::read_index,
    records::{Records, now_ms, read, replace},
    state::{FileState, ObjectId},
    store::Store,
};

/// Removes what is too old or too much: the oldest checkpoints first, then the contents that nothing names. No other process may
/// use the folder meanwhile.
///
/// # Errors
/// The system's.
pub(crate) fn prune(folder: &Path, store: &Store, max_age: Duration, max_bytes: u64) -> io::Result<()> {
    let oldest = now_ms().saturating_sub(i64::try_from(max_age.as_millis()).unwrap_or(i64::MAX));
    let mut keep: HashSet<ObjectId> = HashSet::new();
    let mut bytes = 0;
    for entry in list(&folder.join("folders"))? {
        let is_old =
            fs::metadata(&entry)?.modified().is_ok_and(|time| time.elapsed().is_ok_and(|age| age > max_age));
        match read_index(&entry).filter(|_| !is_old) {
            Some(entries) => entries.values().for_each(|entry| take(&entry.state, &mut keep, &mut bytes)),
            None => fs::remove_file(&entry)?,
        }
    }
    let mut files = Vec::new();
    let mut all = Vec::new();
    for path in list(&folder.join("sessions"))? {
        if path.extension().is_some_and(|end| end == "jsonl") {
            let records = read(&path)?;
            all.extend(records.iter().map(|record| (record.checkpoint.time, files.len(), record.clone())));
            files.push((path, records.len()));
        }
    }
    // Newest first; of two of one time, the later line.
    all.sort_by_key(|(time, ..)| -*time);
    let mut kept: Vec<HashSet<String>> = vec![HashSet::new(); files.len()];
    let mut is_over = false;
    for (time, file, record) in &all {
        let Ok(changes) = Records::changes(record, store) else { continue };
        let mut of_this = HashSet::new();
        let mut more = 0;
        for change in &changes {
            for state in [&change.before, &change.after] {
                take_new(state, &keep, &mut of_this, &mut more);
            }
        }
        is_over |= *time < oldest || bytes + more > max_bytes;
        if is_over {
            continue;
        }
        bytes += more;
        keep.extend(of_this);
        keep.insert(record.changes);
        kept[*file].insert(record.checkpoint.id.clone());
    }
    for ((path, count), kept) in files.iter().zip(&kept) {
        if kept.is_empty() {
            fs::remove_file(path)?;
        } else if kept.len() < *count {
            let mut lines = Vec::new();
            for record in read(path)?.iter().filter(|record| kept.contains(&record.checkpoint.id)) {
                serde_json::to_writer(&mut lines, record)?;
                lines.push(b'\n');
            }
            replace(path, &lines)?;
        }
    }
    store.sweep(&|id| keep.contains(&id))
}

fn take(state: &FileState, keep: &mut HashSet<ObjectId>, bytes: &mut u64) {
    if let FileState::File { id, len, .. } = state
        && keep.insert(*id)
    {
        *bytes += len;
    }
}

fn take_new(state: &FileState, known: &HashSet<ObjectId>, new: &mut HashSet<ObjectId>, bytes: &mut u64) {
    if let FileState::File { id, len, .. } = state
        && !known.contains(id)
        && new.insert(*id)
    {
        *bytes += len;
    }
}

fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
