//! Estimates the tokens of a transcript that no provider has counted, and the limit of the answer that follows from it. Pure.

use agentd_protocol::{
    message::{AssistantMessage, ContentBlock, Message, MessageContent, StopReason},
    model::Model,
};

/// The size of an image, in characters.
const IMAGE_CHARS: usize = 4800;

/// The room that an answer gets unless the window has less left, in tokens.
const WISHED_ROOM: i64 = 32_768;

/// The margin besides input and answer, in tokens, since the input is only an estimate. At most a quarter of the window, so that small
/// local models can answer.
const LEAST_MARGIN: i64 = 4096;

/// The highest token count; higher ones are clamped.
const MOST_TOKENS: i64 = i64::MAX / 64;

/// The limit of an answer in tokens: the model's own, or less if the context window has less room after an input of `input` tokens. `None`
/// if the model's limit is unknown.
pub(crate) fn max_answer_tokens(model: &Model, input: u64) -> Option<u64> {
    if model.max_tokens == 0 {
        return None;
    }
    if model.context_window == 0 {
        return Some(model.max_tokens);
    }
    // No model has more tokens, and nothing below overflows.
    let signed = |tokens: u64| i64::try_from(tokens).unwrap_or(MOST_TOKENS).min(MOST_TOKENS);
    let (window, input) = (signed(model.context_window), signed(input));
    let least = LEAST_MARGIN.min(window / 4);
    let mut room = window - input - least.max((input * 15 + 99) / 100);
    if room < WISHED_ROOM {
        room = WISHED_ROOM.min(window - input - least);
    }
    Some(u64::try_from(room).unwrap_or(0).min(model.max_tokens).max(1))
}

/// Estimates the tokens of a transcript: the provider's last count, plus one token for 3.5 characters after it.
pub(crate) fn input_tokens(messages: &[&Message]) -> u64 {
    let (counted, later) = match last_count(messages) {
        Some((index, tokens)) => (tokens, &messages[index + 1..]),
        None => (0, messages),
    };
    later.iter().map(|message| tokens(chars(message))).fold(counted, u64::saturating_add)
}

/// The index and the total of the last usage that still describes the transcript before it.
pub(crate) fn last_count(messages: &[&Message]) -> Option<(usize, u64)> {
    // A count before a compaction is of a longer transcript.
    let compacted_at = messages.iter().filter_map(|message| match message {
        Message::CompactionSummary(summary) => Some(summary.timestamp),
        _ => None,
    });
    let compacted_at = compacted_at.max();
    messages.iter().enumerate().rev().find_map(|(index, message)| match message {
        Message::Assistant(answer) if compacted_at.is_none_or(|time| answer.timestamp > time) => {
            counted(answer).map(|tokens| (index, tokens))
        }
        _ => None,
    })
}

fn counted(answer: &AssistantMessage) -> Option<u64> {
    if matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) {
        return None;
    }
    let usage = &answer.usage;
    let parts = [usage.input, usage.output, usage.cache_read, usage.cache_write];
    let sum = parts.into_iter().fold(0, u64::saturating_add);
    Some(usage.total_tokens.max(sum)).filter(|tokens| *tokens > 0)
}

/// Characters to tokens, 3.5 each, rounded up.
fn tokens(chars: usize) -> u64 {
    u64::try_from((chars.saturating_mul(2)).div_ceil(7)).unwrap_or(u64::MAX)
}

/// The characters of a message that a model reads; an image counts as [`IMAGE_CHARS`].
pub(crate) fn chars(message: &Message) -> usize {
    match message {
        Message::System(system) => {
            let sections = system.sections.iter().flatten();
            let sections = sections.filter_map(|(_, value)| value.as_str()).map(count).sum::<usize>();
            let tools = system.tools_added.iter().flatten();
            let tools = tools.map(|tool| serde_json::to_string(tool).map_or(0, |json| count(&json)));
            content_chars(&system.content) + sections + tools.sum::<usize>()
        }
        Message::User(user) => content_chars(&user.content),
        Message::Custom(custom) => content_chars(&custom.content),
        Message::Assistant(answer) => block_chars(&answer.content),
        Message::ToolResult(result) => block_chars(&result.content),
        Message::BashExecution(bash) if bash.exclude_from_context == Some(true) => 0,
        Message::BashExecution(bash) => count(&bash.command) + count(&bash.output),
        Message::BranchSummary(branch) => count(&branch.summary),
        Message::CompactionSummary(compaction) => count(&compaction.summary),
    }
}

fn content_chars(content: &MessageContent) -> usize {
    match content {
        MessageContent::Text(text) => count(text),
        MessageContent::Blocks(blocks) => block_chars(blocks),
        MessageContent::Nothing => 0,
    }
}

fn block_chars(blocks: &[ContentBlock]) -> usize {
    let chars = blocks.iter().map(|block| match block {
        ContentBlock::Text { text, .. } => count(text),
        ContentBlock::Thinking { thinking, .. } => count(thinking),
        ContentBlock::Image(_) => IMAGE_CHARS,
        ContentBlock::ToolCall(call) => {
            count(&call.name) + serde_json::to_string(&call.arguments).map_or(0, |json| count(&json))
        }
    });
    chars.sum()
}

fn count(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check_input(messages: Value, expected: u64) {
        let messages: Vec<Message> = serde_json::from_value(messages).unwrap();
        let messages: Vec<&Message> = messages.iter().collect();
        assert_eq!(input_tokens(&messages), expected);
    }

    #[test]
    fn messages_are_counted_by_characters() {
        check_input(json!([{"role": "user", "content": "1234567"}]), 2);
        check_input(json!([{"role": "user", "content": "12345678"}, {"role": "user", "content": "é"}]), 4);
        let image = json!({"type": "image", "data": "", "mimeType": ""});
        check_input(json!([{"role": "user", "content": [image]}]), 1372);
    }

    #[test]
    fn what_the_provider_counted_counts() {
        let answer = |usage: u64, stop: &str, timestamp: u64| {
            json!({"role": "assistant", "content": [], "stopReason": stop, "timestamp": timestamp,
                "usage": {"totalTokens": usage}})
        };
        let long = json!({"role": "user", "content": "x".repeat(7000)});
        let short = json!({"role": "user", "content": "1234567"});
        check_input(json!([long, answer(100, "stop", 5), short]), 102);
        check_input(json!([short, answer(100, "stop", 5), answer(900, "error", 6), short]), 102);
        check_input(json!([short, answer(0, "stop", 5), short]), 4);
        let compaction = json!({"role": "compactionSummary", "summary": "1234567", "timestamp": 5});
        check_input(json!([compaction, answer(100, "stop", 5), short]), 4);
        check_input(json!([compaction, answer(100, "stop", 6), short]), 102);
    }

    fn check_room(window: u64, max: u64, input: u64, expected: Option<u64>) {
        let model = Model { context_window: window, max_tokens: max, ..Model::placeholder() };
        assert_eq!(max_answer_tokens(&model, input), expected, "{window} {max} {input}");
    }

    #[test]
    fn an_answer_gets_what_the_window_has_left() {
        check_room(0, 8192, 1_000_000, Some(8192));
        check_room(u64::MAX, 8192, 10, Some(8192));
        check_room(200_000, 8192, u64::MAX, Some(1));
        check_room(u64::MAX, u64::MAX, u64::MAX, Some(1));
        check_room(200_000, 0, 10, None);
        check_room(200_000, 64_000, 10_000, Some(64_000));
        check_room(200_000, 64_000, 130_000, Some(50_500));
        check_room(200_000, 64_000, 160_000, Some(32_768));
        check_room(200_000, 64_000, 190_000, Some(5904));
        check_room(200_000, 64_000, 300_000, Some(1));
        check_room(2048, 2048, 10, Some(1526));
    }
}
