//! Plans a restoring: what is replaced, and what is a conflict.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
};

use agentd_protocol::checkpoints::{PathReason, RestoredCheckpoint, RestoredPath};

use super::place::NOT_EMPTY;
use crate::{
    capture::{capture_now, identify},
    records::{Record, Records},
    state::{Change, FileState},
    store::Store,
};

/// What a restoring does.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The states to replace, and those to put in their place.
    pub(super) steps: Vec<Change>,
    pub(super) conflicts: Vec<PathReason>,
    /// What was changed and is not kept.
    pub(crate) skipped: Vec<PathReason>,
    /// Whether any path is one that was asked for.
    pub(crate) has_paths: bool,
}

impl Plan {
    pub(crate) fn answer(&self) -> RestoredCheckpoint {
        let restored =
            |step: &Change| RestoredPath { path: step.path.0.display().to_string(), change: step.kind() };
        RestoredCheckpoint {
            checkpoint: None,
            restored: self.steps.iter().map(restored).collect(),
            conflicts: self.conflicts.clone(),
            skipped: self.skipped.clone(),
        }
    }
}

/// Plans to undo those of `records` that `chosen` names. Later records of the same paths are undone with them; a path that somebody
/// else changed in between or since is a conflict.
pub(crate) fn plan(
    records: &[Record],
    chosen: &[String],
    store: &Store,
    wanted: impl Fn(&Path) -> bool,
) -> io::Result<Plan> {
    let chosen: HashSet<&str> = chosen.iter().map(String::as_str).collect();
    let has_gaps = records.iter().any(|record| !record.checkpoint.skipped.is_empty());
    let (between, since) = if has_gaps {
        (
            "it was changed between the changes of the agent, by somebody else or by a call whose changes are not kept",
            "it was changed since, by somebody else or by a call whose changes are not kept",
        )
    } else {
        ("somebody else changed it between the changes of the agent", "it was changed since")
    };
    let mut chains: BTreeMap<PathBuf, Vec<Change>> = BTreeMap::new();
    for record in records {
        let is_chosen = chosen.contains(record.checkpoint.id.as_str());
        for change in Records::changes(record, store)? {
            match chains.get_mut(&change.path.0) {
                Some(chain) => chain.push(change),
                None if is_chosen && wanted(&change.path.0) => {
                    chains.insert(change.path.0.clone(), vec![change]);
                }
                None => {}
            }
        }
    }
    let mut plan = Plan { has_paths: !chains.is_empty(), ..Plan::default() };
    for (path, chain) in chains {
        let (Some(first), Some(last)) = (chain.first(), chain.last()) else { continue };
        let mut conflict = |why: &str| {
            plan.conflicts.push(PathReason { path: path.display().to_string(), why: why.to_owned() });
        };
        if chain.windows(2).any(|pair| !pair[0].after.is_same(&pair[1].before)) {
            conflict(between);
            continue;
        }
        let mut now = identify(&path, [&first.before, &last.after]);
        if now.is_same(&first.before) {
            continue;
        }
        if !now.is_same(&last.after) {
            conflict(since);
            continue;
        }
        if let FileState::File { id, .. } = now
            && !store.has(id)
        {
            // Nothing is replaced that is not in the store.
            now = capture_now(&path, store, u64::MAX);
            if !now.is_same(&last.after) {
                conflict("what it is now cannot be kept, so that a redo could not bring it back");
                continue;
            }
        }
        plan.steps.push(Change { path: last.path.clone(), before: now, after: first.before.clone() });
    }
    plan.leave_what_is_hindered();
    Ok(plan)
}

impl Plan {
    /// Makes conflicts of folders that are to go and have other files, and of files whose folder is not there and does not come back.
    fn leave_what_is_hindered(&mut self) {
        let is_folder = |state: &FileState| matches!(state, FileState::Folder { .. });
        let goes = |step: &&Change| {
            step.after == FileState::Absent || is_folder(&step.before) != is_folder(&step.after)
        };
        let mut leaving: HashSet<&Path> =
            self.steps.iter().filter(goes).map(|step| step.path.0.as_path()).collect();
        let mut hindered: HashMap<PathBuf, &str> = HashMap::new();
        // What is in a folder has its turn before the folder.
        for step in self.steps.iter().rev().filter(goes).filter(|step| is_folder(&step.before)) {
            // What cannot be listed is tried.
            let Ok(mut listing) = fs::read_dir(&step.path.0) else { continue };
            if listing.any(|entry| entry.is_ok_and(|entry| !leaving.contains(entry.path().as_path()))) {
                leaving.remove(step.path.0.as_path());
                hindered.insert(step.path.0.clone(), NOT_EMPTY);
            }
        }
        let mut made: HashSet<&Path> = HashSet::new();
        for step in self.steps.iter().filter(|step| step.after != FileState::Absent) {
            let path = step.path.0.as_path();
            let is_there = path.parent().is_none_or(|folder| {
                made.contains(folder) || fs::symlink_metadata(folder).is_ok_and(|about| about.is_dir())
            });
            if !is_there {
                hindered.entry(path.to_owned()).or_insert("its folder is gone, or is none by now");
            } else if is_folder(&step.after) && !hindered.contains_key(path) {
                made.insert(path);
            }
        }
        let steps = std::mem::take(&mut self.steps);
        for step in steps {
            match hindered.get(&step.path.0) {
                Some(why) => self
                    .conflicts
                    .push(PathReason { path: step.path.0.display().to_string(), why: (*why).to_owned() }),
                None => self.steps.push(step),
            }
        }
        self.conflicts.sort_by(|one, other| one.path.cmp(&other.path));
    }

    /// Whether everything is as it was before the changes to undo.
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.conflicts.is_empty() && self.skipped.is_empty()
    }

    /// Whether a plan for the same checkpoints, made for some paths alone, leaves nothing out that this one has.
    pub(crate) fn is_covered_by(&self, other: &Self) -> bool {
        let counts = |plan: &Self| (plan.steps.len(), plan.conflicts.len(), plan.skipped.len());
        counts(self) == counts(other)
    }
}
