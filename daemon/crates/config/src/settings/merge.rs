//! Project settings over the user's.

use serde_json::{Map, Value};

use super::reach::of_project;

/// Lists to which a project adds: resources, and the tools that the user wants sessions not to have.
const COMBINED: [&str; 6] = ["packages", "extensions", "skills", "prompts", "themes", "excludeTools"];

/// Merges `project` into `user`: objects member by member, the lists above and those of shell hooks by appending, all else replaces. Keys that count in
/// the user's settings alone are passed over.
pub(super) fn merge(mut user: Map<String, Value>, project: Map<String, Value>) -> Map<String, Value> {
    for (key, value) in project {
        let Some(value) = of_project(&key, value) else { continue };
        let merged = match (user.remove(&key), value) {
            (Some(Value::Array(ours)), Value::Array(theirs)) if COMBINED.contains(&key.as_str()) => {
                Value::Array(ours.into_iter().chain(theirs).collect())
            }
            (Some(Value::Array(ours)), Value::Array(theirs)) if key == "defaultTools" => {
                Value::Array(merge_tools(ours, theirs))
            }
            (Some(Value::Object(ours)), Value::Object(theirs)) if key == "hooks" => {
                Value::Object(merge_hooks(ours, theirs))
            }
            (Some(ours), theirs) => deep(ours, theirs),
            (None, theirs) => theirs,
        };
        user.insert(key, merged);
    }
    user
}

/// Shell hooks of both, by event.
fn merge_hooks(mut ours: Map<String, Value>, theirs: Map<String, Value>) -> Map<String, Value> {
    for (event, hooks) in theirs {
        match (ours.get_mut(&event), hooks) {
            (Some(Value::Array(ours)), Value::Array(theirs)) => ours.extend(theirs),
            (_, hooks) => {
                ours.insert(event, hooks);
            }
        }
    }
    ours
}

fn deep(ours: Value, theirs: Value) -> Value {
    match (ours, theirs) {
        (Value::Object(mut ours), Value::Object(theirs)) => {
            for (key, value) in theirs {
                let merged = match ours.remove(&key) {
                    Some(before) => deep(before, value),
                    None => value,
                };
                ours.insert(key, merged);
            }
            Value::Object(ours)
        }
        (_, theirs) => theirs,
    }
}

/// A list that only adds (`+name`) and takes away (`-name`) changes the list below it; any other replaces it.
fn merge_tools(ours: Vec<Value>, theirs: Vec<Value>) -> Vec<Value> {
    if !modifies(&theirs) {
        return theirs;
    }
    if modifies(&ours) {
        return ours.into_iter().chain(theirs).collect();
    }
    let mut list = ours;
    for name in theirs.iter().filter_map(Value::as_str) {
        let bare = &name[1..];
        list.retain(|tool| tool != bare);
        if name.starts_with('+') {
            list.push(bare.into());
        }
    }
    list
}

fn modifies(list: &[Value]) -> bool {
    !list.is_empty() && list.iter().all(|item| item.as_str().is_some_and(|text| text.starts_with(['+', '-'])))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(user: Value, project: Value, expected: Value) {
        let object = |value: Value| value.as_object().unwrap().clone();
        assert_eq!(Value::Object(merge(object(user), object(project))), expected);
    }

    #[test]
    fn the_project_wins_member_by_member() {
        check(
            json!({"a": 1, "b": {"c": 1, "d": 2}}),
            json!({"b": {"d": 3}}),
            json!({"a": 1, "b": {"c": 1, "d": 3}}),
        );
        check(json!({"a": {"b": 1}}), json!({"a": 2}), json!({"a": 2}));
        check(
            json!({"enabledModels": ["a"]}),
            json!({"enabledModels": ["b"]}),
            json!({"enabledModels": ["b"]}),
        );
        check(json!({"skills": ["a"]}), json!({"skills": ["b"]}), json!({"skills": ["a", "b"]}));
        check(
            json!({"hooks": {"Stop": [1], "PreToolUse": [2]}}),
            json!({"hooks": {"Stop": [3], "SessionEnd": [4]}}),
            json!({"hooks": {"Stop": [1, 3], "PreToolUse": [2], "SessionEnd": [4]}}),
        );
        check(
            json!({"bash": {"snapshot": false}}),
            json!({"bash": {"snapshot": true, "pty": true}}),
            json!({"bash": {"snapshot": false, "pty": true}}),
        );
        check(json!({}), json!({"bash": {"snapshot": true}}), json!({}));
        check(
            json!({"httpProxy": "a"}),
            json!({"httpProxy": "b", "defaultProjectTrust": "always"}),
            json!({"httpProxy": "a"}),
        );
    }

    #[test]
    fn tools_are_replaced_or_changed() {
        let tools = |user: Value, project: Value, expected: Value| {
            check(
                json!({"defaultTools": user}),
                json!({"defaultTools": project}),
                json!({"defaultTools": expected}),
            );
        };
        tools(json!(["read"]), json!(["ls"]), json!(["ls"]));
        tools(json!(["read", "bash"]), json!(["+ls", "-bash"]), json!(["read", "ls"]));
        tools(json!(["+find"]), json!(["-bash"]), json!(["+find", "-bash"]));
        tools(json!(["read"]), json!([]), json!([]));
        check(json!({}), json!({"defaultTools": ["+ls"]}), json!({"defaultTools": ["+ls"]}));
    }
}
