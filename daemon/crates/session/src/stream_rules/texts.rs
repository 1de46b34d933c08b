//! What the model is told of a rule. Pure.

use agentd_protocol::{
    message::{AssistantMessage, ContentBlock, CustomMessage, MessageContent},
    stream_rules::RULES_MESSAGE,
};
use agentd_stream_rules::StreamRule;
use serde_json::json;

/// Bytes of what was written before an interruption that the model is shown again.
const MAX_KEPT: usize = 4 << 10;

/// The hidden message after an interruption. `kept`: the answer that was interrupted, where the model is to see the end of it.
pub(crate) fn interrupt_message(
    rules: &[&StreamRule],
    kept: Option<&AssistantMessage>,
    timestamp: i64,
) -> CustomMessage {
    let mut text = told("system-interrupt", rules);
    if let Some(end) = kept.and_then(end_of) {
        text.push_str(&format!(
            "\n\nYou were interrupted after this:\n<interrupted_answer>\n{end}\n</interrupted_answer>"
        ));
    }
    message(rules, text, timestamp)
}

/// The hidden message after an answer that was not interrupted.
pub(crate) fn follow_up(rules: &[&StreamRule], timestamp: i64) -> CustomMessage {
    message(rules, told("system-reminder", rules), timestamp)
}

/// The block before the result of a call.
pub(crate) fn reminder(rules: &[&StreamRule]) -> ContentBlock {
    ContentBlock::text(told("system-reminder", rules))
}

fn message(rules: &[&StreamRule], text: String, timestamp: i64) -> CustomMessage {
    let names: Vec<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
    CustomMessage {
        custom_type: RULES_MESSAGE.to_owned(),
        content: MessageContent::Text(text),
        display: false,
        details: Some(json!({ "rules": names })),
        timestamp,
    }
}

fn told(tag: &str, rules: &[&StreamRule]) -> String {
    let of_rule = |rule: &&StreamRule| {
        let (name, path) = (attribute(&rule.name), attribute(&rule.path));
        format!("<{tag} reason=\"rule_violation\" rule=\"{name}\" path=\"{path}\">\n{}\n</{tag}>", rule.body)
    };
    rules.iter().map(of_rule).collect::<Vec<_>>().join("\n")
}

fn attribute(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")
}

/// The end of what an answer says; `None` where it says nothing.
fn end_of(answer: &AssistantMessage) -> Option<String> {
    let texts = answer.content.iter().filter_map(|block| match block {
        ContentBlock::Text { text, .. } => Some(text.clone()),
        ContentBlock::ToolCall(call) => Some(format!("[call of {}: {}]", call.name, json!(call.arguments))),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    let from = text.len().saturating_sub(MAX_KEPT);
    let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    Some(text[from..].trim().to_owned()).filter(|text| !text.is_empty())
}
