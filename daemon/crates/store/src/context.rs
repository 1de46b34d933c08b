//! The context that the model gets: the messages from the root to the leaf, with compactions and edits applied.

mod choices;

use std::collections::HashMap;

use agentd_protocol::{
    Json,
    message::{BranchSummaryMessage, CompactionSummaryMessage, Message},
};
use serde::Deserialize;
use serde_json::value::RawValue;

pub use self::choices::{Choices, ModelRef, model_of};
use crate::{
    Entry, EntryKind, Role, SessionTree,
    edit::Replacement,
    object::{Object, quoted},
};

/// The transcript at the leaf of a tree, with the choices made on the path.
#[derive(Debug, Clone, Default)]
pub struct Context {
    messages: Vec<Json<Message>>,
    /// For each message, the place of its entry in the order of the file.
    sources: Vec<u32>,
    choices: Choices,
    /// The leaf of this context.
    leaf: Option<u32>,
    /// The number of times that the context was rebuilt since the session was opened.
    remakes: u64,
}

/// An entry that counts in a context, with the messages that it contributes.
#[derive(Debug, Clone, Copy)]
pub struct Contribution<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// Its messages with edits applied; none for an entry without a message, or one that an edit leaves out.
    pub messages: &'a [Json<Message>],
}

impl Contribution<'_> {
    /// Returns whether the entry holds a message that an edit leaves out of the context.
    #[must_use]
    pub fn is_omitted(&self) -> bool {
        let holds_message = self.entry.message().is_some() || self.entry.kind() == EntryKind::CustomMessage;
        holds_message && self.messages.is_empty()
    }
}

impl Context {
    /// The context at the leaf of `tree`.
    #[must_use]
    pub fn new(tree: &SessionTree) -> Self {
        let path = tree.path(tree.leaf_index());
        let choices = Choices::of(tree);
        let mut context = Self { leaf: tree.leaf_index(), choices, ..Self::default() };
        let selected = select(tree, &path);
        let edits = edits(tree, &selected);
        for (place, at) in selected.iter().enumerate() {
            let entry = tree.entry(*at);
            match edits.get(entry.id()) {
                Some(Replacement::Nothing) => {}
                edit => {
                    let from = context.messages.len();
                    context.add(*at, entry, place == 0);
                    if let Some(Replacement::Content(content)) = edit {
                        context.messages[from..].iter_mut().for_each(|message| replace(message, content));
                    }
                }
            }
        }
        context
    }

    /// Updates the context after the tree grew or its leaf moved.
    ///
    /// Entries added at the leaf, the usual case, cost in proportion to their number; compactions, edits and moves to another
    /// branch rebuild the context.
    pub fn follow(&mut self, tree: &SessionTree) {
        let mut added = Vec::new();
        for at in tree.upwards(tree.leaf_index()).take_while(|at| Some(*at) != self.leaf) {
            // Compactions, edits and other paths change messages that are there already.
            let rewrites = matches!(tree.entry(at).kind(), EntryKind::Compaction | EntryKind::ContextEdit);
            if rewrites || (tree.parent(at).is_none() && self.leaf.is_some()) {
                *self = Self { remakes: self.remakes + 1, ..Self::new(tree) };
                return;
            }
            added.push(at);
        }
        if tree.leaf_index().is_none() {
            *self = Self { remakes: self.remakes + 1, ..Self::default() };
            return;
        }
        for at in added.into_iter().rev() {
            self.choices.choose(tree.entry(at));
            self.add(at, tree.entry(at), false);
        }
        self.leaf = tree.leaf_index();
    }

    /// The messages, oldest first. Those of message entries keep the text of the file.
    #[must_use]
    pub fn messages(&self) -> &[Json<Message>] {
        &self.messages
    }

    /// For each message, the place of its entry in [`SessionTree::entries`].
    #[must_use]
    pub fn sources(&self) -> &[u32] {
        &self.sources
    }

    /// The entries that count, in the order of the context: with a compaction on the path, it comes first, then the entries
    /// that it kept. Costs in proportion to the path. `tree` is this context's tree.
    #[must_use]
    pub fn contributions<'a>(&'a self, tree: &'a SessionTree) -> Vec<Contribution<'a>> {
        let path = tree.path(self.leaf);
        let mut at = 0;
        let contribution = |place: u32| {
            let entry = tree.entry(place);
            let from = at;
            while self.sources.get(at) == Some(&place) {
                at += 1;
            }
            Contribution { entry, messages: &self.messages[from..at] }
        };
        select(tree, &path).into_iter().map(contribution).collect()
    }

    /// Changes whenever earlier messages may have changed: while it is the same, the context has only grown at its end.
    pub(crate) fn remakes(&self) -> u64 {
        self.remakes
    }

    /// The last chosen thinking level; `None` when none was chosen, which means `off`.
    #[must_use]
    pub fn thinking_level(&self) -> Option<&str> {
        self.choices.thinking_level.as_deref()
    }

    /// The model that was last chosen or answered.
    #[must_use]
    pub fn model(&self) -> Option<&ModelRef> {
        self.choices.model.as_ref()
    }

    /// Adds the contribution of an entry. A compaction counts only in first position: it summarises older ones within the kept
    /// part.
    fn add(&mut self, at: u32, entry: &Entry, is_first: bool) {
        match entry.kind() {
            EntryKind::Message(_) => self.messages.extend(entry.message().cloned()),
            EntryKind::CustomMessage => self.messages.extend(custom_message(entry)),
            EntryKind::BranchSummary => self.messages.extend(branch_summary(entry)),
            EntryKind::Compaction if is_first => self.messages.extend(compaction(entry)),
            _ => {}
        }
        self.sources.resize(self.messages.len(), at);
    }
}

/// The entries that count: with a compaction on the path, it and the entries that it kept, in the order of the context.
fn select(tree: &SessionTree, path: &[u32]) -> Vec<u32> {
    let Some(last) = path.iter().rposition(|at| tree.entry(*at).kind() == EntryKind::Compaction) else {
        return path.to_vec();
    };
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Kept {
        first_kept_entry_id: Option<String>,
    }
    let kept = tree.entry(path[last]).read::<Kept>().and_then(|kept| kept.first_kept_entry_id);
    let before = &path[..last];
    let first = kept.and_then(|id| before.iter().position(|at| tree.entry(*at).id() == id)).unwrap_or(last);
    let is_system = |at: &u32| tree.entry(*at).kind() == EntryKind::Message(Role::System);

    let mut selected = vec![path[last]];
    selected.extend(before[first..].iter().filter(|at| !is_system(at)));
    selected.extend(&path[last + 1..]);
    selected
}

/// The last edit of each entry.
fn edits<'a>(tree: &'a SessionTree, selected: &[u32]) -> HashMap<String, Replacement<'a>> {
    let edits =
        selected.iter().map(|at| tree.entry(*at)).filter(|entry| entry.kind() == EntryKind::ContextEdit);
    edits.filter_map(Replacement::of).collect()
}

/// Replaces the content of a message.
fn replace(message: &mut Json<Message>, content: &str) {
    let role = Role::of(message.text());
    if !matches!(role, Role::User | Role::Assistant | Role::ToolResult | Role::Custom) {
        return;
    }
    let Some(mut object) = Object::parse(message.text()) else { return };
    let is_text = content.starts_with('"');
    if is_text && matches!(role, Role::Assistant | Role::ToolResult) {
        object.set("content", format!("[{{\"type\":\"text\",\"text\":{content}}}]"));
    } else {
        object.set("content", content);
    }
    if let Some(edited) = from_text(object.text()) {
        *message = edited;
    }
}

fn from_text(text: String) -> Option<Json<Message>> {
    RawValue::from_string(text).ok().map(Json::from_raw)
}

/// The message of an extension, its content as in the file.
fn custom_message(entry: &Entry) -> Option<Json<Message>> {
    let fields = Object::parse(entry.frame())?;
    let mut text = String::from("{\"role\":\"custom\"");
    for (name, missing) in [
        ("customType", Some("\"\"")),
        ("content", Some("\"\"")),
        ("display", Some("false")),
        ("details", None),
    ] {
        if let Some(value) = fields.get(name).or(missing) {
            text.push_str(&format!(",{}:{value}", quoted(name)));
        }
    }
    text.push_str(&format!(",\"timestamp\":{}}}", entry.timestamp_ms().unwrap_or(0)));
    from_text(text)
}

fn branch_summary(entry: &Entry) -> Option<Json<Message>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Summary {
        summary: String,
        from_id: Option<String>,
    }
    let Summary { summary, from_id } = entry.read().filter(|read: &Summary| !read.summary.is_empty())?;
    let message = BranchSummaryMessage {
        summary,
        from_id: from_id.unwrap_or_default(),
        timestamp: entry.timestamp_ms().unwrap_or(0),
    };
    Json::new(Message::BranchSummary(message)).ok()
}

/// The system state at the compaction, where it is stored, and the summary.
fn compaction(entry: &Entry) -> impl Iterator<Item = Json<Message>> {
    let fields = Object::parse(entry.frame());
    let system = fields.as_ref().and_then(|fields| fields.get("systemMessage"));
    let system = system.filter(|text| text.starts_with('{')).and_then(|text| from_text(text.to_owned()));

    let text = |name| fields.as_ref().and_then(|fields| fields.string(name));
    let tokens = fields.as_ref().and_then(|fields| fields.get("tokensBefore")?.parse::<f64>().ok());
    let summary = CompactionSummaryMessage {
        summary: text("summary").unwrap_or_default().into_owned(),
        // Saturates; a count is never negative.
        tokens_before: tokens.unwrap_or(0.0) as u64,
        timestamp: entry.timestamp_ms().unwrap_or(0),
    };
    let summary = Json::new(Message::CompactionSummary(summary)).ok();
    [system, summary].into_iter().flatten()
}

#[cfg(test)]
mod tests;
