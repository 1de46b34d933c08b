//! The oddities of a session file, and their positions.

use std::{fmt, path::PathBuf};

use crate::lines::LinePosition;

/// The number of oddities that are kept with their positions; further ones are only counted.
pub const KEPT_ODDITIES: usize = 100;

/// An oddity of a session file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum OddityKind {
    /// A byte order mark stands before the header. It was passed over.
    ByteOrderMark,
    /// Lines end with CR LF. They were read as if they ended with LF. The place is the first of them.
    CrLf,
    /// The header's version is missing though the entries are linked, or is no whole number from 1 on.
    Version,
    /// No header stands before the first entry. Sessions without one are not opened, but can be repaired.
    MissingHeader,
    /// The last line has neither its end nor its LF: it was being written when the writer died. Skipped.
    TornTail,
    /// A line that is no JSON. Skipped.
    Broken,
    /// A line over the limit. Skipped.
    TooLong,
    /// A run of zeros, as file systems leave after a power loss. Skipped; what stands around it was read.
    Zeros,
    /// A line with bytes that are not UTF-8. It was read with U+FFFD in their place.
    NotUtf8,
    /// Several records in one line, whose LFs were lost. All of them were read.
    Joined,
    /// JSON that is no entry, such as an object without an id. Skipped.
    NoEntry,
    /// Another header: two sessions in one file. Skipped; the entries behind it were read.
    SecondHeader,
    /// A line that repeats the entry of its id, byte for byte. Skipped.
    Repeated,
    /// Another entry of an id that is taken. Both were read; the id means the later one from there on.
    DuplicateId,
    /// The entry that this one follows is nowhere in the file. It was read as if it followed the entry before it.
    MissingParent,
    /// The entry that this one follows comes later in the file. It was read as if it followed the entry before it.
    LateParent,
    /// The entry follows itself, by way of others or not. It was read as if it followed the entry before it.
    Cycle,
}

impl OddityKind {
    /// All there are, in the order of reports.
    pub const ALL: [Self; 17] = [
        Self::ByteOrderMark,
        Self::CrLf,
        Self::Version,
        Self::MissingHeader,
        Self::TornTail,
        Self::Broken,
        Self::TooLong,
        Self::Zeros,
        Self::NotUtf8,
        Self::Joined,
        Self::NoEntry,
        Self::SecondHeader,
        Self::Repeated,
        Self::DuplicateId,
        Self::MissingParent,
        Self::LateParent,
        Self::Cycle,
    ];

    /// The name for programs. It never changes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ByteOrderMark => "byte_order_mark",
            Self::CrLf => "cr_lf",
            Self::Version => "version",
            Self::MissingHeader => "missing_header",
            Self::TornTail => "torn_tail",
            Self::Broken => "broken",
            Self::TooLong => "too_long",
            Self::Zeros => "zeros",
            Self::NotUtf8 => "not_utf8",
            Self::Joined => "joined",
            Self::NoEntry => "no_entry",
            Self::SecondHeader => "second_header",
            Self::Repeated => "repeated",
            Self::DuplicateId => "duplicate_id",
            Self::MissingParent => "missing_parent",
            Self::LateParent => "late_parent",
            Self::Cycle => "cycle",
        }
    }

    /// Returns whether content may have been lost or changed.
    #[must_use]
    pub fn loses(self) -> bool {
        matches!(
            self,
            Self::TornTail
                | Self::Broken
                | Self::TooLong
                | Self::Zeros
                | Self::NotUtf8
                | Self::NoEntry
                | Self::MissingParent
        )
    }

    /// Returns whether the content is complete all the same, so that the user need not be told when a session opens.
    #[must_use]
    pub fn is_harmless(self) -> bool {
        matches!(self, Self::ByteOrderMark | Self::CrLf)
    }

    /// For a count of lines: `3 no JSON (skipped)`.
    fn in_short(self) -> &'static str {
        match self {
            Self::ByteOrderMark => "with a byte order mark",
            Self::CrLf => "ended with CR LF",
            Self::Version => "a header without a usable version",
            Self::MissingHeader => "without a header before them",
            Self::TornTail => "torn at the end (skipped)",
            Self::Broken => "no JSON (skipped)",
            Self::TooLong => "over the size limit (skipped)",
            Self::Zeros => "zeros (skipped)",
            Self::NotUtf8 => "not UTF-8 (read as far as they are)",
            Self::Joined => "several entries in one (read)",
            Self::NoEntry => "no session entries (skipped)",
            Self::SecondHeader => "a second header (skipped)",
            Self::Repeated => "repeated (skipped)",
            Self::DuplicateId => "with an id that is taken (read)",
            Self::MissingParent => "without the entry that they follow (read)",
            Self::LateParent => "before the entry that they follow (read)",
            Self::Cycle => "that follow themselves (read)",
        }
    }
}

/// One sentence without its end, about one place.
impl fmt::Display for OddityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ByteOrderMark => "the file begins with a byte order mark, which was passed over",
            Self::CrLf => "lines end with CR LF; they were read as if they ended with LF",
            Self::Version => {
                "the header names no usable version; the file was read as what its entries look like"
            }
            Self::MissingHeader => "no header of a session stands before the first entry",
            Self::TornTail => "the last line is torn and was skipped",
            Self::Broken => "the line is no JSON and was skipped",
            Self::TooLong => "the line is over the size limit and was skipped",
            Self::Zeros => "zeros stand in the place of text and were skipped",
            Self::NotUtf8 => "the line has bytes that are not UTF-8; it was read without them",
            Self::Joined => "several records stand in one line; all of them were read",
            Self::NoEntry => "the line is no session entry and was skipped",
            Self::SecondHeader => "another header stands here and was skipped; what follows it was read",
            Self::Repeated => "the line repeats an earlier one and was skipped",
            Self::DuplicateId => "the entry has the id of an earlier one; both were read",
            Self::MissingParent => {
                "the entry follows one that is not there; it was read as if it followed the one before it"
            }
            Self::LateParent => {
                "the entry follows one that comes later; it was read as if it followed the one before it"
            }
            Self::Cycle => "the entry follows itself; it was read as if it followed the one before it",
        })
    }
}

/// One thing that was odd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Oddity {
    /// The kind.
    pub kind: OddityKind,
    /// The position.
    pub place: LinePosition,
}

/// The oddities of a file that was opened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoadReport {
    oddities: Vec<Oddity>,
    counts: [u64; OddityKind::ALL.len()],
    /// The version that the file was of, if it was brought to the current one.
    pub migrated_from: Option<u32>,
    /// The file as it was before, when it was brought to the current version on the disk.
    pub original: Option<PathBuf>,
}

impl LoadReport {
    /// The first oddities in the order of the file, at most [`KEPT_ODDITIES`]; of CR LF the first alone.
    #[must_use]
    pub fn oddities(&self) -> &[Oddity] {
        &self.oddities
    }

    /// The number of oddities of a kind.
    #[must_use]
    pub fn count(&self, kind: OddityKind) -> u64 {
        self.counts[kind as usize]
    }

    /// The number of all oddities; lines that end with CR LF count as one.
    #[must_use]
    pub fn total(&self) -> u64 {
        OddityKind::ALL
            .iter()
            .map(|kind| match kind {
                OddityKind::CrLf => self.count(*kind).min(1),
                _ => self.count(*kind),
            })
            .sum()
    }

    /// Returns whether the file has no oddity.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.total() == 0
    }

    /// One sentence for a log about the lines that were not read as written; `None` without such lines.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let odd: Vec<String> = OddityKind::ALL
            .iter()
            .filter(|kind| !kind.is_harmless())
            .filter_map(|kind| match self.count(*kind) {
                0 => None,
                count => Some(format!("{count} {}", kind.in_short())),
            })
            .collect();
        (!odd.is_empty()).then(|| format!("odd lines in the session file: {}", odd.join(", ")))
    }

    pub(super) fn note(&mut self, kind: OddityKind, place: LinePosition) {
        let count = &mut self.counts[kind as usize];
        *count += 1;
        let is_wanted = kind != OddityKind::CrLf || *count == 1;
        if is_wanted && self.oddities.len() < KEPT_ODDITIES {
            self.oddities.push(Oddity { kind, place });
        }
    }

    /// Changes the kind of oddities, now that the whole file is read. Those without a kept position keep their kind.
    pub(super) fn reclassify(&mut self, kind: OddityKind, mut really: impl FnMut(u64) -> Option<OddityKind>) {
        for oddity in self.oddities.iter_mut().filter(|oddity| oddity.kind == kind) {
            if let Some(really) = really(oddity.place.byte) {
                self.counts[kind as usize] -= 1;
                self.counts[really as usize] += 1;
                oddity.kind = really;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_listed_once_and_in_order() {
        for (at, kind) in OddityKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, at, "{kind:?}");
        }
        let names: std::collections::HashSet<&str> = OddityKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), OddityKind::ALL.len());
    }

    #[test]
    fn places_are_bounded_and_counts_are_not() {
        let mut report = LoadReport::default();
        assert!(report.is_clean() && report.warning().is_none());
        for line in 1..=10 {
            report.note(OddityKind::CrLf, LinePosition { line, ..LinePosition::default() });
        }
        assert_eq!((report.total(), report.oddities().len(), report.warning()), (1, 1, None));
        for line in 1..=1000 {
            report.note(OddityKind::Broken, LinePosition { line, ..LinePosition::default() });
        }
        assert_eq!((report.total(), report.oddities().len()), (1001, KEPT_ODDITIES));
        assert_eq!(report.warning().unwrap(), "odd lines in the session file: 1000 no JSON (skipped)");
    }
}
