//! Batches that come within a moment are one write.
//!
//! What a model sends at once becomes several events, each of which passes through several tasks. A system call for each, and a reader that is woken
//! for each, would cost more than what is written.

use std::{
    future::poll_fn,
    task::Poll,
    time::{Duration, Instant},
};

use tokio::sync::mpsc;

use super::direct_writes::UnwrittenBatches;

/// How often all tasks that are ready go first: an event passes through as many on its way.
const ROUNDS: usize = 4;

/// The longest time for these rounds, after which what has come is written: where many sessions are at work, a round takes long.
const LONGEST: Duration = Duration::from_micros(100);

/// Nothing is added to this many bytes: of a long answer at full speed as much comes at once, and to copy more together costs more than it
/// spares.
const ENOUGH_BYTES: usize = 4 << 10;

/// Takes batches, and makes one of those that come within a moment.
pub(super) struct BatchGatherer {
    batches: mpsc::Receiver<Vec<u8>>,
    unwritten: UnwrittenBatches,
    /// The batches of the last write.
    taken: usize,
    longest: Duration,
}

impl BatchGatherer {
    /// Takes batches that are counted as `unwritten` until [`Self::wrote`].
    pub(super) fn new(batches: mpsc::Receiver<Vec<u8>>, unwritten: UnwrittenBatches) -> Self {
        Self { batches, unwritten, taken: 0, longest: LONGEST }
    }

    /// The next batch, with those that follow while the tasks that are ready are run. `None` when no more batches come. Dropped early, it
    /// loses what it has taken.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        let mut gathered = self.batches.recv().await?;
        self.taken += 1;
        let began = Instant::now();
        for _ in 0..ROUNDS {
            if gathered.len() >= ENOUGH_BYTES || began.elapsed() > self.longest {
                break;
            }
            others_first().await;
            while gathered.len() < ENOUGH_BYTES
                && let Ok(batch) = self.batches.try_recv()
            {
                gathered.extend_from_slice(&batch);
                self.taken += 1;
            }
        }
        Some(gathered)
    }

    /// Notes that all that was taken is written.
    pub(super) fn wrote(&mut self) {
        self.unwritten.wrote(std::mem::take(&mut self.taken));
    }
}

/// Lets the tasks go first that are ready now. Unlike tokio's `yield_now`, without a look for what comes from outside: that is a system
/// call.
async fn others_first() {
    let mut is_last = false;
    poll_fn(|context| {
        if is_last {
            return Poll::Ready(());
        }
        is_last = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes on what it gets, as the tasks on the way of an event do.
    fn passing_on(mut from: mpsc::Receiver<Vec<u8>>) -> mpsc::Receiver<Vec<u8>> {
        let (to, receiver) = mpsc::channel(8);
        tokio::spawn(async move {
            while let Some(batch) = from.recv().await {
                if to.send(batch).await.is_err() {
                    break;
                }
            }
        });
        receiver
    }

    /// For which no moment passes, however busy the machine is.
    fn timeless(batches: mpsc::Receiver<Vec<u8>>) -> BatchGatherer {
        BatchGatherer { longest: Duration::MAX, ..BatchGatherer::new(batches, UnwrittenBatches::default()) }
    }

    #[tokio::test]
    async fn what_is_under_way_is_written_at_once() {
        let (sender, receiver) = mpsc::channel(8);
        let mut end = timeless(passing_on(passing_on(receiver)));
        let (go_on, asked) = tokio::sync::oneshot::channel::<()>();
        tokio::spawn(async move {
            sender.send(b"a".to_vec()).await.unwrap();
            // The writer is woken before the next batch is sent.
            others_first().await;
            others_first().await;
            sender.send(b"b".to_vec()).await.unwrap();
            // Something from outside: no part of the same moment.
            asked.await.unwrap();
            sender.send(b"c".to_vec()).await.unwrap();
        });
        assert_eq!(end.next().await.unwrap(), b"ab");
        go_on.send(()).unwrap();
        assert_eq!(end.next().await.unwrap(), b"c");
        assert_eq!(end.next().await, None);
    }

    #[tokio::test]
    async fn a_long_batch_is_not_made_longer() {
        let (sender, receiver) = mpsc::channel(2);
        sender.send(vec![b'a'; ENOUGH_BYTES]).await.unwrap();
        sender.send(b"b".to_vec()).await.unwrap();
        drop(sender);
        let mut batches = timeless(receiver);
        assert_eq!(batches.next().await.unwrap().len(), ENOUGH_BYTES);
        assert_eq!(batches.next().await.unwrap(), b"b");
        assert_eq!(batches.next().await, None);
    }
}
