//! Carries a plan out. What is about to be done is on the disk before it begins.

use std::{
    collections::HashMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use agentd_files::fail_point::{self, Point};
use agentd_protocol::checkpoints::{Checkpoint, CheckpointKind, PathReason};
use serde::{Deserialize, Serialize};

use super::{place::Place, plan::Plan};
use crate::{
    records::{NewRecord, Records, replace},
    state::{Change, FileState, ObjectId},
    store::{Store, private_folder, unique_name},
};

/// What is on the disk while a restoring is at work.
#[derive(Serialize, Deserialize)]
struct Intent {
    kind: CheckpointKind,
    undoes: Vec<String>,
    steps: Vec<Change>,
    /// The name of temporary files beside those that are replaced.
    temporary: String,
    conflicts: Vec<PathReason>,
}

/// Carries a plan out, as a checkpoint of its own. Steps that fail become conflicts. A plan without steps and conflicts is on record
/// all the same when it `undoes` checkpoints, so that the next undo goes further back.
pub(crate) fn perform(
    plan: &mut Plan,
    kind: CheckpointKind,
    undoes: Vec<String>,
    records: &mut Records,
    store: &Store,
) -> io::Result<Option<Checkpoint>> {
    if plan.steps.is_empty() {
        if undoes.is_empty() || !plan.conflicts.is_empty() {
            return Ok(None);
        }
        let mut new = NewRecord { kind: Some(kind), undoes, ..NewRecord::default() };
        return records.append(&mut new, store).map(Some);
    }
    let intent = Intent {
        kind,
        undoes,
        steps: std::mem::take(&mut plan.steps),
        temporary: format!(".agentd-undo-{}.tmp", unique_name()),
        conflicts: std::mem::take(&mut plan.conflicts),
    };
    let path = intent_file(&records.path);
    if let Some(folder) = path.parent() {
        private_folder(folder)?;
    }
    replace(&path, &serde_json::to_vec(&intent)?)?;
    File::open(&path)?.sync_all()?;
    carry_out(intent, plan, records, store)
}

/// Completes a restoring that was killed.
pub(crate) fn resume(records: &mut Records, store: &Store) -> io::Result<()> {
    let intent = match fs::read(intent_file(&records.path)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    match serde_json::from_slice(&intent) {
        Ok(intent) => {
            let mut plan = Plan::default();
            carry_out(intent, &mut plan, records, store)?;
            for PathReason { path, why } in &plan.conflicts {
                tracing::warn!(path, why, "left as it is by a restoring that was killed and is completed");
            }
            Ok(())
        }
        // Nothing had begun: the file is complete before the first step.
        Err(_) => fs::remove_file(intent_file(&records.path)),
    }
}

/// The contents that a restoring which was killed needs.
pub(crate) fn contents_of(intent: &Path) -> Vec<ObjectId> {
    let read = fs::read(intent).ok().and_then(|text| serde_json::from_slice::<Intent>(&text).ok());
    let steps = read.map(|intent| intent.steps).unwrap_or_default();
    let states = steps.iter().flat_map(|step| [&step.before, &step.after]);
    states.filter_map(|state| if let FileState::File { id, .. } = state { Some(*id) } else { None }).collect()
}

fn intent_file(records: &Path) -> PathBuf {
    records.with_extension("restoring")
}

fn carry_out(
    intent: Intent,
    plan: &mut Plan,
    records: &mut Records,
    store: &Store,
) -> io::Result<Option<Checkpoint>> {
    let Intent { kind, undoes, steps, temporary, conflicts } = intent;
    plan.conflicts = conflicts;
    let mut failed: HashMap<PathBuf, String> = HashMap::new();
    let mut can_be_repeated = false;
    let mut folders = HashMap::new();
    for step in &steps {
        let removed = step.path.0.parent().map(|folder| folder.join(&temporary));
        // It is there only after a kill.
        if let Some(left) = removed
            && left.exists()
        {
            let _ = fs::remove_file(left);
        }
    }
    let mut run = |step: &Change, work: &dyn Fn(&Place<'_>) -> io::Result<()>| {
        if failed.contains_key(&step.path.0) {
            return;
        }
        let done = fail_point::call(Point::UndoStep)
            .and_then(|()| Place::open(&step.path.0, &temporary))
            .and_then(|place| work(&place));
        if let Err(error) = done {
            can_be_repeated |= matches!(
                error.kind(),
                io::ErrorKind::StorageFull
                    | io::ErrorKind::QuotaExceeded
                    | io::ErrorKind::ReadOnlyFilesystem
                    | io::ErrorKind::PermissionDenied
            );
            failed.insert(step.path.0.clone(), error.to_string());
        }
    };
    let is_folder = |state: &FileState| matches!(state, FileState::Folder { .. });
    // What the agent left read-only, as a cache of packages, could not be emptied.
    let closed: Vec<&Change> = steps.iter().filter(|step| step.before.is_closed_folder()).collect();
    for step in &closed {
        let opened = Place::open(&step.path.0, &temporary)
            .and_then(|place| place.set_mode(step.before.folder_mode().unwrap_or(0) | 0o700));
        if let Err(error) = opened {
            tracing::debug!(path = %step.path.0.display(), %error, "a folder stays read-only");
        }
    }
    // Deepest first: what is to go, or to become something of another kind.
    for step in steps.iter().rev() {
        let changes_kind = is_folder(&step.before) != is_folder(&step.after);
        if step.before != FileState::Absent && (changes_kind || step.after == FileState::Absent) {
            run(step, &|place| place.remove(step));
        }
    }
    // Folders before what is in them.
    for step in &steps {
        match &step.after {
            FileState::Absent => {}
            FileState::Folder { mode } => {
                folders.insert(step.path.0.clone(), *mode);
                run(step, &|place| place.make_folder(*mode | 0o700));
            }
            _ => run(step, &|place| place.put(step, store)),
        }
    }
    for step in steps.iter().rev() {
        if let Some(mode) = folders.get(&step.path.0) {
            run(step, &|place| place.set_mode(*mode));
        }
    }
    for step in closed.iter().rev().filter(|step| failed.contains_key(&step.path.0)) {
        let closed = Place::open(&step.path.0, &temporary)
            .and_then(|place| place.set_mode(step.before.folder_mode().unwrap_or(0)));
        if let Err(error) = closed {
            tracing::debug!(path = %step.path.0.display(), %error, "a folder does not get its mode back");
        }
    }
    let (mut done, mut left) = (Vec::new(), Vec::new());
    for step in steps {
        match failed.get(&step.path.0) {
            Some(why) => {
                left.push(PathReason { path: step.path.0.display().to_string(), why: why.clone() });
            }
            None => done.push(step),
        }
    }
    plan.conflicts.extend(left);
    let made = if done.is_empty() {
        None
    } else {
        let changes = done.clone();
        // What the user can mend, such as a full disk, leaves the rest for the next undo.
        let undoes = if can_be_repeated { Vec::new() } else { undoes };
        let mut new = NewRecord { kind: Some(kind), undoes, changes, ..NewRecord::default() };
        Some(records.append(&mut new, store)?)
    };
    plan.steps = done;
    fs::remove_file(intent_file(&records.path))?;
    Ok(made)
}
