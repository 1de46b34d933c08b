//! Pure. The session's list of tasks as a plan.

use agentd_protocol::todo::{TodoPhase, TodoStatus};

use crate::updates::{PlanEntry, PlanStatus, Update};

/// The priority of all tasks: the list has none.
const PRIORITY: &str = "medium";

/// The whole list. A plan has no phases, and neither what is blocked nor what was dropped.
pub(crate) fn plan(phases: &[TodoPhase]) -> Update {
    let tasks = phases.iter().flat_map(|phase| &phase.tasks);
    let entries = tasks.map(|task| PlanEntry {
        content: task.content.clone(),
        priority: PRIORITY,
        status: match task.status {
            TodoStatus::Pending | TodoStatus::Blocked => PlanStatus::Pending,
            TodoStatus::InProgress => PlanStatus::InProgress,
            TodoStatus::Completed | TodoStatus::Abandoned => PlanStatus::Completed,
        },
    });
    Update::Plan { entries: entries.collect() }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::todo::TodoTask;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_task_is_an_entry() {
        use TodoStatus::{Abandoned, Blocked, Completed, InProgress, Pending};
        let tasks = [Pending, InProgress, Completed, Abandoned, Blocked].map(|status| TodoTask {
            content: format!("{status:?}"),
            status,
            blocker: None,
        });
        let phases = [
            TodoPhase { name: "A".into(), tasks: tasks[..2].to_vec() },
            TodoPhase { name: "B".into(), tasks: tasks[2..].to_vec() },
        ];
        let entry =
            |content: &str, status: &str| json!({"content": content, "priority": "medium", "status": status});
        let entries = json!([
            entry("Pending", "pending"),
            entry("InProgress", "in_progress"),
            entry("Completed", "completed"),
            entry("Abandoned", "completed"),
            entry("Blocked", "pending"),
        ]);
        assert_eq!(json!(plan(&phases)), json!({"sessionUpdate": "plan", "entries": entries}));
        assert_eq!(json!(plan(&[])), json!({"sessionUpdate": "plan", "entries": []}));
    }
}
