//! Reading a session file, whatever state it is in.

mod report;

use std::{
    borrow::Cow,
    io::{self, Read},
    sync::Arc,
};

use serde_json::value::RawValue;

pub use self::report::{KEPT_ODDITIES, LoadReport, Oddity, OddityKind};
use crate::{
    Entry, Header, SessionTree,
    counts::ReadEntry,
    entry::LineInFile,
    lines::{Content, Ending, Line, LinePosition, each_line},
    migrate,
    object::Object,
    read_ahead::{Ahead, each_line_ahead},
    tree::Taken,
};
use agentd_protocol::{TextStore, entry::SESSION_VERSION};

/// The mark that some editors put before a text in UTF-8.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The content of a session file.
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
    /// True if the file's last byte is no LF.
    pub(crate) lacks_newline: bool,
}

/// Reads a session. Blank lines are skipped; of lines over `max_line_bytes`, nothing is kept.
///
/// # Errors
/// What `reader` reports.
pub(crate) fn load(reader: &mut dyn Read, max_line_bytes: usize) -> io::Result<Loaded> {
    load_by(reader, max_line_bytes, Collector::default())
}

/// A file of fewer bytes is read by one thread, and its messages are kept in memory.
pub(crate) const LONG_FILE_BYTES: u64 = 4 << 20;

/// [`load`] for a file of about `len` bytes: a long one is read ahead. Its messages stay in `texts`, the same file, where that is given.
///
/// # Errors
/// What `reader` reports.
pub(crate) fn load_file(
    reader: &mut (dyn Read + Send),
    len: u64,
    max_line_bytes: usize,
    texts: Option<Arc<Box<dyn TextStore>>>,
) -> io::Result<Loaded> {
    let mut collector = Collector { texts: texts.clone(), ..Collector::default() };
    let ending = if len < LONG_FILE_BYTES {
        each_line(reader, max_line_bytes, &mut |line| collector.line(line, Ahead::Unread))
    } else {
        let read = |line: Line<'_>| read_entry(line, texts.as_ref());
        each_line_ahead(reader, max_line_bytes, &read, &mut |line, read| collector.line(line, read))
    };
    Ok(collector.loaded(ending?))
}

/// The entry of a line of the current version; `None` where it is none.
fn read_entry(line: Line<'_>, texts: Option<&Arc<Box<dyn TextStore>>>) -> Option<ReadEntry> {
    let Content::Text(text) = line.content else { return None };
    let (record, _) = clean(text, &line.place);
    ReadEntry::of(record, texts.map(|texts| LineInFile { texts, at: place_of(record, text, &line.place) }))
}

/// The first byte of a record in the file: what was cleaned off before it is part of its line.
fn place_of(record: &str, line: &str, place: &LinePosition) -> u64 {
    place.byte + (record.as_ptr().addr() - line.as_ptr().addr()) as u64
}

/// Makes a header from one that cannot be used, or from none.
pub(crate) type StandIn<'a> = dyn Fn(Option<&Header>) -> Option<Header> + 'a;

/// Reads a session whose header may be missing or of a later version: `header` then makes one.
///
/// # Errors
/// Those of `reader`.
pub(crate) fn salvage(
    reader: &mut dyn Read,
    max_line_bytes: usize,
    header: &StandIn<'_>,
) -> io::Result<Loaded> {
    load_by(reader, max_line_bytes, Collector { stand_in: Some(header), ..Collector::default() })
}

fn load_by(reader: &mut dyn Read, max_line_bytes: usize, mut collector: Collector<'_>) -> io::Result<Loaded> {
    let ending = each_line(reader, max_line_bytes, &mut |line| collector.line(line, Ahead::Unread))?;
    Ok(collector.loaded(ending))
}

/// The text of a line as it is read: without space around it and, at the beginning of a file, without a byte order mark.
pub(crate) fn clean<'a>(text: &'a str, place: &LinePosition) -> (&'a str, bool) {
    match text.strip_prefix(BYTE_ORDER_MARK).filter(|_| place.byte == 0) {
        Some(rest) => (rest.trim_ascii(), true),
        None => (text.trim_ascii(), false),
    }
}

/// A file of an old version.
struct OldFile {
    header: Header,
    version: u32,
    lines: Vec<String>,
    /// The positions of the lines, from version 2 on. The lines of version 1 are linked here and have no oddities.
    places: Vec<LinePosition>,
}

/// Builds a tree from lines.
#[derive(Default)]
struct Collector<'a> {
    report: LoadReport,
    state: State,
    /// The last line that was no JSON: torn, if nothing comes behind it.
    broken: Option<LinePosition>,
    /// Entries that follow one that was not there yet, as far as the report has a place for them.
    orphans: Vec<(LinePosition, u32)>,
    /// True if a header is yet to come, behind entries.
    lacks_header: bool,
    /// Makes a header when the file has none that can be used.
    stand_in: Option<&'a StandIn<'a>>,
    /// The file where the messages stay.
    texts: Option<Arc<Box<dyn TextStore>>>,
}

#[derive(Default)]
#[expect(clippy::large_enum_variant, reason = "there is one of it for each file that is read")]
enum State {
    #[default]
    BeforeHeader,
    /// The first record is no header: nothing that follows counts.
    Invalid,
    TooNew(u32),
    Current(SessionTree),
    /// The header names no version that could be: the first entry will tell.
    Unclear(Header, LinePosition),
    /// A file of an old version: its lines are made current once all of them are there.
    Old(OldFile),
}

impl Collector<'_> {
    /// Takes a line, which may have been read ahead.
    fn line(&mut self, line: Line<'_>, read: Ahead<Option<ReadEntry>>) {
        if let Some(place) = self.broken.take() {
            self.report.note(OddityKind::Broken, place);
        }
        let Line { place, content } = line;
        let (bytes, text) = match content {
            Content::Text(text) => (text.as_bytes(), Cow::Borrowed(text)),
            Content::Bytes(bytes) => {
                let text = str::from_utf8(bytes).map(Cow::Borrowed);
                (bytes, text.unwrap_or_else(|_| String::from_utf8_lossy(bytes)))
            }
            Content::TooLong => return self.report.note(OddityKind::TooLong, place),
            Content::Zeros => return self.report.note(OddityKind::Zeros, place),
        };
        let (record, has_mark) = clean(&text, &place);
        if has_mark {
            self.report.note(OddityKind::ByteOrderMark, LinePosition { bytes: 3, ..place });
        }
        if record.is_empty() {
            return;
        }
        if bytes.ends_with(b"\r") {
            self.report.note(OddityKind::CrLf, place);
        }
        let at = match &text {
            Cow::Borrowed(line) => Some(place_of(record, line, &place)),
            Cow::Owned(_) => None,
        };
        // Ahead, only text is read.
        let read = if at.is_some() { read } else { Ahead::Unread };
        let is_read = self.record(record, place, at, read);
        if is_read && at.is_none() {
            self.report.note(OddityKind::NotUtf8, place);
        }
    }

    /// Takes the text of a line, which is at the byte `at` of the file where it is there as it is here. Returns whether any of it was read.
    fn record(
        &mut self,
        text: &str,
        place: LinePosition,
        at: Option<u64>,
        read: Ahead<Option<ReadEntry>>,
    ) -> bool {
        work(text);
        let in_file = self.texts.as_ref().zip(at).map(|(texts, at)| LineInFile { texts, at });
        let read_now = || ReadEntry::of(text, in_file);
        match &mut self.state {
            State::Current(tree) => match read.unwrap_or_else(read_now) {
                Some(entry) => {
                    let taken = tree.take(entry);
                    self.taken(taken, place);
                    true
                }
                None => self.odd(text, place),
            },
            State::Old(old) => {
                // Records without a place in the tree count too where old versions number their records.
                let fields = Object::parse(text);
                let is_header =
                    fields.as_ref().and_then(|it| it.string("type")).as_deref() == Some("session");
                let is_entry = fields.is_some() && !is_header;
                if is_entry && (old.version < 2 || Entry::parse(text).is_some()) {
                    old.lines.push(text.to_owned());
                    if old.version >= 2 {
                        old.places.push(place);
                    }
                    return true;
                }
                if old.version < 2 && is_json(text) {
                    old.lines.push(text.to_owned());
                }
                self.odd(text, place)
            }
            State::Unclear(..) => self.first_entry(text, place, at),
            State::BeforeHeader => self.first(text, place, at),
            State::Invalid | State::TooNew(_) => false,
        }
    }

    /// The first line that is JSON must be the header.
    fn first(&mut self, text: &str, place: LinePosition, at: Option<u64>) -> bool {
        let header = Header::parse(text);
        let replaced = match (&header, self.stand_in) {
            (Some(header), Some(stand_in)) if header.version() > SESSION_VERSION => stand_in(Some(header)),
            (None, Some(stand_in)) if Entry::parse(text).is_some_and(|it| it.is_linked()) => stand_in(None),
            _ => None,
        };
        if let Some(stand_in) = replaced {
            self.state = State::Current(SessionTree::new(stand_in));
            if header.is_some() {
                return true;
            }
            self.report.note(OddityKind::MissingHeader, LinePosition { bytes: 0, ..place });
            self.lacks_header = true;
            return self.record(text, place, at, Ahead::Unread);
        }
        self.state = match header {
            Some(header) if !header.names_version() => State::Unclear(header, place),
            Some(header) if header.version() > SESSION_VERSION => State::TooNew(header.version()),
            Some(header) if header.version() == SESSION_VERSION => State::Current(SessionTree::new(header)),
            Some(header) => State::Old(OldFile::new(header.version(), header)),
            None if is_json(text) => State::Invalid,
            None => {
                self.broken = Some(place);
                return false;
            }
        };
        !matches!(self.state, State::Invalid)
    }

    /// Finds the version of a file whose header names none: entries were linked from version 2 on, and a file of version 2
    /// differs from one of version 3 by nothing that a reader of both could take wrong.
    fn first_entry(&mut self, text: &str, place: LinePosition, at: Option<u64>) -> bool {
        let State::Unclear(header, of_header) = &self.state else { return false };
        let Some(fields) = Object::parse(text) else { return self.odd(text, place) };
        let is_linked = fields.string("id").is_some() && fields.get("parentId").is_some();
        if is_linked || !header.lacks_version() {
            self.report.note(OddityKind::Version, *of_header);
        }
        let version = if is_linked { 2 } else { 1 };
        self.state = State::Old(OldFile::new(version, header.clone()));
        self.record(text, place, at, Ahead::Unread)
    }

    fn taken(&mut self, taken: Taken, place: LinePosition) {
        if taken.is_repeated {
            return self.report.note(OddityKind::Repeated, place);
        }
        if taken.has_known_id {
            self.report.note(OddityKind::DuplicateId, place);
        }
        if let Some(at) = taken.orphan {
            self.report.note(OddityKind::MissingParent, place);
            if self.orphans.len() < KEPT_ODDITIES {
                self.orphans.push((place, at));
            }
        }
    }

    /// Takes a line that is no entry: notes the oddity, and reads what it can. Returns whether it read anything.
    fn odd(&mut self, text: &str, place: LinePosition) -> bool {
        work(text);
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        let mut records: Vec<&str> = Vec::new();
        let mut is_whole = true;
        for value in &mut values {
            match value {
                Ok(value) => records.push(value.get()),
                Err(_) => is_whole = false,
            }
        }
        let is_current = matches!(self.state, State::Current(_));
        match records.as_slice() {
            [] => self.broken = Some(place),
            [one] if is_whole => {
                let header = Header::parse(one);
                let kind = if header.is_some() { OddityKind::SecondHeader } else { OddityKind::NoEntry };
                self.report.note(kind, place);
                if let (State::Current(tree), Some(header), true) =
                    (&mut self.state, header, self.lacks_header)
                {
                    tree.set_header(header);
                    self.lacks_header = false;
                }
            }
            // Numbers in a row, say.
            several if !is_current || !several.iter().any(|one| one.starts_with('{')) => {
                self.broken = Some(place);
            }
            several => {
                self.report.note(OddityKind::Joined, place);
                for one in several {
                    work(one);
                    let (State::Current(tree), Some(entry)) = (&mut self.state, ReadEntry::of(one, None))
                    else {
                        self.report.note(OddityKind::NoEntry, place);
                        continue;
                    };
                    let taken = tree.take(entry);
                    self.taken(taken, place);
                }
                if !is_whole {
                    self.broken = Some(place);
                }
                return true;
            }
        }
        false
    }

    /// The tree of a file of an old version.
    fn migrated(&mut self, old: OldFile) -> State {
        self.report.migrated_from = Some(old.version);
        let Some((header, lines)) = migrate::migrate(&old.header, old.version, old.lines) else {
            return State::Invalid;
        };
        let mut tree = SessionTree::new(header);
        let places = old.places.into_iter().map(Some).chain(std::iter::repeat(None));
        // Lines that are no entries were noted when they were read.
        for (line, place) in lines.iter().zip(places) {
            let Some(entry) = ReadEntry::of(line, None) else { continue };
            let taken = tree.take(entry);
            if let Some(place) = place {
                self.taken(taken, place);
            }
        }
        State::Current(tree)
    }

    fn loaded(self, ending: Ending) -> Loaded {
        match ending {
            Ending::NothingRead => Loaded::Empty,
            Ending::Newline => self.finish(false),
            Ending::MidLine => self.finish(true),
        }
    }

    fn finish(mut self, lacks_newline: bool) -> Loaded {
        if let Some(place) = self.broken {
            let kind = if lacks_newline { OddityKind::TornTail } else { OddityKind::Broken };
            self.report.note(kind, place);
        }
        let old = match std::mem::take(&mut self.state) {
            State::Old(old) => Some(old),
            State::Unclear(header, place) => {
                if !header.lacks_version() {
                    self.report.note(OddityKind::Version, place);
                }
                Some(OldFile::new(1, header))
            }
            other => {
                self.state = other;
                None
            }
        };
        if let Some(old) = old {
            self.state = self.migrated(old);
        }
        let State::Current(tree) = self.state else {
            return match self.state {
                State::TooNew(version) => Loaded::TooNew(version),
                _ => Loaded::Invalid,
            };
        };
        let orphans = &self.orphans;
        self.report.reclassify(OddityKind::MissingParent, |byte| {
            let (_, at) = orphans.iter().find(|(place, _)| place.byte == byte)?;
            tree.is_in_circle(*at).map(|it| if it { OddityKind::Cycle } else { OddityKind::LateParent })
        });
        Loaded::Session(Box::new(Session { tree, report: self.report, lacks_newline }))
    }
}

impl OldFile {
    fn new(version: u32, header: Header) -> Self {
        Self { header, version, lines: Vec::new(), places: Vec::new() }
    }
}

/// Returns whether a text is JSON of any kind.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

/// Counts the bytes that are parsed, for tests alone.
#[cfg(not(test))]
fn work(_: &str) {}

#[cfg(test)]
thread_local! {
    static WORK: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
fn work(text: &str) {
    WORK.set(WORK.get() + text.len() as u64);
}

#[cfg(test)]
mod tests;
