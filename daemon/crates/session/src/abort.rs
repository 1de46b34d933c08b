//! Stopping work from outside of the actor, and the waiters for its end.
//!
//! `abort` cancels the run's token beside the inbox, so it never waits behind other commands. The token reaches the provider's stream (the
//! connection is closed), each tool, and hooks. Every tool call still gets a result, the aborted answer is stored, `agent_settled` is sent,
//! and only then is `abort` answered. A call that does not end within 750 ms gets its result without ending, and continues detached. While
//! something is being stopped the actor takes messages and commands even when the event log is full, up to eight times its limit: a
//! subscriber that reads nothing cannot delay an abort.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agentd_protocol::command::{CompactParams, Work};
use tokio::sync::{Notify, futures::Notified, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{reply::Reply, summary_asker::SummaryAsker};

/// A waiter for the end of a run that is being stopped.
pub(crate) enum AbortWaiter {
    /// A client of a plain `abort`: answered without data, unless calls survive.
    Plain(Reply),
    /// A client that wants a receipt of what was stopped.
    Receipt(Reply),
    /// A compaction that begins when the run has ended.
    Compact(CompactParams, SummaryAsker),
    /// An abort of everything, which waits for the run too: gets the work that ended with the run.
    Part(oneshot::Sender<Vec<Work>>),
}

/// Stops the current run without the inbox.
#[derive(Clone, Default)]
pub(crate) struct AbortSwitch(Arc<Switch>);

#[derive(Default)]
struct Switch {
    armed: Mutex<Armed>,
    /// Fires when something is to stop.
    pressed: Notify,
}

#[derive(Default)]
struct Armed {
    run: Option<CancellationToken>,
    /// The calls of the current answer; a child of the run's.
    tools: Option<CancellationToken>,
    /// Abort commands that are on their way to the session.
    coming: usize,
}

/// An abort command on its way to the session. Dropped unsent, it counts no more.
pub(crate) struct Coming(Option<AbortSwitch>);

impl Coming {
    /// The command is in the inbox; the actor calls [`AbortSwitch::arrived`].
    pub(crate) fn sent(mut self) {
        self.0 = None;
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        if let Some(switch) = &self.0 {
            switch.arrived();
        }
    }
}

impl AbortSwitch {
    /// Makes `run` what [`Self::fire`] stops.
    pub(crate) fn arm(&self, run: CancellationToken) {
        let mut armed = self.lock();
        (armed.run, armed.tools) = (Some(run), None);
    }

    /// There is no run to stop any more.
    pub(crate) fn disarm(&self) {
        let mut armed = self.lock();
        (armed.run, armed.tools) = (None, None);
    }

    /// Stops the current run, if there is one.
    pub(crate) fn fire(&self) {
        if let Some(run) = &self.lock().run {
            run.cancel();
        }
        self.0.pressed.notify_waiters();
    }

    /// Makes `tools` what [`Self::fire_tools`] stops.
    pub(crate) fn arm_tools(&self, tools: CancellationToken) {
        self.lock().tools = Some(tools);
    }

    /// There are no calls to stop any more. Returns whether they were stopped.
    pub(crate) fn disarm_tools(&self) -> bool {
        self.lock().tools.take().is_some_and(|tools| tools.is_cancelled())
    }

    /// Stops the calls of the current answer; false when there are none.
    pub(crate) fn fire_tools(&self) -> bool {
        let armed = self.lock();
        armed.tools.as_ref().inspect(|tools| tools.cancel()).is_some()
    }

    /// A command to abort is on its way.
    pub(crate) fn announce(&self) -> Coming {
        self.lock().coming += 1;
        self.0.pressed.notify_waiters();
        Coming(Some(self.clone()))
    }

    /// A command to abort is there.
    pub(crate) fn arrived(&self) {
        let mut armed = self.lock();
        armed.coming = armed.coming.saturating_sub(1);
    }

    /// Whether work is being stopped, or an abort command is on its way.
    pub(crate) fn is_stopping(&self) -> bool {
        let armed = self.lock();
        let fired =
            |token: &Option<CancellationToken>| token.as_ref().is_some_and(CancellationToken::is_cancelled);
        armed.coming > 0 || fired(&armed.run) || fired(&armed.tools)
    }

    /// Waits for the next time that something is to stop, counted from this call on.
    pub(crate) fn pressed(&self) -> Notified<'_> {
        self.0.pressed.notified()
    }

    fn lock(&self) -> MutexGuard<'_, Armed> {
        self.0.armed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
