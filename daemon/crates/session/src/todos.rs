//! The session's list of tasks, as its entries have it.

use agentd_protocol::{
    entry::EntryBody,
    message::Message,
    todo::{TODO_ENTRY, TODO_TOOL, TodoPhase, phases_of},
};
use agentd_store::{Entry, EntryKind, Role, SessionTree};
use serde_json::json;

/// The list on the way from the root to the leaf: that of the last result of the tool, or what a client has set after it.
pub(crate) fn todos_on(tree: &SessionTree) -> Vec<TodoPhase> {
    tree.branch().into_iter().rev().find_map(todos_in).unwrap_or_default()
}

/// The entry that keeps a list of a client.
pub(crate) fn todo_entry(phases: &[TodoPhase]) -> EntryBody {
    EntryBody::Custom { custom_type: TODO_ENTRY.to_owned(), data: Some(json!({ "phases": phases })) }
}

fn todos_in(entry: &Entry) -> Option<Vec<TodoPhase>> {
    match entry.kind() {
        // Most results are those of other tools, and need not be read.
        EntryKind::Message(Role::ToolResult) if entry.is_todo_result() => match entry.message()?.get()? {
            Message::ToolResult(result) if result.tool_name == TODO_TOOL && !result.is_error => {
                phases_of(result.details.as_ref()?)
            }
            _ => None,
        },
        EntryKind::Custom => match entry.body()? {
            EntryBody::Custom { custom_type, data } if custom_type == TODO_ENTRY => phases_of(&data?),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::todo::{TodoStatus, TodoTask};
    use agentd_store::{NewEntry, NewSession, Store, StoreOptions};
    use serde_json::Value;

    use super::*;

    fn phases(task: &str) -> Vec<TodoPhase> {
        let task = TodoTask { content: task.into(), status: TodoStatus::Pending, blocker: None };
        vec![TodoPhase { name: "P".into(), tasks: vec![task] }]
    }

    fn result(tool: &str, details: Value, is_error: bool) -> EntryBody {
        let message = json!({"role": "toolResult", "toolCallId": "c", "toolName": tool, "content": [{"type": "text", "text": "\"todo\""}],
            "details": details, "isError": is_error, "timestamp": 0});
        EntryBody::Message { message: serde_json::from_value(message).unwrap() }
    }

    #[test]
    fn the_last_list_of_the_branch_counts() {
        let of = |task: &str| result("todo", json!({"phases": phases(task)}), false);
        let list = |bodies: &[EntryBody]| {
            let store = Store::new(StoreOptions::default());
            let mut tree = store.in_memory(NewSession::new("/w", 0)).unwrap().tree;
            for body in bodies {
                let entry = tree.prepare(NewEntry::from_body(body).unwrap(), 0);
                tree.push(entry);
            }
            todos_on(&tree)
        };
        assert_eq!(list(&[]), []);
        assert_eq!(list(&[of("a"), of("b")]), phases("b"));
        assert_eq!(list(&[of("a"), todo_entry(&phases("c"))]), phases("c"));
        assert_eq!(list(&[todo_entry(&phases("c")), of("a")]), phases("a"));
        assert_eq!(list(&[of("a"), todo_entry(&[])]), []);
        // What is no list changes nothing.
        let others = [
            result("bash", json!({"phases": phases("x")}), false),
            result("todo", json!({"phases": phases("x")}), true),
            result("todo", json!({"todos": []}), false),
            EntryBody::Custom { custom_type: "other".into(), data: Some(json!({"phases": phases("x")})) },
        ];
        assert_eq!(list(&[&[of("a")], &others[..]].concat()), phases("a"));
    }
}
