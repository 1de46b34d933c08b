//! Asks a daemon that was just started about everything that the ones before acknowledged.

use std::time::Duration;

use agentd_e2e::{Home, Random};
use serde_json::{Value, json};

use super::{
    Counts, Violation,
    client::Client,
    file::SessionFile,
    model_server::PROBE,
    record::{Model, Session},
};

/// How long an answer may take, on a machine that does much else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Sessions that are opened at each start.
const SESSIONS: usize = 6;

/// Keys that are sent again, of each session.
const KEYS: usize = 3;

/// A session that is open.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    pub(crate) id: String,
}

/// What came of the look.
pub(crate) struct Looked {
    pub(crate) violations: Vec<Violation>,
    pub(crate) open: Vec<Open>,
    /// The daemon lived on until the end of it.
    pub(crate) is_complete: bool,
}

/// Opens sessions and compares. Ends early when the daemon dies.
pub(crate) fn look(
    home: &Home,
    client: &mut Client,
    model: &mut Model,
    random: &mut Random,
    counts: &Counts,
    is_last: bool,
) -> Looked {
    let mut looked = Looked { violations: Vec::new(), open: Vec::new(), is_complete: false };
    let done = (|| {
        let hello = json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}});
        client.call(hello, PATIENCE)?;
        let mut files = home.session_files();
        while files.len() > SESSIONS && !is_last {
            let at = random.index(files.len());
            // One that has to be converted is always among them.
            if files[at].parent().is_none_or(|folder| !folder.ends_with("--old--")) || random.chance(10) {
                files.swap_remove(at);
            }
        }
        let probed = if files.is_empty() { 0 } else { random.index(files.len()) };
        for (index, path) in files.iter().enumerate() {
            let before = SessionFile::read(path).ok().filter(|file| !file.header.is_null());
            let Some(before) = before else { continue };
            let opening = json!({"type": "open_session", "cwd": home.project(), "path": path});
            let opened = client.call(opening, PATIENCE)?;
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
            let entries = client.call(json!({"type": "get_entries", "sessionId": id}), PATIENCE)?;
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
                // A copy that was made in the middle of a turn has calls that nobody ran for it; with a ledger beside it, the disk was
                // made to fail, and recovery is yet to come.
                let is_copy = after.header["parentSession"].is_string();
                if !is_copy && !path.with_extension("ledger").exists() {
                    report("every call has a result", open_calls.join(", "));
                }
            }
            let mut session = model.sessions.get_mut(&id);
            if let Some(session) = session.as_deref_mut().filter(|session| session.messages.is_empty()) {
                session.forgotten.extend(session.keyed.keys().cloned());
            }
            for keyed in session.iter().flat_map(|session| session.keyed.values()).take(KEYS) {
                let key = &keyed.command["requestKey"];
                let is_entry = after.entries.iter().any(|entry| entry.value["requestKey"] == *key);
                let waits = keyed.data["disposition"] == "queued";
                let is_forgotten = |it: &Session| {
                    it.may_forget || key.as_str().is_some_and(|key| it.forgotten.contains(key))
                };
                let may_forget = session.as_deref().is_none_or(is_forgotten);
                if !is_entry && (!waits || may_forget) {
                    // Nothing came of it, and nobody was told that anything had: it can be sent again.
                    counts.add(free(&keyed.data), 1);
                    continue;
                }
                let mut again = keyed.command.clone();
                again["sessionId"] = json!(id);
                let asking = json!({"type": "get_state", "sessionId": id});
                let waiting = client.call(asking.clone(), PATIENCE)?["data"]["pendingMessageCount"].clone();
                let answer = client.call(again, PATIENCE)?;
                if !is_entry {
                    // The disk may be full in this life, too.
                    if text(&answer["error"]).contains("has to be stored first") {
                        continue;
                    }
                    let then = client.call(asking, PATIENCE)?["data"]["pendingMessageCount"].clone();
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
            let again = client.call(json!({"type": "get_entries", "sessionId": id}), PATIENCE)?;
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

/// What a command is counted as that was answered and left nothing.
fn free(data: &Value) -> &'static str {
    match data["disposition"].as_str() {
        Some("started") => "free keys of started messages",
        Some(_) => "free keys of queued messages",
        None => "free keys of commands",
    }
}

/// The next prompt works.
fn probe(client: &mut Client, id: &str, report: &mut impl FnMut(&'static str, String)) -> Option<()> {
    let from = client.heard();
    let prompt = json!({"type": "prompt", "message": PROBE, "sessionId": id});
    let answer = client.call(prompt, PATIENCE)?;
    // The disk may be full in this life, too, and what it has not taken yet comes first.
    if text(&answer["error"]).contains("has to be stored first") {
        return Some(());
    }
    if answer["success"] != true {
        report("the next prompt works", answer.to_string());
        return Some(());
    }
    let of_session = |line: &Value| line["type"] == "agent_settled" && line["sessionId"] == *id;
    if client.wait(from, PATIENCE, of_session).is_none() {
        if !client.is_closed() {
            report("the next prompt works", "it does not settle".to_owned());
        }
        return Some(());
    }
    let state = client.call(json!({"type": "get_state", "sessionId": id}), PATIENCE)?;
    // A disk that is full may have ended the run.
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
