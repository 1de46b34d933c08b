//! Entries in the making.

use agentd_protocol::{Json, entry::EntryBody, message::Message};
use serde::Serialize;

use crate::{
    Entry, EntryKind, Role, StoreError,
    entry::{EntryId, Frame, MessageMembers},
    object::quoted,
};

/// A new entry before it has an id and a place in the tree.
#[derive(Debug, Clone)]
pub struct NewEntry {
    kind: EntryKind,
    /// `"type":"…"`.
    kind_member: String,
    /// The payload's members, each after a comma.
    payload: String,
    message: Option<Json<Message>>,
    /// Further members, each after a comma.
    extra: String,
    /// True if id, parent and time stamp follow the payload.
    payload_first: bool,
}

impl NewEntry {
    /// A message entry. The message's text goes into the line as it is.
    #[must_use]
    pub fn message(message: Json<Message>) -> Self {
        Self {
            kind: EntryKind::Message(Role::of(message.text())),
            kind_member: "\"type\":\"message\"".into(),
            payload: String::new(),
            message: Some(message),
            extra: String::new(),
            payload_first: false,
        }
    }

    /// An entry of any kind.
    ///
    /// # Errors
    /// [`StoreError::Encode`] when the body cannot be written as JSON.
    pub fn from_body(body: &EntryBody) -> Result<Self, StoreError> {
        let kind = match body {
            EntryBody::Message { message } => return Ok(Self::message(Json::new(message.clone())?)),
            EntryBody::ThinkingLevelChange { .. } => "thinking_level_change",
            EntryBody::ModelChange { .. } => "model_change",
            EntryBody::Usage { .. } => "usage",
            EntryBody::Compaction { .. } => "compaction",
            EntryBody::BranchSummary { .. } => "branch_summary",
            EntryBody::ContextEdit { .. } => "context_edit",
            EntryBody::Custom { .. } => "custom",
            EntryBody::CustomMessage { .. } => "custom_message",
            EntryBody::Label { .. } => "label",
            EntryBody::SessionInfo { name } => return Ok(Self::session_info(name)),
        };
        let text = serde_json::to_string(body)?;
        let kind_member = format!("\"type\":\"{kind}\"");
        let kind = EntryKind::from_name(kind);
        // The body is written with its type first.
        let payload =
            text.strip_prefix('{').and_then(|rest| rest.strip_prefix(&kind_member)?.strip_suffix('}'));
        let payload = payload.unwrap_or_default().to_owned();
        let payload_first = matches!(body, EntryBody::Custom { .. } | EntryBody::CustomMessage { .. });
        Ok(Self { kind, kind_member, payload, message: None, extra: String::new(), payload_first })
    }

    /// The session's name from here on: runs of line breaks become one space, and blanks around it go. An empty name
    /// clears it.
    #[must_use]
    pub fn session_info(name: &str) -> Self {
        let lines: Vec<&str> = name.split(['\r', '\n']).filter(|line| !line.is_empty()).collect();
        let name = lines.join(" ");
        Self {
            kind: EntryKind::SessionInfo,
            kind_member: "\"type\":\"session_info\"".into(),
            payload: format!(",\"name\":{}", quoted(name.trim())),
            message: None,
            extra: String::new(),
            payload_first: false,
        }
    }

    /// Adds a field that is no part of the format, at the end of the line; such as a command's `requestKey`.
    ///
    /// # Errors
    /// [`StoreError::Encode`] when the value cannot be written as JSON.
    pub fn with(mut self, field: &str, value: &impl Serialize) -> Result<Self, StoreError> {
        self.extra.push(',');
        self.extra.push_str(&quoted(field));
        self.extra.push(':');
        self.extra.push_str(&serde_json::to_string(value)?);
        Ok(self)
    }

    /// Gives the entry its id and place. `time` is an ISO time stamp.
    pub(crate) fn place(self, id: &str, parent_id: Option<&str>, time: &str) -> Entry {
        let Self { kind, kind_member, mut payload, message, extra, payload_first } = self;
        if kind == EntryKind::Compaction {
            // One that keeps nothing before itself.
            let own = format!("\"firstKeptEntryId\":{}", quoted(id));
            payload = payload.replacen("\"firstKeptEntryId\":\"\"", &own, 1);
        }
        let (before, after) = if payload_first { (&*payload, "") } else { ("", &*payload) };
        let parent = parent_id.map_or_else(|| "null".into(), quoted);
        let mut frame =
            format!("{{{kind_member}{before},\"id\":{},\"parentId\":{parent},\"timestamp\":\"", quoted(id));
        let timestamp = frame.len()..frame.len() + time.len();
        frame.push_str(time);
        frame.push('"');
        frame.push_str(after);
        if message.is_some() {
            frame.push_str(",\"message\":");
        }
        let message_at = frame.len();
        frame.push_str(&extra);
        frame.push('}');
        let (id, parent_id) = (EntryId::from(id), parent_id.map(EntryId::from));
        let frame = Frame::around(frame, message_at, timestamp);
        let message = message.map(one_line);
        let is_todo_result = kind == EntryKind::Message(Role::ToolResult)
            && message.as_ref().is_some_and(|it| MessageMembers::of(it.text()).is_of_todo());
        Entry { id, parent_id, kind, frame, message, is_todo_result }
    }
}

/// A message without line breaks between its tokens: one entry is one line, whatever the message came from.
fn one_line(message: Json<Message>) -> Json<Message> {
    if memchr::memchr2(b'\n', b'\r', message.text().as_bytes()).is_none() {
        return message;
    }
    // Raw line breaks are no part of JSON strings, so that these stand between tokens.
    let text = message.text().replace(['\n', '\r'], " ");
    serde_json::value::RawValue::from_string(text).map_or(message, Json::from_raw)
}

#[cfg(test)]
mod tests {
    use agentd_protocol::message::MessageContent;
    use serde_json::json;

    use super::*;

    fn check(new: NewEntry, expected: &str) -> Entry {
        let entry = new.place("0123abcd", Some("p"), "t");
        assert_eq!(entry.line(), expected);
        assert_eq!(
            (entry.id(), entry.parent_id(), entry.timestamp()),
            ("0123abcd", Some("p"), "t".into()),
            "{expected}"
        );
        // The entry as it would be read back.
        let read = Entry::parse(expected).unwrap();
        assert_eq!((read.kind(), read.message()), (entry.kind(), entry.message()));
        entry
    }

    fn body(body: &EntryBody) -> NewEntry {
        NewEntry::from_body(body).unwrap()
    }

    #[test]
    fn key_order_is_that_of_the_format() {
        check(
            body(&EntryBody::ModelChange { provider: "a".into(), model_id: "b".into() }),
            r#"{"type":"model_change","id":"0123abcd","parentId":"p","timestamp":"t","provider":"a","modelId":"b"}"#,
        );
        check(
            body(&EntryBody::ContextEdit { target_id: "x".into(), replacement: None }),
            r#"{"type":"context_edit","id":"0123abcd","parentId":"p","timestamp":"t","targetId":"x","replacement":null}"#,
        );
        check(
            body(&EntryBody::Custom { custom_type: "c".into(), data: Some(json!({"n": 1})) }),
            r#"{"type":"custom","customType":"c","data":{"n":1},"id":"0123abcd","parentId":"p","timestamp":"t"}"#,
        );
        check(
            body(&EntryBody::CustomMessage {
                custom_type: "c".into(),
                content: MessageContent::Text("hi".into()),
                display: true,
                details: None,
            }),
            r#"{"type":"custom_message","customType":"c","content":"hi","display":true,"id":"0123abcd","parentId":"p","timestamp":"t"}"#,
        );
    }

    #[test]
    fn a_message_is_spliced_in_as_text() {
        let text = r#"{"role":"user","content":"a","timestamp":1.0,"odd":"\u0041"}"#;
        let message = serde_json::from_str(text).unwrap();
        let entry = check(
            NewEntry::message(message).with("requestKey", &"k\"1").unwrap(),
            &format!(
                r#"{{"type":"message","id":"0123abcd","parentId":"p","timestamp":"t","message":{text},"requestKey":"k\"1"}}"#
            ),
        );
        assert_eq!(entry.message().unwrap().text(), text);
        assert!(entry.starts_the_file());
        let root = NewEntry::message(serde_json::from_str(text).unwrap()).place("i", None, "t");
        assert!(root.line().contains(r#""parentId":null,"#));
    }

    #[test]
    fn pretty_messages_become_one_line() {
        let message =
            serde_json::from_str("{\n  \"role\": \"user\",\r\n  \"content\": \"a\\nb\"\n}").unwrap();
        let entry = NewEntry::message(message).place("i", None, "t");
        assert!(!entry.line().contains(['\n', '\r']));
        assert_eq!(entry.message().unwrap().get().unwrap().role(), "user");
    }

    #[test]
    fn names_are_one_line() {
        for (given, stored) in [(" a\r\n\nb ", "a b"), ("\n", ""), ("x\ry", "x y"), ("\n \nz", "z")] {
            let entry = body(&EntryBody::SessionInfo { name: given.into() }).place("i", None, "t");
            assert_eq!(entry.kind(), EntryKind::SessionInfo);
            assert!(entry.line().ends_with(&format!(r#","name":"{stored}"}}"#)), "{}", entry.line());
        }
    }
}
