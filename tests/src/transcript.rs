//! Golden transcripts: what was sent, and every line that came back.
//!
//! A file has one record a line: `> ` before what is sent, `< ` before what must come next, `#` before remarks. Lines are
//! compared as text after normalisation, so the order of keys counts.

use std::{fs, path::PathBuf};

use serde_json::{Map, Value};

use crate::{Daemon, Home};

/// A line of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// Sent unchanged.
    Sent(String),
    /// Awaited, in normalised form.
    Awaited(String),
}

/// The folder of the transcripts.
#[must_use]
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden")
}

/// Reads a transcript of that name.
#[must_use]
pub fn read(name: &str) -> Vec<Record> {
    let path = folder().join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    parse(&text)
}

fn parse(text: &str) -> Vec<Record> {
    let record = |line: &str| match line.split_at_checked(2) {
        Some(("> ", sent)) => Some(Record::Sent(sent.to_owned())),
        Some(("< ", awaited)) => Some(Record::Awaited(awaited.to_owned())),
        _ if line.is_empty() || line.starts_with('#') => None,
        _ => panic!("a transcript line begins with neither of `>`, `<` and `#`: {line}"),
    };
    text.lines().filter_map(record).collect()
}

/// Plays the transcript: sends its lines in their places, and compares everything that comes back.
pub fn play(name: &str, home: &Home, daemon: &mut Daemon) {
    let mut normalizer = Normalizer::new(home);
    let mut played = Vec::new();
    for record in read(name) {
        match record {
            Record::Sent(line) => {
                daemon.send_bytes(format!("{line}\n").as_bytes());
                played.push(format!("> {line}"));
            }
            Record::Awaited(expected) => {
                let got = normalizer.line(&daemon.line());
                // A line written by hand may differ in form from printed JSON.
                let expected: Value = serde_json::from_str(&expected).expect("a transcript line holds JSON");
                let expected = expected.to_string();
                assert_eq!(
                    got,
                    expected,
                    "{name} differs from what came. Until then:\n{}\nIt came:\n< {got}\nThe transcript has:\n< {expected}",
                    played.join("\n")
                );
                played.push(format!("< {got}"));
            }
        }
    }
}

/// Normalises the records of one transcript. Ids keep their identity: the first one becomes `<id-1>`, and so on.
pub struct Normalizer {
    root: String,
    ids: Vec<String>,
}

impl Normalizer {
    /// A normaliser for records of a daemon in `home`.
    #[must_use]
    pub fn new(home: &Home) -> Self {
        Self { root: home.root().display().to_string(), ids: Vec::new() }
    }

    /// The record in the form of a transcript.
    #[must_use]
    pub fn line(&mut self, record: &Value) -> String {
        let mut record = record.clone();
        if record["type"] == "message_start" && record["message"]["role"] == "assistant" {
            // A live snapshot may or may not hold the first deltas.
            if record["message"]["stopReason"] == "pending" {
                record["message"]["content"] = Value::Array(Vec::new());
                record["message"]["usage"] = "<usage>".into();
            }
        }
        if record["type"] == "message_update" {
            record["usage"] = "<usage>".into();
            // Cumulative updates hold the answer so far.
            for pointer in ["/message/usage", "/assistantMessageEvent/partial/usage"] {
                if let Some(usage) = record.pointer_mut(pointer) {
                    *usage = "<usage>".into();
                }
            }
        }
        self.value(&mut record);
        record.to_string()
    }

    fn value(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) => self.object(fields),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::String(text) => *text = self.text(text),
            _ => {}
        }
    }

    fn object(&mut self, fields: &mut Map<String, Value>) {
        let is_tool = fields.contains_key("parameters") && fields.contains_key("name");
        // Only ids of entries are replaced; ids of commands and of tool calls are the test's own.
        let is_entry = fields.contains_key("parentId");
        for (name, value) in fields.iter_mut() {
            match (name.as_str(), &*value) {
                ("timestamp" | "durationMs" | "wall_time_seconds", Value::Number(_)) => *value = 0.into(),
                ("timestamp", Value::String(_)) => *value = "<time>".into(),
                ("sections", Value::Object(_)) => {
                    let sections = value.as_object_mut().into_iter().flatten();
                    sections.for_each(|(_, text)| *text = "…".into());
                }
                ("description" | "parameters", _) if is_tool => *value = "…".into(),
                // The presence of a hint counts, not its words.
                ("hint", Value::String(_)) => *value = "…".into(),
                ("sessionId" | "parentId" | "entryId" | "leafId" | "targetId", Value::String(id)) => {
                    *value = self.id(id).into();
                }
                // Replaced below, after the parent's id.
                ("id", _) if is_entry => {}
                _ => self.value(value),
            }
        }
        if let Some(Value::String(id)) = fields.get_mut("id").filter(|_| is_entry) {
            *id = self.id(id);
        }
    }

    fn id(&mut self, id: &str) -> String {
        let known = self.ids.iter().position(|known| known == id);
        let index = known.unwrap_or_else(|| {
            self.ids.push(id.to_owned());
            self.ids.len() - 1
        });
        format!("<id-{}>", index + 1)
    }

    /// Replaces paths below the home, and ids already seen in them.
    fn text(&self, text: &str) -> String {
        let mut text = text.replace(&self.root, "<home>");
        for (index, id) in self.ids.iter().enumerate() {
            text = text.replace(id.as_str(), &format!("<id-{}>", index + 1));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn remarks_and_empty_lines_are_skipped() {
        let records = parse("# remark\n\n> {\"a\":1}\n< {}\n");
        assert_eq!(records, [Record::Sent("{\"a\":1}".into()), Record::Awaited("{}".into())]);
    }

    #[test]
    fn what_differs_is_replaced_and_identity_kept() {
        let home = Home::new();
        let mut normalizer = Normalizer::new(&home);
        let path = home.project().join("a");
        let entry = json!({"type": "message", "id": "ab", "parentId": null, "timestamp": "2026-01-01T00:00:00.000Z",
                           "message": {"timestamp": 5, "durationMs": 7, "text": path.display().to_string()}});
        assert_eq!(
            normalizer.line(&entry),
            r#"{"type":"message","id":"<id-1>","parentId":null,"timestamp":"<time>","message":{"timestamp":0,"durationMs":0,"text":"<home>/project/a"}}"#
        );
        let next = json!({"id": "cd", "parentId": "ab"});
        assert_eq!(normalizer.line(&next), r#"{"id":"<id-2>","parentId":"<id-1>"}"#);
        assert_eq!(normalizer.line(&json!({"id": "ab"})), r#"{"id":"<id-1>"}"#);
        assert_eq!(normalizer.line(&next), r#"{"id":"<id-2>","parentId":"<id-1>"}"#, "the same again");
    }

    #[test]
    fn prompts_and_snapshots_are_the_servers_own() {
        let mut normalizer = Normalizer::new(&Home::new());
        let system = json!({"role": "system", "sections": {"rules": "Be kind."},
                            "toolsAdded": [{"name": "read", "description": "d", "parameters": {"type": "object"}}]});
        assert_eq!(
            normalizer.line(&system),
            r#"{"role":"system","sections":{"rules":"…"},"toolsAdded":[{"name":"read","description":"…","parameters":"…"}]}"#
        );
        let start = json!({"type": "message_start",
                           "message": {"role": "assistant", "content": [1], "usage": {}, "stopReason": "pending"}});
        assert_eq!(
            normalizer.line(&start),
            r#"{"type":"message_start","message":{"role":"assistant","content":[],"usage":"<usage>","stopReason":"pending"}}"#
        );
    }
}
