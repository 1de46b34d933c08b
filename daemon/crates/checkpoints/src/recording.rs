//! Stores what a tool call changed, and says what of it could not be kept.

use std::{
    collections::BTreeSet,
    fmt, io,
    path::{Path, PathBuf},
    sync::PoisonError,
};

use agentd_protocol::checkpoints::{Checkpoint, CheckpointKind, PathReason};

use crate::{
    capture::capture_now,
    records::{NewRecord, bounded, now_ms},
    session::{CheckpointError, SessionCheckpoints},
    state::{Change, FileState, StoredPath, Unkept},
    store::unique_name,
};

/// What could not be kept of a call's changes for want of room, or since the store cannot be written: a sentence for the model. The
/// call itself has not failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap(String);

impl fmt::Display for Gap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl SessionCheckpoints {
    /// Runs `write`, which changes the file at `path`, an absolute path without links, and may make its parent folders.
    pub fn change_file<T>(
        &self,
        call_id: Option<&str>,
        tool: &str,
        path: &Path,
        write: impl FnOnce() -> T,
    ) -> (T, Option<Gap>) {
        self.change_files(call_id, tool, &[path], write)
    }

    /// [`Self::change_file`] for a change of several files, which is one checkpoint.
    pub fn change_files<T>(
        &self,
        call_id: Option<&str>,
        tool: &str,
        files: &[&Path],
        write: impl FnOnce() -> T,
    ) -> (T, Option<Gap>) {
        let using = self.kept.using();
        let capture = |path: &Path| capture_now(path, &self.kept.store, self.limits.max_file_bytes);
        let (done, changes) = self.folder.exclusively(|| {
            // A folder comes before what is in it.
            let mut paths: BTreeSet<PathBuf> = BTreeSet::new();
            for path in files {
                let missing = path.ancestors().skip(1).take_while(|folder| !folder.exists());
                paths.extend(missing.map(Path::to_owned));
                paths.insert((*path).to_owned());
            }
            let before: Vec<FileState> = paths.iter().map(|path| capture(path)).collect();
            let done = write();
            let after: Vec<FileState> = paths.iter().map(|path| capture(path)).collect();
            let states = paths.iter().cloned().zip(after.iter().cloned()).collect();
            let changes: Vec<Change> = paths
                .into_iter()
                .zip(before.into_iter().zip(after))
                .map(|(path, (before, after))| Change { path: StoredPath(path), before, after })
                .collect();
            ((done, changes), states)
        });
        let mut new = NewRecord {
            call_id: call_id.map(str::to_owned),
            tool: Some(tool.to_owned()),
            ..NewRecord::default()
        };
        for change in changes {
            match change.unkept() {
                Some(why) => {
                    new.lacks_room |= why == Unkept::Full;
                    let path = change.path.0.display().to_string();
                    new.skipped.push(PathReason { path, why: why.to_string() });
                }
                None if change.before.is_same(&change.after) => {}
                None => new.changes.push(change),
            }
        }
        let gap = self.record(new);
        drop(using);
        self.kept.tidy();
        (done, gap)
    }

    /// Stores a checkpoint if something changed, and tells of it. One that cannot be stored is told of, too: its changes, which have
    /// happened, are then among those that are not kept.
    pub(crate) fn record(&self, new: NewRecord) -> Option<Gap> {
        if new.changes.is_empty() && new.skipped.is_empty() {
            return None;
        }
        let prompt = self.prompt.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut new = NewRecord { prompt, ..new };
        let stored = self.with_records(|records| Ok(records.append(&mut new, &self.kept.store)?));
        let (checkpoint, gap) = match stored {
            Ok(checkpoint) => (checkpoint, new.lacks_room.then(|| part_is_lost(&Unkept::Full))),
            Err(error) => {
                let why = reason(&error);
                tracing::error!(why, "a checkpoint could not be stored: these changes cannot be undone");
                let lost = lost(new, &why);
                let noted = self.with_records(|records| {
                    records.note_lost(lost.clone());
                    Ok(())
                });
                if let Err(error) = noted {
                    tracing::debug!(%error, "the list of checkpoints cannot name one that was lost");
                }
                let text = format!("what this call changed is not kept and cannot be undone: {why}");
                (lost, Some(Gap(text)))
            }
        };
        if let Some(sink) = self.sink.get() {
            sink(checkpoint);
        }
        gap
    }
}

fn part_is_lost(why: &Unkept) -> Gap {
    Gap(format!("some of what this call changed is not kept and cannot be undone: {why}"))
}

/// A checkpoint in place of one that cannot be stored. Its id is not one of those that are counted, so that it names this one alone
/// even if no file ever has it.
fn lost(new: NewRecord, why: &str) -> Checkpoint {
    let NewRecord { kind, prompt, call_id, tool, shared, mut skipped, changes, .. } = new;
    let unkept = |change: Change| PathReason {
        path: change.path.0.display().to_string(),
        why: format!("its change is not kept: {why}"),
    };
    skipped.extend(changes.into_iter().map(unkept));
    Checkpoint {
        id: format!("lost-{}", unique_name()),
        kind: kind.unwrap_or(CheckpointKind::Tool),
        prompt,
        call_id,
        tool,
        time: now_ms(),
        created: 0,
        modified: 0,
        deleted: 0,
        paths: Vec::new(),
        shared,
        skipped: bounded(skipped),
        undoes: Vec::new(),
        undone: false,
    }
}

/// The end of a sentence about why a checkpoint cannot be stored.
fn reason(error: &CheckpointError) -> String {
    match error {
        // The store's own limit has no number of the system.
        CheckpointError::Io(error)
            if error.kind() == io::ErrorKind::StorageFull && error.raw_os_error().is_none() =>
        {
            Unkept::Full.to_string()
        }
        CheckpointError::Io(error) => format!("the store cannot be written: {error}"),
        other => other.to_string(),
    }
}
