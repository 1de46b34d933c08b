//! Gives files back what they were.
//!
//! Only what the agent left is replaced: a path whose present state is another one is a conflict, named and left. No path is
//! followed through a link: each folder of it is opened from the one above, and the change is made in that open folder. What is
//! about to be done is on the disk before it begins, so that a restoring that was killed is completed by the next look at the
//! session's checkpoints.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ffi::OsStr,
    fs::{self, File},
    io,
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
    path::{Component, Path, PathBuf},
};

use agentd_files::fail_point::{self, Point};
use agentd_protocol::checkpoints::{
    Checkpoint, CheckpointKind, PathReason, RestoredCheckpoint, RestoredPath,
};
use rustix::{
    fs::{AtFlags, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use crate::{
    capture::{Stat, capture_now, identify},
    records::{NewRecord, Record, Records, replace},
    state::{Change, FileState, ObjectId},
    store::{Store, private_folder, unique_name},
};

/// What a restoring does.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The states to replace, and those to put in their place.
    steps: Vec<Change>,
    conflicts: Vec<PathReason>,
}

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

impl Plan {
    pub(crate) fn answer(&self) -> RestoredCheckpoint {
        let restored =
            |step: &Change| RestoredPath { path: step.path.0.display().to_string(), change: step.kind() };
        RestoredCheckpoint {
            checkpoint: None,
            restored: self.steps.iter().map(restored).collect(),
            conflicts: self.conflicts.clone(),
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
    let mut plan = Plan::default();
    for (path, chain) in chains {
        let (Some(first), Some(last)) = (chain.first(), chain.last()) else { continue };
        let mut conflict = |why: &str| {
            plan.conflicts.push(PathReason { path: path.display().to_string(), why: why.to_owned() });
        };
        if chain.windows(2).any(|pair| !pair[0].after.is_same(&pair[1].before)) {
            conflict("somebody else changed it between the changes of the agent");
            continue;
        }
        let mut now = identify(&path, [&first.before, &last.after]);
        if now.is_same(&first.before) {
            continue;
        }
        if !now.is_same(&last.after) {
            conflict("it was changed since");
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
    Ok(plan)
}

impl Plan {
    /// Whether everything is as it was before the changes to undo.
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.conflicts.is_empty()
    }

    /// Whether a plan for the same checkpoints, made for some paths alone, leaves nothing out that this one has.
    pub(crate) fn is_covered_by(&self, other: &Self) -> bool {
        (self.steps.len(), self.conflicts.len()) == (other.steps.len(), other.conflicts.len())
    }
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
        let new = NewRecord { kind: Some(kind), undoes, ..NewRecord::default() };
        return records.append(new, store).map(Some);
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
        let new = NewRecord { kind: Some(kind), undoes, changes, ..NewRecord::default() };
        Some(records.append(new, store)?)
    };
    plan.steps = done;
    fs::remove_file(intent_file(&records.path))?;
    Ok(made)
}

/// The open folder of a path, and its name in there.
struct Place<'a> {
    folder: OwnedFd,
    name: &'a OsStr,
    path: &'a Path,
    temporary: &'a str,
}

impl<'a> Place<'a> {
    /// Opens the folder of an absolute path, following no link.
    fn open(path: &'a Path, temporary: &'a str) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut folder = rustix::fs::open("/", flags, Mode::empty())?;
        for part in path.parent().into_iter().flat_map(Path::components) {
            if let Component::Normal(name) = part {
                folder = rustix::fs::openat(&folder, name, flags, Mode::empty())?;
            }
        }
        Ok(Self { folder, name, path, temporary })
    }

    /// Checks that what is there is what the plan saw.
    fn check(&self, step: &Change) -> io::Result<bool> {
        let now = identify(self.path, [&step.before, &step.after]);
        if now.is_same(&step.after) {
            return Ok(false);
        }
        if now.is_same(&step.before)
            || matches!(step.before, FileState::Folder { .. }) && matches!(now, FileState::Folder { .. })
        {
            return Ok(true);
        }
        Err(io::Error::other("it was changed since"))
    }

    fn remove(&self, step: &Change) -> io::Result<()> {
        if !self.check(step)? {
            return Ok(());
        }
        let flags = match step.before {
            FileState::Folder { .. } => AtFlags::REMOVEDIR,
            _ => AtFlags::empty(),
        };
        match rustix::fs::unlinkat(&self.folder, self.name, flags) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) => {
                Err(io::Error::other("the folder has files that the agent did not make"))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn make_folder(&self, mode: u32) -> io::Result<()> {
        match rustix::fs::mkdirat(&self.folder, self.name, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => self.set_mode(mode),
            Err(error) => Err(error.into()),
        }
    }

    /// Sets the mode of a folder.
    fn set_mode(&self, mode: u32) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.folder, self.name, flags, Mode::empty()) {
            Ok(folder) => Ok(rustix::fs::fchmod(folder, Mode::from_raw_mode(mode))?),
            // A folder that nobody may read.
            Err(Errno::ACCESS) => {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let folder = rustix::fs::openat(&self.folder, self.name, flags, Mode::empty())?;
                // Such a descriptor takes no mode, but leads to this very folder, whatever has its name by now.
                let itself = format!("/proc/self/fd/{}", folder.as_raw_fd());
                Ok(rustix::fs::chmod(itself, Mode::from_raw_mode(mode))?)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Puts a file or a link in place, in one step.
    fn put(&self, step: &Change, store: &Store) -> io::Result<()> {
        // The folder or file of another kind is gone by now.
        let is_gone = Stat::at(self.path)?.is_none();
        if !is_gone && !self.check(step)? {
            return Ok(());
        }
        let made = match &step.after {
            FileState::Link(target) => {
                rustix::fs::symlinkat(target.as_ref(), &self.folder, self.temporary).map_err(io::Error::from)
            }
            FileState::File { id, mode, mtime, .. } => self.write(*id, *mode, *mtime, store),
            _ => return Err(io::Error::other("its content is not kept")),
        };
        let put = made
            .and_then(|()| Ok(rustix::fs::renameat(&self.folder, self.temporary, &self.folder, self.name)?));
        if put.is_err() {
            // The first error says what is wrong.
            let _ = rustix::fs::unlinkat(&self.folder, self.temporary, AtFlags::empty());
        }
        put
    }

    fn write(&self, id: ObjectId, mode: u32, mtime: i64, store: &Store) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.folder, self.temporary, flags, Mode::from_raw_mode(0o600))?;
        let mut file = File::from(file);
        store.read(id, &mut file)?;
        rustix::fs::fchmod(file.as_fd(), Mode::from_raw_mode(mode))?;
        let times = Timestamps {
            last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            last_modification: Timespec {
                tv_sec: mtime.div_euclid(1_000_000_000),
                tv_nsec: mtime.rem_euclid(1_000_000_000) as _,
            },
        };
        Ok(rustix::fs::futimens(&file, &times)?)
    }
}

/// What restoring does to the paths of a kind, for tests.
#[cfg(test)]
pub(crate) fn count(answer: &RestoredCheckpoint, kind: agentd_protocol::checkpoints::ChangeKind) -> usize {
    answer.restored.iter().filter(|path| path.change == kind).count()
}
