//! Copies of sessions: one branch of them, or all.

use std::{borrow::Cow, collections::HashMap};

use agentd_protocol::{
    entry::EntryBody,
    message::{ContentBlock, MessageContent},
};
use serde::Deserialize;

use crate::{
    Entry, EntryKind, NewEntry, NewSession, Role, SessionTree, StoreError, UnknownEntry,
    object::{Object, quoted},
};

/// Why a session cannot be copied.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// There is no such entry, or it is no message of the user.
    #[error("Invalid entry ID for forking")]
    InvalidEntry,
    /// There is no such entry to copy up to.
    #[error(transparent)]
    Unknown(#[from] UnknownEntry),
    /// The copy cannot be begun.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The point at which a fork begins: before a message of the user, whose text is handed back to be sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkPoint {
    /// The text of the message.
    pub text: String,
    /// The last entry to copy; `None` when the message is the first entry.
    pub leaf: Option<String>,
}

impl ForkPoint {
    /// The point before the user's message `id`.
    ///
    /// # Errors
    /// [`ForkError::InvalidEntry`].
    pub fn before(tree: &SessionTree, id: &str) -> Result<Self, ForkError> {
        let entry = tree.get(id).filter(|entry| entry.kind() == EntryKind::Message(Role::User));
        let entry = entry.ok_or(ForkError::InvalidEntry)?;
        let leaf = tree.parent_of(id).map(|parent| parent.id().to_owned());
        Ok(Self { text: user_text(entry).unwrap_or_default(), leaf })
    }
}

/// A message of the user that a fork can begin at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkMessage {
    /// Its entry.
    pub entry_id: String,
    /// Its text.
    pub text: String,
}

/// The user's messages that have text, of all branches, in file order.
#[must_use]
pub fn fork_messages(tree: &SessionTree) -> Vec<ForkMessage> {
    // An id that is there twice means the last entry that has it.
    let is_meant =
        |at: usize, entry: &Entry| tree.place_of(entry.id()).is_some_and(|place| place as usize == at);
    let entries = tree.entries().iter().enumerate();
    let users =
        entries.filter(|(at, entry)| entry.kind() == EntryKind::Message(Role::User) && is_meant(*at, entry));
    users
        .map(|(_, entry)| entry)
        .filter_map(|entry| Some(ForkMessage { entry_id: entry.id().to_owned(), text: user_text(entry)? }))
        .filter(|message| !message.text.is_empty())
        .collect()
}

/// The text blocks of a message, one behind the other. Not by the typed view, which would stay in memory.
pub(crate) fn user_text(entry: &Entry) -> Option<String> {
    #[derive(Deserialize)]
    struct User {
        content: MessageContent,
    }
    let User { content } = agentd_protocol::parse_json(entry.message()?.text()).ok()?;
    Some(content_text(&content))
}

/// The text blocks of a content, one behind the other.
pub(crate) fn content_text(content: &MessageContent) -> String {
    match content {
        MessageContent::Text(text) => text.clone(),
        MessageContent::Blocks(blocks) => blocks.iter().filter_map(ContentBlock::as_text).collect(),
        MessageContent::Nothing => String::new(),
    }
}

/// A new session with the branch from the root to `leaf` (nothing with `None`).
///
/// Labels move to the end, for entries of the branch alone; what followed one follows the entry before it.
///
/// # Errors
/// [`ForkError::Unknown`], [`ForkError::Store`] for a bad session id.
pub fn copy_branch(
    tree: &SessionTree,
    leaf: Option<&str>,
    new: NewSession,
) -> Result<SessionTree, ForkError> {
    let path = leaf.map_or(Ok(Vec::new()), |leaf| tree.branch_to(leaf))?;
    let mut copy = SessionTree::new(new.header()?);

    // For each label on the way, the entry that comes next: what named the label names that one.
    let mut next_kept: HashMap<&str, &str> = HashMap::new();
    let mut next = None;
    for entry in path.iter().rev() {
        if entry.kind() == EntryKind::Label {
            next_kept.extend(next.map(|next| (entry.id(), next)));
        } else {
            next = Some(entry.id());
        }
    }
    let mut parent: Option<&str> = None;
    for entry in path.iter().filter(|entry| entry.kind() != EntryKind::Label) {
        // In a file with an id twice, the second one's line may now be the first one's. A reader would leave it out as repeated, and
        // what follows it would lead past the entries between the two.
        if !copy.take(relinked(entry, parent, &next_kept).into()).is_repeated {
            parent = Some(entry.id());
        }
    }

    let labelled = path.iter().filter(|entry| entry.kind() != EntryKind::Label);
    for (id, label) in labelled.filter_map(|entry| Some((entry.id(), tree.label(entry.id())?))) {
        let body = EntryBody::Label { target_id: id.to_owned(), label: Some(label.text.clone()) };
        let entry = NewEntry::from_body(&body)?.place(&copy.new_id(), copy.leaf_id(), &label.timestamp);
        copy.push(entry);
    }
    Ok(copy)
}

/// A new session with all entries of another, of every branch, as they are.
///
/// # Errors
/// [`ForkError::Store`] for a bad session id.
pub fn copy_all(tree: &SessionTree, new: NewSession) -> Result<SessionTree, ForkError> {
    let mut copy = SessionTree::new(new.header()?);
    tree.entries().iter().for_each(|entry| copy.push(entry.clone()));
    Ok(copy)
}

/// The entry with another parent, and with another first kept entry where that was a label. Nearly always the entry
/// itself.
fn relinked(entry: &Entry, parent: Option<&str>, next_kept: &HashMap<&str, &str>) -> Entry {
    let kept = (entry.kind() == EntryKind::Compaction).then(|| {
        let fields = Object::parse(entry.frame())?;
        next_kept.get(&*fields.string("firstKeptEntryId")?).copied()
    });
    let kept = kept.flatten();
    if entry.parent_id() == parent && kept.is_none() {
        return entry.clone();
    }
    let line = entry.line();
    let changed = Object::parse(&line).and_then(|mut fields| {
        fields.set_at("parentId", parent.map_or(Cow::Borrowed("null"), |id| quoted(id).into()), 2);
        if let Some(kept) = kept {
            fields.set("firstKeptEntryId", quoted(kept));
        }
        Entry::parse(&fields.text())
    });
    changed.unwrap_or_else(|| entry.clone())
}

/// The place that going back to an entry leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NavigationTarget {
    /// The entry that the next one follows; `None`: it becomes another root.
    pub leaf: Option<String>,
    /// The text of the entry, where going back to it means saying it again.
    pub text: Option<String>,
}

impl NavigationTarget {
    /// Going back to the entry `id`: before it, to change it, when it is a message of the user or one that stands for the
    /// user (`custom_message`); else after it.
    ///
    /// # Errors
    /// [`UnknownEntry`].
    pub fn at(tree: &SessionTree, id: &str) -> Result<Self, UnknownEntry> {
        let entry = tree.get(id).ok_or_else(|| UnknownEntry(id.to_owned()))?;
        let text = match entry.kind() {
            EntryKind::Message(Role::User) => user_text(entry).unwrap_or_default(),
            EntryKind::CustomMessage => custom_text(entry).unwrap_or_default(),
            _ => return Ok(Self { leaf: Some(id.to_owned()), text: None }),
        };
        // By place and not by name: a parent that is not there is no parent.
        Ok(Self { leaf: tree.parent_of(id).map(|parent| parent.id().to_owned()), text: Some(text) })
    }
}

fn custom_text(entry: &Entry) -> Option<String> {
    #[derive(Deserialize)]
    struct Custom {
        content: MessageContent,
    }
    entry.read::<Custom>().map(|custom| content_text(&custom.content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tree;

    fn new() -> NewSession {
        NewSession { id: Some("copy".into()), ..NewSession::new("/w", 0) }
    }

    fn lines(tree: &SessionTree) -> Vec<String> {
        tree.entries().iter().map(Entry::line).collect()
    }

    fn label(id: &str, parent: &str, target: &str, text: &str) -> String {
        format!(
            r#"{{"type":"label","id":"{id}","parentId":"{parent}","timestamp":"t-{id}","targetId":"{target}","label":"{text}"}}"#
        )
    }

    #[test]
    fn a_branch_is_copied_as_it_is() {
        let tree = tree(&["a -", "b a", "c a", "d c"]);
        let copy = copy_branch(&tree, Some("d"), new()).unwrap();
        let all = lines(&tree);
        assert_eq!(lines(&copy), [&*all[0], &*all[2], &*all[3]]);
        assert_eq!((copy.header().id(), copy.leaf_id()), ("copy", Some("d")));
        assert_eq!(copy_branch(&tree, None, new()).unwrap().entries().len(), 0);
        assert_eq!(copy_branch(&tree, Some("x"), new()).unwrap_err().to_string(), "Entry x not found");
        assert_eq!(lines(&copy_all(&tree, new()).unwrap()), all);
    }

    #[test]
    fn labels_move_to_the_end() {
        let tree = tree(&[
            "a -",
            &label("l1", "a", "a", "first"),
            &label("l2", "l1", "gone", "elsewhere"),
            r#"{"type":"compaction","id":"k","parentId":"l2","timestamp":"t","summary":"s","firstKeptEntryId":"l1","extra":1.0}"#,
            "b k",
            &label("l3", "b", "b", "second"),
        ]);
        let copy = copy_branch(&tree, Some("l3"), new()).unwrap();
        let copied = lines(&copy);
        assert_eq!(copied.len(), 5);
        assert_eq!(
            copied[1],
            r#"{"type":"compaction","id":"k","parentId":"a","timestamp":"t","summary":"s","firstKeptEntryId":"k","extra":1.0}"#
        );
        assert_eq!(copied[2], tree.get("b").unwrap().line());
        let ends = [
            r#","parentId":"b","timestamp":"t-l1","targetId":"a","label":"first"}"#.to_owned(),
            format!(
                r#","parentId":"{}","timestamp":"t-l3","targetId":"b","label":"second"}}"#,
                copy.entries()[3].id()
            ),
        ];
        assert!(copied[3].ends_with(&ends[0]), "{}", copied[3]);
        assert!(copied[4].ends_with(&ends[1]), "{}", copied[4]);
        assert_eq!(copy.label("a").unwrap().text, "first");
        assert_ne!(copy.entries()[3].id(), "l1");
    }

    #[test]
    fn an_entry_that_becomes_a_repetition_is_left_out() {
        // Both "m" follow an "a"; the second one says so in the copy alone.
        let custom =
            |id: &str, parent: &str| format!(r#"{{"type":"custom","id":"{id}","parentId":"{parent}"}}"#);
        let [m, a, again] = [("m", "a"), ("a", "m"), ("m", "gone")].map(|(id, parent)| custom(id, parent));
        let tree = tree(&["a -", &m, &a, &again, "b m"]);
        assert_eq!(tree.branch().len(), 5);
        let copy = copy_branch(&tree, Some("b"), new()).unwrap();
        let ids = |tree: &SessionTree| -> Vec<String> {
            tree.branch().iter().map(|entry| entry.id().to_owned()).collect()
        };
        assert_eq!(ids(&copy), ["a", "m", "a", "b"]);
        let mut again = SessionTree::new(copy.header().clone());
        copy.entries().iter().for_each(|entry| _ = again.take(entry.clone().into()));
        assert_eq!(ids(&again), ids(&copy));
    }

    #[test]
    fn fork_points() {
        let mut tree = tree(&[
            "a -",
            r#"{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":[]}}"#,
            r#"{"type":"message","id":"c","parentId":"b","message":{"role":"user","content":[{"type":"text","text":"one "},{"type":"image","data":"","mimeType":"image/png"},{"type":"text","text":"two"}]}}"#,
            r#"{"type":"message","id":"d","parentId":"a","message":{"role":"user","content":null}}"#,
        ]);
        let before = |id| ForkPoint::before(&tree, id);
        assert_eq!(before("a").unwrap(), ForkPoint { text: "a".into(), leaf: None });
        assert_eq!(before("c").unwrap(), ForkPoint { text: "one two".into(), leaf: Some("b".into()) });
        for id in ["b", "x"] {
            assert_eq!(before(id).unwrap_err().to_string(), "Invalid entry ID for forking");
        }
        let messages = |tree: &SessionTree| -> Vec<_> {
            fork_messages(tree).into_iter().map(|m| (m.entry_id, m.text)).collect()
        };
        assert_eq!(messages(&tree), [("a".to_owned(), "a".to_owned()), ("c".into(), "one two".into())]);
        // An id that is there twice means the last one.
        tree.push(crate::testing::entry(r#"{"type":"custom","id":"a","parentId":"c"}"#, 9));
        assert_eq!(messages(&tree), [("c".to_owned(), "one two".to_owned())]);
    }

    #[test]
    fn users_are_edited_and_all_else_is_followed() {
        let tree = tree(&[
            "a -",
            r#"{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":[]}}"#,
            r#"{"type":"message","id":"c","parentId":"b","message":{"role":"user","content":[{"type":"text","text":"two"}]}}"#,
            r#"{"type":"custom_message","customType":"x","content":"aside","display":true,"id":"d","parentId":"c"}"#,
            r#"{"type":"message","id":"e","parentId":"gone","message":{"role":"user","content":"lost"}}"#,
        ]);
        for (id, leaf, text) in [
            ("a", None, Some("a")),
            ("b", Some("b"), None),
            ("c", Some("b"), Some("two")),
            ("d", Some("c"), Some("aside")),
            // After a lost line, the next entry continues behind the gap.
            ("e", Some("d"), Some("lost")),
        ] {
            let expected = NavigationTarget { leaf: leaf.map(str::to_owned), text: text.map(str::to_owned) };
            assert_eq!(NavigationTarget::at(&tree, id), Ok(expected), "{id}");
        }
        assert_eq!(NavigationTarget::at(&tree, "x").unwrap_err().to_string(), "Entry x not found");
    }
}
