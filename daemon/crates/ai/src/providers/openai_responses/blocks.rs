//! Tracks the blocks of an answer of the responses API.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::{
    api_types::{OutputItem, json_text, parts},
    signature::{TextSignature, compact},
};
use crate::{BlockKind, BlockSeal, Delta};

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Thinking,
    Call,
}

impl Kind {
    /// The kind of block that an item becomes; `None` for items that become none.
    fn of(item: &OutputItem<'_>) -> Option<Self> {
        match item.kind.as_deref()? {
            "message" => Some(Self::Text),
            "reasoning" => Some(Self::Thinking),
            "function_call" => Some(Self::Call),
            _ => None,
        }
    }
}

/// The item that an event names. Servers leave out the index, the id or both; the id may even change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key<'a> {
    pub(super) output_index: Option<u64>,
    /// May be empty.
    pub(super) item_id: &'a str,
}

/// All blocks of one answer.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Blocks {
    count: usize,
    has_calls: bool,
    open: Vec<Block>,
    done_ids: HashSet<String>,
    done_indices: HashSet<u64>,
}

/// An open block.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct Block {
    index: usize,
    kind: Kind,
    output_index: Option<u64>,
    item_id: String,
    seen: Seen,
    /// Whether a blank line is due before the next part.
    break_due: bool,
}

/// A hash of the text so far, in place of the text.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct Seen {
    length: usize,
    hash: u64,
}

impl Seen {
    fn new() -> Self {
        Self { length: 0, hash: 0xcbf2_9ce4_8422_2325 }
    }

    /// FNV-1a, which gives the same hash however the text is cut.
    fn add(&mut self, text: &str) {
        self.length += text.len();
        self.hash = text
            .bytes()
            .fold(self.hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    }

    /// The rest of `whole` after the text so far; `None` if `whole` begins differently.
    fn rest<'t>(&self, whole: &'t str) -> Option<&'t str> {
        let (beginning, rest) = whole.split_at_checked(self.length)?;
        let mut again = Self::new();
        again.add(beginning);
        (again.hash == self.hash).then_some(rest)
    }
}

impl Block {
    fn extend(&mut self, mut delta: String, out: &mut Vec<Delta>) {
        if delta.is_empty() {
            return;
        }
        if std::mem::take(&mut self.break_due) && self.seen.length > 0 {
            delta.insert_str(0, "\n\n");
        }
        self.seen.add(&delta);
        out.push(Delta::Extend { index: self.index, delta });
    }

    /// Adds the missing rest of `whole`. Text that differs from `whole` stays.
    fn complete(&mut self, whole: &str, out: &mut Vec<Delta>) {
        match self.seen.rest(whole) {
            Some(rest) => {
                self.break_due = false;
                self.extend(rest.to_owned(), out);
            }
            None => tracing::debug!(index = self.index, "the pieces of a block differ from its final text"),
        }
    }
}

impl Blocks {
    /// Whether no content has come.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// Starts an item.
    pub(super) fn added(&mut self, output_index: Option<u64>, item: &OutputItem<'_>, out: &mut Vec<Delta>) {
        let Some(kind) = Kind::of(item) else { return };
        let key = Key { output_index, item_id: item.id.as_deref().unwrap_or_default() };
        let twice = !key.item_id.is_empty()
            && self
                .open
                .iter()
                .any(|block| block.output_index == output_index && block.item_id == key.item_id);
        if !twice {
            self.begin(kind, key, item, out);
        }
    }

    /// Adds a piece of an item.
    pub(super) fn extend(&mut self, kind: Kind, key: Key<'_>, delta: String, out: &mut Vec<Delta>) {
        let found = match self.find(kind, key) {
            Some(at) => Some(at),
            // The start event is missing. A call without it waits for its end, which has its name.
            None if kind != Kind::Call && !self.is_done(key) => {
                self.begin(kind, key, &OutputItem::default(), out)
            }
            None => None,
        };
        match found {
            Some(at) => self.open[at].extend(delta, out),
            None => tracing::debug!(?kind, ?key, "a piece of an item that is not open"),
        }
    }

    /// Starts or ends a part of reasoning.
    pub(super) fn part_break(&mut self, key: Key<'_>) {
        if let Some(at) = self.find(Kind::Thinking, key) {
            self.open[at].break_due = true;
        }
    }

    /// Takes the whole text of an item's part, whose end may still come.
    pub(super) fn complete(&mut self, kind: Kind, key: Key<'_>, whole: &str, out: &mut Vec<Delta>) {
        match self.find(kind, key) {
            Some(at) => self.open[at].complete(whole, out),
            None => tracing::debug!(?kind, ?key, "the text of an item that is not open"),
        }
    }

    /// Completes an item.
    ///
    /// # Errors
    /// Fails when the item is not an object.
    pub(super) fn done(
        &mut self,
        output_index: Option<u64>,
        raw: &RawValue,
        out: &mut Vec<Delta>,
    ) -> Result<(), serde_json::Error> {
        let item: OutputItem<'_> = serde_json::from_str(raw.get())?;
        let Some(kind) = Kind::of(&item) else { return Ok(()) };
        let key = Key { output_index, item_id: item.id.as_deref().unwrap_or_default() };
        let found = match self.find(kind, key) {
            Some(at) => Some(at),
            None if self.is_done(key) => None,
            None => self.begin(kind, key, &item, out),
        };
        if let Some(at) = found {
            self.finish(at, key, &item, raw, out);
        }
        Ok(())
    }

    /// Takes the list of items at the end of an answer: completes those that no event has completed.
    ///
    /// # Errors
    /// Fails when an item is not an object.
    pub(super) fn listed(
        &mut self,
        items: &[&RawValue],
        out: &mut Vec<Delta>,
    ) -> Result<(), serde_json::Error> {
        let fresh = self.is_empty();
        for (place, raw) in (0..).zip(items) {
            if fresh {
                self.done(Some(place), raw, out)?;
                continue;
            }
            if self.open.is_empty() {
                break;
            }
            let item: OutputItem<'_> = serde_json::from_str(raw.get())?;
            let item_id = item.id.as_deref().unwrap_or_default();
            let key = Key { output_index: item_id.is_empty().then_some(place), item_id };
            if let Some(at) = Kind::of(&item).and_then(|kind| self.find(kind, key)) {
                self.finish(at, key, &item, raw, out);
            }
        }
        Ok(())
    }

    /// Seals the open blocks, in the order of the content.
    pub(super) fn seal(&mut self, incomplete: bool, out: &mut Vec<Delta>) {
        self.open.sort_by_key(|block| block.index);
        for block in self.open.drain(..) {
            let seal = BlockSeal { incomplete, ..BlockSeal::default() };
            out.push(Delta::Seal { index: block.index, seal });
        }
    }

    /// Opens a block and gives its index among the open ones; `None` for a call without id or name.
    fn begin(
        &mut self,
        kind: Kind,
        key: Key<'_>,
        item: &OutputItem<'_>,
        out: &mut Vec<Delta>,
    ) -> Option<usize> {
        let block = match kind {
            Kind::Text => BlockKind::Text,
            Kind::Thinking => BlockKind::Thinking,
            Kind::Call => {
                let name = item.name.as_deref().filter(|name| !name.is_empty())?.to_owned();
                let id = match item.call_id.as_deref().filter(|id| !id.is_empty()) {
                    Some(call) if key.item_id.is_empty() => call.to_owned(),
                    Some(call) => format!("{call}|{}", key.item_id),
                    None if key.item_id.is_empty() => return None,
                    None => key.item_id.to_owned(),
                };
                self.has_calls = true;
                BlockKind::ToolCall { id, name }
            }
        };
        out.push(Delta::Open { index: self.count, kind: block });
        self.open.push(Block {
            index: self.count,
            kind,
            output_index: key.output_index,
            item_id: key.item_id.to_owned(),
            seen: Seen::new(),
            break_due: false,
        });
        self.count += 1;
        Some(self.open.len() - 1)
    }

    fn finish(
        &mut self,
        at: usize,
        key: Key<'_>,
        item: &OutputItem<'_>,
        raw: &RawValue,
        out: &mut Vec<Delta>,
    ) {
        let mut block = self.open.remove(at);
        let signature = match block.kind {
            Kind::Text => {
                block.complete(&parts(item.content).concat(), out);
                TextSignature::stored(item.id.as_deref(), item.phase.as_deref())
            }
            Kind::Thinking => {
                let wholes = [parts(item.summary).join("\n\n"), parts(item.content).join("\n\n")];
                if let Some(whole) =
                    wholes.iter().find(|whole| !whole.is_empty() && block.seen.rest(whole).is_some())
                {
                    block.complete(whole, out);
                }
                Some(compact(raw.get()))
            }
            Kind::Call => {
                if let Some(arguments) = json_text(item.arguments) {
                    block.complete(&arguments, out);
                }
                None
            }
        };
        let incomplete = item.status.as_deref() == Some("incomplete");
        out.push(Delta::Seal {
            index: block.index,
            seal: BlockSeal { signature, redacted: false, incomplete },
        });
        for id in [key.item_id, &block.item_id].into_iter().filter(|id| !id.is_empty()) {
            self.done_ids.insert(id.to_owned());
        }
        self.done_indices.extend(key.output_index.or(block.output_index));
    }

    /// The open block of an event: by index and id, by index, by id; else the last one of the kind.
    fn find(&self, kind: Kind, key: Key<'_>) -> Option<usize> {
        let last = |test: &dyn Fn(&Block) -> bool| {
            self.open.iter().rposition(|block| block.kind == kind && test(block))
        };
        let same_place = |block: &Block| key.output_index.is_some() && block.output_index == key.output_index;
        let same_id = |block: &Block| !key.item_id.is_empty() && block.item_id == key.item_id;
        let elsewhere = |block: &Block| {
            key.output_index.is_some()
                && block.output_index.is_some()
                && block.output_index != key.output_index
        };
        last(&|block| same_place(block) && same_id(block))
            .or_else(|| last(&same_place))
            .or_else(|| last(&|block| same_id(block) && !elsewhere(block)))
            .or_else(|| if self.is_done(key) { None } else { last(&|block| !elsewhere(block)) })
    }

    /// Whether an item was completed before.
    fn is_done(&self, key: Key<'_>) -> bool {
        let place_is_done = key.output_index.map(|place| self.done_indices.contains(&place));
        if key.item_id.is_empty() {
            return place_is_done == Some(true);
        }
        self.done_ids.contains(key.item_id) && place_is_done != Some(false)
    }
}
