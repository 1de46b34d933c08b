//! The sessions that the daemon knows. Many by construction; `--stdio` is the case of one.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use agentd_auth::AuthServices;
use agentd_config::Environment;
use agentd_memory::MemoryAccount;
use agentd_process::OutputMeter;
use agentd_protocol::{
    error::{ErrorCode, Failure},
    resources::Diagnostic,
};
use agentd_session::{
    BranchCopy, Interner, Limits, OpenError, Opened, Services, SessionHandle, SessionOptions, SessionWatch,
    Target, locate,
};
use futures::future::join_all;
use tokio::task::JoinError;

use super::{
    ConnectionCount, ConnectionStats, FairScheduler, JoinIntent, ResourceLimits, WatchBroker,
    event_numbers::{EventNumbers, next_life},
    evictor::Evictor,
    heap_trimmer::HeapTrimmer,
    session_slot::SessionSlot,
};

/// Opens sessions and knows those that are open.
pub struct SessionRegistry {
    pub(super) services: Arc<Services>,
    known: Mutex<HashMap<Arc<str>, Arc<SessionSlot>>>,
    /// Held while it is found out whether a session is known, and until it is: two clients that open the same file at the
    /// same time get the same session. And while one is deleted: nobody opens it meanwhile.
    pub(super) opening: tokio::sync::Mutex<()>,
    environments: Interner<Environment>,
    watch_broker: Arc<WatchBroker>,
    pub(super) evictor: Evictor,
    /// Where the events of sessions that are known no more stopped. Taken after `known` where both are.
    numbers: Mutex<EventNumbers>,
    /// How often sessions were used.
    uses: AtomicU64,
    pub(super) heap_trimmer: HeapTrimmer,
    me: Weak<Self>,
    pub(super) loaded: AtomicU64,
    pub(super) unloaded: AtomicU64,
    started: Instant,
    traffic: Arc<ConnectionStats>,
    scheduler: FairScheduler,
}

/// What the services of a registry's sessions are made with.
pub struct ServiceInputs {
    /// Names the daemon's life.
    pub epoch: String,
    /// What one session may keep, and how long.
    pub limits: Limits,
    /// Is told what becomes of sessions.
    pub watch: Arc<dyn SessionWatch>,
}

/// A session that was asked for.
pub struct AcquiredSession {
    /// The session.
    pub session: Arc<SessionSlot>,
    /// What the user should know of it; nothing for one that was open already.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether it was open already, in memory or not: of what was asked for, only which session it is has counted.
    pub was_open: bool,
    /// One that is in memory only stays while this is there, though nobody follows it yet.
    pub expected: JoinIntent,
}

impl AcquiredSession {
    fn new(session: Arc<SessionSlot>, diagnostics: Vec<Diagnostic>) -> Self {
        Self { expected: session.expect(), session, diagnostics, was_open: false }
    }

    fn open_already(session: Arc<SessionSlot>) -> Self {
        Self { was_open: true, ..Self::new(session, Vec::new()) }
    }
}

impl SessionRegistry {
    /// An empty registry; sessions get what they share from what `services` gives.
    #[must_use]
    pub fn new(
        limits: Limits,
        resources: ResourceLimits,
        services: impl FnOnce(ServiceInputs) -> Arc<Services>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|registry: &Weak<Self>| {
            let watch_broker = Arc::new(WatchBroker::new(registry.clone()));
            let watch: Arc<dyn SessionWatch> = Arc::<WatchBroker>::clone(&watch_broker);
            let inputs = ServiceInputs { epoch: agentd_store::new_session_id(), limits, watch };
            Self {
                services: services(inputs),
                known: Mutex::default(),
                opening: tokio::sync::Mutex::new(()),
                environments: Interner::default(),
                watch_broker,
                evictor: Evictor::new(resources),
                numbers: Mutex::default(),
                uses: AtomicU64::new(0),
                heap_trimmer: HeapTrimmer::default(),
                me: registry.clone(),
                loaded: AtomicU64::new(0),
                unloaded: AtomicU64::new(0),
                started: Instant::now(),
                traffic: Arc::default(),
                scheduler: FairScheduler::default(),
            }
        })
    }

    /// Names this life of the daemon.
    #[must_use]
    pub fn epoch(&self) -> &str {
        &self.services.epoch
    }

    /// What finding credentials shares among all sessions.
    #[must_use]
    pub fn auth_services(&self) -> AuthServices {
        self.services.auth_services.clone()
    }

    /// What everything that comes in is charged to.
    #[must_use]
    pub fn memory(&self) -> &MemoryAccount {
        &self.services.memory
    }

    /// How long the daemon has run.
    #[must_use]
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// What connections there are.
    #[must_use]
    pub fn traffic(&self) -> &ConnectionStats {
        &self.traffic
    }

    /// Where connections wait for their turn.
    #[must_use]
    pub fn scheduler(&self) -> &FairScheduler {
        &self.scheduler
    }

    /// Who watches the sessions.
    #[must_use]
    pub fn watch_broker(&self) -> &WatchBroker {
        &self.watch_broker
    }

    /// Counts a connection.
    #[must_use]
    pub fn enter(&self) -> ConnectionCount {
        self.traffic.enter()
    }

    /// How many sessions were loaded since the start, those that came back included.
    #[must_use]
    pub fn loaded(&self) -> u64 {
        self.loaded.load(Ordering::Relaxed)
    }

    /// How many sessions left memory because they were idle.
    #[must_use]
    pub fn unloaded(&self) -> u64 {
        self.unloaded.load(Ordering::Relaxed)
    }

    /// Opens a session and keeps it; one that is known already is given as it is.
    ///
    /// # Errors
    /// What made opening fail: a file that is no session, one that another process writes, an unknown model.
    ///
    /// Cancel safety: dropped early, it goes on by itself. Whoever opens the same file next would else find it in the hands of
    /// somebody whom nobody knows.
    pub async fn open(&self, options: SessionOptions) -> Result<AcquiredSession, OpenError> {
        self.run_detached(|me| async move { me.open_now(options).await }).await?
    }

    /// Does something to its end, also when the one who wants it leaves before that.
    pub(super) async fn run_detached<F: Future<Output: Send> + Send + 'static>(
        &self,
        work: impl FnOnce(Arc<Self>) -> F,
    ) -> Result<F::Output, JoinError> {
        match self.me.upgrade() {
            Some(me) => self.services.tasks.spawn(work(me)).await,
            // Nobody asks a registry that nobody has.
            None => std::future::pending().await,
        }
    }

    async fn open_now(&self, mut options: SessionOptions) -> Result<AcquiredSession, OpenError> {
        let _opening = match &options.target {
            Target::New | Target::Child(_) | Target::Fork { id: None, .. } | Target::Ephemeral(None) => None,
            Target::Fork { id: Some(_), .. }
            | Target::Continue
            | Target::Existing(_)
            | Target::Id(_)
            | Target::Ephemeral(Some(_)) => Some(self.opening.lock().await),
        };
        if let Target::Fork { id: Some(id), .. } = &options.target
            && let Some(session) = self.get(id)
        {
            let path = session.file().unwrap_or_default();
            return Err(OpenError::IdTaken { id: id.clone(), path });
        }
        let mut path = None;
        if _opening.is_some() {
            if let Some(session) = self.named(&options.target) {
                self.note_use(&session);
                return Ok(AcquiredSession::open_already(session));
            }
            let asked = options.clone();
            let located = tokio::task::spawn_blocking(move || locate(&asked)).await??;
            if let Some((file, id)) = located {
                if let Some(session) = self.get(&id).or_else(|| self.at(&file)) {
                    self.note_use(&session);
                    return Ok(AcquiredSession::open_already(session));
                }
                self.see_out(&id).await;
                path = Some(file);
            } else if let Target::Id(id) | Target::Ephemeral(Some(id)) = &options.target {
                self.see_out(id).await;
            }
        }
        self.admit().await?;
        options.environment = self.environments.intern(options.environment);
        let services = Arc::clone(&self.services);
        let last_seq = |id: &str| self.last_seq(id);
        let opened = agentd_session::open_after(services, options.clone(), last_seq).await?;
        Ok(self.keep(opened, options, path))
    }

    /// Makes a session of a copied branch and keeps it.
    ///
    /// # Errors
    /// What made that fail; nothing is left of the copy then.
    ///
    /// Cancel safety: as of [`Self::open`].
    pub async fn adopt(
        &self,
        options: SessionOptions,
        copied: BranchCopy,
    ) -> Result<AcquiredSession, OpenError> {
        self.run_detached(|me| async move { me.adopt_now(options, copied).await }).await?
    }

    async fn adopt_now(
        &self,
        mut options: SessionOptions,
        copied: BranchCopy,
    ) -> Result<AcquiredSession, OpenError> {
        self.admit().await?;
        options.environment = self.environments.intern(options.environment);
        let (services, last_seq) = (Arc::clone(&self.services), |id: &str| self.last_seq(id));
        let opened = agentd_session::open_copy(services, options.clone(), copied, last_seq).await?;
        Ok(self.keep(opened, options, None))
    }

    /// Waits until a session of that id that is ending is gone: it has the file until then, and may still tell events.
    async fn see_out(&self, id: &str) {
        let ending = self.map().get(id).and_then(|known| known.loaded());
        if let Some(ending) = ending {
            ending.close().await;
        }
    }

    /// The number after which the events of a session are counted that is about to be opened: past those of every former life.
    fn last_seq(&self, id: &str) -> u64 {
        let map = self.map();
        // One that is over, and that nobody has let go of yet.
        let former = map.get(id).map(|known| next_life(known.feed().last_seq()));
        self.numbers().after(id).max(former.unwrap_or_default())
    }

    /// Lets go of a session, but for the number of its last event. False when another one of its id is known by now, which
    /// counts on from there.
    pub(super) fn let_go(&self, known: &SessionSlot) -> bool {
        let mut map = self.map();
        if !map.get(&**known.id()).is_some_and(|other| std::ptr::eq(&**other, known)) {
            return false;
        }
        self.numbers().note(known.id(), known.feed().last_seq());
        map.remove(&**known.id());
        true
    }

    fn numbers(&self) -> MutexGuard<'_, EventNumbers> {
        // Single inserts.
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An equal environment that is in memory already, if there is one.
    #[must_use]
    pub fn share_environment(&self, environment: Environment) -> Environment {
        self.environments.intern(environment)
    }

    /// Whether there is room for another session.
    async fn admit(&self) -> Result<(), OpenError> {
        self.may_load().map_err(OpenError::Limit)?;
        self.evict_for_count().await.map_err(OpenError::Limit)?;
        self.evict_for_memory(None).await.map_err(OpenError::Limit)
    }

    fn keep(&self, opened: Opened, options: SessionOptions, path: Option<PathBuf>) -> AcquiredSession {
        self.loaded.fetch_add(1, Ordering::Relaxed);
        let known = SessionSlot::new(opened.handle, options, path, Arc::clone(&self.watch_broker));
        let joined = AcquiredSession::new(Arc::new(known), opened.diagnostics);
        let session = &joined.session;
        self.note_use(session);
        self.evictor.found(session.id());
        self.map().insert(Arc::clone(session.id()), Arc::clone(session));
        self.watch_broker.opened(session.id());
        self.has_grown();
        joined
    }

    /// Makes room beside everything else, if there is too little now.
    pub(super) fn has_grown(&self) {
        if let Some(me) = self.me.upgrade() {
            me.evict_for_memory_soon();
        }
    }

    pub(super) fn note_use(&self, known: &SessionSlot) {
        known.used(self.uses.fetch_add(1, Ordering::Relaxed) + 1);
    }

    /// What the daemon may take.
    #[must_use]
    pub fn limits(&self) -> &ResourceLimits {
        &self.evictor.limits
    }

    /// Hears of what is written to long outputs.
    #[must_use]
    pub fn outputs(&self) -> OutputMeter {
        self.services.outputs.clone()
    }

    /// How many commands of sessions run, and how many may.
    #[must_use]
    pub fn commands(&self) -> (usize, usize) {
        self.services.launcher.commands()
    }

    /// A session that is known, by its id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<Arc<SessionSlot>> {
        self.map().get(id).filter(|known| !known.has_ended()).cloned()
    }

    /// All sessions that are known.
    #[must_use]
    pub fn known(&self) -> Vec<Arc<SessionSlot>> {
        self.map().values().cloned().collect()
    }

    /// All sessions in memory.
    #[must_use]
    pub fn all(&self) -> Vec<SessionHandle> {
        self.map().values().filter_map(|known| known.loaded()).collect()
    }

    /// Waits until no session has anything to do.
    pub async fn idle(&self) {
        let sessions = self.all();
        join_all(sessions.iter().map(SessionHandle::idle)).await;
    }

    /// The session that a target names outright: by its id, or by the path of a file that need not be there yet.
    pub(super) fn named(&self, target: &Target) -> Option<Arc<SessionSlot>> {
        match target {
            Target::Existing(path) if Path::new(path).is_absolute() => {
                let is_it = |known: &&Arc<SessionSlot>| {
                    !known.has_ended() && known.file().is_some_and(|file| file == Path::new(path))
                };
                self.map().values().find(is_it).cloned()
            }
            Target::Existing(id) | Target::Id(id) | Target::Ephemeral(Some(id)) => self.get(id),
            _ => None,
        }
    }

    /// The session of a file.
    pub(super) fn at(&self, file: &Path) -> Option<Arc<SessionSlot>> {
        let is_it = |known: &&Arc<SessionSlot>| known.path.as_deref() == Some(file) && !known.has_ended();
        self.map().values().find(is_it).cloned()
    }

    pub(super) fn map(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<SessionSlot>>> {
        // Inserts and removals leave the map whole even if one panicked.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something has panicked that was to be seen through.
pub(super) fn internal(error: &JoinError) -> Failure {
    Failure::new(ErrorCode::Internal, error.to_string())
}
