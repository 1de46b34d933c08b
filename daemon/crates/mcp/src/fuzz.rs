//! Laws for what servers send and `mcp.json` holds: for fuzz targets (`fuzz/` in the repository) and for the tests that read known inputs again.
//! Present only with the feature `fuzzing`; no part of the interface.
//!
//! Each function takes any bytes and panics when they break the law.

use std::path::Path;

use reqwest::Url;
use serde_json::{Map, Value};

use crate::{
    config, definition::ToolDefinition, elicitation, header_arguments, message, oauth, result, revision,
    sse::SseReader,
};

/// The laws, by the names of their fuzz targets.
pub const LAWS: &[(&str, fn(&[u8]))] = &[
    ("mcp_messages", mcp_messages),
    ("mcp_events", mcp_events),
    ("mcp_tools", mcp_tools),
    ("mcp_forms", mcp_forms),
    ("mcp_entries", mcp_entries),
    ("mcp_sign_ins", mcp_sign_ins),
];

/// A value that stands for a secret in the seeds: no message shows it.
const SECRET: &str = "hush-hush";

/// A message is read or refused without a quote, and its result becomes contents of a known kind.
pub fn mcp_messages(input: &[u8]) {
    let _ = message::refusal(input);
    match message::read(input) {
        Ok(message::Incoming::Response { outcome, .. }) => {
            let _ = revision::verdict(outcome.as_ref());
            if let Ok(result) = &outcome {
                let _ = revision::server_info(result);
            }
            if let Err(error) = outcome {
                let _ = elicitation::required_pages(&error.data);
            }
        }
        Ok(_) => {}
        Err(why) => assert!(!why.contains(SECRET), "{why}"),
    }
    let Ok(Value::Object(result)) = serde_json::from_slice(input) else { return };
    for block in result.get("content").and_then(Value::as_array).into_iter().flatten() {
        result::fuzz_block(block);
    }
}

/// Events do not depend on how their bytes are cut.
pub fn mcp_events(input: &[u8]) {
    let (mut whole, mut parts) = (SseReader::default(), SseReader::default());
    let Ok(expected) = whole.push(input) else { return };
    let size = 1 + input.first().map_or(0, |first| usize::from(*first) % 7);
    let mut found = Vec::new();
    for part in input.chunks(size) {
        let events = parts.push(part);
        assert!(events.is_ok(), "an event is longer than in the whole");
        found.extend(events.into_iter().flatten());
    }
    assert_eq!((found, parts.last_id(), parts.retry()), (expected, whole.last_id(), whole.retry()));
}

/// A tool that is taken has a schema of type `object`, and arguments whose headers differ; the others are refused for a reason.
pub fn mcp_tools(input: &[u8]) {
    let Ok(tool) = serde_json::from_slice::<Value>(input) else { return };
    match ToolDefinition::read(&tool, true) {
        Err(why) => assert!(!why.is_empty()),
        Ok(definition) => {
            assert!(definition.input_schema["type"] == "object" && !definition.name.is_empty());
            let call = tool.get("call").unwrap_or(&Value::Null);
            let mut names: Vec<String> = header_arguments::values(&definition.header_arguments, call)
                .into_iter()
                .map(|(name, _)| name.to_ascii_lowercase())
                .collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "two headers of one name");
        }
    }
}

/// What is typed into a form fits the form, and no default is of another kind.
pub fn mcp_forms(input: &[u8]) {
    let Ok(form) = serde_json::from_slice::<Value>(input) else { return };
    let answer = form.get("answer").and_then(Value::as_str).unwrap_or_default();
    elicitation::fuzz_form(form.get("requestedSchema"), answer);
}

/// An entry of `mcp.json` counts, or is refused without a quote of what could be a secret.
pub fn mcp_entries(input: &[u8]) {
    let Ok(Value::Object(servers)) = serde_json::from_slice(input) else { return };
    for (name, entry) in &servers {
        let keys = |entry: &Map<String, Value>| {
            // Names of keys, of variables and of headers are shown.
            entry.iter().any(|(key, value)| {
                key.contains(SECRET)
                    || value.as_object().is_some_and(|members| members.keys().any(|key| key.contains(SECRET)))
            })
        };
        let shows_name = name.contains(SECRET) || entry.as_object().is_some_and(keys);
        if let Err(why) = config::fuzz_entry(name, entry, Path::new("/mcp.json"))
            && !shows_name
        {
            assert!(!why.contains(SECRET), "{why}");
        }
    }
}

/// Challenges and metadata are read whatever they are; metadata that counts is of the server that was asked.
pub fn mcp_sign_ins(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let _ = oauth::Challenge::read(&text);
    let Ok(Value::Object(document)) = serde_json::from_slice(input) else { return };
    if let Ok(server) = Url::parse("https://mcp.example/deep/mcp") {
        oauth::fuzz_metadata(&document, &server);
    }
}

#[cfg(test)]
#[path = "../../../../tests/fuzz/src/found.rs"]
mod found;

#[test]
fn inputs_that_were_found() {
    found::check(LAWS);
}
