//! Runs one script on the other machine: sends its input and reads its answer.

use std::{ffi::OsString, io, os::unix::ffi::OsStringExt, path::PathBuf};

use agentd_process::{OutputPipe, Process};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::OwnedSemaphorePermit,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{
    connection::{Connection, RemoteFolders, collect},
    problem,
    request::{MARK, Request, START, Script},
    target::SshTarget,
};
use crate::{errno, operations::Unreachable};

/// The most bytes before the mark: output of the user's start-up files.
const MAX_PREFACE: usize = 64 * 1024;

/// The longest line or text of an answer.
const MAX_TEXT: usize = 64 * 1024;

/// Bytes that are read at once.
const CHUNK: usize = 64 * 1024;

/// A script running on the other machine. Dropping it ends the script.
pub(super) struct Exchange {
    host: String,
    process: Process,
    /// Bytes read; those from `at` on are not used yet.
    buffer: Vec<u8>,
    at: usize,
    cancel: CancellationToken,
    writing: JoinSet<()>,
    /// Collects the errors of ssh itself.
    said: JoinSet<String>,
    _permit: OwnedSemaphorePermit,
}

impl Exchange {
    /// Starts a script, and waits for its mark. Ends soon after `cancel` fires.
    ///
    /// # Errors
    /// When the machine cannot be reached, or the call was aborted.
    pub(super) async fn open(
        connection: &Connection,
        script: Script,
        request: Request,
        cancel: CancellationToken,
    ) -> Result<Self, Unreachable> {
        let permit = cancel.run_until_cancelled(connection.may_ask()).await;
        let permit = permit.unwrap_or_else(|| Err(aborted()))?;
        let spawned = cancel.run_until_cancelled(connection.spawn(connection.group(), script)).await;
        let mut process = spawned.unwrap_or_else(|| Err(aborted()))?;
        let mut said = JoinSet::new();
        said.spawn(collect(process.errors.take()));
        let mut writing = JoinSet::new();
        if let Some(mut input) = process.take_input() {
            let bytes = request.into_bytes();
            writing.spawn(async move {
                // A script that ends early reports why, and so does ssh.
                if input.write_all(&bytes).await.is_ok() {
                    let _ = input.shutdown().await;
                }
            });
        }
        let host = connection.target().host.clone();
        let mut exchange =
            Self { host, process, buffer: Vec::new(), at: 0, cancel, writing, said, _permit: permit };
        exchange.skip_preface().await?;
        Ok(exchange)
    }

    async fn skip_preface(&mut self) -> Result<(), Unreachable> {
        loop {
            if let Some(found) = memchr::memmem::find(&self.buffer, MARK) {
                self.at = found + MARK.len();
                return Ok(());
            }
            if self.buffer.len() > MAX_PREFACE {
                return Err(problem::garbled(&self.host));
            }
            if !self.more().await? {
                return Err(self.lost().await);
            }
        }
    }

    /// Reads more; false at the end.
    async fn more(&mut self) -> Result<bool, Unreachable> {
        if self.at > 0 {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        let length = self.buffer.len();
        self.buffer.resize(length + CHUNK, 0);
        let read = read_some(&mut self.process.output, &mut self.buffer[length..], &self.cancel).await;
        self.buffer.truncate(length + *read.as_ref().unwrap_or(&0));
        read.map(|count| count > 0)
    }

    /// Why the script ended too early.
    async fn lost(&mut self) -> Unreachable {
        let exit = self.process.wait().await;
        let said = self.said.join_next().await.and_then(Result::ok).unwrap_or_default();
        problem::of_ssh(&self.host, &said, Some(exit.code))
    }

    /// The bytes up to `end`, without it.
    async fn until(&mut self, end: u8) -> io::Result<Vec<u8>> {
        let mut looked_at = 0;
        loop {
            if let Some(found) = memchr::memchr(end, &self.buffer[self.at + looked_at..]) {
                let text = self.buffer[self.at..self.at + looked_at + found].to_vec();
                self.at += looked_at + found + 1;
                return Ok(text);
            }
            looked_at = self.buffer.len() - self.at;
            if looked_at > MAX_TEXT {
                return Err(problem::garbled(&self.host).into());
            }
            if !self.more().await? {
                return Err(self.lost().await.into());
            }
        }
    }

    /// A line, without its end.
    pub(super) async fn line(&mut self) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&self.until(b'\n').await?).into_owned())
    }

    /// The bytes up to the next NUL.
    pub(super) async fn text(&mut self) -> io::Result<Vec<u8>> {
        self.until(0).await
    }

    /// A path.
    pub(super) async fn path(&mut self) -> io::Result<PathBuf> {
        Ok(OsString::from_vec(self.text().await?).into())
    }

    /// A line that is not the script's report of an error.
    pub(super) async fn said(&mut self) -> io::Result<String> {
        let line = self.line().await?;
        match line.strip_prefix("e ") {
            Some(text) => Err(problem::of_program(&self.host, text)),
            None => Ok(line),
        }
    }

    /// Reads the report of success.
    pub(super) async fn verdict(&mut self) -> io::Result<()> {
        match self.said().await?.as_str() {
            "k" => Ok(()),
            _ => Err(self.garbled()),
        }
    }

    pub(super) fn garbled(&self) -> io::Error {
        problem::garbled(&self.host).into()
    }

    /// Some of the following bytes, at least one; 0 at the end.
    pub(super) async fn bytes(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.buffer.len() {
            if buffer.len() >= CHUNK {
                return Ok(read_some(&mut self.process.output, buffer, &self.cancel).await?);
            }
            if !self.more().await? {
                return Ok(0);
            }
        }
        let count = buffer.len().min(self.buffer.len() - self.at);
        buffer[..count].copy_from_slice(&self.buffer[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }

    /// Waits for the script's end, without further output.
    ///
    /// # Errors
    /// When the script did not finish, so that its output may be incomplete.
    pub(super) async fn finish(&mut self) -> io::Result<()> {
        while self.writing.join_next().await.is_some() {}
        if self.at < self.buffer.len() || self.more().await? {
            return Err(self.garbled());
        }
        let exit = self.process.wait().await;
        if exit.success() { Ok(()) } else { Err(self.lost().await.into()) }
    }
}

/// The folders on the other machine; connects if they are not known yet. Cancel safe.
pub(super) async fn remote_folders(connection: &Connection) -> Result<&RemoteFolders, Unreachable> {
    connection
        .folders
        .get_or_try_init(async || {
            let directory = match connection.target().directory.as_str() {
                "" => String::new(),
                absolute if absolute.starts_with('/') => absolute.to_owned(),
                relative => format!("./{relative}"),
            };
            let request = Request::new(START).text(&directory);
            let mut exchange = Exchange::open(connection, START, request, CancellationToken::new()).await?;
            let refused = |error: io::Error| {
                let SshTarget { host, directory } = connection.target();
                match Unreachable::of(&error) {
                    Some(unreachable) => unreachable.clone(),
                    None => {
                        let why = errno::sentence(&error);
                        Unreachable(format!(
                            "Working directory {directory} on {host} cannot be entered: {why}"
                        ))
                    }
                }
            };
            exchange.verdict().await.map_err(refused)?;
            let directory = exchange.path().await.map_err(refused)?;
            let home = exchange.path().await.map_err(refused)?;
            exchange.finish().await.map_err(refused)?;
            Ok(RemoteFolders { directory, home })
        })
        .await
}

async fn read_some(
    output: &mut OutputPipe,
    buffer: &mut [u8],
    cancel: &CancellationToken,
) -> Result<usize, Unreachable> {
    match cancel.run_until_cancelled(output.read(buffer)).await {
        Some(Ok(count)) => Ok(count),
        Some(Err(error)) => Err(Unreachable(format!("Cannot read what ssh says: {error}"))),
        None => Err(aborted()),
    }
}

/// The error of an aborted call.
fn aborted() -> Unreachable {
    Unreachable(crate::blocking::aborted().0)
}
