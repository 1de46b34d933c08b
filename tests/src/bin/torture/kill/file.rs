//! A session file as it is on the disk.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::{Value, value::RawValue};

/// A line that is an entry.
pub(crate) struct Entry {
    pub(crate) value: Value,
    /// The message as it stands there; empty for what is no message.
    pub(crate) message: String,
}

/// A file.
pub(crate) struct SessionFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
    pub(crate) header: Value,
    pub(crate) entries: Vec<Entry>,
    /// Lines that are no JSON.
    pub(crate) broken: usize,
}

/// The members of an object as they stand there.
pub(crate) fn members(text: &str) -> HashMap<String, Box<RawValue>> {
    serde_json::from_str(text).unwrap_or_default()
}

/// The member `message` of a line, as it stands there.
pub(crate) fn message(line: &str) -> String {
    members(line).remove("message").map(|raw| raw.get().to_owned()).unwrap_or_default()
}

impl SessionFile {
    /// Reads it; a file without a header has `null` for one.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let bytes = fs::read(path)?;
        let text = String::from_utf8_lossy(&bytes);
        let mut file = Self {
            path: path.to_owned(),
            header: Value::Null,
            entries: Vec::new(),
            broken: 0,
            bytes: Vec::new(),
        };
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match serde_json::from_str::<Value>(line) {
                Ok(value) if file.header.is_null() && value["type"] == "session" => file.header = value,
                Ok(value) if value.is_object() => {
                    let message = if value["type"] == "message" { message(line) } else { String::new() };
                    file.entries.push(Entry { value, message });
                }
                _ => file.broken += 1,
            }
        }
        drop(text);
        file.bytes = bytes;
        Ok(file)
    }

    /// The session's id.
    pub(crate) fn id(&self) -> &str {
        self.header["id"].as_str().unwrap_or_default()
    }

    /// Whether it is of a version that is converted when it is opened.
    pub(crate) fn is_old(&self) -> bool {
        self.header["version"] != 3
    }

    /// What is wrong with it in itself.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.header.is_null() {
            // Nothing was written, or not even the header whole: nobody was told of this session.
            if !self.entries.is_empty() {
                faults.push("entries without a header".to_owned());
            }
            return faults;
        }
        if self.is_old() {
            return faults;
        }
        let mut ids = HashSet::new();
        let mut messages = HashMap::new();
        let mut keys = HashSet::new();
        let mut results = HashSet::new();
        for Entry { value, message } in &self.entries {
            let id = value["id"].as_str().unwrap_or_default();
            if let Some(parent) = value["parentId"].as_str()
                && !ids.contains(parent)
            {
                faults.push(format!("entry {id} has the parent {parent}, which does not stand before it"));
            }
            if id.is_empty() || !ids.insert(id) {
                faults.push(format!("the id \"{id}\" is there twice, or none: {value}"));
            }
            // Two commands of the same text that one crash interrupted are told of in the same words.
            let of_a_crash = value["recovered"].is_string() && value["message"]["role"] == "bashExecution";
            if !message.is_empty()
                && !of_a_crash
                && let Some(first) = messages.insert(message.as_str(), id)
            {
                faults.push(format!("the entries {first} and {id} are the same message: {message}"));
            }
            if let Some(key) = value["requestKey"].as_str()
                && !keys.insert(key)
            {
                faults.push(format!("the key {key} is there twice"));
            }
            // Each branch answers its calls; this load makes no call on two branches.
            if let Some(call) = value["message"]["toolCallId"].as_str()
                && !results.insert(call)
            {
                faults.push(format!("the call {call} has two results"));
            }
        }
        faults
    }

    /// Calls of the turn that the last entry belongs to that nothing answers, on any branch: who goes back to a place between a call
    /// and its result goes on without that.
    pub(crate) fn open_calls(&self) -> Vec<String> {
        let parents: HashMap<&str, &Value> = self
            .entries
            .iter()
            .filter_map(|entry| Some((entry.value["id"].as_str()?, &entry.value)))
            .collect();
        let mut at = self.entries.last().map(|entry| &entry.value);
        let answered: HashSet<&str> =
            self.entries.iter().filter_map(|entry| entry.value["message"]["toolCallId"].as_str()).collect();
        let mut called = Vec::new();
        while let Some(entry) = at {
            let message = &entry["message"];
            if message["role"] == "user" {
                break;
            }
            let stopped = ["error", "aborted"].iter().any(|reason| message["stopReason"] == *reason);
            for block in message["content"].as_array().into_iter().flatten() {
                if block["type"] == "toolCall" && !stopped {
                    called.extend(block["id"].as_str());
                }
            }
            at = entry["parentId"].as_str().and_then(|parent| parents.get(parent).copied());
        }
        called.retain(|call| !answered.contains(call));
        called.into_iter().map(str::to_owned).collect()
    }
}
