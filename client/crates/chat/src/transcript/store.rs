//! The entries, and the rows of those that were on the screen lately.

use std::collections::{HashMap, VecDeque};

use agentd_protocol::{Json, message::Message};
use ratatui_core::text::Line;

use super::{
    convert::entries_of,
    entry::{Entry, ToolState},
    image::{CellSize, TerminalImages},
    layout,
    markdown::GrowingText,
};

/// How many messages are made entries at once when earlier ones come on the screen.
const PAGE: usize = 200;

/// How many entries keep their rows.
const MOST_LAID: usize = 400;

/// The conversation. Entries have numbers that stay theirs when earlier ones are put in front.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    pub(super) items: VecDeque<Item>,
    /// The number of the first item.
    pub(super) first: i64,
    /// Messages that come before the first item, and have not been looked at.
    older: Vec<Json<Message>>,
    laid: HashMap<i64, Laid>,
    images: TerminalImages,
    pub(super) top: Option<Top>,
    /// The rows that the screen shows of it, as last drawn.
    pub(super) height: usize,
    pub(super) width: usize,
    /// Whether all that can be unfolded is.
    unfolded: bool,
}

/// The first row on the screen, where it does not follow the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Top {
    pub(super) item: i64,
    pub(super) row: usize,
}

#[derive(Debug)]
pub(super) struct Item {
    pub(super) entry: Entry,
    revision: u32,
}

#[derive(Debug)]
struct Laid {
    key: (usize, u32, bool, bool),
    rows: Vec<Line<'static>>,
    growing: Option<GrowingText>,
    gap: bool,
}

impl Laid {
    fn rows(&self) -> &[Line<'static>] {
        self.growing.as_ref().map_or(&self.rows, GrowingText::rows)
    }
}

impl Transcript {
    /// A conversation of stored messages. The last page of them is made entries.
    pub(crate) fn of(messages: Vec<Json<Message>>) -> Self {
        let mut transcript = Self { older: messages, ..Self::default() };
        transcript.load_older();
        transcript
    }

    /// Takes the messages of another conversation, or of another branch, on the same screen.
    pub(crate) fn replace(&mut self, messages: Vec<Json<Message>>) {
        let before = std::mem::replace(self, Self::of(messages));
        (self.images, self.width, self.height) = (before.images, before.width, before.height);
    }

    /// Takes the size of a cell in pixels; `None` where the terminal draws no images.
    pub(crate) fn set_cell(&mut self, cell: Option<CellSize>) {
        if self.images.set_cell(cell) {
            self.laid.clear();
        }
    }

    /// The sequences with which the terminal draws the images that are laid out now.
    pub(crate) fn take_image_sequences(&mut self) -> String {
        self.images.take()
    }

    /// The sequences that have the terminal forget the images.
    pub(crate) fn forget_images(&mut self) -> String {
        self.laid.clear();
        self.images.forget()
    }

    /// Makes entries of the page of messages before the first entry; false where there are none.
    pub(super) fn load_older(&mut self) -> bool {
        if self.older.is_empty() {
            return false;
        }
        let mut from = self.older.len().saturating_sub(PAGE);
        // A page begins with a message of the user, so that results of tools are on the page of their calls.
        while from > 0 && !matches!(self.older[from].get(), Some(Message::User(_))) {
            from -= 1;
        }
        let page = self.older.split_off(from);
        for entry in entries_of(&page).into_iter().rev() {
            self.items.push_front(Item { entry, revision: 0 });
            self.first -= 1;
        }
        true
    }

    /// Appends an entry; gives its number.
    pub(crate) fn push(&mut self, entry: Entry) -> i64 {
        self.items.push_back(Item { entry, revision: 0 });
        self.first + self.items.len() as i64 - 1
    }

    /// Changes an entry.
    pub(crate) fn change(&mut self, number: i64, change: impl FnOnce(&mut Entry)) {
        let Some(item) = self.index(number).and_then(|at| self.items.get_mut(at)) else { return };
        change(&mut item.entry);
        item.revision += 1;
    }

    /// Appends to the text of an answer or of thinking.
    pub(crate) fn append(&mut self, number: i64, delta: &str) {
        self.change(number, |entry| {
            if let Entry::Answer { text, .. } | Entry::Thinking { text, .. } = entry {
                text.push_str(delta);
            }
        });
    }

    pub(super) fn index(&self, number: i64) -> Option<usize> {
        usize::try_from(number - self.first).ok()
    }

    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The number of the latest call with that id. Searched from the end: calls end soon after they begin.
    pub(crate) fn tool(&self, id: &str) -> Option<i64> {
        let at =
            self.items.iter().rposition(|item| matches!(&item.entry, Entry::Tool(call) if call.id == id))?;
        Some(self.first + at as i64)
    }

    /// The messages of the user that are entries, oldest first.
    pub(crate) fn prompts(&self) -> impl Iterator<Item = &str> {
        self.items.iter().filter_map(|item| match &item.entry {
            Entry::User { text, .. } => Some(text.as_str()),
            _ => None,
        })
    }

    /// Unfolds everything that is folded, or folds it again.
    pub(crate) fn toggle_unfolded(&mut self) {
        self.unfolded = !self.unfolded;
    }

    /// The number of the entry behind the last.
    pub(super) fn end(&self) -> i64 {
        self.first + self.items.len() as i64
    }

    /// The number of rows of an entry, a blank one before it included.
    pub(super) fn rows_of(&mut self, number: i64) -> usize {
        self.lay(number).map_or(0, |laid| laid.rows().len() + usize::from(laid.gap))
    }

    /// A row of an entry that was laid out; `None` for the blank one before it.
    pub(super) fn row(&self, number: i64, row: usize) -> Option<&Line<'static>> {
        let laid = self.laid.get(&number)?;
        laid.rows().get(row.checked_sub(usize::from(laid.gap))?)
    }

    fn lay(&mut self, number: i64) -> Option<&Laid> {
        let at = self.index(number)?;
        let item = self.items.get(at)?;
        let gap = at.checked_sub(1).is_some_and(|before| !item.entry.joins(&self.items[before].entry));
        let is_unfolded = self.unfolded && item.entry.can_unfold();
        let key = (self.width, item.revision, is_unfolded, gap);
        let is_timed =
            matches!(&item.entry, Entry::Tool(call) if matches!(call.state, ToolState::Running(_)));
        if !is_timed && self.laid.get(&number).is_some_and(|laid| laid.key == key) {
            return self.laid.get(&number);
        }
        let laid = match &item.entry {
            Entry::Answer { text, is_complete: false } => {
                let kept = self.laid.remove(&number).filter(|laid| laid.key.0 == self.width);
                let growing = kept.and_then(|laid| laid.growing);
                let mut growing = growing.unwrap_or_else(|| GrowingText::new(self.width));
                growing.grow(text);
                Laid { key, rows: Vec::new(), growing: Some(growing), gap }
            }
            Entry::Image(image) => {
                let rows = self.images.rows(image, self.width);
                Laid { key, rows, growing: None, gap }
            }
            entry => Laid { key, rows: layout::rows(entry, self.width, is_unfolded), growing: None, gap },
        };
        if self.laid.len() >= MOST_LAID {
            // Rows of entries that are far away are made again when they come near.
            self.laid.retain(|known, _| (known - number).abs() < MOST_LAID as i64 / 4);
        }
        self.laid.insert(number, laid);
        self.laid.get(&number)
    }
}
