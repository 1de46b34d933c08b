//! Which files a part of a conversation worked with. Pure.

use std::collections::BTreeSet;

use agentd_protocol::{Json, compaction::SummaryDetails, message::Message};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Files by what was done to them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FileOperations {
    read: BTreeSet<String>,
    written: BTreeSet<String>,
    edited: BTreeSet<String>,
}

impl FileOperations {
    /// Adds what the calls of a message did, and the calls that its tool made in turn.
    pub(super) fn add(&mut self, message: &Json<Message>) {
        match message.get() {
            Some(Message::Assistant(answer)) => {
                answer.tool_calls().for_each(|call| self.add_call(&call.name, &call.arguments));
            }
            Some(Message::ToolResult(_)) => {
                for call in nested_calls(message.text()) {
                    self.add_call(&call.name, &call.arguments.unwrap_or_default());
                }
            }
            _ => {}
        }
    }

    /// Adds what an earlier summary says. `details` of another shape say nothing.
    pub(super) fn add_details(&mut self, details: &Value) {
        let details: SummaryDetails = serde_json::from_value(details.clone()).unwrap_or_default();
        self.read.extend(details.read_files);
        // Which of both is not known any more.
        self.edited.extend(details.modified_files);
    }

    fn add_call(&mut self, tool: &str, arguments: &Map<String, Value>) {
        let Some(path) = arguments.get("path").and_then(Value::as_str) else { return };
        match tool {
            "read" => self.read.insert(path.to_owned()),
            "write" => self.written.insert(path.to_owned()),
            "edit" => self.edited.insert(path.to_owned()),
            _ => false,
        };
    }

    /// The lists: sorted, and no file in both.
    pub(super) fn details(&self) -> SummaryDetails {
        let modified: BTreeSet<&String> = self.written.union(&self.edited).collect();
        SummaryDetails {
            read_files: self.read.iter().filter(|path| !modified.contains(path)).cloned().collect(),
            modified_files: modified.into_iter().cloned().collect(),
        }
    }

    /// The lists as extensions get them: a file may be in more than one.
    pub(super) fn shown(&self) -> Value {
        json!({"read": self.read, "written": self.written, "edited": self.edited})
    }
}

/// A summary with the lists at its end; a list without files is left out.
pub(super) fn with_lists(mut summary: String, details: &SummaryDetails) -> String {
    for (tag, files) in [("read-files", &details.read_files), ("modified-files", &details.modified_files)] {
        if !files.is_empty() {
            summary.push_str(&format!("\n\n<{tag}>\n{}\n</{tag}>", files.join("\n")));
        }
    }
    summary
}

#[derive(Deserialize)]
struct NestedCall {
    name: String,
    arguments: Option<Map<String, Value>>,
}

/// The calls that a tool made, which only other programs write. What is not of their shape is passed over.
fn nested_calls(message: &str) -> Vec<NestedCall> {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Outer {
        nested_calls: Option<Nested>,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Nested {
        calls: Vec<Value>,
    }
    if !message.contains("\"nestedCalls\"") {
        return Vec::new();
    }
    let outer: Outer = agentd_protocol::parse_json(message).unwrap_or_default();
    let calls = outer.nested_calls.unwrap_or_default().calls.into_iter();
    calls.filter_map(|call| serde_json::from_value(call).ok()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(name: &str, arguments: Value) -> Value {
        json!({"type": "toolCall", "id": "c", "name": name, "arguments": arguments})
    }

    #[test]
    fn files_are_sorted_by_what_became_of_them() {
        let mut files = FileOperations::default();
        let messages: Vec<Json<Message>> = serde_json::from_value(json!([
            {"role": "user", "content": "read x"},
            {"role": "assistant", "stopReason": "toolUse", "content": [
                call("read", json!({"path": "c"})), call("read", json!({"path": "b"})),
                call("edit", json!({"path": "b"})), call("write", json!({"path": "a"})),
                call("bash", json!({"path": "no"})), call("read", json!({"path": 7})), call("read", json!({}))]},
            {"role": "toolResult", "toolCallId": "c", "toolName": "x", "content": [], "nestedCalls": {"complete": true,
                "calls": [{"id": "n", "name": "read", "arguments": {"path": "n"}}, {"id": "n"}, 7]}},
        ]))
        .unwrap();
        messages.iter().for_each(|message| files.add(message));
        files.add_details(&json!({"readFiles": ["a", "z"], "modifiedFiles": ["m"], "more": 1}));
        files.add_details(&json!("odd"));
        let details = files.details();
        assert_eq!(details.read_files, ["c", "n", "z"]);
        assert_eq!(details.modified_files, ["a", "b", "m"]);
        assert_eq!(
            with_lists("S.".into(), &details),
            "S.\n\n<read-files>\nc\nn\nz\n</read-files>\n\n<modified-files>\na\nb\nm\n</modified-files>"
        );
        assert_eq!(with_lists("S.".into(), &SummaryDetails::default()), "S.");
    }
}
