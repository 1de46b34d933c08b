//! The entries of a session for an outline: parents, labels, first words.

use std::{collections::HashMap, path::Path};

use agentd_protocol::{
    entry::EntryBody,
    message::{ContentBlock, Message},
    parse_json,
};
use serde::Deserialize;

use crate::session_file::{SessionFileError, begin, open, read_line};

/// How much of a text is kept, in characters: more fits on no line.
const MOST_TEXT: usize = 400;

/// The entries of a session in file order, each reduced to its line.
#[derive(Debug, Default)]
pub(super) struct OutlineEntries {
    pub(super) all: Vec<OutlineEntry>,
    /// The leaf; `None` before all entries.
    pub(super) leaf: Option<usize>,
}

/// An entry of an outline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutlineEntry {
    pub(super) id: String,
    /// The index of its parent, which comes earlier.
    pub(super) parent: Option<usize>,
    /// The speaker and the text; `None` for an entry that is not shown.
    pub(super) line: Option<(&'static str, String)>,
    pub(super) label: Option<String>,
}

/// The fields that place an entry in the tree. Old files have neither ids nor parents.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntryHead {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    parent_id: Option<String>,
}

impl OutlineEntries {
    /// Reads a session file, without locking it.
    ///
    /// # Errors
    /// [`SessionFileError`].
    pub(super) fn read(path: &Path) -> Result<Self, SessionFileError> {
        let mut input = open(path)?;
        let mut entries =
            EntriesBuilder { in_a_row: begin(&mut input)?.in_a_row, ..EntriesBuilder::default() };
        let mut line = Vec::new();
        loop {
            if read_line(&mut input, &mut line)? == 0 {
                break;
            }
            entries.add(&String::from_utf8_lossy(&line));
        }
        let leaf = entries.all.len().checked_sub(1);
        Ok(Self { all: entries.all, leaf })
    }

    /// Reads entries from lines.
    pub(super) fn of_lines<'a>(lines: impl Iterator<Item = &'a str>, leaf: Option<&str>) -> Self {
        let mut entries = EntriesBuilder::default();
        lines.for_each(|line| entries.add(line));
        let leaf = leaf.and_then(|leaf| entries.by_id.get(leaf).copied());
        Self { all: entries.all, leaf }
    }
}

#[derive(Default)]
struct EntriesBuilder {
    all: Vec<OutlineEntry>,
    by_id: HashMap<String, usize>,
    /// Whether entries have no ids and follow each other.
    in_a_row: bool,
}

impl EntriesBuilder {
    /// Skips a torn or unknown line, as the daemon does.
    fn add(&mut self, line: &str) {
        let Ok(head) = parse_json::<EntryHead>(line.trim()) else { return };
        let body = parse_json::<EntryBody>(line.trim()).ok();
        if let Some(EntryBody::Label { target_id, label }) = &body
            && let Some(at) = self.by_id.get(target_id)
        {
            self.all[*at].label = label.clone().filter(|label| !label.is_empty());
        }
        let before = self.all.len().checked_sub(1);
        let parent = if self.in_a_row {
            before
        } else {
            head.parent_id.and_then(|parent| self.by_id.get(&parent).copied())
        };
        let id = match head.id {
            Some(id) => id,
            None if self.in_a_row => (self.all.len() + 1).to_string(),
            None => return,
        };
        self.by_id.insert(id.clone(), self.all.len());
        self.all.push(OutlineEntry { id, parent, line: body.as_ref().and_then(said), label: None });
    }
}

/// The speaker and the text of an entry; `None` for one without text for a reader.
fn said(body: &EntryBody) -> Option<(&'static str, String)> {
    let (who, text) = match body {
        EntryBody::Message { message } => match message {
            Message::User(user) => ("user", user.content.text()),
            Message::Assistant(answer) => ("assistant", spoken(&answer.text(), &answer.content)),
            Message::BashExecution(bash) => ("bash", bash.command.clone()),
            _ => return None,
        },
        EntryBody::Compaction { summary, .. } => ("compaction", summary.clone()),
        EntryBody::BranchSummary { summary, .. } => ("summary", summary.clone()),
        EntryBody::CustomMessage { content, display: true, .. } => ("custom", content.text()),
        _ => return None,
    };
    Some((who, text.trim().chars().take(MOST_TEXT).collect()))
}

/// The text of an answer; the names of its tool calls where it has none.
fn spoken(text: &str, content: &[ContentBlock]) -> String {
    if !text.trim().is_empty() {
        return text.to_owned();
    }
    let names = content.iter().filter_map(|block| match block {
        ContentBlock::ToolCall(call) => Some(call.name.as_str()),
        _ => None,
    });
    match names.collect::<Vec<_>>().join(", ") {
        names if names.is_empty() => "(nothing)".to_owned(),
        names => format!("({names})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(name: &str) -> OutlineEntries {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/sessions");
        OutlineEntries::read(&folder.join(name)).unwrap()
    }

    #[test]
    fn every_version_is_read() {
        for name in ["v1.jsonl", "v2.jsonl", "v3-0.73.jsonl", "v3-1.5.jsonl"] {
            let entries = sample(name);
            assert_eq!(entries.leaf, Some(entries.all.len() - 1), "{name}");
            assert!(entries.all.iter().filter(|entry| entry.line.is_some()).count() >= 2, "{name}");
        }
        let entries = sample("v3-1.5.jsonl");
        let answer = entries.all.iter().find(|entry| entry.id == "5e00000b").unwrap();
        assert_eq!(answer.label.as_deref(), Some("found it"));
        assert_eq!(answer.line, Some(("assistant", "Tax is missing.".into())));
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        let refusal = |text: &str| {
            std::fs::write(&path, text).unwrap();
            OutlineEntries::read(&path).unwrap_err().to_string()
        };
        assert!(refusal("").contains("no session file"));
        assert!(refusal("# A title\n").contains("no session file"));
        assert!(refusal(r#"{"type":"session","version":9,"id":"s"}"#).contains("format version 9"));
    }
}
