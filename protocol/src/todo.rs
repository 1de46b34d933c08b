//! The list of tasks that the tool `todo` keeps for a session.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name of the tool.
pub const TODO_TOOL: &str = "todo";

/// The `customType` of the entry that keeps a list which a client has set.
pub const TODO_ENTRY: &str = "agentd.todos";

/// A part of the list, with its tasks in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TodoPhase {
    /// The name.
    pub name: String,
    /// The tasks. A task is named by its whole text, which no other task of the list has.
    pub tasks: Vec<TodoTask>,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TodoTask {
    /// What is to be done.
    pub content: String,
    /// Its state.
    pub status: TodoStatus,
    /// What a blocked task waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocker: Option<String>,
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Nobody has begun.
    Pending,
    /// It is worked on. One task of a list at most is.
    InProgress,
    /// It is done.
    Completed,
    /// It is not done any more.
    Abandoned,
    /// It waits for something else.
    Blocked,
}

impl TodoStatus {
    /// Whether the agent can go on with it.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::InProgress)
    }
}

/// The fields of `set_todos`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetTodosParams {
    /// The whole list; none clears it.
    pub phases: Vec<TodoPhase>,
}

/// The answer to `set_todos`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Todos {
    /// The list as it counts from now on: where no task is worked on, the first pending one is.
    pub phases: Vec<TodoPhase>,
    /// The same under the name that `get_state` and omp's clients have for it.
    #[serde(rename = "todoPhases")]
    pub todo_phases: Vec<TodoPhase>,
}

/// The agent has stopped, and tasks of its list are open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TodoReminder {
    /// The tasks that are pending or worked on, in their order.
    pub todos: Vec<TodoTask>,
}

/// The list in the `details` of a result of the tool, or in the data of an entry: `{"phases": […]}`. `None` for anything else.
#[must_use]
pub fn phases_of(details: &Value) -> Option<Vec<TodoPhase>> {
    Vec::<TodoPhase>::deserialize(details.get("phases")?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_read_from_details_and_from_nothing_else() {
        let task = json!({"content": "a", "status": "in_progress"});
        let details = json!({"phases": [{"name": "P", "tasks": [task]}], "storage": "session", "op": "init"});
        let task = TodoTask { content: "a".into(), status: TodoStatus::InProgress, blocker: None };
        assert_eq!(phases_of(&details), Some(vec![TodoPhase { name: "P".into(), tasks: vec![task] }]));
        for other in [json!(null), json!({}), json!({"phases": [1]}), json!({"phases": {}}), json!([])] {
            assert_eq!(phases_of(&other), None);
        }
    }
}
