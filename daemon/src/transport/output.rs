//! The writing side of a connection: finished batches of lines go in, whatever carries them away.

use std::io;

use tokio::sync::{mpsc, oneshot};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

/// How many batches wait to be written; one is being written meanwhile.
const WAITING_BATCHES: usize = 2;

/// A batch of that length waits until those before it are being written, so that long ones are never many.
const LONG_BATCH_BYTES: usize = 512 << 10;

/// Takes finished batches of lines. Dropping it gives up what a task has not written yet; a thread goes on.
pub struct Output {
    batches: mpsc::Sender<Vec<u8>>,
    /// How writing ended; it ends by itself only when it fails.
    ended: oneshot::Receiver<io::Result<()>>,
    failed: Option<io::Result<()>>,
    /// The task that writes, where it is one.
    task: Option<AbortOnDropHandle<()>>,
    /// Fires when the reading side finds that nobody is at the other end any more.
    gone: CancellationToken,
}

/// What the writing side of an [`Output`] works with: where batches come from, and where to say how it ended.
pub(super) type Writing = (mpsc::Receiver<Vec<u8>>, oneshot::Sender<io::Result<()>>);

impl Output {
    /// An output, and what the one who writes for it needs.
    pub(super) fn new() -> (Self, Writing) {
        let (batches, receiver) = mpsc::channel(WAITING_BATCHES);
        let (end, ended) = oneshot::channel();
        (Self { batches, ended, failed: None, task: None, gone: CancellationToken::new() }, (receiver, end))
    }

    /// Ends the task that writes when the output is dropped.
    pub(super) fn owning(mut self, task: tokio::task::JoinHandle<()>) -> Self {
        self.task = Some(AbortOnDropHandle::new(task));
        self
    }

    /// Fires when nobody can take an answer any more, where the system tells: a client of the socket that is gone. One that has only
    /// closed its writing side is not.
    pub fn gone(&self) -> CancellationToken {
        self.gone.clone()
    }

    /// Hands over a batch; waits while earlier ones are not written. False when writing has failed.
    pub async fn write(&self, batch: Vec<u8>) -> bool {
        if batch.len() < LONG_BATCH_BYTES {
            return self.batches.send(batch).await.is_ok();
        }
        let Ok(mut places) = self.batches.reserve_many(WAITING_BATCHES).await else { return false };
        places.next().map(|place| place.send(batch)).is_some()
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
    /// What made writing fail, a reader that closed its end above all.
    pub async fn finish(self) -> io::Result<()> {
        let Self { batches, mut ended, failed, task, gone: _ } = self;
        drop(batches);
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
