//! Session files as they are on disk, and what was acknowledged and must be in them.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
    time::Instant,
};

use serde_json::{Value, value::RawValue};

use super::{client::Line, shared::Violation};

/// A line that is an entry.
pub(crate) struct Entry {
    pub(crate) value: Value,
    /// The text of the message; empty for other entries.
    pub(crate) message: String,
}

/// A session file.
pub(crate) struct SessionFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
    pub(crate) header: Value,
    pub(crate) entries: Vec<Entry>,
    /// Lines that are no JSON.
    pub(crate) broken: usize,
}

/// The raw members of an object.
pub(crate) fn members(text: &str) -> HashMap<String, Box<RawValue>> {
    serde_json::from_str(text).unwrap_or_default()
}

/// The raw member `message` of a line.
pub(crate) fn message(line: &str) -> String {
    members(line).remove("message").map(|raw| raw.get().to_owned()).unwrap_or_default()
}

impl SessionFile {
    /// Reads a file; the header is `null` if it is missing.
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

    /// Returns `true` for a version that is converted when opened.
    pub(crate) fn is_old(&self) -> bool {
        self.header["version"] != 3
    }

    /// The faults of the file itself.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.header.is_null() {
            // Nothing, or a part of the header, was written: the session was never acknowledged.
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
            // Two equal commands that one crash interrupted get the same text.
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

    /// Calls of the last entry's turn without a result on any branch: navigation to a point between a call and its result
    /// leaves the call open.
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

/// A command with a key that was answered with success.
#[derive(Debug, Clone)]
pub(crate) struct Keyed {
    pub(crate) command: Value,
    pub(crate) data: Value,
}

/// The acknowledged state of one session.
#[derive(Default)]
pub(crate) struct Session {
    pub(crate) path: Option<PathBuf>,
    /// Messages whose end was reported, in the raw form of the events, in order.
    pub(crate) messages: Vec<String>,
    /// Other entries that have to be there: type, member, value.
    pub(crate) entries: Vec<(&'static str, &'static str, Value)>,
    pub(crate) keyed: BTreeMap<String, Keyed>,
    /// The queue was cleared: queued messages may be gone.
    pub(crate) may_be_cleared: bool,
    /// Keys of messages that were queued when it was killed before its first message: only from there on the queue is
    /// kept.
    pub(crate) unkept_keys: HashSet<String>,
    /// Its deletion was requested: it may be gone.
    pub(crate) may_be_gone: bool,
    /// Its deletion was acknowledged.
    pub(crate) is_gone: bool,
    /// It is a copy with messages, which is written before the response.
    pub(crate) has_file: bool,
    /// The content of the file at the last check, which never changes again.
    pub(crate) seen: Vec<u8>,
}

/// The known state of a provider's key.
#[derive(Debug, Default)]
pub(crate) struct Login {
    /// All keys that were ever to be stored.
    pub(crate) asked: Vec<Value>,
    /// A key was acknowledged as stored.
    pub(crate) is_stored: bool,
    /// A removal was requested: it may be gone.
    pub(crate) may_be_gone: bool,
}

/// The acknowledged state of a home.
#[derive(Default)]
pub(crate) struct Acknowledged {
    pub(crate) sessions: BTreeMap<String, Session>,
    /// Files that a tool call has written, with their content.
    pub(crate) written: BTreeMap<String, String>,
    /// Words that an edit has put into the common file.
    pub(crate) edited: Vec<String>,
    pub(crate) kills: u64,
    /// Files that an export has written.
    pub(crate) exported: Vec<PathBuf>,
    /// Keys that were to be stored, by provider.
    pub(crate) logins: BTreeMap<String, Login>,
    /// The streams at the last kill: session, text, and the time of the last piece.
    pub(crate) streaming: Vec<(String, String, Instant)>,
}

/// The commands and lines of one client of a round.
pub(crate) type Heard = (Vec<Value>, Vec<Line>);

impl Acknowledged {
    /// The session of that id.
    pub(crate) fn session(&mut self, id: &str) -> &mut Session {
        self.sessions.entry(id.to_owned()).or_default()
    }

    /// Applies the lines of a round's clients.
    pub(crate) fn take(&mut self, clients: Vec<Heard>) -> Vec<Violation> {
        let mut violations = Vec::new();
        // Events of a session have one order for all clients.
        let mut events: HashMap<String, BTreeMap<u64, Line>> = HashMap::new();
        // A session that was closed and opened again counts anew.
        let sent = clients.iter().flat_map(|(sent, _)| sent);
        let closed: HashSet<String> = sent
            .filter(|command| command["type"] == "close_session")
            .filter_map(|command| command["sessionId"].as_str().map(str::to_owned))
            .collect();
        for (sent, lines) in clients {
            for command in &sent {
                let Some(provider) = command["provider"].as_str() else { continue };
                let login = self.logins.entry(provider.to_owned()).or_default();
                match command["type"].as_str() {
                    Some("login") => login.asked.push(command["key"].clone()),
                    Some("logout") => login.may_be_gone = true,
                    _ => {}
                }
            }
            for command in &sent {
                if let (Some("close_session" | "clear_queue"), Some(id)) =
                    (command["type"].as_str(), command["sessionId"].as_str())
                {
                    self.session(id).may_be_cleared = true;
                }
            }
            let mut refused: Vec<String> = Vec::new();
            let sent: HashMap<&str, &Value> =
                sent.iter().filter_map(|command| Some((command["id"].as_str()?, command))).collect();
            for line in lines {
                let value = &line.value;
                if value.is_null() {
                    violations.push(Violation { promise: "lines are JSON", seen: line.raw.clone() });
                } else if value["type"] == "response" {
                    if value["command"] == "delete_session" && value["success"] == false {
                        refused.extend(value["id"].as_str().map(str::to_owned));
                    }
                    if let Some(command) = value["id"].as_str().and_then(|id| sent.get(id)) {
                        self.answered(command, value, &mut violations);
                    }
                } else if let (Some(id), Some(seq)) = (value["sessionId"].as_str(), value["seq"].as_u64())
                    && !closed.contains(id)
                {
                    let of_session = events.entry(id.to_owned()).or_default();
                    if let Some(other) = of_session.get(&seq) {
                        if other.raw != line.raw {
                            let seen = format!("{} and {}", other.raw.trim_end(), line.raw.trim_end());
                            violations.push(Violation { promise: "one order of events", seen });
                        }
                    } else {
                        of_session.insert(seq, line);
                    }
                }
            }
            // A command without a response may have been done.
            for (id, command) in sent.iter().filter(|(_, command)| command["type"] == "delete_session") {
                if let Some(session) =
                    command["sessionId"].as_str().filter(|_| !refused.iter().any(|refused| refused == id))
                {
                    self.session(session).may_be_gone = true;
                }
            }
        }
        for (id, events) in events {
            let mut text = String::new();
            let mut last = None;
            for line in events.values() {
                let delta = &line.value["assistantMessageEvent"];
                match line.value["type"].as_str().unwrap_or_default() {
                    "message_start" => text.clear(),
                    "message_update" if delta["type"] == "text_delta" => {
                        text += delta["delta"].as_str().unwrap_or_default();
                        last = Some(line.at);
                    }
                    "message_end" => {
                        text.clear();
                        last = None;
                        self.ended(&id, line);
                    }
                    _ => {}
                }
            }
            if let Some(last) = last.filter(|_| !text.is_empty()) {
                self.streaming.push((id, text, last));
            }
        }
        violations
    }

    fn ended(&mut self, id: &str, line: &Line) {
        let message = &line.value["message"];
        if message["errorMessage"]
            .as_str()
            .is_some_and(|text| text.starts_with("cannot write to the session file"))
        {
            // The event itself says that it could not be stored.
            return;
        }
        self.session(id).messages.push(self::message(&line.raw));
        let text = message["content"][0]["text"].as_str().unwrap_or_default();
        if message["role"] == "toolResult" && message["isError"] == false {
            // The load derives names of files and words from call ids.
            let call = message["toolCallId"].as_str().unwrap_or_default();
            if message["toolName"] == "write" && !text.is_empty() {
                self.written.insert(format!("w-{call}.txt"), format!("whole {call}\n"));
            } else if message["toolName"] == "edit" {
                self.edited.push(format!("x-{call}"));
            }
        }
    }

    fn answered(&mut self, command: &Value, response: &Value, violations: &mut Vec<Violation>) {
        let done = response["success"] == true;
        let data = &response["data"];
        let kind = command["type"].as_str().unwrap_or_default();
        if !done && response["code"] == "internal" {
            violations
                .push(Violation { promise: "no internal errors", seen: format!("{command} {response}") });
        }
        if let (Some(id), Some(path)) = (data["sessionId"].as_str(), data["sessionFile"].as_str()) {
            self.session(id).path = Some(path.into());
            self.session(id).has_file |= command["isCopy"] == true;
        }
        if kind == "login" && done {
            let provider = command["provider"].as_str().unwrap_or_default();
            self.logins.entry(provider.to_owned()).or_default().is_stored = true;
        }
        let Some(id) = command["sessionId"].as_str() else { return };
        if kind == "delete_session" {
            self.session(id).is_gone |= done;
        }
        if !done {
            return;
        }
        let session = self.session(id);
        match kind {
            "set_session_name" => session.entries.push(("session_info", "name", command["name"].clone())),
            "set_label" => session.entries.push(("label", "label", command["label"].clone())),
            "set_model" => session.entries.push(("model_change", "modelId", command["modelId"].clone())),
            "compact" => session.entries.push(("compaction", "summary", data["summary"].clone())),
            "export_html" => self.exported.extend(data["path"].as_str().map(PathBuf::from)),
            _ => {}
        }
        if let Some(key) = command["requestKey"].as_str() {
            let keyed = Keyed { command: command.clone(), data: data.clone() };
            self.session(id).keyed.entry(key.to_owned()).or_insert(keyed);
        }
    }
}
