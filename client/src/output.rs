//! stdout and stderr: texts that are printed at once, and a thread that writes what comes over time.
//!
//! The thread keeps a reader who does not read from keeping us from hearing Ctrl-C.

use std::{
    io::{self, IsTerminal, Write},
    thread,
};

use agentd_protocol::terminal_text::Shown;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};

use crate::exit::{self, Exit, Fault};

/// How many chunks wait for the writer before the daemon is waited with.
const WAITING: usize = 64;

/// Bytes for one of the two streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Chunk {
    /// For stdout.
    Out(Vec<u8>),
    /// For stderr.
    Err(Vec<u8>),
}

impl Chunk {
    /// Its length in bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Out(bytes) | Self::Err(bytes) => bytes.len(),
        }
    }
}

/// The sending side. Chunks are written in the order in which they are sent, across both streams.
pub(crate) struct Output {
    chunks: mpsc::Sender<Chunk>,
    ended: oneshot::Receiver<io::Result<()>>,
}

impl Output {
    /// Starts the writing thread.
    pub(crate) fn start() -> io::Result<Self> {
        Self::start_with(io::stdout(), exit::stderr())
    }

    /// The same with other streams in their place.
    pub(crate) fn start_with(
        mut out: impl Write + Send + 'static,
        mut err: impl Write + Send + 'static,
    ) -> io::Result<Self> {
        let (chunks, mut receiver) = mpsc::channel(WAITING);
        let (end, ended) = oneshot::channel();
        thread::Builder::new().name("output".into()).spawn(move || {
            let mut written = Ok(());
            while let Some(chunk) = receiver.blocking_recv() {
                match chunk {
                    Chunk::Out(bytes) => written = out.write_all(&bytes).and_then(|()| out.flush()),
                    // Notices: a closed stderr must not stop the answer.
                    Chunk::Err(bytes) => drop(err.write_all(&bytes).and_then(|()| err.flush())),
                }
                if written.is_err() {
                    break;
                }
            }
            // The other side may be gone.
            let _ = end.send(written);
        })?;
        Ok(Self { chunks, ended })
    }

    /// Another sender to the same thread. [`Output::finish`] waits until all of them are dropped.
    pub(crate) fn sender(&self) -> mpsc::Sender<Chunk> {
        self.chunks.clone()
    }

    /// Waits until writing to stdout fails. Cancel safe.
    pub(crate) async fn broken(&mut self) -> io::Error {
        match (&mut self.ended).await {
            Ok(Err(error)) => error,
            // It ends without an error only once every sender is gone, which takes this value first.
            Ok(Ok(())) | Err(_) => io::Error::other("the writing thread ended"),
        }
    }

    /// Waits until everything sent is written.
    pub(crate) async fn finish(self) -> io::Result<()> {
        drop(self.chunks);
        self.ended.await.unwrap_or_else(|_| Err(io::Error::other("the writing thread ended")))
    }
}

/// Prints a text that ends with a line feed to stdout; a terminal gets nothing of it that steers, but for colours. A reader who has
/// left is no fault, but an exit of its own.
///
/// # Errors
/// When stdout cannot be written for another reason.
pub(crate) fn print(text: &str) -> Result<Exit, Fault> {
    if !io::stdout().is_terminal() {
        return write(text.as_bytes());
    }
    let mut shown = Shown::default();
    write(&[shown.clean(text.as_bytes()), shown.finish()].concat())
}

/// Writes to stdout as it is.
fn write(bytes: &[u8]) -> Result<Exit, Fault> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(Exit::Answered),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::OutputClosed),
        Err(error) => Err(Fault::new(Exit::Failed, format!("agentctl: cannot write to stdout: {error}"))),
    }
}

/// Prints the data of an answer to stdout as one line of JSON (`--json`).
///
/// # Errors
/// When stdout cannot be written.
pub(crate) fn print_json(data: &impl Serialize) -> Result<Exit, Fault> {
    let text = serde_json::to_string(data).map_err(|error| {
        Fault::new(Exit::Failed, format!("agentctl: the answer cannot be written as JSON: {error}"))
    })?;
    write(format!("{text}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().build().unwrap()
    }

    #[test]
    fn a_closed_reader_is_noticed() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        runtime().block_on(async {
            let mut output = Output::start_with(writer, io::sink()).unwrap();
            output.sender().send(Chunk::Out(b"x".to_vec())).await.unwrap();
            assert_eq!(output.broken().await.kind(), io::ErrorKind::BrokenPipe);
        });
    }

    #[test]
    fn everything_is_written_before_the_end() {
        let (mut reader, writer) = io::pipe().unwrap();
        runtime().block_on(async {
            let output = Output::start_with(writer, io::sink()).unwrap();
            for word in ["one ", "two ", "three"] {
                output.sender().send(Chunk::Out(word.into())).await.unwrap();
            }
            output.finish().await.unwrap();
        });
        assert_eq!(io::read_to_string(&mut reader).unwrap(), "one two three");
    }
}
