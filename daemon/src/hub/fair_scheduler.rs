//! Fair scheduling of commands: a flooding client gets one short turn at a time, like every other, and the tasks that are ready
//! work in between.
//!
//! Connections take commands one at a time, in the order in which lines came. A turn is one line while others wait, and up to 16 otherwise.
//! It lasts until the tasks that the line woke on its thread have run (a session's response, the copy to the client), and ends at once
//! where the line has to wait, which then costs another turn: waiting delays no other client. However many clients flood the daemon, only a
//! few of their tasks are ready at any time, and each step of a prompt waits behind those alone. Work of sessions (models, tools, actors,
//! writers) needs no turn. A line that stops something waits for its turn like every other. Input of more than 16 KiB at once is read 16
//! KiB at a time between other ready tasks (`transport/socket.rs`).

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::atomic::{AtomicUsize, Ordering},
    task::Poll,
};

use tokio::{
    sync::{Semaphore, SemaphorePermit},
    task::yield_now,
};

/// Connections that have their turn at the same time. With one, the work for sessions always finds a thread that is free or soon
/// will be.
const TURNS: usize = 1;

/// Lets one connection after the other work, in the order in which they asked.
#[derive(Debug)]
pub struct FairScheduler {
    turns: Semaphore,
    waiting: AtomicUsize,
}

impl Default for FairScheduler {
    fn default() -> Self {
        Self { turns: Semaphore::new(TURNS), waiting: AtomicUsize::new(0) }
    }
}

impl FairScheduler {
    /// Runs `work` in turns: it is polled only while the connection has its turn. A turn ends when the work is done and the tasks
    /// that it woke on this thread were polled, or as soon as the work waits: nobody delays others by waiting. Work that has
    /// waited needs another turn.
    ///
    /// Cancel safe as far as `work` is.
    pub async fn run_in_turn<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            let turn = self.turn().await;
            if let Poll::Ready(done) = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
                // Lets the woken tasks send their answers before the next turn. Otherwise all connections ask first, and work
                // waits behind all the answers.
                yield_now().await;
                return done;
            }
            drop(turn);
            woken().await;
        }
    }

    /// Whether a connection waits for its turn.
    #[must_use]
    pub fn has_waiters(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        if let Ok(turn) = self.turns.try_acquire() {
            return Some(turn);
        }
        let _waiting = WaitingCount::new(&self.waiting);
        // The semaphore is never closed.
        self.turns.acquire().await.ok()
    }
}

/// Counts a waiting connection until it is dropped.
struct WaitingCount<'a>(&'a AtomicUsize);

impl<'a> WaitingCount<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for WaitingCount<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits until the task is woken.
async fn woken() {
    let mut has_waited = false;
    poll_fn(|_| if std::mem::replace(&mut has_waited, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn turns_come_in_the_order_of_asking_and_answers_before_the_next() {
        let (scheduler, seen) = (Arc::new(FairScheduler::default()), Arc::new(Mutex::new(Vec::new())));
        let all: Vec<_> = (0..5)
            .map(|number| {
                let (scheduler, seen) = (Arc::clone(&scheduler), Arc::clone(&seen));
                tokio::spawn(async move {
                    let answering = Arc::clone(&seen);
                    let work = async {
                        seen.lock().unwrap().push(("asks", number));
                        tokio::spawn(async move { answering.lock().unwrap().push(("answers", number)) });
                    };
                    scheduler.run_in_turn(work).await;
                })
            })
            .collect();
        for task in all {
            task.await.unwrap();
        }
        let wanted: Vec<_> = (0..5).flat_map(|number| [("asks", number), ("answers", number)]).collect();
        assert_eq!(*seen.lock().unwrap(), wanted);
        assert!(!scheduler.has_waiters());
    }

    #[tokio::test]
    async fn work_that_waits_delays_nobody() {
        let scheduler = FairScheduler::default();
        let (sender, receiver) = oneshot::channel();
        let slow = scheduler.run_in_turn(receiver);
        let quick = async {
            // The slow one had its first turn, and waits.
            scheduler.run_in_turn(async {}).await;
            sender.send(7).unwrap();
        };
        let (got, ()) = tokio::join!(slow, quick);
        assert_eq!(got, Ok(7));
    }

    #[tokio::test]
    async fn a_connection_that_gives_up_leaves_the_turn_to_the_next() {
        let scheduler = FairScheduler::default();
        let held = scheduler.turn().await;
        let mut first = Box::pin(scheduler.run_in_turn(async { 1 }));
        let mut second = Box::pin(scheduler.run_in_turn(async { 2 }));
        assert!(futures::poll!(first.as_mut()).is_pending() && futures::poll!(second.as_mut()).is_pending());
        assert!(scheduler.has_waiters());
        // The first one's turn comes, and nobody takes it.
        drop(held);
        drop(first);
        assert_eq!(second.await, 2);
        assert!(!scheduler.has_waiters());
    }
}
