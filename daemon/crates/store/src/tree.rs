//! The tree of a session in memory. Pure: no file, no clock.

mod index;

use std::collections::HashMap;

use agentd_protocol::entry::SessionHeader;
use serde::Deserialize;

use self::index::EntryIndex;
use crate::{
    Entry, EntryKind, Header, NewEntry, SessionTotals,
    counts::{EntryCounts, ReadEntry},
    entry::EntryId,
    ids::new_entry_id,
    time::{iso_timestamp, parse_timestamp},
};

/// All entries of a session in file order, and the place that the next one will follow.
///
/// An entry's parent is the last entry of that id *before* it, so that whatever a file holds, walking up ends: files
/// with an id twice, or with a parent that comes later, have no cycles here. An entry whose parent is not before it follows
/// the entry before it: where a line was lost, the conversation goes on behind the gap. An id by itself means the last
/// entry that has it.
#[derive(Debug, Clone)]
pub struct SessionTree {
    header: Header,
    entries: Vec<Entry>,
    /// For each entry, where its parent is.
    parents: Vec<Option<u32>>,
    by_id: EntryIndex,
    leaf: Option<u32>,
    name: Option<String>,
    labels: HashMap<String, Label>,
    /// The sums over all entries, kept while they come.
    totals: SessionTotals,
    /// When the session began, as its header says: Unix milliseconds.
    begun: Option<i64>,
    /// What the entries cost that no fork took over: US dollars.
    own_cost: f64,
}

/// The outcome of adding an entry of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Taken {
    /// The entry was there already, and was left out.
    pub(crate) is_repeated: bool,
    /// Another entry has its id.
    pub(crate) has_known_id: bool,
    /// Its own index, when its parent has not been read yet.
    pub(crate) orphan: Option<u32>,
}

/// A bookmark on an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The text of the label.
    pub text: String,
    /// The time stamp of the label's entry.
    pub timestamp: String,
}

/// No entry has that id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Entry {0} not found")]
pub struct UnknownEntry(
    /// The id.
    pub String,
);

impl SessionTree {
    /// A session without entries.
    #[must_use]
    pub fn new(header: Header) -> Self {
        Self {
            begun: parse_timestamp(&header.typed().timestamp),
            header,
            entries: Vec::new(),
            parents: Vec::new(),
            by_id: EntryIndex::default(),
            leaf: None,
            name: None,
            labels: HashMap::new(),
            totals: SessionTotals::default(),
            own_cost: 0.0,
        }
    }

    /// The header of the session.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Replaces the header, for a session whose header came late in the file.
    pub(crate) fn set_header(&mut self, header: Header) {
        self.begun = parse_timestamp(&header.typed().timestamp);
        self.header = header;
        self.own_cost = self.entries.iter().map(|entry| self.own_part(entry, &EntryCounts::of(entry))).sum();
    }

    /// What an entry cost, where no fork took it over: such entries are older than the fork's header. One without a time was made here.
    fn own_part(&self, entry: &Entry, counts: &EntryCounts) -> f64 {
        let is_own = || self.begun.zip(entry.timestamp_ms()).is_none_or(|(begun, at)| at >= begun);
        if counts.spent != 0.0 && is_own() { counts.spent } else { 0.0 }
    }

    /// The sums over all entries, of every branch. They are kept while entries come, so that asking costs nothing.
    #[must_use]
    pub fn totals(&self) -> &SessionTotals {
        &self.totals
    }

    /// What the entries of every branch cost, in US dollars; without those that a fork took over, as [`crate::own_spending`]. Kept as
    /// [`Self::totals`].
    #[must_use]
    pub fn own_cost(&self) -> f64 {
        self.own_cost
    }

    /// The typed header.
    #[must_use]
    pub fn info(&self) -> &SessionHeader {
        self.header.typed()
    }

    /// All entries in file order, of every branch.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The length of its entries as lines, together.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.entries.iter().map(Entry::line_len).sum()
    }

    /// The entry of an id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Entry> {
        self.place_of(id).map(|at| self.entry(at))
    }

    /// The parent of an entry; `None` for a root, and for an unknown id.
    #[must_use]
    pub fn parent_of(&self, id: &str) -> Option<&Entry> {
        self.parent(self.place_of(id)?).map(|at| self.entry(at))
    }

    /// The entries after the one with the id `since`, in file order; all of them without `since`. `None` for an unknown id.
    #[must_use]
    pub fn since(&self, since: Option<&str>) -> Option<&[Entry]> {
        match since {
            None => Some(&self.entries),
            Some(id) => self.place_of(id).map(|at| &self.entries[at as usize + 1..]),
        }
    }

    /// The entry that the next one will follow; `None` when the next one will be a root.
    #[must_use]
    pub fn leaf(&self) -> Option<&Entry> {
        self.leaf.map(|at| &self.entries[at as usize])
    }

    /// The id of [`Self::leaf`].
    #[must_use]
    pub fn leaf_id(&self) -> Option<&str> {
        self.leaf().map(Entry::id)
    }

    /// Makes the next entry: a child of the leaf with an id of its own. The tree does not change; [`Self::push`] adds the entry
    /// once it is stored.
    #[must_use]
    pub fn prepare(&self, new: NewEntry, now_ms: i64) -> Entry {
        new.place(&self.new_id(), self.leaf_id(), &iso_timestamp(now_ms))
    }

    /// An id that no entry has.
    pub(crate) fn new_id(&self) -> String {
        new_entry_id(|id| self.place_of(id).is_some())
    }

    /// Adds an entry at the end of the file order. It becomes the leaf.
    ///
    /// # Panics
    /// With more than four billion entries.
    pub fn push(&mut self, entry: Entry) {
        let (counts, known) = (EntryCounts::of(&entry), self.find(&entry.id));
        self.place(entry, &counts, known);
    }

    /// Adds an entry of a file, unless an entry with its id is the same byte for byte.
    pub(crate) fn take(&mut self, read: ReadEntry) -> Taken {
        let known = self.find(&read.entry.id);
        if known.is_some_and(|at| self.entry(at).is_same_line(&read.entry)) {
            return Taken { is_repeated: true, ..Taken::default() };
        }
        self.place(read.entry, &read.counts, known)
    }

    fn find(&self, id: &EntryId) -> Option<u32> {
        self.by_id.get(id.as_bytes(), &self.entries)
    }

    /// Adds an entry. `known` is the one that has its id.
    fn place(&mut self, entry: Entry, counts: &EntryCounts, known: Option<u32>) -> Taken {
        #[expect(clippy::expect_used, reason = "their ids alone would fill more memory than there is")]
        let at = u32::try_from(self.entries.len()).expect("fewer than four billion entries");
        let mut orphan = None;
        let mut parent = None;
        if let Some(id) = &entry.parent_id {
            let is_parent = |last: &u32| self.entry(*last).id.as_bytes() == id.as_bytes();
            // Nearly always it is the last one.
            parent = at.checked_sub(1).filter(is_parent).or_else(|| self.find(id));
            if parent.is_none() {
                orphan = Some(at);
                parent = at.checked_sub(1);
            }
        }
        self.notice(&entry);
        self.totals.add(entry.kind(), counts);
        self.own_cost += self.own_part(&entry, counts);
        self.entries.push(entry);
        self.by_id.insert(at, known, &self.entries);
        self.parents.push(parent);
        self.leaf = Some(at);
        Taken { is_repeated: false, has_known_id: known.is_some(), orphan }
    }

    /// Returns whether the ancestors of an entry that was added before its parent lead back to it. `None` when its parent does
    /// not exist at all.
    pub(crate) fn is_in_circle(&self, at: u32) -> Option<bool> {
        /// A longer circle is treated as a parent that comes late.
        const LONGEST_CIRCLE: usize = 10_000;
        let up = |at: &u32| self.place_of(self.entry(*at).parent_id()?);
        let parent = up(&at)?;
        Some(std::iter::successors(Some(parent), up).take(LONGEST_CIRCLE).any(|above| above == at))
    }

    /// Keeps labels and names.
    fn notice(&mut self, entry: &Entry) {
        match entry.kind() {
            EntryKind::SessionInfo => {
                #[derive(Deserialize)]
                struct Info {
                    name: Option<String>,
                }
                let name = entry.read::<Info>().and_then(|info| info.name).unwrap_or_default();
                self.name = Some(name.trim().to_owned()).filter(|name| !name.is_empty());
            }
            EntryKind::Label => {
                #[derive(Deserialize)]
                #[serde(rename_all = "camelCase")]
                struct Mark {
                    target_id: String,
                    label: Option<String>,
                }
                let Some(mark) = entry.read::<Mark>() else { return };
                match mark.label.filter(|label| !label.is_empty()) {
                    Some(text) => {
                        let label = Label { text, timestamp: entry.timestamp().into_owned() };
                        self.labels.insert(mark.target_id, label);
                    }
                    None => {
                        self.labels.remove(&*mark.target_id);
                    }
                }
            }
            _ => {}
        }
    }

    /// Moves the leaf to an entry, or with `None` before the first one, so that the next entry becomes another root. Writes
    /// nothing: a reopened file has its last entry as leaf.
    ///
    /// # Errors
    /// [`UnknownEntry`] for an unknown id; the leaf stays.
    pub fn set_leaf(&mut self, id: Option<&str>) -> Result<(), UnknownEntry> {
        self.leaf = match id {
            Some(id) => Some(self.place_of(id).ok_or_else(|| UnknownEntry(id.to_owned()))?),
            None => None,
        };
        Ok(())
    }

    /// The entries from the root to the leaf.
    #[must_use]
    pub fn branch(&self) -> Vec<&Entry> {
        self.path(self.leaf).into_iter().map(|at| self.entry(at)).collect()
    }

    /// The entries from the root to an entry.
    ///
    /// # Errors
    /// [`UnknownEntry`] for an unknown id.
    pub fn branch_to(&self, id: &str) -> Result<Vec<&Entry>, UnknownEntry> {
        let at = self.place_of(id).ok_or_else(|| UnknownEntry(id.to_owned()))?;
        Ok(self.path(Some(at)).into_iter().map(|at| self.entry(at)).collect())
    }

    /// The session's name, by the last entry that sets one, on any branch.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The label of an entry.
    #[must_use]
    pub fn label(&self, id: &str) -> Option<&Label> {
        self.labels.get(id)
    }

    /// Appends the session's file text: the header, then the entries in file order.
    pub(crate) fn write_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.header.line().as_bytes());
        out.push(b'\n');
        for entry in &self.entries {
            entry.write_line(out);
            out.push(b'\n');
        }
    }

    /// The index of each entry's parent, in file order: always lower than its own; `None` for a root.
    #[must_use]
    pub fn parents(&self) -> &[Option<u32>] {
        &self.parents
    }

    /// The index of an entry in the file order.
    #[must_use]
    pub fn place_of(&self, id: &str) -> Option<u32> {
        self.by_id.get(id.as_bytes(), &self.entries)
    }

    /// The index of [`Self::leaf`] in the file order.
    #[must_use]
    pub fn leaf_index(&self) -> Option<u32> {
        self.leaf
    }

    /// The entry at an index of the file order.
    pub(crate) fn entry(&self, at: u32) -> &Entry {
        &self.entries[at as usize]
    }

    /// The index of an entry's parent.
    pub(crate) fn parent(&self, at: u32) -> Option<u32> {
        self.parents[at as usize]
    }

    /// The indices from the root to `leaf`.
    pub(crate) fn path(&self, leaf: Option<u32>) -> Vec<u32> {
        let mut path: Vec<u32> = self.upwards(leaf).collect();
        path.reverse();
        path
    }

    /// The indices from `leaf` to the root.
    pub(crate) fn upwards(&self, leaf: Option<u32>) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(leaf, |at| self.parent(*at))
    }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::entry::EntryBody;

    use super::*;
    use crate::testing::{ids, tree};

    #[test]
    fn entries_follow_the_leaf() {
        let mut tree = tree(&[]);
        assert_eq!((tree.leaf_id(), tree.branch().len()), (None, 0));
        for level in ["low", "high"] {
            let body = EntryBody::ThinkingLevelChange { thinking_level: level.into() };
            let entry = tree.prepare(NewEntry::from_body(&body).unwrap(), 1_000);
            assert_eq!(entry.parent_id(), tree.leaf_id());
            assert_eq!((entry.id().len(), entry.timestamp()), (8, "1970-01-01T00:00:01.000Z".into()));
            tree.push(entry);
        }
        assert_eq!(tree.branch().len(), 2);
        tree.set_leaf(None).unwrap();
        assert_eq!(tree.prepare(NewEntry::session_info("x"), 0).parent_id(), None);
    }

    #[test]
    fn branches_and_since() {
        let mut tree = tree(&["a -", "b a", "c b", "d b"]);
        assert_eq!(tree.leaf_id(), Some("d"));
        assert_eq!(ids(&tree.branch()), ["a", "b", "d"]);
        assert_eq!(ids(&tree.branch_to("c").unwrap()), ["a", "b", "c"]);
        assert_eq!(tree.branch_to("x").unwrap_err().to_string(), "Entry x not found");
        let since: Vec<_> = tree.since(Some("b")).unwrap().iter().map(Entry::id).collect();
        assert_eq!(since, ["c", "d"]);
        assert_eq!((tree.since(None).unwrap().len(), tree.since(Some("d")).unwrap().len()), (4, 0));
        assert!(tree.since(Some("x")).is_none());
        tree.set_leaf(Some("b")).unwrap();
        assert_eq!(ids(&tree.branch()), ["a", "b"]);
        assert_eq!(tree.set_leaf(Some("x")), Err(UnknownEntry("x".into())));
        assert_eq!(tree.leaf_id(), Some("b"));
    }

    #[test]
    fn behind_a_gap_the_conversation_goes_on() {
        // `c` follows an entry whose line was lost, on a branch that is not the last one.
        let tree = tree(&["a -", "b a", "c lost", "d c", "e a"]);
        assert_eq!(ids(&tree.branch_to("d").unwrap()), ["a", "b", "c", "d"]);
        assert_eq!(ids(&tree.branch()), ["a", "e"]);
    }

    #[test]
    fn circles_are_told_from_parents_that_come_late() {
        let entries = ["a c", "b a", "c b", "self self", "d f", "e lost", "f -"];
        let tree = tree(&entries);
        let circles: Vec<Option<bool>> = [0, 3, 4, 5].map(|at| tree.is_in_circle(at)).to_vec();
        assert_eq!(circles, [Some(true), Some(true), Some(false), None]);
    }

    #[test]
    fn what_is_repeated_is_taken_once() {
        let mut tree = tree(&["a -", "b a"]);
        let leaf = |tree: &SessionTree| tree.leaf_id().map(str::to_owned);
        let same = ReadEntry::from(tree.entries()[0].clone());
        assert_eq!(tree.take(same), Taken { is_repeated: true, ..Taken::default() });
        assert_eq!((tree.entries().len(), leaf(&tree)), (2, Some("b".into())));
        let other = ReadEntry::from(crate::testing::entry("a b", 7));
        assert_eq!(tree.take(other), Taken { has_known_id: true, ..Taken::default() });
        assert_eq!((tree.entries().len(), leaf(&tree)), (3, Some("a".into())));
    }

    #[test]
    fn odd_links_make_no_cycles() {
        // An unknown parent, a parent of its own, a parent that comes later.
        for odd in ["a x", "a a", "a b"] {
            let tree = tree(&[odd, "b a"]);
            assert_eq!(ids(&tree.branch()), ["a", "b"], "{odd}");
        }
        // An id that comes twice: the second `a` follows `b`, which follows the first.
        let tree = tree(&["a -", "b a", "a b", "c a"]);
        assert_eq!(ids(&tree.branch()), ["a", "b", "a", "c"]);
        assert_eq!(tree.get("a").unwrap().parent_id(), Some("b"));
    }

    #[test]
    fn the_last_name_counts_on_any_branch() {
        let mut tree = tree(&["a -"]);
        assert_eq!(tree.name(), None);
        for (name, expected) in [(" one ", Some("one")), ("two", Some("two")), ("", None)] {
            tree.set_leaf(None).unwrap();
            let entry = tree.prepare(NewEntry::session_info(name), 0);
            tree.push(entry);
            assert_eq!(tree.name(), expected);
        }
    }

    #[test]
    fn labels_come_and_go() {
        let mut tree = tree(&["a -"]);
        let mut label = |text: Option<&str>, now| {
            let body = EntryBody::Label { target_id: "a".into(), label: text.map(Into::into) };
            let entry = tree.prepare(NewEntry::from_body(&body).unwrap(), now);
            tree.push(entry);
            tree.label("a").map(|label| (label.text.clone(), label.timestamp.clone()))
        };
        assert_eq!(label(Some("one"), 0), Some(("one".into(), "1970-01-01T00:00:00.000Z".into())));
        assert_eq!(label(Some("two"), 1), Some(("two".into(), "1970-01-01T00:00:00.001Z".into())));
        assert_eq!(label(Some(""), 2), None);
        label(Some("three"), 3);
        assert_eq!(label(None, 4), None);
    }
}
