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

/// How often all tasks that are ready go first: an event passes through as many on its way.
const ROUNDS: usize = 4;

/// The longest time for these rounds, after which what has come is written: where many sessions are at work, a round takes long.
const LONGEST: Duration = Duration::from_micros(100);

/// Nothing is added to this many bytes: of a long answer at full speed as much comes at once, and to copy more together costs more than it
/// spares.
const ENOUGH_BYTES: usize = 4 << 10;

/// A batch is alone, and written at once, when the one before it came longer ago than this.
const PAUSE: Duration = Duration::from_millis(1);

/// Takes batches, and makes one of those that come within a moment.
pub(super) struct BatchGatherer {
    batches: mpsc::Receiver<Vec<u8>>,
    /// When the last one was taken.
    last: Option<Instant>,
    pause: Duration,
    longest: Duration,
}

impl BatchGatherer {
    pub(super) fn new(batches: mpsc::Receiver<Vec<u8>>) -> Self {
        Self { batches, last: None, pause: PAUSE, longest: LONGEST }
    }

    /// The next batch; behind another one, with those that follow while the tasks that are ready are run. `None` when no more batches come.
    /// Dropped early, it loses what it has taken.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        let mut gathered = self.batches.recv().await?;
        let began = Instant::now();
        let last = self.last.replace(began);
        if last.is_none_or(|last| began.duration_since(last) > self.pause) {
            return Some(gathered);
        }
        for _ in 0..ROUNDS {
            if gathered.len() >= ENOUGH_BYTES || began.elapsed() > self.longest {
                break;
            }
            others_first().await;
            while gathered.len() < ENOUGH_BYTES
                && let Ok(batch) = self.batches.try_recv()
            {
                gathered.extend_from_slice(&batch);
            }
        }
        Some(gathered)
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
        BatchGatherer { batches, last: None, pause: Duration::MAX, longest: Duration::MAX }
    }

    #[tokio::test]
    async fn what_is_under_way_is_written_at_once() {
        let (sender, receiver) = mpsc::channel(8);
        let mut end = timeless(passing_on(passing_on(receiver)));
        sender.send(b"0".to_vec()).await.unwrap();
        assert_eq!(end.next().await.unwrap(), b"0", "the first one does not wait");
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
    async fn behind_a_pause_nothing_is_waited_for() {
        let (sender, receiver) = mpsc::channel(8);
        let mut batches = BatchGatherer { pause: Duration::ZERO, ..timeless(receiver) };
        for batch in [b"0", b"1", b"2"] {
            sender.send(batch.to_vec()).await.unwrap();
        }
        for batch in [b"0", b"1", b"2"] {
            assert_eq!(batches.next().await.unwrap(), batch);
        }
    }

    #[tokio::test]
    async fn a_long_batch_is_not_made_longer() {
        let (sender, receiver) = mpsc::channel(2);
        sender.send(vec![b'a'; ENOUGH_BYTES]).await.unwrap();
        sender.send(b"b".to_vec()).await.unwrap();
        drop(sender);
        let mut batches = BatchGatherer { last: Some(Instant::now()), ..timeless(receiver) };
        assert_eq!(batches.next().await.unwrap().len(), ENOUGH_BYTES);
        assert_eq!(batches.next().await.unwrap(), b"b");
        assert_eq!(batches.next().await, None);
    }
}
