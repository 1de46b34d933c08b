//! The writing side of a connection: it takes finished batches of lines. A task (a pipe, a socket), a thread (a terminal, a file) or a
//! client in this process carries them away.

use std::{
    io::{self, Write},
    sync::Arc,
    thread,
};

use agentd_protocol::lines::Line;
use tokio::sync::{mpsc, oneshot};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    client_stream::ClientStream,
    direct_writes::{DirectWrites, UnwrittenBatches},
    gather::BatchGatherer,
    standard_stream::StandardStream,
};
use crate::limits::{LONG_BATCH_BYTES, WAITING_BATCHES, WAITING_IN_PROCESS_LINES};

/// Takes finished batches of lines. Dropping it discards batches that a task has not written yet; a thread goes on.
pub struct Output {
    batches: mpsc::Sender<Vec<u8>>,
    /// What may be written to without the task, where a task writes.
    direct: Option<DirectWrites>,
    /// The result of writing, which ends by itself only when it fails.
    ended: oneshot::Receiver<io::Result<()>>,
    failed: Option<io::Result<()>>,
    /// The task that writes, where a task does.
    task: Option<AbortOnDropHandle<()>>,
    /// Fires when the reading side finds that the client is gone.
    gone: CancellationToken,
    /// Whether a batch may end in the middle of a line.
    takes_pieces: bool,
}

/// The channel ends of the writer of an [`Output`]: the batches, and the result of writing.
pub(super) type WriterEnds = (mpsc::Receiver<Vec<u8>>, oneshot::Sender<io::Result<()>>);

impl Output {
    /// An output, and the channel ends for its writer.
    pub(super) fn new() -> (Self, WriterEnds) {
        let (batches, receiver) = mpsc::channel(WAITING_BATCHES);
        let (end, ended) = oneshot::channel();
        let gone = CancellationToken::new();
        let output =
            Self { batches, direct: None, ended, failed: None, task: None, gone, takes_pieces: true };
        (output, (receiver, end))
    }

    /// An output to a stream, which a task writes to, and this output where it need not wait.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub(super) fn to_stream(stream: ClientStream) -> Self {
        let (mut output, (batches, end)) = Self::new();
        let (stream, unwritten) = (Arc::new(stream), UnwrittenBatches::default());
        let batches = BatchGatherer::new(batches, unwritten.clone());
        let writing = write_to_stream(Arc::clone(&stream), batches);
        output.direct = Some(DirectWrites::new(stream, unwritten));
        let task = tokio::spawn(async move {
            // The receiver is gone only when the connection was dropped.
            let _ = end.send(writing.await);
        });
        output.task = Some(AbortOnDropHandle::new(task));
        output
    }

    /// Whether a batch may end in the middle of a line that the next one goes on with.
    pub fn takes_pieces(&self) -> bool {
        self.takes_pieces
    }

    /// Fires when the client is gone and can read no answer any more. Known of clients of the socket; one that has closed only its
    /// writing side is not gone.
    pub fn gone(&self) -> CancellationToken {
        self.gone.clone()
    }

    /// Hands over a batch; waits while too many earlier ones are unwritten. False when writing has failed.
    pub async fn write(&self, batch: Vec<u8>) -> bool {
        if batch.len() < LONG_BATCH_BYTES {
            return self.room().await.map(|room| room.send(batch)).is_some();
        }
        let Ok(mut places) = self.batches.reserve_many(WAITING_BATCHES).await else { return false };
        places.next().map(|place| self.place(place).send(batch)).is_some()
    }

    /// Waits for room for a batch; `None` when writing has failed. Cancel safe.
    pub async fn room(&self) -> Option<BatchRoom<'_>> {
        self.batches.reserve().await.ok().map(|place| self.place(place))
    }

    fn place<'a>(&'a self, place: mpsc::Permit<'a, Vec<u8>>) -> BatchRoom<'a> {
        BatchRoom { direct: self.direct.as_ref(), place }
    }

    /// Waits until writing fails. Cancel safe.
    pub async fn broken(&mut self) {
        if self.failed.is_none() {
            self.failed = Some(result(&mut self.ended).await);
        }
    }

    /// Waits until everything handed over is written.
    ///
    /// # Errors
    /// Why writing failed, most often since the reader closed its end.
    pub async fn finish(self) -> io::Result<()> {
        let Self { batches, direct, mut ended, failed, task, gone: _, takes_pieces: _ } = self;
        drop((batches, direct));
        let result = match failed {
            Some(failed) => failed,
            None => result(&mut ended).await,
        };
        drop(task);
        result
    }
}

async fn result(ended: &mut oneshot::Receiver<io::Result<()>>) -> io::Result<()> {
    ended.await.unwrap_or_else(|_| Err(io::Error::other("the writing side broke down")))
}

impl Output {
    /// Writes to stdout: in tasks where it is a pipe or a socket, else on a thread.
    ///
    /// # Errors
    /// When the system refuses another thread.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub fn to_stdout() -> io::Result<Self> {
        let stdout = io::stdout();
        let Some(stream) = StandardStream::writing(&stdout) else { return Self::on_thread(stdout) };
        Ok(Self::to_stream(ClientStream::Standard(stream)))
    }

    /// Writes to `output` on a thread of its own: stdout is shared with the host, and switching it to non-blocking mode would break
    /// the host.
    ///
    /// # Errors
    /// When the system refuses another thread.
    pub fn on_thread(output: impl Write + Send + 'static) -> io::Result<Self> {
        let (handle, (batches, end)) = Self::new();
        thread::Builder::new().name("stdout".into()).spawn(move || {
            // The receiver is gone only when the daemon ends.
            let _ = end.send(write(output, batches));
        })?;
        Ok(handle)
    }
}

async fn write_to_stream(stream: Arc<ClientStream>, mut batches: BatchGatherer) -> io::Result<()> {
    while let Some(batch) = batches.next().await {
        stream.write_all(&batch).await?;
        batches.wrote();
    }
    stream.close()
}

/// Room for one batch of an [`Output`].
pub struct BatchRoom<'a> {
    direct: Option<&'a DirectWrites>,
    place: mpsc::Permit<'a, Vec<u8>>,
}

impl BatchRoom<'_> {
    /// Hands over a batch.
    pub fn send(self, batch: Vec<u8>) {
        let left = match self.direct {
            Some(direct) => direct.take(batch),
            None => Some(batch),
        };
        if let Some(left) = left {
            self.place.send(left);
        }
    }
}

fn write(mut output: impl Write, mut batches: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(batch) = batches.blocking_recv() {
        output.write_all(&batch)?;
        output.flush()?;
    }
    Ok(())
}

/// A client in this process: its lines and batches pass through channels, and everything else is as for any client.
pub struct InProcessClient {
    /// `None` after the client has hung up.
    lines: Option<mpsc::Sender<Line>>,
    batches: mpsc::Receiver<Vec<u8>>,
    /// Gets the result when all batches were taken.
    end: Option<oneshot::Sender<io::Result<()>>>,
}

/// A client in this process, and the lines and the output that its connection is served with.
#[must_use]
pub fn in_process_pair() -> (InProcessClient, mpsc::Receiver<Line>, Output) {
    let (lines, receiver) = mpsc::channel(WAITING_IN_PROCESS_LINES);
    let (mut output, (batches, end)): (_, WriterEnds) = Output::new();
    output.takes_pieces = false;
    (InProcessClient { lines: Some(lines), batches, end: Some(end) }, receiver, output)
}

impl InProcessClient {
    /// Sends a line, without LF. False when the connection reads no more.
    pub async fn send(&self, line: String) -> bool {
        match &self.lines {
            Some(lines) => lines.send(Line::Text(line)).await.is_ok(),
            None => false,
        }
    }

    /// Where lines can be sent beside [`Self::next`]; `None` after the client has hung up. The input of the connection ends when all
    /// of these are dropped, too.
    pub fn sender(&self) -> Option<mpsc::Sender<Line>> {
        self.lines.clone()
    }

    /// Ends the input of the connection.
    pub fn hang_up(&mut self) {
        self.lines = None;
    }

    /// The next whole lines, each with its LF; `None` when the connection has ended. Cancel safe.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        let batch = self.batches.recv().await;
        if batch.is_none()
            && let Some(end) = self.end.take()
        {
            // The connection may have been dropped.
            let _ = end.send(Ok(()));
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[tokio::test]
    async fn lines_go_in_and_batches_come_out_until_both_ends_are_done() {
        let (mut client, mut lines, output) = in_process_pair();
        assert!(client.send("{}".into()).await);
        assert_eq!(lines.recv().await, Some(Line::Text("{}".into())));
        client.hang_up();
        assert!(!client.send("{}".into()).await);
        assert_eq!(lines.recv().await, None);
        assert!(output.write(b"a\nb\n".to_vec()).await);
        let finishing = tokio::spawn(output.finish());
        assert_eq!(client.next().await.as_deref(), Some(&b"a\nb\n"[..]));
        assert_eq!(client.next().await, None);
        finishing.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_client_that_leaves_early_is_noticed() {
        let (client, _lines, mut output) = in_process_pair();
        drop(client);
        output.broken().await;
        assert!(output.finish().await.is_err());
    }

    #[tokio::test]
    async fn a_closed_reader_is_reported() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut output = Output::on_thread(writer).unwrap();
        output.write(b"hello\n".to_vec()).await;
        output.broken().await;
        let error = output.finish().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    }
}
