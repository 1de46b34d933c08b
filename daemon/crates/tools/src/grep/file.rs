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

use crate::{kernel, search::List, truncate::cut_line};

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
            Ok(file) => self.content(engine, (file, None, shown), most, &mut found),
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
            Ok((file, length)) => self.content(engine, (file, Some(length), shown), most, found),
            Err(_) if self.stop.is_set() => {}
            Err(_) => found.unreadable += 1,
        }
    }

    /// Searches the content of a file for at most `most` matching lines, and adds them to `found` under the name
    /// `shown`. Its length in bytes, where it is known, spares a look for the end.
    pub(super) fn content(
        &self,
        engine: &mut Engine,
        (mut file, length, shown): (impl Read, Option<u64>, &str),
        most: usize,
        found: &mut Found,
    ) {
        let (stop, after) = (&self.stop, self.context as u64);
        let searched = Head::read(&mut file, length, &mut engine.head).and_then(|head| {
            let is_text = !engine.is_named && !head.is_wide();
            if is_text && memchr::memchr(0, head.bytes).is_some() {
                return Ok(());
            }
            let lines = Lines { shown, most, after, matches: 0, last: 0, stop, found: &mut *found };
            if head.is_whole {
                return engine.searcher.search_slice(self.matcher, head.bytes, lines);
            }
            let input = Input { head: head.bytes, file, is_text, is_over: false, stop };
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
        let (text, is_cut) = cut_line(text);
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

/// The bytes that decide whether a file is text: 64 KiB.
const HEAD_BYTES: u64 = 64 * 1024;

/// The input of a search in a file that is longer than its head. It ends early when the search stops, so that a file without a match does not delay the end,
/// and before a NUL byte, so that matches do not depend on buffer sizes.
struct Input<'a, R> {
    head: &'a [u8],
    file: R,
    is_text: bool,
    is_over: bool,
    stop: &'a Stop<'a>,
}

/// The beginning of a file.
struct Head<'a> {
    bytes: &'a [u8],
    /// Whether this is all of the file.
    is_whole: bool,
}

impl<'a> Head<'a> {
    /// Reads it into `buffer`.
    fn read(file: &mut impl Read, length: Option<u64>, buffer: &'a mut Vec<u8>) -> io::Result<Self> {
        buffer.clear();
        // Most files are read in one call. A file that has as many bytes as it had before ends there.
        if let Some(length) = length.filter(|length| *length < HEAD_BYTES) {
            let length = usize::try_from(length).map_err(io::Error::other)?;
            buffer.resize(length + 1, 0);
            let count = loop {
                match file.read(buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    done => break done?,
                }
            };
            buffer.truncate(count);
            if count == length {
                return Ok(Self { bytes: buffer, is_whole: true });
            }
        }
        file.take(HEAD_BYTES - buffer.len() as u64).read_to_end(buffer)?;
        Ok(Self { is_whole: (buffer.len() as u64) < HEAD_BYTES, bytes: buffer })
    }

    /// Whether it is UTF-16, which contains NUL bytes; the engine recognises it by the same mark.
    fn is_wide(&self) -> bool {
        self.bytes.starts_with(b"\xff\xfe") || self.bytes.starts_with(b"\xfe\xff")
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts how often it is asked.
    struct Content<'a> {
        bytes: &'a [u8],
        reads: usize,
    }

    impl Read for Content<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.reads += 1;
            self.bytes.read(buffer)
        }
    }

    #[test]
    fn a_file_that_kept_its_length_is_read_in_one_call() {
        let mut buffer = b"of the file before".to_vec();
        for text in [&b""[..], b"abc", &[b'x'; HEAD_BYTES as usize - 1]] {
            let mut content = Content { bytes: text, reads: 0 };
            let head = Head::read(&mut content, Some(text.len() as u64), &mut buffer).unwrap();
            assert_eq!((head.bytes, head.is_whole), (text, true));
            assert_eq!(content.reads, 1);
        }
    }

    #[test]
    fn a_file_of_another_length_is_read_to_its_end() {
        let mut buffer = Vec::new();
        for length in [None, Some(0), Some(2), Some(5), Some(u64::MAX)] {
            let mut content = Content { bytes: b"abc", reads: 0 };
            let head = Head::read(&mut content, length, &mut buffer).unwrap();
            assert_eq!((head.bytes, head.is_whole), (&b"abc"[..], true), "{length:?}");
        }
    }

    #[test]
    fn of_a_long_file_the_beginning_is_read() {
        let text = [b'x'; HEAD_BYTES as usize + 1];
        for (length, has) in [(HEAD_BYTES, HEAD_BYTES), (HEAD_BYTES + 1, HEAD_BYTES + 1), (3, HEAD_BYTES + 1)]
        {
            let (mut buffer, mut content) = (Vec::new(), Content { bytes: &text[..has as usize], reads: 0 });
            let head = Head::read(&mut content, Some(length), &mut buffer).unwrap();
            assert_eq!((head.bytes.len() as u64, head.is_whole), (HEAD_BYTES, false), "{length}");
        }
    }
}
