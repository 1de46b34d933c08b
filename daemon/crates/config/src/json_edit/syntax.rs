//! The positions of members and items in a JSON text.

use std::ops::Range;

use crate::json_comments::{string_end, strip};

pub(super) struct Object {
    pub(super) members: Vec<Member>,
    /// The offset of the closing brace.
    pub(super) end: usize,
}

pub(super) struct Member {
    pub(super) key: String,
    pub(super) start: usize,
    pub(super) value: Range<usize>,
}

/// The members of the object that starts at `start` of a valid JSON text.
pub(super) fn members(json: &str, start: usize) -> Option<Object> {
    let bytes = json.as_bytes();
    let mut at = skip_blanks(bytes, start.checked_add(1).filter(|_| bytes.get(start) == Some(&b'{'))?);
    let mut members = Vec::new();
    while bytes.get(at)? == &b'"' {
        let key_end = string_end(bytes, at);
        let key = serde_json::from_str(&json[at..key_end]).ok()?;
        let colon = skip_blanks(bytes, key_end);
        let value = skip_blanks(bytes, colon + 1);
        let end = value_end(bytes, value)?;
        members.push(Member { key, start: at, value: value..end });
        at = skip_blanks(bytes, end);
        if bytes.get(at)? == &b',' {
            at = skip_blanks(bytes, at + 1);
        }
    }
    (bytes[at] == b'}').then_some(Object { members, end: at })
}

/// Returns whether the text is only JSON's white space.
pub(crate) fn is_blank(json: &str) -> bool {
    skip_blanks(json.as_bytes(), 0) == json.len()
}

pub(super) fn skip_blanks(bytes: &[u8], from: usize) -> usize {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    from + bytes.get(from..).unwrap_or_default().iter().take_while(|byte| blank(byte)).count()
}

/// The offset after the value that starts at `start`.
pub(super) fn value_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = start;
    loop {
        match bytes.get(at)? {
            b'"' => at = string_end(bytes, at),
            b'{' | b'[' => (depth, at) = (depth + 1, at + 1),
            b'}' | b']' => (depth, at) = (depth.checked_sub(1)?, at + 1),
            _ if depth > 0 => at += 1,
            // A number or a word.
            _ => {
                let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
                return Some(at + bytes[at..].iter().position(ends)?);
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

pub(super) fn splice(text: &str, range: Range<usize>, new: &str) -> String {
    format!("{}{new}{}", &text[..range.start], &text[range.end..])
}

/// One step into a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonStep<'a> {
    /// The member with that key.
    Key(&'a str),
    /// The item with that index.
    Item(usize),
}

/// The line, from 1, on which the member at `path` starts in a text that holds valid JSON, with comments or without: the
/// line of its key, or of the item. Where the path leads nowhere, the line of what it leads to last.
pub(crate) fn line_of(text: &str, path: &[JsonStep<'_>]) -> u32 {
    let stripped = strip(text);
    let bytes = stripped.as_bytes();
    let mut shown = skip_blanks(bytes, 0);
    let mut value = shown;
    for step in path {
        let next = match step {
            // Parsers take the last of two members with the same key.
            JsonStep::Key(key) => members(&stripped, value).and_then(|object| {
                object
                    .members
                    .into_iter()
                    .rfind(|member| member.key == *key)
                    .map(|it| (it.start, it.value.start))
            }),
            JsonStep::Item(index) => item(bytes, value, *index).map(|start| (start, start)),
        };
        let Some(next) = next else { break };
        (shown, value) = next;
    }
    let before = bytes.get(..shown).unwrap_or_default();
    let breaks = before.iter().filter(|byte| **byte == b'\n').count();
    u32::try_from(breaks + 1).unwrap_or(u32::MAX)
}

/// The offset of an item of the array that starts at `start`.
fn item(bytes: &[u8], start: usize, index: usize) -> Option<usize> {
    if bytes.get(start) != Some(&b'[') {
        return None;
    }
    let mut at = skip_blanks(bytes, start + 1);
    for _ in 0..index {
        at = skip_blanks(bytes, value_end(bytes, at)?);
        at = skip_blanks(bytes, (bytes.get(at)? == &b',').then_some(at + 1)?);
    }
    (bytes.get(at)? != &b']').then_some(at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{JsonStep::*, *};

    #[test]
    fn members_and_items_are_found() {
        let text = "// mine\n{\n  \"a\": 1, /* \"b\": \n */ \"b\": {\n    \"c\": [\n      1,\n      {\"d\": 2}, [\n3]\n    ]\n  }\n}";
        let check = |path: &[JsonStep<'_>], line| assert_eq!(line_of(text, path), line, "{path:?}");
        check(&[], 2);
        check(&[Key("a")], 3);
        check(&[Key("b")], 4);
        check(&[Key("b"), Key("c")], 5);
        check(&[Key("b"), Key("c"), Item(0)], 6);
        check(&[Key("b"), Key("c"), Item(1), Key("d")], 7);
        check(&[Key("b"), Key("c"), Item(2), Item(0)], 8);
        // Steps to members and items that do not exist.
        check(&[Key("b"), Key("x")], 4);
        check(&[Key("b"), Key("c"), Item(3)], 5);
        check(&[Key("a"), Key("c"), Item(3)], 3);
        check(&[Item(0)], 2);
    }

    #[test]
    fn of_two_members_the_last_counts() {
        assert_eq!(line_of("{\"a\":1,\n\"a\":2}", &[Key("a")]), 2);
    }

    proptest! {
        /// Whatever the text, nothing panics, and the line is one of the text.
        #[test]
        fn any_text(text in r#"[{}\[\],:"a1/*\\ \n]{0,40}"#, index in 0usize..3) {
            let line = line_of(&text, &[Key("a"), Item(index), Key("a")]);
            prop_assert!(line >= 1 && line as usize <= text.split('\n').count());
        }

        /// In a text with a member a line, the line tells the member.
        #[test]
        fn a_member_a_line(keys in prop::collection::btree_set("[a-z\"\\\\é]{1,5}", 1..10)) {
            let object: Value = keys.iter().map(|key| (key.clone(), json!([key]))).collect::<serde_json::Map<_, _>>().into();
            let lines: Vec<String> =
                keys.iter().map(|key| format!("{}: {}", json!(key), object[key])).collect();
            let text = format!("{{\n{}\n}}", lines.join(",\n"));
            for (index, key) in keys.iter().enumerate() {
                prop_assert_eq!(line_of(&text, &[Key(key), Item(0)]) as usize, index + 2);
            }
        }
    }
}
