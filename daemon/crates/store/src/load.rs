//! Reading a session file, whatever state it is in.

use std::io::{self, Read};

use memchr::memchr;
use serde_json::value::RawValue;

use crate::{Entry, Header, SessionTree, migrate};
use agentd_protocol::entry::SESSION_VERSION;

/// How much is read at once: enough to make a system call worth it, little enough for the cache.
const CHUNK_BYTES: usize = 256 << 10;

/// What was odd about a file that was opened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoadReport {
    /// Lines that are no JSON: torn by a crash, most likely. They were skipped; the file keeps them.
    pub broken_lines: u64,
    /// Lines over the limit, skipped as well.
    pub long_lines: u64,
    /// JSON that is no entry, such as objects without an id, skipped as well.
    pub foreign_lines: u64,
    /// Lines with bytes that are not UTF-8. They were read with U+FFFD in their place.
    pub not_utf8_lines: u64,
    /// The version that the file was of, if it was brought to the current one.
    pub migrated_from: Option<u32>,
}

impl LoadReport {
    /// One sentence for a log; `None` when everything was in order.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let counts = [
            (self.broken_lines, "no JSON (skipped)"),
            (self.long_lines, "over the size limit (skipped)"),
            (self.foreign_lines, "no session entries (skipped)"),
            (self.not_utf8_lines, "not UTF-8 (read as far as they are)"),
        ];
        let odd: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        (!odd.is_empty()).then(|| format!("odd lines in the session file: {}", odd.join(", ")))
    }
}

/// What a file held.
pub(crate) enum Loaded {
    /// Nothing at all.
    Empty,
    /// Something that is no session.
    Invalid,
    /// A session of a version that is not known yet.
    TooNew(u32),
    /// A session.
    Session(Box<Session>),
}

/// A session that was read.
pub(crate) struct Session {
    pub(crate) tree: SessionTree,
    pub(crate) report: LoadReport,
    /// Whether the file's last byte is no LF.
    pub(crate) lacks_newline: bool,
}

/// Reads a session. Blank lines are skipped; of lines over `max_line_bytes`, nothing is kept.
///
/// # Errors
/// What `reader` reports.
pub(crate) fn load(reader: &mut dyn Read, max_line_bytes: usize) -> io::Result<Loaded> {
    let mut collector = Collector::default();
    let ending = each_line(reader, max_line_bytes, &mut |line| collector.line(line))?;
    if ending == Ending::NothingRead {
        return Ok(Loaded::Empty);
    }
    Ok(collector.finish(ending == Ending::MidLine))
}

/// Builds a tree from lines.
#[derive(Default)]
struct Collector {
    report: LoadReport,
    state: State,
}

#[derive(Default)]
enum State {
    #[default]
    BeforeHeader,
    /// The first record is no header: nothing that follows counts.
    Invalid,
    TooNew(u32),
    Current(SessionTree),
    /// A file of an old version: its lines are made current once all of them are there.
    Old(Header, Vec<String>),
}

impl Collector {
    fn line(&mut self, line: Line<'_>) {
        let Line::Bytes(bytes) = line else {
            self.report.long_lines += 1;
            return;
        };
        let text = String::from_utf8_lossy(bytes);
        if matches!(text, std::borrow::Cow::Owned(_)) {
            self.report.not_utf8_lines += 1;
        }
        let text = text.trim_ascii();
        if text.is_empty() {
            return;
        }
        match &mut self.state {
            State::Current(tree) => match Entry::parse(text) {
                Some(entry) => tree.push(entry),
                None => self.count_skipped(text),
            },
            State::Old(_, lines) => {
                if is_json(text) {
                    lines.push(text.to_owned());
                } else {
                    self.report.broken_lines += 1;
                }
            }
            State::BeforeHeader => self.first(text),
            State::Invalid | State::TooNew(_) => {}
        }
    }

    /// The first line that is JSON must be the header.
    fn first(&mut self, text: &str) {
        self.state = match Header::parse(text) {
            Some(header) if header.version() > SESSION_VERSION => State::TooNew(header.version()),
            Some(header) if header.version() == SESSION_VERSION => State::Current(SessionTree::new(header)),
            Some(header) => State::Old(header, Vec::new()),
            None if is_json(text) => State::Invalid,
            None => {
                self.report.broken_lines += 1;
                return;
            }
        };
    }

    fn count_skipped(&mut self, text: &str) {
        if !is_json(text) {
            self.report.broken_lines += 1;
        } else if Header::parse(text).is_none() {
            self.report.foreign_lines += 1;
        }
    }

    fn finish(mut self, lacks_newline: bool) -> Loaded {
        let tree = match self.state {
            State::BeforeHeader | State::Invalid => return Loaded::Invalid,
            State::TooNew(version) => return Loaded::TooNew(version),
            State::Current(tree) => tree,
            State::Old(header, lines) => {
                self.report.migrated_from = Some(header.version());
                let Some((header, lines)) = migrate::migrate(&header, lines) else { return Loaded::Invalid };
                let mut tree = SessionTree::new(header);
                for line in &lines {
                    match Entry::parse(line) {
                        Some(entry) => tree.push(entry),
                        None => self.report.foreign_lines += 1,
                    }
                }
                tree
            }
        };
        Loaded::Session(Box::new(Session { tree, report: self.report, lacks_newline }))
    }
}

/// Whether a text is JSON of any kind.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

/// A line of a file.
pub(crate) enum Line<'a> {
    /// Without its LF.
    Bytes(&'a [u8]),
    /// Longer than the limit.
    TooLong,
}

/// How a file ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// There was not one byte.
    NothingRead,
    /// With LF.
    Newline,
    /// Without LF.
    MidLine,
}

/// Reads to the end and hands out each line, the last one also when it lacks its LF. Memory is bounded by the limit.
pub(crate) fn each_line(
    reader: &mut dyn Read,
    max_bytes: usize,
    sink: &mut dyn FnMut(Line<'_>),
) -> io::Result<Ending> {
    let mut chunk = vec![0; CHUNK_BYTES];
    // The beginning of a line that goes on in the next chunk.
    let mut partial: Vec<u8> = Vec::new();
    let mut skipping = false;
    let mut ending = Ending::NothingRead;
    loop {
        let count = match reader.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let mut rest = &chunk[..count];
        ending = if rest.ends_with(b"\n") { Ending::Newline } else { Ending::MidLine };
        while let Some(end) = memchr(b'\n', rest) {
            let line = &rest[..end];
            rest = &rest[end + 1..];
            if skipping || partial.len() + line.len() > max_bytes {
                sink(Line::TooLong);
            } else if partial.is_empty() {
                sink(Line::Bytes(line));
            } else {
                partial.extend_from_slice(line);
                sink(Line::Bytes(&partial));
            }
            partial.clear();
            skipping = false;
        }
        if skipping || partial.len() + rest.len() > max_bytes {
            skipping = true;
            partial = Vec::new();
        } else {
            partial.extend_from_slice(rest);
        }
    }
    if skipping {
        sink(Line::TooLong);
    } else if !partial.is_empty() {
        sink(Line::Bytes(&partial));
    }
    Ok(ending)
}

#[cfg(test)]
mod tests;
