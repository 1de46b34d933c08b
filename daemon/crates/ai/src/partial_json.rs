//! Reads the JSON of tool arguments as models write it: with small errors, and cut off at any point.
//!
//! Arguments are read once, when they are complete or known to stay incomplete; nothing is parsed again for each delta.

mod reader;

use agentd_protocol::number;
use serde_json::{Map, Value};

use reader::{Reader, Stop};

/// The part of unreadable arguments that an error shows, in characters.
const MAX_SHOWN: usize = 200;

/// The reason why complete arguments could not be read. The text goes to the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsError {
    /// The text is not JSON, even after the usual errors are repaired.
    #[error("not valid JSON ({reason})\n\nReceived arguments:\n{shown}")]
    Invalid {
        /// The problem that the parser met.
        reason: String,
        /// The beginning of the text.
        shown: String,
    },
    /// The text is JSON, but not an object.
    #[error("Tool arguments must be a JSON object, not {found}\n\nReceived arguments:\n{shown}")]
    NoObject {
        /// The type of the value.
        found: &'static str,
        /// The beginning of the text.
        shown: String,
    },
}

/// Reads complete arguments. Empty text is an empty object.
///
/// Valid JSON is taken exactly as it is, with whole floats written as integers (as JavaScript prints them). What models
/// get wrong is mended: raw control characters in strings, escapes that JSON does not have (the backslash is then meant
/// literally), half surrogate pairs (U+FFFD), a code fence around the object, an object inside of a JSON string.
///
/// # Errors
/// Fails for anything else, also for text that breaks off: running a truncated command would be worse than refusing it.
pub fn parse_arguments(text: &str) -> Result<Map<String, Value>, ArgumentsError> {
    let text = unfenced(text);
    if text.is_empty() {
        return Ok(Map::new());
    }
    let value = serde_json::from_str(text).or_else(|_| mended(text))?;
    let value = match value {
        Value::String(inner) if inner.trim_start().starts_with('{') => {
            serde_json::from_str(&inner).or_else(|_| mended(&inner))?
        }
        value => value,
    };
    match value {
        Value::Object(mut map) => {
            number::normalize_map(&mut map);
            Ok(map)
        }
        other => Err(ArgumentsError::NoObject { found: kind(&other), shown: shown(text) }),
    }
}

/// Reads arguments that may be incomplete; text that does not begin an object gives an empty one.
///
/// A string that breaks off is kept, a member without a value is left out.
#[must_use]
pub fn best_reading(text: &str) -> Map<String, Value> {
    match Reader::new(unfenced(text)).read() {
        (Some(Value::Object(mut map)), _) => {
            number::normalize_map(&mut map);
            map
        }
        _ => Map::new(),
    }
}

/// Reads a JSON string with its quotes, repairing what [`parse_arguments`] repairs; `None` if it is not a whole string.
pub(crate) fn read_string(json: &str) -> Option<String> {
    if let Ok(text) = serde_json::from_str(json) {
        return Some(text);
    }
    match Reader::new(json).read() {
        (Some(Value::String(text)), Stop::Complete) => Some(text),
        _ => None,
    }
}

fn mended(text: &str) -> Result<Value, ArgumentsError> {
    match Reader::new(text).read() {
        (Some(value), Stop::Complete) => Ok(value),
        (_, stop) => Err(ArgumentsError::Invalid { reason: stop.to_string(), shown: shown(text) }),
    }
}

/// The text without white space and without a Markdown code fence around it.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let Some(inner) = text.strip_prefix("```") else { return text };
    let inner = inner.strip_prefix("json").unwrap_or(inner);
    inner.strip_suffix("```").unwrap_or(inner).trim()
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
