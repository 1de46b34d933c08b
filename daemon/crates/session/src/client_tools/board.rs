//! Which tools clients provide for a session at the moment.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agentd_protocol::tool_list::ToolState;
use tokio::sync::Notify;

use super::tool::RemoteTool;

/// The tools that clients provide for one session. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct ToolBoard(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    /// Keeps one call for the session, which need not be in memory.
    changed: Notify,
}

#[derive(Default)]
struct State {
    posted: Vec<Posted>,
    /// Counts the changes.
    version: u64,
    /// What the listeners know: the version, and all tools of the session.
    told: Option<(u64, Vec<ToolState>)>,
}

/// A tool on the board.
#[derive(Clone)]
pub(crate) struct Posted {
    pub(crate) tool: Arc<RemoteTool>,
    /// Whether the model can call it.
    pub(crate) active: bool,
}

impl ToolBoard {
    /// How many changes there were.
    pub(crate) fn version(&self) -> u64 {
        self.lock().version
    }

    /// The tools, in the order in which they came, and how many changes there were.
    pub(crate) fn posted(&self) -> (u64, Vec<Posted>) {
        let state = self.lock();
        (state.version, state.posted.clone())
    }

    /// Adds active tools. One that the same client has there already is replaced in its place.
    pub(crate) fn post(&self, tools: impl IntoIterator<Item = RemoteTool>) {
        let mut state = self.lock();
        for tool in tools {
            let new = Posted { tool: Arc::new(tool), active: true };
            match state.posted.iter_mut().find(|old| old.tool.name() == new.tool.name()) {
                Some(old) => *old = new,
                None => state.posted.push(new),
            }
        }
        state.version += 1;
    }

    /// Activates exactly the tools of these names, and deactivates the others.
    pub(crate) fn activate(&self, names: &[String]) {
        let mut state = self.lock();
        let mut changes = false;
        for posted in &mut state.posted {
            let active = names.iter().any(|name| name == posted.tool.name());
            changes |= std::mem::replace(&mut posted.active, active) != active;
        }
        state.version += u64::from(changes);
    }

    /// Takes tools of a seat away: those of these names, or all. The names of those that are gone. The session hears of it
    /// where it waits for that, or when it is in memory again.
    pub(super) fn take_down(&self, seat: u64, names: Option<&[String]>) -> Vec<String> {
        let mut gone = Vec::new();
        let mut state = self.lock();
        state.posted.retain(|posted| {
            let name = posted.tool.name();
            let goes = posted.tool.seat_id() == seat
                && names.is_none_or(|names| names.iter().any(|wanted| wanted == name));
            if goes {
                gone.push(name.to_owned());
            }
            !goes
        });
        if !gone.is_empty() {
            state.version += 1;
            self.0.changed.notify_one();
        }
        gone
    }

    /// Takes note of what the listeners are about to be told; false when they know. A session that was just opened has told
    /// nobody anything, and has nothing to tell.
    pub(crate) fn tell(&self, tools: &[ToolState]) -> bool {
        let mut state = self.lock();
        let now = (state.version, tools.to_vec());
        let before = state.told.replace(now);
        before.is_some() && before != state.told
    }

    /// Waits for a change that a client made by leaving. One at a time may wait. Cancel safe.
    pub(crate) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No method panics halfway.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
