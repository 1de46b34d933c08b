//! Tells the model what is wrong with its arguments.

use std::fmt::Write as _;

use agentd_protocol::number;
use jsonschema::{
    ValidationError, Validator,
    error::{TypeKind, ValidationErrorKind},
};
use serde_json::Value;

/// How many misfits are told one by one. An array of a thousand bad items teaches no more than the first few.
const MAX_MISFITS: usize = 50;

/// The text for arguments that do not fit; its frame is what clients and models know.
pub(super) fn failure(tool_name: &str, validator: &Validator, mended: &Value, received: &Value) -> String {
    let mut text = format!("Validation failed for tool \"{tool_name}\":\n");
    let mut errors = validator.iter_errors(mended);
    for error in errors.by_ref().take(MAX_MISFITS) {
        let (path, message) = describe(&error);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  - {path}: {message}");
    }
    let untold = errors.count();
    if untold > 0 {
        let _ = writeln!(text, "  - root: and {untold} more");
    }
    let mut received = received.clone();
    number::normalize(&mut received);
    let _ = write!(text, "\nReceived arguments:\n{received:#}");
    text
}

/// The dotted path of a misfit and what should be there instead.
fn describe(error: &ValidationError<'_>) -> (String, String) {
    let mut path: Vec<String> = error
        .instance_path()
        .as_str()
        .split('/')
        .skip(1)
        .map(|part| part.replace("~1", "/").replace("~0", "~"))
        .collect();
    let message = match error.kind() {
        ValidationErrorKind::Type { kind: TypeKind::Single(name) } => {
            format!("expected {name}, got {}", kind_of(error.instance()))
        }
        ValidationErrorKind::Type { kind: TypeKind::Multiple(names) } => {
            let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
            format!("expected {}, got {}", names.join(" or "), kind_of(error.instance()))
        }
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().map_or_else(|| property.to_string(), str::to_owned);
            path.push(name);
            "missing".to_owned()
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            format!("must not have properties {}", unexpected.join(", "))
        }
        ValidationErrorKind::Enum { options } => format!("must be one of {options}"),
        ValidationErrorKind::Constant { expected_value } => format!("must be {expected_value}"),
        ValidationErrorKind::FalseSchema => "is not allowed".to_owned(),
        // The arguments follow below, so the value is not repeated here.
        _ => error.masked().to_string(),
    };
    let path = if path.is_empty() { "root".to_owned() } else { path.join(".") };
    (path, message)
}

/// What a value is, in the words of JSON Schema.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
