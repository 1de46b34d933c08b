//! Pure. The entries of a session as updates: what a client shows of a session that it loads.

use std::collections::HashMap;

use agentd_protocol::{
    command::Entries,
    entry::EntryBody,
    message::{AssistantMessage, ContentBlock, Message, MessageContent, ToolResultMessage},
    tool::ToolResult,
};
use agentd_translator::branch;

use crate::{
    server_tools::ServerTools,
    tool_calls::{Folders, changes, content, locations, raw_output},
    updates::{CompactionStatus, Content, ToolCallFields, ToolStatus, Update},
};

/// The updates for the branch that the session is on, oldest first. `compactions`: whether the client knows those.
pub(crate) fn updates(
    entries: &Entries,
    folders: &Folders,
    tools: &ServerTools,
    compactions: bool,
) -> Vec<Update> {
    let branch = branch(entries);
    let mut results: HashMap<&str, &ToolResultMessage> = HashMap::new();
    for (_, body) in &branch {
        if let EntryBody::Message { message: Message::ToolResult(result) } = body {
            results.insert(&result.tool_call_id, result);
        }
    }
    let mut updates = Vec::new();
    for (id, body) in &branch {
        match body {
            EntryBody::Message { message: Message::User(user) } => of_user(&user.content, id, &mut updates),
            EntryBody::Message { message: Message::Assistant(answer) } => {
                of_answer(answer, id, &results, (folders, tools), &mut updates);
            }
            EntryBody::Compaction { summary, .. } if compactions => {
                updates.push(Update::CompactionUpdate {
                    compaction_id: id.clone(),
                    status: CompactionStatus::Completed,
                    summary: Some(vec![Content::text(summary.as_str())]),
                    error: None,
                });
            }
            _ => {}
        }
    }
    updates
}

/// Appends the message of a user.
pub(crate) fn of_user(user: &MessageContent, id: &str, updates: &mut Vec<Update>) {
    for block in user.blocks().iter() {
        let content = match block {
            ContentBlock::Text { text, .. } if !text.is_empty() => Content::text(text.as_str()),
            ContentBlock::Image(image) => {
                Content::Image { data: image.data.clone(), mime_type: image.mime_type.clone() }
            }
            _ => continue,
        };
        updates.push(Update::UserMessageChunk { content, message_id: Some(id.to_owned()) });
    }
}

/// Appends an answer, with its calls and their `results` by the calls' ids.
pub(crate) fn of_answer(
    answer: &AssistantMessage,
    id: &str,
    results: &HashMap<&str, &ToolResultMessage>,
    (folders, tools): (&Folders, &ServerTools),
    updates: &mut Vec<Update>,
) {
    let message_id = || Some(id.to_owned());
    for block in &answer.content {
        match block {
            ContentBlock::Text { text, .. } if !text.is_empty() => {
                let content = Content::text(text.as_str());
                updates.push(Update::AgentMessageChunk { content, message_id: message_id() });
            }
            ContentBlock::Thinking { thinking, .. } if !thinking.is_empty() => {
                let content = Content::text(thinking.as_str());
                updates.push(Update::AgentThoughtChunk { content, message_id: message_id() });
            }
            ContentBlock::ToolCall(call) => {
                updates.push(Update::ToolCall(ToolCallFields {
                    tool_call_id: call.id.clone(),
                    title: Some(tools.title(&call.name, &call.arguments, folders)),
                    name: Some(call.name.clone()),
                    kind: Some(tools.kind(&call.name)),
                    status: Some(ToolStatus::Pending),
                    locations: Some(locations(&call.name, &call.arguments, None, folders)),
                    raw_input: Some(call.arguments.clone().into()),
                    ..ToolCallFields::default()
                }));
                let result = results.get(call.id.as_str());
                let ended = result.map(|result| ToolResult {
                    content: result.content.clone(),
                    details: result.details.clone(),
                    ..ToolResult::default()
                });
                let has_failed = result.is_none_or(|result| result.is_error);
                let shown = ended.as_ref().map(|ended| {
                    let changed = (!has_failed)
                        .then(|| changes(&call.name, &call.arguments, ended, None, folders))
                        .flatten();
                    changed.unwrap_or_else(|| content(&call.name, &ended.content))
                });
                updates.push(Update::ToolCallUpdate(ToolCallFields {
                    tool_call_id: call.id.clone(),
                    status: Some(if has_failed { ToolStatus::Failed } else { ToolStatus::Completed }),
                    content: shown,
                    raw_output: ended.as_ref().and_then(raw_output),
                    ..ToolCallFields::default()
                }));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::{Json, entry::SessionEntry};
    use serde_json::{Value, json};

    use super::*;
    use crate::updates::{ToolContent, ToolKind};

    fn entry(id: &str, parent: Option<&str>, message: Value) -> Json<SessionEntry> {
        let entry = json!({"type":"message","id":id,"parentId":parent,"timestamp":"","message":message});
        serde_json::from_value(entry).unwrap()
    }

    fn user(text: &str) -> Value {
        json!({"role":"user","content":[{"type":"text","text":text}],"timestamp":0})
    }

    #[test]
    fn only_the_branch_of_the_leaf_is_told() {
        let entries = Entries {
            entries: vec![
                entry("1", None, user("a")),
                entry("2", Some("1"), user("left")),
                entry("3", Some("1"), user("b")),
            ],
            leaf_id: Some("3".into()),
        };
        let chunk = |id: &str, text: &str| Update::UserMessageChunk {
            content: Content::text(text),
            message_id: Some(id.into()),
        };
        assert_eq!(
            updates(&entries, &Folders::default(), &ServerTools::default(), false),
            [chunk("1", "a"), chunk("3", "b")]
        );
    }

    #[test]
    fn a_circle_of_entries_ends() {
        let entries = Entries {
            entries: vec![entry("1", Some("2"), user("a")), entry("2", Some("1"), user("b"))],
            leaf_id: Some("2".into()),
        };
        assert_eq!(updates(&entries, &Folders::default(), &ServerTools::default(), false).len(), 2);
    }

    #[test]
    fn tool_calls_have_their_final_state() {
        let answer = json!({"role":"assistant","stopReason":"toolUse","timestamp":0,"content":[
            {"type":"thinking","thinking":"hm"},
            {"type":"toolCall","id":"c","name":"edit","arguments":{"path":"a","edits":[]}},
            {"type":"toolCall","id":"d","name":"bash","arguments":{"command":"x"}},
            {"type":"toolCall","id":"e","name":"bash","arguments":{"command":"y"}},
        ]});
        let result = |id: &str, is_error: bool| {
            json!({"role":"toolResult","toolCallId":id,"toolName":"","content":[{"type":"text","text":"t"}],
                "details":{"patch":"@@ -1 +1 @@\n-a\n+b\n"},"isError":is_error,"timestamp":0})
        };
        let entries = Entries {
            entries: vec![
                entry("1", None, answer),
                entry("2", Some("1"), result("c", false)),
                entry("3", Some("2"), result("d", true)),
            ],
            leaf_id: Some("3".into()),
        };
        let told =
            updates(&entries, &Folders { cwd: "/p".into(), home: None }, &ServerTools::default(), false);
        let [thought, first, ended, _, failed, _, lost] = told.as_slice() else { panic!("{told:?}") };
        assert!(matches!(thought, Update::AgentThoughtChunk { .. }));
        let Update::ToolCall(first) = first else { panic!("{first:?}") };
        assert_eq!((first.kind, first.title.as_deref()), (Some(ToolKind::Edit), Some("Edit a")));
        let Update::ToolCallUpdate(ended) = ended else { panic!("{ended:?}") };
        assert_eq!(ended.status, Some(ToolStatus::Completed));
        let diff =
            ToolContent::Diff { path: "/p/a".into(), old_text: Some("a\n".into()), new_text: "b\n".into() };
        assert_eq!(ended.content, Some(vec![diff]));
        for (update, has_content) in [(failed, true), (lost, false)] {
            let Update::ToolCallUpdate(update) = update else { panic!("{update:?}") };
            assert_eq!((update.status, update.content.is_some()), (Some(ToolStatus::Failed), has_content));
        }
    }
}
