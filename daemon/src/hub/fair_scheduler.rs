//! Whose turn it is to have commands taken. Clients that send as much as they can are then not the ones who get
//! everything: each turn of theirs is short, they have it one after the other, and what else is ready works in between.

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

/// Connections that have their turn at the same time. With one, the work for sessions always finds a thread that is free or
/// soon will be.
const TURNS: usize = 1;

/// Lets one connection after the other work, in the order in which they came.
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
    /// Does `work` in turns: it is polled only while it is the connection's turn. A turn ends when the work is done and whatever
    /// it woke on this thread has had a go, or as soon as the work waits for something: nobody holds up others by
    /// waiting. What it waited for costs another turn.
    ///
    /// Cancel safe as far as `work` is.
    pub async fn run_in_turn<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            let turn = self.turn().await;
            if let Poll::Ready(done) = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
                // So that answers are on their way before the next ones ask: else all of them ask first, and what others
                // work on waits behind all the answers.
                yield_now().await;
                return done;
            }
            drop(turn);
            woken().await;
        }
    }

    /// Whether somebody waits for a turn.
    #[must_use]
    pub fn has_waiters(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        if let Ok(turn) = self.turns.try_acquire() {
            return Some(turn);
        }
        let _waiting = Waiting::one_of(&self.waiting);
        // It is never closed; if it were, there would be no turns to wait for.
        self.turns.acquire().await.ok()
    }
}

/// Counted as waiting, until it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn one_of(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits until the task is woken, by whatever it was that had to wait.
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
    async fn who_waits_for_something_else_holds_up_nobody() {
        let scheduler = FairScheduler::default();
        let (sender, receiver) = oneshot::channel();
        let slow = scheduler.run_in_turn(receiver);
        let quick = async {
            // The slow one has had its first turn, and waits.
            scheduler.run_in_turn(async {}).await;
            sender.send(7).unwrap();
        };
        let (got, ()) = tokio::join!(slow, quick);
        assert_eq!(got, Ok(7));
    }

    #[tokio::test]
    async fn who_gives_up_leaves_the_turn_to_the_next() {
        let scheduler = FairScheduler::default();
        let held = scheduler.turn().await;
        let mut first = Box::pin(scheduler.run_in_turn(async { 1 }));
        let mut second = Box::pin(scheduler.run_in_turn(async { 2 }));
        assert!(futures::poll!(first.as_mut()).is_pending() && futures::poll!(second.as_mut()).is_pending());
        assert!(scheduler.has_waiters());
        // It is the first one's turn, which does not come for it any more.
        drop(held);
        drop(first);
        assert_eq!(second.await, 2);
        assert!(!scheduler.has_waiters());
    }
}
