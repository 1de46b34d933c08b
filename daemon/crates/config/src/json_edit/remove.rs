//! Taking a member out of a JSON text, which else stays as it is.

use std::ops::Range;

use super::syntax::{members, skip_blanks, splice};
use crate::json_comments::strip;

/// Takes the member at `path` (outermost key first), however often it is there, out of the object that `text` holds. `None` when the
/// text holds no object or is broken.
pub(crate) fn remove(text: &str, path: &[&str]) -> Option<String> {
    let (key, above) = path.split_last()?;
    let mut text = text.to_owned();
    loop {
        let stripped = strip(&text);
        let bytes = stripped.as_bytes();
        let mut start = skip_blanks(bytes, 0);
        for step in above {
            // Parsers take the last of two members with the same key.
            let found = members(&stripped, start)?.members.into_iter().rfind(|member| member.key == *step);
            match found {
                Some(member) if bytes[member.value.start] == b'{' => start = member.value.start,
                _ => return Some(text),
            }
        }
        let object = members(&stripped, start)?;
        let Some(place) = object.members.iter().position(|member| member.key == *key) else {
            return Some(text);
        };
        let member = &object.members[place];
        let (mut start, mut end) = (member.start, member.value.end);
        if place + 1 < object.members.len() {
            // Up to the comma, which is the first thing after the value that is no blank.
            end = skip_blanks(bytes, end) + 1;
        } else if let Some(comma) = trailing_comma(&text[end..object.end]) {
            text = splice(&text, end + comma..end + comma + 1, "");
        } else if let Some(before) = place.checked_sub(1) {
            let comma = skip_blanks(bytes, object.members[before].value.end);
            text = splice(&text, comma..comma + 1, "");
            (start, end) = (start - 1, end - 1);
        }
        let range = with_its_line(&text, start..end);
        text = splice(&text, range, "");
    }
}

/// The offset of the comma in what stands between the last value and the end of its object: blanks, comments, and
/// perhaps a comma.
pub(super) fn trailing_comma(text: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        let rest = &text[at..];
        at += match byte {
            b',' => return Some(at),
            b'/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            b'/' => rest.find("*/").map_or(rest.len(), |end| end + 2),
            _ => 1,
        };
    }
    None
}

/// The range, and the rest of its lines where that is blank.
pub(super) fn with_its_line(text: &str, range: Range<usize>) -> Range<usize> {
    let blank = [' ', '\t'];
    let before = text[..range.start].trim_end_matches(blank);
    let after = text[range.end..].trim_start_matches([' ', '\t', '\r']);
    if before.ends_with('\n') && after.starts_with('\n') {
        return before.len()..text.len() - after.len() + 1;
    }
    range
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::json_file::parse;

    fn check(text: &str, expected: &str) {
        assert_eq!(remove(text, &["x"]).as_deref(), Some(expected), "{text}");
    }

    #[test]
    fn only_the_member_goes() {
        check("{}", "{}");
        check("{\"x\":1}", "{}");
        check("{\"x\":1,\"a\":1.0}", "{\"a\":1.0}");
        check("{\"a\":1.0, \"x\":{\"x\":1}}", "{\"a\":1.0 }");
        check("{\n  \"x\": {\n    \"y\": 1\n  },\n  \"a\": 2\n}\n", "{\n  \"a\": 2\n}\n");
        check("{\n  \"a\": 2,\n  \"x\": 1\n}\n", "{\n  \"a\": 2\n}\n");
        check("{\r\n  \"a\": 2,\r\n  \"x\": 1\r\n}\r\n", "{\r\n  \"a\": 2\r\n}\r\n");
        check("{\n  \"x\": 1\n}\n", "{\n}\n");
        check(
            "{ // mine\n  \"a\": 2, // two\n  \"x\": 1, // gone\n}",
            "{ // mine\n  \"a\": 2, // two\n   // gone\n}",
        );
        check("{\"x\":1 /* , */ , /* , */}", "{ /* , */  /* , */}");
        check("{\"x\":1,\"a\":2,\"x\":3}", "{\"a\":2}");
        check("{\"\\u0078\":1}", "{}");
    }

    #[test]
    fn a_member_of_an_object_within_goes() {
        let check = |text: &str, expected: &str| {
            assert_eq!(remove(text, &["o", "x"]).as_deref(), Some(expected), "{text}");
        };
        check(
            "{\n\t\"o\": {\n\t\t\"x\": 1,\n\t\t\"y\": 2\n\t},\n\t\"x\": 3\n}\n",
            "{\n\t\"o\": {\n\t\t\"y\": 2\n\t},\n\t\"x\": 3\n}\n",
        );
        check("{\"o\":{\"x\":1}}", "{\"o\":{}}");
        check("{\"o\":{\"x\":1},\"o\":{\"x\":2}}", "{\"o\":{\"x\":1},\"o\":{}}");
        for untouched in ["{}", "{\"o\":3,\"x\":1}", "{\"o\":{\"y\":{\"x\":1}}}"] {
            check(untouched, untouched);
        }
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["", "[]", "5", "{", "{\"x\"", "{\"x\":", "{\"x\":1"] {
            assert_eq!(remove(text, &["x"]), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_result_says_the_same_without_the_member(
            object in prop::collection::btree_map("[xyz]", "[a\"\\\\/,}é]{0,4}", 0..4), pretty: bool, comma: bool,
        ) {
            let before: Value = object.into_iter().map(|(key, value)| (key, json!({"v": [value]}))).collect();
            let mut text = if pretty { serde_json::to_string_pretty(&before).unwrap() } else { before.to_string() };
            if comma && before != json!({}) {
                text.insert(text.len() - 1, ',');
            }
            let after = parse(&remove(&text, &["x"]).unwrap()).unwrap();
            let mut expected = before;
            expected.as_object_mut().unwrap().remove("x");
            prop_assert_eq!(after, expected);
        }
    }
}
