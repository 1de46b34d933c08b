//! The tool `todo`: the model's list of what is to be done in a session.

mod list;

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use agentd_agent::{ExecutionMode, Invocation, Tool, ToolError, ToolFuture};
use agentd_protocol::{
    message::ContentBlock,
    todo::{TODO_TOOL, TodoPhase, TodoStatus},
    tool::{ToolResult, ToolSpec},
};
use serde_json::{Value, json};

use self::list::{Changed, Op, Operation, apply, checked};

/// The tool's description for models; the same in all sessions.
static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
    Arc::new(ToolSpec {
    name: TODO_TOOL.to_owned(),
    description: "Keep the list of tasks of a longer piece of work: one operation a call. init: a new list, in phases (list) or plain \
                  (items). start: work on this task now. done, drop, rm: a task, a phase, or with neither everything. block (with a \
                  reason) and unblock: a task. append: items to a phase. view: the list. A task is named by its exact text. The next \
                  pending task is started by itself when none is in progress."
        .to_owned(),
    parameters: json!({
        "type": "object",
        "properties": {
            "op": {"type": "string", "enum": Op::ALL.map(Op::name), "description": "The operation"},
            "list": {
                "type": "array",
                "description": "For init: the phases of the new list",
                "items": {
                    "type": "object",
                    "properties": {
                        "phase": {"type": "string", "description": "The name of the phase"},
                        "items": {"type": "array", "items": {"type": "string"}, "description": "Its tasks"},
                    },
                    "required": ["phase", "items"],
                },
            },
            "items": {"type": "array", "items": {"type": "string"}, "description": "For append and init: tasks"},
            "phase": {"type": "string", "description": "The phase that is meant"},
            "task": {"type": "string", "description": "The exact text of the task that is meant"},
            "reason": {"type": "string", "description": "For block: what the task waits for"},
        },
    }),
    constrained_sampling: None,
})
});

/// The list of a session. Cheap to clone; all clones are the same list.
#[derive(Debug, Clone, Default)]
pub struct TodoList(Arc<Mutex<TodoState>>);

#[derive(Debug, Default)]
struct TodoState {
    phases: Vec<TodoPhase>,
    /// Whether the tool has changed it since [`TodoList::restore`].
    is_changed: bool,
}

impl TodoList {
    /// The list as it is.
    #[must_use]
    pub fn phases(&self) -> Vec<TodoPhase> {
        self.lock().phases.clone()
    }

    /// Makes it what the session's file says.
    pub fn restore(&self, phases: Vec<TodoPhase>) {
        *self.lock() = TodoState { phases, is_changed: false };
    }

    /// Whether the tool has changed it since it was restored, so that it may differ from the session's file.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.lock().is_changed
    }

    /// A list of a client as it would count: one task is worked on where one can be.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn checked(phases: Vec<TodoPhase>) -> Result<Vec<TodoPhase>, String> {
        checked(phases)
    }

    fn lock(&self) -> MutexGuard<'_, TodoState> {
        // No method panics halfway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tool.
pub struct TodoTool {
    list: TodoList,
    /// Whether the session has a file.
    is_stored: bool,
}

impl TodoTool {
    /// The tool of a session with this list. `is_stored`: the session has a file.
    #[must_use]
    pub fn new(list: TodoList, is_stored: bool) -> Self {
        Self { list, is_stored }
    }

    fn run(&self, arguments: &Value) -> Result<ToolResult, ToolError> {
        let operations = operations(arguments).map_err(errors)?;
        let Changed { phases, completed, op } = {
            let mut state = self.list.lock();
            let changed = apply(&state.phases, operations).map_err(errors)?;
            state.is_changed |= changed.phases != state.phases;
            state.phases.clone_from(&changed.phases);
            changed
        };
        let storage = if self.is_stored { "session" } else { "memory" };
        let mut details = json!({"phases": phases, "storage": storage, "op": op.name()});
        if !completed.is_empty() {
            details["completedTasks"] = json!(completed);
        }
        let text = shown(&phases);
        Ok(ToolResult {
            content: vec![ContentBlock::text(text)],
            details: Some(details),
            ..ToolResult::default()
        })
    }
}

impl Tool for TodoTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &SPEC
    }

    fn snippet(&self) -> Option<&str> {
        Some("Keep a list of what is to be done")
    }

    fn guidelines(&self) -> Vec<&str> {
        vec!["For work of several steps, begin with a todo list and mark each task done when it is."]
    }

    /// Operations of one answer follow each other.
    fn execution(&self) -> ExecutionMode {
        ExecutionMode::Sequential
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(async move { self.run(&invocation.arguments) })
    }
}

/// The operations of a call: one, or an array `ops` of them, which older versions of the tool took.
fn operations(arguments: &Value) -> Result<Vec<Operation>, String> {
    let read = |value: &Value| {
        serde_json::from_value::<Operation>(value.clone())
            .map_err(|error| format!("An operation cannot be read: {error}"))
    };
    match arguments.get("ops") {
        None | Some(Value::Null) => Ok(vec![read(arguments)?]),
        Some(Value::Array(operations)) if !operations.is_empty() => operations.iter().map(read).collect(),
        Some(_) => Err("\"ops\" must be a list of operations".to_owned()),
    }
}

fn errors(problem: String) -> ToolError {
    ToolError(format!("Errors: {problem}"))
}

/// The list for the model.
fn shown(phases: &[TodoPhase]) -> String {
    if phases.is_empty() {
        return "Todo list cleared.".to_owned();
    }
    let mut text = String::new();
    for phase in phases {
        let is_over = |status: TodoStatus| matches!(status, TodoStatus::Completed | TodoStatus::Abandoned);
        let over = phase.tasks.iter().filter(|task| is_over(task.status)).count();
        text.push_str(&format!("{} ({over}/{})\n", phase.name, phase.tasks.len()));
        for task in &phase.tasks {
            let (mark, note) = match (task.status, &task.blocker) {
                (TodoStatus::Pending, _) => ("[ ]", String::new()),
                (TodoStatus::InProgress, _) => ("[>]", String::new()),
                (TodoStatus::Completed, _) => ("[x]", String::new()),
                (TodoStatus::Abandoned, _) => ("[-]", String::new()),
                (TodoStatus::Blocked, None) => ("[!]", " (blocked)".to_owned()),
                (TodoStatus::Blocked, Some(blocker)) => ("[!]", format!(" (blocked: {blocker})")),
            };
            text.push_str(&format!("{mark} {}{note}\n", task.content));
        }
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_changes_the_list_and_tells_it() {
        let list = TodoList::default();
        let tool = TodoTool::new(list.clone(), true);
        let made = tool.run(&json!({"op": "init", "items": ["a", "b"]})).unwrap();
        assert_eq!(made.content, [ContentBlock::text("Tasks (0/2)\n[>] a\n[ ] b")]);
        let details = made.details.unwrap();
        assert_eq!((&details["storage"], &details["op"]), (&json!("session"), &json!("init")));
        assert_eq!(details["phases"], json!(list.phases()));
        assert!(details.get("completedTasks").is_none() && list.is_changed());
        let done = tool
            .run(&json!({"ops": [{"op": "done", "task": "a"}, {"op": "block", "task": "b", "reason": "r"}]}));
        let done = done.unwrap();
        assert_eq!(done.content, [ContentBlock::text("Tasks (1/2)\n[x] a\n[!] b (blocked: r)")]);
        assert_eq!(done.details.unwrap()["completedTasks"], json!([{"content": "a", "status": "completed"}]));
        let before = list.phases();
        let failed =
            tool.run(&json!({"ops": [{"op": "rm", "task": "a"}, {"op": "rm", "task": "x"}]})).unwrap_err();
        assert_eq!(failed.0, "Errors: Task \"x\" not found");
        assert_eq!(list.phases(), before);
        let cleared = tool.run(&json!({"op": "rm"})).unwrap();
        assert_eq!(cleared.content, [ContentBlock::text("Todo list cleared.")]);
        list.restore(before.clone());
        assert_eq!((list.phases(), list.is_changed()), (before, false));
        assert!(tool.run(&json!({"op": "view"})).is_ok() && !list.is_changed());
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let tool = TodoTool::new(TodoList::default(), false);
        for (arguments, says) in [
            (json!({"ops": []}), "\"ops\" must be a list"),
            (json!({"ops": "x"}), "\"ops\" must be a list"),
            (json!({"ops": [3]}), "cannot be read"),
            (json!({"ops": [{"op": "explode"}]}), "cannot be read"),
        ] {
            let error = tool.run(&arguments).unwrap_err();
            assert!(error.0.starts_with("Errors: ") && error.0.contains(says), "{error}");
        }
        let made = tool.run(&json!({"items": ["a"]})).unwrap();
        assert_eq!(made.details.unwrap()["storage"], "memory");
    }
}
