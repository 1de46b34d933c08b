//! The summary of a live session for lists of sessions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agentd_protocol::{
    message::{ContentBlock, Message, MessageContent},
    model::ModelName,
    prompt_text::typed_words,
};
use agentd_store::{Entry, EntryKind, Role, SessionTree, model_of};

/// The characters of the user's first text that are kept.
const FIRST_MESSAGE_CHARS: usize = 200;

/// A short description of a live session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Whether a run is under way.
    pub is_streaming: bool,
    /// Whether something works for it: a run, a compaction, a command of the user.
    pub is_at_work: bool,
    /// Its messages, of every branch.
    pub message_count: u64,
    /// When it was made: Unix time in milliseconds.
    pub created_ms: i64,
    /// When its last message was written, or it was made: Unix time in milliseconds.
    pub modified_ms: i64,
    /// What the user typed first ([`typed_words`]), or its beginning; empty before it.
    pub first_message: String,
    /// Answers of models, of every branch.
    pub turns: u64,
    /// What was spent in it, in US dollars.
    pub cost: f64,
    /// The model of the last answer, else the one that was chosen last.
    pub model: Option<ModelName>,
    /// The session that it was forked from.
    pub parent_id: Option<String>,
}

/// Reads the summary of a live session.
#[derive(Debug, Clone, Default)]
pub(crate) struct SummaryReader(Arc<Mutex<Summary>>);

impl SummaryReader {
    pub(crate) fn get(&self) -> Summary {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Summary> {
        // Nothing that holds it can panic half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a [`Summary`] up to date.
pub(crate) struct SummaryCell {
    shown: SummaryReader,
    /// The number of entries that are counted.
    counted: usize,
}

impl SummaryCell {
    /// Shows what `tree` says.
    pub(crate) fn new(tree: &SessionTree, parent_id: Option<String>) -> Self {
        let created_ms = agentd_store::parse_timestamp(&tree.info().timestamp).unwrap_or_default();
        let begin = Summary { created_ms, modified_ms: created_ms, parent_id, ..Summary::default() };
        let mut cell = Self { shown: SummaryReader(Arc::new(Mutex::new(begin))), counted: 0 };
        cell.show(tree, false, false);
        cell
    }

    pub(crate) fn shown(&self) -> SummaryReader {
        self.shown.clone()
    }

    /// Brings it up to date; costs what was added to the tree since. True for news: a new name, a begin or an end of work.
    pub(crate) fn show(&mut self, tree: &SessionTree, is_streaming: bool, is_at_work: bool) -> bool {
        let added = tree.entries().get(self.counted..).unwrap_or_default();
        self.counted = tree.entries().len();
        let mut shown = self.shown.lock();
        shown.cost = tree.own_cost();
        shown.turns = tree.totals().assistant_messages;
        shown.message_count = tree.totals().total_messages;
        if let Some(model) = added.iter().rev().find_map(model_of) {
            shown.model = Some(ModelName { provider: model.provider, id: model.model_id });
        }
        let is_message = |entry: &&Entry| matches!(entry.kind(), EntryKind::Message(_));
        let last = added.iter().rev().find(is_message).and_then(Entry::timestamp_ms);
        shown.modified_ms = last.unwrap_or(shown.modified_ms);
        if shown.first_message.is_empty()
            && let Some(first) =
                added.iter().find(|entry| matches!(entry.kind(), EntryKind::Message(Role::User)))
        {
            shown.first_message = first_text(first);
        }
        let is_news = (shown.is_streaming, shown.is_at_work) != (is_streaming, is_at_work)
            || shown.name.as_deref() != tree.name();
        if is_news {
            shown.is_streaming = is_streaming;
            shown.is_at_work = is_at_work;
            shown.name = tree.name().map(str::to_owned);
        }
        is_news
    }
}

/// What the user typed of a message, cut to what lists need.
fn first_text(entry: &Entry) -> String {
    let Some(Message::User(message)) = entry.message().and_then(|message| message.get()) else {
        return String::new();
    };
    let text = match &message.content {
        MessageContent::Blocks(blocks) => {
            blocks.iter().filter_map(ContentBlock::as_text).collect::<Vec<_>>().join(" ")
        }
        content => content.text(),
    };
    let text = typed_words(&text);
    match text.char_indices().nth(FIRST_MESSAGE_CHARS) {
        Some((end, _)) => text[..end].to_owned(),
        None => text,
    }
}
