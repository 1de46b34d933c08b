//! The messages of a session as Markdown. Pure.

use agentd_protocol::{
    message::{ContentBlock, Message, MessageContent},
    text_bounds,
};

/// The longest text of one tool call, of its result, or of a thought, in bytes; what others said is whole.
const MAX_PART: usize = 4_000;

/// A transcript in the making.
#[derive(Default)]
pub(super) struct Transcript {
    text: String,
}

impl Transcript {
    /// The text so far, in bytes.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// The whole text.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Adds a message. What only sets the stage (the system prompt) is left out.
    pub(super) fn add(&mut self, message: &Message) {
        match message {
            Message::System(_) => {}
            Message::User(message) => self.section("User", &shown(&message.content)),
            Message::Custom(message) => self.section(&message.custom_type, &shown(&message.content)),
            Message::Assistant(message) => {
                self.heading("Assistant");
                for block in &message.content {
                    match block {
                        ContentBlock::Text { text, .. } => self.paragraph(text),
                        ContentBlock::Thinking { thinking, .. } => {
                            self.paragraph(&quoted(&bounded(thinking)));
                        }
                        ContentBlock::Image(_) => self.paragraph("[image]"),
                        ContentBlock::ToolCall(call) => {
                            self.paragraph(&format!("Calls `{}`:", call.name));
                            self.fenced(&serde_json::to_string_pretty(&call.arguments).unwrap_or_default());
                        }
                    }
                }
                if let Some(error) = &message.error_message {
                    self.paragraph(&format!("Error: {error}"));
                }
            }
            Message::ToolResult(message) => {
                let failed = if message.is_error { " (failed)" } else { "" };
                self.heading(&format!("Result of {}{failed}", message.tool_name));
                self.fenced(&message.text());
            }
            Message::BashExecution(message) => {
                self.heading("Command of the user");
                self.fenced(&format!("$ {}\n{}", message.command, message.output));
            }
            Message::BranchSummary(message) => self.section("Summary of a branch", &message.summary),
            Message::CompactionSummary(message) => self.section("Summary", &message.summary),
        }
    }

    fn heading(&mut self, heading: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&format!("## {heading}\n"));
    }

    fn section(&mut self, heading: &str, text: &str) {
        self.heading(heading);
        self.paragraph(text);
    }

    fn paragraph(&mut self, text: &str) {
        let text = text.trim();
        if !text.is_empty() {
            self.text.push_str(&format!("\n{text}\n"));
        }
    }

    fn fenced(&mut self, text: &str) {
        let text = bounded(text.trim_end());
        // Longer than any run of backticks in the text.
        let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or_default();
        let fence = "`".repeat(longest.max(2) + 1);
        self.text.push_str(&format!("\n{fence}\n{text}\n{fence}\n"));
    }
}

fn shown(content: &MessageContent) -> String {
    match content {
        MessageContent::Nothing => String::new(),
        MessageContent::Text(text) => text.clone(),
        MessageContent::Blocks(blocks) => {
            let text =
                |block: &ContentBlock| block.as_text().map_or_else(|| "[image]".to_owned(), str::to_owned);
            blocks.iter().map(text).collect::<Vec<_>>().join("\n")
        }
    }
}

fn quoted(text: &str) -> String {
    text.lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n")
}

/// A text within the limit of one part.
fn bounded(text: &str) -> String {
    let end = text_bounds::floor(text, MAX_PART);
    if end == text.len() {
        return text.to_owned();
    }
    format!("{}\n[{} bytes more]", &text[..end], text.len() - end)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(messages: &[serde_json::Value]) -> String {
        let mut transcript = Transcript::default();
        for message in messages {
            transcript.add(&serde_json::from_value(message.clone()).unwrap());
        }
        transcript.into_text()
    }

    #[test]
    fn each_message_has_its_heading() {
        let text = of(&[
            json!({"role": "system", "content": "You are.", "timestamp": 0}),
            json!({"role": "user", "content": "Look.", "timestamp": 0}),
            json!({"role": "assistant", "stopReason": "toolUse", "content": [
                {"type": "thinking", "thinking": "a\nb"},
                {"type": "text", "text": "I look."},
                {"type": "toolCall", "id": "1", "name": "read", "arguments": {"path": "x"}},
            ]}),
            json!({"role": "toolResult", "toolCallId": "1", "toolName": "read", "isError": true, "content": [
                {"type": "text", "text": "```\nno"},
            ]}),
        ]);
        assert_eq!(
            text,
            "## User\n\nLook.\n\n## Assistant\n\n> a\n> b\n\nI look.\n\nCalls `read`:\n\n```\n{\n  \"path\": \"x\"\n}\n```\n\n\
             ## Result of read (failed)\n\n````\n```\nno\n````\n"
        );
    }

    #[test]
    fn long_results_are_cut() {
        let text = of(&[
            json!({"role": "toolResult", "toolCallId": "1", "toolName": "bash", "isError": false, "content": [
                {"type": "text", "text": "ä".repeat(MAX_PART)},
            ]}),
        ]);
        assert!(text.contains("\n[4000 bytes more]") && text.len() < MAX_PART + 200, "{text}");
    }
}
