//! Edits of a text as servers propose them. Pure.

use serde_json::Value;

use crate::position::{Encoding, Lines, Range};

/// A replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextEdit {
    pub(crate) range: Range,
    pub(crate) new_text: String,
}

impl TextEdit {
    /// Of a `TextEdit`, an `AnnotatedTextEdit` or a `SnippetTextEdit`, whose placeholders become their texts.
    ///
    /// # Errors
    /// What is missing.
    pub(crate) fn of(value: &Value) -> Result<Self, String> {
        let range = value.get("range").and_then(Range::of).ok_or("an edit without a range")?;
        let snippet = value.get("snippet").and_then(|snippet| snippet.get("value")).and_then(Value::as_str);
        let text = match (value.get("newText").and_then(Value::as_str), snippet) {
            (Some(text), _) if value.get("insertTextFormat").and_then(Value::as_u64) == Some(2) => {
                plain_snippet(text)
            }
            (Some(text), _) => text.to_owned(),
            (None, Some(snippet)) => plain_snippet(snippet),
            (None, None) => return Err("an edit without a text".to_owned()),
        };
        Ok(Self { range, new_text: text })
    }
}

/// The text of a snippet without its marks: `$0`, `$1` and `${1}` vanish, `${1:name}` is `name`.
fn plain_snippet(snippet: &str) -> String {
    let mut plain = String::with_capacity(snippet.len());
    // How many placeholders are open, whose closing brackets vanish.
    let mut open = 0_usize;
    let mut letters = snippet.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => plain.extend(letters.next()),
            '$' if letters.peek().is_some_and(char::is_ascii_digit) => {
                while letters.next_if(char::is_ascii_digit).is_some() {}
            }
            '$' if letters.peek() == Some(&'{') => {
                letters.next();
                while letters.next_if(char::is_ascii_digit).is_some() {}
                letters.next_if_eq(&':');
                open += 1;
            }
            '}' if open > 0 => open -= 1,
            letter => plain.push(letter),
        }
    }
    plain
}

/// The text with all edits, which see the text as it is, never the result of each other. Several at one place come in their order.
///
/// # Errors
/// Two of them overlap.
pub(crate) fn apply(text: &str, edits: &[TextEdit], encoding: Encoding) -> Result<String, String> {
    let lines = Lines::of(text);
    let mut places: Vec<(usize, usize, &str)> = edits
        .iter()
        .map(|edit| {
            let start = lines.byte(edit.range.start, encoding);
            let end = lines.byte(edit.range.end, encoding).max(start);
            (start, end, edit.new_text.as_str())
        })
        .collect();
    places.sort_by_key(|(start, end, _)| (*start, *end));
    let mut new = String::with_capacity(text.len());
    let mut at = 0;
    for (start, end, new_text) in places {
        if start < at {
            return Err("the server proposes edits that overlap".to_owned());
        }
        new.push_str(&text[at..start]);
        new.push_str(new_text);
        at = end;
    }
    new.push_str(&text[at..]);
    Ok(new)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::position::Position;

    fn edit(from: (u64, u64), to: (u64, u64), text: &str) -> TextEdit {
        let position = |(line, column)| Position { line, column };
        TextEdit { range: Range { start: position(from), end: position(to) }, new_text: text.into() }
    }

    fn check(text: &str, edits: &[TextEdit], expected: Result<&str, &str>) {
        let done = apply(text, edits, Encoding::Utf16);
        assert_eq!(done, expected.map(str::to_owned).map_err(str::to_owned));
    }

    #[test]
    fn edits_see_the_first_text() {
        let text = "fn a() {}\n// 😀 a\n";
        check(text, &[edit((1, 6), (1, 7), "b"), edit((0, 3), (0, 4), "b")], Ok("fn b() {}\n// 😀 b\n"));
        check(text, &[edit((0, 0), (0, 0), "1"), edit((0, 0), (0, 0), "2")], Ok("12fn a() {}\n// 😀 a\n"));
        check(text, &[edit((0, 0), (9, 0), "")], Ok(""));
        check(
            text,
            &[edit((0, 0), (0, 4), ""), edit((0, 2), (0, 5), "")],
            Err("the server proposes edits that overlap"),
        );
    }

    #[test]
    fn snippets_become_texts() {
        let text = |snippet: &str| {
            let range = edit((0, 0), (0, 0), "").range.to_json();
            TextEdit::of(&json!({"range": range, "newText": snippet, "insertTextFormat": 2}))
                .unwrap()
                .new_text
        };
        assert_eq!(text("fn ${1:name}($2) {$0}"), "fn name() {}");
        assert_eq!(text("a\\$b \\} ${1:x${2:y}}}"), "a$b } xy}");
        assert!(TextEdit::of(&json!({"newText": "x"})).is_err());
    }

    proptest! {
        #[test]
        fn edits_at_any_place_give_a_text_or_an_error(
            text in "[a😀\n]{0,20}",
            edits in prop::collection::vec(((0_u64..5, 0_u64..9), (0_u64..5, 0_u64..9), "[b\n]{0,3}"), 0..4),
        ) {
            let edits: Vec<TextEdit> = edits.iter().map(|(from, to, text)| edit(*from, *to, text)).collect();
            for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
                let _ = apply(&text, &edits, encoding);
            }
        }

        #[test]
        fn any_snippet_is_read(snippet in "[\\\\$0{}:a]{0,12}") {
            let _ = plain_snippet(&snippet);
        }
    }
}
