//! Context edits: what they say, and what they may be about.

use agentd_protocol::{
    entry::ContextReplacement,
    message::{ContentBlock, MessageContent},
};

use crate::{
    Entry, EntryKind, Role, SessionTree,
    object::{each_member, name, string},
};

/// Why an entry's message cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditTargetError {
    /// There is no such entry.
    #[error("Entry {0} not found")]
    NotFound(String),
    /// The entry is on another branch.
    #[error("Entry {0} is not on the active branch")]
    OtherBranch(String),
    /// The entry is no message of the user, the model, a tool or an extension.
    #[error("Entry {0} does not contribute editable model content")]
    NotEditable(String),
}

/// Checks that the message of the entry `id` can be edited at the leaf of `tree`, and brings the new content to the form in
/// which it is stored: plain text for an answer or a tool result becomes one text block.
///
/// # Errors
/// [`EditTargetError`], with pi's texts.
pub fn check_edit_target(
    tree: &SessionTree,
    id: &str,
    replacement: Option<ContextReplacement>,
) -> Result<Option<ContextReplacement>, EditTargetError> {
    let entry = tree.get(id).ok_or_else(|| EditTargetError::NotFound(id.to_owned()))?;
    if !tree.upwards(tree.leaf_index()).any(|at| tree.entry(at).id() == id) {
        return Err(EditTargetError::OtherBranch(id.to_owned()));
    }
    let as_blocks = match entry.kind() {
        EntryKind::Message(Role::User) | EntryKind::CustomMessage => false,
        EntryKind::Message(Role::Assistant | Role::ToolResult) => true,
        _ => return Err(EditTargetError::NotEditable(id.to_owned())),
    };
    Ok(replacement.map(|replacement| match replacement.content {
        MessageContent::Text(text) if as_blocks => {
            ContextReplacement { content: MessageContent::Blocks(vec![ContentBlock::text(text)]) }
        }
        content => ContextReplacement { content },
    }))
}

/// The replacement of a message by an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replacement<'a> {
    /// The message is left out.
    Nothing,
    /// The JSON text of other content.
    Content(&'a str),
}

impl<'a> Replacement<'a> {
    /// The target and the replacement of a context edit; `None` when the entry makes no sense as one.
    pub(crate) fn of(entry: &'a Entry) -> Option<(String, Self)> {
        let (mut target, mut replacement) = (None, None);
        each_member(entry.frame(), |key, value| match &*name(key) {
            "targetId" => target = string(value),
            "replacement" => replacement = Some(value),
            _ => {}
        });
        let replacement = match replacement? {
            "null" => Self::Nothing,
            text => {
                let mut content = None;
                each_member(text, |key, value| {
                    if name(key) == "content" {
                        content = Some(value);
                    }
                });
                Self::Content(content?)
            }
        };
        Some((target?.into_owned(), replacement))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tree;

    #[test]
    fn targets() {
        let mut tree = tree(&[
            "a -",
            r#"{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":[]}}"#,
            r#"{"type":"message","id":"s","parentId":"b","message":{"role":"system","content":""}}"#,
            r#"{"type":"custom_message","id":"m","parentId":"s","content":"x"}"#,
            "c m",
            "d m",
        ]);
        let text = || Some(ContextReplacement { content: MessageContent::Text("new".into()) });
        let blocks = ContextReplacement { content: MessageContent::Blocks(vec![ContentBlock::text("new")]) };
        assert_eq!(check_edit_target(&tree, "a", text()), Ok(text()));
        assert_eq!(check_edit_target(&tree, "m", text()), Ok(text()));
        assert_eq!(check_edit_target(&tree, "b", text()), Ok(Some(blocks)));
        assert_eq!(check_edit_target(&tree, "b", None), Ok(None));
        let error = |tree: &SessionTree, id| check_edit_target(tree, id, None).unwrap_err().to_string();
        assert_eq!(error(&tree, "x"), "Entry x not found");
        assert_eq!(error(&tree, "c"), "Entry c is not on the active branch");
        assert_eq!(error(&tree, "s"), "Entry s does not contribute editable model content");
        tree.set_leaf(None).unwrap();
        assert_eq!(error(&tree, "a"), "Entry a is not on the active branch");
    }

    #[test]
    fn edits_that_make_no_sense() {
        let edit =
            |rest: &str| Entry::parse(&format!(r#"{{"type":"context_edit","id":"e"{rest}}}"#)).unwrap();
        for rest in
            ["", r#","targetId":"a""#, r#","targetId":"a","replacement":{}"#, r#","replacement":null"#]
        {
            assert_eq!(Replacement::of(&edit(rest)), None, "{rest}");
        }
        let whole = edit(r#","targetId":"a","replacement":{"content":[ 1.0 ]}"#);
        assert_eq!(Replacement::of(&whole), Some(("a".into(), Replacement::Content("[ 1.0 ]"))));
    }
}
