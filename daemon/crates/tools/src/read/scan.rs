//! Reads a range of lines from a file of any size, in bounded memory.

use std::io::{self, Read};

use agentd_protocol::image_kind::{ImageKind, SNIFFED};
use agentd_protocol::tool::Truncation;

use crate::truncate::{TextLimits, truncate_head};

/// Bytes read at once.
const CHUNK: usize = 256 * 1024;

/// The wanted lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    /// The first line, from 0.
    pub(super) start: u64,
    /// How many lines at most.
    pub(super) limit: Option<u64>,
}

/// The result of a scan.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Scanned {
    /// Text.
    Text(Selection),
    /// An image, and the bytes read so far.
    Image(ImageKind, Vec<u8>),
    /// The scan was stopped.
    Stopped,
}

/// The wanted lines, and facts about the rest.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Selection {
    /// Lines of the file; a line feed at its end makes an empty last line.
    pub(super) total_lines: u64,
    /// The wanted lines without their last line feed, cut to the limits.
    pub(super) text: Truncation,
    /// The size in bytes of the first wanted line.
    pub(super) first_line_bytes: u64,
}

/// Reads `file` to its end, unless `stop` returns true between two chunks.
///
/// Bytes that are not UTF-8 become U+FFFD. Sizes are those of the text, not of the file.
///
/// # Errors
/// As reading does.
pub(super) fn scan(
    mut file: impl Read,
    range: Range,
    limits: TextLimits,
    stop: impl Fn() -> bool,
) -> io::Result<Scanned> {
    let mut buffer = vec![0; CHUNK];
    let mut scan = Scan::new(range, limits);
    // The image check needs more bytes than a short first read may return.
    let mut filled = 0;
    while filled < SNIFFED {
        match read(&mut file, &mut buffer[filled..])? {
            0 => break,
            length => filled += length,
        }
    }
    if let Some(kind) = ImageKind::sniff(&buffer[..filled]) {
        buffer.truncate(filled);
        return Ok(Scanned::Image(kind, buffer));
    }
    while filled > 0 {
        if stop() {
            return Ok(Scanned::Stopped);
        }
        scan.take(&buffer[..filled]);
        filled = read(&mut file, &mut buffer)?;
    }
    Ok(Scanned::Text(scan.finish()))
}

fn read(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

struct Scan {
    range: Range,
    limits: TextLimits,
    /// Line feeds seen so far.
    feeds: u64,
    /// The start of the wanted bytes: one more than can be shown.
    kept: Vec<u8>,
    /// Line feeds between the wanted lines.
    wanted_feeds: u64,
    wanted: Measure,
    first_line: Measure,
}

impl Scan {
    fn new(range: Range, limits: TextLimits) -> Self {
        Self {
            range,
            limits,
            feeds: 0,
            kept: Vec::new(),
            wanted_feeds: 0,
            wanted: Measure::default(),
            first_line: Measure::default(),
        }
    }

    fn take(&mut self, mut chunk: &[u8]) {
        // Skip lines before the wanted ones.
        if self.feeds < self.range.start {
            let missing = self.range.start - self.feeds;
            match find_feed(chunk, missing) {
                Ok(end) => chunk = &chunk[end + 1..],
                Err(feeds) => return self.feeds += feeds,
            }
            self.feeds += missing;
        }
        // Keep the wanted lines, up to the line feed that ends the last one.
        let end = self.range.limit.map(|limit| self.range.start.saturating_add(limit));
        if end.is_none_or(|end| self.feeds < end) {
            let feed = end.and_then(|end| find_feed(chunk, end - self.feeds).ok());
            let (wanted, rest) = chunk.split_at(feed.unwrap_or(chunk.len()));
            self.feeds += self.keep(wanted);
            chunk = rest;
        }
        self.feeds += count_feeds(chunk);
    }

    /// Takes some of the wanted lines. Returns the number of their line feeds.
    fn keep(&mut self, wanted: &[u8]) -> u64 {
        // A text is never shorter than its bytes, so this many reach or pass the limit.
        let room = (self.limits.bytes + 1).saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&wanted[..wanted.len().min(room)]);
        if self.wanted_feeds == 0 {
            let line = memchr::memchr(b'\n', wanted).unwrap_or(wanted.len());
            self.first_line.add(&wanted[..line]);
        }
        let feeds = count_feeds(wanted);
        self.wanted_feeds += feeds;
        self.wanted.add(wanted);
        feeds
    }

    fn finish(self) -> Selection {
        let complete = self.kept.len() <= self.limits.bytes;
        let mut text = truncate_head(&String::from_utf8_lossy(&self.kept), self.limits);
        if !complete {
            // The last kept line continues in the file. It did not fit, so only the totals need correction.
            text.total_lines = self.wanted_feeds + u64::from(!self.wanted.ends_with_feed);
            text.total_bytes = self.wanted.finish();
        }
        Selection { total_lines: self.feeds + 1, text, first_line_bytes: self.first_line.finish() }
    }
}

/// The position of the `n`th line feed of `chunk`, from 1, or the number of its line feeds if these are fewer.
///
/// Counting many bytes takes much less than finding each line feed among them.
fn find_feed(chunk: &[u8], n: u64) -> Result<usize, u64> {
    /// Bytes that are counted at once.
    const BLOCK: usize = 4096;
    let mut before = 0;
    for (start, block) in (0..).step_by(BLOCK).zip(chunk.chunks(BLOCK)) {
        let feeds = count_feeds(block);
        if n > before && n - before <= feeds {
            let at = memchr::memchr_iter(b'\n', block).zip(before + 1..).find(|(_, number)| *number == n);
            if let Some((at, _)) = at {
                return Ok(start + at);
            }
        }
        before += feeds;
    }
    Err(before)
}

fn count_feeds(chunk: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', chunk).count() as u64
}

/// Measures text that arrives in pieces, with U+FFFD for bytes that are not UTF-8.
#[derive(Default)]
struct Measure {
    bytes: u64,
    /// The start of an incomplete character.
    partial: Vec<u8>,
    ends_with_feed: bool,
}

impl Measure {
    fn add(&mut self, piece: &[u8]) {
        if let Some(last) = piece.last() {
            self.ends_with_feed = *last == b'\n';
        }
        let mut rest = self.complete_partial(piece);
        loop {
            let error = match str::from_utf8(rest) {
                Ok(valid) => return self.bytes += valid.len() as u64,
                Err(error) => error,
            };
            self.bytes += error.valid_up_to() as u64;
            rest = &rest[error.valid_up_to()..];
            let Some(invalid) = error.error_len() else { return self.partial.extend_from_slice(rest) };
            self.add_replacement();
            rest = &rest[invalid..];
        }
    }

    /// Completes a character that began in the previous piece; returns the rest of the piece.
    fn complete_partial<'a>(&mut self, mut piece: &'a [u8]) -> &'a [u8] {
        while !self.partial.is_empty()
            && let Some((next, rest)) = piece.split_first()
        {
            self.partial.push(*next);
            match str::from_utf8(&self.partial) {
                Ok(_) => {
                    self.bytes += self.partial.len() as u64;
                    self.partial.clear();
                }
                Err(error) if error.error_len().is_none() => {}
                Err(_) => {
                    // The pending bytes are no character, and `next` may begin one.
                    self.add_replacement();
                    self.partial.clear();
                    break;
                }
            }
            piece = rest;
        }
        piece
    }

    fn add_replacement(&mut self) {
        self.bytes += char::REPLACEMENT_CHARACTER.len_utf8() as u64;
    }

    fn finish(mut self) -> u64 {
        if !self.partial.is_empty() {
            self.add_replacement();
        }
        self.bytes
    }
}

#[cfg(test)]
mod tests;
