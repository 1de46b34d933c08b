//! Makes room for something new: idle sessions are unloaded when memory or files are short, and unloaded sessions are evicted
//! from the registry when there are too many.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use agentd_protocol::error::Failure;
use agentd_session::Target;

use super::{
    SessionSlot,
    heap_trimmer::trim_heap,
    resource_limits::{ResourceExhausted, ResourceLimits},
    session_lifecycle::SessionLifecycle,
    session_slot::{EvictionCost, State},
};
use crate::limits::MAX_EVICTED_SESSIONS;

/// Least time between two trims of the heap where the first freed nothing: a trim takes milliseconds.
const TRIM_INTERVAL: Duration = Duration::from_secs(1);

/// Least time between two looks at what is in use when work begins or ends. Work that is shorter has not grown much.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// An eviction frees up to this part of the session limit at once where that costs nothing, so that not every new session
/// looks through all others.
const SPARE_PART: usize = 16;

/// Decides which sessions are unloaded and which are evicted, and remembers the evicted ones.
pub(super) struct Evictor {
    pub(super) limits: ResourceLimits,
    lifecycle: Arc<SessionLifecycle>,
    /// Locked while sessions are unloaded for memory. Holds the time of the last trim of the heap.
    last_trim: tokio::sync::Mutex<Option<Instant>>,
    /// Whether [`Self::evict_for_memory_soon`] has a task that has yet to begin.
    is_scheduled: AtomicBool,
    /// When enough of everything was last found.
    found_enough: Mutex<Option<Instant>>,
    evicted: Mutex<HashMap<Box<str>, Evicted>>,
}

/// The facts that are kept of an evicted session.
#[derive(Debug)]
struct Evicted {
    /// Its file, where the file cannot be found by the session's id.
    file: Option<Box<Path>>,
}

impl Evictor {
    pub(super) fn new(limits: ResourceLimits, lifecycle: Arc<SessionLifecycle>) -> Self {
        Self {
            limits,
            lifecycle,
            last_trim: tokio::sync::Mutex::default(),
            is_scheduled: AtomicBool::new(false),
            found_enough: Mutex::default(),
            evicted: Mutex::default(),
        }
    }

    /// Whether a session was evicted and is not known again.
    pub(super) fn was_evicted(&self, id: &str) -> bool {
        self.evicted().contains_key(id)
    }

    /// The file of an evicted session, where it cannot be found by the session's id.
    pub(super) fn evicted_file(&self, id: &str) -> Option<PathBuf> {
        self.evicted().get(id)?.file.as_deref().map(Path::to_owned)
    }

    /// Notes that an evicted session is known again.
    pub(super) fn note_known(&self, id: &str) {
        self.evicted().remove(id);
    }

    /// Unloads idle sessions, but not `except`, until memory and files suffice for something new. Twice as many each round, since
    /// a round takes milliseconds. Costs microseconds while nothing is short.
    ///
    /// # Errors
    /// `limit_reached` when nothing is left to unload or to trim.
    pub(super) async fn evict_for_memory(&self, except: Option<&str>) -> Result<(), Failure> {
        if self.look().is_none() {
            return Ok(());
        }
        // On the heap, since it is rare: every command has room for this future.
        Box::pin(self.evict_until_enough(except)).await
    }

    async fn evict_until_enough(&self, except: Option<&str>) -> Result<(), Failure> {
        let mut last_trim = self.last_trim.lock().await;
        let mut batch = 1;
        while let Some(exhausted) = self.limits.exhausted() {
            let unloaded = self.unload_oldest(batch, |slot| except != Some(&**slot.id())).await;
            let may_trim = matches!(exhausted, ResourceExhausted::Memory { .. })
                && (unloaded > 0 || last_trim.is_none_or(|last| last.elapsed() > TRIM_INTERVAL));
            if may_trim {
                trim_heap().await;
                *last_trim = Some(Instant::now());
            } else if unloaded == 0 {
                tracing::debug!(?exhausted, "something new is refused");
                return Err(exhausted.into());
            }
            batch *= 2;
        }
        Ok(())
    }

    /// As [`Self::evict_for_memory`], beside everything else. To be called when a session has grown. The session that was used last stays:
    /// the next command is likely for it, and would load it again at once.
    pub(super) fn evict_for_memory_soon(self: &Arc<Self>) {
        if self.has_just_looked() || self.look().is_none() || self.is_scheduled.swap(true, Ordering::AcqRel) {
            return;
        }
        let me = Arc::clone(self);
        self.lifecycle.services.tasks.spawn(async move {
            me.is_scheduled.store(false, Ordering::Release);
            let sessions = me.lifecycle.sessions.all();
            let last_used =
                sessions.iter().max_by_key(|slot| slot.last_use()).map(|slot| Arc::clone(slot.id()));
            // Nothing new is asked for, so there is no command to refuse.
            let _ = me.evict_for_memory(last_used.as_deref()).await;
        });
    }

    /// The resource of which too much is in use.
    fn look(&self) -> Option<ResourceExhausted> {
        let exhausted = self.limits.exhausted();
        *self.found_enough() = exhausted.is_none().then(Instant::now);
        exhausted
    }

    /// Whether enough of everything was found a moment ago.
    fn has_just_looked(&self) -> bool {
        self.found_enough().is_some_and(|last| last.elapsed() < LOOK_INTERVAL)
    }

    fn found_enough(&self) -> MutexGuard<'_, Option<Instant>> {
        self.found_enough.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room in the registry for one more session by evicting unfollowed sessions: the cheapest first, of equal ones the
    /// least recently used. Where too few are unloaded, idle sessions are unloaded first.
    ///
    /// # Errors
    /// `limit_reached` when all sessions are in use.
    pub(super) async fn evict_for_count(&self) -> Result<(), Failure> {
        let mut batch = 1_usize;
        while self.evict_unloaded().is_err() {
            let unloaded = self.unload_oldest(batch, SessionSlot::is_unattended).await;
            if unloaded == 0 && !self.wait_for_unloading().await {
                // A session may have been unloaded since the last look.
                return self.evict_unloaded();
            }
            batch = batch.saturating_mul(2);
        }
        Ok(())
    }

    /// Evicts unloaded sessions until one more fits.
    fn evict_unloaded(&self) -> Result<(), Failure> {
        let (count, limit) = (self.lifecycle.sessions.count(), self.limits.sessions);
        if count < limit {
            return Ok(());
        }
        let needed = count + 1 - limit;
        let candidates = self.candidates();
        let free = candidates.iter().take_while(|(cost, _)| *cost == EvictionCost::Nothing).count();
        let target = needed.max(free.min(limit / SPARE_PART));
        let evicted = candidates.iter().filter(|(_, slot)| self.evict(slot)).take(target).count();
        if evicted >= needed {
            return Ok(());
        }
        let text = format!("{count} sessions are open, as many as may; none of them is unused.");
        Err(Failure::limit(text, "daemon.maxSessions", "Close sessions that are not needed (close_session)."))
    }

    /// The sessions that may be evicted, in the order in which they should be.
    fn candidates(&self) -> Vec<(EvictionCost, Arc<SessionSlot>)> {
        let slots = self.lifecycle.sessions.all().into_iter();
        let mut candidates: Vec<_> = slots.filter_map(|slot| Some((slot.eviction_cost()?, slot))).collect();
        candidates.sort_by_key(|(cost, slot)| (*cost, slot.last_use()));
        candidates
    }

    /// Evicts one session, unless it is in use again. A session without content is closed: nothing could bring it back.
    fn evict(&self, slot: &SessionSlot) -> bool {
        // A command that is about to reach the session holds the gate.
        let Ok(_gate) = slot.gate.try_write() else { return false };
        match slot.eviction_cost() {
            None => return false,
            Some(EvictionCost::EmptySession) => self.lifecycle.close_unloaded(slot),
            Some(EvictionCost::Nothing | EvictionCost::Choices) => {
                self.remember(slot);
                *slot.state() = State::Closed;
                self.lifecycle.sessions.remove(slot);
            }
        }
        true
    }

    fn remember(&self, slot: &SessionSlot) {
        let mut evicted = self.evicted();
        if evicted.len() >= MAX_EVICTED_SESSIONS
            && let Some(other) = evicted.keys().next().cloned()
        {
            evicted.remove(&other);
        }
        // A file that was opened by its path may lie anywhere, under any name.
        let is_elsewhere = matches!(slot.options.target, Target::Existing(_) | Target::File { .. });
        let file = slot.file().filter(|_| is_elsewhere).map(Into::into);
        evicted.insert((&**slot.id()).into(), Evicted { file });
    }

    /// Unloads up to `count` idle sessions that `may_leave` accepts, the least recently used first. Returns how many it unloaded.
    async fn unload_oldest(&self, count: usize, may_leave: impl Fn(&SessionSlot) -> bool) -> usize {
        let mut idle = self.lifecycle.sessions.all();
        idle.retain(|slot| {
            !slot.is_ephemeral()
                && may_leave(slot)
                && slot.loaded().is_some_and(|handle| !handle.summary().is_streaming)
        });
        idle.sort_by_key(|slot| slot.last_use());
        let mut unloaded = 0;
        for slot in idle {
            if unloaded == count {
                break;
            }
            unloaded += usize::from(self.lifecycle.unload(&slot).await);
        }
        unloaded
    }

    /// Waits until an unfollowed session that is being unloaded is out of memory, or stays. False when there is none.
    async fn wait_for_unloading(&self) -> bool {
        let is_unloading =
            |slot: &Arc<SessionSlot>| slot.is_unattended() && matches!(&*slot.state(), State::Unloading(_));
        let Some(unloading) = self.lifecycle.sessions.all().into_iter().find(is_unloading) else {
            return false;
        };
        // The gate is held until the end of unloading.
        drop(unloading.gate.read().await);
        true
    }

    fn evicted(&self) -> MutexGuard<'_, HashMap<Box<str>, Evicted>> {
        // Single inserts and removals.
        self.evicted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
