//! The rows of the command and event tables as schemas.

use std::any::TypeId;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::{
    command::NoData,
    eval_executor::{EvalOutput, EvalResult},
    host_tools::{HostToolResult, HostToolUpdate},
    host_uris::HostUriResult,
    ui::UiResponse,
};

/// A row of the command table.
pub(crate) struct CommandRow {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) params: Schema,
    pub(crate) data: Option<Schema>,
}

/// A row of the event table.
pub(crate) struct EventRow {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) body: Schema,
}

/// The schema of a command's `data`; `None` when it answers without.
pub(crate) fn data_schema<T: JsonSchema + 'static>(generator: &mut SchemaGenerator) -> Option<Schema> {
    (TypeId::of::<T>() != TypeId::of::<NoData>()).then(|| generator.subschema_for::<T>())
}

/// Commands that answer with `data` only when they are asked to.
pub(crate) const OPTIONAL_DATA: [&str; 1] = ["abort"];

/// A line that clients send and that is no command.
pub(crate) struct AnswerRow {
    /// The `type` of the line.
    pub(crate) name: &'static str,
    /// The name of the type.
    pub(crate) title: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) body: Schema,
}

/// The lines that clients send and that are no commands.
pub(crate) fn answers(generator: &mut SchemaGenerator) -> Vec<AnswerRow> {
    vec![
        AnswerRow {
            name: UiResponse::TYPE,
            title: "UiResponse",
            doc: "Answers a question to the user. No command: it has no response.",
            body: generator.subschema_for::<UiResponse>(),
        },
        AnswerRow {
            name: HostToolUpdate::TYPE,
            title: "HostToolUpdate",
            doc: "The result so far of a `host_tool_call`. No command: it has a response only if it cannot be used.",
            body: generator.subschema_for::<HostToolUpdate>(),
        },
        AnswerRow {
            name: HostToolResult::TYPE,
            title: "HostToolResult",
            doc: "Answers a `host_tool_call`. No command: it has a response only if it cannot be used.",
            body: generator.subschema_for::<HostToolResult>(),
        },
        AnswerRow {
            name: HostUriResult::TYPE,
            title: "HostUriResult",
            doc: "Answers a `host_uri_request`. No command: it has a response only if it cannot be used.",
            body: generator.subschema_for::<HostUriResult>(),
        },
        AnswerRow {
            name: EvalOutput::TYPE,
            title: "EvalOutput",
            doc: "A piece of what the cell of an `eval_request` prints. No command: it has a response only if it cannot be used.",
            body: generator.subschema_for::<EvalOutput>(),
        },
        AnswerRow {
            name: EvalResult::TYPE,
            title: "EvalResult",
            doc: "Answers an `eval_request`. No command: it has a response only if it cannot be used.",
            body: generator.subschema_for::<EvalResult>(),
        },
    ]
}

/// An object that has a fixed `type` and, besides, what `body` says.
pub(crate) fn tagged(name: &str, doc: &str, id: bool, body: &Schema) -> Value {
    let mut properties = Map::new();
    if id {
        properties
            .insert("id".into(), json!({"description": "Repeated in the response; by custom a string."}));
    }
    properties.insert("type".into(), json!({"const": name}));
    json!({
        "title": name, "description": doc, "type": "object", "properties": properties, "required": ["type"],
        "allOf": [body],
    })
}
