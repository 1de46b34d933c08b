//! The file that holds an output too long to show.

use std::{
    io,
    path::{Path, PathBuf},
};

use tokio::{
    fs::{File, OpenOptions},
    io::AsyncWriteExt as _,
};
use uuid::Uuid;

/// Holds the beginning of an output in memory until it is known to be long, then all of it in a file.
#[derive(Debug)]
pub(crate) struct Spill {
    dir: PathBuf,
    state: State,
}

#[derive(Debug)]
enum State {
    /// All of it is here.
    Held(Vec<u8>),
    Open(PathBuf, File),
    Failed(io::Error),
}

impl Spill {
    /// Nothing yet; a file would be made in `dir`.
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self { dir, state: State::Held(Vec::new()) }
    }

    /// Where the file is, once there is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.state {
            State::Open(path, _) => Some(path),
            State::Held(_) | State::Failed(_) => None,
        }
    }

    /// Why the output could not be kept whole.
    pub(crate) fn failure(&self) -> Option<&io::Error> {
        match &self.state {
            State::Failed(error) => Some(error),
            State::Held(_) | State::Open(..) => None,
        }
    }

    /// Appends to the output. Cancel safety: none, the output would lack a part.
    pub(crate) async fn push(&mut self, bytes: &[u8]) {
        match &mut self.state {
            State::Held(held) => held.extend_from_slice(bytes),
            State::Open(_, file) => {
                let outcome = file.write_all(bytes).await;
                self.check(outcome).await;
            }
            State::Failed(_) => {}
        }
    }

    /// Moves the output to a file, if it is not in one already.
    pub(crate) async fn open(&mut self) {
        let State::Held(held) = &mut self.state else { return };
        let held = std::mem::take(held);
        match create(&self.dir).await {
            Ok((path, file)) => {
                self.state = State::Open(path, file);
                self.push(&held).await;
            }
            Err(error) => self.check(Err(error)).await,
        }
    }

    /// Makes sure that the file, if there is one, holds all of the output.
    pub(crate) async fn finish(&mut self) {
        if let State::Open(_, file) = &mut self.state {
            let outcome = file.flush().await;
            self.check(outcome).await;
        }
    }

    async fn check(&mut self, outcome: io::Result<()>) {
        let Err(error) = outcome else { return };
        tracing::warn!(%error, dir = %self.dir.display(), "cannot save the full output of a command");
        if let State::Open(path, _) = std::mem::replace(&mut self.state, State::Failed(error)) {
            // A part of the output is of no use to anybody, least of all on a full disk.
            if let Err(error) = tokio::fs::remove_file(&path).await {
                tracing::warn!(%error, path = %path.display(), "cannot remove a part of an output");
            }
        }
    }
}

/// Makes a file that did not exist before and that only its owner can read.
async fn create(dir: &Path) -> io::Result<(PathBuf, File)> {
    let (_, random) = Uuid::new_v4().as_u64_pair();
    let (more, _) = Uuid::new_v4().as_u64_pair();
    // Six bits of a version 4 id are fixed; two halves of two ids leave none fixed.
    let path = dir.join(format!("pi-bash-{:016x}.log", random ^ more));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).await?;
    Ok((path, file))
}
