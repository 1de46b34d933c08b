//! Schemas of arguments as this API understands them.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

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

/// The schema with `const` as an `enum` of one, which this API knows in its place. A tool without a schema gets that of an
/// object without members.
pub(super) fn parameters(schema: Cow<'_, Value>) -> Cow<'_, Value> {
    if schema.is_null() {
        return Cow::Owned(json!({ "type": "object", "properties": {} }));
    }
    if has_const(&schema) { Cow::Owned(rewritten(&schema)) } else { schema }
}

/// Whether there is a member `const` anywhere, which is cheaper to see than to rewrite.
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
mod tests {
    use super::*;

    #[test]
    fn a_constant_is_an_enum_of_one() {
        let check = |schema: Value, expected: Value| {
            assert_eq!(parameters(Cow::Borrowed(&schema)).into_owned(), expected, "{schema}");
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
