//! What lists of sessions say of a live one.

use agentd_store::{Entry, EntryKind, SessionTree};
use tokio::sync::watch;

/// A live session in a few words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Whether a run is under way.
    pub is_streaming: bool,
    /// Its messages, of every branch.
    pub message_count: u64,
    /// When its last message was written, or it was made: Unix time in milliseconds.
    pub modified_ms: i64,
}

/// Keeps a [`Summary`] up to date where everyone can see it.
pub(crate) struct SummaryBoard {
    shown: watch::Sender<Summary>,
    /// How many entries of the tree are in it.
    counted: usize,
}

impl SummaryBoard {
    /// Shows what `tree` says.
    pub(crate) fn new(tree: &SessionTree) -> Self {
        let modified_ms = agentd_store::parse_timestamp(&tree.info().timestamp).unwrap_or_default();
        let shown = watch::Sender::new(Summary { modified_ms, ..Summary::default() });
        let mut board = Self { shown, counted: 0 };
        board.show(tree, false);
        board
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Summary> {
        self.shown.subscribe()
    }

    /// Brings it up to date; costs what was added to the tree since. Only a new name, a begin or an end of work wakes
    /// those who wait for changes.
    pub(crate) fn show(&mut self, tree: &SessionTree, is_streaming: bool) {
        let added = tree.entries().get(self.counted..).unwrap_or_default();
        self.counted = tree.entries().len();
        self.shown.send_if_modified(|shown| {
            let is_message = |entry: &&Entry| matches!(entry.kind(), EntryKind::Message(_));
            shown.message_count += added.iter().filter(is_message).count() as u64;
            let last = added.iter().rev().find(is_message).and_then(Entry::timestamp_ms);
            shown.modified_ms = last.unwrap_or(shown.modified_ms);
            let is_news = shown.is_streaming != is_streaming || shown.name.as_deref() != tree.name();
            if is_news {
                shown.is_streaming = is_streaming;
                shown.name = tree.name().map(str::to_owned);
            }
            is_news
        });
    }
}
