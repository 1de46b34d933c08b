//! JSON Type Definition (RFC 8927) as JSON Schema. Pure.

use serde_json::{Map, Value, json};

/// How deep forms may stand in each other.
const MAX_DEPTH: usize = 32;

/// A schema as JSON Schema: one that is a JSON Type Definition is converted, any other is as it was.
///
/// # Errors
/// A sentence: it is a JSON Type Definition that cannot be converted.
pub(super) fn as_json_schema(schema: &Value) -> Result<Value, String> {
    let Some(fields) = schema.as_object() else { return Ok(schema.clone()) };
    if is_type_definition(fields) {
        return whole(fields);
    }
    // A definition where nothing else says so; an object of JSON Schema may leave its type out, too.
    let may_be = fields.contains_key("properties") && !says_json_schema(fields);
    Ok(if may_be { whole(fields).unwrap_or_else(|_| schema.clone()) } else { schema.clone() })
}

fn whole(fields: &Map<String, Value>) -> Result<Value, String> {
    let mut converted = convert(&Value::Object(fields.clone()), 0)?;
    if let (Some(definitions), Some(schema)) =
        (fields.get("definitions").and_then(Value::as_object), converted.as_object_mut())
    {
        let made = definitions.iter().map(|(name, form)| Ok((name.clone(), convert(form, 1)?)));
        let made = made.collect::<Result<Map<_, _>, String>>()?;
        schema.insert("$defs".to_owned(), made.into());
    }
    Ok(converted)
}

/// Whether a schema has what only JSON Schema has.
fn says_json_schema(fields: &Map<String, Value>) -> bool {
    let keywords =
        ["$schema", "$ref", "$defs", "items", "required", "anyOf", "oneOf", "allOf", "const", "not"];
    let kind = fields.get("type");
    let is_other = |kind: &str| matches!(kind, "object" | "array" | "number" | "integer" | "null");
    keywords.iter().any(|name| fields.contains_key(*name))
        || kind.is_some_and(|kind| kind.as_str().is_none_or(is_other))
}

/// Whether a schema has what only JSON Type Definition has, itself or in a property.
fn is_type_definition(fields: &Map<String, Value>) -> bool {
    if says_json_schema(fields) {
        return false;
    }
    let has = |name: &str| fields.contains_key(name);
    let kind = fields.get("type").and_then(Value::as_str);
    has("optionalProperties")
        || has("elements")
        || has("values")
        || (has("discriminator") && has("mapping"))
        || kind.is_some_and(|kind| number_range(kind).is_some() || kind == "timestamp")
        || fields.get("ref").is_some_and(Value::is_string)
        || nested(fields).filter_map(Value::as_object).any(is_type_definition)
}

fn nested(fields: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let maps = ["properties", "optionalProperties", "mapping", "definitions"];
    maps.into_iter().filter_map(|name| fields.get(name)?.as_object()).flat_map(|map| map.values())
}

/// The least and the greatest number of an integer type; `(None, None)` for floating point.
fn number_range(kind: &str) -> Option<(Option<i64>, Option<i64>)> {
    Some(match kind {
        "int8" => (Some(i8::MIN.into()), Some(i8::MAX.into())),
        "uint8" => (Some(0), Some(u8::MAX.into())),
        "int16" => (Some(i16::MIN.into()), Some(i16::MAX.into())),
        "uint16" => (Some(0), Some(u16::MAX.into())),
        "int32" => (Some(i32::MIN.into()), Some(i32::MAX.into())),
        "uint32" => (Some(0), Some(u32::MAX.into())),
        "float32" | "float64" => (None, None),
        _ => return None,
    })
}

fn convert(form: &Value, depth: usize) -> Result<Value, String> {
    if depth > MAX_DEPTH {
        return Err(format!("its forms stand more than {MAX_DEPTH} deep in each other"));
    }
    let Some(fields) = form.as_object() else { return Err("a form is no object".to_owned()) };
    let mut schema = one_form(fields, depth)?;
    if let Some(description) = fields.get("metadata").and_then(|metadata| metadata.get("description"))
        && let Some(schema) = schema.as_object_mut()
    {
        schema.insert("description".to_owned(), description.clone());
    }
    if fields.get("nullable") == Some(&Value::Bool(true)) {
        return Ok(json!({"anyOf": [schema, {"type": "null"}]}));
    }
    Ok(schema)
}

fn one_form(fields: &Map<String, Value>, depth: usize) -> Result<Value, String> {
    if let Some(name) = fields.get("ref") {
        let name = name.as_str().ok_or("\"ref\" is no text")?;
        return Ok(json!({"$ref": format!("#/$defs/{}", name.replace('~', "~0").replace('/', "~1"))}));
    }
    if let Some(kind) = fields.get("type") {
        return match kind.as_str() {
            Some("boolean") => Ok(json!({"type": "boolean"})),
            Some("string") => Ok(json!({"type": "string"})),
            Some("timestamp") => Ok(json!({"type": "string", "format": "date-time"})),
            Some(kind) => match number_range(kind) {
                Some((Some(least), Some(most))) => {
                    Ok(json!({"type": "integer", "minimum": least, "maximum": most}))
                }
                Some(_) => Ok(json!({"type": "number"})),
                None => Err(format!("\"{kind}\" is no type of a JSON Type Definition")),
            },
            None => Err("\"type\" is no text".to_owned()),
        };
    }
    if let Some(values) = fields.get("enum") {
        return Ok(json!({"type": "string", "enum": values}));
    }
    if let Some(elements) = fields.get("elements") {
        return Ok(json!({"type": "array", "items": convert(elements, depth + 1)?}));
    }
    if let Some(values) = fields.get("values") {
        return Ok(json!({"type": "object", "additionalProperties": convert(values, depth + 1)?}));
    }
    if let (Some(tag), Some(mapping)) = (fields.get("discriminator"), fields.get("mapping")) {
        return tagged(tag, mapping, depth);
    }
    if fields.contains_key("properties") || fields.contains_key("optionalProperties") {
        return object(fields, None, depth);
    }
    Ok(json!({}))
}

fn tagged(tag: &Value, mapping: &Value, depth: usize) -> Result<Value, String> {
    let tag = tag.as_str().ok_or("\"discriminator\" is no text")?;
    let mapping = mapping.as_object().ok_or("\"mapping\" is no object")?;
    let one = |(value, form): (&String, &Value)| {
        let fields = form.as_object().ok_or("a form of \"mapping\" is no object")?;
        object(fields, Some((tag, value)), depth + 1)
    };
    Ok(json!({"oneOf": mapping.iter().map(one).collect::<Result<Vec<_>, String>>()?}))
}

/// An object with these properties, and a tag that has one value.
fn object(fields: &Map<String, Value>, tag: Option<(&str, &str)>, depth: usize) -> Result<Value, String> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    if let Some((tag, value)) = tag {
        properties.insert(tag.to_owned(), json!({"type": "string", "enum": [value]}));
        required.push(tag.to_owned());
    }
    for (part, is_required) in [("properties", true), ("optionalProperties", false)] {
        let Some(found) = fields.get(part) else { continue };
        let found = found.as_object().ok_or_else(|| format!("\"{part}\" is no object"))?;
        for (name, form) in found {
            properties.insert(name.clone(), convert(form, depth + 1)?);
            if is_required {
                required.push(name.clone());
            }
        }
    }
    let is_open = fields.get("additionalProperties") == Some(&Value::Bool(true));
    Ok(json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": is_open,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_schema_stays_as_it_is() {
        for schema in [
            json!({"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}),
            json!({"type": "string"}),
            json!({"enum": ["a"]}),
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"anyOf": [{"properties": {}}]}),
            json!({"properties": {"a": {"type": "number"}}}),
            json!({"type": "object", "nullable": true, "properties": {"ref": {"type": "string"}}}),
            json!({}),
            json!(true),
        ] {
            assert_eq!(as_json_schema(&schema), Ok(schema));
        }
    }

    #[test]
    fn forms_are_converted() {
        let check = |definition: Value, expected: Value| {
            assert_eq!(as_json_schema(&definition), Ok(expected), "{definition}");
        };
        check(json!({"type": "uint8"}), json!({"type": "integer", "minimum": 0, "maximum": 255}));
        check(
            json!({"properties": {"a": {"type": "string"}}}),
            json!({
                "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false,
            }),
        );
        check(json!({"type": "float64"}), json!({"type": "number"}));
        check(json!({"type": "timestamp"}), json!({"type": "string", "format": "date-time"}));
        check(
            json!({"elements": {"enum": ["a", "b"]}}),
            json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}),
        );
        check(
            json!({"values": {"type": "boolean"}}),
            json!({"type": "object", "additionalProperties": {"type": "boolean"}}),
        );
        check(
            json!({"properties": {"a": {"type": "string"}}, "optionalProperties": {"b": {"type": "string", "nullable": true}}}),
            json!({
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
                "required": ["a"],
                "additionalProperties": false,
            }),
        );
        check(
            json!({"discriminator": "kind", "mapping": {"x": {"properties": {"n": {"type": "int8"}}}}}),
            json!({"oneOf": [{
                "type": "object",
                "properties": {"kind": {"type": "string", "enum": ["x"]}, "n": {"type": "integer", "minimum": -128, "maximum": 127}},
                "required": ["kind", "n"],
                "additionalProperties": false,
            }]}),
        );
        check(
            json!({"definitions": {"a/b": {"type": "string", "metadata": {"description": "d"}}}, "elements": {"ref": "a/b"}}),
            json!({
                "type": "array",
                "items": {"$ref": "#/$defs/a~1b"},
                "$defs": {"a/b": {"type": "string", "description": "d"}},
            }),
        );
    }

    #[test]
    fn what_cannot_be_converted_is_named() {
        let error = as_json_schema(&json!({"elements": {"type": "number"}})).unwrap_err();
        assert!(error.contains("\"number\" is no type"), "{error}");
        let deep = (0..40).fold(json!({"type": "string"}), |form, _| json!({"elements": form}));
        assert!(as_json_schema(&deep).unwrap_err().contains("deep"));
    }
}
