//! What the file of a tool says. Pure.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use agentd_agent::ArgumentSchema;
use agentd_config::without_value;
use agentd_protocol::tool::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

/// The longest name that providers take.
const MAX_NAME: usize = 64;

/// The longest timeout: a day.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// The tool of a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToolDefinition {
    pub(super) spec: ToolSpec,
    /// The name for people.
    pub(super) label: Option<String>,
    /// The program and its arguments.
    pub(super) command: Vec<String>,
    pub(super) timeout: Option<Duration>,
    pub(super) approval: ToolApproval,
}

/// What calls of a tool count as for the permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ToolApproval {
    /// Reading. Counts in files of the user alone.
    Read,
    /// Something that changes files: judged as what can do anything, since nobody can see which.
    Write,
    /// Something that can do anything.
    #[default]
    Exec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    name: String,
    #[serde(default)]
    label: Option<String>,
    description: String,
    #[serde(default)]
    parameters: Option<Value>,
    command: Vec<String>,
    /// In seconds.
    #[serde(default)]
    timeout: Option<f64>,
    #[serde(default)]
    approval: ToolApproval,
    /// The schema of the file, for editors.
    #[serde(default, rename = "$schema")]
    _schema: Option<Value>,
}

impl ToolDefinition {
    /// Reads the value of the file in `folder`: a word of the command that begins with `./` or `../` counts from there.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn of(value: Value, folder: &Path) -> Result<Self, String> {
        let File { name, label, description, parameters, command, timeout, approval, .. } =
            serde_json::from_value(value).map_err(|error| without_value(&error.to_string()))?;
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_letter) {
            return Err(format!("\"name\" must be 1 to {MAX_NAME} letters, digits, \"_\" or \"-\""));
        }
        if name.starts_with("mcp__") {
            return Err("\"name\" begins with \"mcp__\", as those of tools of MCP servers do".to_owned());
        }
        if description.trim().is_empty() {
            return Err("\"description\" must say what the tool does".to_owned());
        }
        let parameters = parameters.unwrap_or_else(|| json!({"type": "object", "properties": {}}));
        if parameters.get("type") != Some(&json!("object")) {
            return Err("\"parameters\" must be a JSON Schema with \"type\": \"object\"".to_owned());
        }
        ArgumentSchema::try_compile(&parameters).map_err(|error| format!("\"parameters\": {error}"))?;
        if command.first().is_none_or(|program| program.trim().is_empty()) {
            return Err("\"command\" must be a list of a program and its arguments".to_owned());
        }
        if command.iter().any(|word| word.contains('\0')) {
            return Err("\"command\" holds a NUL byte".to_owned());
        }
        let timeout = match timeout {
            None => None,
            Some(seconds) if seconds > 0.0 => {
                Some(Duration::try_from_secs_f64(seconds).unwrap_or(MAX_TIMEOUT).min(MAX_TIMEOUT))
            }
            Some(_) => return Err("\"timeout\" must be a number of seconds above 0".to_owned()),
        };
        let word = |word: String| -> String {
            if word.starts_with("./") || word.starts_with("../") {
                let path: PathBuf = folder.join(word.strip_prefix("./").unwrap_or(&word));
                path.display().to_string()
            } else {
                word
            }
        };
        Ok(Self {
            spec: ToolSpec { name, description, parameters, constrained_sampling: None },
            label,
            command: command.into_iter().map(word).collect(),
            timeout,
            approval,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: Value) -> Result<ToolDefinition, String> {
        ToolDefinition::of(value, Path::new("/f/tools"))
    }

    #[test]
    fn a_file_names_a_program() {
        let definition = read(json!({
            "$schema": "x", "name": "deploy", "description": "Deploys.", "command": ["python3", "./deploy.py", "../x", "."],
            "parameters": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
            "timeout": 0.5, "approval": "read", "label": "Deploy",
        }))
        .unwrap();
        assert_eq!(definition.command, ["python3", "/f/tools/deploy.py", "/f/tools/../x", "."]);
        assert_eq!(definition.timeout, Some(Duration::from_millis(500)));
        assert_eq!((definition.approval, definition.label.as_deref()), (ToolApproval::Read, Some("Deploy")));
        let least = read(json!({"name": "a", "description": "b", "command": ["c"]})).unwrap();
        assert_eq!((least.approval, least.timeout), (ToolApproval::Exec, None));
        assert_eq!(least.spec.parameters["type"], "object");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let check = |change: Value, expected: &str| {
            let mut value = json!({"name": "a", "description": "b", "command": ["c"]});
            for (key, changed) in change.as_object().unwrap() {
                value[key] = changed.clone();
            }
            let said = read(value).unwrap_err();
            assert!(said.contains(expected), "{said}");
        };
        check(json!({"name": "a b"}), "\"name\" must be 1 to 64 letters");
        check(json!({"name": "x".repeat(65)}), "\"name\" must be");
        check(json!({"name": "mcp__a__b"}), "as those of tools of MCP servers");
        check(json!({"name": 5}), "expected a string, not an integer");
        check(json!({"description": " "}), "\"description\" must say");
        check(json!({"command": []}), "\"command\" must be a list");
        check(json!({"command": "ls"}), "expected a sequence, not a string");
        check(json!({"timeout": -1}), "\"timeout\" must be");
        check(json!({"approval": "never"}), "unknown variant");
        check(json!({"comand": 1}), "unknown field `comand`");
        check(json!({"parameters": {"type": "array"}}), "\"type\": \"object\"");
        check(json!({"parameters": {"type": "object", "properties": 5}}), "\"parameters\": ");
        assert!(read(json!([])).is_err());
        assert!(read(json!({"name": "a"})).unwrap_err().contains("missing field `description`"));
    }
}
