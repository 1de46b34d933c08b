//! Shows the changes of a file, line by line.

use std::io;

use agentd_protocol::message::{ToolCall, ToolResultMessage};
use serde_json::Value;

use crate::page::{Attr, Page};

/// The lines that an `edit` changed: those in its result, else those in the call. `None` when neither has them.
pub(crate) fn of_edit(call: &ToolCall, result: Option<&ToolResultMessage>) -> Option<String> {
    let details = result.and_then(|result| result.details.as_ref());
    let told = details.and_then(|details| details.get("diff")).and_then(Value::as_str);
    told.filter(|diff| !diff.is_empty()).map(str::to_owned).or_else(|| asked_for(call))
}

/// The texts of the call: the replaced ones and their replacements.
fn asked_for(call: &ToolCall) -> Option<String> {
    let mut diff = String::new();
    let mut add = |old: Option<&Value>, new: Option<&Value>| {
        let (Some(old), Some(new)) = (old.and_then(Value::as_str), new.and_then(Value::as_str)) else {
            return;
        };
        for (mark, text) in [('-', old), ('+', new)] {
            for line in text.lines() {
                diff.push(mark);
                diff.push_str(line);
                diff.push('\n');
            }
        }
    };
    match call.arguments.get("edits").and_then(Value::as_array) {
        Some(edits) => edits.iter().for_each(|edit| add(edit.get("oldText"), edit.get("newText"))),
        None => add(call.arguments.get("oldText"), call.arguments.get("newText")),
    }
    (!diff.is_empty()).then_some(diff)
}

/// The numbers of added and removed lines.
pub(crate) fn counts(diff: &str) -> (usize, usize) {
    let count = |mark: &str| diff.lines().filter(|line| line.starts_with(mark)).count();
    (count("+"), count("-"))
}

/// Writes a diff whose lines begin with `+`, `-` or a space.
pub(crate) fn write(page: &mut Page<'_>, diff: &str) -> io::Result<()> {
    page.element("pre", &[Attr::Class("diff")], |page| {
        page.ours("\n")?;
        // Consecutive lines of one kind are one element.
        let mut rest = diff;
        while !rest.is_empty() {
            let kind = class(rest);
            let mut end = 0;
            for line in rest.split_inclusive('\n').take_while(|line| class(line) == kind) {
                end += line.len();
            }
            let (lines, after) = rest.split_at(end);
            page.words("span", &[Attr::Class(kind)], lines)?;
            rest = after;
        }
        Ok(())
    })
}

fn class(line: &str) -> &'static str {
    match line.as_bytes().first() {
        Some(b'+') => "came",
        Some(b'-') => "went",
        _ => "same",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::page::written;

    fn call(arguments: Value) -> ToolCall {
        serde_json::from_value(json!({"id": "1", "name": "edit", "arguments": arguments})).unwrap()
    }

    fn result(details: Value) -> ToolResultMessage {
        serde_json::from_value(json!({"toolCallId": "1", "toolName": "edit", "details": details})).unwrap()
    }

    #[test]
    fn the_result_tells_what_changed() {
        let call = call(json!({"path": "a", "edits": [{"oldText": "x\ny", "newText": "z"}]}));
        let told = of_edit(&call, Some(&result(json!({"diff": " 1 a\n-2 x\n+2 z"}))));
        assert_eq!(told.as_deref(), Some(" 1 a\n-2 x\n+2 z"));
        for without in [json!({}), json!({"diff": 5}), json!(null)] {
            assert_eq!(of_edit(&call, Some(&result(without))).as_deref(), Some("-x\n-y\n+z\n"));
        }
        assert_eq!(
            of_edit(&self::call(json!({"oldText": "", "newText": "n"})), None).as_deref(),
            Some("+n\n")
        );
        assert_eq!(of_edit(&self::call(json!({"edits": [5]})), None), None);
    }

    #[test]
    fn lines_are_marked() {
        assert_eq!(
            written(|page| write(page, " 1 a\n-2 <b>\n-3 c\n+2 d")),
            "<pre class=\"diff\">\n<span class=\"same\"> 1 a\n</span><span class=\"went\">-2 &lt;b&gt;\n-3 c\n</span>\
             <span class=\"came\">+2 d</span></pre>"
        );
        assert_eq!(counts(" 1 a\n-2 b\n+2 c\n+3 d"), (2, 1));
    }
}
