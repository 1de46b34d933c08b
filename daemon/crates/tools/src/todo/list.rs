//! Pure. The operations on a list of tasks.

use std::collections::HashSet;

use agentd_protocol::todo::{TodoPhase, TodoStatus, TodoTask};
use serde::Deserialize;

/// Tasks of a list.
const MAX_TASKS: usize = 500;

/// The longest text of a task, a phase or a reason, in bytes.
const MAX_TEXT: usize = 2000;

/// The phase of tasks that name none.
const DEFAULT_PHASE: &str = "Tasks";

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Op {
    Init,
    Start,
    Done,
    Drop,
    Rm,
    Block,
    Unblock,
    Append,
    View,
}

impl Op {
    pub(super) const ALL: [Self; 9] = [
        Self::Init,
        Self::Start,
        Self::Done,
        Self::Drop,
        Self::Rm,
        Self::Block,
        Self::Unblock,
        Self::Append,
        Self::View,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Start => "start",
            Self::Done => "done",
            Self::Drop => "drop",
            Self::Rm => "rm",
            Self::Block => "block",
            Self::Unblock => "unblock",
            Self::Append => "append",
            Self::View => "view",
        }
    }
}

/// An operation, as a model writes it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Operation {
    pub(super) op: Option<Op>,
    pub(super) list: Option<Vec<ListedPhase>>,
    pub(super) items: Option<Vec<String>>,
    pub(super) phase: Option<String>,
    pub(super) task: Option<String>,
    pub(super) reason: Option<String>,
}

/// A phase of a new list.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ListedPhase {
    pub(super) phase: String,
    pub(super) items: Vec<String>,
}

/// What operations have made of a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) phases: Vec<TodoPhase>,
    /// The tasks that are done by it.
    pub(super) completed: Vec<TodoTask>,
    /// The last operation.
    pub(super) op: Op,
}

/// Applies operations one after the other: all of them, or none.
///
/// # Errors
/// What is wrong with the first that cannot be applied.
pub(super) fn apply(phases: &[TodoPhase], operations: Vec<Operation>) -> Result<Changed, String> {
    let mut phases = phases.to_vec();
    let (mut completed, mut last) = (Vec::new(), Op::View);
    for operation in operations {
        last = kind_of(&operation, phases.is_empty())?;
        change(&mut phases, last, operation, &mut completed)?;
        if last != Op::View {
            check(&phases)?;
            promote(&mut phases);
        }
    }
    Ok(Changed { phases, completed, op: last })
}

/// A list that a client gives.
///
/// # Errors
/// What is wrong with it.
pub(super) fn checked(mut phases: Vec<TodoPhase>) -> Result<Vec<TodoPhase>, String> {
    phases.retain(|phase| !phase.tasks.is_empty());
    let mut names = HashSet::new();
    for phase in &phases {
        if !names.insert(phase.name.as_str()) {
            return Err(format!("Phase \"{}\" already exists", phase.name));
        }
    }
    check(&phases)?;
    promote(&mut phases);
    Ok(phases)
}

/// The kind of an operation that does not name it follows from its fields.
fn kind_of(operation: &Operation, is_empty: bool) -> Result<Op, String> {
    match operation {
        Operation { op: Some(op), .. } => Ok(*op),
        Operation { list: Some(_), .. } => Ok(Op::Init),
        Operation { items: Some(_), phase: Some(_), .. } => Ok(Op::Append),
        Operation { items: Some(_), .. } if is_empty => Ok(Op::Init),
        _ => {
            let names = Op::ALL.map(Op::name).join(", ");
            Err(format!("Missing op: one of {names}"))
        }
    }
}

fn change(
    phases: &mut Vec<TodoPhase>,
    op: Op,
    operation: Operation,
    completed: &mut Vec<TodoTask>,
) -> Result<(), String> {
    let Operation { list, items, phase, task, reason, .. } = operation;
    let missing = |what: &str| format!("Missing {what} for {} operation", op.name());
    match op {
        Op::View => {}
        Op::Init => {
            let list = match (list, items) {
                (Some(list), _) => list,
                (None, Some(items)) => {
                    let phase = phase.unwrap_or_else(|| DEFAULT_PHASE.to_owned());
                    vec![ListedPhase { phase, items }]
                }
                (None, None) => return Err(missing("list")),
            };
            phases.clear();
            for ListedPhase { phase, items } in list {
                append(phases, phase, items)?;
            }
        }
        Op::Append => {
            let items = items.filter(|items| !items.is_empty()).ok_or_else(|| missing("items"))?;
            let phase = phase
                .or_else(|| phases.last().map(|phase| phase.name.clone()))
                .unwrap_or_else(|| DEFAULT_PHASE.to_owned());
            append(phases, phase, items)?;
        }
        Op::Start => {
            let task = task.ok_or_else(|| missing("task"))?;
            found(phases, &task)?;
            for other in tasks_mut(phases) {
                if other.content == task {
                    (other.status, other.blocker) = (TodoStatus::InProgress, None);
                } else if other.status == TodoStatus::InProgress {
                    other.status = TodoStatus::Pending;
                }
            }
        }
        Op::Block => {
            let task = found(phases, &task.ok_or_else(|| missing("task"))?)?;
            let reason = reason.filter(|reason| !reason.trim().is_empty());
            (task.status, task.blocker) = (TodoStatus::Blocked, reason);
        }
        Op::Unblock => {
            let task = found(phases, &task.ok_or_else(|| missing("task"))?)?;
            if task.status != TodoStatus::Blocked {
                return Err(format!("Task \"{}\" is not blocked", task.content));
            }
            (task.status, task.blocker) = (TodoStatus::Pending, None);
        }
        Op::Rm => {
            check_named(phases, task.as_deref(), phase.as_deref())?;
            for kept in phases.iter_mut() {
                let is_named = phase.as_ref().is_none_or(|phase| *phase == kept.name);
                kept.tasks
                    .retain(|other| !is_named || task.as_ref().is_some_and(|task| *task != other.content));
            }
            phases.retain(|phase| !phase.tasks.is_empty());
        }
        Op::Done | Op::Drop => {
            check_named(phases, task.as_deref(), phase.as_deref())?;
            let is_single = task.is_some();
            let in_phase =
                phases.iter_mut().filter(|it| phase.as_ref().is_none_or(|phase| *phase == it.name));
            for ended in in_phase.flat_map(|phase| &mut phase.tasks) {
                if task.as_ref().is_some_and(|task| *task != ended.content) {
                    continue;
                }
                let is_over = matches!(ended.status, TodoStatus::Completed | TodoStatus::Abandoned);
                if op == Op::Drop && (is_single || !is_over) {
                    (ended.status, ended.blocker) = (TodoStatus::Abandoned, None);
                } else if op == Op::Done && (is_single || !is_over) {
                    let was_completed = ended.status == TodoStatus::Completed;
                    (ended.status, ended.blocker) = (TodoStatus::Completed, None);
                    completed.extend((!was_completed).then(|| ended.clone()));
                }
            }
        }
    }
    Ok(())
}

/// Adds tasks to a phase, which is made where it is not there.
fn append(phases: &mut Vec<TodoPhase>, name: String, items: Vec<String>) -> Result<(), String> {
    for item in &items {
        let is_there = phases.iter().flat_map(|phase| &phase.tasks).any(|task| task.content == *item);
        if is_there {
            return Err(format!("Task \"{item}\" already exists"));
        }
        // The number bounds the work, too.
        let task = TodoTask { content: item.clone(), status: TodoStatus::Pending, blocker: None };
        match phases.iter_mut().find(|phase| phase.name == name) {
            Some(phase) => phase.tasks.push(task),
            None => phases.push(TodoPhase { name: name.clone(), tasks: vec![task] }),
        }
        if phases.iter().map(|phase| phase.tasks.len()).sum::<usize>() > MAX_TASKS {
            return Err(too_many());
        }
    }
    Ok(())
}

fn check_named(phases: &mut [TodoPhase], task: Option<&str>, phase: Option<&str>) -> Result<(), String> {
    if let Some(phase) = phase
        && !phases.iter().any(|other| other.name == phase)
    {
        return Err(format!("Phase \"{phase}\" not found"));
    }
    let Some(task) = task else { return Ok(()) };
    let mut of_phase = phases.iter().filter(|other| phase.is_none_or(|phase| other.name == phase));
    let is_there = of_phase.any(|phase| phase.tasks.iter().any(|other| other.content == task));
    if is_there { Ok(()) } else { Err(format!("Task \"{task}\" not found")) }
}

fn found<'a>(phases: &'a mut [TodoPhase], task: &str) -> Result<&'a mut TodoTask, String> {
    let mut tasks = tasks_mut(phases);
    tasks.find(|other| other.content == task).ok_or_else(|| format!("Task \"{task}\" not found"))
}

fn tasks_mut(phases: &mut [TodoPhase]) -> impl Iterator<Item = &mut TodoTask> {
    phases.iter_mut().flat_map(|phase| &mut phase.tasks)
}

/// Checks texts and their number.
fn check(phases: &[TodoPhase]) -> Result<(), String> {
    let tasks = || phases.iter().flat_map(|phase| &phase.tasks);
    if tasks().count() > MAX_TASKS {
        return Err(too_many());
    }
    let mut seen = HashSet::new();
    if let Some(twice) = tasks().find(|task| !seen.insert(task.content.as_str())) {
        return Err(format!("Task \"{}\" already exists", twice.content));
    }
    let texts = phases.iter().map(|phase| ("phase", phase.name.as_str()));
    let of_tasks = tasks().flat_map(|task| [Some(task.content.as_str()), task.blocker.as_deref()]);
    for (what, text) in texts.chain(of_tasks.flatten().map(|text| ("task", text))) {
        if text.trim().is_empty() {
            return Err(format!("A {what} must have a text"));
        }
        if text.len() > MAX_TEXT {
            return Err(format!("A text of a {what} is longer than {MAX_TEXT} bytes"));
        }
    }
    Ok(())
}

fn too_many() -> String {
    format!("A list has at most {MAX_TASKS} tasks")
}

/// Has one task worked on: the first that is, else the first pending one.
fn promote(phases: &mut [TodoPhase]) {
    let mut has_one = false;
    for task in tasks_mut(phases).filter(|task| task.status == TodoStatus::InProgress) {
        if std::mem::replace(&mut has_one, true) {
            task.status = TodoStatus::Pending;
        }
    }
    if !has_one && let Some(next) = tasks_mut(phases).find(|task| task.status == TodoStatus::Pending) {
        next.status = TodoStatus::InProgress;
    }
}

#[cfg(test)]
mod tests;
