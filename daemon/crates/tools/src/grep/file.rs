//! Finds the matches of one file, and formats them.

use std::{
    io::{self, Read},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use agentd_agent::ToolError;
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenProblem, OpenRules, SeenFileSystems};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use tokio_util::sync::CancellationToken;

use crate::{kernel, limits::GREP_LINE_UNITS, search::List};

/// For a file that the call names: links are followed, and other users' files are accepted.
const NAMED: OpenRules<'static> = OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody);

/// For a file that a walk has found: links are not followed.
const OF_A_WALK: OpenRules<'static> = OpenRules::new(LinkPolicy::Refused).owner(AcceptedOwner::Anybody);

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
    if line.len() <= GREP_LINE_UNITS {
        return (line, false);
    }
    let mut units = 0;
    for (at, character) in line.char_indices() {
        units += character.len_utf16();
        if units > GREP_LINE_UNITS {
            return (&line[..at], true);
        }
    }
    (line, false)
}

/// The bytes that decide whether a file is text: 64 KiB.
const HEAD_BYTES: u64 = 64 * 1024;

/// The input of a search. It ends early when the search stops, so that a file without a match does not delay the end,
/// and before a NUL byte, so that matches do not depend on buffer sizes.
pub(super) struct Input<'a, R> {
    head: &'a [u8],
    file: R,
    is_text: bool,
    is_over: bool,
    stop: &'a Stop<'a>,
}

impl<'a, R: Read> Input<'a, R> {
    /// Starts with a file, using `head` as the buffer for its beginning; `None` for a file that is no text and was not
    /// named.
    pub(super) fn begin(
        mut file: R,
        is_named: bool,
        head: &'a mut Vec<u8>,
        stop: &'a Stop<'a>,
    ) -> io::Result<Option<Self>> {
        head.clear();
        file.by_ref().take(HEAD_BYTES).read_to_end(head)?;
        // UTF-16 contains NUL bytes; the engine recognises it by its byte order mark.
        let is_wide = head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff");
        let is_text = !is_named && !is_wide;
        if is_text && memchr::memchr(0, head).is_some() {
            return Ok(None);
        }
        Ok(Some(Self { head, file, is_text, is_over: false, stop }))
    }
}

impl<R: Read> Read for Input<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_set() {
            return Err(io::Error::other("stopped"));
        }
        if !self.head.is_empty() {
            return self.head.read(buffer);
        }
        if self.is_over {
            return Ok(0);
        }
        let count = self.file.read(buffer)?;
        if self.is_text
            && let Some(end) = memchr::memchr(0, &buffer[..count])
        {
            self.is_over = true;
            return Ok(end);
        }
        Ok(count)
    }
}

/// The longest line that is searched, in bytes: 32 MiB for each thread.
const MAX_LINE_BYTES: usize = 32 << 20;

/// Compiles a pattern with ripgrep's rules.
///
/// # Errors
/// The problem, in the words of ripgrep's parser.
pub(super) fn compile(pattern: &str, ignore_case: bool, literal: bool) -> Result<RegexMatcher, ToolError> {
    RegexMatcherBuilder::new()
        .case_insensitive(ignore_case)
        .fixed_strings(literal)
        .multi_line(true)
        .line_terminator(Some(b'\n'))
        .build(pattern)
        .map_err(|error| {
            // The engine wraps the pattern in a group, and its error would show that.
            let as_given = if literal { None } else { regex_syntax::parse(pattern).err() };
            ToolError(as_given.map_or_else(|| error.to_string(), |error| error.to_string()))
        })
}

/// The search state of one thread.
pub(super) struct Engine {
    pub(super) searcher: Searcher,
    /// Whether the call names the file, which is then searched even if it is not text.
    pub(super) is_named: bool,
    /// The buffer for the beginning of a file.
    pub(super) head: Vec<u8>,
    /// The file systems of earlier files.
    pub(super) file_systems: SeenFileSystems,
}

impl Engine {
    /// A named file is searched byte for byte, whatever it is; of the files below a folder, binary ones are left out.
    pub(super) fn new(context: usize, is_named: bool) -> Self {
        let binary = if is_named { BinaryDetection::none() } else { BinaryDetection::quit(0) };
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .before_context(context)
            .after_context(context)
            .binary_detection(binary)
            .heap_limit(Some(MAX_LINE_BYTES))
            .build();
        Self { searcher, is_named, head: Vec::new(), file_systems: SeenFileSystems::default() }
    }
}
