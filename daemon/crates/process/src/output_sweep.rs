//! Removes long outputs that are too old, or too many together.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs::{self, Metadata, TryLockError},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use agentd_files::fail_point::{self, Point};

use crate::artifacts::{OUTPUT, id_of, is_missing};

/// Files that one sweep examines.
const MOST_FILES: usize = 100_000;

/// How much disk space long outputs may take, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputRetention {
    /// Bytes of all outputs below a folder of sessions; the largest value is no limit.
    pub bytes: u64,
    /// Time since their last change; `None` for ever.
    pub age: Option<Duration>,
}

/// The result of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SweepResult {
    /// Outputs removed.
    pub removed: u64,
    /// Bytes of the removed outputs.
    pub removed_bytes: u64,
    /// Outputs of sessions that remain.
    pub left: u64,
    /// Bytes of the remaining outputs.
    pub left_bytes: u64,
}

/// Whether a sweep removes files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweepMode {
    /// Removes them.
    Remove,
    /// Only counts what would be removed.
    Try,
}

/// One output with all its paths: forks share it.
struct Output {
    changed: SystemTime,
    bytes: u64,
    paths: Vec<PathBuf>,
}

/// Removes outputs that are too old, then the oldest until the rest fits: those of the sessions in the folders below
/// `sessions`, and, by age alone, those in `temporary`. Outputs that are being written stay, and other files are left
/// alone. Blocks.
///
/// # Errors
/// When the folder of sessions exists and cannot be read. Outputs that cannot be removed stay.
pub fn sweep_outputs(
    sessions: &Path,
    temporary: Option<&Path>,
    bounds: OutputRetention,
    mode: SweepMode,
) -> io::Result<SweepResult> {
    let now = SystemTime::now();
    let is_old = |output: &Output| {
        let age = now.duration_since(output.changed).unwrap_or_default();
        bounds.age.is_some_and(|most| age > most)
    };
    let mut swept = SweepResult::default();
    let mut outputs = of_sessions(sessions)?;
    // Oldest first. A clock that was set back changes only the order.
    outputs.sort_by_key(|output| output.changed);
    let mut bytes: u64 = outputs.iter().map(|output| output.bytes).sum();
    for output in outputs {
        if (is_old(&output) || bytes > bounds.bytes) && swept.take(&output, mode) {
            bytes -= output.bytes;
        } else {
            swept.left += 1;
            swept.left_bytes += output.bytes;
        }
    }
    for output in temporary.map(of_temporary).unwrap_or_default() {
        if is_old(&output) {
            swept.take(&output, mode);
        }
    }
    Ok(swept)
}

impl SweepResult {
    /// Removes an output, unless it is being written. Returns whether it is gone.
    fn take(&mut self, output: &Output, mode: SweepMode) -> bool {
        if is_being_written(output) {
            return false;
        }
        let removed = mode == SweepMode::Try
            || output.paths.iter().all(|path| match remove(path) {
                Ok(()) => true,
                Err(error) => {
                    tracing::warn!(%error, path = %path.display(), "cannot remove an old output");
                    false
                }
            });
        if removed {
            self.removed += 1;
            self.removed_bytes += output.bytes;
        }
        removed
    }
}

fn remove(path: &Path) -> io::Result<()> {
    fail_point::call(Point::ArtifactRemove)?;
    match fs::remove_file(path) {
        Err(error) if !is_missing(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Whether a writer holds the output's lock.
fn is_being_written(output: &Output) -> bool {
    let Some(path) = output.paths.first() else { return false };
    let locked = OUTPUT.open(path).map(|file| file.try_lock());
    matches!(locked, Ok(Err(TryLockError::WouldBlock)))
}

/// The outputs of all sessions: in folders beside session files, in one folder for each working directory.
fn of_sessions(root: &Path) -> io::Result<Vec<Output>> {
    let mut found: HashMap<(u64, u64), Output> = HashMap::new();
    let mut count = 0;
    for session in folders(root)?.iter().flat_map(|folder| folders(folder).unwrap_or_default()) {
        // Removed meanwhile.
        let Ok(entries) = fs::read_dir(session) else { continue };
        for entry in entries.flatten() {
            if entry.file_name().to_str().and_then(id_of).is_none() {
                continue;
            }
            let Ok(meta) = entry.metadata() else { continue };
            if !meta.is_file() || count == MOST_FILES {
                continue;
            }
            count += 1;
            found
                .entry((meta.dev(), meta.ino()))
                .and_modify(|output| output.paths.push(entry.path()))
                .or_insert_with(|| output(&meta, entry.path()));
        }
    }
    Ok(found.into_values().collect())
}

/// This user's outputs of sessions without a file.
fn of_temporary(folder: &Path) -> Vec<Output> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let user = rustix::process::geteuid().as_raw();
    let ours = entries.flatten().filter(|entry| is_temporary(&entry.file_name()));
    let files = ours.filter_map(|entry| {
        let meta = entry.metadata().ok()?;
        (meta.is_file() && meta.uid() == user).then(|| output(&meta, entry.path()))
    });
    files.take(MOST_FILES).collect()
}

fn output(meta: &Metadata, path: PathBuf) -> Output {
    let changed = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    Output { changed, bytes: meta.len(), paths: vec![path] }
}

fn is_temporary(name: &OsStr) -> bool {
    let digits = name.to_str().and_then(|name| name.strip_prefix("pi-bash-")?.strip_suffix(".log"));
    digits.is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

fn folders(root: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if is_missing(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    // Links are not followed: they may lead anywhere.
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    Ok(entries.flatten().filter(is_folder).map(|entry| entry.path()).collect())
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;
    use crate::{
        artifacts::{ArtifactFolder, CreatedFile},
        output_storage::OutputStorage,
    };

    const NO_BOUNDS: OutputRetention = OutputRetention { bytes: u64::MAX, age: None };

    struct Sessions(tempfile::TempDir);

    impl Sessions {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn folder(&self, session: &str) -> ArtifactFolder {
            let folder = self.0.path().join("--work--");
            fs::create_dir_all(&folder).unwrap();
            ArtifactFolder::beside(&folder.join(format!("{session}.jsonl")))
        }

        /// Creates an output of `bytes` bytes that was changed `days` days ago.
        fn output(&self, session: &str, bytes: usize, days: u64) -> PathBuf {
            let CreatedFile { path, file, .. } = OutputStorage::from(self.folder(session)).create().unwrap();
            fs::write(&path, vec![b'x'; bytes]).unwrap();
            drop(file);
            make_old(&path, days);
            path
        }

        fn sweep(&self, bounds: OutputRetention, mode: SweepMode) -> SweepResult {
            sweep_outputs(self.0.path(), None, bounds, mode).unwrap()
        }
    }

    fn make_old(path: &Path, days: u64) {
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(days * 86_400)).unwrap();
    }

    fn days(days: u64) -> OutputRetention {
        OutputRetention { age: Some(Duration::from_secs(days * 86_400)), ..NO_BOUNDS }
    }

    #[test]
    fn what_is_old_goes_and_what_is_young_stays() {
        let sessions = Sessions::new();
        let (old, young) = (sessions.output("a", 10, 5), sessions.output("b", 20, 1));
        let counted = sessions.sweep(days(3), SweepMode::Try);
        assert_eq!((counted.removed, counted.removed_bytes, counted.left_bytes), (1, 10, 20));
        assert!(old.exists());
        assert_eq!(sessions.sweep(days(3), SweepMode::Remove), counted);
        assert!(!old.exists() && young.exists());
        assert_eq!(sessions.sweep(NO_BOUNDS, SweepMode::Remove).removed, 0);
    }

    #[test]
    fn the_oldest_go_until_the_rest_fits() {
        let sessions = Sessions::new();
        let outputs: Vec<_> = (0..4).map(|days| sessions.output("a", 10, days)).collect();
        let swept = sessions.sweep(OutputRetention { bytes: 25, ..NO_BOUNDS }, SweepMode::Remove);
        assert_eq!((swept.removed, swept.left, swept.left_bytes), (2, 2, 20));
        assert_eq!(outputs.iter().map(|path| path.exists()).collect::<Vec<_>>(), [true, true, false, false]);
    }

    #[test]
    fn what_is_being_written_stays_and_so_does_what_is_no_output() {
        let sessions = Sessions::new();
        let CreatedFile { path, file, .. } = OutputStorage::from(sessions.folder("a")).create().unwrap();
        fs::write(&path, "running").unwrap();
        make_old(&path, 50);
        let other = path.with_file_name("notes.log");
        fs::write(&other, "mine").unwrap();
        make_old(&other, 50);
        assert_eq!(sessions.sweep(days(3), SweepMode::Remove).removed, 0);
        assert!(path.exists() && other.exists());
        drop(file);
        assert_eq!(sessions.sweep(days(3), SweepMode::Remove).removed, 1);
        assert!(!path.exists() && other.exists());
    }

    #[test]
    fn what_forks_share_counts_once_and_goes_as_a_whole() {
        let sessions = Sessions::new();
        sessions.output("a", 10, 5);
        sessions.folder("a").share_with(&sessions.folder("fork")).unwrap();
        let swept = sessions.sweep(OutputRetention { bytes: 10, ..NO_BOUNDS }, SweepMode::Remove);
        assert_eq!((swept.removed, swept.left, swept.left_bytes), (0, 1, 10));
        let swept = sessions.sweep(days(3), SweepMode::Remove);
        assert_eq!((swept.removed, swept.removed_bytes), (1, 10));
        for session in ["a", "fork"] {
            assert_eq!(sessions.folder(session).list().unwrap(), []);
        }
    }

    #[test]
    fn temporary_outputs_go_by_age_alone() {
        let (sessions, temp) = (Sessions::new(), tempfile::tempdir().unwrap());
        let CreatedFile { path, file, .. } = OutputStorage::from(temp.path()).create().unwrap();
        drop(file);
        make_old(&path, 5);
        let other = temp.path().join("pi-bash-notes.log");
        fs::write(&other, "mine").unwrap();
        make_old(&other, 5);
        let sweep = |bounds| {
            sweep_outputs(sessions.0.path(), Some(temp.path()), bounds, SweepMode::Remove).unwrap().removed
        };
        assert_eq!(sweep(OutputRetention { bytes: 0, ..NO_BOUNDS }), 0);
        assert_eq!(sweep(days(3)), 1);
        assert!(!path.exists() && other.exists());
    }
}
