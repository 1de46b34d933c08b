//! The arguments of the tool `task`. Pure.

use agentd_protocol::{model::ThinkingLevel, subagent::SchemaMode};
use serde_json::{Map, Value};

/// The most subagents that one call starts.
pub(super) const MAX_ITEMS: usize = 256;

/// The longest name of a subagent, in characters.
const MAX_NAME: usize = 32;

/// The agent of an item that names none.
pub(super) const DEFAULT_AGENT: &str = "task";

/// A call of the tool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TaskCall {
    /// What all subagents of the call are told.
    pub(super) context: String,
    pub(super) items: Vec<TaskItem>,
    /// Whether the call does not wait for them.
    pub(super) background: bool,
}

/// One subagent of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct TaskItem {
    /// The name that it is to have; `None` for one of our choice.
    pub(super) name: Option<String>,
    /// The name of its definition; `None` for the default.
    pub(super) agent: Option<String>,
    pub(super) task: String,
    /// Where the model expects the solution.
    pub(super) solution_space: Option<String>,
    pub(super) output_schema: Option<Value>,
    pub(super) schema_mode: Option<SchemaMode>,
    pub(super) isolated: bool,
    /// How much it should think.
    pub(super) effort: Option<ThinkingLevel>,
}

impl TaskCall {
    /// Reads the arguments: a batch, one item at the top level, or the form of before (`agent`, `tasks` with `id` and `assignment`).
    ///
    /// # Errors
    /// A sentence for the model.
    pub(super) fn read(arguments: &Value) -> Result<Self, String> {
        let Some(fields) = arguments.as_object() else {
            return Err("The arguments are no object.".to_owned());
        };
        if fields.contains_key("schema") {
            return Err("\"schema\" is not known; use outputSchema in the item.".to_owned());
        }
        let context = text(fields, "context")?.unwrap_or_default();
        let background = fields.get("background").and_then(Value::as_bool).unwrap_or(false);
        let of_call = text(fields, "agent")?;
        let Some(items) = fields.get("tasks") else {
            let item = TaskItem::read(fields, "", None)?;
            return Ok(Self { context, items: vec![item], background });
        };
        let Some(items) = items.as_array() else { return Err("\"tasks\" is no list.".to_owned()) };
        if items.is_empty() {
            return Err("\"tasks\" is empty: name at least one.".to_owned());
        }
        if items.len() > MAX_ITEMS {
            return Err(format!("\"tasks\" has {} items; one call starts at most {MAX_ITEMS}.", items.len()));
        }
        let read = |(index, item): (usize, &Value)| match item.as_object() {
            Some(fields) => TaskItem::read(fields, &format!("tasks[{index}]."), of_call.as_deref()),
            None => Err(format!("tasks[{index}] is no object.")),
        };
        let items = items.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
        let call = Self { context, items, background };
        call.check_names()?;
        Ok(call)
    }

    /// Names are told apart without regard to case.
    fn check_names(&self) -> Result<(), String> {
        let mut names: Vec<String> = Vec::new();
        for name in self.items.iter().filter_map(|item| item.name.as_deref()) {
            let plain = name.to_lowercase();
            if names.contains(&plain) {
                return Err(format!("Two tasks have the name \"{name}\"; give each its own."));
            }
            names.push(plain);
        }
        Ok(())
    }
}

impl TaskItem {
    fn read(fields: &Map<String, Value>, at: &str, agent: Option<&str>) -> Result<Self, String> {
        let told = |error: String| format!("{at}{error}");
        if fields.contains_key("schema") {
            return Err(told("schema is not known; use outputSchema.".to_owned()));
        }
        let named = |names: [&str; 2]| -> Result<Option<String>, String> {
            for name in names {
                if let Some(found) = text(fields, name).map_err(told)? {
                    return Ok(Some(found));
                }
            }
            Ok(None)
        };
        let task = named(["task", "assignment"])?.filter(|task| !task.trim().is_empty());
        let Some(task) = task else {
            return Err(told("task is missing or blank: say what is to be done.".to_owned()));
        };
        let name = named(["name", "id"])?;
        if let Some(name) = &name {
            check_name(name).map_err(told)?;
        }
        let schema_mode = match text(fields, "schemaMode").map_err(told)?.as_deref() {
            None => None,
            Some("permissive") => Some(SchemaMode::Permissive),
            Some("strict") => Some(SchemaMode::Strict),
            Some(other) => {
                return Err(told(format!("schemaMode is \"{other}\"; it is permissive or strict.")));
            }
        };
        let effort = match text(fields, "effort").map_err(told)?.as_deref() {
            None => None,
            Some("lo") => Some(ThinkingLevel::Low),
            Some("med") => Some(ThinkingLevel::Medium),
            Some("hi") => Some(ThinkingLevel::High),
            Some(other) => return Err(told(format!("effort is \"{other}\"; it is lo, med or hi."))),
        };
        Ok(Self {
            name,
            effort,
            agent: text(fields, "agent").map_err(told)?.or(agent.map(str::to_owned)),
            task,
            solution_space: text(fields, "solutionSpace").map_err(told)?,
            output_schema: fields.get("outputSchema").filter(|schema| !schema.is_null()).cloned(),
            schema_mode,
            isolated: fields.get("isolated").and_then(Value::as_bool).unwrap_or(false),
        })
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let is_fine = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    if name.is_empty() || !name.chars().all(is_fine) {
        return Err(format!("name \"{name}\" is not usable: letters, digits, _ and - are."));
    }
    if name.len() > MAX_NAME {
        return Err(format!("name \"{name}\" is too long: at most {MAX_NAME} characters."));
    }
    Ok(())
}

fn text(fields: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("{name} is no text.")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(arguments: Value) -> Result<Vec<(Option<String>, Option<String>, String)>, String> {
        let call = TaskCall::read(&arguments)?;
        Ok(call.items.into_iter().map(|item| (item.name, item.agent, item.task)).collect())
    }

    #[test]
    fn three_forms_are_read() {
        let named = |name: &str, agent: &str, task: &str| {
            (Some(name.to_owned()), Some(agent.to_owned()), task.to_owned())
        };
        assert_eq!(
            read(json!({"context": "c", "tasks": [{"name": "a", "agent": "scout", "task": "t"}]})),
            Ok(vec![named("a", "scout", "t")])
        );
        assert_eq!(read(json!({"task": "t"})), Ok(vec![(None, None, "t".to_owned())]));
        let old = json!({"agent": "reviewer", "tasks": [{"id": "x", "description": "d", "assignment": "t"}]});
        assert_eq!(read(old), Ok(vec![named("x", "reviewer", "t")]));
    }

    #[test]
    fn errors_name_the_place() {
        let check = |arguments: Value, expected: &str| {
            let error = read(arguments).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        check(json!({"tasks": []}), "at least one");
        check(json!({"tasks": [{"task": " "}]}), "tasks[0].task is missing or blank");
        check(json!({"tasks": [{"task": "t", "name": "a b"}]}), "tasks[0].name \"a b\"");
        check(json!({"tasks": [{"task": "t", "name": "A"}, {"task": "t", "name": "a"}]}), "Two tasks");
        check(json!({"schema": {}, "tasks": [{"task": "t"}]}), "outputSchema");
        check(json!({"tasks": [{"task": "t", "schemaMode": "loose"}]}), "permissive or strict");
        check(json!({"tasks": [{"task": 3}]}), "tasks[0].task is no text");
        check(
            json!({"tasks": [{"task": "t", "effort": "max"}]}),
            "tasks[0].effort is \"max\"; it is lo, med or hi",
        );
    }
}
