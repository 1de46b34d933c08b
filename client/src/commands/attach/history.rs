//! The last exchange of a conversation, as `attach` would have shown it.

use agentd_client_text::execution_end;
use agentd_protocol::{
    Json,
    event::ToolExecutionStart,
    message::{AssistantMessage, BashExecutionMessage, ContentBlock, Message},
};

use crate::{
    output::OutputChunk,
    render::{StreamStyle, ToolLines, one_line, prompt_line, steers, whole_text},
};

/// How many lines of a text are shown; of longer ones the last.
const LINES: usize = 20;

/// How many messages are shown: a run can be long.
const MESSAGES: usize = 20;

/// The last prompt and its run: prompts and tools for stderr, answers for stdout.
pub(super) fn last_exchange(messages: &[Json<Message>], style: StreamStyle) -> Vec<OutputChunk> {
    let typed: Vec<&Message> = messages.iter().filter_map(Json::get).collect();
    let begin = typed.iter().rposition(|message| matches!(message, Message::User(_))).unwrap_or(0);
    let exchange = &typed[begin..];
    let mut chunks = Vec::new();
    let mut tools = ToolLines::new(style);
    let left_out = exchange.len().saturating_sub(MESSAGES);
    for (at, message) in exchange.iter().enumerate() {
        // The prompt is always shown.
        if at == 0 || at > left_out {
            chunks.extend(said(message, &mut tools, style));
        } else if at == 1 {
            chunks.push(note(style, &format!("… {left_out} more messages …")));
        }
    }
    chunks
}

fn said(message: &Message, tools: &mut ToolLines, style: StreamStyle) -> Vec<OutputChunk> {
    match message {
        Message::User(user) => {
            vec![OutputChunk::Err(prompt_line(style, &last_lines(&user.content.text())).into_bytes())]
        }
        Message::Assistant(answer) => answered(answer, tools, style),
        Message::ToolResult(result) => {
            vec![OutputChunk::Err(tools.ended(&execution_end(result)).into_bytes())]
        }
        Message::BashExecution(bash) => vec![ran(bash, style)],
        Message::System(_)
        | Message::Custom(_)
        | Message::BranchSummary(_)
        | Message::CompactionSummary(_) => Vec::new(),
    }
}

fn answered(answer: &AssistantMessage, tools: &mut ToolLines, style: StreamStyle) -> Vec<OutputChunk> {
    let mut chunks = Vec::new();
    for block in &answer.content {
        match block {
            ContentBlock::Text { text, .. } if !text.trim().is_empty() && style.markdown => {
                let mut rows = whole_text(text, style);
                if rows.len() > LINES {
                    rows.drain(..rows.len() - LINES);
                    chunks.push(note(style, "…"));
                }
                chunks.push(OutputChunk::Rows { finished: rows, open: Vec::new() });
            }
            ContentBlock::Text { text, .. } if !text.trim().is_empty() => {
                let text = last_lines(text);
                let text: String =
                    if style.plain_out { text.chars().filter(|c| !steers(*c)).collect() } else { text };
                chunks.push(OutputChunk::Out(format!("{}\n", text.trim_end()).into_bytes()));
            }
            ContentBlock::ToolCall(call) => {
                if let Ok(args) = Json::new(call.arguments.clone()) {
                    let (tool_call_id, tool_name) = (call.id.clone(), call.name.clone());
                    let started =
                        ToolExecutionStart { tool_call_id, tool_name, args, parent_tool_call_id: None };
                    chunks.extend(tools.started(&started).map(|line| OutputChunk::Err(line.into_bytes())));
                }
            }
            _ => {}
        }
    }
    if let Some(error) = &answer.error_message {
        chunks.push(note(style, &format!("The answer ended: {}", one_line(error))));
    }
    chunks
}

fn ran(bash: &BashExecutionMessage, style: StreamStyle) -> OutputChunk {
    note(style, &format!("$ {}", one_line(&bash.command)))
}

fn note(style: StreamStyle, text: &str) -> OutputChunk {
    OutputChunk::Err(format!("{}\n", style.dim(text)).into_bytes())
}

/// The end of a long text.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    match lines.len().checked_sub(LINES + 1) {
        Some(over) => format!("…\n{}", lines[over + 1..].join("\n")),
        None => lines.join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn show(messages: &[Value]) -> (String, String) {
        let messages: Vec<Json<Message>> =
            messages.iter().map(|message| serde_json::from_str(&message.to_string()).unwrap()).collect();
        let (mut out, mut err) = (String::new(), String::new());
        for chunk in last_exchange(&messages, StreamStyle { plain_out: true, ..StreamStyle::default() }) {
            match chunk {
                OutputChunk::Out(bytes) => out.push_str(std::str::from_utf8(&bytes).unwrap()),
                OutputChunk::Err(bytes) => err.push_str(std::str::from_utf8(&bytes).unwrap()),
                OutputChunk::Status(_) | OutputChunk::Rows { .. } | OutputChunk::Typed(_) => unreachable!(),
            }
        }
        (out, err)
    }

    fn answer(content: Value) -> Value {
        json!({"role": "assistant", "content": content, "stopReason": "stop"})
    }

    fn call(id: usize) -> [Value; 2] {
        let call =
            json!({"type": "toolCall", "id": id.to_string(), "name": "bash", "arguments": {"command": "ls"}});
        let result = json!({"role": "toolResult", "toolCallId": id.to_string(), "toolName": "bash", "durationMs": 4,
            "content": []});
        [answer(json!([call])), result]
    }

    #[test]
    fn the_last_prompt_and_what_came_of_it() {
        let [called, result] = call(1);
        let (out, err) = show(&[
            json!({"role": "user", "content": "old"}),
            answer(json!([{"type": "text", "text": "old answer"}])),
            json!({"role": "user", "content": "Count\nthem."}),
            called,
            result,
            json!({"role": "bashExecution", "command": "make\x1b"}),
            answer(json!([{"type": "text", "text": "Thr\x1bee.\n"}])),
        ]);
        assert_eq!(out, "Three.\n");
        assert_eq!(err, "> Count\n> them.\n-> bash ls\n<- bash ls: ok, 4 ms\n$ make \n");
        assert_eq!(show(&[]), (String::new(), String::new()));
    }

    #[test]
    fn long_runs_and_texts_are_cut() {
        let mut messages = vec![json!({"role": "user", "content": "Go"})];
        messages.extend((0..30).flat_map(call));
        let long: String = (0..50).map(|n| format!("line {n}\n")).collect();
        messages.push(answer(json!([{"type": "text", "text": long}])));
        let (out, err) = show(&messages);
        assert!(out.starts_with("…\nline 30\n") && out.ends_with("line 49\n"), "{out}");
        assert!(err.starts_with("> Go\n… 42 more messages …\n"), "{err}");
        // The prompt, the note, and the rest without the answer.
        assert_eq!(err.lines().count(), 2 + MESSAGES - 2);
    }
}
