//! One entry: the line as it is in the file, and the little that a tree needs to know of it.

mod entry_id;
mod frame;
mod scan;

use std::{borrow::Cow, ops::Range, sync::Arc};

use agentd_protocol::{
    Json, TextStore,
    entry::{EntryBody, SessionEntry},
    json_text::JsonText,
    message::Message,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

pub(crate) use self::{entry_id::EntryId, frame::Frame, scan::MessageMembers};
use self::{frame::Ids, scan::LineMembers};
use crate::{
    StoreError,
    object::{each_member, name, quoted, string},
};

/// The kind of an entry, as far as the store distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EntryKind {
    /// A message of the transcript.
    Message(Role),
    /// A new thinking level.
    ThinkingLevelChange,
    /// A new model.
    ModelChange,
    /// Tokens spent outside of any message.
    Usage,
    /// A summary in the place of what came before.
    Compaction,
    /// A summary of a branch that was left.
    BranchSummary,
    /// A change of another entry's message.
    ContextEdit,
    /// Data of an extension.
    Custom,
    /// A message of an extension.
    CustomMessage,
    /// A bookmark.
    Label,
    /// The session's name.
    SessionInfo,
    /// Something that this version does not know. It is kept and passed on.
    Unknown,
}

/// The speaker of a message entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// `system`.
    System,
    /// `user`.
    User,
    /// `assistant`.
    Assistant,
    /// `toolResult`.
    ToolResult,
    /// `bashExecution`.
    BashExecution,
    /// `custom`, in files that were once of version 2.
    Custom,
    /// Anything else.
    Unknown,
}

impl EntryKind {
    pub(crate) fn from_name(kind: &str) -> Self {
        match kind {
            "message" => Self::Message(Role::Unknown),
            "thinking_level_change" => Self::ThinkingLevelChange,
            "model_change" => Self::ModelChange,
            "usage" => Self::Usage,
            "compaction" => Self::Compaction,
            "branch_summary" => Self::BranchSummary,
            "context_edit" => Self::ContextEdit,
            "custom" => Self::Custom,
            "custom_message" => Self::CustomMessage,
            "label" => Self::Label,
            "session_info" => Self::SessionInfo,
            _ => Self::Unknown,
        }
    }
}

impl Role {
    fn from_name(role: &str) -> Self {
        match role {
            "system" => Self::System,
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "toolResult" => Self::ToolResult,
            "bashExecution" => Self::BashExecution,
            "custom" => Self::Custom,
            _ => Self::Unknown,
        }
    }

    /// The role that a message's text names. Most messages begin with it, so that little of a long one is read.
    pub(crate) fn of(message: &str) -> Self {
        if let Some(role) = message.strip_prefix("{\"role\":\"").and_then(|rest| rest.split('"').next()) {
            return Self::from_name(role);
        }
        let mut role = None;
        each_member(message, |key, value| {
            if name(key) == "role" {
                role = string(value);
            }
        });
        role.map_or(Self::Unknown, |role| Self::from_name(&role))
    }
}

/// An entry of a session.
///
/// Holds the text of its line once. Of a `message` entry, the message is a piece of its own, so that contexts, events
/// and requests share it; in a long file it stays in the file until it is asked for.
#[derive(Debug, Clone)]
pub struct Entry {
    pub(crate) id: EntryId,
    pub(crate) parent_id: Option<EntryId>,
    pub(crate) kind: EntryKind,
    /// The line without its message.
    pub(crate) frame: Frame,
    pub(crate) message: Option<Json<Message>>,
    pub(crate) is_todo_result: bool,
}

/// Where a line is in a file that keeps its messages.
#[derive(Clone, Copy)]
pub(crate) struct LineInFile<'a> {
    pub(crate) texts: &'a Arc<Box<dyn TextStore>>,
    /// The first byte of the line.
    pub(crate) at: u64,
}

impl Entry {
    /// Reads a line; `None` when it is no object, or has no id.
    ///
    /// Everything else may be missing or odd: the line is kept as it is. A header line is no entry.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        Self::scan(line, None).map(|scanned| scanned.entry)
    }

    /// [`Self::parse`], and what is counted of its message, if it has one: both by one look at the line. With the line's place, its message
    /// stays in the file.
    pub(crate) fn scan<'a>(line: &'a str, place: Option<LineInFile<'_>>) -> Option<Scanned<'a>> {
        let LineMembers { kind, id, parent, timestamp, message, usual } = LineMembers::of(line)?;
        let id = id.filter(|id| !id.is_empty())?;
        if kind.as_deref() == Some("session") {
            return None;
        }
        let mut kind = kind.map_or(EntryKind::Unknown, |kind| EntryKind::from_name(&kind));
        let message = match message {
            Some((text, Some(members))) if matches!(kind, EntryKind::Message(_)) => {
                range_in(line, text.as_str()).map(|range| (text, members, range))
            }
            _ => None,
        };
        let mut is_todo_result = false;
        if let Some((text, members, _)) = &message {
            let role = Role::of(text.as_str());
            is_todo_result = role == Role::ToolResult && members.is_of_todo();
            kind = EntryKind::Message(role);
        }
        let parts = Parts {
            kind,
            is_todo_result,
            id: EntryId::from(&*id),
            parent_id: parent.map(|parent| EntryId::from(&*parent)),
            timestamp: timestamp.and_then(|text| range_in(line, text)),
            usual,
        };
        let Some((text, members, range)) = message else {
            return Some(Scanned { entry: parts.whole(line), message: None });
        };
        Some(Scanned {
            entry: parts.with_message(line, text, range, place),
            message: Some((text.as_str(), members)),
        })
    }

    /// Unique in the session.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The entry that this one follows; `None` for a root.
    #[must_use]
    pub fn parent_id(&self) -> Option<&str> {
        self.parent_id.as_deref()
    }

    /// The kind of the entry.
    #[must_use]
    pub fn kind(&self) -> EntryKind {
        self.kind
    }

    /// The time stamp of the line; empty when it has none.
    #[must_use]
    pub fn timestamp(&self) -> Cow<'_, str> {
        self.frame.timestamp()
    }

    /// [`Self::timestamp`] in Unix milliseconds.
    #[must_use]
    pub fn timestamp_ms(&self) -> Option<i64> {
        self.frame.timestamp_ms()
    }

    /// The message of a message entry, its text as it is in the line.
    #[must_use]
    pub fn message(&self) -> Option<&Json<Message>> {
        self.message.as_ref()
    }

    /// Returns whether it is a result of the tool `todo`, in which a session has its list of tasks. Its message need not be read for that.
    #[must_use]
    pub fn is_todo_result(&self) -> bool {
        self.is_todo_result
    }

    /// Returns whether the entry makes a session worth a file: a message of the user or of the model.
    #[must_use]
    pub fn starts_the_file(&self) -> bool {
        matches!(self.kind, EntryKind::Message(Role::User | Role::Assistant))
    }

    /// The length of the line in bytes, LF not counted.
    #[must_use]
    pub fn line_len(&self) -> usize {
        self.frame.len(self.ids()) + self.message().map_or(0, Json::text_len)
    }

    /// Appends the line, without LF, to `out`. A message that is in a file alone stays there.
    pub fn write_line(&self, out: &mut Vec<u8>) {
        self.frame.write(self.ids(), out, |out| {
            if let Some(message) = &self.message {
                message.write_text(out);
            }
        });
    }

    /// The line, without LF.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = Vec::new();
        self.write_line(&mut line);
        // All of it was text before.
        String::from_utf8(line).unwrap_or_default()
    }

    fn ids(&self) -> Ids<'_> {
        Ids { id: &self.id, parent: self.parent_id.as_deref() }
    }

    /// Returns whether another entry has the same line.
    pub(crate) fn is_same_line(&self, other: &Self) -> bool {
        self.line_len() == other.line_len() && self.line() == other.line()
    }

    /// Returns whether the entry is linked, as session files have them, and not an object of another kind that has an id.
    pub(crate) fn is_linked(&self) -> bool {
        self.kind != EntryKind::Unknown && !self.timestamp().is_empty()
    }

    /// The line as a value to be sent. Copies the text.
    ///
    /// # Errors
    /// None for an entry that was read or made here: its line is JSON.
    pub fn json(&self) -> Result<Json<SessionEntry>, StoreError> {
        Ok(Json::from_raw(RawValue::from_string(self.line())?))
    }

    /// The entry parsed now; `None` when its kind is unknown or its fields make no sense.
    ///
    /// For messages, [`Self::message`] is cheaper.
    #[must_use]
    pub fn body(&self) -> Option<EntryBody> {
        match self.message() {
            Some(message) => message.get().cloned().map(|message| EntryBody::Message { message }),
            None => self.read(),
        }
    }

    /// A field that is no part of the format, such as one of [`crate::NewEntry::with`]: the string that it holds. Looks
    /// at the line without its message.
    #[must_use]
    pub fn extra(&self, field: &str) -> Option<String> {
        // Few entries have extra fields. A field name written with escapes is not found; no program writes one.
        if !self.frame().contains(&quoted(field)) {
            return None;
        }
        let mut found = None;
        let mut look = |text: &str| {
            each_member(text, |key, value| {
                if name(key) == field {
                    found = string(value).map(Cow::into_owned);
                }
            })
        };
        match self.message {
            Some(_) => {
                let (before, after) = self.frame.around_message();
                look(&[before, "null", after].concat())
            }
            None => look(self.frame()),
        };
        found
    }

    /// Reads some fields of an entry that is no message; `None` when they do not have that shape, and for a message.
    /// [`Self::extra`] finds fields beside a message.
    #[must_use]
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        agentd_protocol::parse_json(self.frame()).ok()
    }

    /// Whether its data can be of this type of an extension, or of agentd: false means that they are not. Looks for the name without
    /// parsing the line, so that many entries cost little.
    #[must_use]
    pub fn may_be_custom(&self, custom_type: &str) -> bool {
        self.kind() == EntryKind::Custom && self.frame().contains(&format!("\"{custom_type}\""))
    }

    /// The line of an entry that is no message. For a message, the line without it if there is anything unusual in it, or else nothing.
    pub(crate) fn frame(&self) -> &str {
        self.frame.kept_text()
    }
}

/// The facts about a line before its text is stored.
struct Parts {
    kind: EntryKind,
    is_todo_result: bool,
    id: EntryId,
    parent_id: Option<EntryId>,
    timestamp: Option<Range<usize>>,
    /// As in [`LineMembers`].
    usual: Option<i64>,
}

impl Parts {
    fn whole(self, line: &str) -> Entry {
        let Self { kind, id, parent_id, timestamp, is_todo_result, .. } = self;
        let frame = Frame::text(line, None, unquoted(timestamp));
        Entry { id, parent_id, kind, frame, message: None, is_todo_result }
    }

    fn with_message(
        self,
        line: &str,
        value: JsonText<'_>,
        message: Range<usize>,
        place: Option<LineInFile<'_>>,
    ) -> Entry {
        let Self { kind, id, parent_id, timestamp, is_todo_result, usual } = self;
        let len = u32::try_from(message.len()).ok().filter(|len| *len >= LEAST_STORED_BYTES);
        let json = match place.zip(len) {
            Some((LineInFile { texts, at }, len)) => {
                Json::stored(Arc::clone(texts), at + message.start as u64, len)
            }
            None => Json::from_raw(value.to_raw()),
        };
        let frame = match usual.filter(|_| place.is_some()) {
            Some(unix_ms) => Frame::Usual(unix_ms),
            None => Frame::text(line, Some(message), unquoted(timestamp)),
        };
        Entry { id, parent_id, kind, frame, message: Some(json), is_todo_result }
    }
}

/// A shorter message takes less room in memory than the note where it is.
const LEAST_STORED_BYTES: u32 = 64;

/// A line that was read.
pub(crate) struct Scanned<'a> {
    pub(crate) entry: Entry,
    /// The text of its message, and what is counted of it.
    pub(crate) message: Option<(&'a str, MessageMembers<'a>)>,
}

/// The range of `part`, a sub-slice of `whole`, in it.
fn range_in(whole: &str, part: &str) -> Option<Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    (start + part.len() <= whole.len()).then(|| start..start + part.len())
}

/// The range of a string without its quotes. Anything else counts as an empty string.
fn unquoted(range: Option<Range<usize>>) -> Range<usize> {
    range.filter(|range| range.len() >= 2).map_or(0..0, |range| range.start + 1..range.end - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(line: &str) -> Entry {
        let entry = Entry::parse(line).unwrap();
        assert_eq!(entry.line(), line);
        assert_eq!(entry.json().unwrap().text(), line);
        assert_eq!(entry.line_len(), line.len());
        entry
    }

    #[test]
    fn a_message_entry_shares_its_message() {
        let line = r#"{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"\ud83d hi","x":1.0},"extra":[1.50]}"#;
        let entry = entry(line);
        assert_eq!(
            (entry.id(), entry.parent_id(), entry.kind()),
            ("a", None, EntryKind::Message(Role::User))
        );
        assert_eq!(entry.message().unwrap().text(), r#"{"role":"user","content":"\ud83d hi","x":1.0}"#);
        assert_eq!(entry.timestamp_ms(), Some(1_767_225_600_000));
        let Some(EntryBody::Message { message: Message::User(user) }) = entry.body() else {
            panic!("no message")
        };
        assert_eq!(user.content.text(), "\u{fffd} hi");
    }

    #[test]
    fn extra_fields_are_found_around_the_message_and_never_in_it() {
        let line = r#"{"k":"1","type":"message","id":"a","message":{"role":"user","content":"x","requestKey":"no"},"requestKey":"\u0061\"b","n":7}"#;
        let read = entry(line);
        assert_eq!(read.extra("requestKey").as_deref(), Some("a\"b"));
        assert_eq!(read.extra("k").as_deref(), Some("1"));
        assert_eq!((read.extra("n"), read.extra("role"), read.extra("x")), (None, None, None));
        let whole = entry(r#"{"type":"label","id":"a","x":{"requestKey":"no"},"requestKey":"k"}"#);
        assert_eq!(whole.extra("requestKey").as_deref(), Some("k"));
    }

    #[test]
    fn the_order_of_fields_does_not_matter() {
        let line = r#"{"message":{"content":"x","role":"assistant"},"timestamp":"t1","parentId":"p","id":"a","type":"message"}"#;
        let entry = entry(line);
        assert_eq!((entry.kind(), entry.timestamp()), (EntryKind::Message(Role::Assistant), "t1".into()));
        assert_eq!(entry.parent_id(), Some("p"));
    }

    #[test]
    fn results_of_the_todo_tool_are_known_without_their_messages() {
        let is_todo = |role: &str, tool: &str| {
            let message = format!(
                r#"{{"role":"{role}","toolCallId":"c","toolName":"{tool}","content":[],"isError":false,"timestamp":0}}"#
            );
            let line = format!(r#"{{"type":"message","id":"a","message":{message}}}"#);
            let message = serde_json::from_str(&message).unwrap();
            let made = crate::NewEntry::from_body(&EntryBody::Message { message });
            let placed = made.unwrap().place("a", None, "t");
            assert_eq!(placed.is_todo_result(), entry(&line).is_todo_result());
            placed.is_todo_result()
        };
        assert!(is_todo("toolResult", "todo") && is_todo("toolResult", "tod\\u006f"));
        assert!(!is_todo("toolResult", "bash") && !is_todo("user", "todo"));
    }

    #[test]
    fn other_kinds_are_kept_whole() {
        let known =
            entry(r#"{"type":"label","id":"a","parentId":"b","timestamp":"t","targetId":"b","label":"x"}"#);
        assert_eq!(known.kind(), EntryKind::Label);
        assert!(matches!(known.body(), Some(EntryBody::Label { label: Some(label), .. }) if label == "x"));
        let unknown = entry(r#"{"type":"todo","id":"a","message":{"role":"user"},"timestamp":7}"#);
        assert_eq!(
            (unknown.kind(), unknown.timestamp(), unknown.body()),
            (EntryKind::Unknown, "".into(), None)
        );
        assert!(unknown.message().is_none());
        let odd = entry(r#"{"type":"message","id":"a","message":"text"}"#);
        assert_eq!((odd.kind(), odd.message()), (EntryKind::Message(Role::Unknown), None));
    }

    #[test]
    fn escapes_in_heads_are_read() {
        let entry = entry(r#"{"\u0074ype":"custom\u005fmessage","id":"\u0061\"","parentId":"x\ud800"}"#);
        assert_eq!((entry.id(), entry.parent_id()), ("a\"", Some("x\u{fffd}")));
        assert_eq!(entry.kind(), EntryKind::CustomMessage);
    }

    #[test]
    fn lines_that_are_no_entries() {
        for line in ["", "{", "[]", "7", r#"{"type":"label"}"#, r#"{"type":"label","id":7}"#, r#"{"id":""}"#]
        {
            assert!(Entry::parse(line).is_none(), "{line}");
        }
        assert!(Entry::parse(r#"{"type":"session","id":"x"}"#).is_none());
    }
}
