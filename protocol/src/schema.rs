//! JSON Schema (draft 2020-12) of everything that crosses a process boundary, made from the types.

mod extension_host;
pub(crate) mod rows;
mod wire;

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use self::rows::{CommandRow, OPTIONAL_DATA, answers, tagged};
use crate::{
    command::Command,
    entry::{SessionEntry, SessionHeader},
    error::Failure,
    event::Event,
    models_file::ModelsFile,
    prompt_records::PromptRecord,
    settings::Settings,
};

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

fn commands() -> Value {
    let mut generator = generator();
    let all = Command::schemas(&mut generator);
    let mut variants: Vec<Value> =
        all.iter().map(|row| tagged(row.name, row.doc, true, &row.params)).collect();
    variants.extend(answers(&mut generator).iter().map(|row| tagged(row.name, row.doc, false, &row.body)));
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
    for CommandRow { name, data, .. } in all {
        let mut properties = json!({
            "type": {"const": "response"}, "command": {"const": name}, "success": {"const": true},
        });
        let mut required = vec!["type", "command", "success"];
        if let Some(data) = data {
            properties["data"] = data.to_value();
            if !OPTIONAL_DATA.contains(&name) {
                required.push("data");
            }
        }
        variants
            .push(json!({"title": name, "type": "object", "properties": properties, "required": required}));
    }
    document(generator, "Responses: the answer to each command", json!({"oneOf": variants}))
}

fn events() -> Value {
    let mut generator = generator();
    let all = Event::schemas(&mut generator);
    let variants: Vec<Value> = all.iter().map(|row| tagged(row.name, row.doc, false, &row.body)).collect();
    document(generator, "Events: what the daemon tells without being asked", json!({"oneOf": variants}))
}

fn single<T: JsonSchema>(title: &str) -> Value {
    let mut generator = generator();
    let body = generator.subschema_for::<T>().to_value();
    document(generator, title, body)
}

fn extension_host() -> Value {
    use extension_host::{Completion, FromDaemon, FromHost, HelloAnswer, HookAnswer, LoadAnswer, ToolAnswer};
    let mut generator = generator();
    // The values of results stand by themselves, since a result does not say of what it is.
    let _ = generator.subschema_for::<HelloAnswer>();
    let _ = generator.subschema_for::<LoadAnswer>();
    let _ = generator.subschema_for::<HookAnswer>();
    let _ = generator.subschema_for::<ToolAnswer>();
    let _ = generator.subschema_for::<Completion>();
    let records = [generator.subschema_for::<FromDaemon>(), generator.subschema_for::<FromHost>()];
    document(generator, "Records of the extension protocol, in both directions", json!({"anyOf": records}))
}

/// The Markdown reference of all commands and events: `docs/protocol-reference.md`.
#[must_use]
pub fn reference() -> String {
    let mut generator = generator();
    let (commands, events) = (Command::schemas(&mut generator), Event::schemas(&mut generator));
    let answers = answers(&mut generator);
    let _ = generator.subschema_for::<Failure>();
    let definitions = generator.take_definitions(true);
    let mut text = String::from(
        "# Protocol reference\n\n\
         Generated from the types of the crate `agentd-protocol`; `schemas/` holds the same as JSON Schema. How a \
         conversation goes is told in [protocol.md](protocol.md).\n\n## Commands\n",
    );
    for row in commands {
        text.push_str(&format!("\n### `{}`\n\n{}\n", row.name, row.doc));
        text.push_str(&fields(&row.params, &definitions));
        match &row.data {
            None => text.push_str("\nAnswers without `data`.\n"),
            Some(data) => text.push_str(&format!("\nAnswers with {}.\n", kind(data.as_value()))),
        }
    }
    for row in answers {
        text.push_str(&format!("\n### `{}`\n\n{}\n{}", row.name, row.doc, fields(&row.body, &definitions)));
    }
    text.push_str("\n## Events\n");
    for row in events {
        text.push_str(&format!("\n### `{}`\n\n{}\n{}", row.name, row.doc, fields(&row.body, &definitions)));
    }
    text.push_str("\n## Types\n");
    for (name, definition) in &definitions {
        let description = definition["description"].as_str().unwrap_or_default().replace('\n', " ");
        text.push_str(&format!("\n### {name}\n\n{description}\n"));
        if let Ok(schema) = Schema::try_from(definition.clone()) {
            text.push_str(&fields(&schema, &definitions));
        }
        for list in ["oneOf", "anyOf"] {
            for variant in definition[list].as_array().into_iter().flatten() {
                let about = variant["description"].as_str().unwrap_or_default().replace('\n', " ");
                text.push_str(&format!(
                    "\n- {}{}{about}",
                    kind(variant),
                    if about.is_empty() { "" } else { ": " }
                ));
            }
        }
        text.push('\n');
    }
    text
}

/// The table of an object's fields; empty when it has none.
fn fields(schema: &Schema, definitions: &Map<String, Value>) -> String {
    let mut object = schema.as_value();
    if let Some(name) = object["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        object = definitions.get(name).unwrap_or(object);
    }
    let Some(properties) = object["properties"].as_object().filter(|properties| !properties.is_empty())
    else {
        return String::new();
    };
    let required =
        |name: &str| object["required"].as_array().is_some_and(|list| list.iter().any(|item| item == name));
    let mut text = String::from("\n| field | type | |\n| --- | --- | --- |\n");
    for (name, property) in properties {
        let optional = if required(name) { "" } else { "?" };
        let about =
            property["description"].as_str().unwrap_or_default().replace('\n', " ").replace('|', "\\|");
        text.push_str(&format!(
            "| `{name}{optional}` | {} | {about} |\n",
            kind(property).replace('|', "\\|")
        ));
    }
    text
}

/// A schema in a few words.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(value) = schema.get("const") {
        return format!("`{value}`");
    }
    for list in ["anyOf", "oneOf", "allOf"] {
        if let Some(variants) = schema[list].as_array() {
            return variants.iter().map(kind).collect::<Vec<_>>().join(" or ");
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(" or ");
    }
    if let Some(properties) = schema["properties"].as_object() {
        let names = |(name, property): (&String, &Value)| match property.get("const") {
            Some(value) => format!("`{name}: {value}`"),
            None => format!("`{name}`"),
        };
        return format!("object of {}", properties.iter().map(names).collect::<Vec<_>>().join(", "));
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => format!("list of {}", kind(&schema["items"])),
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "any".to_owned(),
    }
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
        ("models.json", single::<ModelsFile>("models.json")),
        (
            "prompt-records.json",
            single::<PromptRecord>("The first and the last line of agentctl prompt --json"),
        ),
        ("extension-host.json", extension_host()),
        ("wire.json", wire::wire()),
    ];
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    let index = json!({
        "wire": crate::WIRE_VERSION, "files": names, "commands": Command::NAMES, "events": Event::NAMES,
    });
    files.push(("index.json", index));
    files.into_iter().map(|(name, value)| (name, format!("{value:#}\n"))).collect()
}
