//! The description of `bash` for models.

use agentd_agent::hooks::OUTSIDE_SANDBOX;
use agentd_protocol::tool::{ConstrainedSampling, ToolSpec};
use serde_json::{Map, Value, json};

use super::features::BashFeatures;
use crate::limits::{MAX_LINES, MAX_SIZE};

/// The name of the tool.
pub(super) const NAME: &str = "bash";

fn default_timeout(features: &BashFeatures) -> String {
    match features.default_timeout {
        Some(time) => format!("without one it is {} seconds", time.as_secs_f64()),
        None => "there is none by default".to_owned(),
    }
}

/// The description and the schema, with the enabled features.
pub(super) fn spec(features: &BashFeatures) -> ToolSpec {
    let mut description = format!(
        "Runs a bash command in the current working directory and returns what it writes to stdout and stderr. Long output is \
         cut to its last {MAX_LINES} lines or {MAX_SIZE}, whichever is less; all of it is then kept in a temporary file that the \
         result names. A timeout in seconds can be given; {}.",
        default_timeout(features)
    );
    let mut properties = Map::new();
    let mut argument = |name: &str, kind: &str, text: &str| {
        properties.insert(name.to_owned(), json!({ "type": kind, "description": text }));
    };
    argument("command", "string", "The bash command to run");
    argument(
        "timeout",
        "number",
        &format!(
            "Seconds after which the command is killed (optional; {})",
            match features.default_timeout {
                Some(time) => format!("default {}", time.as_secs_f64()),
                None => "no limit by default".to_owned(),
            }
        ),
    );
    if features.session.is_some() {
        description.push_str(
            " Commands run in one shell that stays: the directory, variables, functions and aliases of earlier ones are there. A command that \
             runs beside another one has a shell of its own.",
        );
    }
    if let Some(size) = features.pty {
        description.push_str(
            " With pty the command runs on a terminal: for programs that behave differently without one.",
        );
        argument("pty", "boolean", "Run the command on a terminal (optional; default false)");
        argument("rows", "number", &format!("Lines of that terminal (optional; default {})", size.rows));
        argument("cols", "number", &format!("Columns of that terminal (optional; default {})", size.cols));
    }
    if features.background.is_some() {
        description.push_str(
            " With background the command goes on while you do other things: the result names it, and the process_* \
             tools read its output, write to it and end it.",
        );
        argument("background", "boolean", "Run the command in the background (optional; default false)");
    }
    if let Some(jobs) = &features.jobs {
        description.push_str(
            " With async the command goes on while you do other things, and its result is delivered when it has ended. A service has a \
             name, and ready says when it can be used: the call returns then.",
        );
        if let Some(after) = jobs.auto_after {
            description.push_str(&format!(
                " A command that takes longer than {} seconds goes on so by itself.",
                after.as_secs_f64()
            ));
        }
        argument("async", "boolean", "Run the command as a job, beside your work (optional; default false)");
        argument(
            "name",
            "string",
            "The name of a service, which runs until it is ended; one that runs under this name is ended first (optional)",
        );
        argument("ready", "object", "When a service is ready: log, port, or both (optional)");
    }
    if features.cwd {
        argument(
            "cwd",
            "string",
            "The folder to run the command in, relative to the working directory (optional)",
        );
    }
    if features.sandbox.is_some() {
        description.push_str(
            " Commands run in a sandbox, which limits where they can write; the result says when that may be why one failed.",
        );
        argument(
            OUTSIDE_SANDBOX,
            "boolean",
            "Run this command once outside of the sandbox, if the user agrees: only after it failed because of the sandbox (optional; \
             default false)",
        );
    }
    let mut sampling = Some(ConstrainedSampling::prefer_strict());
    if features.env {
        argument("env", "object", "Environment variables for the command (optional)");
        if let Some(env) = properties.get_mut("env").and_then(Value::as_object_mut) {
            env.insert("additionalProperties".into(), json!({ "type": "string" }));
        }
        // Strict sampling does not support objects with arbitrary names.
        sampling = None;
    }
    if let Some(ready) = properties.get_mut("ready").and_then(Value::as_object_mut) {
        let fields = json!({
            "log": { "type": "string", "description": "A regular expression that a line of its output matches then" },
            "port": { "type": "number", "description": "A port of this machine that takes connections then" },
            "host": { "type": "string", "description": "The address of that port (optional; default localhost)" },
            "timeout": { "type": "number", "description": "Seconds to wait for it (optional; default 60)" },
        });
        ready.insert("properties".into(), fields);
    }
    ToolSpec {
        name: NAME.into(),
        description,
        parameters: json!({ "type": "object", "properties": properties, "required": ["command"] }),
        constrained_sampling: sampling,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_default_it_is_the_plain_one() {
        let spec = spec(&BashFeatures::default());
        let properties = spec.parameters["properties"].as_object().unwrap();
        assert_eq!(properties.keys().collect::<Vec<_>>(), ["command", "timeout"]);
        assert_eq!(properties["command"]["type"], "string");
        assert_eq!(properties["timeout"]["type"], "number");
        assert_eq!(spec.parameters["required"], json!(["command"]));
        assert_eq!(spec.constrained_sampling, Some(ConstrainedSampling::prefer_strict()));
        assert!(spec.description.ends_with("there is none by default."), "{}", spec.description);
    }
}
