//! The session's transcript: the tree in memory, the context that follows from it, the file behind it.
//!
//! An entry goes to disk first, and into the tree when that worked.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use agentd_files::{AccessInterrupted, QuickAccess};
use agentd_protocol::{
    Json,
    command::{Entries, LastText},
    entry::{EntryBody, SessionEntry},
    error::{ErrorCode, Failure},
    message::{CustomMessage, Message, StopReason},
    model::Model,
    session::{ContextUsage, SessionStats},
};
use agentd_store::{
    Context, ContextMeter, Entry, EntryKind, LoadReport, ModelRef, NewEntry, OpenSession, SessionTree,
    SessionWriter, StatsCounter, StoreError, UnknownEntry, context_usage, estimate_tokens,
    intent_log::{DeliveredRecord, IntentRecord},
};

use super::intent_log::{Intents, SessionIntentLog};
use crate::{
    clock::now_ms,
    compaction::{CompactionError, Plan, PlanRequest, plan_compaction},
    event_log::LongContent,
    requests::{DISPOSITION_FIELD, KEY_FIELD, RequestKey, RequestRecord},
};

/// Which answers at the end of the context count as failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailedAnswer {
    /// One that ended with an error.
    WithError,
    /// One that ended with an error or was cut off.
    OrCutShort,
    /// One that was interrupted by a rule on the stream.
    Interrupted,
}

impl FailedAnswer {
    /// Whether an answer with this stop reason counts as failed.
    pub(crate) fn is(self, stop_reason: StopReason) -> bool {
        match self {
            Self::WithError => stop_reason == StopReason::Error,
            Self::OrCutShort => matches!(stop_reason, StopReason::Error | StopReason::Length),
            Self::Interrupted => stop_reason == StopReason::Aborted,
        }
    }
}

/// The transcript of a live session.
pub(crate) struct Journal {
    tree: SessionTree,
    context: Context,
    stats: StatsCounter,
    meter: ContextMeter,
    /// Only ever locked by the one append that is under way.
    writer: Arc<Mutex<SessionWriter>>,
    /// Appends to the file.
    access: QuickAccess,
    file: Option<PathBuf>,
    /// Whether this user may not write to the file.
    read_only: bool,
    intent_log: SessionIntentLog,
    /// The problems of the file when it was opened.
    report: LoadReport,
    /// The bytes of all entries.
    bytes: u64,
}

impl Journal {
    pub(crate) fn new(session: OpenSession, intent_log: SessionIntentLog) -> Self {
        let OpenSession { tree, writer, report } = session;
        let (file, read_only) = (writer.path().map(Path::to_owned), writer.is_read_only());
        Self {
            context: Context::new(&tree),
            bytes: tree.entries().iter().map(|entry| entry.line_len() as u64).sum(),
            tree,
            stats: StatsCounter::default(),
            meter: ContextMeter::default(),
            access: intent_log.access().clone(),
            intent_log,
            writer: Arc::new(Mutex::new(writer)),
            file,
            read_only,
            report,
        }
    }

    /// The problems of the file when it was opened.
    pub(crate) fn report(&self) -> &LoadReport {
        &self.report
    }

    /// The intent log.
    pub(crate) fn intent_log(&self) -> &SessionIntentLog {
        &self.intent_log
    }

    /// Whether entries can be added, as far as that is known before it is tried.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`].
    pub(crate) fn check_writable(&self) -> Result<(), StoreError> {
        match &self.file {
            Some(path) if self.read_only => Err(StoreError::ReadOnly { path: path.clone() }),
            _ => Ok(()),
        }
    }

    /// The session file, which appears with the first run.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The lines that wait in memory because there is no file yet.
    pub(crate) fn unsaved(&self) -> Option<Vec<u8>> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.unsaved().map(<[u8]>::to_vec)
    }

    /// The bytes of the entries of all branches.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All entries, of every branch.
    pub(crate) fn tree(&self) -> &SessionTree {
        &self.tree
    }

    /// Whether it is to have a file and has none yet.
    pub(crate) fn is_unsaved(&self) -> bool {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).unsaved().is_some()
    }

    /// Goes on after another entry, or with `None` before all; nothing is written.
    pub(crate) fn set_leaf(&mut self, id: Option<&str>) -> Result<(), UnknownEntry> {
        self.tree.set_leaf(id)?;
        self.context.follow(&self.tree);
        Ok(())
    }

    /// The model and the level that the branch says were last in use.
    pub(crate) fn choices(&self) -> (Option<&ModelRef>, Option<&str>) {
        (self.context.model(), self.context.thinking_level())
    }

    pub(crate) fn name(&self) -> Option<String> {
        self.tree.name().map(str::to_owned)
    }

    /// The messages of the context.
    pub(crate) fn messages(&self) -> &[Json<Message>] {
        self.context.messages()
    }

    /// The context.
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// The entries after one, or all; `None` when there is no such entry.
    pub(crate) fn entries(&self, since: Option<&str>) -> Option<EntryList> {
        let entries = self.tree.since(since)?.to_vec();
        Some(EntryList { entries, leaf_id: self.tree.leaf_id().map(str::to_owned) })
    }

    /// The text of the last answer, if it has any. One that was aborted before it had anything counts for nothing.
    pub(crate) fn last_text(&self) -> LastText {
        let last = self.messages().iter().rev().find_map(|message| match message.get()? {
            Message::Assistant(answer)
                if answer.stop_reason == StopReason::Aborted && answer.content.is_empty() =>
            {
                None
            }
            Message::Assistant(answer) => Some(answer.text().trim().to_owned()),
            _ => None,
        });
        LastText { text: last.filter(|text| !text.is_empty()) }
    }

    /// Counts over all entries, and how full a context window of that size is.
    pub(crate) fn stats(&mut self, context_window: u64) -> SessionStats {
        let window = (context_window > 0).then_some(context_window);
        self.stats.stats(&self.tree, &self.context, self.file.as_deref(), window)
    }

    /// The tokens of the context, as far as one can tell; asking again costs what was added since.
    pub(crate) fn tokens(&mut self) -> u64 {
        self.meter.tokens(&self.tree, &self.context)
    }

    /// The fill of a context window of that size; `None` where the size is not known.
    pub(crate) fn usage(&self, context_window: u64) -> Option<ContextUsage> {
        context_usage(&self.tree, &self.context, context_window)
    }

    /// The last answer in the context.
    pub(crate) fn last_answer(&self) -> Option<&Json<Message>> {
        self.messages().iter().rev().find(|message| matches!(message.get(), Some(Message::Assistant(_))))
    }

    /// Whether the last answer in the context was there before the context was last compacted.
    pub(crate) fn answer_precedes_compaction(&self) -> bool {
        let place = |at: usize| self.context.sources().get(at);
        let is_answer = |message: &Json<Message>| matches!(message.get(), Some(Message::Assistant(_)));
        // A compaction contributes a summary in any case, and in the first place.
        let first = place(0).and_then(|at| self.tree.entries().get(*at as usize));
        if first.is_none_or(|entry| entry.kind() != EntryKind::Compaction) {
            return false;
        }
        let answer = self.messages().iter().rposition(is_answer);
        answer.and_then(place) < place(0)
    }

    /// Plans a compaction.
    pub(crate) fn plan_compaction(&mut self, request: PlanRequest) -> Result<Plan, CompactionError> {
        let left_out = match request.overflow_retry {
            Some(_) => self.failed_at_the_end(FailedAnswer::OrCutShort),
            None => Vec::new(),
        };
        let tokens = self.tokens();
        plan_compaction(&self.tree, &self.context, tokens, request.keep_recent, &left_out)
    }

    /// Adds a compaction. The estimated tokens of the context from there on.
    pub(crate) async fn append_compaction(&mut self, body: &EntryBody) -> Result<u64, CompactionError> {
        if let EntryBody::Compaction { first_kept_entry_id, .. } = body
            && !self.tree.branch().iter().any(|entry| entry.id() == first_kept_entry_id)
        {
            return Err(CompactionError::Moved);
        }
        let entry =
            NewEntry::from_body(body).map_err(|error| CompactionError::NotStored(error.to_string()))?;
        let added = self.add(entry, false).await;
        added.map_err(|error| CompactionError::NotStored(error.to_string()))?;
        Ok(self.messages().iter().filter_map(Json::get).map(estimate_tokens).sum())
    }

    /// Adds a message that is told of afterwards. A run's first message, of whatever role, already makes the file, so that
    /// nobody is told of a message that is not on disk. `record` is what the entry says of the command that the message
    /// came by, `delivered` its number where it waited; `intents` is what the run does next, which goes into the intent log once the
    /// message is in the file.
    pub(crate) async fn append_told(
        &mut self,
        message: Json<Message>,
        record: Option<&RequestRecord>,
        delivered: Option<u64>,
        intents: Intents,
    ) -> Result<StoredMessage, StoreError> {
        let mut entry = match message.get() {
            Some(Message::Custom(custom)) => NewEntry::from_body(&custom_entry(custom.clone()))?,
            _ => NewEntry::message(message),
        };
        if let Some(RequestRecord { key, disposition }) = record {
            entry = entry.with(KEY_FIELD, key)?.with(DISPOSITION_FIELD, disposition)?;
        }
        let intents = move |entry: &str| intents.records(entry);
        self.add_with(entry, EntryExtras { make_file: true, delivered, intents, then: None }).await
    }

    /// Adds the entry of a message that stands for what a bug kept from being written; gives the message.
    pub(crate) async fn append_recovered(&mut self, entry: NewEntry) -> Result<Json<Message>, StoreError> {
        self.add(entry, true).await?;
        let message = self.tree.leaf().and_then(Entry::message).cloned();
        message.ok_or_else(|| StoreError::Encode(serde::ser::Error::custom("an entry without a message")))
    }

    /// Adds a message that no event tells of, with the key of the command that it came by; then the intent log is told.
    pub(crate) async fn append_message(
        &mut self,
        message: Json<Message>,
        key: Option<&RequestKey>,
        then: IntentRecord,
    ) -> Result<(), StoreError> {
        let mut entry = NewEntry::message(message);
        if let Some(key) = key {
            entry = entry.with(KEY_FIELD, key)?;
        }
        let around = EntryExtras {
            make_file: false,
            delivered: None,
            intents: |_: &str| Vec::new(),
            then: Some(then),
        };
        self.add_with(entry, around).await.map(drop)
    }

    /// Adds another kind of entry. It waits in memory as long as there is no file.
    pub(crate) async fn append(&mut self, body: &EntryBody) -> Result<(), Failure> {
        let entry = NewEntry::from_body(body).map_err(|error| store_failure(&error))?;
        self.add(entry, false).await.map_err(|error| store_failure(&error))
    }

    pub(crate) async fn set_name(&mut self, name: &str) -> Result<(), Failure> {
        self.add(NewEntry::session_info(name), false).await.map_err(|error| store_failure(&error))
    }

    /// Makes the session's file, with what waits for it. Nothing is done for a session in memory.
    ///
    /// # Errors
    /// It could not be written; there is none then.
    pub(crate) async fn make_file(&mut self) -> Result<(), Failure> {
        let writer = Arc::clone(&self.writer);
        let made = self.access.run(move || {
            let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
            if writer.is_on_disk() || writer.path().is_none() { Ok(()) } else { writer.create_now() }
        });
        let made = made.await.unwrap_or_else(|error| Err(interrupted(self.file.as_deref(), error)));
        made.map_err(|error| store_failure(&error))
    }

    /// The entries of the failed answer at the end of the context, and of results that belong to it.
    fn failed_at_the_end(&self, which: FailedAnswer) -> Vec<String> {
        let mut failed = Vec::new();
        let ids = self.context.sources().iter().map(|at| self.tree.entries()[*at as usize].id());
        for (message, id) in self.messages().iter().zip(ids).rev() {
            match message.get() {
                Some(Message::ToolResult(_)) => failed.push(id.to_owned()),
                Some(Message::Assistant(answer)) if which.is(answer.stop_reason) => {
                    failed.push(id.to_owned());
                    failed.reverse();
                    return failed;
                }
                _ => break,
            }
        }
        // No failed answer is at the end.
        Vec::new()
    }

    /// Leaves the failed answer at the end of the context, and results that belong to it, out of the context. The
    /// entries that say so.
    pub(crate) async fn omit_failed(
        &mut self,
        which: FailedAnswer,
    ) -> Result<Vec<Json<SessionEntry>>, StoreError> {
        let targets = self.failed_at_the_end(which);
        let mut entries = Vec::with_capacity(targets.len());
        for target_id in targets {
            let edit = EntryBody::ContextEdit { target_id, replacement: None };
            self.add(NewEntry::from_body(&edit)?, false).await?;
            if let Some(entry) = self.tree.leaf() {
                entries.push(entry.json()?);
            }
        }
        Ok(entries)
    }

    async fn add(&mut self, new: NewEntry, make_file: bool) -> Result<(), StoreError> {
        let around = EntryExtras { make_file, delivered: None, intents: |_: &str| Vec::new(), then: None };
        self.add_with(new, around).await.map(drop)
    }

    /// Adds an entry, and what belongs to it to the intent log.
    async fn add_with<F: FnOnce(&str) -> Vec<IntentRecord>>(
        &mut self,
        new: NewEntry,
        around: EntryExtras<F>,
    ) -> Result<StoredMessage, StoreError> {
        let EntryExtras { make_file, delivered, intents, then } = around;
        let entry = self.tree.prepare(new, now_ms());
        let writer = Arc::clone(&self.writer);
        let (intent_log, intents, id) = (self.intent_log.clone(), intents(entry.id()), entry.id().to_owned());
        let written = self.access.run(move || {
            let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
            // Before: a crash between the two is told from one after both by the entry.
            let delivered = delivered.map(|number| {
                let after = entry.parent_id().map(str::to_owned);
                IntentRecord::Delivered(DeliveredRecord { number, after })
            });
            intent_log.note_here(delivered.as_slice());
            writer.append(&entry)?;
            if make_file && !writer.is_on_disk() && writer.path().is_some() {
                writer.create_now()?;
            }
            let intended = if writer.is_on_disk() { intent_log.intend_here(&intents) } else { Ok(()) };
            intent_log.note_here(then.as_slice());
            Ok((entry, intended))
        });
        let (entry, intended) =
            written.await.unwrap_or_else(|error| Err(interrupted(self.file.as_deref(), error)))?;
        self.bytes += entry.line_len() as u64;
        self.tree.push(entry);
        self.context.follow(&self.tree);
        Ok(StoredMessage { entry: id, intended })
    }
}

/// The entry of a message of an extension.
pub(crate) fn custom_entry(message: CustomMessage) -> EntryBody {
    let CustomMessage { custom_type, content, display, details, timestamp: _ } = message;
    EntryBody::CustomMessage { custom_type, content, display, details }
}

/// What is written together with an entry.
struct EntryExtras<F> {
    /// Whether the session's file is begun for it.
    make_file: bool,
    /// The number of the message, where it waited in a queue.
    delivered: Option<u64>,
    /// Makes the records for the intent log from the entry's id, once it is stored.
    intents: F,
    /// Another record for the intent log, once the entry is stored.
    then: Option<IntentRecord>,
}

/// A message that was stored.
pub(crate) struct StoredMessage {
    /// The id of its entry.
    pub(crate) entry: String,
    /// Whether the intent log knows what is to follow.
    pub(crate) intended: Result<(), StoreError>,
}

/// Entries on their way to a client; cheap to make, since they share their texts with the tree.
pub(crate) struct EntryList {
    entries: Vec<Entry>,
    leaf_id: Option<String>,
}

impl EntryList {
    /// The approximate length of the answer, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.iter().map(Entry::line_len).sum()
    }

    /// The answer to `get_entries`, made when it is written.
    pub(crate) fn into_content(self) -> LongContent {
        LongContent::Entries { entries: self.entries, leaf_id: self.leaf_id }
    }

    /// The answer to `get_entries`. Copies every text.
    pub(crate) fn answer(&self) -> Result<Entries, Failure> {
        let entries: Result<Vec<Json<SessionEntry>>, StoreError> =
            self.entries.iter().map(Entry::json).collect();
        let entries = entries.map_err(|error| store_failure(&error))?;
        Ok(Entries { entries, leaf_id: self.leaf_id.clone() })
    }
}

/// The append did not come to its end: the runtime is ending, or a bug panicked.
fn interrupted(file: Option<&Path>, error: AccessInterrupted) -> StoreError {
    let path = file.map(Path::to_owned).unwrap_or_default();
    StoreError::Io { action: "write", path, source: std::io::Error::other(error) }
}

/// The entry that says which model goes on.
pub(crate) fn model_change(model: &Model) -> EntryBody {
    EntryBody::ModelChange { provider: model.provider.clone(), model_id: model.id.clone() }
}

/// The failure for an error of the session file.
pub(crate) fn store_failure(error: &StoreError) -> Failure {
    let code = match error {
        StoreError::Locked { .. } => ErrorCode::SessionLocked,
        StoreError::NotASession { .. } | StoreError::TooNew { .. } => ErrorCode::Unsupported,
        StoreError::InvalidSessionId | StoreError::LongSessionId { .. } => ErrorCode::InvalidField,
        StoreError::Encode(_) => ErrorCode::Internal,
        _ => ErrorCode::Io,
    };
    let failure = Failure::new(code, error.to_string());
    match error {
        StoreError::NotASession { .. } => failure.hint(
            "If it was a session once, agentctl fsck says what is left of it, and with --repair writes that into a copy.",
        ),
        StoreError::Cut { .. } => failure.hint(
            "The conversation is still in memory: agentctl fork copies it into a file of its own, agentctl export writes it down.",
        ),
        _ => failure,
    }
}

#[cfg(test)]
mod tests;
