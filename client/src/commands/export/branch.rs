//! Reads the current branch of a session file, one entry at a time.

use std::{
    collections::HashMap,
    io::{self, BufRead, Seek, SeekFrom},
};

use agentd_protocol::{daemon::SessionInfo, entry::EntryBody, parse_json};
use serde::Deserialize;
use serde_json::Value;

use crate::session_file::{SessionFileError, SessionFileStart, begin, read_line};

/// The facts about a session besides its entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SessionFacts {
    pub(super) id: String,
    pub(super) cwd: String,
    /// The time of its creation, as in the file.
    pub(super) created: String,
    /// The last name that it was given.
    pub(super) name: Option<String>,
}

/// A session file, with the offsets of the branch's lines.
pub(super) struct CurrentBranch<R> {
    pub(super) about: SessionFacts,
    input: R,
    /// The offsets of the branch's lines, from the root to the leaf.
    offsets: Vec<u64>,
    next: usize,
}

/// The fields that place an entry in the tree. Old files have neither ids nor parents.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntryHead {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    parent_id: Option<String>,
    #[serde(default)]
    name: Option<Value>,
}

struct EntryPosition {
    at: u64,
    id: Option<String>,
    parent: Option<String>,
}

impl<R: BufRead + Seek> CurrentBranch<R> {
    /// Reads a session file once to find its tree.
    ///
    /// # Errors
    /// When it cannot be read, or is no session file.
    pub(super) fn read(mut input: R) -> Result<Self, SessionFileError> {
        input.rewind()?;
        let SessionFileStart { header, in_a_row } = begin(&mut input)?;
        let about = SessionFacts { id: header.id, cwd: header.cwd, created: header.timestamp, name: None };
        Self::index(input, about, in_a_row)
    }

    /// Reads entries without a header.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(super) fn of_lines(input: R, session: &SessionInfo) -> Result<Self, SessionFileError> {
        let about = SessionFacts {
            id: session.id.clone(),
            cwd: session.cwd.clone(),
            created: session.created.clone(),
            name: session.name.clone(),
        };
        Self::index(input, about, false)
    }

    fn index(mut input: R, mut about: SessionFacts, in_a_row: bool) -> Result<Self, SessionFileError> {
        let mut all = Vec::new();
        let mut line = Vec::new();
        loop {
            let at = input.stream_position()?;
            if read_line(&mut input, &mut line)? == 0 {
                break;
            }
            // A torn or unknown line is skipped, as in the daemon.
            let Some(head) = parse_line::<EntryHead>(&line) else { continue };
            match head.kind.as_str() {
                "session" => continue,
                "session_info" => {
                    let name = head.name.as_ref().and_then(Value::as_str).map(str::trim).map(str::to_owned);
                    about.name = name.filter(|name| !name.is_empty());
                }
                _ => {}
            }
            if in_a_row || head.id.is_some() {
                all.push(EntryPosition { at, id: head.id, parent: head.parent_id });
            }
        }
        let offsets = if in_a_row { all.iter().map(|entry| entry.at).collect() } else { to_leaf(&all) };
        Ok(Self { about, input, offsets, next: 0 })
    }

    /// The next entry of the branch; `None` at the leaf. The inner `None` is an entry of an unknown kind.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn next(&mut self) -> io::Result<Option<Option<EntryBody>>> {
        let Some(at) = self.offsets.get(self.next) else { return Ok(None) };
        self.next += 1;
        self.input.seek(SeekFrom::Start(*at))?;
        let mut line = Vec::new();
        read_line(&mut self.input, &mut line)?;
        Ok(Some(parse_line::<EntryBody>(&line).or_else(|| old_message(&line))))
    }
}

/// The offsets from the root to the last line, which is the leaf. The parent of an entry is the last earlier entry with
/// that id. Without one it is the entry before, as in the daemon: a conversation goes on after a lost line.
fn to_leaf(all: &[EntryPosition]) -> Vec<u64> {
    let mut by_id: HashMap<&str, usize> = HashMap::new();
    let mut parents = Vec::with_capacity(all.len());
    for (at, entry) in all.iter().enumerate() {
        let before = entry.parent.as_deref();
        parents.push(before.and_then(|id| by_id.get(id).copied().or(at.checked_sub(1))));
        by_id.extend(entry.id.as_deref().map(|id| (id, at)));
    }
    let upwards = std::iter::successors(all.len().checked_sub(1), |at| parents[*at]);
    let mut offsets: Vec<u64> = upwards.map(|at| all[at].at).collect();
    offsets.reverse();
    offsets
}

fn parse_line<T: serde::de::DeserializeOwned>(line: &[u8]) -> Option<T> {
    parse_json(std::str::from_utf8(line).ok()?.trim()).ok()
}

/// An extension's message in the form of version 2.
fn old_message(line: &[u8]) -> Option<EntryBody> {
    let mut entry: Value = parse_line(line)?;
    let role = entry.get_mut("message")?.get_mut("role")?;
    (role == "hookMessage").then(|| *role = Value::from("custom"))?;
    serde_json::from_value(entry).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn texts(file: &str) -> Vec<String> {
        let mut branch = CurrentBranch::read(Cursor::new(file)).unwrap();
        let mut texts = Vec::new();
        while let Some(entry) = branch.next().unwrap() {
            texts.push(match entry {
                Some(EntryBody::Message { message: agentd_protocol::message::Message::User(user) }) => {
                    user.content.text()
                }
                Some(EntryBody::Message { message }) => message.role().to_owned(),
                Some(_) => "other".to_owned(),
                None => "unknown".to_owned(),
            });
        }
        texts
    }

    fn user(id: &str, parent: &str, text: &str) -> String {
        format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"t","message":{{"role":"user","content":"{text}"}}}}"#
        )
    }

    #[test]
    fn only_the_branch_of_the_last_line_is_read() {
        let header = r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/w"}"#;
        let lines = [
            header.to_owned(),
            user("a", "null", "one"),
            user("b", "\"a\"", "left"),
            "torn {".into(),
            r#"{"type":"session_info","id":"i","parentId":"b","name":" Named "}"#.into(),
            r#"{"type":"from_the_future","id":"f","parentId":"a","x":1}"#.into(),
            user("c", "\"f\"", "half \\ud83d"),
        ];
        assert_eq!(texts(&lines.join("\n")), ["one", "unknown", "half \u{fffd}"]);
        let branch = CurrentBranch::read(Cursor::new(lines.join("\n"))).unwrap();
        assert_eq!((branch.about.name.as_deref(), branch.about.cwd.as_str()), (Some("Named"), "/w"));
        let circle = [header.to_owned(), user("a", "\"b\"", "1"), user("b", "\"a\"", "2")];
        assert_eq!(texts(&circle.join("\n")), ["1", "2"]);
        let gap = [header.to_owned(), user("a", "null", "1"), "lost".into(), user("c", "\"b\"", "3")];
        assert_eq!(texts(&format!("\u{feff}{}", gap.join("\r\n"))), ["1", "3"]);
    }

    #[test]
    fn old_files_are_read_in_a_row() {
        let first = r#"{"type":"session","id":"s","cwd":"/w"}
{"type":"message","timestamp":"t","message":{"role":"user","content":"one"}}
{"type":"message","timestamp":"t","message":{"role":"hookMessage","customType":"x","content":"h"}}"#;
        assert_eq!(texts(first), ["one", "custom"]);
    }

    #[test]
    fn other_files_are_refused() {
        let refusal =
            |text: &str| CurrentBranch::read(Cursor::new(text.to_owned())).err().unwrap().to_string();
        assert!(refusal("").contains("no session file"));
        assert!(refusal("# A title\n").contains("no session file"));
        assert!(refusal(r#"{"type":"session","version":9,"id":"s"}"#).contains("format version 9"));
    }
}
