//! Pure. A session's entries as a transcript for another model, in bounded pages.

use agentd_protocol::{
    command::Entries,
    entry::EntryBody,
    message::{AssistantMessage, ContentBlock, Message},
};
use agentd_translator::branch;
use serde::Serialize;

use crate::arguments::DEFAULT_PAGE_MESSAGES;

/// The longest text of a message, in bytes.
const MAX_TEXT: usize = 8 << 10;

/// The longest arguments of a tool call, in bytes.
const MAX_ARGUMENTS: usize = 1 << 10;

/// The most tool calls that a message lists.
const MAX_CALLS: usize = 32;

/// A page ends after the message that makes its texts longer than this, in bytes.
const MAX_PAGE: usize = 64 << 10;

/// The messages that a caller wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The id of the last entry of the page before.
    pub(crate) cursor: Option<String>,
    /// How many from the end.
    pub(crate) last: Option<usize>,
    /// The most messages.
    pub(crate) limit: Option<usize>,
}

/// A part of a transcript.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page {
    session_id: String,
    total: usize,
    messages: Vec<ShownMessage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A message of it.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownMessage {
    index: usize,
    role: &'static str,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<agentd_protocol::message::StopReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ShownCall>,
}

#[derive(Debug, PartialEq, Serialize)]
struct ShownCall {
    tool: String,
    arguments: String,
}

impl ShownMessage {
    fn bytes(&self) -> usize {
        let calls = self.tool_calls.iter().map(|call| call.tool.len() + call.arguments.len());
        self.text.len() + self.error.as_ref().map_or(0, String::len) + calls.sum::<usize>()
    }
}

/// The page that is wanted of a session's entries.
///
/// # Errors
/// For a cursor that is none of this transcript.
pub(crate) fn page(session: &str, entries: &Entries, wanted: &Wanted) -> Result<Page, String> {
    let branch = branch(entries);
    let shown: Vec<_> = branch.iter().filter(|(_, body)| is_shown(body)).collect();
    let total = shown.len();
    let first = match (&wanted.cursor, wanted.last) {
        (Some(cursor), _) => {
            let place = shown.iter().position(|(id, _)| id == cursor);
            place.ok_or("Invalid arguments: cursor: it belongs to no page of this transcript as it is now")?
                + 1
        }
        (None, Some(last)) => total.saturating_sub(last),
        (None, None) => 0,
    };
    let limit = wanted.limit.or(wanted.last).unwrap_or(DEFAULT_PAGE_MESSAGES);
    let (mut messages, mut bytes, mut end) = (Vec::new(), 0, first);
    for (id, body) in shown.iter().skip(first).take(limit) {
        let Some(message) = message(body) else { continue };
        bytes += message.bytes();
        messages.push((id, ShownMessage { index: end, ..message }));
        end += 1;
        if bytes > MAX_PAGE {
            break;
        }
    }
    let next_cursor = (end < total).then(|| messages.last().map(|(id, _)| (*id).clone())).flatten();
    let messages = messages.into_iter().map(|(_, message)| message).collect();
    Ok(Page { session_id: session.to_owned(), total, messages, next_cursor })
}

/// Whether an entry is a message of the transcript.
fn is_shown(body: &EntryBody) -> bool {
    match body {
        EntryBody::Message { message } => !matches!(message, Message::System(_)),
        EntryBody::Compaction { .. } | EntryBody::BranchSummary { .. } => true,
        _ => false,
    }
}

fn message(body: &EntryBody) -> Option<ShownMessage> {
    let of =
        |role, text: &str| Some(ShownMessage { role, text: cut(text, MAX_TEXT), ..ShownMessage::default() });
    match body {
        EntryBody::Compaction { summary, .. } | EntryBody::BranchSummary { summary, .. } => {
            of("summary", summary)
        }
        EntryBody::Message { message } => match message {
            Message::System(_) => None,
            Message::User(user) => of("user", &with_images(&user.content.blocks())),
            Message::Assistant(answer) => Some(of_answer(answer)),
            Message::ToolResult(result) => Some(ShownMessage {
                role: "tool",
                text: cut(&with_images(&result.content), MAX_TEXT),
                tool: Some(result.tool_name.clone()),
                is_error: result.is_error,
                ..ShownMessage::default()
            }),
            Message::BashExecution(bash) => of("bash", &format!("$ {}\n{}", bash.command, bash.output)),
            Message::Custom(custom) => of("note", &with_images(&custom.content.blocks())),
            Message::BranchSummary(summary) => of("summary", &summary.summary),
            Message::CompactionSummary(summary) => of("summary", &summary.summary),
        },
        _ => None,
    }
}

fn of_answer(answer: &AssistantMessage) -> ShownMessage {
    let calls = answer.content.iter().filter_map(|block| match block {
        ContentBlock::ToolCall(call) => Some(ShownCall {
            tool: call.name.clone(),
            arguments: cut(&serde_json::Value::from(call.arguments.clone()).to_string(), MAX_ARGUMENTS),
        }),
        _ => None,
    });
    ShownMessage {
        role: "assistant",
        text: cut(&with_images(&answer.content), MAX_TEXT),
        stop_reason: Some(answer.stop_reason),
        error: answer.error_message.as_ref().map(|error| cut(error, MAX_ARGUMENTS)),
        tool_calls: calls.take(MAX_CALLS).collect(),
        ..ShownMessage::default()
    }
}

/// The text of blocks; images by a word.
fn with_images(blocks: &[ContentBlock]) -> String {
    let parts = blocks.iter().filter_map(|block| match block {
        ContentBlock::Text { text, .. } => Some(text.as_str()),
        ContentBlock::Image(_) => Some("[image]"),
        _ => None,
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// The text, or its beginning with a word on what is left out.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}\n[{} more bytes left out]", &text[..end], text.len() - end)
}

#[cfg(test)]
mod tests {
    use agentd_protocol::{Json, entry::SessionEntry};
    use serde_json::{Value, json};

    use super::*;

    fn entry(id: usize, message: Value) -> Json<SessionEntry> {
        let parent = (id > 0).then(|| (id - 1).to_string());
        let entry = json!({"type": "message", "id": id.to_string(), "parentId": parent, "timestamp": "", "message": message});
        serde_json::from_value(entry).unwrap()
    }

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 0})
    }

    fn conversation(texts: &[&str]) -> Entries {
        let entries = texts.iter().enumerate().map(|(id, text)| entry(id, user(text))).collect();
        Entries { entries, leaf_id: Some((texts.len() - 1).to_string()) }
    }

    fn texts(page: &Page) -> Vec<&str> {
        page.messages.iter().map(|message| message.text.as_str()).collect()
    }

    fn wanted(cursor: Option<&str>, last: Option<usize>, limit: Option<usize>) -> Wanted {
        Wanted { cursor: cursor.map(str::to_owned), last, limit }
    }

    #[test]
    fn pages_follow_each_other() {
        let entries = conversation(&["a", "b", "c", "d", "e"]);
        let first = page("s", &entries, &wanted(None, None, Some(2))).unwrap();
        assert_eq!((texts(&first), first.total), (vec!["a", "b"], 5));
        let second = page("s", &entries, &wanted(first.next_cursor.as_deref(), None, Some(2))).unwrap();
        assert_eq!((texts(&second), second.messages[0].index), (vec!["c", "d"], 2));
        let third = page("s", &entries, &wanted(second.next_cursor.as_deref(), None, Some(2))).unwrap();
        assert_eq!((texts(&third), third.next_cursor.as_deref()), (vec!["e"], None));
        let end = page("s", &entries, &wanted(None, Some(2), None)).unwrap();
        assert_eq!((texts(&end), end.next_cursor.as_deref()), (vec!["d", "e"], None));
        let all = page("s", &entries, &wanted(None, Some(50), None)).unwrap();
        assert_eq!(all.messages.len(), 5);
        assert!(page("s", &entries, &wanted(Some("x"), None, None)).is_err());
    }

    #[test]
    fn pages_are_bounded() {
        let long = "é".repeat(MAX_TEXT);
        let texts = vec![long.as_str(); 20];
        let page = page("s", &conversation(&texts), &Wanted::default()).unwrap();
        let bytes: usize = page.messages.iter().map(ShownMessage::bytes).sum();
        assert!(bytes < MAX_PAGE + 2 * MAX_TEXT && page.messages.len() < 20, "{bytes}");
        assert!(page.messages[0].text.ends_with(" more bytes left out]"));
        assert!(page.next_cursor.is_some());
    }

    #[test]
    fn every_kind_of_message_is_shown() {
        let answer = json!({"role": "assistant", "stopReason": "toolUse", "timestamp": 0, "content": [
            {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Look."},
            {"type": "toolCall", "id": "c", "name": "bash", "arguments": {"command": "ls"}}]});
        let result = json!({"role": "toolResult", "toolCallId": "c", "toolName": "bash", "isError": true,
            "content": [{"type": "text", "text": "no"}, {"type": "image", "data": "", "mimeType": "image/png"}], "timestamp": 0});
        let bash = json!({"role": "bashExecution", "command": "id", "output": "me", "timestamp": 0});
        let entries = vec![
            entry(0, json!({"role": "system", "content": "be good", "timestamp": 0})),
            entry(1, user("hi")),
            entry(2, answer),
            entry(3, result),
            entry(4, bash),
        ];
        let page = page("s", &Entries { entries, leaf_id: Some("4".into()) }, &Wanted::default()).unwrap();
        assert_eq!(
            serde_json::to_value(&page).unwrap(),
            json!({"sessionId": "s", "total": 4, "messages": [
                {"index": 0, "role": "user", "text": "hi"},
                {"index": 1, "role": "assistant", "text": "Look.", "stopReason": "toolUse",
                    "toolCalls": [{"tool": "bash", "arguments": "{\"command\":\"ls\"}"}]},
                {"index": 2, "role": "tool", "text": "no\n[image]", "tool": "bash", "isError": true},
                {"index": 3, "role": "bash", "text": "$ id\nme"},
            ]})
        );
    }
}
