//! The checkpoints of one session.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use agentd_protocol::checkpoints::{
    Checkpoint, CheckpointDiff, CheckpointKind, CheckpointList, DiffCheckpointParams, DiffSince, PathReason,
    RestoreCheckpointParams, RestoreStep, RestoredCheckpoint, UndoState,
};

use crate::{
    diff,
    kept::Kept,
    limits::UndoLimits,
    records::{Record, Records, number},
    restore::{self, Plan},
    services::UndoServices,
    shared_folder::SharedFolder,
    state::{Change, StoredPath},
};

/// Why checkpoints cannot be listed, shown or restored.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// No checkpoint has that id.
    #[error("There is no checkpoint {0} in this session.")]
    Unknown(String),
    /// The parameters of a restoring contradict each other.
    #[error("restore_checkpoint takes exactly one of checkpointId and step.")]
    Choice,
    /// The files that were named are none of those that changed.
    #[error("None of the files that were named is one that these checkpoints changed.")]
    OtherFiles,
    /// There is nothing to undo or redo.
    #[error("{0}")]
    Nothing(&'static str),
    /// The system's.
    #[error("what is kept for undo cannot be used: {0}")]
    Io(#[from] io::Error),
}

/// The session that checkpoints are of.
#[derive(Debug, Clone)]
pub struct SessionFacts {
    /// The session's id.
    pub id: String,
    /// The session's folder, absolute.
    pub cwd: PathBuf,
    /// The agent directory, which is never indexed; what is kept is below it.
    pub agent_dir: PathBuf,
}

/// How much less the thread that makes an index is scheduled than others.
const INDEX_NICENESS: i32 = 10;

/// Hears of new checkpoints. Called on a blocking thread.
pub type CheckpointSink = Box<dyn Fn(Checkpoint) + Send + Sync>;

/// Keeps what the tool calls of one session change. All methods block, but for those that say otherwise.
pub struct SessionCheckpoints {
    pub(crate) kept: Arc<Kept>,
    pub(crate) folder: Arc<SharedFolder>,
    pub(crate) limits: UndoLimits,
    id: String,
    pub(crate) prompt: Mutex<Option<String>>,
    /// The number of the last id that the session file names.
    last_id: Mutex<u64>,
    /// The message for which it was told last that commands are not covered.
    told_uncovered: Mutex<Option<Option<String>>>,
    /// With how often the store had been pruned when they were read.
    records: Mutex<Option<(u64, Records)>>,
    pub(crate) sink: OnceLock<CheckpointSink>,
}

impl SessionCheckpoints {
    /// Opens the checkpoints of a session.
    ///
    /// # Errors
    /// A sentence: what is kept cannot be opened.
    pub fn open(
        services: &UndoServices,
        facts: SessionFacts,
        limits: UndoLimits,
    ) -> Result<Arc<Self>, String> {
        let kept = services.open(&facts.agent_dir.join("undo"), &limits);
        let kept = kept.map_err(|error| {
            let folder = facts.agent_dir.join("undo");
            format!("Changes are not kept for undo: {} cannot be used: {error}.", folder.display())
        })?;
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let folder = services.folder(&kept, &real(&facts.cwd), limits, vec![real(&facts.agent_dir)]);
        Ok(Arc::new(Self {
            kept,
            folder,
            limits,
            id: facts.id,
            prompt: Mutex::default(),
            last_id: Mutex::default(),
            told_uncovered: Mutex::default(),
            records: Mutex::default(),
            sink: OnceLock::new(),
        }))
    }

    /// Sets who hears of new checkpoints, once. Never blocks.
    pub fn set_sink(&self, sink: CheckpointSink) {
        // The first one stays.
        let _ = self.sink.set(sink);
    }

    /// Sets the user's message that changes belong to from here on. Never blocks for long.
    pub fn set_prompt(&self, entry: Option<String>) {
        *self.prompt.lock().unwrap_or_else(PoisonError::into_inner) = entry;
    }

    /// Ids up to `last`, which the session file names, are not used again, whatever became of their checkpoints. Called before there
    /// are checkpoints; never blocks for long.
    pub fn continue_after(&self, last: &str) {
        let number = number(last).unwrap_or(0);
        let mut last_id = self.last_id.lock().unwrap_or_else(PoisonError::into_inner);
        *last_id = number.max(*last_id);
    }

    /// Makes the index of the session's folder, so that the first command need not wait for it. Lowers the priority of the calling
    /// thread for good: belongs on a thread of its own.
    pub fn prepare(&self) {
        // Without it the index takes more of the processor, and that is all.
        let _ = rustix::process::setpriority_process(None, INDEX_NICENESS);
        let using = self.kept.using();
        self.folder.prepare();
        drop(using);
        self.kept.tidy();
    }

    /// That commands are not covered, once for each of the user's messages.
    pub(crate) fn uncovered_to_tell(&self) -> Option<PathReason> {
        let uncovered = self.folder.uncovered_root()?;
        let prompt = self.prompt.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut told = self.told_uncovered.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = told.as_ref() != Some(&prompt);
        *told = Some(prompt);
        is_new.then_some(uncovered)
    }

    /// What `get_state` says. Never blocks.
    #[must_use]
    pub fn state(&self) -> UndoState {
        UndoState { enabled: true, uncovered: self.folder.uncovered() }
    }

    pub(crate) fn with_records<T>(
        &self,
        work: impl FnOnce(&mut Records) -> Result<T, CheckpointError>,
    ) -> Result<T, CheckpointError> {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = self.kept.generation();
        let mut loaded = match records.take() {
            Some((read, loaded)) if read == generation => loaded,
            pruned => {
                let mut loaded = Records::load(&self.kept.folder, &self.id)?;
                loaded.use_no_id_up_to(*self.last_id.lock().unwrap_or_else(PoisonError::into_inner));
                if let Some((_, before)) = pruned {
                    loaded.continue_after(before);
                }
                restore::resume(&mut loaded, &self.kept.store)?;
                loaded
            }
        };
        let done = work(&mut loaded);
        *records = Some((generation, loaded));
        done
    }

    /// All checkpoints of the session.
    ///
    /// # Errors
    /// [`CheckpointError::Io`].
    pub fn list(&self) -> Result<CheckpointList, CheckpointError> {
        let _using = self.kept.using();
        self.with_records(|records| {
            let undone = records.undone();
            let checkpoint = |record: &Record| Checkpoint {
                undone: undone.contains(record.checkpoint.id.as_str()),
                ..record.checkpoint.clone()
            };
            Ok(CheckpointList {
                checkpoints: records.all.iter().map(checkpoint).collect(),
                undo: records.to_undo(&[]).first().map(|record| record.checkpoint.id.clone()),
                redo: records.to_redo().map(|record| record.checkpoint.id.clone()),
            })
        })
    }

    /// What changed, as unified diffs.
    ///
    /// # Errors
    /// [`CheckpointError`].
    pub fn diff(&self, params: &DiffCheckpointParams) -> Result<CheckpointDiff, CheckpointError> {
        let _using = self.kept.using();
        self.with_records(|records| {
            let chosen: Vec<&Record> = match (&params.checkpoint_id, params.since) {
                (Some(id), _) => vec![find(records, id)?.1],
                (None, Some(DiffSince::Session)) => records.all.iter().collect(),
                (None, Some(DiffSince::Prompt) | None) => match records.to_undo(&[]).first() {
                    Some(first) => {
                        let at = find(records, &first.checkpoint.id)?.0;
                        records.all[at..].iter().collect()
                    }
                    None => Vec::new(),
                },
            };
            let skipped = chosen.iter().flat_map(|record| record.checkpoint.skipped.clone()).collect();
            let net = net_changes(&chosen, &self.kept.store)?;
            let net =
                net.into_iter().filter(|change| self.is_chosen(&change.path.0, params.files.as_deref()));
            let files = diff::show_all(net, &self.folder.root, &self.kept.store)?;
            Ok(CheckpointDiff { files, skipped })
        })
    }

    fn is_chosen(&self, path: &Path, files: Option<&[String]>) -> bool {
        files.is_none_or(|files| files.iter().any(|file| path.starts_with(self.folder.root.join(file))))
    }

    /// What undoing means: the plan, the kind of its checkpoint, and the checkpoints that are undone by it.
    fn plan(
        &self,
        records: &Records,
        params: &RestoreCheckpointParams,
    ) -> Result<(Plan, CheckpointKind, Vec<String>), CheckpointError> {
        let plan = |chosen: &[String], files: Option<&[String]>| match chosen.first() {
            Some(first) => {
                let from = find(records, first)?.0;
                let is_chosen = |path: &Path| self.is_chosen(path, files);
                Ok::<Plan, CheckpointError>(restore::plan(
                    &records.all[from..],
                    chosen,
                    &self.kept.store,
                    is_chosen,
                )?)
            }
            None => Ok(Plan::default()),
        };
        let files = params.files.as_deref();
        // Prompts whose changes are all back already, by hand for instance, are undone with the one before them.
        let mut passed: Vec<String> = Vec::new();
        loop {
            let (kind, chosen) = choose(records, params, &passed)?;
            if chosen.is_empty() && passed.is_empty() {
                return Err(CheckpointError::Nothing(match kind {
                    CheckpointKind::Redo => {
                        "There is nothing to redo: no undo is left that no tool call came after."
                    }
                    _ => {
                        "There is nothing to undo: no tool call of this session has changed a file that is kept."
                    }
                }));
            }
            let mut whole = plan(&chosen, None)?;
            whole.skipped = self.skipped(records, &chosen, None);
            if whole.is_empty() && params.step == Some(RestoreStep::Undo) && !chosen.is_empty() {
                passed.extend(chosen);
                continue;
            }
            let mut of_files = files.is_some().then(|| plan(&chosen, files)).transpose()?;
            if let Some(of_files) = &mut of_files {
                of_files.skipped = self.skipped(records, &chosen, files);
            }
            if of_files.as_ref().is_some_and(|plan| !plan.has_paths && plan.skipped.is_empty()) {
                return Err(CheckpointError::OtherFiles);
            }
            let undoes = match &of_files {
                // The other files can be undone later.
                Some(some) if !whole.is_covered_by(some) => Vec::new(),
                _ => chosen.into_iter().chain(passed).collect(),
            };
            return Ok((of_files.unwrap_or(whole), kind, undoes));
        }
    }

    /// What the chosen checkpoints changed and is not kept.
    fn skipped(&self, records: &Records, chosen: &[String], files: Option<&[String]>) -> Vec<PathReason> {
        let chosen = records.all.iter().filter(|record| chosen.contains(&record.checkpoint.id));
        let skipped = chosen.flat_map(|record| &record.checkpoint.skipped);
        skipped.filter(|skipped| self.is_chosen(Path::new(&skipped.path), files)).cloned().collect()
    }

    /// Undoes checkpoints.
    ///
    /// # Errors
    /// [`CheckpointError`]. Files that cannot be restored are no error: the answer names them.
    pub fn restore(&self, params: &RestoreCheckpointParams) -> Result<RestoredCheckpoint, CheckpointError> {
        if params.checkpoint_id.is_some() == params.step.is_some() {
            return Err(CheckpointError::Choice);
        }
        let _using = self.kept.using();
        let (answer, made) = self.with_records(|records| {
            if params.preview {
                let (plan, ..) = self.plan(records, params)?;
                return Ok((plan.answer(), None));
            }
            self.folder.while_restoring(|| {
                let (mut plan, kind, undoes) = self.plan(records, params)?;
                let made = restore::perform(&mut plan, kind, undoes, records, &self.kept.store)?;
                Ok((plan.answer(), made))
            })
        })?;
        if let (Some(checkpoint), Some(sink)) = (&made, self.sink.get()) {
            sink(checkpoint.clone());
        }
        Ok(RestoredCheckpoint { checkpoint: made, ..answer })
    }
}

/// The checkpoints to undo, oldest first, and what that is.
fn choose(
    records: &Records,
    params: &RestoreCheckpointParams,
    passed: &[String],
) -> Result<(CheckpointKind, Vec<String>), CheckpointError> {
    let id = |record: &Record| record.checkpoint.id.clone();
    Ok(match (&params.checkpoint_id, params.step) {
        (Some(first), _) => {
            let undone = records.undone();
            let later = records.all[find(records, first)?.0..].iter();
            let live = later.filter(|record| !undone.contains(record.checkpoint.id.as_str()));
            (CheckpointKind::Undo, live.map(id).collect())
        }
        (None, Some(RestoreStep::Redo)) => {
            (CheckpointKind::Redo, records.to_redo().map(id).into_iter().collect())
        }
        (None, _) => (CheckpointKind::Undo, records.to_undo(passed).into_iter().map(id).collect()),
    })
}

fn find<'a>(records: &'a Records, id: &str) -> Result<(usize, &'a Record), CheckpointError> {
    let at = records.all.iter().position(|record| record.checkpoint.id == id);
    let at = at.ok_or_else(|| CheckpointError::Unknown(id.to_owned()))?;
    Ok((at, &records.all[at]))
}

/// The changes of several checkpoints as one of each path; what came back to its first state is left out.
fn net_changes(records: &[&Record], store: &crate::Store) -> io::Result<Vec<Change>> {
    let mut net: std::collections::BTreeMap<StoredPath, Change> = std::collections::BTreeMap::new();
    for record in records {
        for change in Records::changes(record, store)? {
            match net.get_mut(&change.path) {
                Some(known) => known.after = change.after,
                None => drop(net.insert(change.path.clone(), change)),
            }
        }
    }
    Ok(net.into_values().filter(|change| !change.before.is_same(&change.after)).collect())
}
