//! The same tree with ids that are unique and parents that are there. Pure.

use std::{borrow::Cow, collections::HashSet};

use crate::{
    Entry, EntryKind, Header, SessionTree,
    ids::new_entry_id,
    object::{Object, quoted},
};

/// A tree in which nothing is odd.
pub(super) struct Mended {
    pub(super) tree: SessionTree,
    /// Entries that got another id.
    pub(super) renamed: usize,
    /// Entries whose line names another parent.
    pub(super) relinked: usize,
}

/// Writes the tree as it is read: each entry follows the one that it was taken to follow. Of several entries of one id the
/// last keeps it, since that is the one that everything which names the id means.
pub(super) fn mend(tree: &SessionTree, header: Header) -> Mended {
    let mut mended = Mended { tree: SessionTree::new(header), renamed: 0, relinked: 0 };
    // New ids, by place; nearly always empty.
    let mut ids: Vec<(u32, String)> = Vec::new();
    let mut taken: HashSet<String> = HashSet::new();
    let is_taken = |id: &str, taken: &HashSet<String>| tree.place_of(id).is_some() || taken.contains(id);
    for (at, entry) in (0u32..).zip(tree.entries()) {
        if tree.place_of(entry.id()) != Some(at) {
            let id = new_entry_id(|id| is_taken(id, &taken));
            taken.insert(id.clone());
            ids.push((at, id));
        }
    }
    let id_of = |at: u32| match ids.binary_search_by_key(&at, |(at, _)| *at) {
        Ok(found) => ids[found].1.as_str(),
        Err(_) => tree.entry(at).id(),
    };
    for (at, entry) in (0u32..).zip(tree.entries()) {
        let parent = tree.parent(at).map(id_of);
        let id = id_of(at);
        let kept = if ids.is_empty() { None } else { first_kept(tree, at, &id_of) };
        let (is_renamed, is_relinked) = (id != entry.id(), parent != entry.parent_id());
        mended.renamed += usize::from(is_renamed);
        mended.relinked += usize::from(is_relinked);
        let changed =
            (is_renamed || is_relinked || kept.is_some()).then(|| changed(entry, id, parent, kept)).flatten();
        mended.tree.push(changed.unwrap_or_else(|| entry.clone()));
    }
    mended
}

fn changed(entry: &Entry, id: &str, parent: Option<&str>, kept: Option<&str>) -> Option<Entry> {
    let line = entry.line();
    let mut fields = Object::parse(&line)?;
    fields.set_at("id", quoted(id), 1);
    fields.set_at("parentId", parent.map_or(Cow::Borrowed("null"), |id| quoted(id).into()), 2);
    if let Some(kept) = kept {
        fields.set("firstKeptEntryId", quoted(kept));
    }
    Entry::parse(&fields.text())
}

/// Of a compaction: the new id of the first entry that it keeps, when that one got one. It is on the way to the compaction,
/// and the first of its id there.
fn first_kept<'a>(tree: &SessionTree, at: u32, id_of: &impl Fn(u32) -> &'a str) -> Option<&'a str> {
    let entry = tree.entry(at);
    if entry.kind() != EntryKind::Compaction {
        return None;
    }
    let fields = Object::parse(entry.frame())?;
    let named = fields.string("firstKeptEntryId")?;
    let first = tree.path(tree.parent(at)).into_iter().find(|above| tree.entry(*above).id() == named)?;
    Some(id_of(first)).filter(|id| *id != named)
}
