//! Collects a command's output: the end to show, all of it in a file.

use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_files::{
    QuickAccess,
    fail_point::{self, Point},
};
use agentd_protocol::tool::Truncation;

use crate::{
    artifacts::CreatedFile,
    output_storage::{LogFileFacts, OutputStorage},
    plain_text::Utf8Stream,
    window::{MAX_BYTES, TailWindow},
};

/// Takes output of any length in bounded memory: shows its end, and keeps all of it in a file once it is long.
///
/// The file, readable by its owner only, is created when the output passes [`MAX_BYTES`] (before or after decoding) or
/// [`MAX_LINES`](crate::MAX_LINES).
#[derive(Debug)]
pub struct OutputTail {
    decoder: Utf8Stream,
    window: TailWindow,
    raw_bytes: u64,
    spill: Spill,
}

/// Bytes written at once: a fraction of a millisecond's work, unless the disk is behind.
const WRITE_BYTES: usize = 256 * 1024;

/// Where the whole output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FullOutput<'a> {
    /// Short enough to be shown whole.
    Shown,
    /// In this file.
    File(&'a Path),
    /// Lost, for this kind of error: the file could not be created or written.
    Lost(std::io::ErrorKind),
}

impl OutputTail {
    /// No output yet; a file would be created in `place`.
    #[must_use]
    pub fn new(place: OutputStorage) -> Self {
        Self { decoder: Utf8Stream::new(), window: TailWindow::new(), raw_bytes: 0, spill: Spill::new(place) }
    }

    /// Takes a piece of raw output, which goes to the file unchanged, and returns its decoded text.
    pub async fn push<'a>(&mut self, bytes: &'a [u8]) -> std::borrow::Cow<'a, str> {
        let text = self.decoder.push(bytes);
        self.window.push(&text);
        self.keep(bytes, bytes.len() as u64).await;
        text
    }

    /// Takes a piece of output as text that was made from `raw_bytes` bytes; the text goes to the file.
    ///
    /// Use either this method or [`OutputTail::push`] for one output, not both.
    pub async fn push_text(&mut self, text: &str, raw_bytes: usize) {
        self.window.push(text);
        self.keep(text.as_bytes(), raw_bytes as u64).await;
    }

    async fn keep(&mut self, bytes: &[u8], raw_bytes: u64) {
        self.raw_bytes += raw_bytes;
        self.spill.push(bytes).await;
        if self.raw_bytes > MAX_BYTES as u64 || self.window.is_truncated() {
            self.spill.open().await;
        }
    }

    /// Ends the output. Returns the replacement for a character that was cut off, which is already counted.
    pub async fn finish(&mut self) -> &'static str {
        let rest = self.decoder.finish();
        self.window.push(rest);
        self.keep(&[], 0).await;
        self.spill.finish();
        rest
    }

    /// The end of the output so far.
    #[must_use]
    pub fn snapshot(&self) -> Truncation {
        self.window.snapshot()
    }

    /// Where the whole output is. The file is complete after [`OutputTail::finish`].
    #[must_use]
    pub fn full_output(&self) -> FullOutput<'_> {
        match (self.spill.path(), self.spill.failure()) {
            (Some(path), _) => FullOutput::File(path),
            (None, Some(error)) => FullOutput::Lost(error.kind()),
            (None, None) => FullOutput::Shown,
        }
    }

    /// The length of the file in bytes, when it has only the beginning because the output passed the limit of one file.
    #[must_use]
    pub fn cut_at(&self) -> Option<u64> {
        self.spill.cut_at()
    }

    /// The file's artifact id, once the file exists in the session's folder.
    #[must_use]
    pub fn artifact_id(&self) -> Option<&str> {
        self.spill.artifact_id()
    }

    /// Keeps all of the output in a file from now on, however short it is.
    pub async fn open_file(&mut self) {
        self.spill.open().await;
    }

    /// Facts about that file.
    #[must_use]
    pub fn file(&self) -> LogFileFacts {
        LogFileFacts {
            path: self.spill.path().map(Path::to_owned),
            artifact_id: self.spill.artifact_id().map(str::to_owned),
            bytes: self.spill.bytes(),
            failure: self.spill.failure().map(io::Error::kind),
        }
    }

    /// Counts of the whole output.
    #[must_use]
    pub fn window(&self) -> &TailWindow {
        &self.window
    }
}

/// Holds the beginning of an output in memory until the output is long, then all of it in a file.
#[derive(Debug)]
pub(crate) struct Spill {
    place: OutputStorage,
    state: SpillState,
}

#[derive(Debug)]
enum SpillState {
    /// The whole output so far, in memory.
    Held(Vec<u8>),
    Open(SpillFile),
    Failed(io::Error),
}

#[derive(Debug)]
struct SpillFile {
    path: PathBuf,
    id: Option<String>,
    file: Arc<File>,
    writes: QuickAccess,
    /// Bytes in the file, and whether some did not fit.
    bytes: u64,
    is_cut: bool,
}

impl SpillFile {
    /// Takes nothing more once something was left out, since later output would look adjacent.
    async fn append(&mut self, bytes: &[u8], limit: u64) -> io::Result<()> {
        if self.is_cut || bytes.is_empty() {
            return Ok(());
        }
        let room = usize::try_from(limit - self.bytes).unwrap_or(usize::MAX);
        let fits = &bytes[..bytes.len().min(room)];
        self.is_cut = fits.len() < bytes.len();
        fail_point::call(Point::SpillWrite)?;
        for piece in fits.chunks(WRITE_BYTES) {
            self.write(piece).await?;
        }
        self.bytes += fits.len() as u64;
        Ok(())
    }

    async fn write(&self, piece: &[u8]) -> io::Result<()> {
        if let Some(written) = self.writes.run_here(|| (&*self.file).write_all(piece)) {
            return written;
        }
        let (file, piece) = (Arc::clone(&self.file), piece.to_owned());
        self.writes.run(move || (&*file).write_all(&piece)).await.map_err(io::Error::other)?
    }
}

impl Spill {
    /// An empty output; a file would be created in `place`.
    pub(crate) fn new(place: OutputStorage) -> Self {
        Self { place, state: SpillState::Held(Vec::new()) }
    }

    /// The file's artifact id, once there is one.
    pub(crate) fn artifact_id(&self) -> Option<&str> {
        match &self.state {
            SpillState::Open(open) => open.id.as_deref(),
            SpillState::Held(_) | SpillState::Failed(_) => None,
        }
    }

    /// The file's path, once it exists.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.state {
            SpillState::Open(open) => Some(&open.path),
            SpillState::Held(_) | SpillState::Failed(_) => None,
        }
    }

    /// Why the output could not be kept whole.
    pub(crate) fn failure(&self) -> Option<&io::Error> {
        match &self.state {
            SpillState::Failed(error) => Some(error),
            SpillState::Held(_) | SpillState::Open(_) => None,
        }
    }

    /// The length of the file in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.state {
            SpillState::Open(open) => open.bytes,
            SpillState::Held(_) | SpillState::Failed(_) => 0,
        }
    }

    /// The length of the file in bytes, when the output passed the limit.
    pub(crate) fn cut_at(&self) -> Option<u64> {
        match &self.state {
            SpillState::Open(open) if open.is_cut => Some(open.bytes),
            SpillState::Held(_) | SpillState::Open(_) | SpillState::Failed(_) => None,
        }
    }

    /// Appends to the output, as far as it fits into the file. Cancel safety: none, the output would lack a part.
    pub(crate) async fn push(&mut self, bytes: &[u8]) {
        match &mut self.state {
            SpillState::Held(held) => held.extend_from_slice(bytes),
            SpillState::Open(open) => {
                let outcome = open.append(bytes, self.place.limit()).await;
                self.check(outcome).await;
            }
            SpillState::Failed(_) => {}
        }
    }

    /// Moves the output to a file, if it is not in one yet.
    pub(crate) async fn open(&mut self) {
        let SpillState::Held(held) = &mut self.state else { return };
        let held = std::mem::take(held);
        let place = self.place.clone();
        let created = tokio::task::spawn_blocking(move || place.create()).await;
        match created.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(CreatedFile { path, id, file }) => {
                self.state = SpillState::Open(SpillFile {
                    writes: QuickAccess::new(path.parent().map(Path::to_owned)),
                    path,
                    id,
                    file: Arc::new(file),
                    bytes: 0,
                    is_cut: false,
                });
                self.push(&held).await;
            }
            Err(error) => self.check(Err(error)).await,
        }
    }

    /// Ends the output: counts it, if it is in a file.
    pub(crate) fn finish(&self) {
        if let SpillState::Open(open) = &self.state {
            self.place.meter().add(open.bytes);
        }
    }

    async fn check(&mut self, outcome: io::Result<()>) {
        let Err(error) = outcome else { return };
        tracing::warn!(%error, place = ?self.place, "cannot save the full output of a command");
        if let SpillState::Open(SpillFile { path, .. }) =
            std::mem::replace(&mut self.state, SpillState::Failed(error))
        {
            // A partial output is useless, least of all on a full disk.
            if let Err(error) = tokio::fs::remove_file(&path).await {
                tracing::warn!(%error, path = %path.display(), "cannot remove a part of an output");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;
    use crate::output_storage::OutputMeter;

    fn tail() -> (tempfile::TempDir, OutputTail) {
        let dir = tempfile::tempdir().unwrap();
        let tail = OutputTail::new(dir.path().into());
        (dir, tail)
    }

    #[track_caller]
    fn file(tail: &OutputTail) -> &Path {
        match tail.full_output() {
            FullOutput::File(path) => path,
            other => panic!("no file but {other:?}"),
        }
    }

    #[tokio::test]
    async fn short_output_makes_no_file() {
        let (dir, mut tail) = tail();
        tail.push(&[b'x'; MAX_BYTES]).await;
        tail.finish().await;
        assert_eq!(tail.full_output(), FullOutput::Shown);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn long_output_is_whole_in_a_private_file() {
        let (_dir, mut tail) = tail();
        let mut all = Vec::new();
        for round in 0..3000u32 {
            let piece = format!("line {round} \u{fffd}");
            tail.push(piece.as_bytes()).await;
            tail.push(b"\xff\r\n").await;
            all.extend_from_slice(piece.as_bytes());
            all.extend_from_slice(b"\xff\r\n");
        }
        tail.finish().await;
        let path = file(&tail);
        assert_eq!(fs::read(path).unwrap(), all);
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        let name = path.file_name().unwrap().to_str().unwrap();
        let hex = name.strip_prefix("pi-bash-").and_then(|name| name.strip_suffix(".log")).unwrap();
        assert!(hex.len() == 16 && hex.bytes().all(|digit| digit.is_ascii_hexdigit()), "{name}");
        assert_eq!(tail.snapshot().total_lines, 3000);
    }

    #[tokio::test]
    async fn a_file_has_no_more_than_its_place_allows() {
        let dir = tempfile::tempdir().unwrap();
        let limit = MAX_BYTES as u64 + 10;
        let place = OutputStorage::from(dir.path()).limited(limit, OutputMeter::default());
        let mut tail = OutputTail::new(place.clone());
        tail.push(&vec![b'x'; MAX_BYTES + 10]).await;
        assert_eq!(tail.cut_at(), None);
        for piece in [&b"more"[..], b"and more"] {
            tail.push(piece).await;
        }
        tail.finish().await;
        assert_eq!(tail.cut_at(), Some(limit));
        assert_eq!(fs::read(file(&tail)).unwrap(), vec![b'x'; MAX_BYTES + 10]);
        assert!(tail.snapshot().content.ends_with("moreand more"));
        // Output that was held before the file existed is cut as well.
        let mut tail = OutputTail::new(place);
        tail.push(&vec![b'y'; 2 * MAX_BYTES]).await;
        tail.finish().await;
        assert_eq!(fs::metadata(file(&tail)).unwrap().len(), limit);
    }

    #[tokio::test]
    async fn many_short_lines_make_a_file() {
        let (_dir, mut tail) = tail();
        tail.push("x\n".repeat(2001).as_bytes()).await;
        tail.finish().await;
        assert_eq!(fs::read_to_string(file(&tail)).unwrap(), "x\n".repeat(2001));
    }

    #[tokio::test]
    async fn output_that_grows_by_decoding_makes_a_file() {
        let (_dir, mut tail) = tail();
        tail.push(&vec![0xff; MAX_BYTES / 2]).await;
        tail.finish().await;
        assert_eq!(fs::read(file(&tail)).unwrap(), vec![0xff; MAX_BYTES / 2]);
    }

    #[tokio::test]
    async fn raw_bytes_count_when_text_is_given() {
        let (_dir, mut tail) = tail();
        tail.push_text("little", MAX_BYTES + 1).await;
        tail.finish().await;
        assert_eq!(fs::read_to_string(file(&tail)).unwrap(), "little");
        assert!(!tail.snapshot().truncated);
    }

    #[tokio::test]
    async fn a_missing_folder_loses_the_file_and_not_the_end() {
        let mut tail = OutputTail::new(Path::new("/nonexistent/folder").into());
        tail.push(&[b'x'; MAX_BYTES + 1]).await;
        tail.push(b"end").await;
        tail.finish().await;
        assert_eq!(tail.full_output(), FullOutput::Lost(std::io::ErrorKind::NotFound));
        assert!(tail.snapshot().content.ends_with("xend"));
    }

    #[tokio::test]
    async fn a_cut_character_at_the_end_is_shown_as_replaced() {
        let (_dir, mut tail) = tail();
        tail.push(b"a\xe6\xbc").await;
        assert_eq!(tail.snapshot().content, "a");
        assert_eq!(tail.finish().await, "\u{fffd}");
        assert_eq!(tail.snapshot().content, "a\u{fffd}");
    }
}
