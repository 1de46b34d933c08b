use serde_json::{Value, json};

use super::*;

fn operation(json: Value) -> Operation {
    serde_json::from_value(json).unwrap()
}

fn applied(phases: &[TodoPhase], json: Value) -> Result<Changed, String> {
    apply(phases, vec![operation(json)])
}

/// The list in short: `Phase: >in progress, pending, xdone, -dropped, !blocked`.
fn short(phases: &[TodoPhase]) -> String {
    let task = |task: &TodoTask| {
        let mark = match task.status {
            TodoStatus::Pending => "",
            TodoStatus::InProgress => ">",
            TodoStatus::Completed => "x",
            TodoStatus::Abandoned => "-",
            TodoStatus::Blocked => "!",
        };
        format!("{mark}{}", task.content)
    };
    let phase = |phase: &TodoPhase| {
        format!("{}: {}", phase.name, phase.tasks.iter().map(task).collect::<Vec<_>>().join(" "))
    };
    phases.iter().map(phase).collect::<Vec<_>>().join("; ")
}

fn two() -> Vec<TodoPhase> {
    let list =
        json!({"op": "init", "list": [{"phase": "A", "items": ["a", "b"]}, {"phase": "B", "items": ["c"]}]});
    applied(&[], list).unwrap().phases
}

#[test]
fn every_operation_keeps_one_task_worked_on() {
    assert_eq!(short(&two()), "A: >a b; B: c");
    for (json, expected) in [
        (json!({"op": "start", "task": "c"}), "A: a b; B: >c"),
        (json!({"op": "done", "task": "a"}), "A: xa >b; B: c"),
        (json!({"op": "done", "task": "b"}), "A: >a xb; B: c"),
        (json!({"op": "done", "phase": "A"}), "A: xa xb; B: >c"),
        (json!({"op": "done"}), "A: xa xb; B: xc"),
        (json!({"op": "drop", "task": "a"}), "A: -a >b; B: c"),
        (json!({"op": "drop", "phase": "A"}), "A: -a -b; B: >c"),
        (json!({"op": "rm", "task": "a"}), "A: >b; B: c"),
        (json!({"op": "rm", "phase": "A"}), "B: >c"),
        (json!({"op": "rm", "task": "c"}), "A: >a b"),
        (json!({"op": "rm"}), ""),
        (json!({"op": "block", "task": "a", "reason": "r"}), "A: !a >b; B: c"),
        (json!({"op": "append", "phase": "A", "items": ["d"]}), "A: >a b d; B: c"),
        (json!({"op": "append", "items": ["d"]}), "A: >a b; B: c d"),
        (json!({"op": "append", "phase": "C", "items": ["d"]}), "A: >a b; B: c; C: d"),
        (json!({"op": "init", "items": ["d"]}), "Tasks: >d"),
        (json!({"op": "init", "items": ["d"], "phase": "P"}), "P: >d"),
        (json!({"op": "init", "list": []}), ""),
        (json!({"op": "view"}), "A: >a b; B: c"),
        // What does not name its kind.
        (json!({"list": [{"phase": "P", "items": ["d"]}]}), "P: >d"),
        (json!({"items": ["d"], "phase": "B"}), "A: >a b; B: c d"),
    ] {
        assert_eq!(short(&applied(&two(), json.clone()).unwrap().phases), expected, "{json}");
    }
    assert_eq!(short(&applied(&[], json!({"items": ["d"]})).unwrap().phases), "Tasks: >d");
    let blocked = applied(&two(), json!({"op": "block", "task": "a", "reason": "r"})).unwrap().phases;
    assert_eq!(blocked[0].tasks[0].blocker.as_deref(), Some("r"));
    let unblocked = applied(&blocked, json!({"op": "unblock", "task": "a"})).unwrap().phases;
    assert_eq!((short(&unblocked).as_str(), &unblocked[0].tasks[0].blocker), ("A: a >b; B: c", &None));
}

#[test]
fn what_is_done_by_an_operation_is_told_once() {
    let contents =
        |changed: Changed| changed.completed.into_iter().map(|task| task.content).collect::<Vec<_>>();
    let one = applied(&two(), json!({"op": "done", "task": "a"})).unwrap();
    let phases = one.phases.clone();
    assert_eq!(contents(one), ["a"]);
    assert_eq!(contents(applied(&phases, json!({"op": "done"})).unwrap()), ["b", "c"]);
    assert_eq!(contents(applied(&phases, json!({"op": "done", "task": "a"})).unwrap()), [""; 0]);
}

#[test]
fn an_error_discards_everything() {
    for (json, says) in [
        (json!({"op": "start", "task": "x"}), "Task \"x\" not found"),
        (json!({"op": "done", "task": "c", "phase": "A"}), "Task \"c\" not found"),
        (json!({"op": "done", "phase": "x"}), "Phase \"x\" not found"),
        (json!({"op": "rm", "task": "x"}), "Task \"x\" not found"),
        (json!({"op": "append", "items": ["b"]}), "Task \"b\" already exists"),
        (json!({"op": "init", "items": ["b", "b"]}), "Task \"b\" already exists"),
        (json!({"op": "init"}), "Missing list for init operation"),
        (json!({"op": "append", "items": []}), "Missing items for append operation"),
        (json!({"op": "start"}), "Missing task for start operation"),
        (json!({"op": "block"}), "Missing task for block operation"),
        (json!({"op": "unblock", "task": "a"}), "Task \"a\" is not blocked"),
        (json!({"items": ["d"]}), "Missing op"),
        (json!({}), "Missing op"),
        (json!({"op": "append", "items": [" "]}), "A task must have a text"),
        (json!({"op": "append", "items": ["x".repeat(3000)]}), "longer than 2000 bytes"),
        (
            json!({"op": "append", "items": (0..600).map(|it| it.to_string()).collect::<Vec<_>>()}),
            "at most 500 tasks",
        ),
    ] {
        let error = applied(&two(), json.clone()).unwrap_err();
        assert!(error.contains(says), "{json}: {error}");
    }
    let operations = [json!({"op": "done", "task": "a"}), json!({"op": "done", "task": "x"})];
    assert!(apply(&two(), operations.map(operation).into()).is_err());
    let operations = [json!({"op": "done", "task": "a"}), json!({"op": "start", "task": "c"})];
    let changed = apply(&two(), operations.map(operation).into()).unwrap();
    assert_eq!((short(&changed.phases).as_str(), changed.op), ("A: xa b; B: >c", Op::Start));
}

#[test]
fn a_list_of_a_client_is_held_to_the_same_rules() {
    let phase = |name: &str, tasks: &[(&str, TodoStatus)]| TodoPhase {
        name: name.into(),
        tasks: tasks
            .iter()
            .map(|(content, status)| TodoTask { content: (*content).into(), status: *status, blocker: None })
            .collect(),
    };
    use TodoStatus::{Completed, InProgress, Pending};
    let given = vec![phase("A", &[("a", Completed), ("b", Pending)]), phase("B", &[])];
    assert_eq!(short(&checked(given).unwrap()), "A: xa >b");
    let given = vec![phase("A", &[("a", InProgress), ("b", InProgress)])];
    assert_eq!(short(&checked(given).unwrap()), "A: >a b");
    for (given, says) in [
        (vec![phase("A", &[("a", Pending), ("a", Pending)])], "Task \"a\" already exists"),
        (vec![phase("A", &[("a", Pending)]), phase("A", &[("b", Pending)])], "Phase \"A\" already exists"),
        (vec![phase(" ", &[("a", Pending)])], "A phase must have a text"),
    ] {
        assert!(checked(given).unwrap_err().contains(says));
    }
}
