//! Adds up the system messages of a transcript. Pure.

use std::sync::Arc;

use agentd_protocol::{
    Json,
    message::{Message, SystemMessage},
    tool::ToolSpec,
};
use serde_json::{Map, Value};

/// The sum of all system messages so far: the system prompt and the tools that the model can call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SystemState {
    /// The texts of all messages, joined by blank lines.
    pub content: String,
    /// The named sections, in the order in which they first came. Every value is a string.
    pub sections: Map<String, Value>,
    /// The tools, in the order in which they were added.
    pub tools: Vec<Arc<ToolSpec>>,
}

impl SystemState {
    /// Applies one more system message: its text is appended, sections are replaced by name (`null` removes one), tools
    /// leave and come. A tool that comes again replaces its old self in place.
    pub fn apply(&mut self, message: &SystemMessage) {
        let text = message.content.text();
        if !text.is_empty() {
            if !self.content.is_empty() {
                self.content.push_str("\n\n");
            }
            self.content.push_str(&text);
        }
        for (name, value) in message.sections.iter().flatten() {
            match value {
                Value::String(_) => {
                    self.sections.insert(name.clone(), value.clone());
                }
                _ => {
                    self.sections.shift_remove(name);
                }
            }
        }
        for removed in message.tools_removed.iter().flatten() {
            self.tools.retain(|tool| tool.name != removed.name);
        }
        for added in message.tools_added.iter().flatten() {
            match self.tools.iter_mut().find(|tool| tool.name == added.name) {
                Some(tool) => *tool = added.clone(),
                None => self.tools.push(added.clone()),
            }
        }
    }

    /// The system prompt: the text, then the sections, joined by blank lines; empty parts are left out.
    #[must_use]
    pub fn prompt(&self) -> String {
        std::iter::once(self.content.as_str())
            .chain(self.sections.values().filter_map(Value::as_str))
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("\n\n")
    }
}

/// Adds up the system messages of a transcript; other messages are skipped.
#[must_use]
pub fn system_state<'a>(messages: impl IntoIterator<Item = &'a Json<Message>>) -> SystemState {
    let mut state = SystemState::default();
    for message in messages {
        if let Some(Message::System(system)) = message.get() {
            state.apply(system);
        }
    }
    state
}

/// Describes the change of a later system message, for models that accept such messages in the middle of a conversation. Empty if it
/// changed only tools.
#[must_use]
pub fn describe_change(message: &SystemMessage) -> String {
    let text = message.content.text();
    let mut parts = Vec::new();
    if !text.is_empty() {
        parts.push(text);
    }
    for (name, value) in message.sections.iter().flatten() {
        parts.push(match value {
            Value::String(text) => format!("Updated system prompt section \"{name}\":\n\n{text}"),
            _ => format!("Removed system prompt section \"{name}\"."),
        });
    }
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages(values: Value) -> Vec<Json<Message>> {
        serde_json::from_value(values).unwrap()
    }

    #[test]
    fn later_messages_change_earlier_ones() {
        let state = system_state(&messages(json!([
            {"role": "system", "content": "One.", "sections": {"a": "A", "b": "B"}, "timestamp": 0,
             "toolsAdded": [{"name": "x", "description": "old"}, {"name": "y"}]},
            {"role": "user", "content": "hi", "timestamp": 0},
            {"role": "system", "content": "Two.", "sections": {"c": "C", "a": "A2", "b": null}, "timestamp": 0,
             "toolsAdded": [{"name": "z"}, {"name": "x", "description": "new"}], "toolsRemoved": [{"name": "y"}]},
        ])));
        assert_eq!(state.prompt(), "One.\n\nTwo.\n\nA2\n\nC");
        let tools: Vec<_> = state.tools.iter().map(|tool| (&*tool.name, &*tool.description)).collect();
        assert_eq!(tools, [("x", "new"), ("z", "")]);
    }

    #[test]
    fn nothing_said_is_an_empty_prompt() {
        assert_eq!(system_state(&messages(json!([{"role": "user", "content": "hi"}]))).prompt(), "");
        let removed = json!([{"role": "system", "content": null, "sections": {"a": "", "b": "B"}}]);
        assert_eq!(system_state(&messages(removed)).prompt(), "B");
    }

    #[test]
    fn changes_are_described_in_order() {
        let message: SystemMessage =
            serde_json::from_value(json!({"content": "New.", "sections": {"cwd": "/x", "docs": null}}))
                .unwrap();
        assert_eq!(
            describe_change(&message),
            "New.\n\nUpdated system prompt section \"cwd\":\n\n/x\n\nRemoved system prompt section \"docs\"."
        );
    }
}
