//! The laws of tool schemas and of the arguments that are checked against them: for fuzz targets (`fuzz/` in the repository) and for tests
//! with known inputs. Only with the feature `fuzzing`; not part of the interface.

use serde_json::{Map, Value};

use crate::ArgumentSchema;

/// The laws, by the names of their fuzz targets.
pub const LAWS: &[(&str, fn(&[u8]))] = &[("tool_schemas", tool_schemas)];

/// The first line is a schema, the others are arguments. The work always ends: a schema compiles or is refused, arguments pass or are
/// refused, and arguments that pass do so again in their coerced form.
///
/// # Panics
/// If a law is broken.
pub fn tool_schemas(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let mut lines = text.lines();
    let Some(Ok(schema)) = lines.next().map(serde_json::from_str::<Value>) else { return };
    let is_usable = ArgumentSchema::try_compile(&schema).is_ok();
    let compiled = ArgumentSchema::new(&schema);
    for line in lines {
        let Ok(arguments) = serde_json::from_str::<Map<String, Value>>(line) else { continue };
        match compiled.check("t", arguments.clone()) {
            Ok(passed) if !is_usable => assert_eq!(passed, Value::Object(arguments), "{schema}"),
            Ok(Value::Object(passed)) => {
                assert_eq!(compiled.check("t", passed.clone()), Ok(Value::Object(passed)), "{schema}");
            }
            Ok(other) => assert!(other.is_object(), "{schema} made {other} of arguments"),
            Err(text) => assert!(text.starts_with("Validation failed for tool \"t\":\n  - "), "{text}"),
        }
    }
}

#[cfg(test)]
#[path = "../../../../tests/fuzz/src/found.rs"]
mod found;

#[test]
fn inputs_that_were_found() {
    found::check(LAWS);
}
