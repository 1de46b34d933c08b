//! A conversation as text, for a model that is to summarise it and not to go on with it. Pure.

use agentd_ai::prompt_text;
use agentd_protocol::{
    Json,
    message::{AssistantMessage, ContentBlock, Message, ToolCall},
};

/// The part of a tool result that a summary is made from, in UTF-16 units.
const RESULT_UNITS: usize = 2000;

/// The messages as text. What models think, and what the system says, is left out; so are images.
pub(super) fn text(messages: &[Json<Message>]) -> String {
    messages.iter().filter_map(|message| message.get().and_then(part)).collect::<Vec<_>>().join("\n\n")
}

fn part(message: &Message) -> Option<String> {
    match message {
        Message::System(_) => None,
        Message::Assistant(answer) => self::answer(answer),
        Message::ToolResult(result) => {
            let texts: Vec<&str> = result.content.iter().filter_map(ContentBlock::as_text).collect();
            let text = texts.join("\n");
            (!text.is_empty()).then(|| format!("[Tool result]: {}", shortened(&text)))
        }
        _ => prompt_text(message).map(|text| format!("[User]: {text}")),
    }
}

fn answer(answer: &AssistantMessage) -> Option<String> {
    let texts: Vec<&str> = answer.content.iter().filter_map(ContentBlock::as_text).collect();
    let text = texts.join("\n");
    let text = (!text.is_empty()).then(|| format!("[Assistant]: {text}"));
    let calls: Vec<String> = answer.tool_calls().map(call).collect();
    let calls = (!calls.is_empty()).then(|| format!("[Assistant tool calls]: {}", calls.join("; ")));
    let parts: Vec<String> = text.into_iter().chain(calls).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

fn call(call: &ToolCall) -> String {
    let arguments: Vec<String> =
        call.arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("{}({})", call.name, arguments.join(", "))
}

/// The beginning of a long text, and how much is missing.
fn shortened(text: &str) -> String {
    let mut units = 0;
    let end = text.char_indices().find(|(_, character)| {
        units += character.len_utf16();
        units > RESULT_UNITS
    });
    let Some((end, _)) = end else { return text.to_owned() };
    let missing: usize = text[end..].chars().map(char::len_utf16).sum();
    format!("{}\n\n[... {missing} more characters truncated]", &text[..end])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(messages: Value, expected: &str) {
        let messages: Vec<Json<Message>> = serde_json::from_value(messages).unwrap();
        assert_eq!(text(&messages), expected);
    }

    #[test]
    fn every_role_has_its_form() {
        check(
            json!([
                {"role": "system", "content": "S", "sections": {"a": "b"}},
                {"role": "user", "content": [{"type": "text", "text": "Hi"},
                    {"type": "image", "data": "", "mimeType": "image/png"}, {"type": "text", "text": "you"}]},
                {"role": "assistant", "stopReason": "toolUse", "content": [
                    {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "One."},
                    {"type": "text", "text": "Two."},
                    {"type": "toolCall", "id": "1", "name": "read", "arguments": {"path": "a\"b", "limit": 3}},
                    {"type": "toolCall", "id": "2", "name": "ls", "arguments": {}}]},
                {"role": "toolResult", "toolCallId": "1", "toolName": "read",
                    "content": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]},
                {"role": "toolResult", "toolCallId": "2", "toolName": "ls", "content": []},
                {"role": "bashExecution", "command": "ls", "output": "x", "exitCode": 1},
                {"role": "bashExecution", "command": "secret", "output": "x", "excludeFromContext": true},
                {"role": "custom", "customType": "c", "content": "Note"},
                {"role": "assistant", "stopReason": "aborted", "content": []},
            ]),
            "[User]: Hi\nyou\n\n[Assistant]: One.\nTwo.\n\n[Assistant tool calls]: read(path=\"a\\\"b\", limit=3); ls()\n\n\
             [Tool result]: A\nB\n\n[User]: Ran `ls`\n```\nx\n```\n\nCommand exited with code 1\n\n[User]: Note",
        );
    }

    #[test]
    fn long_results_are_cut_at_a_character() {
        let result = |text: &str| json!([{"role": "toolResult", "toolCallId": "1", "content": [{"type": "text", "text": text}]}]);
        let whole = "é".repeat(2000);
        check(result(&whole), &format!("[Tool result]: {whole}"));
        check(
            result(&format!("{whole}abc")),
            &format!("[Tool result]: {whole}\n\n[... 3 more characters truncated]"),
        );
        // A character of two units that would stand across the limit is left out whole.
        let odd = format!("{}😀!", "x".repeat(1999));
        check(
            result(&odd),
            &format!("[Tool result]: {}\n\n[... 3 more characters truncated]", "x".repeat(1999)),
        );
    }
}
