//! What running calls have to show, on its way to the listeners.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use agentd_protocol::tool::ToolResult;
use tokio::sync::Notify;

/// How much news of one call waits while the listeners are slow; after that only the newest is kept, since each piece of
/// news replaces the ones before.
const MAX_WAITING_NEWS: usize = 8;

/// News of running calls, waiting to be published.
#[derive(Default)]
pub(super) struct News {
    waiting: Mutex<VecDeque<(usize, ToolResult)>>,
    /// Fires when there is some.
    pub(super) arrived: Notify,
    /// Nobody listens any more.
    given_up: AtomicBool,
}

impl News {
    /// Adds the result so far of the call in that place.
    pub(super) fn add(&self, index: usize, partial: ToolResult) {
        if self.is_given_up() {
            return;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = waiting.iter().filter(|(of, _)| *of == index).count();
        if newest >= MAX_WAITING_NEWS
            && let Some(last) = waiting.iter_mut().rev().find(|(of, _)| *of == index)
        {
            last.1 = partial;
        } else {
            waiting.push_back((index, partial));
        }
        drop(waiting);
        self.arrived.notify_one();
    }

    /// Takes all of it, oldest first.
    pub(super) fn take(&self) -> VecDeque<(usize, ToolResult)> {
        std::mem::take(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes no more of it: the calls that still run are left to themselves.
    pub(super) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
        self.take();
    }

    /// Whether the calls that still run are left to themselves.
    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }
}
