//! Files so long that their messages stay in them: nothing else is different.

use std::fmt::Write as _;

use agentd_protocol::Json;

use super::*;
use crate::{Context, Entry, NewEntry, StatsCounter, copy_branch};

const HEADER: &str =
    r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}"#;

fn store() -> Store {
    Store::new(StoreOptions::default())
}

fn new() -> NewSession {
    NewSession::new("/new", 1_000)
}

/// Lines of every form, one the parent of the next: as agentd and pi write them, as other programs may, and longer than what is read at once.
fn text() -> Vec<u8> {
    let mut text = format!("\u{feff}{HEADER}\n").into_bytes();
    let mut parent = "null".to_owned();
    for at in 0..6_000 {
        let id = format!("{at:08x}");
        let words = "Grüße und mehr ".repeat(if at % 500 == 7 { 6_000 } else { at % 60 });
        let message = match at % 3 {
            0 => format!(
                r#"{{"role":"user","content":"{at} a question that is not short {words}","timestamp":{at}}}"#
            ),
            1 => format!(
                r#"{{"role":"assistant","content":[{{"type":"text","text":"{words}"}},{{"type":"toolCall","id":"c{at}","name":"read","arguments":{{}}}}],"api":"a","provider":"p","model":"m{at}","usage":{{"input":{at},"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":2,"cost":{{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0.5}}}},"stopReason":"toolUse","timestamp":{at}}}"#
            ),
            _ => format!(
                r#"{{"role":"toolResult","toolCallId":"c{at}","toolName":"read","content":[{{"type":"text","text":"{words}"}}],"isError":false,"timestamp":{at}}}"#
            ),
        };
        let time = format!("2026-01-02T03:04:{:02}.{:03}Z", at % 60, at % 1000);
        let line = match at % 11 {
            0 => format!(
                r#"{{"id":"{id}","type":"message","parentId":{parent},"timestamp":"{time}","message":{message}}}"#
            ),
            1 => format!(
                r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"{time}","message":{message},"requestKey":"k{at}"}}"#
            ),
            2 => format!(
                r#" {{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-01-02","message": {message} }}"#
            ),
            3 => format!(
                r#"{{"type":"custom","customType":"c","data":{message},"id":"{id}","parentId":{parent},"timestamp":"{time}"}}"#
            ),
            _ => format!(
                r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"{time}","message":{message}}}"#
            ),
        };
        text.extend_from_slice(line.as_bytes());
        text.extend_from_slice(match at % 13 {
            0 => b"\r\n",
            1 => b"\n\0\0\0",
            _ => b"\n",
        });
        parent = format!("\"{id}\"");
    }
    text
}

fn opened() -> (tempfile::TempDir, PathBuf, OpenSession) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    std::fs::write(&path, text()).unwrap();
    assert!(path.metadata().unwrap().len() > LONG_FILE_BYTES);
    let session = store().open(&path, new()).unwrap();
    (dir, path, session)
}

/// All that an entry tells, but for its message as such.
fn told(entry: &Entry) -> String {
    let mut out = String::new();
    let (id, parent, time) = (entry.id(), entry.parent_id(), entry.timestamp());
    write!(out, "{id} {parent:?} {time} {:?} {:?} ", entry.timestamp_ms(), entry.kind()).unwrap();
    write!(out, "{} {:?} {}", entry.line_len(), entry.extra("requestKey"), entry.line()).unwrap();
    out
}

fn loaded(tree: &SessionTree) -> usize {
    tree.entries().iter().filter_map(Entry::message).filter(|message| message.is_loaded()).count()
}

#[test]
fn what_stays_in_the_file_reads_as_what_is_in_memory() {
    let (_dir, path, session) = opened();
    let (in_memory, report) = store().read(&path).unwrap();
    assert_eq!(loaded(&session.tree), 0);
    assert!(loaded(&in_memory) > 5_000);
    assert_eq!(session.report, report);
    let (ours, theirs) = (session.tree.entries(), in_memory.entries());
    assert_eq!(ours.len(), theirs.len());
    for (one, other) in ours.iter().zip(theirs) {
        assert_eq!(told(one), told(other));
    }
    assert_eq!(session.tree.totals(), in_memory.totals());
    assert_eq!(StatsCounter::default().totals(&session.tree), StatsCounter::default().totals(&in_memory));
    let (context, other) = (Context::new(&session.tree), Context::new(&in_memory));
    assert_eq!((context.model(), context.sources()), (other.model(), other.sources()));
    assert_eq!(loaded(&session.tree), 0, "none of it needs the messages in memory");
    assert_eq!(context.messages(), other.messages());
    assert!(loaded(&session.tree) > 5_000);
}

#[test]
fn a_session_goes_on_and_is_copied() {
    let (dir, path, mut session) = opened();
    let message = r#"{"role":"user","content":"more","timestamp":1}"#;
    let entry = session.tree.prepare(NewEntry::message(serde_json::from_str(message).unwrap()), 2_000);
    session.writer.append(&entry).unwrap();
    session.tree.push(entry);
    let leaf = session.tree.leaf_id().unwrap().to_owned();
    let copy = copy_branch(&session.tree, Some(&leaf), new()).unwrap();
    let lines = |tree: &SessionTree| tree.entries().iter().map(Entry::line).collect::<Vec<_>>();
    let expected = lines(&session.tree);
    // The file of the copy has its messages in it, and the copy stays readable without the original.
    let copied = store().adopt(copy, Some(dir.path()), FileCreation::AtOnce).unwrap();
    drop(session);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(lines(&copied.tree), expected);
    let copy_path = copied.writer.path().unwrap().to_owned();
    drop(copied);
    assert_eq!(lines(&store().reopen(&copy_path).unwrap().tree), expected);
}

#[test]
fn what_another_program_takes_away_is_null_and_nothing_is_added_behind_it() {
    let (_dir, path, mut session) = opened();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(1 << 20).unwrap();
    let texts: Vec<&Json<_>> = session.tree.entries().iter().filter_map(Entry::message).collect();
    assert!(texts[0].text().starts_with("{\"role\":\"user\""));
    let last = texts[texts.len() - 1];
    assert_eq!((last.text(), last.get().is_none()), ("null", true));
    let message = r#"{"role":"user","content":"more","timestamp":1}"#;
    let entry = session.tree.prepare(NewEntry::message(serde_json::from_str(message).unwrap()), 2_000);
    assert!(session.writer.append(&entry).is_err());
}
