//! Turns to work: as many subagents work at the same time as may.

use std::{
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

/// How many work now. Cheap to clone; clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slots(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    taken: Mutex<u64>,
    freed: Notify,
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub(crate) struct SlotGuard(Slots);

impl Slots {
    /// Waits for a turn, of which there are `limit`; 0 is no limit. Another limit counts from the next call. Cancel safe.
    pub(crate) async fn acquire(&self, limit: u64) -> SlotGuard {
        loop {
            let mut freed = pin!(self.0.freed.notified());
            // From here on no end is missed.
            freed.as_mut().enable();
            {
                let mut taken = self.taken();
                if limit == 0 || *taken < limit {
                    *taken += 1;
                    return SlotGuard(self.clone());
                }
            }
            freed.await;
        }
    }

    fn taken(&self) -> MutexGuard<'_, u64> {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        *self.0.taken() -= 1;
        self.0.0.freed.notify_one();
    }
}

/// The turns of all sessions of a daemon, by the depth of the subagents: those of one depth wait for those of the next, never the other way
/// round, so that they do not wait for each other.
#[derive(Debug, Clone, Default)]
pub struct SubagentSlots(Arc<Mutex<Vec<Slots>>>);

impl SubagentSlots {
    /// Those of a depth, from 1.
    pub(crate) fn at(&self, depth: usize) -> Slots {
        let mut by_depth = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while by_depth.len() < depth {
            by_depth.push(Slots::default());
        }
        by_depth.get(depth.saturating_sub(1)).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn as_many_as_may_have_a_turn() {
        let slots = Slots::default();
        let (one, two) = (slots.acquire(2).await, slots.acquire(2).await);
        assert!(slots.acquire(2).now_or_never().is_none());
        let waiting = tokio::spawn({
            let slots = slots.clone();
            async move { slots.acquire(2).await }
        });
        tokio::task::yield_now().await;
        drop(one);
        let three = waiting.await.unwrap();
        assert!(slots.acquire(2).now_or_never().is_none());
        assert!(slots.acquire(0).now_or_never().is_some() && slots.acquire(3).now_or_never().is_some());
        drop((two, three));
        assert_eq!(*slots.taken(), 0);
    }

    #[test]
    fn depths_have_their_own() {
        let slots = SubagentSlots::default();
        let _one = slots.at(1).acquire(1).now_or_never().unwrap();
        assert!(slots.at(1).acquire(1).now_or_never().is_none());
        assert!(slots.at(2).acquire(1).now_or_never().is_some());
    }
}
