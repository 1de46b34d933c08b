//! The session's list of tasks: what clients set, what its branch says, and what is left of it when the agent stops.

use agentd_protocol::{
    error::{ErrorCode, Failure},
    event::{EntryAppended, Event},
    todo::{SetTodosParams, TODO_TOOL, TodoReminder, TodoTask, Todos},
};
use agentd_tools::TodoList;

use super::session_actor::Actor;
use crate::{
    reply::Reply,
    todos::{todo_entry, todos_on},
};

impl Actor {
    /// On record first.
    pub(super) async fn set_todos(&mut self, params: SetTodosParams, reply: Reply) {
        let outcome = self.use_todos(params).await;
        reply.result(&self.feed, outcome);
    }

    async fn use_todos(&mut self, params: SetTodosParams) -> Result<Todos, Failure> {
        let phases = TodoList::checked(params.phases)
            .map_err(|problem| Failure::new(ErrorCode::InvalidField, format!("phases: {problem}.")))?;
        self.journal.append(&todo_entry(&phases)).await?;
        self.context.todos.restore(phases.clone());
        if let Some(Ok(entry)) = self.journal.tree().leaf().map(agentd_store::Entry::json) {
            self.publish(&EntryAppended { entry }.into());
        }
        Ok(Todos { todo_phases: phases.clone(), phases })
    }

    /// Makes the list what the branch says.
    pub(super) fn restore_todos(&self) {
        self.context.todos.restore(todos_on(self.journal.tree()));
    }

    /// A run has ended. The result of a call that was stopped need not be that of the tool.
    pub(super) fn settle_todos(&self) {
        if self.context.todos.is_changed() {
            self.restore_todos();
        }
    }

    /// Tells of the tasks that are open, where the model has the tool.
    pub(super) fn remind_of_todos(&self) {
        let open = |task: &TodoTask| task.status.is_open();
        let phases = self.context.todos.phases();
        let todos: Vec<TodoTask> = phases.into_iter().flat_map(|phase| phase.tasks).filter(open).collect();
        let is_active = || self.tools.active(&self.context.tools).iter().any(|name| name == TODO_TOOL);
        if !todos.is_empty() && is_active() {
            self.publish_to_introduced(&Event::from(TodoReminder { todos }));
        }
    }
}
