//! The intent log of a live session: each task writes what it is about to do before it does it.
//!
//! Records that belong to an entry are written together with it, by the journal.

use std::{
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use agentd_files::QuickAccess;
use agentd_store::{
    StoreError,
    intent_log::{AskRecord, CallsRecord, IntentLog, IntentRecord, NamedCall, RunRecord, UnfinishedWork},
};

use crate::{clock::now_ms, models::Choice};

/// The largest result that the intent log keeps, in bytes.
pub(crate) const MAX_RESULT: usize = 1 << 20;

/// The intent log of a live session; cheap to clone.
#[derive(Clone)]
pub(crate) struct SessionIntentLog {
    kept: Option<Arc<Kept>>,
    /// Writes to it, and to the session file.
    access: QuickAccess,
}

struct Kept {
    intent_log: Mutex<IntentLog>,
    /// Whether a run is over and the intent log has yet to be told.
    settling: AtomicBool,
}

impl SessionIntentLog {
    /// A intent log that recovery has looked at; of a session in memory there is none.
    pub(crate) fn of(intent_log: IntentLog) -> Self {
        let path = intent_log.path();
        let access = match intent_log.waits_for_disk() {
            true => QuickAccess::never(),
            false => QuickAccess::new(path.and_then(Path::parent).map(Path::to_owned)),
        };
        let is_kept = path.is_some();
        let kept = Kept { intent_log: Mutex::new(intent_log), settling: AtomicBool::new(false) };
        Self { kept: is_kept.then(|| Arc::new(kept)), access }
    }

    /// How it is written to, as its session's file is.
    pub(crate) fn access(&self) -> &QuickAccess {
        &self.access
    }

    /// The session file was just written to. Says what is about to happen, on this thread, which must be one that may block.
    ///
    /// # Errors
    /// [`StoreError`]: it must not happen then.
    pub(crate) fn intend_here(&self, records: &[IntentRecord]) -> Result<(), StoreError> {
        let Some(kept) = self.kept.as_deref() else { return Ok(()) };
        let mut intent_log = kept.lock();
        intent_log.arm();
        intent_log.intend(records)
    }

    /// Writes outcomes in the same way; failures are logged.
    pub(crate) fn note_here(&self, records: &[IntentRecord]) {
        if let Some(kept) = self.kept.as_deref().filter(|_| !records.is_empty()) {
            let mut intent_log = kept.lock();
            records.iter().for_each(|record| intent_log.note(record));
        }
    }

    /// Says what is about to happen.
    ///
    /// # Errors
    /// [`StoreError`]: it must not happen then. Cancel safety: dropped early, it is written or not.
    pub(crate) async fn intend(&self, records: Vec<IntentRecord>) -> Result<(), StoreError> {
        let Some(kept) = self.kept.clone() else { return Ok(()) };
        self.access.run(move || kept.lock().intend(&records)).await.unwrap_or(Ok(()))
    }

    /// Says what came of something; where that fails, it is logged.
    pub(crate) async fn note(&self, record: IntentRecord) {
        if let Some(kept) = self.kept.clone() {
            // It fails only when the runtime ends.
            let _ = self.access.run(move || kept.lock().note(&record)).await;
        }
    }

    /// Reads the work that is under way; `None` without an intent log.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    pub(crate) async fn left(&self) -> Result<Option<UnfinishedWork>, StoreError> {
        let Some(kept) = self.kept.clone() else { return Ok(None) };
        self.access.run(move || kept.lock().left()).await.unwrap_or(Ok(None))
    }

    /// Replaces all records by these.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be written, or removed: it is as it was.
    pub(crate) async fn replace(&self, records: Vec<IntentRecord>) -> Result<(), StoreError> {
        let Some(kept) = self.kept.clone() else { return Ok(()) };
        self.access.run(move || kept.lock().replace(&records)).await.unwrap_or(Ok(()))
    }

    /// The run is over. Returns at once; whatever is written next comes after it.
    pub(crate) fn settle(&self) {
        if let Some(kept) = self.kept.clone() {
            kept.settling.store(true, Ordering::Release);
            // Nobody waits: the intent log says nothing that the session file does not say better by now.
            self.access.start(move || drop(kept.lock()));
        }
    }

    /// Waits until nothing is left to be written, and removes the file if nothing is in it: the session leaves memory.
    pub(crate) async fn close(&self) {
        if let Some(kept) = self.kept.clone() {
            // It fails only when the runtime ends.
            let _ = self.access.run(move || kept.lock().close()).await;
        }
    }
}

impl Kept {
    /// The intent log, told of the end of the run if there was one.
    fn lock(&self) -> MutexGuard<'_, IntentLog> {
        let mut intent_log = self.intent_log.lock().unwrap_or_else(PoisonError::into_inner);
        if self.settling.load(Ordering::Acquire) {
            intent_log.settle();
            self.settling.store(false, Ordering::Release);
        }
        intent_log
    }
}

/// The intents of a run for the time after a message is stored; written with the message's entry.
#[derive(Default)]
pub(crate) struct Intents {
    /// The message is the first of its run.
    pub(crate) run: bool,
    /// The model is asked.
    pub(crate) ask: Option<Choice>,
    /// Calls in the message are made.
    pub(crate) calls: Vec<NamedCall>,
}

impl Intents {
    /// The records, for a message that has this entry.
    pub(crate) fn records(self, entry: &str) -> Vec<IntentRecord> {
        let Self { run, ask, calls } = self;
        let run = run.then(|| {
            IntentRecord::Run(RunRecord { at: now_ms(), entry: Some(entry.to_owned()), resumes: 0 })
        });
        let ask = ask.map(|choice| ask_record(&choice, Some(entry)));
        let calls =
            (!calls.is_empty()).then(|| IntentRecord::Calls(CallsRecord { entry: entry.to_owned(), calls }));
        run.into_iter().chain(ask).chain(calls).collect()
    }
}

/// The model is about to be asked, and this is the last entry that it is shown.
pub(crate) fn ask_record(choice: &Choice, after: Option<&str>) -> IntentRecord {
    let Choice { model, level } = choice;
    IntentRecord::Ask(AskRecord {
        at: now_ms(),
        after: after.map(str::to_owned),
        api: model.api.clone(),
        provider: model.provider.clone(),
        model: model.id.clone(),
        level: level.as_str().to_owned(),
    })
}
