//! Requests of this API.

use std::{borrow::Cow, sync::Arc};

use agentd_protocol::tool::ToolSpec;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{
    api_types::{Content, ContentPart, Declaration, RequestBody, Tool},
    contents::contents,
    family::GeminiFamily,
    thinking,
};
use crate::{
    Request,
    estimate::{input_tokens, max_answer_tokens},
    handoff::{self, SystemPlacement, Target},
    providers::{
        call_id::sanitized,
        request_parts::sampling_params,
        strict_schema::{Strictness, strict, wants_strict},
    },
};

/// The longest id of a call that is taken, in characters.
const MAX_ID: usize = 64;

/// Members of a request itself; all other configured fields are members of `generationConfig`.
const TOP_LEVEL: &[&str] = &[
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "safetySettings",
    "cachedContent",
    "labels",
    "serviceTier",
    "modelArmorConfig",
];

/// The JSON text of a request.
///
/// # Errors
/// Only what the serialiser reports.
pub(super) fn body(request: &Request) -> Result<Bytes, serde_json::Error> {
    let model = &*request.model;
    let family = GeminiFamily::of(model);
    let readable = handoff::readable(&request.messages);
    let has_ids = family.has_call_ids();
    let call_id = |id: &str| if has_ids { normalized(id) } else { id.to_owned() };
    let transcript = handoff::prepare(
        &readable,
        &Target {
            model,
            block_images: request.block_images,
            system: SystemPlacement::Folded,
            call_id: &call_id,
        },
    );
    let (tools, is_strict) = tools(&transcript.tools, &family);
    let mut generation_config = Map::new();
    if let Some(tokens) = max_answer_tokens(model, input_tokens(&readable)) {
        generation_config.insert("maxOutputTokens".into(), json!(tokens));
    }
    if let Some(config) = thinking::config(request, &family) {
        generation_config.insert("thinkingConfig".into(), config);
    }
    let mut configured = Map::new();
    for (name, value) in sampling_params(request) {
        match value {
            value if TOP_LEVEL.contains(&name.as_str()) => {
                configured.insert(name, value);
            }
            Value::Object(members) if name == "generationConfig" => generation_config.extend(members),
            value => {
                generation_config.insert(name, value);
            }
        }
    }
    let prompt = Some(transcript.prompt.as_str()).filter(|prompt| !prompt.is_empty());
    let body = RequestBody {
        contents: contents(&transcript.turns, &family),
        system_instruction: prompt.map(|text| Content { role: "user", parts: vec![ContentPart::text(text)] }),
        tools,
        tool_config: tool_config(request, &transcript.tools, is_strict),
        generation_config,
        configured,
    };
    serde_json::to_vec(&body).map(Bytes::from)
}

/// How tools are to be called.
fn tool_config(request: &Request, tools: &[Arc<ToolSpec>], is_strict: bool) -> Option<Value> {
    let forced = request.forced_tool.as_ref().filter(|_| !tools.is_empty());
    let calling = match forced {
        Some(name) => json!({ "mode": "ANY", "allowedFunctionNames": [name] }),
        None if is_strict => json!({ "mode": "VALIDATED" }),
        None => return None,
    };
    Some(json!({ "functionCallingConfig": calling }))
}

/// The tools, and whether any of them asks for constrained arguments.
fn tools<'a>(specs: &'a [Arc<ToolSpec>], family: &GeminiFamily) -> (Vec<Tool<'a>>, bool) {
    if specs.is_empty() {
        return (Vec::new(), false);
    }
    let mut is_strict = false;
    let declarations = specs.iter().map(|spec| {
        let wished = family.is_modern_gemini() && wants_strict(spec);
        let rewritten =
            Some(spec).filter(|_| wished).and_then(|spec| strict(&spec.parameters, Strictness::OpenAi));
        is_strict |= rewritten.is_some();
        Declaration {
            name: &spec.name,
            description: &spec.description,
            parameters_json_schema: gemini_schema(
                rewritten.map_or(Cow::Borrowed(&spec.parameters), Cow::Owned),
            ),
        }
    });
    let function_declarations = declarations.collect();
    (vec![Tool { function_declarations }], is_strict)
}

/// The legal form of an id that another model gave.
fn normalized(id: &str) -> String {
    let mut id = sanitized(id);
    // Only ASCII is left, so every index is a character boundary.
    id.truncate(MAX_ID);
    if id.is_empty() { "call".to_owned() } else { id }
}

/// Members whose names are the user's own, each with a schema.
const NAMED: &[&str] =
    &["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Members that are a schema or a list of them.
const NESTED: &[&str] = &[
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
];

/// The schema with each `const` as an `enum` of one, since this API does not know `const`. A tool without a schema gets that of an object
/// without members.
pub(super) fn gemini_schema(schema: Cow<'_, Value>) -> Cow<'_, Value> {
    if schema.is_null() {
        return Cow::Owned(json!({ "type": "object", "properties": {} }));
    }
    if has_const(&schema) { Cow::Owned(rewritten(&schema)) } else { schema }
}

/// Whether there is a member `const` anywhere: cheaper than rewriting every schema.
fn has_const(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.contains_key("const") || members.values().any(has_const),
        Value::Array(items) => items.iter().any(has_const),
        _ => false,
    }
}

fn rewritten(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => Value::Object(object(members)),
        Value::Array(items) => items.iter().map(rewritten).collect(),
        other => other.clone(),
    }
}

fn object(schema: &Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::with_capacity(schema.len());
    for (name, value) in schema {
        let value = match value {
            Value::Object(schemas) if NAMED.contains(&name.as_str()) => Value::Object(
                schemas.iter().map(|(name, schema)| (name.clone(), rewritten(schema))).collect(),
            ),
            value if NESTED.contains(&name.as_str()) => rewritten(value),
            value => value.clone(),
        };
        let replaces = matches!(value, Value::String(_) | Value::Number(_)) && !schema.contains_key("enum");
        if name == "const" && replaces {
            out.insert("enum".into(), json!([value]));
        } else {
            out.insert(name.clone(), value);
        }
    }
    out
}

#[cfg(test)]
mod schema_tests {
    use super::*;

    #[test]
    fn a_constant_is_an_enum_of_one() {
        let check = |schema: Value, expected: Value| {
            assert_eq!(gemini_schema(Cow::Borrowed(&schema)).into_owned(), expected, "{schema}");
        };
        check(
            json!({"type": "object", "properties": {
                "const": {"type": "string", "const": "a"},
                "kind": {"anyOf": [{"const": 1}, {"const": null}, {"const": "x", "enum": ["x", "y"]}]},
                "list": {"type": "array", "items": {"const": "b"}, "default": {"const": 3}},
            }}),
            json!({"type": "object", "properties": {
                "const": {"type": "string", "enum": ["a"]},
                "kind": {"anyOf": [{"enum": [1]}, {"const": null}, {"const": "x", "enum": ["x", "y"]}]},
                "list": {"type": "array", "items": {"enum": ["b"]}, "default": {"const": 3}},
            }}),
        );
        check(Value::Null, json!({"type": "object", "properties": {}}));
        let plain = json!({"type": "object", "additionalProperties": false});
        check(plain.clone(), plain);
    }
}

#[cfg(test)]
mod tests;
