//! Messages of the daemon as entries.

use std::collections::HashMap;

use agentd_client_text::{execution_end, outcome, subject, todo_lines};
use agentd_protocol::{
    Json,
    event::{ToolExecutionEnd, ToolExecutionStart},
    message::{AssistantMessage, BashExecutionMessage, ContentBlock, Message, StopReason},
    tool::ToolResult,
};

use super::{
    entry::{Entry, NoticeLevel, ToolCall, ToolState},
    image::Image,
};

/// The entries of stored messages. The results of tools stand at their calls.
pub(crate) fn entries_of(messages: &[Json<Message>]) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut calls: HashMap<String, usize> = HashMap::new();
    for message in messages.iter().filter_map(Json::get) {
        match message {
            Message::System(_) => {}
            Message::User(user) => {
                entries.push(Entry::User { text: user.content.text(), is_from_another: false });
                entries.extend(images(&user.content.blocks()));
            }
            Message::Assistant(answer) => answered(answer, &mut entries, &mut calls),
            Message::ToolResult(result) => {
                if let Some(Entry::Tool(call)) =
                    calls.get(&result.tool_call_id).and_then(|at| entries.get_mut(*at))
                {
                    ended_tool(call, &execution_end(result));
                }
                entries.extend(images(&result.content));
            }
            Message::BashExecution(bash) => entries.push(ran(bash)),
            Message::Custom(custom) if custom.display => {
                entries.push(Entry::notice(NoticeLevel::Info, custom.content.text()));
            }
            Message::Custom(_) => {}
            Message::BranchSummary(summary) => entries.push(Entry::Summary {
                title: "Summary of a branch that was left".to_owned(),
                text: summary.summary.clone(),
            }),
            Message::CompactionSummary(summary) => entries.push(Entry::Summary {
                title: format!("Summary of what came before ({} tokens)", summary.tokens_before),
                text: summary.summary.clone(),
            }),
        }
    }
    entries
}

fn answered(answer: &AssistantMessage, entries: &mut Vec<Entry>, calls: &mut HashMap<String, usize>) {
    let is_complete = answer.stop_reason != StopReason::Pending;
    for block in &answer.content {
        match block {
            ContentBlock::Text { text, .. } => {
                entries.push(Entry::Answer { text: text.clone(), is_complete });
            }
            ContentBlock::Thinking { thinking, .. } => {
                entries.push(Entry::Thinking { text: thinking.clone(), is_complete });
            }
            ContentBlock::ToolCall(call) => {
                let Ok(args) = Json::new(call.arguments.clone()) else { continue };
                let started = ToolExecutionStart {
                    tool_call_id: call.id.clone(),
                    tool_name: call.name.clone(),
                    args,
                    parent_tool_call_id: None,
                };
                calls.insert(call.id.clone(), entries.len());
                entries.push(Entry::Tool(ToolCall::of(&started, ToolState::Unknown)));
            }
            ContentBlock::Image(_) => entries.extend(images(std::slice::from_ref(block))),
        }
    }
    if let Some(error) = &answer.error_message {
        let level =
            if answer.stop_reason == StopReason::Aborted { NoticeLevel::Info } else { NoticeLevel::Error };
        entries.push(Entry::notice(level, error.clone()));
    }
}

impl ToolCall {
    /// A call that begins.
    pub(crate) fn of(started: &ToolExecutionStart, state: ToolState) -> Self {
        let arguments = started.args.get().and_then(|args| serde_json::to_string_pretty(args).ok());
        Self {
            id: started.tool_call_id.clone(),
            subject: subject(started),
            arguments: arguments.unwrap_or_default(),
            output: String::new(),
            todos: Vec::new(),
            diff: None,
            state,
        }
    }
}

/// Records the end of a call.
pub(crate) fn ended_tool(call: &mut ToolCall, end: &ToolExecutionEnd) {
    call.output = result_text(&end.result);
    let diff = end.result.details.as_ref().and_then(|details| details.get("diff")?.as_str());
    call.diff = diff.map(str::to_owned);
    call.todos = todo_lines(&end.tool_name, &end.result).filter(|_| !end.is_error).unwrap_or_default();
    let outcome = outcome(end);
    call.state = if end.is_error { ToolState::Failed(outcome) } else { ToolState::Done(outcome) };
}

/// The text of a result.
pub(super) fn result_text(result: &ToolResult) -> String {
    result.content.iter().filter_map(ContentBlock::as_text).collect::<Vec<_>>().join("\n")
}

fn ran(bash: &BashExecutionMessage) -> Entry {
    let state = match bash.exit_code {
        Some(0) => ToolState::Done("ok".to_owned()),
        Some(code) => ToolState::Failed(format!("exit code {code}")),
        None => ToolState::Failed("stopped".to_owned()),
    };
    Entry::Bash { command: bash.command.clone(), output: bash.output.clone(), state }
}

/// The images among the blocks.
pub(crate) fn images(blocks: &[ContentBlock]) -> impl Iterator<Item = Entry> {
    blocks.iter().filter_map(|block| match block {
        ContentBlock::Image(image) => Some(Entry::Image(Image::new(image.clone()))),
        ContentBlock::Text { .. } | ContentBlock::Thinking { .. } | ContentBlock::ToolCall(_) => None,
    })
}
