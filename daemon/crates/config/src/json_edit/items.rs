//! Adding, replacing and removing items of a list in a JSON text, which else stays as it is.

use std::ops::Range;

use serde_json::Value;

use super::{
    remove::{trailing_comma, with_its_line},
    syntax::{members, skip_blanks, splice, value_end},
};
use crate::json_comments::strip;

/// Adds `items` to the end of the list at `path` (outermost key first). `None` when there is no list, or the text is
/// broken.
pub(crate) fn append(text: &str, path: &[&str], items: &[Value]) -> Option<String> {
    let stripped = strip(text);
    let list = list_at(&stripped, path)?;
    let Some(last) = list.items.last().cloned() else {
        // A comment alone in the brackets stays there.
        let new: Vec<String> = items.iter().map(one_line).collect::<Option<_>>()?;
        return Some(splice(text, list.end..list.end, &new.join(", ")));
    };
    let before = &stripped[..last.start];
    let blanks = &before[before.trim_end_matches([' ', '\t']).len()..];
    // In the form of the item before it: on its own line, and over several lines.
    let above = &before[..before.len() - blanks.len()];
    let own_line = above.ends_with('\n');
    let line_end = if above.ends_with("\r\n") { "\r\n" } else { "\n" };
    let gap = if own_line { format!("{line_end}{blanks}") } else { " ".to_owned() };
    let tall = own_line && stripped[last.clone()].contains('\n');
    let in_form = |item: &Value| {
        if tall { Some(serde_json::to_string_pretty(item).ok()?.replace('\n', &gap)) } else { one_line(item) }
    };
    let new = items.iter().map(in_form).collect::<Option<Vec<_>>>()?.join(&format!(",{gap}"));
    if own_line && let Some(rest) = rest_of_line(&text[last.end..list.end]) {
        let end = last.end + rest.length;
        return Some(if rest.has_comma {
            splice(text, end..end, &format!("{gap}{new},"))
        } else {
            splice(&splice(text, end..end, &format!("{gap}{new}")), last.end..last.end, ",")
        });
    }
    Some(splice(text, last.end..last.end, &format!(",{gap}{new}")))
}

/// Puts `item` in the place of the item with that index of the list at `path`. `None` when there is none, or the text is broken.
pub(crate) fn replace_item(text: &str, path: &[&str], index: usize, item: &Value) -> Option<String> {
    let place = list_at(&strip(text), path)?.items.get(index)?.clone();
    Some(splice(text, place, &one_line(item)?))
}

/// Takes the item with that index out of the list at `path`. `None` when there is none, or the text is broken.
pub(crate) fn remove_item(text: &str, path: &[&str], index: usize) -> Option<String> {
    let stripped = strip(text);
    let bytes = stripped.as_bytes();
    let List { items, end: close } = list_at(&stripped, path)?;
    let (mut text, item) = (text.to_owned(), items.get(index)?.clone());
    let (mut start, mut end) = (item.start, item.end);
    if index + 1 < items.len() {
        // Up to the comma, which is the first thing after the item that is no blank.
        end = skip_blanks(bytes, end) + 1;
    } else if let Some(comma) = trailing_comma(&text[end..close]) {
        text = splice(&text, end + comma..end + comma + 1, "");
    } else if let Some(before) = index.checked_sub(1) {
        let comma = skip_blanks(bytes, items[before].end);
        text = splice(&text, comma..comma + 1, "");
        (start, end) = (start - 1, end - 1);
    }
    let mut range = with_its_line(&text, start..end);
    if range == (start..end) {
        // The blanks that parted it from its neighbour.
        let blank = [' ', '\t'];
        if index + 1 < items.len() {
            range.end = text.len() - text[end..].trim_start_matches(blank).len();
        } else if !text[..start].trim_end_matches(blank).ends_with('\n') {
            range.start = text[..start].trim_end_matches(blank).len();
        }
    }
    Some(splice(&text, range, ""))
}

/// What stands behind the last item on its line: a comment there is about that item, and stays beside it.
struct RestOfLine {
    length: usize,
    has_comma: bool,
}

/// The rest of the line in the text between the last item and the closing bracket. `None` where nothing but that bracket ends it, or a
/// comment or the comma stands in the lines below.
fn rest_of_line(behind: &str) -> Option<RestOfLine> {
    let (mut at, mut has_comma) = (0, false);
    loop {
        let rest = &behind[at..];
        at += match rest.as_bytes().first()? {
            b'\n' => break,
            b'/' if rest.starts_with("//") => rest.find('\n')?,
            b'/' => {
                let comment = rest.find("*/")? + 2;
                if rest[..comment].contains('\n') {
                    return None;
                }
                comment
            }
            byte => {
                has_comma |= *byte == b',';
                1
            }
        };
    }
    let is_whole = has_comma || !behind[at..].contains(',');
    let length = behind[..at].strip_suffix('\r').map_or(at, str::len);
    is_whole.then_some(RestOfLine { length, has_comma })
}

struct List {
    /// The items.
    items: Vec<Range<usize>>,
    /// The offset of the closing bracket.
    end: usize,
}

/// The list at `path` (outermost key first).
fn list_at(stripped: &str, path: &[&str]) -> Option<List> {
    let mut at = skip_blanks(stripped.as_bytes(), 0);
    for key in path {
        // Parsers take the last of two members with the same key.
        let object = members(stripped, at)?;
        at = object.members.into_iter().rev().find(|member| member.key == *key)?.value.start;
    }
    list(stripped, at)
}

/// The list that starts at `start` of a valid JSON text.
fn list(json: &str, start: usize) -> Option<List> {
    let bytes = json.as_bytes();
    let mut at = skip_blanks(bytes, start.checked_add(1).filter(|_| bytes.get(start) == Some(&b'['))?);
    let mut items = Vec::new();
    while bytes.get(at)? != &b']' {
        let end = value_end(bytes, at)?;
        items.push(at..end);
        at = skip_blanks(bytes, end);
        if bytes.get(at)? == &b',' {
            at = skip_blanks(bytes, at + 1);
        }
    }
    Some(List { items, end: at })
}

/// JSON in one line, with the blanks that people put.
fn one_line(value: &Value) -> Option<String> {
    let Value::Object(members) = value else { return serde_json::to_string(value).ok() };
    let members = members.iter().map(|(key, value)| {
        Some(format!("{}: {}", serde_json::to_string(key).ok()?, serde_json::to_string(value).ok()?))
    });
    Some(format!("{{{}}}", members.collect::<Option<Vec<_>>>()?.join(", ")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::json_file::parse;

    fn check(text: &str, path: &[&str], expected: &str) {
        let items = [json!({"id": "x"}), json!({"id": "y", "n": 5})];
        assert_eq!(append(text, path, &items).as_deref(), Some(expected), "{text}");
    }

    #[test]
    fn one_item_goes() {
        let check = |text: &str, index: usize, expected: &str| {
            assert_eq!(remove_item(text, &["a"], index).as_deref(), Some(expected), "{text}");
        };
        check(r#"{"a":["x"]}"#, 0, r#"{"a":[]}"#);
        check(r#"{"a": ["x", "y", "z"]}"#, 0, r#"{"a": ["y", "z"]}"#);
        check(r#"{"a": ["x", "y", "z"]}"#, 1, r#"{"a": ["x", "z"]}"#);
        check(r#"{"a": ["x", "y", "z"]}"#, 2, r#"{"a": ["x", "y"]}"#);
        let lines = "{\n  \"a\": [\n    \"x\", // one\n    \"y\" // two\n  ],\n  \"b\": 1\n}\n";
        check(lines, 0, "{\n  \"a\": [\n    // one\n    \"y\" // two\n  ],\n  \"b\": 1\n}\n");
        check(lines, 1, "{\n  \"a\": [\n    \"x\" // one\n     // two\n  ],\n  \"b\": 1\n}\n");
        check(
            "{\n  \"a\": [\n    \"x\",\n    {\n      \"s\": 1\n    },\n  ]\n}",
            1,
            "{\n  \"a\": [\n    \"x\",\n  ]\n}",
        );
        assert_eq!(remove_item(r#"{"a":["x"]}"#, &["a"], 1), None);
        assert_eq!(remove_item(r#"{"a":{}}"#, &["a"], 0), None);
        let replaced = replace_item("{\"a\": [1, /* two */ 2]}", &["a"], 1, &json!({"s": "x"}));
        assert_eq!(replaced.as_deref(), Some("{\"a\": [1, /* two */ {\"s\": \"x\"}]}"));
        assert_eq!(replace_item("{\"a\": []}", &["a"], 0, &json!(1)), None);
    }

    #[test]
    fn items_follow_the_last_one_in_its_form() {
        check(r#"{"a":[{"id":"o"}]}"#, &["a"], r#"{"a":[{"id":"o"}, {"id": "x"}, {"id": "y", "n": 5}]}"#);
        check(
            "{\"a\": {\"b\": [\n\t1, // one\n\t{\"id\":\"o\"}, // two\n]}}",
            &["a", "b"],
            "{\"a\": {\"b\": [\n\t1, // one\n\t{\"id\":\"o\"}, // two\n\t{\"id\": \"x\"},\n\t{\"id\": \"y\", \"n\": 5},\n]}}",
        );
        check(
            "{\"a\": [\r\n 1 // é, one\r\n /* two\n */\r\n]}",
            &["a"],
            "{\"a\": [\r\n 1, // é, one\r\n {\"id\": \"x\"},\r\n {\"id\": \"y\", \"n\": 5}\r\n /* two\n */\r\n]}",
        );
        check(
            "{\"a\": [\n 1 /* one\n */ ,\n]}",
            &["a"],
            "{\"a\": [\n 1,\n {\"id\": \"x\"},\n {\"id\": \"y\", \"n\": 5} /* one\n */ ,\n]}",
        );
        check(
            "{\n  \"a\": [\n    {\n      \"id\": \"o\"\n    }\n  ]\n}\n",
            &["a"],
            "{\n  \"a\": [\n    {\n      \"id\": \"o\"\n    },\n    {\n      \"id\": \"x\"\n    },\n    {\n      \"id\": \"y\",\n      \"n\": 5\n    }\n  ]\n}\n",
        );
        check(
            "{\"a\":[ /* none */ ]}",
            &["a"],
            "{\"a\":[ /* none */ {\"id\": \"x\"}, {\"id\": \"y\", \"n\": 5}]}",
        );
        check("[]", &[], "[{\"id\": \"x\"}, {\"id\": \"y\", \"n\": 5}]");
    }

    #[test]
    fn without_a_list_nothing_is_added() {
        for text in ["", "{}", "[]", "{\"a\": {}}", "{\"a\": 5}", "{\"a\": [", "{\"a\": [1"] {
            assert_eq!(append(text, &["a"], &[json!(1)]), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_result_says_the_same_with_the_items_at_the_end(
            before in prop::collection::vec("[a\"\\\\/,\\]é]{0,4}", 0..4), new in prop::collection::vec(any::<i32>(), 1..3),
            pretty: bool,
        ) {
            let value = json!({"k": {"list": before, "z": [1]}});
            let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
            let items: Vec<Value> = new.into_iter().map(Value::from).collect();
            let after = parse(&append(&text, &["k", "list"], &items).unwrap()).unwrap();
            let mut expected = value;
            expected["k"]["list"].as_array_mut().unwrap().extend(items);
            prop_assert_eq!(after, expected);
        }
    }
}
