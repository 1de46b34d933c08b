//! `--output-schema`: the model gives its answer as the arguments of a tool, which the daemon checks against the schema.

use std::{
    fs,
    path::{Path, PathBuf},
};

use agentd_protocol::{
    client_tools::{
        ClientTool, ClientToolResult, RegisterToolsParams, ToolContent, ToolRequest, ToolResponseParams,
    },
    exit_code::PromptExit,
    permissions::SetPermissionsParams,
    session::PermissionState,
    settings::{PermissionAction, PermissionRule},
};
use serde_json::{Map, Value, json};

use crate::exit::Fault;

/// The name of the tool.
pub(crate) const TOOL: &str = "submit_answer";

/// How often the model is asked again when its answer was none of the schema.
pub(super) const MORE_ATTEMPTS: u32 = 2;

/// The argument that holds an answer that is no object: those of a tool are one.
const ANSWER: &str = "answer";

/// The prompt that asks again.
pub(super) const ASK_AGAIN: &str = "Your answer has to be given by the tool `submit_answer`: call it now with the result as its arguments. Text outside \
                                    of the call is not read.";

/// The schema that the answer is to fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputSchema {
    /// The file that it is from, as the user named it.
    pub(crate) file: PathBuf,
    /// The schema of the tool's arguments.
    parameters: Value,
    /// Whether the answer is an argument, and not all of them.
    is_argument: bool,
}

impl OutputSchema {
    /// Reads the schema.
    ///
    /// # Errors
    /// Faults of usage: a file that cannot be read, or is no JSON Schema by its looks. The daemon looks closer.
    pub(crate) fn read(file: &Path, here: &Path) -> Result<Self, Fault> {
        let fault = |why: String| Fault::usage(format!("Error: --output-schema {}: {why}", file.display()));
        let text = fs::read_to_string(here.join(file)).map_err(|error| fault(error.to_string()))?;
        let schema: Value =
            serde_json::from_str(&text).map_err(|error| fault(format!("this is no JSON: {error}")))?;
        let Value::Object(schema) = schema else {
            return Err(fault(
                "a JSON Schema is wanted, which is an object: {\"type\": \"object\", …}".into(),
            ));
        };
        let is_argument = schema.get("type").and_then(Value::as_str) != Some("object");
        let parameters = if is_argument { in_an_argument(schema) } else { Value::Object(schema) };
        Ok(Self { file: file.to_owned(), parameters, is_argument })
    }

    /// The registration of the tool, in one session or in the current one.
    pub(super) fn registration(&self, session_id: Option<String>) -> RegisterToolsParams {
        let tool = ClientTool {
            name: TOOL.to_owned(),
            description: "Gives the final answer to the user's request. Its arguments are the answer: nothing else that you write is \
                          read. Call it once, when all other work is done."
                .to_owned(),
            parameters: self.parameters.clone(),
            guidelines: vec![format!("When the work is done, give the answer by a call of {TOOL}.")],
            ..ClientTool::default()
        };
        RegisterToolsParams { tools: vec![tool], session_id }
    }

    /// The fault where the daemon does not take the tool.
    pub(super) fn refused(&self, error: &str) -> Fault {
        Fault::usage(format!("Error: --output-schema {} cannot be used: {error}", self.file.display()))
    }

    /// The end where the model gave no such answer.
    pub(super) fn not_met(&self, attempts: u32) -> PromptExit {
        PromptExit::failed(format!(
            "Error: the model gave no answer that fits --output-schema {}, though it was asked {attempts} times.",
            self.file.display()
        ))
    }

    /// The answer in a call.
    pub(super) fn answer(&self, request: &ToolRequest) -> Value {
        match (&request.args, self.is_argument) {
            (args, true) => args.get(ANSWER).cloned().unwrap_or_default(),
            (args, false) => args.clone(),
        }
    }
}

/// The reply to a call of the tool, which ends the run.
pub(super) fn taken(request: &ToolRequest) -> ToolResponseParams {
    let result = ClientToolResult {
        content: vec![ToolContent::Text { text: "The answer was taken.".to_owned() }],
        terminate: Some(true),
        ..ClientToolResult::default()
    };
    ToolResponseParams {
        request_id: request.request_id.clone(),
        result: Some(result),
        ..ToolResponseParams::default()
    }
}

/// The rule that lets the model give its answer, besides those of the session; `None` where everything is allowed.
pub(super) fn permission(state: Option<&PermissionState>) -> Option<SetPermissionsParams> {
    let mut rules = state?.session_rules.clone();
    let rule = PermissionRule {
        tool: TOOL.to_owned(),
        command: None,
        path: None,
        domain: None,
        action: PermissionAction::Allow,
        reason: None,
    };
    if !rules.contains(&rule) {
        rules.push(rule);
    }
    Some(SetPermissionsParams { rules: Some(rules), ..SetPermissionsParams::default() })
}

/// A schema for an object with one field of this schema. Definitions stay at the top, where references look for them.
fn in_an_argument(mut schema: Map<String, Value>) -> Value {
    let mut whole = Map::new();
    for kept in ["$schema", "$defs", "definitions"] {
        if let Some(value) = schema.remove(kept) {
            whole.insert(kept.to_owned(), value);
        }
    }
    whole.insert("type".to_owned(), json!("object"));
    whole.insert("properties".to_owned(), json!({ANSWER: schema}));
    whole.insert("required".to_owned(), json!([ANSWER]));
    whole.insert("additionalProperties".to_owned(), json!(false));
    Value::Object(whole)
}
