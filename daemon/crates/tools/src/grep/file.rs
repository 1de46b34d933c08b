//! Finds the matches of one file, and formats them.

use std::{
    io::{self, Read},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use agentd_agent::ToolError;
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenProblem, OpenRules};
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};
use tokio_util::sync::CancellationToken;

use super::{input::Input, pattern::Engine};
use crate::{kernel, search::List};

/// For a file that the call names: links are followed, and other users' files are accepted.
const NAMED: OpenRules<'static> = OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody);

/// For a file that a walk has found: links are not followed.
const OF_A_WALK: OpenRules<'static> = OpenRules::new(LinkPolicy::Refused).owner(AcceptedOwner::Anybody);

/// The longest part of a line that is shown, in UTF-16 units, as pi counts.
const MAX_LINE_UNITS: usize = 500;

/// The matches of one file or of several.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) list: List,
    /// Matching lines, without those that are only in the context of the last one.
    pub(super) matches: usize,
    /// Whether there are more matches than wanted.
    pub(super) has_more: bool,
    pub(super) cut_lines: bool,
    /// Files and folders that could not be read.
    pub(super) unreadable: usize,
}

impl Found {
    /// Appends the matches of later files.
    pub(super) fn append(&mut self, other: &Self) {
        self.list.append(&other.list);
        self.matches += other.matches;
        self.has_more |= other.has_more;
        self.cut_lines |= other.cut_lines;
        self.unreadable += other.unreadable;
    }
}

/// When to stop: the call was aborted, or enough was found.
pub(super) struct Stop<'a> {
    pub(super) cancel: &'a CancellationToken,
    pub(super) enough: &'a AtomicBool,
}

impl Stop<'_> {
    pub(super) fn is_set(&self) -> bool {
        self.enough.load(Ordering::Relaxed) || self.cancel.is_cancelled()
    }
}

/// The parameters of a search, the same for all files.
pub(super) struct Search<'a> {
    pub(super) matcher: &'a RegexMatcher,
    /// Lines shown before and after each match.
    pub(super) context: usize,
    pub(super) stop: Stop<'a>,
}

impl Search<'_> {
    /// Searches the one file of this machine that the call names.
    ///
    /// # Errors
    /// Why the file is not read.
    pub(super) fn named_file(
        &self,
        engine: &mut Engine,
        (path, shown): (&Path, &str),
        most: usize,
    ) -> Result<Found, ToolError> {
        let mut found = Found::default();
        match NAMED.open(path) {
            Ok(file) => self.content(engine, (file, shown), most, &mut found),
            Err(error) if matches!(error.problem(), OpenProblem::OfProcesses) => {
                return Err(kernel::of_processes("search", &path.display().to_string()));
            }
            Err(_) => found.unreadable += 1,
        }
        Ok(found)
    }

    /// Searches a file of this machine that a walk has found; see [`Self::content`].
    pub(super) fn file(
        &self,
        engine: &mut Engine,
        (path, shown): (&Path, &str),
        most: usize,
        found: &mut Found,
    ) {
        match OF_A_WALK.open_one_of_many(path, &mut engine.file_systems) {
            Ok(file) => self.content(engine, (file, shown), most, found),
            Err(_) if self.stop.is_set() => {}
            Err(_) => found.unreadable += 1,
        }
    }

    /// Searches the content of a file for at most `most` matching lines, and adds them to `found` under the name
    /// `shown`.
    pub(super) fn content(
        &self,
        engine: &mut Engine,
        (file, shown): (impl Read, &str),
        most: usize,
        found: &mut Found,
    ) {
        let (stop, after) = (&self.stop, self.context as u64);
        let searched = Input::begin(file, engine.is_named, &mut engine.head, stop).and_then(|input| {
            let Some(input) = input else { return Ok(()) };
            let lines = Lines { shown, most, after, matches: 0, last: 0, stop, found: &mut *found };
            engine.searcher.search_reader(self.matcher, input, lines)
        });
        if searched.is_err() && !stop.is_set() {
            found.unreadable += 1;
        }
    }
}

struct Lines<'a> {
    shown: &'a str,
    most: usize,
    /// Lines shown after a match.
    after: u64,
    matches: usize,
    /// The line of the last counted match.
    last: u64,
    stop: &'a Stop<'a>,
    found: &'a mut Found,
}

impl Lines<'_> {
    fn show(&mut self, mark: char, line: u64, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        let (text, is_cut) = cut(text);
        self.found.cut_lines |= is_cut;
        let end = if is_cut { "... [truncated]" } else { "" };
        self.found.list.push(&format!("{}{mark}{line}{mark} {text}{end}", self.shown));
    }

    /// Whether a line is in the context of the last counted match.
    fn is_near(&self, line: u64) -> bool {
        line <= self.last + self.after
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let line = found.line_number().unwrap_or_default();
        if self.matches >= self.most {
            self.found.has_more = true;
            if self.most > 0 && self.is_near(line) {
                self.show('-', line, found.bytes());
                return Ok(true);
            }
            return Ok(false);
        }
        self.matches += 1;
        self.found.matches += 1;
        self.last = line;
        self.show(':', line, found.bytes());
        Ok(!self.stop.is_set())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let line = context.line_number().unwrap_or_default();
        if self.matches >= self.most {
            // The context before a match that is not shown is not shown either.
            if *context.kind() == SinkContextKind::Before || !self.is_near(line) {
                return Ok(!self.found.has_more);
            }
        }
        self.show('-', line, context.bytes());
        Ok(true)
    }
}

/// The beginning of a line that is too long.
fn cut(line: &str) -> (&str, bool) {
    // A character has at most as many units as bytes.
    if line.len() <= MAX_LINE_UNITS {
        return (line, false);
    }
    let mut units = 0;
    for (at, character) in line.char_indices() {
        units += character.len_utf16();
        if units > MAX_LINE_UNITS {
            return (&line[..at], true);
        }
    }
    (line, false)
}
