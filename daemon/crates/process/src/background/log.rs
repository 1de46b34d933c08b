//! Keeps the output of a background process: its end in memory, and where the rest is.

use std::io;

use agentd_protocol::text_bounds;
use tokio::{fs::File, io::AsyncWriteExt as _};

use crate::{
    artifacts::CreatedFile,
    bounded_text::TailBuffer,
    output_storage::{LogFileFacts, OutputStorage},
};

/// The output of a background process as text. Positions are bytes from its beginning; the file, if there is one, has
/// the same text and so the same positions.
#[derive(Debug)]
pub(super) struct OutputLog {
    end: TailBuffer,
    total: u64,
    lines: u64,
    /// The line of a terminal's cursor.
    current: String,
    pub(super) file: LogFileFacts,
    /// The position up to which the output has been shown.
    shown: u64,
}

/// A part of the output of a background process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputExcerpt {
    /// Where it begins: later than asked for when that part is no longer in memory.
    pub from: u64,
    /// The text.
    pub text: String,
    /// The line of a terminal's cursor, which is not part of the output yet; empty without a terminal.
    pub current: String,
}

impl OutputExcerpt {
    /// Where it ends.
    #[must_use]
    pub fn to(&self) -> u64 {
        self.from + self.text.len() as u64
    }
}

impl OutputLog {
    pub(super) fn new(keep_bytes: usize) -> Self {
        Self {
            end: TailBuffer::new(keep_bytes),
            total: 0,
            lines: 0,
            current: String::new(),
            file: LogFileFacts::default(),
            shown: 0,
        }
    }

    /// A log whose output began before it: `text` is the end of the `total` bytes and `lines` line feeds so far.
    pub(super) fn begun(keep_bytes: usize, text: &str, total: u64, lines: u64) -> Self {
        let mut log = Self::new(keep_bytes);
        log.push(text, String::new());
        (log.total, log.lines) = (total.max(log.total), lines.max(log.lines));
        log
    }

    pub(super) fn push(&mut self, text: &str, current: String) {
        self.total += text.len() as u64;
        self.lines += memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64;
        self.end.push(text);
        self.current = current;
    }

    /// Everything that is kept in memory.
    pub(super) fn kept(&self) -> &str {
        self.end.as_str()
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Lines, including an unfinished last one.
    pub(super) fn lines(&self) -> u64 {
        let open = !self.kept().is_empty() && !self.kept().ends_with('\n');
        self.lines + u64::from(open)
    }

    /// The output from `from` on, as far as it is kept.
    pub(super) fn since(&self, from: u64) -> OutputExcerpt {
        let kept = self.kept();
        let kept_from = self.total - kept.len() as u64;
        let wanted = from.clamp(kept_from, self.total) - kept_from;
        // The kept text is in memory, so its length fits a `usize`.
        let at = text_bounds::ceil(kept, usize::try_from(wanted).unwrap_or(usize::MAX));
        OutputExcerpt {
            from: kept_from + at as u64,
            text: kept[at..].to_owned(),
            current: self.current.clone(),
        }
    }

    /// The last lines, as far as they are kept.
    pub(super) fn last_lines(&self, count: usize) -> OutputExcerpt {
        let kept = self.kept();
        let body = kept.strip_suffix('\n').unwrap_or(kept);
        let at = match count.checked_sub(1) {
            None => kept.len(),
            Some(before) => memchr::memrchr_iter(b'\n', body.as_bytes()).nth(before).map_or(0, |at| at + 1),
        };
        let from = self.total - (kept.len() - at) as u64;
        OutputExcerpt { from, text: kept[at..].to_owned(), current: self.current.clone() }
    }

    pub(super) fn shown(&self) -> u64 {
        self.shown
    }

    pub(super) fn set_shown(&mut self, to: u64) {
        self.shown = self.shown.max(to.min(self.total));
    }
}

/// Takes output from its beginning, up to a number of bytes.
#[derive(Debug)]
pub(super) struct LogFile {
    place: OutputStorage,
    /// Bytes that still fit.
    room: u64,
    file: Option<File>,
    facts: LogFileFacts,
}

impl LogFile {
    /// No file yet; one would be created in `place`, with at most `limit` bytes.
    pub(super) fn new(place: OutputStorage, limit: u64) -> Self {
        Self { place, room: limit, file: None, facts: LogFileFacts::default() }
    }

    /// Whether the file exists, or could not be created.
    pub(super) fn has_begun(&self) -> bool {
        self.facts.path.is_some() || self.facts.failure.is_some()
    }

    pub(super) fn is_full(&self) -> bool {
        self.room == 0
    }

    pub(super) fn facts(&self) -> LogFileFacts {
        self.facts.clone()
    }

    /// Appends what fits, in whole characters. Creates the file first if needed.
    pub(super) async fn append(&mut self, text: &str) {
        if self.facts.failure.is_some() || self.room == 0 {
            return;
        }
        let room = usize::try_from(self.room).unwrap_or(usize::MAX);
        let fits = text_bounds::head(text, room);
        let outcome = self.write(fits).await;
        match outcome {
            Ok(()) => {
                self.facts.bytes += fits.len() as u64;
                // Later output must not look adjacent to what is here.
                self.room = if fits.len() < text.len() { 0 } else { self.room - fits.len() as u64 };
            }
            Err(error) => {
                tracing::warn!(%error, place = ?self.place, "cannot save the output of a background process");
                self.facts.failure = Some(error.kind());
                self.file = None;
            }
        }
    }

    /// Creates the file, so that it is there before the first output.
    pub(super) async fn begin(&mut self) {
        if let Err(error) = self.create().await {
            tracing::warn!(%error, place = ?self.place, "cannot save the output of a background process");
            self.facts.failure = Some(error.kind());
        }
    }

    /// The output has ended. A file without content goes.
    pub(super) async fn finish(&mut self) {
        self.place.meter().add(self.facts.bytes);
        self.file = None;
        if self.facts.bytes == 0
            && let Some(path) = self.facts.path.take()
        {
            self.facts.artifact_id = None;
            if let Err(error) = tokio::fs::remove_file(&path).await {
                tracing::warn!(%error, path = %path.display(), "cannot remove an empty output");
            }
        }
    }

    async fn create(&mut self) -> io::Result<()> {
        let place = self.place.clone();
        let created = tokio::task::spawn_blocking(move || place.create()).await;
        let CreatedFile { path, file, id } = created.map_err(io::Error::other)??;
        (self.facts.path, self.facts.artifact_id) = (Some(path), id);
        self.file = Some(File::from_std(file));
        Ok(())
    }

    async fn write(&mut self, text: &str) -> io::Result<()> {
        if self.file.is_none() {
            self.create().await?;
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(text.as_bytes()).await?;
        // Readers must find in the file what was counted.
        file.flush().await
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn log(text: &str, keep: usize) -> OutputLog {
        let mut log = OutputLog::new(keep);
        log.push(text, String::new());
        log
    }

    #[test]
    fn places_are_counted_from_the_beginning() {
        let log = log("one\ntwo\n", 100);
        let at = |from| (log.since(from).from, log.since(from).text);
        assert_eq!(at(0), (0, "one\ntwo\n".into()));
        assert_eq!(at(4), (4, "two\n".into()));
        assert_eq!(at(8), (8, String::new()));
        assert_eq!(at(1000), (8, String::new()));
        assert_eq!(log.lines(), 2);
    }

    #[test]
    fn what_is_not_kept_is_left_out() {
        let mut log = OutputLog::new(4);
        for piece in ["abc", "def", "ghi", "jkl"] {
            log.push(piece, String::new());
        }
        let rest = log.since(0);
        assert_eq!(rest.to(), 12);
        assert!(rest.from > 0 && "abcdefghijkl"[rest.from as usize..] == rest.text, "{rest:?}");
    }

    #[test]
    fn the_last_lines() {
        let lines = |text: &str, count| log(text, 100).last_lines(count).text;
        assert_eq!(lines("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(lines("a\nb\nc", 2), "b\nc");
        assert_eq!(lines("a\nb", 9), "a\nb");
        assert_eq!(lines("a\nb", 0), "");
        assert_eq!(lines("", 3), "");
    }

    #[test]
    fn what_was_shown_only_grows() {
        let mut log = log("abc", 100);
        log.set_shown(2);
        log.set_shown(1);
        assert_eq!(log.shown(), 2);
        log.set_shown(99);
        assert_eq!(log.shown(), 3);
    }

    proptest! {
        #[test]
        fn excerpts_are_parts_of_the_whole(
            pieces in proptest::collection::vec("[a-zé漢\n]{0,12}", 0..30),
            keep in 1usize..30,
            from in 0u64..200,
        ) {
            let mut log = OutputLog::new(keep);
            pieces.iter().for_each(|piece| log.push(piece, String::new()));
            let whole = pieces.concat();
            let seen = log.since(from);
            prop_assert_eq!(seen.to(), whole.len() as u64);
            prop_assert!(whole.ends_with(&seen.text));
            prop_assert!(seen.from >= from.min(whole.len() as u64));
            prop_assert_eq!(log.lines(), whole.lines().count() as u64);
        }
    }
}

#[cfg(test)]
mod file_tests {
    use std::{fs, path::Path};

    use crate::background::log::*;

    #[tokio::test]
    async fn it_has_the_beginning_and_nothing_after_a_gap() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = LogFile::new(dir.path().into(), 6);
        assert!(!file.has_begun() && !file.is_full());
        for piece in ["abc", "漢漢", "x"] {
            file.append(piece).await;
        }
        let facts = file.facts();
        assert_eq!((facts.bytes, file.is_full()), (6, true));
        assert_eq!(fs::read_to_string(facts.path.unwrap()).unwrap(), "abc漢");
        let mut file = LogFile::new(dir.path().into(), 4);
        file.append("abc漢").await;
        file.append("d").await;
        assert_eq!(fs::read_to_string(file.facts().path.unwrap()).unwrap(), "abc");
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_made_is_told() {
        let mut file = LogFile::new(Path::new("/no/such/folder").into(), 6);
        file.append("a").await;
        assert_eq!(file.facts().failure, Some(io::ErrorKind::NotFound));
        assert!(file.has_begun());
    }
}
