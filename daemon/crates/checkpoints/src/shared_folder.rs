//! A folder that sessions work in: its index, shared by all of them, and the commands that run.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use agentd_protocol::checkpoints::PathReason;

use crate::{
    folder::{Changes, Entry, FolderLimits, Index, read_index},
    kept::{InUse, Kept},
    limits::UndoLimits,
    records,
    rules::Rules,
    state::{Change, FileState, ObjectId, StoredPath, Unkept},
    store::private_folder,
};

/// Names a command that runs.
pub(crate) type CommandNumber = u64;

#[derive(Default)]
struct Inner {
    index: Option<Index>,
    commands: BTreeMap<CommandNumber, Running>,
    last: CommandNumber,
    /// How often the store had been pruned at the last look.
    pruned: u64,
}

/// A command that runs, and what it changed so far.
#[derive(Default)]
struct Running {
    is_agent: bool,
    shared: bool,
    changes: BTreeMap<PathBuf, Change>,
    skipped: Vec<PathReason>,
    lacks_room: bool,
}

/// What a command changed.
#[derive(Debug, Default)]
pub(crate) struct CommandChanges {
    pub(crate) changes: Vec<Change>,
    pub(crate) skipped: Vec<PathReason>,
    pub(crate) shared: bool,
    pub(crate) lacks_room: bool,
}

/// The folder of one session or of several.
pub(crate) struct SharedFolder {
    kept: Arc<Kept>,
    pub(crate) root: PathBuf,
    limits: UndoLimits,
    left_out: Vec<PathBuf>,
    is_ready: AtomicBool,
    uncovered: OnceLock<String>,
    inner: Mutex<Inner>,
}

impl SharedFolder {
    pub(crate) fn new(kept: Arc<Kept>, root: PathBuf, limits: UndoLimits, left_out: Vec<PathBuf>) -> Self {
        Self {
            kept,
            root,
            limits,
            left_out,
            is_ready: AtomicBool::new(false),
            uncovered: OnceLock::new(),
            inner: Mutex::default(),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why commands in this folder are not covered: a sentence.
    pub(crate) fn uncovered(&self) -> Option<String> {
        let why = self.uncovered.get()?;
        Some(format!("Changes of shell commands in {} cannot be undone: {why}.", self.root.display()))
    }

    /// The same, as what is not kept of a command.
    pub(crate) fn uncovered_root(&self) -> Option<PathReason> {
        let why = format!("changes of shell commands in it are not kept: {}", self.uncovered.get()?);
        Some(PathReason { path: self.root.display().to_string(), why })
    }

    /// Makes the index, if that was not done yet.
    pub(crate) fn prepare(&self) {
        self.ready(&mut self.inner());
    }

    fn ready(&self, inner: &mut Inner) {
        if inner.index.is_some() || self.uncovered.get().is_some() {
            return;
        }
        let UndoLimits { max_file_bytes, max_total_bytes, max_files, respects_ignore_files, .. } =
            self.limits;
        let rules = Rules::new(&self.root, self.left_out.clone(), respects_ignore_files);
        let limits = FolderLimits { max_file_bytes, max_total_bytes, max_files };
        let made = Index::new(&self.root, rules, limits).map_err(|error| error.to_string());
        let made = made.and_then(|mut index| {
            if let Some(mut entries) = read_index(&self.file()) {
                entries.retain(|_, entry| match entry.state {
                    FileState::File { id, .. } => self.kept.store.has(id),
                    _ => true,
                });
                index.resume(entries);
            }
            index.baseline(&self.kept.store).map(|()| index)
        });
        match made {
            Ok(index) => {
                self.save(&index);
                inner.index = Some(index);
                self.is_ready.store(true, Ordering::Release);
            }
            Err(why) => self.give_up(why, inner),
        }
    }

    /// The folder is not covered from here on. Commands that run say so in their checkpoints.
    fn give_up(&self, why: String, inner: &mut Inner) {
        inner.index = None;
        self.is_ready.store(false, Ordering::Release);
        for command in inner.commands.values_mut().filter(|command| command.is_agent) {
            let path = self.root.display().to_string();
            command.skipped.push(PathReason { path, why: format!("not all of it is kept: {why}") });
        }
        tracing::warn!(folder = %self.root.display(), why, "changes of shell commands cannot be undone");
        // The first reason stays.
        let _ = self.uncovered.set(why);
    }

    /// Keeps the index for the next daemon, which then reads only what changed.
    fn save(&self, index: &Index) {
        let saved = (|| {
            private_folder(&self.kept.folder.join("folders"))?;
            let entries: Vec<(StoredPath, &Entry)> =
                index.entries.iter().map(|(path, entry)| (StoredPath(path.clone()), entry)).collect();
            let packed = zstd::bulk::compress(&serde_json::to_vec(&entries)?, 1)?;
            records::replace(&self.file(), &packed)
        })();
        if let Err(error) = saved {
            tracing::warn!(%error, "the index of a folder could not be stored");
        }
    }

    /// A command is about to start. What changed before it is of those that ran, or of the user.
    pub(crate) fn begin(&self, is_agent: bool) -> CommandNumber {
        let mut inner = self.inner();
        self.ready(&mut inner);
        self.sync(&mut inner, None);
        inner.last += 1;
        let number = inner.last;
        let shared = !inner.commands.is_empty();
        inner.commands.values_mut().for_each(|other| other.shared = true);
        inner.commands.insert(number, Running { is_agent, shared, ..Running::default() });
        number
    }

    /// A command ended.
    pub(crate) fn end(&self, number: CommandNumber) -> CommandChanges {
        let mut inner = self.inner();
        self.sync(&mut inner, Some(number));
        let Some(Running { changes, skipped, shared, lacks_room, .. }) = inner.commands.remove(&number)
        else {
            return CommandChanges::default();
        };
        CommandChanges { changes: changes.into_values().collect(), skipped, shared, lacks_room }
    }

    /// Looks at what changed, and notes it for the command that ends, or else the oldest of the agent's that runs.
    fn sync(&self, inner: &mut Inner, ending: Option<CommandNumber>) {
        let Inner { index: Some(index), pruned, .. } = inner else { return };
        let generation = self.kept.generation();
        if std::mem::replace(pruned, generation) != generation {
            index.look_for_room_again();
        }
        let Changes { changes, adopted, repositories, uncovered } = index.sync(&self.kept.store);
        if let Some(why) = uncovered {
            self.give_up(why, inner);
        }
        let commands = &mut inner.commands;
        let oldest = || commands.iter().find(|(_, it)| it.is_agent).or(commands.iter().next());
        let number = ending.or_else(|| oldest().map(|(number, _)| *number));
        let Some(command) = number.and_then(|number| commands.get_mut(&number)) else { return };
        for change in changes {
            command.take(change);
        }
        let skip = |path: PathBuf| PathReason {
            path: path.display().to_string(),
            why: "it was ignored or unreadable before".into(),
        };
        command.skipped.extend(adopted.into_iter().map(skip));
        if command.is_agent {
            let gone = |path: PathBuf| PathReason {
                path: path.display().to_string(),
                why: "it was deleted or moved, and what is git's own is not kept".into(),
            };
            command.skipped.extend(repositories.into_iter().map(gone));
        }
    }

    /// Runs the work of a tool that changes exactly the given paths, so that no command is taken for the cause.
    pub(crate) fn exclusively<T>(&self, work: impl FnOnce() -> (T, Vec<(PathBuf, FileState)>)) -> T {
        // While the index is made, the tool need not wait: the index finds the file before or after.
        if !self.is_ready.load(Ordering::Acquire) {
            return work().0;
        }
        let mut inner = self.inner();
        self.sync(&mut inner, None);
        let (done, states) = work();
        if let Some(index) = &mut inner.index {
            for (path, state) in states {
                index.note(&path, &state);
            }
        }
        done
    }

    /// Runs a restoring, so that no command is taken for its cause. What commands of other sessions changed before it is noted for
    /// them; what they change while it works is nobody's.
    pub(crate) fn while_restoring<T>(&self, work: impl FnOnce() -> T) -> T {
        let mut inner = self.inner();
        self.sync(&mut inner, None);
        let done = work();
        if let Some(index) = &mut inner.index {
            index.sync(&self.kept.store);
        }
        done
    }
}

impl InUse for SharedFolder {
    fn for_each_state(&self, each: &mut dyn FnMut(&FileState)) {
        let inner = self.inner();
        if let Some(index) = &inner.index {
            index.entries.values().for_each(|entry| each(&entry.state));
        }
        for change in inner.commands.values().flat_map(|command| command.changes.values()) {
            each(&change.before);
            each(&change.after);
        }
    }

    fn file(&self) -> PathBuf {
        let name = ObjectId::of(self.root.as_os_str().as_encoded_bytes()).to_hex();
        self.kept.folder.join("folders").join(&name[..32])
    }
}

impl Drop for SharedFolder {
    fn drop(&mut self) {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = inner.index.take() {
            self.save(&index);
        }
    }
}

impl Running {
    fn take(&mut self, change: Change) {
        if !self.is_agent {
            return;
        }
        if let Some(why) = change.unkept() {
            self.lacks_room |= why == Unkept::Full;
            self.skipped.push(PathReason { path: change.path.0.display().to_string(), why: why.to_string() });
            return;
        }
        match self.changes.entry(change.path.0.clone()) {
            std::collections::btree_map::Entry::Vacant(place) => drop(place.insert(change)),
            std::collections::btree_map::Entry::Occupied(mut place) => {
                place.get_mut().after = change.after;
                if place.get().before.is_same(&place.get().after) {
                    place.remove();
                }
            }
        }
    }
}
