//! One pass over the line of an entry: its own members, and those of its message that are counted.

use std::borrow::Cow;

use agentd_protocol::{
    json_text::{self, JsonCursor, JsonText, ScanFault},
    todo::TODO_TOOL,
};

use super::frame::UsualHead;
use crate::{
    counted_usage::CountedUsage,
    object::{name, string},
};

/// The members of a line that the store reads.
#[derive(Debug, Default, PartialEq)]
pub(super) struct LineMembers<'a> {
    pub(super) kind: Option<Cow<'a, str>>,
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) parent: Option<Cow<'a, str>>,
    /// As it is in the text.
    pub(super) timestamp: Option<&'a str>,
    /// The message, and the members of it where it is an object.
    pub(super) message: Option<(JsonText<'a>, Option<MessageMembers<'a>>)>,
    /// The time in Unix milliseconds, of a line of the usual form.
    pub(super) usual: Option<i64>,
}

/// The members of a message that are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct MessageMembers<'a> {
    /// As it is in the text.
    pub(crate) usage: Option<&'a str>,
    /// What it says, where that was read in passing.
    pub(crate) counted: Option<CountedUsage>,
    has_provider: bool,
    has_model: bool,
    /// The name of the tool whose result it is, as it is in the text.
    tool_name: Option<&'a str>,
    /// The blocks of the content that are tool calls.
    pub(crate) tool_calls: u64,
    /// A member is there twice, or of a type that it should not have: readers that want all of them may refuse the message.
    pub(crate) is_odd: bool,
}

impl<'a> LineMembers<'a> {
    /// Reads a line; `None` when it is no object.
    pub(super) fn of(line: &'a str) -> Option<Self> {
        match Self::usual(line).map_or_else(|| Self::scanned(line), Ok) {
            Ok(members) => Some(members),
            Err(ScanFault::NoJson) => None,
            Err(ScanFault::TooDeep) => Self::of_any_depth(line),
        }
    }

    /// Reads a line of the form that nearly all have, by its text: looking for the names of its members would take three times as long.
    fn usual(line: &'a str) -> Option<Self> {
        let (UsualHead { ids, timestamp, unix_ms }, rest) = UsualHead::of(line)?;
        if !rest.starts_with('{') {
            return None;
        }
        let (message, members) = MessageMembers::scanned(&mut JsonCursor::new(rest)).ok()?;
        UsualHead::is_end(rest.get(message.as_str().len()..)?).then(|| Self {
            kind: Some(Cow::Borrowed("message")),
            id: Some(Cow::Borrowed(ids.id)),
            parent: ids.parent.map(Cow::Borrowed),
            timestamp: Some(timestamp),
            message: Some((message, Some(members))),
            usual: Some(unix_ms),
        })
    }

    fn scanned(line: &'a str) -> Result<Self, ScanFault> {
        let mut found = Self::default();
        let mut cursor = JsonCursor::new(line);
        cursor.members(|key, cursor| {
            let key = name_of(key, cursor);
            if &*key == "message" {
                found.message = Some(match cursor.peek() {
                    Some(b'{') => {
                        let (text, members) = MessageMembers::scanned(cursor)?;
                        (text, Some(members))
                    }
                    _ => (cursor.value()?, None),
                });
            } else {
                found.take(&key, cursor.value()?);
            }
            Ok(())
        })?;
        cursor.end()?;
        Ok(found)
    }

    fn of_any_depth(line: &'a str) -> Option<Self> {
        let mut found = Self::default();
        let is_object = json_text::each_member(line, |key, value| match &*name(key) {
            "message" => {
                let members = value.as_str().starts_with('{').then(|| MessageMembers::of_any_depth(value));
                found.message = Some((value, members));
            }
            key => found.take(key, value),
        });
        is_object.then_some(found)
    }

    fn take(&mut self, key: &str, value: JsonText<'a>) {
        match key {
            "type" => self.kind = string(value.as_str()),
            "id" => self.id = string(value.as_str()),
            "parentId" => self.parent = string(value.as_str()),
            "timestamp" => self.timestamp = Some(value.as_str()),
            _ => {}
        }
    }
}

impl<'a> MessageMembers<'a> {
    /// Whether it is a result of the tool `todo`, if it is one of a tool.
    pub(crate) fn is_of_todo(&self) -> bool {
        self.tool_name.and_then(string).as_deref() == Some(TODO_TOOL)
    }

    /// The members of a message.
    pub(crate) fn of(message: &'a str) -> Self {
        let mut cursor = JsonCursor::new(message);
        match Self::scanned(&mut cursor) {
            Ok((_, members)) => members,
            Err(_) => {
                let mut found = Self::default();
                json_text::each_member(message, |key, value| found.take_whole(key, value));
                found
            }
        }
    }

    fn scanned(cursor: &mut JsonCursor<'a>) -> Result<(JsonText<'a>, Self), ScanFault> {
        let mut found = Self::default();
        let text = cursor.members(|key, cursor| {
            let key = name_of(key, cursor);
            if &*key == "content" {
                found.tool_calls = 0;
                match cursor.peek() {
                    Some(b'[') => cursor.elements(|cursor| {
                        found.tool_calls += u64::from(is_tool_call(cursor)?);
                        Ok(())
                    })?,
                    _ => cursor.value()?,
                };
                return Ok(());
            }
            if &*key == "usage" {
                let mut ahead = cursor.clone();
                if let Ok((text, usage)) = CountedUsage::plain(&mut ahead) {
                    *cursor = ahead;
                    found.take(&key, text);
                    found.counted = Some(usage);
                    return Ok(());
                }
            }
            found.take(&key, cursor.value()?);
            Ok(())
        })?;
        Ok((text, found))
    }

    fn of_any_depth(message: JsonText<'a>) -> Self {
        let mut found = Self::default();
        json_text::each_member(message.as_str(), |key, value| found.take_whole(key, value));
        found
    }

    /// Takes a member whose value was passed over.
    fn take_whole(&mut self, key: &str, value: JsonText<'a>) {
        let key = name(key);
        if &*key != "content" {
            return self.take(&key, value);
        }
        self.tool_calls = 0;
        json_text::each_element(value, |block| {
            let mut cursor = JsonCursor::new(block.as_str());
            // Elements are JSON; one that is nested too deeply ended the walk before.
            self.tool_calls += u64::from(is_tool_call(&mut cursor).unwrap_or_default());
        });
    }

    fn take(&mut self, key: &str, value: JsonText<'a>) {
        let text = value.as_str();
        let is_text = text.starts_with('"') || text == "null";
        match key {
            "usage" => {
                self.is_odd |= self.usage.replace(text).is_some();
                self.counted = None;
            }
            "provider" => self.is_odd |= std::mem::replace(&mut self.has_provider, true) || !is_text,
            "model" => self.is_odd |= std::mem::replace(&mut self.has_model, true) || !is_text,
            "toolName" => self.tool_name = Some(text),
            "durationMs" => {
                self.is_odd |= !text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
            }
            _ => {}
        }
    }
}

/// The name of the member that `cursor` stands in, behind its name.
fn name_of<'a>(raw: &'a str, cursor: &JsonCursor<'_>) -> Cow<'a, str> {
    match raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(plain) if !cursor.may_have_escapes() => Cow::Borrowed(plain),
        _ => name(raw),
    }
}

/// Goes behind a block of a content, and returns whether it is a tool call.
fn is_tool_call(cursor: &mut JsonCursor<'_>) -> Result<bool, ScanFault> {
    if cursor.peek() != Some(b'{') {
        return cursor.value().map(|_| false);
    }
    let mut is_call = false;
    cursor.members(|key, cursor| {
        let key = name_of(key, cursor);
        let value = cursor.value()?;
        if &*key == "type" {
            is_call = string(value.as_str()).as_deref() == Some("toolCall");
        }
        Ok(())
    })?;
    Ok(is_call)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One of these texts.
    fn one_of(texts: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
        prop::sample::select(texts)
    }

    proptest! {
        /// By its text or by its names, a line says the same.
        #[test]
        fn a_line_of_the_usual_form_reads_as_any(
            head in one_of(&[r#"{"type":"message","id":""#, r#"{ "type":"message","id":""#, r#"{"type":"custom","id":""#]),
            id in one_of(&["0123abcd", "é", "", "a\\u0062", "a\\", "a\tb", "0123456789abcdef0123"]),
            parent in one_of(&["null", "\"0\"", "\"\"", "\"\\n\"", "7", "\"", "nul"]),
            time in one_of(&["2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05Z", "2026-02-30T03:04:05.678Z", "2026-01-02T03:04:05.67\\n", ""]),
            message in one_of(&[
                r#"{"role":"user","content":"x"}"#,
                r#"{"role":"assistant","content":[{"type":"toolCall"}],"usage":{"input":1,"cost":{"total":0.5}}}"#,
                r#"{"usage":{"input":1},"usage":{"input":1e3}}"#,
                r#"{"usage":{"input":1e3},"u\u0073age":{"input":7}}"#,
                r#"{"toolName":"todo","durationMs":"x"}"#,
                r#"{"a":[[1,{"b":"}"}]]} "#, "\"text\"", "{\"a\"", "",
            ]),
            tail in one_of(&["}", " }", "}}", "", ",\"requestKey\":\"k\"}", ",\"id\":\"other\"}"]),
        ) {
            let line = format!(r#"{head}{id}","parentId":{parent},"timestamp":"{time}","message":{message}{tail}"#);
            let by_names = LineMembers::scanned(&line).ok();
            let usual = LineMembers::usual(&line);
            prop_assert_eq!(usual.is_some(), UsualHead::of(&line).is_some_and(|_| tail == "}" && by_names.is_some() && message.ends_with('}')));
            if let Some(usual) = usual {
                let counted = usual.message.and_then(|(_, members)| members).and_then(|members| Some((members.counted?, members.usage?)));
                if let Some((counted, text)) = counted {
                    prop_assert_eq!(Some(counted), CountedUsage::of(text));
                }
                prop_assert_eq!(Some(LineMembers { usual: None, ..usual }), by_names);
            }
        }
    }

    #[test]
    fn members_of_a_message_are_found_at_any_depth_of_the_rest() {
        let message = |rest: &str| {
            format!(
                r#"{{"role":"assistant","content":[{{"type":"text","text":"toolCall"}},7,{{"type":"tool\u0043all","arguments":{{"type":"x"}}}}],"provider":"p","model":"m\n","usage":{{"input":1}}{rest}}}"#
            )
        };
        for rest in [String::new(), format!(r#","deep":{}{}"#, "[".repeat(90), "]".repeat(90))] {
            let text = message(&rest);
            let found = MessageMembers::of(&text);
            assert_eq!(found.usage, Some(r#"{"input":1}"#));
            assert_eq!((found.tool_calls, found.is_odd), (1, false));
            let line = format!(r#"{{"type":"message","id":"a","message":{text}}}"#);
            let members = LineMembers::of(&line).unwrap();
            assert_eq!(members.message.unwrap().1, Some(found));
        }
        let odd = |rest: &str| MessageMembers::of(&message(rest)).is_odd;
        for rest in [r#","usage":{}"#, r#","model":"n""#, r#","provider":7"#, r#","durationMs":"x""#] {
            assert!(odd(rest), "{rest}");
        }
        assert!(!odd(r#","durationMs":7.5"#));
        // Of two contents the last counts.
        assert_eq!(MessageMembers::of(&message(r#","content":[]"#)).tool_calls, 0);
    }
}
