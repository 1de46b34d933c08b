//! The servers of a daemon: one of each kind and folder for all sessions, started once, ended when nobody uses it.

use std::{
    ffi::{OsStr, OsString},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use tokio_util::sync::CancellationToken;

use crate::client::{Client, LaunchPlan, start};

/// The longest wait after a server has failed again and again.
const MAX_BACK_OFF: Duration = Duration::from_secs(60);

/// A server that ran this long is well, whatever was before.
const WELL_AFTER: Duration = Duration::from_secs(60);

/// Servers that are remembered though they do not run.
const MAX_SLOTS: usize = 64;

/// Variables that say which terminal or client a session was started from, and mean nothing to a server. Sessions that differ in these
/// alone share servers.
const OF_TERMINALS: &[&str] = &[
    "PWD",
    "OLDPWD",
    "SHLVL",
    "_",
    "TERM",
    "COLORTERM",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "TERM_SESSION_ID",
    "WINDOWID",
    "WINDOWPATH",
    "COLUMNS",
    "LINES",
    "TMUX",
    "TMUX_PANE",
    "STY",
    "WINDOW",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "XDG_SESSION_ID",
    "GPG_TTY",
    "STARSHIP_SESSION_KEY",
    "VTE_VERSION",
    "ITERM_SESSION_ID",
    "KITTY_WINDOW_ID",
    "KITTY_PID",
    "WEZTERM_PANE",
    "ALACRITTY_WINDOW_ID",
];

/// The start of a server, for everyone who waits for it.
pub(crate) type Starting = Shared<BoxFuture<'static, Result<Arc<Client>, String>>>;

/// The servers that the sessions of a daemon share. Nothing is started before a session asks for it.
#[derive(Default)]
pub struct SharedLanguageServers {
    slots: Mutex<Vec<Arc<ServerSlot>>>,
    /// Fires at the end of the daemon.
    closed: CancellationToken,
}

impl SharedLanguageServers {
    /// Ends all servers; none is started afterwards. Their tasks belong to the daemon's, which are waited for.
    pub fn close(&self) {
        self.closed.cancel();
    }

    /// The slot of this plan: that of another session whose plan is the same, else a new one.
    pub(crate) fn slot(&self, plan: LaunchPlan, idle: Duration) -> Arc<ServerSlot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.iter().find(|slot| is_same(&slot.plan, &plan)) {
            return Arc::clone(slot);
        }
        if slots.len() >= MAX_SLOTS {
            slots.retain(|slot| slot.is_in_use());
        }
        let state = Mutex::new(SlotState::default());
        let slot = Arc::new(ServerSlot { plan, idle, state, closed: self.closed.clone() });
        slots.push(Arc::clone(&slot));
        slot
    }

    /// The slots that were used so far.
    pub(crate) fn slots(&self) -> Vec<Arc<ServerSlot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn is_same(one: &LaunchPlan, other: &LaunchPlan) -> bool {
    one.name == other.name
        && one.program == other.program
        && one.args == other.args
        && one.root == other.root
        && one.sandbox == other.sandbox
        && one.init_options == other.init_options
        && one.settings == other.settings
        && one.max_memory == other.max_memory
        && of_servers(&one.env).eq(of_servers(&other.env))
}

/// The variables that matter to a server.
fn of_servers(env: &[(OsString, OsString)]) -> impl Iterator<Item = &(OsString, OsString)> {
    env.iter().filter(|(name, _)| !OF_TERMINALS.iter().any(|known| name == OsStr::new(known)))
}

/// The place of one server.
pub(crate) struct ServerSlot {
    pub(crate) plan: LaunchPlan,
    idle: Duration,
    state: Mutex<SlotState>,
    closed: CancellationToken,
}

#[derive(Default)]
struct SlotState {
    running: Option<Arc<Client>>,
    starting: Option<Starting>,
    /// Failures since it was well.
    failures: u32,
    /// How it failed last.
    failure: Option<String>,
    /// It is not started before.
    not_before: Option<Instant>,
    was_started: bool,
}

/// How a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SlotPhase {
    Stopped,
    Starting,
    Running,
    Failed(String),
}

impl ServerSlot {
    /// The server, if it runs.
    pub(crate) fn running(&self) -> Option<Arc<Client>> {
        let mut state = self.state();
        self.note_end(&mut state);
        state.running.clone()
    }

    pub(crate) fn phase(&self) -> SlotPhase {
        let mut state = self.state();
        self.note_end(&mut state);
        match (&state.running, &state.starting, &state.failure) {
            (Some(_), ..) => SlotPhase::Running,
            (None, Some(_), _) => SlotPhase::Starting,
            (None, None, Some(failure)) => SlotPhase::Failed(failure.clone()),
            (None, None, None) => SlotPhase::Stopped,
        }
    }

    /// Whether somebody has ever asked for it.
    pub(crate) fn was_started(&self) -> bool {
        self.state().was_started
    }

    fn is_in_use(&self) -> bool {
        !matches!(self.phase(), SlotPhase::Stopped)
    }

    /// Notices that the server ended by itself.
    fn note_end(&self, state: &mut SlotState) {
        let Some(ended) = state.running.as_ref().and_then(|client| Some((client.ended()?, client.age())))
        else {
            return;
        };
        let (why, age) = ended;
        state.running = None;
        if age >= WELL_AFTER {
            state.failures = 0;
        }
        tracing::warn!(server = self.plan.name, root = %self.plan.root.display(), why, "a language server ended");
        fail(state, why);
    }

    /// The server: the running one, or its start, which goes on without those who wait for it.
    ///
    /// # Errors
    /// It failed just now, again, and is not started yet.
    pub(crate) fn start(self: &Arc<Self>) -> Result<Starting, String> {
        let mut state = self.state();
        self.note_end(&mut state);
        if let Some(client) = &state.running {
            let client = Arc::clone(client);
            return Ok(async move { Ok(client) }.boxed().shared());
        }
        if let Some(starting) = &state.starting {
            return Ok(starting.clone());
        }
        let now = Instant::now();
        if let (Some(at), Some(failure)) = (state.not_before.filter(|at| *at > now), &state.failure) {
            let left = at.duration_since(now).as_secs_f64();
            return Err(format!(
                "{} failed {} times: {failure}. It is started again when it is used in {left:.0} s; `lsp reload` starts it now",
                self.plan.name, state.failures
            ));
        }
        let slot = Arc::clone(self);
        let task = self.plan.tasks.spawn(async move {
            let closed = slot.closed.clone();
            let started = match closed.run_until_cancelled(start(slot.plan.clone())).await {
                Some(started) => started,
                None => Err("the daemon ends".to_owned()),
            };
            let mut state = slot.state();
            state.starting = None;
            match started {
                Ok(client) => {
                    client.touch();
                    state.running = Some(Arc::clone(&client));
                    drop(state);
                    slot.plan.tasks.spawn(Arc::clone(&slot).end_when_idle(Arc::clone(&client)));
                    Ok(client)
                }
                Err(why) => {
                    let log = slot.plan.log.path().display().to_string();
                    fail(&mut state, why.clone());
                    Err(format!("{} could not be started: {why} (its log: {log})", slot.plan.name))
                }
            }
        });
        let waiting =
            async move { task.await.unwrap_or_else(|error| Err(format!("the start broke off: {error}"))) };
        let starting = waiting.boxed().shared();
        state.starting = Some(starting.clone());
        state.was_started = true;
        Ok(starting)
    }

    /// Ends a server that nobody has used for a while, or when the daemon ends.
    async fn end_when_idle(self: Arc<Self>, client: Arc<Client>) {
        loop {
            let left = self.idle.saturating_sub(client.idle_for());
            if left.is_zero() && !client.connection.is_waiting() {
                tracing::info!(server = self.plan.name, "a language server is ended: nobody uses it");
                return self.end(&client, "it was ended: nobody used it").await;
            }
            tokio::select! {
                () = client.gone().cancelled() => return,
                () = self.closed.cancelled() => return self.end(&client, "the daemon ends").await,
                // While an answer is waited for, the time begins again.
                () = tokio::time::sleep(if left.is_zero() { self.idle } else { left }) => {}
            }
        }
    }

    /// Ends a server so that it does not count as failed.
    async fn end(&self, client: &Arc<Client>, why: &str) {
        {
            let mut state = self.state();
            if state.running.as_ref().is_some_and(|running| Arc::ptr_eq(running, client)) {
                state.running = None;
                state.failure = None;
            }
        }
        client.end(why).await;
    }

    /// Ends the server if it runs, and forgets how it failed, so that it starts anew. Returns when nothing of it is left.
    pub(crate) async fn stop(&self) {
        let (running, starting) = {
            let mut state = self.state();
            (state.failures, state.not_before) = (0, None);
            (state.running.clone(), state.starting.clone())
        };
        let running = match (running, starting) {
            (Some(running), _) => Some(running),
            (None, Some(starting)) => starting.await.ok(),
            (None, None) => None,
        };
        if let Some(running) = running {
            self.end(&running, "it was ended, to be started anew").await;
        }
        let mut state = self.state();
        (state.failures, state.not_before, state.failure) = (0, None, None);
    }

    fn state(&self) -> MutexGuard<'_, SlotState> {
        // No method panics halfway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes a failure. The first one costs no wait; each that follows doubles it.
fn fail(state: &mut SlotState, why: String) {
    let wait = match state.failures {
        0 => Duration::ZERO,
        failures => Duration::from_secs(1 << failures.min(6)).min(MAX_BACK_OFF),
    };
    state.failures += 1;
    state.failure = Some(why);
    state.not_before = Some(Instant::now() + wait);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_with_failures() {
        let mut state = SlotState::default();
        let mut waits = Vec::new();
        for _ in 0..8 {
            fail(&mut state, "why".to_owned());
            let wait = state.not_before.unwrap().saturating_duration_since(Instant::now());
            waits.push(wait.as_secs_f64().round() as u64);
        }
        assert_eq!(waits, [0, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn the_terminal_of_a_session_makes_no_difference() {
        let env = |pairs: &[(&str, &str)]| -> Vec<(OsString, OsString)> {
            pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
        };
        let one = env(&[("PATH", "/bin"), ("TERM", "x"), ("SHLVL", "1"), ("HOME", "/h")]);
        let same = env(&[("PATH", "/bin"), ("HOME", "/h"), ("SHLVL", "2")]);
        let other = env(&[("PATH", "/usr/bin"), ("HOME", "/h")]);
        assert!(of_servers(&one).eq(of_servers(&same)) && !of_servers(&one).eq(of_servers(&other)));
    }
}
