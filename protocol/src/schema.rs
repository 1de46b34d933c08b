//! JSON Schema (draft 2020-12) of everything that crosses a process boundary, made from the types.

use std::any::TypeId;

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::{
    command::{Command, NoData},
    entry::{SessionEntry, SessionHeader},
    error::Failure,
    event::Event,
    settings::Settings,
};

/// The schema of a command's `data`; `None` when it answers without.
pub(crate) fn data_schema<T: JsonSchema + 'static>(generator: &mut SchemaGenerator) -> Option<Schema> {
    (TypeId::of::<T>() != TypeId::of::<NoData>()).then(|| generator.subschema_for::<T>())
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().into_generator()
}

/// A schema file: `body`, the draft, a title, and the definitions that `body` refers to.
fn document(mut generator: SchemaGenerator, title: &str, body: Value) -> Value {
    let mut document = Map::new();
    document.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    document.insert("title".into(), json!(title));
    if let Value::Object(body) = body {
        document.extend(body);
    }
    let definitions = generator.take_definitions(true);
    if !definitions.is_empty() {
        document.insert("$defs".into(), Value::Object(definitions));
    }
    Value::Object(document)
}

/// An object that has a fixed `type` and, besides, what `body` says.
fn tagged(name: &str, id: bool, body: &Schema) -> Value {
    let mut properties = Map::new();
    if id {
        properties
            .insert("id".into(), json!({"description": "Repeated in the response; by custom a string."}));
    }
    properties.insert("type".into(), json!({"const": name}));
    json!({"title": name, "type": "object", "properties": properties, "required": ["type"], "allOf": [body]})
}

fn commands() -> Value {
    let mut generator = generator();
    let all = Command::schemas(&mut generator);
    let variants: Vec<Value> = all.iter().map(|(name, params, _)| tagged(name, true, params)).collect();
    document(generator, "Commands: what a client sends", json!({"oneOf": variants}))
}

fn responses() -> Value {
    let mut generator = generator();
    let all = Command::schemas(&mut generator);
    let failure = generator.subschema_for::<Failure>();
    let mut variants = vec![json!({
        "title": "failure",
        "description": "A command that was not done. `command` is `parse` for a line that is no JSON.",
        "type": "object",
        "properties": {"type": {"const": "response"}, "command": {"type": "string"}, "success": {"const": false}},
        "required": ["type", "success"],
        "allOf": [failure],
    })];
    for (name, _, data) in all {
        let mut properties = json!({
            "type": {"const": "response"}, "command": {"const": name}, "success": {"const": true},
        });
        let mut required = vec!["type", "command", "success"];
        if let Some(data) = data {
            properties["data"] = data.to_value();
            required.push("data");
        }
        variants
            .push(json!({"title": name, "type": "object", "properties": properties, "required": required}));
    }
    document(generator, "Responses: the answer to each command", json!({"oneOf": variants}))
}

fn events() -> Value {
    let mut generator = generator();
    let all = Event::schemas(&mut generator);
    let variants: Vec<Value> = all.iter().map(|(name, body)| tagged(name, false, body)).collect();
    document(generator, "Events: what the daemon tells without being asked", json!({"oneOf": variants}))
}

fn single<T: JsonSchema>(title: &str) -> Value {
    let mut generator = generator();
    let body = generator.subschema_for::<T>().to_value();
    document(generator, title, body)
}

/// Every schema file by name, as the text that belongs into `schemas/`.
#[must_use]
pub fn files() -> Vec<(&'static str, String)> {
    let mut files = vec![
        ("commands.json", commands()),
        ("responses.json", responses()),
        ("events.json", events()),
        ("header.json", single::<SessionHeader>("The first line of a session file")),
        ("entry.json", single::<SessionEntry>("Every other line of a session file")),
        ("settings.json", single::<Settings>("settings.json")),
    ];
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    let index = json!({
        "wire": crate::WIRE_VERSION, "files": names, "commands": Command::NAMES, "events": Event::NAMES,
    });
    files.push(("index.json", index));
    files.into_iter().map(|(name, value)| (name, format!("{value:#}\n"))).collect()
}
