//! JSON with comments and trailing commas, as people write it, turned into JSON.

use std::borrow::Cow;

/// Blanks out `//` and `/* */` comments and commas before a closing bracket. Every other byte stays where it is, so that
/// a position in the result is the position in the text. A comment that is not closed is left for the parser to refuse.
pub(crate) fn strip(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut blanks = Vec::new();
    // A comma that may turn out to be a trailing one. One that follows no value is a mistake and stays.
    let mut comma = None;
    let mut after_value = false;
    // When one comment is not closed, no later one is: searching again would read the rest of the text again.
    let mut is_left_open = false;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = string_end(bytes, at);
                (comma, after_value) = (None, true);
                continue;
            }
            b'/' => {
                let is_block = bytes.get(at + 1) == Some(&b'*');
                let end = if is_block && is_left_open { None } else { comment_end(bytes, at) };
                if let Some(end) = end {
                    blanks.push(at..end);
                    at = end;
                    continue;
                }
                is_left_open |= is_block;
                (comma, after_value) = (None, true);
            }
            b',' => {
                comma = after_value.then_some(at);
                after_value = false;
            }
            b'}' | b']' => {
                blanks.extend(comma.take().map(|comma| comma..comma + 1));
                after_value = true;
            }
            b'{' | b'[' | b':' => (comma, after_value) = (None, false),
            b' ' | b'\t' | b'\n' | b'\r' => {}
            _ => (comma, after_value) = (None, true),
        }
        at += 1;
    }
    if blanks.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(blanked(text, &blanks)) }
}

/// The offset after the string that starts at `start`; the end of the text when it is not closed.
pub(crate) fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'"' => return at + 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// The offset after the comment that starts at `start`, if one does and ends.
fn comment_end(bytes: &[u8], start: usize) -> Option<usize> {
    let rest = &bytes[start..];
    if rest.starts_with(b"//") {
        return Some(rest.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |line| start + line));
    }
    let body = rest.strip_prefix(b"/*")?;
    body.windows(2).position(|pair| pair == b"*/").map(|end| start + end + 4)
}

/// The text with spaces in the ranges; line breaks stay. Ranges start and end at ASCII characters.
fn blanked(text: &str, ranges: &[std::ops::Range<usize>]) -> String {
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    for range in ranges {
        // A trailing comma is only known at its bracket, after comments behind it: ranges can come out of order.
        if range.start < done {
            result.replace_range(range.clone(), " ");
            continue;
        }
        result.push_str(&text[done..range.start]);
        result.extend(
            text[range.clone()]
                .bytes()
                .map(|byte| if matches!(byte, b'\n' | b'\r') { byte as char } else { ' ' }),
        );
        done = range.end;
    }
    result.push_str(&text[done..]);
    result
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn check(text: &str, expected: Option<Value>) {
        let stripped = strip(text);
        assert_eq!(stripped.len(), text.len(), "{text}");
        assert_eq!(serde_json::from_str(&stripped).ok(), expected, "{text} became {stripped}");
    }

    #[test]
    fn comments_and_trailing_commas() {
        check("{\"a\":1} // end", Some(json!({"a": 1})));
        // Looking for the end of each of them would take minutes.
        check(&format!("[{}", "/*".repeat(1 << 19)), None);
        check("[1, /* open // \n2 // two\n]", None);
        check("// ä → 猫\n{\"a\": /* b */ [1, 2,], // c\n}", Some(json!({"a": [1, 2]})));
        check("{\"a\":1, // one\n /* two */ }", Some(json!({"a": 1})));
        check(
            r#"{"url":"http://x//y /* no */","q":"\"// \\",}"#,
            Some(json!({"url": "http://x//y /* no */", "q": "\"// \\"})),
        );
        check("[[1,],[2,],]", Some(json!([[1], [2]])));
        check("/**/[]/***/", Some(json!([])));
    }

    #[test]
    fn mistakes_stay_mistakes() {
        for text in ["[,]", "{,}", "[1,,]", "[1,,2]", "/* [1]", "[1] /", "# x\n[]", "{\"a\":,}", "\"open", ""]
        {
            check(text, None);
        }
    }

    proptest! {
        #[test]
        fn any_text_keeps_its_length_and_line_breaks(text in "[ ,\\[\\]{}:\"/*\\\\\n1aä]{0,40}") {
            let stripped = strip(&text);
            prop_assert_eq!(stripped.len(), text.len());
            let breaks = |text: &str| text.match_indices('\n').map(|(at, _)| at).collect::<Vec<_>>();
            prop_assert_eq!(breaks(&stripped), breaks(&text));
        }

        #[test]
        fn json_is_left_alone(text in "[ \\[\\]{}:\"1a,]{0,40}") {
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                prop_assert_eq!(serde_json::from_str::<Value>(&strip(&text)).unwrap(), value);
            }
        }
    }
}
