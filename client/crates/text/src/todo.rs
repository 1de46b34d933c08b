//! The list of tasks in a result of the tool `todo`, as a check list.

use agentd_protocol::{
    todo::{TODO_TOOL, TodoPhase, TodoStatus, phases_of},
    tool::ToolResult,
};
use serde_json::{Map, Value};

use crate::line::one_line;

/// A row of a check list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TodoLine {
    /// The row.
    pub text: String,
    /// The state of its task; `None` for the name of a phase.
    pub status: Option<TodoStatus>,
}

/// The check list in a result; `None` for results of other tools. A list of one phase goes without its name.
#[must_use]
pub fn todo_lines(tool: &str, result: &ToolResult) -> Option<Vec<TodoLine>> {
    let phases = result.details.as_ref().filter(|_| tool == TODO_TOOL).and_then(phases_of)?;
    let is_single = phases.len() == 1;
    let lines = phases.iter().flat_map(|phase| {
        let name = (!is_single).then(|| TodoLine { text: one_line(&phase.name), status: None });
        name.into_iter().chain(tasks(phase))
    });
    Some(lines.collect())
}

fn tasks(phase: &TodoPhase) -> impl Iterator<Item = TodoLine> + '_ {
    phase.tasks.iter().map(|task| {
        let mark = match task.status {
            TodoStatus::Pending => "[ ]",
            TodoStatus::InProgress => "[>]",
            TodoStatus::Completed => "[x]",
            TodoStatus::Abandoned => "[-]",
            TodoStatus::Blocked => "[!]",
        };
        let note = task.blocker.as_ref().map(|blocker| format!(" (waits for: {})", one_line(blocker)));
        let text = format!("{mark} {}{}", one_line(&task.content), note.unwrap_or_default());
        TodoLine { text, status: Some(task.status) }
    })
}

/// What a call of the tool does, for the line about it.
pub(crate) fn todo_argument(args: &Map<String, Value>) -> String {
    let text = |name: &str| args.get(name).and_then(Value::as_str);
    let words = [text("op"), text("task").or_else(|| text("phase"))];
    one_line(&words.into_iter().flatten().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_is_a_check_list() {
        let task = |content: &str, status: &str| json!({"content": content, "status": status});
        let result =
            |phases: Value| ToolResult { details: Some(json!({"phases": phases})), ..ToolResult::default() };
        let texts = |tool: &str, phases: Value| {
            todo_lines(tool, &result(phases))
                .map(|lines| lines.into_iter().map(|line| line.text).collect::<Vec<_>>())
        };
        let mut blocked = task("d\n\u{1b}[31m", "blocked");
        blocked["blocker"] = json!("e");
        let one = json!([{"name": "P", "tasks": [task("a", "completed"), task("b", "in_progress"), task("c", "pending"), blocked]}]);
        let shown = texts("todo", one.clone()).unwrap();
        assert_eq!(shown[..3], ["[x] a", "[>] b", "[ ] c"]);
        assert!(shown[3].starts_with("[!] d") && shown[3].ends_with("(waits for: e)"), "{shown:?}");
        assert!(!shown[3].contains(['\n', '\u{1b}']), "{shown:?}");
        let two = json!([{"name": "P", "tasks": [task("a", "abandoned")]}, {"name": "Q", "tasks": [task("b", "pending")]}]);
        assert_eq!(texts("todo", two).unwrap(), ["P", "[-] a", "Q", "[ ] b"]);
        assert_eq!((texts("bash", one), texts("todo", json!("x"))), (None, None));
        let args = json!({"op": "done", "task": "a b"});
        assert_eq!(todo_argument(args.as_object().unwrap()), "done a b");
    }
}
