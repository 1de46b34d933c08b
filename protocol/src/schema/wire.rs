//! One schema of everything, for generators of types in other languages.
//!
//! The other schemas say what may be sent, in the terms of JSON Schema. Here every object stands on its own: no inheritance by
//! `allOf`, every member of a union is a named object with a constant that tells it from the others, optional fields are
//! absent and not `null`, and enumerations are lists of values. Commands are as a client writes them, all else as the daemon does.

use std::collections::BTreeSet;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::rows::{AnswerRow, CommandRow, EventRow, OPTIONAL_DATA, answers, tagged};
use crate::{
    command::Command,
    entry::{SessionEntry, SessionHeader},
    error::Failure,
    event::Event,
};

/// The names of union members after their constant, where the union's own name is too long.
const MEMBERS: [(&str, &str); 4] = [
    ("AssistantMessageEvent", "Update"),
    ("ContentBlock", "Content"),
    ("ExtensionUiRequest", "UiRequest"),
    ("SessionEntry", "Entry"),
];

/// The schema of `wire.json`: each type under `$defs`; as a whole, any line of the wire or of a session file.
pub(super) fn wire() -> Value {
    let (mut written, mut read) = (
        SchemaSettings::draft2020_12().for_serialize().into_generator(),
        SchemaSettings::draft2020_12().into_generator(),
    );
    let commands = Command::schemas(&mut read);
    let answers = answers(&mut read);
    let data = Command::schemas(&mut written);
    let events = Event::schemas(&mut written);
    let failure = written.subschema_for::<Failure>().to_value();
    let header = written.subschema_for::<SessionHeader>().to_value();
    let entry = written.subschema_for::<SessionEntry>().to_value();

    // Commands first: what both sides know is then replaced by the form in which the daemon writes it.
    let mut types = Types { source: read.take_definitions(true), made: Map::new(), done: BTreeSet::new() };
    let mut all = Vec::new();
    for CommandRow { name, doc, params, .. } in &commands {
        all.push(types.object(
            &format!("{}Command", pascal(name)),
            tagged(name, doc, true, params),
            &COMMAND,
        ));
    }
    types.union("Command", "What a client sends, and what has exactly one response.", all);
    for AnswerRow { name, title, doc, body } in &answers {
        types.object(title, tagged(name, doc, false, body), &[]);
    }

    types.source = written.take_definitions(true);
    types.done.clear();
    let mut all = Vec::new();
    for CommandRow { name, data, .. } in &data {
        let about = format!("The answer to `{name}`.");
        let mut body = json!({"type": "object", "description": about, "required": ["type", "command", "success"], "properties": {
            "type": {"const": "response"}, "command": {"const": name}, "success": {"const": true},
        }});
        if let Some(data) = data {
            body["properties"]["data"] = data.as_value().clone();
            if !OPTIONAL_DATA.contains(name) {
                body["required"] = json!(["type", "command", "success", "data"]);
            }
        }
        all.push(types.object(&format!("{}Response", pascal(name)), body, &RESPONSE));
    }
    let body = json!({
        "type": "object", "description": "A command that was not done.", "allOf": [failure], "required": ["type", "success"],
        "properties": {"type": {"const": "response"}, "command": {
            "type": "string", "description": "The command's `type`; `parse` for a line that is no JSON.",
        }, "success": {"const": false}},
    });
    all.push(types.object("FailureResponse", body, &RESPONSE));
    types.union("Response", "The answer to a command; `command` and `success` tell which.", all);
    let mut all = Vec::new();
    for EventRow { name, doc, body } in &events {
        let added: Vec<Added> = if *name == "message_update" {
            EVENT.iter().chain(&CUMULATIVE).copied().collect()
        } else {
            EVENT.to_vec()
        };
        all.push(types.object(&format!("{}Event", pascal(name)), tagged(name, doc, false, body), &added));
    }
    types.union("Event", "What the daemon tells without being asked.", all);
    types.value(&header);
    types.value(&entry);

    let names = [
        "Command",
        "UiResponse",
        "HostToolUpdate",
        "HostToolResult",
        "HostUriResult",
        "EvalOutput",
        "EvalResult",
        "Response",
        "Event",
        "SessionHeader",
        "SessionEntry",
    ];
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Line",
        "description": "Any line of the wire, or of a session file.",
        "anyOf": names.map(reference),
        "$defs": types.made,
    })
}

/// A field that the connection reads or adds: name, type, description.
type Added = (&'static str, fn() -> Value, &'static str);

/// The types of `id` here; the daemon repeats any value.
fn id() -> Value {
    json!({"type": ["string", "integer"]})
}

fn string() -> Value {
    json!({"type": "string"})
}

fn number() -> Value {
    json!({"type": "integer"})
}

fn answer_so_far() -> Value {
    reference("AssistantMessage")
}

const COMMAND: [Added; 2] = [
    ("id", id, "Repeated in the response."),
    (
        "sessionId",
        string,
        "The session that a command of a session is for; without it, the connection's current one.",
    ),
];
const RESPONSE: [Added; 1] = [("id", id, "The `id` of the command, if it had one.")];
const EVENT: [Added; 2] = [
    ("sessionId", string, "The session, on a connection that asked for `sessions` in its `hello`."),
    ("seq", number, "The number of the event in its session, on such a connection."),
];
/// With cumulative updates, of the event and of the update in it.
const CUMULATIVE: [Added; 1] =
    [("message", answer_so_far, "The answer so far, on a connection with cumulative updates.")];
const CUMULATIVE_UPDATE: [Added; 1] = [("partial", answer_so_far, "The same as the `message` of the event.")];

/// The types that were made, and what they are made of.
struct Types {
    source: Map<String, Value>,
    made: Map<String, Value>,
    /// The definitions of the present source that were made, or are being made.
    done: BTreeSet<String>,
}

/// An object on its own.
#[derive(Clone, Default)]
struct Object {
    properties: Map<String, Value>,
    required: Vec<String>,
    description: Option<Value>,
    /// The constants of the members of unions that it was taken from, and the definitions that it includes.
    constants: Vec<String>,
    includes: Vec<String>,
}

impl Types {
    fn union(&mut self, name: &str, description: &str, members: Vec<Value>) -> Value {
        self.made.insert(name.into(), json!({"description": description, "anyOf": members}));
        reference(name)
    }

    /// Makes a type of that name, with those fields besides its own.
    fn object(&mut self, name: &str, schema: Value, added: &[Added]) -> Value {
        let mut objects = self.flat(&schema);
        for object in &mut objects {
            for (field, schema, about) in added {
                let mut schema = schema();
                schema["description"] = json!(about);
                let known = object
                    .properties
                    .get(*field)
                    .is_some_and(|own| *field != "id" || own.get("type").is_some());
                if !known {
                    object.properties.insert((*field).into(), schema);
                }
            }
        }
        self.named(name, objects, schema.get("description"))
    }

    /// The type of a name: the only object there is, or a union of several, each with a name of its own.
    fn named(&mut self, name: &str, objects: Vec<Object>, description: Option<&Value>) -> Value {
        if let [_] = &objects[..] {
            for object in objects {
                self.finish(name, object);
            }
            return reference(name);
        }
        let suffix = MEMBERS.iter().find(|(union, _)| *union == name).map_or(name, |(_, suffix)| suffix);
        let mut members = Vec::new();
        for object in objects {
            // A member that is another type and a constant is that type: it never comes without the constant.
            let member = match &object.includes[..] {
                [included] => {
                    self.done.insert(included.clone());
                    included.clone()
                }
                _ => {
                    let constant =
                        object.constants.last().map(|constant| pascal(constant)).unwrap_or_default();
                    format!("{constant}{suffix}")
                }
            };
            self.finish(&member, object);
            members.push(reference(&member));
        }
        let mut union = json!({"anyOf": members});
        if let Some(description) = description {
            union["description"] = description.clone();
        }
        self.made.insert(name.into(), union);
        reference(name)
    }

    fn finish(&mut self, name: &str, object: Object) {
        let Object { properties, required, description, .. } = object;
        let mut finished = Map::new();
        if let Some(description) = description {
            finished.insert("description".into(), description);
        }
        let mut fields = Map::new();
        for (field, schema) in properties {
            let is_required = required.contains(&field);
            let made = self.value(&if is_required { schema } else { without_null(schema) });
            fields.insert(field, made);
        }
        finished.insert("type".into(), json!("object"));
        finished.insert("properties".into(), Value::Object(fields));
        if !required.is_empty() {
            finished.insert("required".into(), json!(required));
        }
        self.made.insert(name.into(), Value::Object(finished));
    }

    /// A schema in the form of this file; the definitions that it refers to are made on the way.
    fn value(&mut self, schema: &Value) -> Value {
        let description = schema.get("description").cloned();
        if let Some(name) = definition(schema) {
            self.definition(name);
            let target = reference(name);
            return match description {
                Some(description) => json!({"description": description, "allOf": [target]}),
                None => target,
            };
        }
        if let Some(list) = constants(schema) {
            return list;
        }
        let mut made = Map::new();
        for (key, part) in schema.as_object().into_iter().flatten() {
            let part = match key.as_str() {
                // Bounds and defaults are in the other schemas; generators make types of them that are hard to use.
                "format" | "minimum" | "maximum" | "default" => continue,
                "items" | "additionalProperties" => self.value(part),
                "anyOf" | "oneOf" => {
                    let parts = part.as_array().into_iter().flatten().map(|part| self.value(part)).collect();
                    made.insert("anyOf".into(), Value::Array(parts));
                    continue;
                }
                _ => part.clone(),
            };
            made.insert(key.clone(), part);
        }
        Value::Object(made)
    }

    /// Makes the definition of that name, once.
    fn definition(&mut self, name: &str) {
        if !self.done.insert(name.to_owned()) {
            return;
        }
        let Some(schema) = self.source.get(name).cloned() else { return };
        if is_object(&schema) || (constants(&schema).is_none() && has_objects(&schema)) {
            let added: &[Added] = if name == "AssistantMessageEvent" { &CUMULATIVE_UPDATE } else { &[] };
            self.object(name, schema, added);
        } else {
            let made = self.value(&schema);
            self.made.insert(name.into(), made);
        }
    }

    /// The objects that fit a schema, one for each way through its unions.
    fn flat(&self, schema: &Value) -> Vec<Object> {
        let mut own = Object {
            properties: schema["properties"].as_object().cloned().unwrap_or_default(),
            required: strings(&schema["required"]),
            description: schema.get("description").cloned(),
            ..Object::default()
        };
        own.constants =
            own.properties.values().filter_map(|field| field["const"].as_str()).map(Into::into).collect();
        let mut all = vec![own];
        let mut include = |parts: Vec<Object>| {
            all = all.iter().flat_map(|left| parts.iter().map(move |right| left.with(right))).collect();
        };
        if let Some(name) = definition(schema) {
            let parts = self.flat(&self.source[name]);
            let included =
                |part: Object| Object { includes: vec![name.to_owned()], constants: Vec::new(), ..part };
            include(parts.into_iter().map(included).collect());
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            // The fields of a row besides its `type` are no type of their own.
            let parts = match definition(part) {
                Some(name) => self.flat(&self.source[name]),
                None => self.flat(part),
            };
            include(parts);
        }
        for union in ["oneOf", "anyOf"] {
            if let Some(members) = schema[union].as_array() {
                include(members.iter().flat_map(|member| self.flat(member)).collect());
            }
        }
        all
    }
}

impl Object {
    /// Both in one; the left one is what is described.
    fn with(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.properties.extend(other.properties.clone());
        both.required.extend(other.required.clone());
        both.constants.extend(other.constants.clone());
        both.includes.extend(other.includes.clone());
        if other.description.is_some() && (both.description.is_none() || !other.constants.is_empty()) {
            both.description.clone_from(&other.description);
        }
        both
    }
}

/// The name of the definition that a schema refers to.
fn definition(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/$defs/")
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

fn is_object(schema: &Value) -> bool {
    schema["type"] == "object" && schema.get("properties").is_some()
}

/// Whether a schema is a union of objects.
fn has_objects(schema: &Value) -> bool {
    let all = |union: &str| {
        schema[union]
            .as_array()
            .is_some_and(|members| members.iter().all(|member| member["type"] == "object"))
    };
    all("oneOf") || all("anyOf")
}

/// A union of nothing but constants, as a list of them; what is said of each goes into the description.
fn constants(schema: &Value) -> Option<Value> {
    let members = schema["oneOf"].as_array()?;
    let values: Vec<&str> = members.iter().map(|member| member["const"].as_str()).collect::<Option<_>>()?;
    let mut text = schema["description"].as_str().unwrap_or_default().to_owned();
    for (member, value) in members.iter().zip(&values) {
        if let Some(about) = member["description"].as_str() {
            text.push_str(&format!("\n- `{value}`: {about}"));
        }
    }
    Some(json!({"description": text.trim(), "type": "string", "enum": values}))
}

/// The schema of a field that is left out where it has no value.
fn without_null(schema: Value) -> Value {
    let mut schema = schema;
    if let Some(kinds) = schema["type"].as_array() {
        let mut kinds: Vec<Value> = kinds.iter().filter(|kind| *kind != "null").cloned().collect();
        schema["type"] = if kinds.len() == 1 { kinds.remove(0) } else { Value::Array(kinds) };
    }
    if let Some(members) = schema["anyOf"].as_array() {
        let members: Vec<&Value> = members.iter().filter(|member| member["type"] != "null").collect();
        if let [only] = members[..] {
            let mut only = only.clone();
            if let Some(description) = schema.get("description") {
                only["description"] = description.clone();
            }
            return only;
        }
    }
    schema
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect()
}

/// `set_model` as `SetModel`, `toolCall` as `ToolCall`.
fn pascal(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters
            .next()
            .map(|first| first.to_uppercase().chain(letters).collect::<String>())
            .unwrap_or_default()
    };
    name.split('_').map(word).collect()
}

#[cfg(test)]
mod tests;
