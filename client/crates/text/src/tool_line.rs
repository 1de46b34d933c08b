//! Tool calls in one line each.

use agentd_protocol::{
    eval::EVAL_TOOL,
    event::{ToolExecutionEnd, ToolExecutionStart},
    message::ToolResultMessage,
    patch::{PATCH_TOOL, diff_names},
    subagent::TASK_TOOL,
    todo::TODO_TOOL,
    tool::ToolResult,
};
use serde_json::{Map, Value};

use agentd_protocol::terminal_text::steers;

use crate::todo::todo_argument;

/// The longest argument that is shown, in characters.
const MAX_CHARS: usize = 100;

/// The subject of a call: its tool and its most telling argument.
pub fn subject(call: &ToolExecutionStart) -> String {
    let telling = match call.tool_name.as_str() {
        TODO_TOOL => todo_argument,
        TASK_TOOL => task_argument,
        "lsp" => language_server_argument,
        PATCH_TOOL => patch_argument,
        EVAL_TOOL => eval_argument,
        _ => telling_argument,
    };
    let argument = call.args.get().map(telling).unwrap_or_default();
    if argument.is_empty() {
        one_line(&call.tool_name)
    } else {
        format!("{} {argument}", one_line(&call.tool_name))
    }
}

/// The outcome of a call: `ok, +2 -1, 12 ms`, or `failed, 12 ms: why`.
pub fn outcome(call: &ToolExecutionEnd) -> String {
    let mut parts = vec![if call.is_error { "failed".to_owned() } else { "ok".to_owned() }];
    parts.extend(diff_stat(call));
    parts.extend(call.duration_ms.map(duration));
    let summary = parts.join(", ");
    match call.is_error.then(|| reason(call)).flatten() {
        Some(reason) => format!("{summary}: {reason}"),
        None => summary,
    }
}

/// The end of a call as it was told when it came, from the message that holds its result.
#[must_use]
pub fn execution_end(message: &ToolResultMessage) -> ToolExecutionEnd {
    ToolExecutionEnd {
        tool_call_id: message.tool_call_id.clone(),
        tool_name: message.tool_name.clone(),
        result: ToolResult {
            content: message.content.clone(),
            details: message.details.clone(),
            ..ToolResult::text("")
        },
        is_error: message.is_error,
        duration_ms: message.duration_ms,
        parent_tool_call_id: None,
    }
}

fn telling_argument(args: &Map<String, Value>) -> String {
    let text = ["command", "path", "pattern", "url", "query"]
        .iter()
        .find_map(|name| args.get(*name)?.as_str())
        .or_else(|| args.values().find_map(Value::as_str));
    match text {
        Some(text) => one_line(text),
        None if args.is_empty() => String::new(),
        None => one_line(&Value::Object(args.clone()).to_string()),
    }
}

/// What a language server is asked: the action, the symbol, and the file.
fn language_server_argument(args: &Map<String, Value>) -> String {
    let text = |name: &str| args.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let line = args.get("line").map(|line| format!(":{line}")).unwrap_or_default();
    let file = text("file").map(|file| format!("{file}{line}"));
    let parts = [text("action"), text("symbol"), text("query"), text("new_name"), file.as_deref()];
    one_line(&parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
}

/// The files of a diff.
fn patch_argument(args: &Map<String, Value>) -> String {
    let names = args.get("diff").and_then(Value::as_str).map(diff_names).unwrap_or_default();
    if names.is_empty() { telling_argument(args) } else { one_line(&names.join(", ")) }
}

/// The cell of a call: its title, or its code.
fn eval_argument(args: &Map<String, Value>) -> String {
    let text = |name: &str| args.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let language = text("language").unwrap_or_default();
    one_line(&format!("{language} {}", text("title").or_else(|| text("code")).unwrap_or_default()))
}

/// The subagents of a call: their names, or what they are to do.
fn task_argument(args: &Map<String, Value>) -> String {
    let tasks = args.get("tasks").and_then(Value::as_array).into_iter().flatten();
    let named = |task: &Value| task.get("name").or_else(|| task.get("task"))?.as_str().map(str::to_owned);
    let names: Vec<String> = tasks.filter_map(named).collect();
    if names.is_empty() { telling_argument(args) } else { one_line(&names.join(", ")) }
}

/// The added and removed lines, where the result has a diff.
fn diff_stat(call: &ToolExecutionEnd) -> Option<String> {
    let diff = call.result.details.as_ref()?.get("diff")?.as_str()?;
    let count = |sign| diff.lines().filter(|line| line.starts_with(sign)).count();
    Some(format!("+{} -{}", count('+'), count('-')))
}

/// The last line of the result: tools give the reason of a failure there. Behind what is wrong with the arguments of a call they stand themselves.
fn reason(call: &ToolExecutionEnd) -> Option<String> {
    let texts = call.result.content.iter().filter_map(|block| block.as_text());
    let lines = texts.flat_map(str::lines).map(str::trim);
    let told = lines.take_while(|line| *line != "Received arguments:");
    told.filter(|line| !line.is_empty()).last().map(|line| one_line(line.trim_start_matches("- ")))
}

fn duration(ms: u64) -> String {
    if ms < 1000 { format!("{ms} ms") } else { format!("{:.1} s", ms as f64 / 1000.0) }
}

/// The text on one line: runs of white space become one space, characters that steer a terminal are removed, the end is
/// cut.
fn one_line(text: &str) -> String {
    let mut line = String::new();
    let mut chars = 0;
    for word in text.split_whitespace() {
        for c in
            line_separator(&line).chain(word.chars()).filter(|c| !matches!(c, '\n' | '\t') && !steers(*c))
        {
            if chars == MAX_CHARS {
                line.push('…');
                return line;
            }
            line.push(c);
            chars += 1;
        }
    }
    line
}

fn line_separator(line: &str) -> impl Iterator<Item = char> + use<> {
    (!line.is_empty()).then_some(' ').into_iter()
}

#[cfg(test)]
mod tests {
    use agentd_protocol::{Json, tool::ToolResult};
    use serde_json::json;

    use super::*;

    fn start(name: &str, args: Value) -> String {
        let args = Json::new(args.as_object().unwrap().clone()).unwrap();
        subject(&ToolExecutionStart {
            tool_call_id: "1".into(),
            tool_name: name.into(),
            args,
            parent_tool_call_id: None,
        })
    }

    fn end(is_error: bool, ms: Option<u64>, text: &str, details: Option<Value>) -> String {
        let result = ToolResult { details, ..ToolResult::text(text) };
        let (tool_call_id, tool_name) = ("1".into(), "t".into());
        outcome(&ToolExecutionEnd {
            tool_call_id,
            tool_name,
            result,
            is_error,
            duration_ms: ms,
            parent_tool_call_id: None,
        })
    }

    #[test]
    fn subjects() {
        assert_eq!(start("bash", json!({"timeout": 3, "command": "ls\n -la \u{1b}[2J"})), "bash ls -la [2J");
        assert_eq!(start("edit", json!({"edits": [], "path": "src/a.rs"})), "edit src/a.rs");
        assert_eq!(start("other", json!({"n": 1, "word": "w"})), "other w");
        assert_eq!(start("other", json!({"n": 1})), "other {\"n\":1}");
        assert_eq!(start("ls", json!({})), "ls");
        let rename = json!({"action": "rename", "file": "a.rs", "line": 3, "symbol": "x", "new_name": "y"});
        assert_eq!(start("lsp", rename), "lsp rename x y a.rs:3");
        let diff = "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-x\n+y\n--- /dev/null\n+++ b/new\n";
        assert_eq!(start("patch", json!({"diff": diff})), "patch src/a.rs, new");
        assert_eq!(start("patch", json!({"diff": "no diff"})), "patch no diff");
        assert_eq!(start("bash", json!({"command": "é".repeat(200)})), format!("bash {}…", "é".repeat(100)));
    }

    #[test]
    fn outcomes() {
        assert_eq!(end(false, Some(12), "x", None), "ok, 12 ms");
        assert_eq!(
            end(true, Some(1500), "hi\n\n\nCommand exited with code 3", None),
            "failed, 1.5 s: Command exited with code 3"
        );
        assert_eq!(end(true, None, "", None), "failed");
        let refused = "Validation failed for tool \"task\":\n  - tasks: has fewer than 1 items\n\nReceived arguments:\n{\n  \"tasks\": []\n}";
        assert_eq!(end(true, Some(1), refused, None), "failed, 1 ms: tasks: has fewer than 1 items");
        let diff = json!({"diff": " 1 a\n-2 b\n+2 c\n+3 d\n   ..."});
        assert_eq!(end(false, Some(3), "x", Some(diff)), "ok, +2 -1, 3 ms");
    }
}
