//! Batches that stand alone are written by the task that has them.
//!
//! Most of what a client gets comes alone: a piece of an answer, an answer to a command. To hand it to the task that writes would cost more than
//! to write it, since that task has to be woken and runs cold.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use super::client_stream::ClientStream;

/// A batch stands alone when the one before it came longer ago than this.
const PAUSE: Duration = Duration::from_millis(1);

/// A longer batch is left to the task: most of it would have to wait there for the client, and be moved to the front first.
const LONGEST: usize = 64 << 10;

/// The stream of a client, for a task that has a batch while the one that writes has none.
pub(super) struct DirectWrites {
    stream: Arc<ClientStream>,
    unwritten: UnwrittenBatches,
    /// When the last batch came.
    last: Mutex<Option<Instant>>,
    pause: Duration,
}

impl DirectWrites {
    /// Direct writes to a stream, whose task counts down `unwritten`.
    pub(super) fn new(stream: Arc<ClientStream>, unwritten: UnwrittenBatches) -> Self {
        Self { stream, unwritten, last: Mutex::new(None), pause: PAUSE }
    }

    /// Writes as much of a batch as the client takes now, if it stands alone; gives what is left for the task, which is counted as
    /// unwritten from here on. Batches are given one after the other.
    pub(super) fn take(&self, mut batch: Vec<u8>) -> Option<Vec<u8>> {
        let now = Instant::now();
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).replace(now);
        let is_alone = last.is_none_or(|last| now.duration_since(last) > self.pause);
        if is_alone && batch.len() <= LONGEST && self.unwritten.is_none() {
            // Where there is no room, the task waits for it. It meets a failure again, and reports it.
            let written = self.stream.try_write(&batch).unwrap_or_default();
            if written == batch.len() {
                return None;
            }
            batch.drain(..written);
        }
        self.unwritten.add();
        Some(batch)
    }
}

/// The number of batches that were handed to the task that writes, and that it has not written yet. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct UnwrittenBatches(Arc<AtomicUsize>);

impl UnwrittenBatches {
    fn is_none(&self) -> bool {
        // Acquire: what the task wrote came before.
        self.0.load(Ordering::Acquire) == 0
    }

    fn add(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts batches down that were written.
    pub(super) fn wrote(&self, count: usize) {
        self.0.fetch_sub(count, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::AsyncReadExt as _,
        net::{UnixStream, unix::OwnedReadHalf},
    };

    use super::*;

    /// Direct writes that every batch is alone for, and the other side.
    async fn writes() -> (DirectWrites, OwnedReadHalf, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (input, output) = ours.into_split();
        output.writable().await.unwrap();
        let stream = Arc::new(ClientStream::Socket(output));
        let writes =
            DirectWrites { pause: Duration::ZERO, ..DirectWrites::new(stream, UnwrittenBatches::default()) };
        (writes, input, theirs)
    }

    #[tokio::test]
    async fn a_batch_alone_is_written_at_once_and_nothing_overtakes_another() {
        let (writes, _input, mut theirs) = writes().await;
        assert_eq!(writes.take(b"a".to_vec()), None);
        let mut seen = [0; 1];
        theirs.read_exact(&mut seen).await.unwrap();
        assert_eq!(&seen, b"a");
        writes.unwritten.add();
        assert_eq!(writes.take(b"b".to_vec()).as_deref(), Some(&b"b"[..]));
        writes.unwritten.wrote(1);
        assert_eq!(writes.take(b"c".to_vec()).as_deref(), Some(&b"c"[..]), "b is not written yet");
        writes.unwritten.wrote(2);
        assert_eq!(writes.take(b"d".to_vec()), None);
    }

    #[tokio::test]
    async fn batches_that_come_together_are_left_to_the_task() {
        let (writes, _input, _theirs) = writes().await;
        let writes = DirectWrites { pause: Duration::MAX, ..writes };
        assert_eq!(writes.take(b"a".to_vec()), None);
        assert_eq!(writes.take(b"b".to_vec()).as_deref(), Some(&b"b"[..]));
    }

    #[tokio::test]
    async fn a_long_batch_is_left_to_the_task() {
        let (writes, _input, _theirs) = writes().await;
        assert_eq!(writes.take(vec![b'a'; LONGEST + 1]).map(|left| left.len()), Some(LONGEST + 1));
    }

    #[tokio::test]
    async fn what_a_client_does_not_take_is_left() {
        let (writes, _input, mut theirs) = writes().await;
        let batch: Vec<u8> = (0..LONGEST).map(|at| at.to_le_bytes()[0]).collect();
        // More than the system holds.
        let (mut sent, mut left) = (0, None);
        while left.is_none() {
            sent += 1;
            left = writes.take(batch.clone());
        }
        let left = left.unwrap();
        let reading = tokio::spawn(async move {
            let mut all = Vec::new();
            theirs.read_to_end(&mut all).await.map(|_| all)
        });
        writes.stream.write_all(&left).await.unwrap();
        drop((writes, _input));
        assert!(reading.await.unwrap().unwrap() == batch.repeat(sent));
    }

    #[tokio::test]
    async fn a_failure_is_left_to_the_task() {
        let (writes, _input, theirs) = writes().await;
        drop(theirs);
        assert_eq!(writes.take(b"a".to_vec()).as_deref(), Some(&b"a"[..]));
        assert!(writes.stream.write_all(b"a").await.is_err());
    }
}
