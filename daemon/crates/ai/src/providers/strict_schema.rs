//! Rewrites a tool's schema for constrained sampling: every property required, optional ones nullable, nothing else
//! allowed. Schemas with keywords that strict mode does not have are left alone.

use agentd_protocol::tool::ToolSpec;
use serde_json::{Map, Value, json};

/// Keywords that strict mode knows. A tool with any other keyword is sent without strict mode.
const KNOWN: &[&str] = &[
    "type",
    "description",
    "title",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "pattern",
    "format",
    "default",
    "$schema",
];

/// Keywords that only describe, and that strict mode refuses.
const DROPPED: &[&str] = &["default", "$schema"];

/// Keywords that only Anthropic's strict mode refuses.
const NOT_OF_ANTHROPIC: &[&str] =
    &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "maxItems"];

/// The text formats that Anthropic's strict mode knows.
const FORMATS_OF_ANTHROPIC: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// The vendor whose strict mode a schema is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// OpenAI's, and that of its imitations.
    OpenAi,
    /// Anthropic's, which has fewer keywords.
    Anthropic,
}

impl Strictness {
    /// Whether the mode allows a keyword with this value.
    fn has(self, keyword: &str, value: &Value) -> bool {
        let of_anthropic = || match keyword {
            // Only a minimum of 0 or 1 is allowed.
            "minItems" => matches!(value.as_u64(), Some(0 | 1)),
            "format" => value.as_str().is_some_and(|format| FORMATS_OF_ANTHROPIC.contains(&format)),
            keyword => !NOT_OF_ANTHROPIC.contains(&keyword),
        };
        KNOWN.contains(&keyword) && (self == Self::OpenAi || of_anthropic())
    }
}

/// The strict form of an object schema; `None` if there is none.
pub(crate) fn strict(schema: &Value, mode: Strictness) -> Option<Value> {
    let object = schema.as_object()?;
    (object.get("type") == Some(&json!("object"))).then(|| rewrite(object, mode)).flatten()
}

/// Whether a tool asks for constrained sampling.
pub(crate) fn wants_strict(spec: &ToolSpec) -> bool {
    let sampling = spec.constrained_sampling.as_ref().filter(|sampling| sampling.kind == "json_schema");
    match sampling.and_then(|sampling| sampling.strict.as_ref()) {
        Some(Value::Bool(strict)) => *strict,
        Some(Value::String(wish)) => wish == "prefer" || wish == "require",
        _ => false,
    }
}

fn rewrite(schema: &Map<String, Value>, mode: Strictness) -> Option<Value> {
    if schema.iter().any(|(key, value)| !mode.has(key, value)) {
        return None;
    }
    let mut out = Map::new();
    for (key, value) in schema {
        if DROPPED.contains(&key.as_str()) {
            continue;
        }
        let value = match key.as_str() {
            "properties" | "required" | "additionalProperties" => continue,
            "items" => rewrite(value.as_object()?, mode)?,
            "anyOf" => {
                let options = value.as_array()?.iter().map(|option| rewrite(option.as_object()?, mode));
                Value::Array(options.collect::<Option<_>>()?)
            }
            _ => value.clone(),
        };
        out.insert(key.clone(), value);
    }
    if is_object(schema) {
        // An object with unknown members cannot be strict.
        if schema.get("additionalProperties").is_some_and(|value| value != &json!(false)) {
            return None;
        }
        let empty = Map::new();
        let properties = schema.get("properties").map_or(Some(&empty), Value::as_object)?;
        let required = schema.get("required").and_then(Value::as_array);
        let is_required =
            |name: &String| required.is_some_and(|names| names.iter().any(|other| other == name));
        let mut strict_properties = Map::new();
        for (name, property) in properties {
            let property = rewrite(property.as_object()?, mode)?;
            let property = if is_required(name) { property } else { nullable(property) };
            strict_properties.insert(name.clone(), property);
        }
        let names: Vec<Value> = strict_properties.keys().cloned().map(Value::from).collect();
        out.insert("properties".into(), Value::Object(strict_properties));
        out.insert("required".into(), Value::Array(names));
        out.insert("additionalProperties".into(), json!(false));
    }
    Some(Value::Object(out))
}

fn is_object(schema: &Map<String, Value>) -> bool {
    schema.contains_key("properties") || schema.get("type") == Some(&json!("object"))
}

fn nullable(schema: Value) -> Value {
    json!({ "anyOf": [schema, { "type": "null" }] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_properties_become_nullable_and_all_are_required() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "the file"},
                "limit": {"type": "number", "default": 5},
                "edits": {"type": "array", "items": {"type": "object", "properties": {"old": {"type": "string"}}}},
            },
            "required": ["path", "edits"],
        });
        assert_eq!(
            strict(&schema, Strictness::OpenAi).unwrap(),
            json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "the file"},
                    "limit": {"anyOf": [{"type": "number"}, {"type": "null"}]},
                    "edits": {"type": "array", "items": {
                        "type": "object",
                        "properties": {"old": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
                        "required": ["old"],
                        "additionalProperties": false,
                    }},
                },
                "required": ["path", "limit", "edits"],
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn anthropics_strict_mode_has_fewer_keywords() {
        let check = |property: Value, openai: bool, anthropic: bool| {
            let schema = json!({"type": "object", "properties": {"a": property}});
            let found =
                [Strictness::OpenAi, Strictness::Anthropic].map(|mode| strict(&schema, mode).is_some());
            assert_eq!(found, [openai, anthropic], "{schema}");
        };
        check(json!({"type": "string"}), true, true);
        for keyword in NOT_OF_ANTHROPIC {
            check(json!({"type": "number", *keyword: 3}), true, false);
        }
        check(json!({"type": "array", "items": {"type": "string"}, "minItems": 1}), true, true);
        check(json!({"type": "array", "items": {"type": "string"}, "minItems": 2}), true, false);
        check(json!({"type": "string", "format": "uuid"}), true, true);
        check(json!({"type": "string", "format": "regex"}), true, false);
    }

    #[test]
    fn what_strict_mode_cannot_say_is_left_alone() {
        let openai = |schema: Value| strict(&schema, Strictness::OpenAi);
        assert_eq!(openai(json!({"type": "object", "properties": {"a": {"oneOf": []}}})), None);
        assert_eq!(openai(json!({"type": "object", "additionalProperties": {"type": "string"}})), None);
        assert_eq!(openai(json!({"type": "string"})), None);
        assert_eq!(openai(json!({"type": "object", "properties": {"a": true}})), None);
    }
}
