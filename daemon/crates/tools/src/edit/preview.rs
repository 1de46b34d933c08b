//! What an edit would make of a text, without a file.

use serde_json::Value;

use super::{
    apply::changes,
    line_endings,
    matching::{Edit, find},
    tool::EditArguments,
};

/// The longest text that a preview is made of, in bytes: 1 MiB.
const MAX_TEXT: usize = 1 << 20;

/// The text after the edits of a call of `edit` with these arguments; `None` where the call would fail, and for long texts.
#[must_use]
pub fn edited_text(text: &str, arguments: &Value) -> Option<String> {
    let arguments: EditArguments = serde_json::from_value(arguments.clone()).ok()?;
    if text.len() > MAX_TEXT {
        return None;
    }
    let old = line_endings::normalize(text);
    let plain = |text: &str| line_endings::normalize(text).into_owned();
    let edit =
        |edit: &super::tool::Replacement| Edit { old: plain(&edit.old_text), new: plain(&edit.new_text) };
    let edits: Vec<Edit> = arguments.edits.iter().map(edit).collect();
    let matches = find(&old, &edits, || false).ok()?;
    Some(line_endings::apply(text, &changes(&old, &edits, &matches)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_the_text_that_the_tool_would_write() {
        let edits = json!({ "path": "x", "edits": [{ "oldText": "two", "newText": "2" }] });
        assert_eq!(edited_text("one\r\ntwo\r\n", &edits).as_deref(), Some("one\r\n2\r\n"));
        assert_eq!(edited_text("one", &edits), None);
        assert_eq!(edited_text("two", &json!({ "path": "x" })), None);
    }
}
