//! Arguments that a tool of a stateless HTTP server wants repeated in headers (`x-mcp-header` in its schema). Pure.

use serde_json::{Map, Value};

/// The keyword.
const KEYWORD: &str = "x-mcp-header";

/// Keywords whose value is a schema, or a list of schemas.
const OF_SCHEMAS: [&str; 17] = [
    "items",
    "prefixItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "propertyNames",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "additionalItems",
    "contentSchema",
    "extends",
];

/// Keywords whose value has a schema for each name.
const OF_NAMED_SCHEMAS: [&str; 4] = ["$defs", "definitions", "patternProperties", "dependentSchemas"];

/// An argument that is repeated in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeaderArgument {
    /// The end of the header's name.
    header: String,
    /// Where the argument is: the names of properties from the outside in.
    path: Vec<String>,
}

/// The arguments of a tool that are repeated in headers.
///
/// # Errors
/// Why the tool cannot be called: it wants what no header can have.
pub(crate) fn read(schema: &Value) -> Result<Vec<HeaderArgument>, String> {
    let mut found = Vec::new();
    walk(schema, &mut Vec::new(), true, &mut found)?;
    for (at, argument) in found.iter().enumerate() {
        if found[..at].iter().any(|other| other.header.eq_ignore_ascii_case(&argument.header)) {
            return Err(format!("two arguments have the header \"{}\"", argument.header));
        }
    }
    Ok(found)
}

/// The values of these arguments in a call. What is not there, or is null, is left out.
pub(crate) fn values(arguments: &[HeaderArgument], call: &Value) -> Vec<(String, String)> {
    let value = |argument: &HeaderArgument| {
        let mut value = call;
        for name in &argument.path {
            value = value.get(name)?;
        }
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(value) => value.to_string(),
            Value::Number(number) => match number.as_f64() {
                // 3.0 is the integer 3.
                Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
                    format!("{float:.0}")
                }
                _ => number.to_string(),
            },
            _ => return None,
        };
        Some((argument.header.clone(), text))
    };
    arguments.iter().filter_map(value).collect()
}

/// Looks through a schema. `is_reached`: by properties alone, so that the argument's place is known.
fn walk(
    schema: &Value,
    path: &mut Vec<String>,
    is_reached: bool,
    found: &mut Vec<HeaderArgument>,
) -> Result<(), String> {
    if let Value::Array(schemas) = schema {
        return schemas.iter().try_for_each(|schema| walk(schema, path, false, found));
    }
    let Value::Object(keywords) = schema else { return Ok(()) };
    if let Some(header) = keywords.get(KEYWORD) {
        let header = checked(header, keywords)?;
        if !is_reached || path.is_empty() {
            return Err(format!("\"{KEYWORD}\" stands where no argument is"));
        }
        found.push(HeaderArgument { header, path: path.clone() });
    }
    for (name, schema) in named(keywords, "properties") {
        path.push(name.clone());
        walk(schema, path, is_reached, found)?;
        path.pop();
    }
    for key in OF_NAMED_SCHEMAS {
        named(keywords, key).try_for_each(|(_, schema)| walk(schema, path, false, found))?;
    }
    for schema in OF_SCHEMAS.iter().filter_map(|key| keywords.get(*key)) {
        walk(schema, path, false, found)?;
    }
    Ok(())
}

fn named<'a>(keywords: &'a Map<String, Value>, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    keywords.get(key).and_then(Value::as_object).into_iter().flatten()
}

/// The end of a header's name, which is a token, at an argument that can stand in a header.
fn checked(header: &Value, keywords: &Map<String, Value>) -> Result<String, String> {
    let header = header.as_str().unwrap_or_default();
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if header.is_empty() || !header.bytes().all(is_token) {
        return Err(format!("\"{KEYWORD}\" is no name of a header"));
    }
    let kind = keywords.get("type").and_then(Value::as_str).unwrap_or_default();
    if !["string", "integer", "boolean"].contains(&kind) {
        return Err(format!(
            "the header \"{header}\" is of an argument that is no string, integer or boolean"
        ));
    }
    Ok(header.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_found_by_their_place() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "Count"}}},
            "flag": {"type": "boolean", "x-mcp-header": "Flag"},
            "x-mcp-header": {"type": "string"},
            "other": {"type": "string", "default": {"x-mcp-header": 3}}
        }});
        let found = read(&schema).unwrap();
        assert_eq!(found.len(), 3);
        let sent = |call: Value| {
            let values = values(&found, &call);
            values.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            sent(json!({"region": "eu", "deep": {"n": 3}, "flag": false})),
            "Region=eu Count=3 Flag=false"
        );
        assert_eq!(sent(json!({"region": null, "deep": {"n": 3.0}})), "Count=3");
        assert_eq!(sent(json!({})), "");
    }

    #[test]
    fn what_no_header_can_have_is_refused() {
        let property = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
        for schema in [
            property(json!({"type": "string", "x-mcp-header": ""})),
            property(json!({"type": "string", "x-mcp-header": "a b"})),
            property(json!({"type": "string", "x-mcp-header": 3})),
            property(json!({"type": "number", "x-mcp-header": "A"})),
            property(json!({"type": "object", "x-mcp-header": "A"})),
            property(json!({"x-mcp-header": "A"})),
            property(json!({"type": "array", "items": {"type": "string", "x-mcp-header": "A"}})),
            property(json!({"anyOf": [{"type": "string", "x-mcp-header": "A"}]})),
            json!({"type": "object", "$defs": {"a": {"type": "string", "x-mcp-header": "A"}}}),
            json!({"type": "string", "x-mcp-header": "A"}),
            json!({"properties": {"a": {"type": "string", "x-mcp-header": "X"}, "b": {"type": "string", "x-mcp-header": "x"}}}),
        ] {
            assert!(read(&schema).is_err(), "{schema}");
        }
    }
}
