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
    Board, Ceilings, ConnectionCount, Expected, Traffic, Turnstile,
    give_back::GiveBack,
    known::Known,
    numbers::{Numbers, next_life},
    relief::Relief,
};

/// Opens sessions and knows those that are open.
pub struct Registry {
    pub(super) services: Arc<Services>,
    known: Mutex<HashMap<Arc<str>, Arc<Known>>>,
    /// Held while it is found out whether a session is known, and until it is: two clients that open the same file at the
    /// same time get the same session. And while one is deleted: nobody opens it meanwhile.
    pub(super) opening: tokio::sync::Mutex<()>,
    environments: Interner<Environment>,
    board: Arc<Board>,
    pub(super) relief: Relief,
    /// Where the events of sessions that are known no more stopped. Taken after `known` where both are.
    numbers: Mutex<Numbers>,
    /// How often sessions were used.
    uses: AtomicU64,
    pub(super) give_back: GiveBack,
    me: Weak<Self>,
    pub(super) loaded: AtomicU64,
    pub(super) unloaded: AtomicU64,
    started: Instant,
    traffic: Arc<Traffic>,
    turnstile: Turnstile,
}

/// What the services of a registry's sessions are made with.
pub struct Foundation {
    /// Names the daemon's life.
    pub epoch: String,
    /// What one session may keep, and how long.
    pub limits: Limits,
    /// Is told what becomes of sessions.
    pub watch: Arc<dyn SessionWatch>,
}

/// A session that was asked for.
pub struct Joined {
    /// The session.
    pub session: Arc<Known>,
    /// What the user should know of it; nothing for one that was open already.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether it was open already, in memory or not: of what was asked for, only which session it is has counted.
    pub was_open: bool,
    /// One that is in memory only stays while this is there, though nobody follows it yet.
    pub expected: Expected,
}

impl Joined {
    fn new(session: Arc<Known>, diagnostics: Vec<Diagnostic>) -> Self {
        Self { expected: session.expect(), session, diagnostics, was_open: false }
    }

    fn open_already(session: Arc<Known>) -> Self {
        Self { was_open: true, ..Self::new(session, Vec::new()) }
    }
}

impl Registry {
    /// An empty registry; sessions get what they share from what `services` gives.
    #[must_use]
    pub fn new(
        limits: Limits,
        ceilings: Ceilings,
        services: impl FnOnce(Foundation) -> Arc<Services>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|registry: &Weak<Self>| {
            let board = Arc::new(Board::new(registry.clone()));
            let watch: Arc<dyn SessionWatch> = Arc::<Board>::clone(&board);
            let foundation = Foundation { epoch: agentd_store::new_session_id(), limits, watch };
            Self {
                services: services(foundation),
                known: Mutex::default(),
                opening: tokio::sync::Mutex::new(()),
                environments: Interner::default(),
                board,
                relief: Relief::new(ceilings),
                numbers: Mutex::default(),
                uses: AtomicU64::new(0),
                give_back: GiveBack::default(),
                me: registry.clone(),
                loaded: AtomicU64::new(0),
                unloaded: AtomicU64::new(0),
                started: Instant::now(),
                traffic: Arc::default(),
                turnstile: Turnstile::default(),
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
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Where connections wait for their turn.
    #[must_use]
    pub fn turnstile(&self) -> &Turnstile {
        &self.turnstile
    }

    /// Who watches the sessions.
    #[must_use]
    pub fn board(&self) -> &Board {
        &self.board
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
    pub async fn open(&self, options: SessionOptions) -> Result<Joined, OpenError> {
        self.see_through(|me| async move { me.open_now(options).await }).await?
    }

    /// Does something to its end, also when the one who wants it leaves before that.
    pub(super) async fn see_through<F: Future<Output: Send> + Send + 'static>(
        &self,
        work: impl FnOnce(Arc<Self>) -> F,
    ) -> Result<F::Output, JoinError> {
        match self.me.upgrade() {
            Some(me) => self.services.tasks.spawn(work(me)).await,
            // Nobody asks a registry that nobody has.
            None => std::future::pending().await,
        }
    }

    async fn open_now(&self, mut options: SessionOptions) -> Result<Joined, OpenError> {
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
                return Ok(Joined::open_already(session));
            }
            let asked = options.clone();
            let located = tokio::task::spawn_blocking(move || locate(&asked)).await??;
            if let Some((file, id)) = located {
                if let Some(session) = self.get(&id).or_else(|| self.at(&file)) {
                    self.note_use(&session);
                    return Ok(Joined::open_already(session));
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
    pub async fn adopt(&self, options: SessionOptions, copied: BranchCopy) -> Result<Joined, OpenError> {
        self.see_through(|me| async move { me.adopt_now(options, copied).await }).await?
    }

    async fn adopt_now(&self, mut options: SessionOptions, copied: BranchCopy) -> Result<Joined, OpenError> {
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
    pub(super) fn let_go(&self, known: &Known) -> bool {
        let mut map = self.map();
        if !map.get(&**known.id()).is_some_and(|other| std::ptr::eq(&**other, known)) {
            return false;
        }
        self.numbers().note(known.id(), known.feed().last_seq());
        map.remove(&**known.id());
        true
    }

    fn numbers(&self) -> MutexGuard<'_, Numbers> {
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
        self.make_place().await.map_err(OpenError::Limit)?;
        self.make_room(None).await.map_err(OpenError::Limit)
    }

    fn keep(&self, opened: Opened, options: SessionOptions, path: Option<PathBuf>) -> Joined {
        self.loaded.fetch_add(1, Ordering::Relaxed);
        let known = Known::new(opened.handle, options, path, Arc::clone(&self.board));
        let joined = Joined::new(Arc::new(known), opened.diagnostics);
        let session = &joined.session;
        self.note_use(session);
        self.relief.found(session.id());
        self.map().insert(Arc::clone(session.id()), Arc::clone(session));
        self.board.opened(session.id());
        self.has_grown();
        joined
    }

    /// Makes room beside everything else, if there is too little now.
    pub(super) fn has_grown(&self) {
        if let Some(me) = self.me.upgrade() {
            me.make_room_soon();
        }
    }

    pub(super) fn note_use(&self, known: &Known) {
        known.used(self.uses.fetch_add(1, Ordering::Relaxed) + 1);
    }

    /// What the daemon may take.
    #[must_use]
    pub fn ceilings(&self) -> &Ceilings {
        &self.relief.ceilings
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
    pub fn get(&self, id: &str) -> Option<Arc<Known>> {
        self.map().get(id).filter(|known| !known.is_over()).cloned()
    }

    /// All sessions that are known.
    #[must_use]
    pub fn known(&self) -> Vec<Arc<Known>> {
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
    pub(super) fn named(&self, target: &Target) -> Option<Arc<Known>> {
        match target {
            Target::Existing(path) if Path::new(path).is_absolute() => {
                let is_it = |known: &&Arc<Known>| {
                    !known.is_over() && known.file().is_some_and(|file| file == Path::new(path))
                };
                self.map().values().find(is_it).cloned()
            }
            Target::Existing(id) | Target::Id(id) | Target::Ephemeral(Some(id)) => self.get(id),
            _ => None,
        }
    }

    /// The session of a file.
    pub(super) fn at(&self, file: &Path) -> Option<Arc<Known>> {
        let is_it = |known: &&Arc<Known>| known.path.as_deref() == Some(file) && !known.is_over();
        self.map().values().find(is_it).cloned()
    }

    pub(super) fn map(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Known>>> {
        // Inserts and removals leave the map whole even if one panicked.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something has panicked that was to be seen through.
pub(super) fn internal(error: &JoinError) -> Failure {
    Failure::new(ErrorCode::Internal, error.to_string())
}
