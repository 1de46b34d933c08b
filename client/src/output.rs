//! stdout and stderr behind one thread, so that a reader who does not read never keeps us from hearing Ctrl-C.

use std::{
    io::{self, Write},
    thread,
};

use tokio::sync::{mpsc, oneshot};

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
        Self::start_with(io::stdout(), crate::exit::stderr())
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
