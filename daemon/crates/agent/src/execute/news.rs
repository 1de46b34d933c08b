//! What running calls have to show, on its way to the listeners.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
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
}

impl News {
    /// Adds the result so far of the call in that place.
    pub(super) fn add(&self, index: usize, partial: ToolResult) {
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
}
