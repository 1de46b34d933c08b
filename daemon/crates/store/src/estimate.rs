//! Estimates how many tokens messages have, without asking a model.

use agentd_protocol::{
    Json,
    message::{ContentBlock, Message, MessageContent, StopReason, SystemMessage, Usage},
    session::ContextUsage,
};
use serde_json::Value;

use crate::{Context, EntryKind, Role, SessionTree};

/// The characters that an image counts as.
const IMAGE_CHARS: u64 = 4800;

/// The estimated tokens of a message: a quarter of its characters (UTF-16 units), rounded up.
#[must_use]
pub fn estimate_tokens(message: &Message) -> u64 {
    chars(message).div_ceil(4)
}

fn chars(message: &Message) -> u64 {
    match message {
        Message::System(system) => system_chars(system),
        Message::User(user) => content(&user.content),
        Message::Assistant(answer) => answer.content.iter().map(block).sum(),
        Message::ToolResult(result) => result.content.iter().map(block).sum(),
        Message::BashExecution(bash) => units(&bash.command) + units(&bash.output),
        Message::Custom(custom) => content(&custom.content),
        Message::BranchSummary(summary) => units(&summary.summary),
        Message::CompactionSummary(summary) => units(&summary.summary),
    }
}

fn system_chars(system: &SystemMessage) -> u64 {
    let sections: u64 = system.sections.iter().flatten().map(|(_, text)| section(text)).sum();
    content(&system.content) + sections + tools(system)
}

fn content(content: &MessageContent) -> u64 {
    match content {
        MessageContent::Text(text) => units(text),
        MessageContent::Blocks(blocks) => blocks.iter().map(block).sum(),
        MessageContent::Nothing => 0,
    }
}

fn block(block: &ContentBlock) -> u64 {
    match block {
        ContentBlock::Text { text, .. } => units(text),
        ContentBlock::Thinking { thinking, .. } => units(thinking),
        ContentBlock::Image(_) => IMAGE_CHARS,
        ContentBlock::ToolCall(call) => {
            units(&call.name) + serde_json::to_string(&call.arguments).map_or(0, |text| units(&text))
        }
    }
}

fn section(text: &Value) -> u64 {
    text.as_str().map_or(0, units)
}

fn tools(system: &SystemMessage) -> u64 {
    let tools = system.tools_added.as_ref().and_then(|tools| serde_json::to_string(tools).ok());
    tools.map_or(0, |text| units(&text))
}

/// The length in UTF-16 units, as JavaScript counts.
fn units(text: &str) -> u64 {
    // Every byte that begins a character is a unit; characters of four bytes are two.
    text.bytes().map(|byte| u64::from(byte & 0xC0 != 0x80) + u64::from(byte >= 0xF0)).sum()
}

/// All tokens of a request and its answer.
fn total(usage: &Usage) -> u64 {
    match usage.total_tokens {
        0 => usage.input + usage.output + usage.cache_read + usage.cache_write,
        total => total,
    }
}

/// The fill of a window of `window` tokens at the leaf; `None` when the window is not known (0).
///
/// The last answer reports the tokens of itself and everything before it; later messages are estimated. An answer from before
/// the last compaction or edit does not describe the present context: after an edit all of it is estimated, after a compaction
/// the number is unknown until the next answer.
#[must_use]
pub fn context_usage(tree: &SessionTree, context: &Context, window: u64) -> Option<ContextUsage> {
    if window == 0 {
        return None;
    }
    let usage = |tokens: Option<u64>| ContextUsage {
        tokens,
        context_window: window,
        percent: tokens.map(|tokens| tokens as f64 / window as f64 * 100.0),
    };
    Some(usage(tokens(tree, context)))
}

fn tokens(tree: &SessionTree, context: &Context) -> Option<u64> {
    let mut was_edited = false;
    for at in tree.upwards(tree.leaf_index()) {
        let entry = tree.entry(at);
        match entry.kind() {
            EntryKind::Compaction => return None,
            EntryKind::ContextEdit => was_edited = true,
            EntryKind::Message(Role::Assistant) => {
                let Some(reported) = entry.message().and_then(reported) else { continue };
                if was_edited {
                    break;
                }
                let after = context.sources().iter().rposition(|source| *source == at).map_or(0, |at| at + 1);
                return Some(reported + estimate_all(&context.messages()[after..]));
            }
            _ => {}
        }
    }
    Some(estimate_collapsed(context.messages()))
}

/// The context size that an answer reports; `None` for an answer that failed or reports nothing.
pub(crate) fn reported(message: &Json<Message>) -> Option<u64> {
    let Some(Message::Assistant(answer)) = message.get() else { return None };
    let ended = !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted);
    Some(total(&answer.usage)).filter(|tokens| ended && *tokens > 0)
}

fn estimate_all(messages: &[Json<Message>]) -> u64 {
    messages.iter().filter_map(Json::get).map(estimate_tokens).sum()
}

/// The estimate with all system messages taken together: of what they set one after the other, the last counts.
fn estimate_collapsed(messages: &[Json<Message>]) -> u64 {
    let mut sum = CollapsedSum::default();
    messages.iter().for_each(|message| sum.add(message));
    sum.tokens()
}

/// The estimated tokens of messages that come one after the other, all system messages among them taken together.
#[derive(Debug, Clone, Default)]
pub(crate) struct CollapsedSum {
    others: u64,
    texts: Vec<String>,
    system: Option<SystemMessage>,
    system_tokens: u64,
}

impl CollapsedSum {
    /// Adds the next message.
    pub(crate) fn add(&mut self, message: &Json<Message>) {
        match message.get() {
            Some(Message::System(next)) => self.collapse(next),
            Some(message) => self.others += estimate_tokens(message),
            None => {}
        }
    }

    /// The sum.
    pub(crate) fn tokens(&self) -> u64 {
        self.others + self.system_tokens
    }

    fn collapse(&mut self, next: &SystemMessage) {
        let system = self.system.get_or_insert_default();
        self.texts.extend(Some(next.content.text()).filter(|text| !text.is_empty()));
        let sections = system.sections.get_or_insert_default();
        for (name, text) in next.sections.iter().flatten() {
            sections.insert(name.clone(), text.clone());
        }
        let tools = system.tools_added.get_or_insert_default();
        let gone = next.tools_removed.iter().flatten().map(|tool| &tool.name);
        let replaced = next.tools_added.iter().flatten().map(|tool| &tool.name);
        let names: std::collections::HashSet<&String> = gone.chain(replaced).collect();
        tools.retain(|tool| !names.contains(&tool.name));
        tools.extend(next.tools_added.iter().flatten().cloned());
        system.content = MessageContent::Text(self.texts.join("\n\n"));
        self.system_tokens = system_chars(system).div_ceil(4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tree;

    fn check(message: &str, expected: u64) {
        assert_eq!(estimate_tokens(&serde_json::from_str(message).unwrap()), expected, "{message}");
    }

    #[test]
    fn characters_are_utf_16_units() {
        for (text, count) in [("", 0), ("abc", 3), ("é", 1), ("€", 1), ("😀", 2), ("a😀é", 4)] {
            assert_eq!(units(text), count, "{text}");
            assert_eq!(text.encode_utf16().count() as u64, count);
        }
    }

    #[test]
    fn every_kind_of_message_counts() {
        check(r#"{"role":"user","content":"12345"}"#, 2);
        check(
            r#"{"role":"user","content":[{"type":"text","text":"1234"},{"type":"image","data":"","mimeType":""}]}"#,
            1201,
        );
        check(r#"{"role":"user","content":null}"#, 0);
        check(
            r#"{"role":"assistant","stopReason":"stop","content":[{"type":"text","text":"1234"},{"type":"thinking","thinking":"5678"},{"type":"toolCall","id":"c","name":"bash","arguments":{"a":1}}]}"#,
            5,
        );
        check(r#"{"role":"toolResult","toolCallId":"c","content":[{"type":"text","text":"12345678"}]}"#, 2);
        check(r#"{"role":"bashExecution","command":"ls","output":"ab"}"#, 1);
        check(r#"{"role":"custom","customType":"x","content":"1234"}"#, 1);
        check(r#"{"role":"branchSummary","summary":"1234"}"#, 1);
        check(r#"{"role":"compactionSummary","summary":"12345"}"#, 2);
        check(r#"{"role":"system","content":"1234","sections":{"a":"5678","b":null}}"#, 2);
    }

    fn answer(id: &str, parent: &str, tokens: u64, stop: &str) -> String {
        format!(
            r#"{{"type":"message","id":"{id}","parentId":"{parent}","message":{{"role":"assistant","content":[],"stopReason":"{stop}","usage":{{"input":{tokens},"output":0}}}}}}"#
        )
    }

    fn used(entries: &[&str]) -> Option<u64> {
        let tree = tree(entries);
        context_usage(&tree, &Context::new(&tree), 1000).unwrap().tokens
    }

    #[test]
    fn the_last_good_answer_counts_and_the_rest_is_estimated() {
        assert_eq!(used(&["a -"]), Some(1));
        assert_eq!(used(&["a -", &answer("b", "a", 100, "stop")]), Some(100));
        assert_eq!(used(&["a -", &answer("b", "a", 100, "stop"), "ccccc b"]), Some(102));
        for failed in ["error", "aborted"] {
            assert_eq!(
                used(&["a -", &answer("b", "a", 100, "stop"), &answer("c", "b", 900, failed)]),
                Some(100)
            );
        }
        assert_eq!(used(&["a -", &answer("b", "a", 0, "stop")]), Some(1));
    }

    #[test]
    fn compactions_and_edits_make_older_answers_useless() {
        let compaction =
            r#"{"type":"compaction","id":"k","parentId":"b","summary":"12345","firstKeptEntryId":"b"}"#;
        let start = ["a -", &answer("b", "a", 100, "stop"), compaction];
        assert_eq!(used(&start), None);
        assert_eq!(used(&[&start[..], &["c k"]].concat()), None);
        assert_eq!(used(&[&start[..], &["c k", &answer("d", "c", 50, "error")]].concat()), None);
        assert_eq!(used(&[&start[..], &["c k", &answer("d", "c", 50, "stop")]].concat()), Some(50));
        let edit = r#"{"type":"context_edit","id":"e","parentId":"b","targetId":"a","replacement":{"content":"12345678"}}"#;
        assert_eq!(used(&["a -", &answer("b", "a", 100, "stop"), edit]), Some(2));
        let edit_after =
            r#"{"type":"context_edit","id":"e","parentId":"d","targetId":"c","replacement":null}"#;
        assert_eq!(
            used(&[&start[..], &["c k", &answer("d", "c", 50, "stop"), edit_after]].concat()),
            Some(2)
        );
    }

    #[test]
    fn system_messages_are_taken_together() {
        let system = |id: &str, parent: &str, message: &str| {
            format!(
                r#"{{"type":"message","id":"{id}","parentId":"{parent}","message":{{"role":"system",{message}}}}}"#
            )
        };
        let one = system("a", "", r#""content":"","sections":{"x":"12345678"},"toolsAdded":[{"name":"t"}]"#);
        let two = system("b", "a", r#""content":"12","sections":{"x":"12"},"toolsRemoved":[{"name":"t"}]"#);
        // `12`, `12` and `[]`.
        assert_eq!(used(&[&one, &two]), Some(2));
    }

    #[test]
    fn no_window_no_usage() {
        let tree = tree(&["a -"]);
        assert_eq!(context_usage(&tree, &Context::new(&tree), 0), None);
        assert_eq!(context_usage(&tree, &Context::new(&tree), 8).unwrap().percent, Some(12.5));
    }
}
