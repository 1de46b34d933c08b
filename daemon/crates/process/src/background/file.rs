//! The file of a background process's long output.

use std::io;

use tokio::{fs::File, io::AsyncWriteExt as _};

use super::log::LogFileFacts;
use crate::artifacts::{Created, OutputStorage};

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
        let fits = &text[..spill_boundary(text, room)];
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

    async fn write(&mut self, text: &str) -> io::Result<()> {
        if self.file.is_none() {
            let place = self.place.clone();
            let created = tokio::task::spawn_blocking(move || place.create()).await;
            let Created { path, file, .. } = created.map_err(io::Error::other)??;
            self.facts.path = Some(path);
            self.file = Some(File::from_std(file));
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(text.as_bytes()).await?;
        // Readers must find in the file what was counted.
        file.flush().await
    }
}

/// The last character boundary at or before `at`, also for `at` behind the end.
fn spill_boundary(text: &str, at: usize) -> usize {
    if at >= text.len() { text.len() } else { crate::suffix::floor_boundary(text, at) }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

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
