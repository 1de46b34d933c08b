//! The tree of a conversation: messages of the user and answers, and where to go on.

use std::collections::HashMap;

use agentd_client_text::one_line;
use agentd_protocol::{
    command::Entries,
    entry::{EntryBody, SessionEntry},
    message::Message,
};
use crossterm::event::{KeyCode, KeyEvent};

/// A row of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeRow {
    pub(crate) entry: String,
    /// How many forks are above it.
    pub(crate) depth: usize,
    pub(crate) text: String,
    pub(crate) is_user: bool,
    /// Whether the conversation goes on from here, or from below.
    pub(crate) is_current: bool,
}

/// The tree, and the row that is selected.
#[derive(Debug)]
pub(crate) struct TreePanel {
    pub(crate) rows: Vec<TreeRow>,
    pub(crate) selected: usize,
}

/// What a key did in the tree.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TreeChoice {
    Nothing,
    Closed,
    /// Goes on from the entry.
    Go(String),
    /// Copies what came before the entry into a session of its own.
    Fork(String),
}

impl TreePanel {
    /// The tree of a session's entries; those that are no messages are left out.
    pub(crate) fn of(entries: &Entries) -> Self {
        let typed: Vec<&SessionEntry> = entries.entries.iter().filter_map(|entry| entry.get()).collect();
        let mut children: HashMap<Option<&str>, Vec<&SessionEntry>> = HashMap::new();
        for entry in &typed {
            children.entry(entry.parent_id.as_deref()).or_default().push(entry);
        }
        let parents: HashMap<&str, Option<&str>> =
            typed.iter().map(|entry| (entry.id.as_str(), entry.parent_id.as_deref())).collect();
        let mut current = std::collections::HashSet::new();
        let mut at = entries.leaf_id.as_deref();
        while let Some(id) = at {
            if !current.insert(id) {
                break;
            }
            at = parents.get(id).copied().flatten();
        }
        let mut rows = Vec::new();
        let mut open: Vec<(&SessionEntry, usize)> = Vec::new();
        let roots = children.get(&None).map(Vec::as_slice).unwrap_or_default();
        open.extend(roots.iter().rev().map(|root| (*root, usize::from(roots.len() > 1))));
        while let Some((entry, depth)) = open.pop() {
            if let Some((text, is_user)) = told(&entry.body) {
                let is_current = current.contains(entry.id.as_str());
                rows.push(TreeRow { entry: entry.id.clone(), depth, text, is_user, is_current });
            }
            let below = children.get(&Some(entry.id.as_str())).map(Vec::as_slice).unwrap_or_default();
            let depth = depth + usize::from(below.len() > 1);
            open.extend(below.iter().rev().map(|child| (*child, depth)));
        }
        let selected = rows.iter().rposition(|row| row.is_current).unwrap_or(0);
        Self { rows, selected }
    }

    /// Takes a key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> TreeChoice {
        let last = self.rows.len().saturating_sub(1);
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return TreeChoice::Closed,
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.selected = (self.selected + 1).min(last),
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(10),
            KeyCode::PageDown => self.selected = (self.selected + 10).min(last),
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = last,
            KeyCode::Enter => {
                return self.row().map_or(TreeChoice::Nothing, |row| TreeChoice::Go(row.entry.clone()));
            }
            KeyCode::Char('f') => {
                return match self.row().filter(|row| row.is_user) {
                    Some(row) => TreeChoice::Fork(row.entry.clone()),
                    None => TreeChoice::Nothing,
                };
            }
            _ => {}
        }
        TreeChoice::Nothing
    }

    /// The selected row.
    pub(crate) fn row(&self) -> Option<&TreeRow> {
        self.rows.get(self.selected)
    }
}

/// What a row tells of an entry, and whether it is a message of the user.
fn told(body: &EntryBody) -> Option<(String, bool)> {
    let first = |text: &str| one_line(text.trim().lines().next().unwrap_or_default());
    match body {
        EntryBody::Message { message: Message::User(user) } => Some((first(&user.content.text()), true)),
        EntryBody::Message { message: Message::Assistant(answer) } => {
            let text = answer.text();
            let calls: Vec<&str> = answer.tool_calls().map(|call| call.name.as_str()).collect();
            let told = if text.trim().is_empty() {
                format!("[{}]", one_line(&calls.join(", ")))
            } else {
                first(&text)
            };
            Some((told, false))
        }
        EntryBody::Compaction { .. } => Some(("[compacted]".to_owned(), false)),
        EntryBody::BranchSummary { .. } => Some(("[summary of a branch]".to_owned(), false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyModifiers;
    use serde_json::json;

    use super::*;

    fn entries() -> Entries {
        let user = |id: &str, parent: Option<&str>, text: &str| json!({"type": "message", "id": id, "parentId": parent, "timestamp": "", "message": {"role": "user", "content": text, "timestamp": 0}});
        let answer = |id: &str, parent: &str, text: &str| {
            json!({"type": "message", "id": id, "parentId": parent, "timestamp": "", "message":
                {"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": "stop", "timestamp": 0}})
        };
        let all = json!({"entries": [
            user("a", None, "one"), answer("b", "a", "first"), user("c", Some("b"), "two"), answer("d", "c", "second"),
            user("e", Some("b"), "other\nline"),
        ], "leafId": "e"});
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn branches_stand_below_their_fork() {
        let panel = TreePanel::of(&entries());
        let rows: Vec<(usize, &str, bool)> =
            panel.rows.iter().map(|row| (row.depth, row.text.as_str(), row.is_current)).collect();
        let expected = [
            (0, "one", true),
            (0, "first", true),
            (1, "two", false),
            (1, "second", false),
            (1, "other", true),
        ];
        assert_eq!(rows, expected);
        assert_eq!(panel.selected, 4);
    }

    #[test]
    fn keys_choose() {
        let mut panel = TreePanel::of(&entries());
        let mut press = |code| panel.key(KeyEvent::new(code, KeyModifiers::NONE));
        assert_eq!(press(KeyCode::Char('f')), TreeChoice::Fork("e".into()));
        assert_eq!(press(KeyCode::Up), TreeChoice::Nothing);
        assert_eq!(press(KeyCode::Char('f')), TreeChoice::Nothing);
        assert_eq!(press(KeyCode::Enter), TreeChoice::Go("d".into()));
        assert_eq!(press(KeyCode::Esc), TreeChoice::Closed);
    }
}
