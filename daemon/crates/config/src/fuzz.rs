//! Laws for every file that configures a session: for fuzz targets (`fuzz/` in the repository) and for the tests that read
//! known inputs again. Present only with the feature `fuzzing`; no part of the interface.
//!
//! Each function takes any bytes and panics when they break the law.

use agentd_protocol::resources::Diagnostic;
use serde_json::{Map, Value};

use crate::{
    json_comments, json_edit,
    json_file::{self, JsonDocument},
};

/// The laws, by the names of their fuzz targets.
pub const LAWS: &[(&str, fn(&[u8]))] = &[
    ("json_edits", json_edits),
    ("settings", crate::settings::fuzz::settings),
    ("models_files", crate::models::fuzz::models_files),
    ("model_names", crate::models::fuzz::model_names),
    ("catalogues", crate::models::fuzz::catalogues),
    ("stored_catalogues", crate::models::fuzz::stored_catalogues),
    ("front_matter", crate::resources::fuzz::front_matter),
    ("templates", crate::resources::fuzz::templates),
];

/// A value that stands for a secret in the seeds: no message shows it.
pub(crate) const SECRET: &str = "hush-hush";

/// JSON with comments is read as it would be without them, every byte at its place; a change of one member changes that alone, and
/// what was JSON stays JSON.
pub fn json_edits(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let stripped = json_comments::strip(&text);
    assert_eq!(stripped.len(), text.len(), "every byte stays where it is");
    let breaks = |text: &str| {
        text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect::<Vec<_>>()
    };
    assert_eq!(breaks(&stripped), breaks(&text), "lines stay");
    let read = json_file::parse(&text);
    if let Ok(exact) = serde_json::from_str::<Value>(&text) {
        assert_eq!(read.as_ref().ok(), Some(&exact), "JSON is JSON");
    }
    let line = json_edit::line_of(&text, &[json_edit::JsonStep::Key("a"), json_edit::JsonStep::Item(1)]);
    assert!(line >= 1 && line as usize <= text.split('\n').count());
    let Ok(Value::Object(before)) = read else { return };
    let parsed = |text: &str| match json_file::parse(text) {
        Ok(Value::Object(members)) => members,
        other => panic!("{other:?}: {text}"),
    };
    let new = Value::from("new \"one\"\n");
    for path in [&["a"][..], &["compaction", "enabled"], &["\u{e9}/*", "a", "b"]] {
        let Some(after) = json_edit::set(&text, path, &new) else { continue };
        let mut expected = before.clone();
        put(&mut expected, path, new.clone());
        assert_eq!(parsed(&after), expected, "{path:?} set in {text}: {after}");
    }
    if let Some(after) = json_edit::remove(&text, &["a"]) {
        let mut expected = before.clone();
        expected.shift_remove("a");
        assert_eq!(parsed(&after), expected, "removed from {text}: {after}");
    }
    let items = [Value::from(1), Value::from("x")];
    if let Some(after) = json_edit::append(&text, &["a"], &items) {
        let mut expected = before;
        match expected.get_mut("a") {
            Some(Value::Array(list)) => list.extend(items),
            other => panic!("a list where there is {other:?}: {text}"),
        }
        assert_eq!(parsed(&after), expected, "appended to {text}: {after}");
    }
}

fn put(object: &mut Map<String, Value>, path: &[&str], value: Value) {
    let (key, below) = match path {
        [key] => return drop(object.insert((*key).to_owned(), value)),
        [key, below @ ..] => (*key, below),
        [] => return,
    };
    let inner = object.entry(key).or_insert_with(|| Map::new().into());
    if !inner.is_object() {
        *inner = Map::new().into();
    }
    if let Value::Object(inner) = inner {
        put(inner, below, value);
    }
}

/// A diagnostic names a line of the file, is no longer than a screen, and quotes no secret.
pub(crate) fn check_told(diagnostics: &[Diagnostic], input: &[u8]) {
    let lines = input.iter().filter(|byte| **byte == b'\n').count() + 1;
    let secret = keeps_a_secret(input);
    for told in diagnostics {
        assert!(told.line.is_none_or(|line| line >= 1 && line as usize <= lines), "{told} of {lines} lines");
        assert!(told.message.len() < 4096, "{told}");
        assert!(!secret || !told.to_string().contains(SECRET), "{told}");
    }
}

/// Returns whether the secret stands only in values of JSON, which must not be shown. Names are shown.
pub(crate) fn keeps_a_secret(input: &[u8]) -> bool {
    fn in_a_name(value: &Value) -> bool {
        match value {
            Value::Object(members) => {
                members.iter().any(|(name, value)| name.contains(SECRET) || in_a_name(value))
            }
            Value::Array(items) => items.iter().any(in_a_name),
            _ => false,
        }
    }
    let text = String::from_utf8_lossy(input);
    json_file::parse(&text).map_or(true, |value| !in_a_name(&value))
}

/// The document in the bytes; a problem names a place in them.
pub(crate) fn document(input: &[u8]) -> Result<Option<JsonDocument>, json_file::JsonFileError> {
    let read = json_file::document(std::path::Path::new("x.json"), input);
    if let Err(json_file::JsonFileError::Syntax { line, column, what, .. }) = &read {
        let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
        let Some(of) = line.checked_sub(1).and_then(|at| lines.get(at)) else {
            panic!("line {line}: {what}")
        };
        assert!(*column <= of.len() + 1, "line {line}, column {column}: {what}");
    }
    read.map(Some)
}

#[cfg(test)]
#[path = "../../../../tests/fuzz/src/found.rs"]
mod found;

#[test]
fn inputs_that_were_found() {
    found::check(LAWS);
}
