//! Pages of whole sessions, read by a parser.

mod hostile;
mod kinds;

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    default_file_name,
    testing::{Seen, page_of, read},
};

/// The header of a session file.
pub(super) fn header() -> String {
    json!({"type": "session", "version": 3, "id": "s1", "timestamp": "2026-11-21T03:28:11.123Z", "cwd": "/home/u/app"})
        .to_string()
}

/// An entry that follows another one.
pub(super) fn entry(id: &str, parent: Option<&str>, mut fields: Value) -> String {
    fields["id"] = json!(id);
    fields["parentId"] = json!(parent);
    if fields.get("timestamp").is_none() {
        fields["timestamp"] = json!("2026-11-21T03:28:12.000Z");
    }
    fields.to_string()
}

pub(super) fn message(id: &str, parent: Option<&str>, message: Value) -> String {
    entry(id, parent, json!({"type": "message", "message": message}))
}

pub(super) fn user(id: &str, parent: Option<&str>, text: &str) -> String {
    message(id, parent, json!({"role": "user", "content": text}))
}

pub(super) fn assistant(id: &str, parent: Option<&str>, content: Value) -> String {
    let usage = json!({"input": 1200, "output": 34, "totalTokens": 1234, "cost": {"total": 0.0123}});
    message(
        id,
        parent,
        json!({"role": "assistant", "content": content, "provider": "p", "model": "m", "usage": usage,
        "stopReason": "stop", "durationMs": 1500}),
    )
}

/// A session whose entries follow each other.
pub(super) fn in_a_row(entries: &[Value]) -> Vec<String> {
    let mut lines = vec![header()];
    for (at, fields) in entries.iter().enumerate() {
        let parent = at.checked_sub(1).map(|before| format!("i{before}"));
        lines.push(entry(&format!("i{at}"), parent.as_deref(), fields.clone()));
    }
    lines
}

/// The page of a session, which must be sound HTML.
pub(super) fn seen(lines: &[String]) -> (String, Seen) {
    let page = page_of(lines);
    let seen = read(&page);
    assert!(seen.faults.is_empty(), "{:?}", seen.faults);
    (page, seen)
}

/// What stands between `<main>` and its end.
pub(super) fn main_of(page: &str) -> &str {
    page.split_once("<main>").unwrap().1.split_once("</main>").unwrap().0
}

#[test]
fn the_page_is_named_after_the_session_file() {
    assert_eq!(default_file_name(Path::new("/s/2026_a.b.jsonl")), "pi-session-2026_a.b.html");
    assert_eq!(default_file_name(Path::new("talk")), "pi-session-talk.html");
}
