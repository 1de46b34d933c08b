//! Compares the disk, and a daemon that was started again, with what was acknowledged.

use std::{collections::HashSet, fs, time::Duration};

use agentd_e2e::{Home, Random};
use serde_json::{Value, json};

use super::{
    client::Client,
    daemon,
    model_server::{self, PROBE},
    record::{Acknowledged, Session, SessionFile},
    shared::{Counts, Violation},
};

/// Checks the disk while no daemon runs.
pub(crate) fn disk(home: &Home, model: &mut Acknowledged, counts: &Counts) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut report = |promise, seen: String| violations.push(Violation { promise, seen });
    let mut files: Vec<SessionFile> = Vec::new();
    for path in home.session_files() {
        match SessionFile::read(&path) {
            Ok(file) => files.push(file),
            Err(error) => report("files can be read", format!("{}: {error}", path.display())),
        }
    }
    for file in &files {
        for fault in file.faults() {
            report("files are whole", format!("{}: {fault}", file.path.display()));
        }
        if file.broken as u64 > model.kills {
            let seen = format!(
                "{}: {} lines are broken after {} kills",
                file.path.display(),
                file.broken,
                model.kills
            );
            report("a kill tears one line at most", seen);
        }
    }
    counts.add("broken lines", files.iter().map(|file| file.broken as u64).sum());
    for (id, session) in &mut model.sessions {
        let file = files.iter().find(|file| file.id() == id);
        match file {
            Some(file) => {
                if session.is_gone {
                    report("what was deleted is gone", format!("{}", file.path.display()));
                }
                for (promise, seen) in compare(session, file) {
                    report(promise, format!("{}: {seen}", file.path.display()));
                }
                session.seen.clone_from(&file.bytes);
            }
            None if session.may_be_gone => {}
            None if !session.messages.is_empty() || session.has_file || !session.seen.is_empty() => {
                report(
                    "what was told is in a file",
                    format!("session {id} has no file; of {:?}", session.path),
                );
            }
            None => {}
        }
        if session.is_gone
            && let Some(path) = &session.path
        {
            let folder = path.with_extension("");
            if folder.exists() {
                report("what was deleted is gone", format!("{}", folder.display()));
            }
        }
    }
    tools(home, model, &mut report);
    settings(home, model, &mut report);
    let temporary = daemon::temporary_files(home.root());
    // Several processes may have written one file when they were killed.
    if temporary.len() as u64 > 8 + model.kills {
        report("temporary files do not pile up", temporary.join(", "));
    }
    counts.add("temporary files", temporary.len() as u64);
    violations
}

/// Compares the acknowledged state of a session with its file.
fn compare(session: &Session, file: &SessionFile) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    if !file.bytes.starts_with(&session.seen) {
        let same = file.bytes.iter().zip(&session.seen).take_while(|(one, other)| one == other).count();
        found.push(("a file only grows", format!("byte {same} of {} has changed", session.seen.len())));
    }
    let mut rest = file.entries.iter();
    for message in &session.messages {
        if !rest.any(|entry| entry.message == *message) {
            let promise = if file.entries.iter().any(|entry| entry.message == *message) {
                "messages are in the order in which they were told"
            } else {
                "nothing that was told is lost"
            };
            found.push((promise, message.clone()));
            break;
        }
    }
    let mut keys = HashSet::new();
    for key in file.entries.iter().filter_map(|entry| entry.value["requestKey"].as_str()) {
        if !keys.insert(key) {
            found.push(("a command is done once", format!("{key} is there twice")));
        }
    }
    for (kind, member, value) in &session.entries {
        if !file.entries.iter().any(|entry| entry.value["type"] == *kind && entry.value[member] == *value) {
            found.push(("nothing that was answered is lost", format!("{kind} {member} {value}")));
        }
    }
    found
}

/// Checks the acknowledged effects of tool calls on the project.
fn tools(home: &Home, model: &Acknowledged, report: &mut impl FnMut(&'static str, String)) {
    for (name, content) in &model.written {
        let there = fs::read_to_string(home.project().join(name)).unwrap_or_default();
        if there != *content {
            report("what a tool was said to have written is there", format!("{name}: {there:?}"));
        }
    }
    for entry in fs::read_dir(home.project()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(call) = name.strip_prefix("w-").and_then(|rest| rest.strip_suffix(".txt")) {
            let there = fs::read_to_string(entry.path()).unwrap_or_default();
            if there != format!("whole {call}\n") {
                report("a file is written whole or not at all", format!("{name}: {there:?}"));
            }
        }
    }
    let edited = home.read(model_server::EDITED.0);
    if !edited.ends_with(model_server::EDITED.1) {
        report(
            "a file is changed whole or not at all",
            format!("edited.txt ends with {:?}", edited.lines().last()),
        );
    }
    for word in &model.edited {
        if !edited.lines().any(|line| line == word) {
            report("what a tool was said to have changed is there", word.clone());
        }
    }
    for path in &model.exported {
        let page = fs::read_to_string(home.project().join(path)).unwrap_or_default();
        if !page.trim_end().ends_with("</html>") {
            report("a page that was told is whole", format!("{}: {} bytes", path.display(), page.len()));
        }
    }
}

/// Checks files that are replaced atomically: complete, old or new.
fn settings(home: &Home, model: &Acknowledged, report: &mut impl FnMut(&'static str, String)) {
    for name in ["settings.json", "auth.json", "models.json", "trust.json"] {
        let Ok(text) = fs::read_to_string(home.agent_dir().join(name)) else { continue };
        match serde_json::from_str::<Value>(&text) {
            Ok(value) if value.is_object() => {
                for (provider, login) in model.logins.iter().filter(|_| name == "auth.json") {
                    let key = &value[provider]["key"];
                    let may_be_none = login.may_be_gone || !login.is_stored;
                    if !(key.is_null() && may_be_none || login.asked.contains(key)) {
                        report("what was stored stays", format!("{provider}: {}", value[provider]));
                    }
                }
            }
            _ => report("settings are whole", format!("{name}: {text}")),
        }
    }
}

/// The time limit of a response, on a loaded machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// The number of sessions that are opened at each start.
const SESSIONS: usize = 6;

/// The number of request keys per session that are sent again.
const KEYS: usize = 3;

/// A session that is open.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    pub(crate) id: String,
}

/// The result of a check.
pub(crate) struct Looked {
    pub(crate) violations: Vec<Violation>,
    pub(crate) open: Vec<Open>,
    /// The daemon lived to its end.
    pub(crate) is_complete: bool,
}

/// Opens sessions and compares them. Ends early if the daemon dies.
pub(crate) fn look(
    home: &Home,
    client: &mut Client,
    model: &mut Acknowledged,
    random: &mut Random,
    counts: &Counts,
    is_last: bool,
) -> Looked {
    let mut looked = Looked { violations: Vec::new(), open: Vec::new(), is_complete: false };
    let done = (|| {
        let hello = json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}});
        client.call(hello, TIMEOUT)?;
        let mut files = home.session_files();
        while files.len() > SESSIONS && !is_last {
            let at = random.index(files.len());
            // A session of an old version is always among them.
            if files[at].parent().is_none_or(|folder| !folder.ends_with("--old--")) || random.chance(10) {
                files.swap_remove(at);
            }
        }
        let probed = if files.is_empty() { 0 } else { random.index(files.len()) };
        for (index, path) in files.iter().enumerate() {
            let before = SessionFile::read(path).ok().filter(|file| !file.header.is_null());
            let Some(before) = before else { continue };
            let opening = json!({"type": "open_session", "cwd": home.project(), "path": path});
            let opened = client.call(opening, TIMEOUT)?;
            let mut report = |promise, seen: String| {
                looked.violations.push(Violation { promise, seen: format!("{}: {seen}", path.display()) });
            };
            if opened["success"] != true {
                report("every session opens at once", opened.to_string());
                continue;
            }
            let id = before.id().to_owned();
            let state = &opened["data"];
            for idle in ["isStreaming", "isCompacting"] {
                if state[idle] != false {
                    report("nothing is said to run that does not", state.to_string());
                }
            }
            let entries = client.call(json!({"type": "get_entries", "sessionId": id}), TIMEOUT)?;
            let told = ids(entries["data"]["entries"].as_array());
            let after = SessionFile::read(path).ok()?;
            if !before.is_old() && !after.bytes.starts_with(&before.bytes) {
                report(
                    "opening only adds",
                    format!("{} bytes before, {} after", before.bytes.len(), after.bytes.len()),
                );
            }
            let stored: Vec<String> = after.entries.iter().map(|entry| text(&entry.value["id"])).collect();
            if told != stored {
                report("what is stored is what is told", format!("{told:?} and {stored:?}"));
            }
            let open_calls = after.open_calls();
            if !open_calls.is_empty() {
                counts.add("calls without a result after the start", open_calls.len() as u64);
                // A copy from the middle of a turn has calls that were not run for it; with an intent log beside it, the
                // disk was made to fail, and crash recovery is still to come.
                let is_copy = after.header["parentSession"].is_string();
                let intent_log = fs::metadata(path.with_extension("ledger"));
                if !is_copy && intent_log.map_or(true, |about| about.len() == 0) {
                    report("every call has a result", open_calls.join(", "));
                }
            }
            let mut session = model.sessions.get_mut(&id);
            if let Some(session) = session.as_deref_mut().filter(|session| session.messages.is_empty()) {
                session.unkept_keys.extend(session.keyed.keys().cloned());
            }
            for keyed in session.iter().flat_map(|session| session.keyed.values()).take(KEYS) {
                let key = &keyed.command["requestKey"];
                let is_entry = after.entries.iter().any(|entry| entry.value["requestKey"] == *key);
                let waits = keyed.data["disposition"] == "queued";
                let is_forgotten = |it: &Session| {
                    it.may_be_cleared || key.as_str().is_some_and(|key| it.unkept_keys.contains(key))
                };
                let may_be_cleared = session.as_deref().is_none_or(is_forgotten);
                if !is_entry && (!waits || may_be_cleared) {
                    // It had no effect and was not acknowledged: it can be sent again.
                    counts.add(free(&keyed.data), 1);
                    continue;
                }
                let mut again = keyed.command.clone();
                again["sessionId"] = json!(id);
                let asking = json!({"type": "get_state", "sessionId": id});
                let waiting = client.call(asking.clone(), TIMEOUT)?["data"]["pendingMessageCount"].clone();
                let answer = client.call(again, TIMEOUT)?;
                if !is_entry {
                    // The disk may be full in this life, too.
                    if text(&answer["error"]).contains("has to be stored first") {
                        continue;
                    }
                    let then = client.call(asking, TIMEOUT)?["data"]["pendingMessageCount"].clone();
                    if then != waiting {
                        report(
                            "what was said to wait waits",
                            format!("{}: {waiting} and {then} wait", keyed.command),
                        );
                    }
                    counts.add("waiting messages sent again", 1);
                }
                if answer["success"] != true || answer["data"] != keyed.data {
                    report("a repetition gets the same answer", format!("{} then {answer}", keyed.data));
                }
                counts.add("keys sent again", 1);
            }
            let again = client.call(json!({"type": "get_entries", "sessionId": id}), TIMEOUT)?;
            if ids(again["data"]["entries"].as_array()) != told {
                report("a repetition does nothing", format!("{told:?} then {again}"));
            }
            if index == probed || is_last {
                probe(client, &id, &mut report)?;
            }
            looked.open.push(Open { id });
            counts.add("sessions opened again", 1);
        }
        Some(())
    })();
    looked.is_complete = done.is_some();
    looked
}

/// The count's name for an answered command without an effect.
fn free(data: &Value) -> &'static str {
    match data["disposition"].as_str() {
        Some("started") => "free keys of started messages",
        Some(_) => "free keys of queued messages",
        None => "free keys of commands",
    }
}

/// Checks that the next prompt works.
fn probe(client: &mut Client, id: &str, report: &mut impl FnMut(&'static str, String)) -> Option<()> {
    let from = client.heard();
    let prompt = json!({"type": "prompt", "message": PROBE, "sessionId": id});
    let answer = client.call(prompt, TIMEOUT)?;
    // The disk may be full in this life, too, and unstored entries come first.
    if text(&answer["error"]).contains("has to be stored first") {
        return Some(());
    }
    if answer["success"] != true {
        report("the next prompt works", answer.to_string());
        return Some(());
    }
    let of_session = |line: &Value| line["type"] == "agent_settled" && line["sessionId"] == *id;
    if client.wait(from, TIMEOUT, of_session).is_none() {
        if !client.is_closed() {
            report("the next prompt works", "it does not settle".to_owned());
        }
        return Some(());
    }
    let state = client.call(json!({"type": "get_state", "sessionId": id}), TIMEOUT)?;
    // A full disk may have ended the run.
    let failed = |line: &Value| line["sessionId"] == *id && line["message"]["stopReason"] == "error";
    let is_whole = client.wait(from, Duration::ZERO, failed).is_none();
    if is_whole && state["data"]["pendingMessageCount"] != 0 {
        report("what waits is delivered by the next run", state.to_string());
    }
    Some(())
}

fn ids(entries: Option<&Vec<Value>>) -> Vec<String> {
    entries.into_iter().flatten().map(|entry| text(&entry["id"])).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
