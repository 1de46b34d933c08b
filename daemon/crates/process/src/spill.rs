//! The file of an output that is too long to show.

use std::{
    io,
    path::{Path, PathBuf},
};

use agentd_files::fail_point::{self, Point};
use tokio::{fs::File, io::AsyncWriteExt as _};

use crate::artifacts::{Created, OutputStorage};

/// Holds the beginning of an output in memory until the output is long, then all of it in a file.
#[derive(Debug)]
pub(crate) struct Spill {
    place: OutputStorage,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The whole output so far, in memory.
    Held(Vec<u8>),
    Open(OpenFile),
    Failed(io::Error),
}

#[derive(Debug)]
struct OpenFile {
    path: PathBuf,
    id: Option<String>,
    file: File,
    /// Bytes in the file, and whether some did not fit.
    bytes: u64,
    is_cut: bool,
}

impl OpenFile {
    /// Takes nothing more once something was left out, since later output would look adjacent.
    async fn append(&mut self, bytes: &[u8], limit: u64) -> io::Result<()> {
        if self.is_cut || bytes.is_empty() {
            return Ok(());
        }
        let room = usize::try_from(limit - self.bytes).unwrap_or(usize::MAX);
        let fits = &bytes[..bytes.len().min(room)];
        self.is_cut = fits.len() < bytes.len();
        fail_point::call(Point::SpillWrite)?;
        self.file.write_all(fits).await?;
        self.bytes += fits.len() as u64;
        Ok(())
    }
}

impl Spill {
    /// An empty output; a file would be created in `place`.
    pub(crate) fn new(place: OutputStorage) -> Self {
        Self { place, state: State::Held(Vec::new()) }
    }

    /// The file's artifact id, once there is one.
    pub(crate) fn artifact_id(&self) -> Option<&str> {
        match &self.state {
            State::Open(open) => open.id.as_deref(),
            State::Held(_) | State::Failed(_) => None,
        }
    }

    /// The file's path, once it exists.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.state {
            State::Open(open) => Some(&open.path),
            State::Held(_) | State::Failed(_) => None,
        }
    }

    /// Why the output could not be kept whole.
    pub(crate) fn failure(&self) -> Option<&io::Error> {
        match &self.state {
            State::Failed(error) => Some(error),
            State::Held(_) | State::Open(_) => None,
        }
    }

    /// The length of the file in bytes, when the output passed the limit.
    pub(crate) fn cut_at(&self) -> Option<u64> {
        match &self.state {
            State::Open(open) if open.is_cut => Some(open.bytes),
            State::Held(_) | State::Open(_) | State::Failed(_) => None,
        }
    }

    /// Appends to the output, as far as it fits into the file. Cancel safety: none, the output would lack a part.
    pub(crate) async fn push(&mut self, bytes: &[u8]) {
        match &mut self.state {
            State::Held(held) => held.extend_from_slice(bytes),
            State::Open(open) => {
                let outcome = open.append(bytes, self.place.limit()).await;
                self.check(outcome).await;
            }
            State::Failed(_) => {}
        }
    }

    /// Moves the output to a file, if it is not in one yet.
    pub(crate) async fn open(&mut self) {
        let State::Held(held) = &mut self.state else { return };
        let held = std::mem::take(held);
        let place = self.place.clone();
        let created = tokio::task::spawn_blocking(move || place.create()).await;
        match created.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(Created { path, id, file }) => {
                self.state =
                    State::Open(OpenFile { path, id, file: File::from_std(file), bytes: 0, is_cut: false });
                self.push(&held).await;
            }
            Err(error) => self.check(Err(error)).await,
        }
    }

    /// Flushes the file, if there is one.
    pub(crate) async fn finish(&mut self) {
        if let State::Open(open) = &mut self.state {
            let outcome = open.file.flush().await;
            self.place.meter().add(open.bytes);
            self.check(outcome).await;
        }
    }

    async fn check(&mut self, outcome: io::Result<()>) {
        let Err(error) = outcome else { return };
        tracing::warn!(%error, place = ?self.place, "cannot save the full output of a command");
        if let State::Open(OpenFile { path, .. }) = std::mem::replace(&mut self.state, State::Failed(error)) {
            // A partial output is useless, least of all on a full disk.
            if let Err(error) = tokio::fs::remove_file(&path).await {
                tracing::warn!(%error, path = %path.display(), "cannot remove a part of an output");
            }
        }
    }
}
