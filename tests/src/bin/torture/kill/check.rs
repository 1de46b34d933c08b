//! Compares the files of a home with what was acknowledged.

use std::{collections::HashSet, fs};

use agentd_e2e::Home;
use serde_json::Value;

use super::{
    Counts, Violation,
    file::SessionFile,
    leftovers, model_server,
    record::{Model, Session},
};

/// Looks at everything on the disk while no daemon runs.
pub(crate) fn disk(home: &Home, model: &mut Model, counts: &Counts) -> Vec<Violation> {
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
    let temporary = leftovers::temporary_files(home.root());
    // Several may have been at the same file when they were killed.
    if temporary.len() as u64 > 8 + model.kills {
        report("temporary files do not pile up", temporary.join(", "));
    }
    counts.add("temporary files", temporary.len() as u64);
    violations
}

/// What was acknowledged of a session, and its file.
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

/// What tool calls were said to have done in the project.
fn tools(home: &Home, model: &Model, report: &mut impl FnMut(&'static str, String)) {
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

/// Files that are written in the place of others: whole, the old or the new.
fn settings(home: &Home, model: &Model, report: &mut impl FnMut(&'static str, String)) {
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
