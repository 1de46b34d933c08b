//! Laws for every file that is read as a session: for fuzz targets (`fuzz/` in the repository) and for the tests that read
//! known inputs again. Present only with the feature `fuzzing`; no part of the interface.
//!
//! Each function takes any bytes and panics when they break the law.

use std::{
    collections::HashSet,
    io::{self, Read},
    path::Path,
};

use agentd_protocol::lines::{Line, LineSplitter};
use serde::de::IgnoredAny;

use crate::{
    Context, ContextMeter, Entry, ForkPoint, Header, LoadReport, NavigationTarget, NewSession, SessionTree,
    StatsCounter, Store, StoreOptions, context_usage, copy_all, copy_branch, fork_messages,
    intent_log::{IntentRecord, UnfinishedWork},
};

/// The laws, by the names of their fuzz targets.
pub const LAWS: &[(&str, fn(&[u8]))] =
    &[("sessions", sessions), ("old_sessions", old_sessions), ("intent_logs", intent_logs)];

/// The cap of a line where inputs are to reach it, in bytes.
const SMALL_LINE_BYTES: usize = 160;

/// Entries that are looked at one by one: each costs a walk over its branch.
const LOOKED_AT: usize = 4;

/// Any bytes are read, however they come, or are refused. Of a session of the current version every whole line that is an entry is
/// there to the byte; what was read is written to lines that read as the same; and context, copies, statistics and the
/// tree can be made of it.
pub fn sessions(input: &[u8]) {
    let Some((tree, report)) = read(input, input.len()) else { return };
    if report.migrated_from.is_none() {
        let kept: HashSet<String> = lines(&tree).into_iter().collect();
        for entry in entries(input) {
            assert!(kept.contains(&entry.line()), "a whole line is lost: {}", entry.line());
        }
    }
    keeps_the_laws(&tree);
    if let Some((small, _)) = read(input, SMALL_LINE_BYTES) {
        let is_short = |entry: &Entry| entry.line_len() <= SMALL_LINE_BYTES;
        // A byte that is no UTF-8 becomes a character of three; a file of an old version gets ids.
        if report.migrated_from.is_none() && std::str::from_utf8(input).is_ok() {
            assert!(small.entries().iter().all(is_short), "a line over the limit");
        }
    }
}

/// A file of version 1 or 2 becomes one of the current version with all of its entries, which reads as the same again. In one of
/// version 1, each entry follows the one before it.
pub fn old_sessions(input: &[u8]) {
    let (version, rest) = input.split_first().unwrap_or((&0, &[]));
    let header: &[u8] = match version % 2 {
        0 => b"{\"type\":\"session\",\"version\":1,\"id\":\"s\",\"timestamp\":\"2025-01-01T00:00:00.000Z\",\"cwd\":\"/w\"}\n",
        _ => b"{\"type\":\"session\",\"version\":2,\"id\":\"s\",\"timestamp\":\"2025-01-01T00:00:00.000Z\",\"cwd\":\"/w\"}\n",
    };
    let text = [header, rest].concat();
    let Some((tree, report)) = read(&text, text.len()) else { panic!("an old session is refused") };
    assert_eq!(report.migrated_from, Some(u32::from(version % 2) + 1));
    if version % 2 == 0 {
        let mut before: Option<&Entry> = None;
        for entry in tree.entries() {
            assert_eq!(entry.parent_id(), before.map(Entry::id), "each follows the one before it");
            before = Some(entry);
        }
    }
    keeps_the_laws(&tree);
}

/// Any bytes are read as an intent log; what they come to is what the records among them come to, written as they are written by this
/// version. A line that was torn takes nothing from those before it.
pub fn intent_logs(input: &[u8]) {
    let left = UnfinishedWork::read(input);
    let lines = input.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    let mut written = Vec::new();
    for record in lines.filter_map(IntentRecord::parse) {
        assert!(record.write_line(&mut written).is_ok(), "what was read can be written");
    }
    assert_eq!(UnfinishedWork::read(&written), left, "what was written reads as the same");
    if let Ok(header) = NewSession::new("/w", 0).header() {
        let waiting = left.waiting(&SessionTree::new(header)).len();
        assert_eq!(waiting, left.messages.len(), "in a session without entries all of them wait");
    }
    written.extend(b"{\"type\":\"run\",\"at\":1");
    assert_eq!(UnfinishedWork::read(&written), left, "a torn line counts for nothing");
}

fn keeps_the_laws(tree: &SessionTree) {
    let mut written = Vec::new();
    tree.write_to(&mut written);
    let Some((again, _)) = read(&written, written.len()) else { panic!("what was written is no session") };
    assert_eq!(again.header(), tree.header());
    assert_eq!(lines(&again), lines(tree), "what was written reads as the same");
    assert_eq!(again.parents(), tree.parents());

    let context = Context::new(tree);
    let _ = (context.thinking_level(), context.model(), context_usage(tree, &context, 1000));
    assert_eq!(context.messages().len(), context.sources().len());
    let _ = (context.contributions(tree), ContextMeter::default().tokens(tree, &context));
    for message in context.messages() {
        let _ = message.get();
    }
    let _ = StatsCounter::default().totals(tree);
    let json = tree.to_json();
    assert!(is_deep(tree) || serde_json::from_str::<IgnoredAny>(&json).is_ok(), "{json}");
    for entry in tree.entries() {
        let _ = (entry.body(), entry.timestamp_ms(), entry.extra("customType"));
        assert_eq!(entry.line().len(), entry.line_len());
    }
    for message in fork_messages(tree).iter().take(LOOKED_AT) {
        assert!(ForkPoint::before(tree, &message.entry_id).is_ok(), "a fork can begin at its message");
    }
    let step = tree.entries().len() / LOOKED_AT + 1;
    for entry in tree.entries().iter().step_by(step) {
        let _ = NavigationTarget::at(tree, entry.id());
        let Ok(copy) = copy_branch(tree, Some(entry.id()), NewSession::new("/w", 0)) else {
            panic!("the branch of {} cannot be copied", entry.id())
        };
        assert_eq!(copy.branch().len(), copy.entries().len(), "a copy is one branch");
        reads_as_it_is(&copy);
    }
    match copy_all(tree, NewSession::new("/w", 0)) {
        Ok(copy) => {
            assert_eq!(lines(&copy), lines(tree), "a copy has all entries");
            reads_as_it_is(&copy);
        }
        Err(error) => panic!("{error}"),
    }
}

fn reads_as_it_is(tree: &SessionTree) {
    let mut written = Vec::new();
    tree.write_to(&mut written);
    let Some((again, _)) = read(&written, written.len()) else { panic!("a copy is no session") };
    assert_eq!(lines(&again), lines(tree));
}

/// Returns whether its JSON may be deeper than parsers read.
fn is_deep(tree: &SessionTree) -> bool {
    let opens = |entry: &Entry| entry.line().bytes().filter(|byte| matches!(byte, b'[' | b'{')).count();
    tree.entries().len() > 20 || tree.entries().iter().any(|entry| opens(entry) > 40)
}

/// The entries of a session file of the current version, read line by line.
fn entries(input: &[u8]) -> Vec<Entry> {
    let (mut splitter, mut lines) = (LineSplitter::new(input.len()), Vec::new());
    splitter.push(input, &mut lines);
    lines.extend(splitter.finish());
    let mut texts = lines.iter().filter_map(|line| match line {
        Line::Text(text) => Some(text.trim_ascii()),
        Line::TooLong | Line::Refused(_) => None,
    });
    // Up to the header nothing counts.
    let _ = texts.find(|text| Header::parse(text).is_some());
    texts.filter_map(Entry::parse).collect()
}

fn lines(tree: &SessionTree) -> Vec<String> {
    tree.entries().iter().map(Entry::line).collect()
}

/// The session in these bytes, which is the same in pieces of any size.
fn read(input: &[u8], max_line_bytes: usize) -> Option<(SessionTree, LoadReport)> {
    let store = Store::new(StoreOptions { max_line_bytes, ..StoreOptions::default() });
    let read = |bite| store.read_from(Path::new("session.jsonl"), &mut Bites { rest: input, bite }).ok();
    let whole = read(input.len().max(1));
    if whole.as_ref().is_none_or(|(_, report)| report.migrated_from != Some(1)) {
        let pieces = read(input.len() % 61 + 3);
        let seen = |read: &Option<(SessionTree, LoadReport)>| {
            read.as_ref().map(|(tree, report)| (tree.header().clone(), lines(tree), report.clone()))
        };
        assert_eq!(seen(&pieces), seen(&whole), "in small pieces");
    }
    whole
}

/// Reads in small bites.
struct Bites<'a> {
    rest: &'a [u8],
    bite: usize,
}

impl Read for Bites<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(self.bite).min(self.rest.len());
        let (now, rest) = self.rest.split_at(count);
        buffer[..count].copy_from_slice(now);
        self.rest = rest;
        Ok(count)
    }
}

#[cfg(test)]
#[path = "../../../../tests/fuzz/src/found.rs"]
mod found;

#[test]
fn inputs_that_were_found() {
    found::check(LAWS);
}
