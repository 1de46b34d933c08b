//! Output: texts that are printed at once, and a thread that writes over time.
//!
//! The thread waits for slow readers, so that Ctrl-C is still noticed.

mod live_rows;

use std::{
    io::{self, IsTerminal, Write},
    os::fd::AsFd as _,
    thread,
};

use agentd_protocol::terminal_text::Shown;
use serde::Serialize;
use tokio::{
    io::Interest,
    net::unix::pipe,
    sync::{mpsc, oneshot},
};

pub(crate) use self::live_rows::LiveRow;
use self::live_rows::LiveRows;
use crate::{
    exit::{self, Exit, Fault, show_status_line},
    render::columns,
    terminal_size::{TerminalSize, stdout_size},
};

/// How many chunks wait for the writer. After that, events are not read.
const WAITING: usize = 64;

/// Bytes for stdout or stderr.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OutputChunk {
    Out(Vec<u8>),
    Err(Vec<u8>),
    /// The line below everything that is written, on a stderr that is a terminal; empty for none. Replaces the one before.
    Status(String),
    /// Rows of an answer, on a stdout that is a terminal: those that stay, and below them those that may change, which replace the ones
    /// before.
    Rows {
        finished: Vec<LiveRow>,
        open: Vec<LiveRow>,
    },
    /// A line that was typed, and echoed, while rows may change: it is written above them.
    Typed(String),
}

impl OutputChunk {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Out(bytes) | Self::Err(bytes) => bytes.len(),
            Self::Status(text) | Self::Typed(text) => text.len(),
            Self::Rows { finished, open } => finished.iter().chain(open).map(|row| row.text.len() + 1).sum(),
        }
    }
}

/// The sending side. Chunks are written in the order of sending, across both streams.
pub(crate) struct Output {
    chunks: mpsc::Sender<OutputChunk>,
    ended: oneshot::Receiver<io::Result<()>>,
    /// Stdout, where the system tells of a reader that leaves: a pipe or a socket.
    reader: Option<pipe::Sender>,
}

impl Output {
    /// Has to be called in a runtime.
    pub(crate) fn start() -> io::Result<Self> {
        let stdout = io::stdout();
        // A file cannot be waited for, and has no reader that leaves. The end of a terminal is told by a signal. Nothing is written
        // through the new descriptor, so it may stay a blocking one, which stdout shares with other programs.
        let reader = if stdout.is_terminal() {
            None
        } else {
            pipe::Sender::from_owned_fd_unchecked(stdout.as_fd().try_clone_to_owned()?).ok()
        };
        Ok(Self { reader, ..Self::start_with(io::stdout(), exit::stderr())? })
    }

    /// As [`Output::start`], with other streams.
    pub(crate) fn start_with(
        mut out: impl Write + Send + 'static,
        mut err: impl Write + Send + 'static,
    ) -> io::Result<Self> {
        let (chunks, mut receiver) = mpsc::channel(WAITING);
        let (end, ended) = oneshot::channel();
        thread::Builder::new().name("output".into()).spawn(move || {
            let mut written = Ok(());
            let (mut status, mut live) = (String::new(), LiveRows::default());
            while let Some(chunk) = receiver.blocking_recv() {
                if !status.is_empty() && !matches!(chunk, OutputChunk::Status(_) | OutputChunk::Rows { .. }) {
                    status.clear();
                    show_status_line("");
                }
                match chunk {
                    OutputChunk::Out(bytes) => {
                        written = put_above(&mut out, &mut live, 0, |out| {
                            out.write_all(&bytes).and_then(|()| out.flush())
                        });
                    }
                    OutputChunk::Err(bytes) => {
                        written = put_above(&mut out, &mut live, 0, |_| {
                            // A closed stderr does not stop the answer.
                            drop(err.write_all(&bytes).and_then(|()| err.flush()));
                            Ok(())
                        });
                    }
                    OutputChunk::Rows { finished, open } => {
                        let bytes = live.show(&finished, open, stdout_size());
                        if !bytes.is_empty() {
                            written = above_status(&status, || {
                                out.write_all(bytes.as_bytes()).and_then(|()| out.flush())
                            });
                        }
                    }
                    OutputChunk::Typed(_) if live.is_empty() => {}
                    OutputChunk::Typed(text) => {
                        let below = typed_rows(&text, stdout_size());
                        written = put_above(&mut out, &mut live, below, |_| {
                            // The user sees what was typed, or has closed stderr.
                            drop(err.write_all(format!("{text}\n").as_bytes()).and_then(|()| err.flush()));
                            Ok(())
                        });
                    }
                    OutputChunk::Status(text) if text == status => {}
                    OutputChunk::Status(text) => {
                        show_status_line(&text);
                        status = text;
                    }
                }
                if written.is_err() {
                    break;
                }
            }
            // The receiver may be gone.
            let _ = end.send(written);
        })?;
        Ok(Self { chunks, ended, reader: None })
    }

    /// Another sender to the same thread. [`Output::finish`] waits until all of them are dropped.
    pub(crate) fn sender(&self) -> mpsc::Sender<OutputChunk> {
        self.chunks.clone()
    }

    /// Waits until writing to stdout fails, or its reader leaves: work for nobody ends at once, though nothing is written yet.
    ///
    /// *Cancel safety*: can be called again.
    pub(crate) async fn broken(&mut self) -> io::Error {
        let left = async {
            match &self.reader {
                Some(reader) if reader.ready(Interest::ERROR).await.is_ok() => {}
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            ended = &mut self.ended => match ended {
                Ok(Err(error)) => error,
                // The thread ends without an error only when all senders are gone, this one included.
                Ok(Ok(())) | Err(_) => io::Error::other("the writing thread ended"),
            },
            () = left => io::ErrorKind::BrokenPipe.into(),
        }
    }

    /// Waits until everything is written.
    pub(crate) async fn finish(self) -> io::Result<()> {
        drop(self.chunks);
        self.ended.await.unwrap_or_else(|_| Err(io::Error::other("the writing thread ended")))
    }
}

/// Writes rows above the status line, which stands below them again then.
fn above_status(status: &str, write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    if status.is_empty() {
        return write();
    }
    show_status_line("");
    write()?;
    show_status_line(status);
    Ok(())
}

/// Writes something above the rows that may change. `below` rows were written below them.
fn put_above<O: Write>(
    out: &mut O,
    live: &mut LiveRows,
    below: usize,
    write: impl FnOnce(&mut O) -> io::Result<()>,
) -> io::Result<()> {
    if live.is_empty() {
        return write(out);
    }
    let size = stdout_size();
    out.write_all(live.hide(below, size).as_bytes())?;
    out.flush()?;
    write(out)?;
    out.write_all(live.show_again(size).as_bytes())?;
    out.flush()
}

/// The rows that the echo of a typed line takes.
fn typed_rows(text: &str, size: TerminalSize) -> usize {
    columns(text) / size.columns.max(1) + 1
}

/// Prints a text that ends with a line feed to stdout. On a terminal, everything that steers it is removed, except
/// colours. A closed stdout is an exit, not an error.
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

/// Writes to stdout unchanged.
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
            output.sender().send(OutputChunk::Out(b"x".to_vec())).await.unwrap();
            assert_eq!(output.broken().await.kind(), io::ErrorKind::BrokenPipe);
        });
    }

    #[test]
    fn everything_is_written_before_the_end() {
        let (mut reader, writer) = io::pipe().unwrap();
        runtime().block_on(async {
            let output = Output::start_with(writer, io::sink()).unwrap();
            for word in ["one ", "two ", "three"] {
                output.sender().send(OutputChunk::Out(word.into())).await.unwrap();
            }
            output.finish().await.unwrap();
        });
        assert_eq!(io::read_to_string(&mut reader).unwrap(), "one two three");
    }
}
