//! Making room: sessions with nothing to do leave memory before their time, and are known no more when there are too many.

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
    ResourceLimits, SessionRegistry, SessionSlot,
    heap_trimmer::trim_heap,
    resource_limits::ResourceExhausted,
    session_slot::{EvictionCost, State},
};

/// Giving memory back takes milliseconds: not more often than this where it has brought nothing.
const AGAIN: Duration = Duration::from_secs(1);

/// How many sessions are remembered by nothing but their id.
const MOST_EVICTED: usize = 100_000;

/// What making room needs to know.
#[derive(Debug)]
pub(super) struct Evictor {
    pub(super) limits: ResourceLimits,
    /// Held by the one who makes room, with when memory was last given back.
    making: tokio::sync::Mutex<Option<Instant>>,
    /// Whether somebody will look by himself.
    is_due: AtomicBool,
    /// Sessions that are known no more since there were too many.
    evicted: Mutex<HashMap<Box<str>, Evicted>>,
}

/// What is remembered of a session that is known no more.
#[derive(Debug)]
struct Evicted {
    /// Its file, where the name of that does not tell.
    file: Option<Box<Path>>,
}

impl Evictor {
    pub(super) fn new(limits: ResourceLimits) -> Self {
        Self {
            limits,
            making: tokio::sync::Mutex::default(),
            is_due: AtomicBool::new(false),
            evicted: Mutex::default(),
        }
    }

    /// A session that was forgotten is known again.
    pub(super) fn found(&self, id: &str) {
        self.evicted().remove(id);
    }

    fn evicted(&self) -> MutexGuard<'_, HashMap<Box<str>, Evicted>> {
        // Single inserts and removals.
        self.evicted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionRegistry {
    /// Whether a session was known before others took its place: any command brings it back.
    #[must_use]
    pub fn was_evicted(&self, id: &str) -> bool {
        self.evictor.evicted().contains_key(id)
    }

    /// The file of a session that was forgotten, where that is not found by the session's id.
    #[must_use]
    pub fn evicted_file(&self, id: &str) -> Option<PathBuf> {
        self.evictor.evicted().get(id)?.file.as_deref().map(Path::to_owned)
    }

    /// Sees to it that there is memory and a file for something new; sessions with nothing to do may leave memory for that, but
    /// not `except`. Costs microseconds where nothing is short.
    ///
    /// # Errors
    /// `limit_reached` while that is not enough.
    pub async fn evict_for_memory(&self, except: Option<&str>) -> Result<(), Failure> {
        if self.evictor.limits.shortage().is_none() {
            return Ok(());
        }
        let mut given_back = self.evictor.making.lock().await;
        let mut batch = 1;
        loop {
            let Some(shortage) = self.evictor.limits.shortage() else { return Ok(()) };
            let unloaded = self.unload_oldest(batch, |known| except != Some(&**known.id())).await;
            let may_be_free = matches!(shortage, ResourceExhausted::Memory { .. })
                && (unloaded > 0 || given_back.is_none_or(|last| last.elapsed() > AGAIN));
            if may_be_free {
                if let Err(error) = tokio::task::spawn_blocking(trim_heap).await {
                    tracing::error!(%error, "memory could not be given back");
                }
                *given_back = Some(Instant::now());
            } else if unloaded == 0 {
                tracing::debug!(?shortage, "something new is refused");
                return Err(shortage.into());
            }
            batch *= 2;
        }
    }

    /// Makes room beside everything else, if there is too little: called when something has grown.
    pub(super) fn evict_for_memory_soon(self: &Arc<Self>) {
        if self.evictor.limits.shortage().is_none() || self.evictor.is_due.swap(true, Ordering::AcqRel) {
            return;
        }
        let registry = Arc::clone(self);
        self.services.tasks.spawn(async move {
            registry.evictor.is_due.store(false, Ordering::Release);
            // Nothing new is asked for: there is nobody to refuse.
            let _ = registry.evict_for_memory(None).await;
        });
    }

    /// Takes up to `count` of these sessions out of memory, those first that were used longest ago. How many have left.
    async fn unload_oldest(&self, count: usize, of: impl Fn(&SessionSlot) -> bool) -> usize {
        let mut idle: Vec<Arc<SessionSlot>> = self.known();
        idle.retain(|known| {
            !known.is_ephemeral()
                && of(known)
                && known.loaded().is_some_and(|handle| !handle.summary().is_streaming)
        });
        idle.sort_by_key(|known| known.last_use());
        let mut unloaded = 0;
        for known in idle {
            if unloaded == count {
                break;
            }
            unloaded += usize::from(self.unload(&known).await);
        }
        unloaded
    }

    /// Sees to it that another session can be known: others are forgotten for that that nobody follows, first those that lose
    /// nothing, of these first those that were used longest ago. They are on disk, or nothing was said in them yet: then they
    /// are closed. Where none rests, those with nothing to do leave memory before their time.
    ///
    /// # Errors
    /// `limit_reached` when all are in use.
    pub(super) async fn evict_for_count(&self) -> Result<(), Failure> {
        let mut batch = 1_usize;
        while self.evict_unloaded().is_err() {
            if self.unload_oldest(batch, SessionSlot::is_unattended).await == 0 && !self.one_has_left().await
            {
                // One may have left between the two looks.
                return self.evict_unloaded();
            }
            batch = batch.saturating_mul(2);
        }
        Ok(())
    }

    /// Waits for a session that nobody follows and that is on its way out of memory; false when there is none.
    async fn one_has_left(&self) -> bool {
        let is_leaving = |known: &Arc<SessionSlot>| {
            known.is_unattended() && matches!(&*known.state(), State::Unloading(_))
        };
        let Some(leaving) = self.known().into_iter().find(is_leaving) else { return false };
        // Held until it is out, or stays.
        drop(leaving.gate.read().await);
        true
    }

    /// As [`Self::evict_for_count`], of those that rest.
    fn evict_unloaded(&self) -> Result<(), Failure> {
        let limit = self.evictor.limits.sessions;
        let count = self.map().len();
        if count < limit {
            return Ok(());
        }
        let resting = self.known().into_iter().filter_map(|known| Some((known.eviction_cost()?, known)));
        let mut resting: Vec<(EvictionCost, Arc<SessionSlot>)> = resting.collect();
        resting.sort_by_key(|(eviction_cost, known)| (*eviction_cost, known.last_use()));
        let needed = count + 1 - limit;
        let free = resting.iter().take_while(|(cost, _)| *cost == EvictionCost::Nothing).count();
        // Some more than needed, so that not every session to come looks through all; not where that costs something.
        let most = needed.max(free.min(limit / 16));
        let mut forgotten = 0;
        for (_, known) in resting {
            if forgotten == most {
                break;
            }
            // Whoever is about to hand it something holds the gate.
            let Ok(_gate) = known.gate.try_write() else { continue };
            match known.eviction_cost() {
                None => continue,
                Some(EvictionCost::Blank) => self.close_at_rest(&known),
                Some(EvictionCost::Nothing | EvictionCost::Choices) => self.forget_for_now(&known),
            }
            forgotten += 1;
        }
        if forgotten >= needed {
            return Ok(());
        }
        let text = format!("{count} sessions are open, as many as may; none of them is unused.");
        Err(Failure::limit(text, "daemon.maxSessions", "Close sessions that are not needed (close_session)."))
    }

    /// Ends a session that has left memory. Its gate is held.
    pub(super) fn close_at_rest(&self, known: &Arc<SessionSlot>) {
        *known.state() = State::Closed;
        known.feed().close();
        self.forget(known);
    }

    fn forget_for_now(&self, known: &SessionSlot) {
        let mut evicted = self.evictor.evicted();
        if evicted.len() >= MOST_EVICTED
            && let Some(other) = evicted.keys().next().cloned()
        {
            evicted.remove(&other);
        }
        // Files that were opened by their path may lie anywhere, under any name.
        let is_elsewhere = matches!(known.options.target, Target::Existing(_));
        let file = known.file().filter(|_| is_elsewhere).map(Into::into);
        evicted.insert((&**known.id()).into(), Evicted { file });
        drop(evicted);
        *known.state() = State::Closed;
        self.let_go(known);
    }
}
