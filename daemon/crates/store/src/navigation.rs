//! Where a session goes on when its user goes back to an entry.

use agentd_protocol::message::MessageContent;
use serde::Deserialize;

use crate::{
    Entry, EntryKind, Role, SessionTree, UnknownEntry,
    fork::{content_text, user_text},
};

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
            // Where a line was lost, what comes next goes on behind the gap.
            ("e", Some("d"), Some("lost")),
        ] {
            let expected = NavigationTarget { leaf: leaf.map(str::to_owned), text: text.map(str::to_owned) };
            assert_eq!(NavigationTarget::at(&tree, id), Ok(expected), "{id}");
        }
        assert_eq!(NavigationTarget::at(&tree, "x").unwrap_err().to_string(), "Entry x not found");
    }
}
