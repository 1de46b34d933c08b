//! The messages of other agents that wait for a subagent. Pure but for the wake-up.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The most messages that wait for one subagent.
const MAX_WAITING: usize = 64;

/// The messages that wait for one subagent, for as long as it is at work.
#[derive(Debug)]
pub(crate) struct Inbox {
    state: Mutex<Waiting>,
    came: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    messages: Vec<String>,
    is_open: bool,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Posted {
    /// It is delivered before the subagent ends.
    Taken,
    /// The subagent has ended.
    Closed,
    /// As many wait as may.
    Full,
}

impl Inbox {
    /// That of a subagent that is about to begin, or of one that has ended.
    pub(super) fn new(is_open: bool) -> Self {
        Self { state: Mutex::new(Waiting { messages: Vec::new(), is_open }), came: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, Waiting> {
        // Changed by single calls.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn post(&self, message: String) -> Posted {
        let mut state = self.state();
        if !state.is_open {
            return Posted::Closed;
        }
        if state.messages.len() >= MAX_WAITING {
            return Posted::Full;
        }
        state.messages.push(message);
        drop(state);
        self.came.notify_one();
        Posted::Taken
    }

    /// Waits for a message. Cancel safe.
    pub(super) async fn came(&self) {
        self.came.notified().await;
    }

    /// The messages that wait, oldest first.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.state().messages)
    }

    /// The same; where none waits, none is taken any more.
    pub(super) fn take_or_close(&self) -> Vec<String> {
        let mut state = self.state();
        state.is_open = !state.messages.is_empty();
        std::mem::take(&mut state.messages)
    }

    /// Takes no more; what waits is dropped.
    pub(super) fn close(&self) {
        *self.state() = Waiting::default();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn nothing_is_taken_that_nobody_delivers() {
        let inbox = Inbox::new(true);
        assert_eq!(inbox.post("a".into()), Posted::Taken);
        assert!(inbox.came().now_or_never().is_some());
        assert_eq!(inbox.take_or_close(), ["a"]);
        assert_eq!(inbox.post("b".into()), Posted::Taken);
        assert_eq!(inbox.take(), ["b"]);
        assert!(inbox.take_or_close().is_empty());
        assert_eq!(inbox.post("c".into()), Posted::Closed);
        assert_eq!(Inbox::new(false).post("d".into()), Posted::Closed);
    }

    #[test]
    fn as_many_wait_as_may() {
        let inbox = Inbox::new(true);
        for number in 0..MAX_WAITING {
            assert_eq!(inbox.post(number.to_string()), Posted::Taken);
        }
        assert_eq!(inbox.post("one more".into()), Posted::Full);
        inbox.close();
        assert!(inbox.take().is_empty());
    }
}
