//! The folders of session files.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use agentd_safe_open::AcceptedOwner;

/// A session file, as far as its folder tells of it.
pub(super) struct SessionFile {
    pub(super) path: PathBuf,
    pub(super) modified_ms: i64,
}

/// Returns whether a path leads to a regular file of this user or of root: files of others can be named, and are in no list.
#[must_use]
pub fn is_own_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| is_ours(&metadata))
}

fn is_ours(metadata: &fs::Metadata) -> bool {
    metadata.is_file() && AcceptedOwner::Own.accepts(metadata.uid())
}

/// The `.jsonl` files of a folder, the last written first.
pub(super) fn files(dir: &Path) -> io::Result<Vec<SessionFile>> {
    let mut files = Vec::new();
    for entry in entries(dir)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        // Gone in this instant, or a link that leads nowhere: no session either way.
        let Ok(metadata) = fs::metadata(&path) else { continue };
        if is_ours(&metadata) {
            files.push(SessionFile { modified_ms: modified_ms(&metadata), path });
        }
    }
    // By name where two were written in the same millisecond: names begin with the time of creation.
    files.sort_by(|a, b| (b.modified_ms, &b.path).cmp(&(a.modified_ms, &a.path)));
    Ok(files)
}

pub(super) fn subfolders(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in entries(root)? {
        let path = entry?.path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    Ok(folders)
}

/// The entries of a folder; none when the folder does not exist.
fn entries(dir: &Path) -> io::Result<impl Iterator<Item = io::Result<fs::DirEntry>>> {
    match fs::read_dir(dir) {
        Ok(entries) => Ok(Some(entries).into_iter().flatten()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None.into_iter().flatten()),
        Err(error) => Err(error),
    }
}

/// The time of the last write to a file, in Unix milliseconds.
pub(super) fn modified_ms(metadata: &fs::Metadata) -> i64 {
    let time = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
