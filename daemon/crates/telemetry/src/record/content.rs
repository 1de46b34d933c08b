//! What was said, for spans, where the setting `telemetry.captureContent` is on: cut, and without known secrets. Pure.

use agentd_http::scrub;
use agentd_protocol::{
    Json,
    message::{AssistantMessage, ContentBlock, Message, MessageContent},
};
use serde_json::{Value, json};

/// The bytes of one attribute's texts.
const MAX_BYTES: usize = 16 << 10;

/// Bytes beyond the cut that are looked at, so that a secret that the cut divides is found.
const BEYOND: usize = 1 << 10;

/// Follows a text that was cut.
const CUT: &str = "…";

/// A text that may be sent.
pub(super) fn text(text: &str) -> String {
    Budget(MAX_BYTES).text(text)
}

/// The messages since the last answer: what this call adds to what the trace has. The oldest come first, and are cut last.
pub(super) fn input(messages: &[Json<Message>]) -> String {
    let is_answer = |message: &Json<Message>| matches!(message.get(), Some(Message::Assistant(_)));
    let new = messages.iter().rposition(is_answer).map_or(messages, |last| &messages[last + 1..]);
    let mut budget = Budget(MAX_BYTES);
    let messages: Vec<Value> = new.iter().filter_map(|message| budget.message(message.get()?)).collect();
    Value::from(messages).to_string()
}

/// An answer.
pub(super) fn output(answer: &AssistantMessage, finish_reason: &str) -> String {
    let parts = Budget(MAX_BYTES).parts(&answer.content);
    json!([{"role": "assistant", "parts": parts, "finish_reason": finish_reason}]).to_string()
}

/// The text of a tool's result.
pub(super) fn result(content: &[ContentBlock]) -> String {
    let texts: Vec<&str> = content.iter().filter_map(ContentBlock::as_text).collect();
    text(&texts.join("\n"))
}

/// The last place between two characters within so many bytes.
fn boundary(text: &str, bytes: usize) -> usize {
    (0..=bytes.min(text.len())).rev().find(|place| text.is_char_boundary(*place)).unwrap_or(0)
}

/// The bytes that may still be used.
struct Budget(usize);

impl Budget {
    fn text(&mut self, text: &str) -> String {
        let looked_at = &text[..boundary(text, self.0.saturating_add(BEYOND))];
        let clean = scrub(looked_at);
        let kept = &clean[..boundary(&clean, self.0)];
        self.0 -= kept.len();
        let is_cut = looked_at.len() < text.len() || kept.len() < clean.len();
        if is_cut { format!("{kept}{CUT}") } else { kept.to_owned() }
    }

    fn message(&mut self, message: &Message) -> Option<Value> {
        let content = |budget: &mut Self, content: &MessageContent| budget.parts(&content.blocks());
        let (role, parts) = match message {
            Message::System(system) => ("system", content(self, &system.content)),
            Message::User(user) => ("user", content(self, &user.content)),
            Message::Assistant(answer) => ("assistant", self.parts(&answer.content)),
            Message::ToolResult(result) => {
                let response = self.text(&result.text());
                let part =
                    json!({"type": "tool_call_response", "id": result.tool_call_id, "response": response});
                ("tool", vec![part])
            }
            Message::BashExecution(bash) => {
                let text = self.text(&format!("$ {}\n{}", bash.command, bash.output));
                ("user", vec![json!({"type": "text", "content": text})])
            }
            Message::BranchSummary(summary) => {
                ("user", vec![json!({"type": "text", "content": self.text(&summary.summary)})])
            }
            Message::CompactionSummary(summary) => {
                ("user", vec![json!({"type": "text", "content": self.text(&summary.summary)})])
            }
            Message::Custom(custom) => ("user", content(self, &custom.content)),
        };
        (!parts.is_empty()).then(|| json!({"role": role, "parts": parts}))
    }

    fn parts(&mut self, blocks: &[ContentBlock]) -> Vec<Value> {
        blocks.iter().filter_map(|block| self.part(block)).collect()
    }

    fn part(&mut self, block: &ContentBlock) -> Option<Value> {
        Some(match block {
            ContentBlock::Thinking { thinking, .. } => {
                json!({"type": "reasoning", "content": self.text(thinking)})
            }
            ContentBlock::ToolCall(call) => {
                let arguments = self.text(&Value::from(call.arguments.clone()).to_string());
                json!({"type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments})
            }
            block => json!({"type": "text", "content": self.text(block.as_text()?)}),
        })
    }
}

#[cfg(test)]
mod tests {
    use agentd_http::register_secret;
    use agentd_protocol::message::{StopReason, UserMessage};
    use proptest::prelude::*;

    use super::*;

    fn user(text: &str) -> Json<Message> {
        let content = MessageContent::Text(text.to_owned());
        Json::new(Message::User(UserMessage { content, timestamp: 0 })).unwrap()
    }

    fn answer(text: &str) -> AssistantMessage {
        let content = vec![ContentBlock::text(text)];
        AssistantMessage {
            content,
            stop_reason: StopReason::Stop,
            ..AssistantMessage::pending("a", "p", "m", 0)
        }
    }

    #[test]
    fn a_call_says_what_is_new() {
        let last = Json::new(Message::Assistant(answer("old"))).unwrap();
        let expected = r#"[{"role":"user","parts":[{"type":"text","content":"new"}]}]"#;
        assert_eq!(input(&[user("first"), last, user("new")]), expected);
        assert_eq!(input(&[user("new")]), expected);
        let expected =
            r#"[{"role":"assistant","parts":[{"type":"text","content":"yes"}],"finish_reason":"stop"}]"#;
        assert_eq!(output(&answer("yes"), "stop"), expected);
    }

    #[test]
    fn secrets_are_taken_out_even_where_the_cut_divides_them() {
        let secret = "tok-content-0123456789-abcdef";
        register_secret(secret);
        for place in MAX_BYTES - 40..MAX_BYTES + 10 {
            let long = format!("{}{secret} end", "x".repeat(place));
            let sent = text(&long);
            assert!(!sent.contains("tok-co"), "{place}: {}", &sent[sent.len() - 60..]);
            assert!(sent.len() <= MAX_BYTES + CUT.len());
        }
    }

    proptest! {
        #[test]
        fn what_is_sent_is_bounded_and_stays_json(texts in proptest::collection::vec(".{0,9}", 0..9), times in 1..4000_usize) {
            let messages: Vec<Json<Message>> = texts.iter().map(|text| user(&text.repeat(times))).collect();
            let sent: Vec<Value> = serde_json::from_str(&input(&messages)).unwrap();
            let parts = sent.iter().flat_map(|message| message["parts"].as_array().unwrap());
            let bytes: usize = parts.map(|part| part["content"].as_str().unwrap().len()).sum();
            prop_assert!(bytes <= MAX_BYTES + texts.len() * CUT.len());
        }
    }
}
