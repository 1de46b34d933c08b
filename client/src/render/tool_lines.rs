//! The lines about tool calls, for stderr.

use std::collections::HashMap;

use agentd_client_text::{TodoLine, outcome, todo_lines};
use agentd_protocol::{
    event::{ToolExecutionEnd, ToolExecutionStart},
    todo::TodoStatus,
};

use super::{columns, cut, one_line, paint_diff, style::StreamStyle, subject};
use crate::exit::stderr_width;

const GREEN: &str = "32";
const RED: &str = "31";

/// How many lines of a failed call's output, and of a diff, are shown on a terminal.
const MOST_LINES: usize = 8;

/// How many lines of a check list are shown on a terminal.
const MOST_TODOS: usize = 30;

/// The blanks before them.
const INDENT: &str = "    ";

/// The lines about tool calls: on a terminal one for each, when the call has ended; elsewhere one at its start and one at its end.
#[derive(Debug, Default)]
pub(crate) struct ToolLines {
    style: StreamStyle,
    /// The subjects of the running calls, by id.
    calls: HashMap<String, String>,
}

impl ToolLines {
    pub(crate) fn new(style: StreamStyle) -> Self {
        Self { style, calls: HashMap::new() }
    }

    /// The line about a call that has begun; none where the status line tells.
    pub(crate) fn started(&mut self, call: &ToolExecutionStart) -> Option<String> {
        let subject = subject(call);
        let line = (!self.style.live).then(|| format!("{}\n", self.style.dim(&format!("-> {subject}"))));
        self.calls.insert(call.tool_call_id.clone(), subject);
        line
    }

    /// The lines about a call that has ended.
    pub(crate) fn ended(&mut self, call: &ToolExecutionEnd) -> String {
        let subject = self.calls.remove(&call.tool_call_id).unwrap_or_else(|| one_line(&call.tool_name));
        let (colour, mark) = if call.is_error { (RED, "✗") } else { (GREEN, "✓") };
        if !self.style.live {
            let begun = self.style.dim(&format!("<- {subject}:"));
            let ended = self.style.coloured(colour, &outcome(call));
            return format!("{begun} {ended}\n");
        }
        let mark = self.style.coloured(colour, mark);
        // What came of it is seen whole; a long command gives way.
        let (outcome, width) = (outcome(call), stderr_width());
        let room = width.saturating_sub(columns(&outcome) + "✓ : ".chars().count()).max(width / 3);
        let about = self.style.dim(&format!("{}: {outcome}", cut(&subject, room)));
        let mut text = format!("{mark} {about}\n");
        let todos = todo_lines(&call.tool_name, &call.result).filter(|_| !call.is_error);
        let lines = match todos {
            Some(todos) => self.todos(&todos),
            None if call.is_error => self.last_lines(call),
            None => self.diff(call),
        };
        for line in lines {
            text.push_str(&format!("{INDENT}{line}\n"));
        }
        text
    }

    /// The end of what a failed call wrote. Its last line stands in the line about the call.
    fn last_lines(&self, call: &ToolExecutionEnd) -> Vec<String> {
        let texts = call.result.content.iter().filter_map(|block| block.as_text());
        let all: Vec<&str> = texts.flat_map(str::lines).filter(|line| !line.trim().is_empty()).collect();
        let shown = &all[..all.len().saturating_sub(1)];
        let shown = &shown[shown.len().saturating_sub(MOST_LINES)..];
        shown.iter().map(|line| self.style.dim(&below(line))).collect()
    }

    /// A check list: what is over stands back.
    fn todos(&self, todos: &[TodoLine]) -> Vec<String> {
        let shown = todos.iter().take(MOST_TODOS).map(|todo| match todo.status {
            Some(TodoStatus::InProgress) => self.style.coloured(GREEN, &below(&todo.text)),
            Some(TodoStatus::Completed | TodoStatus::Abandoned) => self.style.dim(&below(&todo.text)),
            _ => below(&todo.text),
        });
        let left = todos.len().saturating_sub(MOST_TODOS);
        let more = (left > 0).then(|| self.style.dim(&format!("… {left} more lines …")));
        shown.chain(more).collect()
    }

    /// The beginning of an edit's changed lines.
    fn diff(&self, call: &ToolExecutionEnd) -> Vec<String> {
        let diff = call.result.details.as_ref().and_then(|details| details.get("diff")?.as_str());
        let changed = |line: &&str| line.starts_with(['+', '-']);
        let all: Vec<&str> = diff.unwrap_or_default().lines().filter(changed).collect();
        let shown = all.iter().take(MOST_LINES).map(|line| paint_diff(&below(line), self.style.colour));
        let left = all.len().saturating_sub(MOST_LINES);
        let more = (left > 0).then(|| self.style.dim(&format!("… {left} more lines …")));
        shown.chain(more).collect()
    }
}

/// A line below that of the call, cut to the width.
fn below(line: &str) -> String {
    cut(&one_line(line), stderr_width().saturating_sub(INDENT.len() + 1))
}

#[cfg(test)]
mod tests {
    use agentd_protocol::{Json, tool::ToolResult};
    use serde_json::{Value, json};

    use super::*;

    fn shown(live: bool, tool: &str, text: &str, details: Option<Value>, is_error: bool) -> String {
        let mut lines = ToolLines::new(StreamStyle { live, ..StreamStyle::default() });
        let args = Json::new(json!({"command": "make"}).as_object().unwrap().clone()).unwrap();
        let (id, name) = (|| "1".to_owned(), || tool.to_owned());
        let started = lines.started(&ToolExecutionStart {
            tool_call_id: id(),
            tool_name: name(),
            args,
            parent_tool_call_id: None,
        });
        let result = ToolResult { details, ..ToolResult::text(text) };
        let ended = ToolExecutionEnd {
            tool_call_id: id(),
            tool_name: name(),
            result,
            is_error,
            duration_ms: Some(5),
            parent_tool_call_id: None,
        };
        started.unwrap_or_default() + &lines.ended(&ended)
    }

    #[test]
    fn a_pipe_has_both_ends_of_a_call() {
        assert_eq!(shown(false, "bash", "x", None, false), "-> bash make\n<- bash make: ok, 5 ms\n");
    }

    #[test]
    fn a_terminal_has_one_line_and_the_end_of_a_failure() {
        assert_eq!(shown(true, "bash", "x", None, false), "✓ bash make: ok, 5 ms\n");
        let output: String = (0..20).map(|line| format!("line {line}\u{1b}[2J\n")).collect();
        let failed = shown(true, "bash", &format!("{output}\nCommand exited with code 3"), None, true);
        let lines: Vec<&str> = failed.lines().collect();
        assert_eq!(lines[0], "✗ bash make: failed, 5 ms: Command exited with code 3");
        assert_eq!((lines.len(), lines[1], lines[8]), (9, "    line 12 [2J", "    line 19 [2J"));
    }

    #[test]
    fn a_terminal_has_the_changed_lines_of_an_edit() {
        let changes: String = (0..10).map(|line| format!("+{line} x\n")).collect();
        let text =
            shown(true, "edit", "ok", Some(json!({"diff": format!(" 1 same\n-2 old\n{changes}")})), false);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            (lines[0], lines[1], lines[2]),
            ("✓ edit make: ok, +10 -1, 5 ms", "    -2 old", "    +0 x")
        );
        assert_eq!((lines.len(), lines[9]), (10, "    … 3 more lines …"));
    }
}
