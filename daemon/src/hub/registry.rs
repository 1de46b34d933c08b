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
use agentd_config::{AgentDir, Environment};
use agentd_process::OutputMeter;
use agentd_protocol::{
    daemon::EndMode,
    error::{ErrorCode, Failure},
    resources::Diagnostic,
};
use agentd_session::{
    Copied, Limits, OpenError, Opened, Pool, Services, SessionHandle, SessionOptions, Target, Watch, locate,
};
use futures::future::join_all;
use tokio::task::JoinError;

use super::{
    Board, Ceilings, ConnectionCount, Expected, Traffic, Turnstile,
    give_back::GiveBack,
    known::{Awake, Known, State},
    list,
    relief::Relief,
};

/// Opens sessions and knows those that are open.
pub struct Registry {
    pub(super) services: Arc<Services>,
    known: Mutex<HashMap<Arc<str>, Arc<Known>>>,
    /// Held while it is found out whether a session is known, and until it is: two clients that open the same file at the
    /// same time get the same session.
    opening: tokio::sync::Mutex<()>,
    environments: Pool<Environment>,
    board: Arc<Board>,
    pub(super) relief: Relief,
    /// How often sessions were used.
    uses: AtomicU64,
    give_back: GiveBack,
    me: Weak<Self>,
    loaded: AtomicU64,
    unloaded: AtomicU64,
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
    pub watch: Arc<dyn Watch>,
}

/// A session that was asked for.
pub struct Joined {
    /// The session.
    pub session: Arc<Known>,
    /// What the user should know of it; nothing for one that was open already.
    pub diagnostics: Vec<Diagnostic>,
    /// One that is in memory only stays while this is there, though nobody follows it yet.
    pub expected: Expected,
}

impl Joined {
    fn new(session: Arc<Known>, diagnostics: Vec<Diagnostic>) -> Self {
        Self { expected: session.expect(), session, diagnostics }
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
            let watch: Arc<dyn Watch> = Arc::<Board>::clone(&board);
            let foundation = Foundation { epoch: agentd_store::new_session_id(), limits, watch };
            Self {
                services: services(foundation),
                known: Mutex::default(),
                opening: tokio::sync::Mutex::new(()),
                environments: Pool::default(),
                board,
                relief: Relief::new(ceilings),
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
    async fn see_through<F: Future<Output: Send> + Send + 'static>(
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
        let (mut path, mut last_seq) = (None, 0);
        if _opening.is_some() {
            if let Some(session) = self.named(&options.target) {
                self.note_use(&session);
                return Ok(Joined::new(session, Vec::new()));
            }
            let asked = options.clone();
            let located = tokio::task::spawn_blocking(move || locate(&asked)).await??;
            if let Some((file, id)) = located {
                if let Some(session) = self.get(&id).or_else(|| self.at(&file)) {
                    self.note_use(&session);
                    return Ok(Joined::new(session, Vec::new()));
                }
                // One that is ending has the file until it is gone.
                let ending = self.map().get(&*id).and_then(|known| known.loaded());
                if let Some(ending) = ending {
                    ending.close().await;
                }
                path = Some(file);
                last_seq = self.relief.remember(&id).unwrap_or_default();
            }
        }
        self.admit().await?;
        options.environment = self.environments.share(options.environment);
        let services = Arc::clone(&self.services);
        let opened = agentd_session::open_after(services, options.clone(), last_seq).await?;
        Ok(self.keep(opened, options, path))
    }

    /// Makes a session of a copied branch and keeps it.
    ///
    /// # Errors
    /// What made that fail; nothing is left of the copy then.
    ///
    /// Cancel safety: as of [`Self::open`].
    pub async fn adopt(&self, options: SessionOptions, copied: Copied) -> Result<Joined, OpenError> {
        self.see_through(|me| async move { me.adopt_now(options, copied).await }).await?
    }

    async fn adopt_now(&self, mut options: SessionOptions, copied: Copied) -> Result<Joined, OpenError> {
        self.admit().await?;
        options.environment = self.environments.share(options.environment);
        let opened = agentd_session::adopt(Arc::clone(&self.services), options.clone(), copied).await?;
        Ok(self.keep(opened, options, None))
    }

    /// Whether there is room for another session.
    async fn admit(&self) -> Result<(), OpenError> {
        self.make_place().map_err(OpenError::Limit)?;
        self.make_room(None).await.map_err(OpenError::Limit)
    }

    fn keep(&self, opened: Opened, options: SessionOptions, path: Option<PathBuf>) -> Joined {
        self.loaded.fetch_add(1, Ordering::Relaxed);
        let known = Known::new(opened.handle, options, path, Arc::clone(&self.board));
        let joined = Joined::new(Arc::new(known), opened.diagnostics);
        let session = &joined.session;
        self.note_use(session);
        self.map().insert(Arc::clone(session.id()), Arc::clone(session));
        self.board.opened(session.id());
        self.has_grown();
        joined
    }

    /// Makes room beside everything else, if there is too little now.
    fn has_grown(&self) {
        if let Some(me) = self.me.upgrade() {
            me.make_room_soon();
        }
    }

    fn note_use(&self, known: &Known) {
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

    /// Sees to it that a session is in memory, and stays there while what this gives is held.
    ///
    /// # Errors
    /// When the session is over, and when its file does not open any more.
    pub async fn wake(&self, known: &Arc<Known>) -> Result<Awake, Failure> {
        self.note_use(known);
        loop {
            let gate = Arc::clone(&known.gate).read_owned().await;
            match known.loaded() {
                _ if known.is_over() => return Err(over()),
                Some(handle) => return Ok(Awake { _gate: gate, handle }),
                None => drop(gate),
            }
            let loading = Arc::clone(known);
            let loaded = self.see_through(|me| async move { me.load(&loading).await }).await;
            if let Some(awake) = loaded.map_err(|error| internal(&error))?? {
                return Ok(awake);
            }
        }
    }

    /// Reads a session that rests; nothing when it is in memory already.
    async fn load(&self, known: &Arc<Known>) -> Result<Option<Awake>, Failure> {
        self.make_room(Some(&**known.id())).await?;
        let gate = Arc::clone(&known.gate).write_owned().await;
        let rested = match &*known.state() {
            State::Loaded(_) | State::Leaving(_) => return Ok(None),
            State::Resting(resting) => resting.0.clone(),
            State::Ending(_) | State::Closed => return Err(over()),
        };
        let (services, options) = (Arc::clone(&self.services), known.options.clone());
        let handle = agentd_session::resume(services, options, rested, known.feed().clone()).await?;
        *known.state() = State::Loaded(handle.clone());
        self.loaded.fetch_add(1, Ordering::Relaxed);
        self.has_grown();
        self.board.changed_at(known.id());
        Ok(Some(Awake { _gate: gate.downgrade(), handle }))
    }

    /// Takes a session out of memory that has had nothing to do; one without a file that nobody follows is closed.
    pub(super) fn unload_soon(self: Arc<Self>, id: &str) {
        let Some(known) = self.get(id) else { return };
        let tasks = self.services.tasks.clone();
        tasks.spawn(async move {
            if known.is_ephemeral() {
                if known.is_alone() {
                    self.close(&known, EndMode::Abort).await;
                }
            } else {
                self.unload(&known).await;
            }
        });
    }

    /// Leaves it in memory if anyone is about to hand it something, or has yet to take so much that it waits for that.
    /// Whether it has left.
    ///
    /// Cancel safety: dropped early, it goes on by itself. A session that has let go of everything and is not known to rest
    /// could not come back.
    pub(super) async fn unload(&self, known: &Arc<Known>) -> bool {
        let known = Arc::clone(known);
        self.see_through(|me| async move { me.take_out(&known).await }).await.unwrap_or(false)
    }

    async fn take_out(&self, known: &Known) -> bool {
        let Ok(_gate) = known.gate.try_write() else { return false };
        let Some(handle) = known.loaded().filter(|_| known.feed().has_room()) else { return false };
        // A listener that takes nothing must not keep it here.
        let _announced = known.feed().announce();
        // From before it ends until it is known to rest: whoever looks for it meanwhile must not take it for over.
        *known.state() = State::Leaving(handle.clone());
        let rested = handle.rest().await;
        let has_left = rested.is_some();
        *known.state() = match rested {
            Some(rested) => State::Resting(Box::new((rested, handle.summary()))),
            None => State::Loaded(handle),
        };
        if has_left {
            known.feed().forget();
            self.unloaded.fetch_add(1, Ordering::Relaxed);
            self.give_back.soon();
            self.board.changed_at(known.id());
        }
        has_left
    }

    /// Ends a session; nothing of it is left running.
    ///
    /// Cancel safety: dropped early, it goes on by itself.
    pub async fn close(&self, known: &Arc<Known>, mode: EndMode) {
        let known = Arc::clone(known);
        let closing = self.see_through(|me| async move { me.close_now(&known, mode).await });
        if let Err(error) = closing.await {
            tracing::error!(%error, "a session could not be closed");
        }
    }

    /// Ends a session that one client at most follows, and nobody else is about to. Whether it has.
    ///
    /// Cancel safety: dropped early, it goes on by itself.
    pub async fn close_if_alone(&self, known: &Arc<Known>) -> bool {
        let known = Arc::clone(known);
        let closing = self.see_through(|me| async move {
            {
                // Whoever comes has said so and then waits for this, or comes later and finds it over.
                let _gate = known.gate.write().await;
                if known.clients() > 1 || known.is_expected() || known.is_over() {
                    return false;
                }
                let mut state = known.state();
                *state = match &*state {
                    State::Loaded(handle) | State::Leaving(handle) | State::Ending(handle) => {
                        State::Ending(handle.clone())
                    }
                    State::Resting(_) | State::Closed => State::Closed,
                };
            }
            me.close_now(&known, EndMode::Abort).await;
            true
        });
        closing.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a session could not be closed");
            false
        })
    }

    async fn close_now(&self, known: &Arc<Known>, mode: EndMode) {
        loop {
            if let Some(handle) = known.loaded() {
                if mode == EndMode::Drain {
                    handle.idle().await;
                }
                handle.close().await;
            }
            // Whoever was about to hand it something has got an answer by now.
            let _gate = known.gate.write().await;
            let mut state = known.state();
            // It may have come back meanwhile.
            if !matches!(&*state, State::Loaded(handle) if !handle.has_ended()) {
                *state = State::Closed;
                break;
            }
        }
        known.feed().close();
        self.forget(known);
    }

    /// Deletes a session's file and long outputs. Nobody opens it meanwhile; one that rests is closed.
    ///
    /// # Errors
    /// When it is in memory, when another process writes to it, when it has no file or that cannot be deleted.
    ///
    /// Cancel safety: dropped early, it goes on by itself.
    pub async fn delete(&self, id: &str, agent_dir: AgentDir) -> Result<(), Failure> {
        let id = id.to_owned();
        let deleted = self.see_through(|me| async move { me.delete_now(id, agent_dir).await }).await;
        deleted.map_err(|error| internal(&error))?
    }

    async fn delete_now(&self, id: String, agent_dir: AgentDir) -> Result<(), Failure> {
        let _opening = self.opening.lock().await;
        // By its entry: one that is ending has its file until it is gone.
        let known = self.map().get(&*id).cloned();
        if let Some(known) = known {
            if known.is_over() {
                self.close_now(&known, EndMode::Abort).await;
            } else {
                // Whoever hands it something has it in memory then.
                let _gate = known.gate.write().await;
                if !known.is_resting() {
                    let text = format!("The session \"{id}\" is in memory.");
                    return Err(Failure::new(ErrorCode::Busy, text).hint("close_session first."));
                }
                self.close_at_rest(&known);
            }
        }
        let deleted = tokio::task::spawn_blocking(move || {
            let (path, _) = list::file_of(&agent_dir, &id)?;
            list::delete(&path)
        });
        deleted.await.map_err(|error| internal(&error))?
    }

    pub(super) fn forget(&self, known: &Arc<Known>) {
        let mut map = self.map();
        // Another one of that id may have been opened since.
        if map.get(&**known.id()).is_some_and(|other| Arc::ptr_eq(other, known)) {
            map.remove(&**known.id());
            drop(map);
            self.board.closed(known.id());
        }
    }

    /// Ends all sessions, side by side.
    pub async fn close_sessions(&self) {
        let sessions = self.known();
        join_all(sessions.iter().map(|session| self.close(session, EndMode::Abort))).await;
    }

    /// Ends all sessions, and waits for everything that works for them. None can be opened afterwards.
    pub async fn close_all(&self) {
        self.close_sessions().await;
        self.services.tasks.close();
        self.services.tasks.wait().await;
    }

    /// Waits until no session has anything to do.
    pub async fn idle(&self) {
        let sessions = self.all();
        join_all(sessions.iter().map(SessionHandle::idle)).await;
    }

    /// The session that a target names outright: by its id, or by the path of a file that need not be there yet.
    fn named(&self, target: &Target) -> Option<Arc<Known>> {
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
    fn at(&self, file: &Path) -> Option<Arc<Known>> {
        let is_it = |known: &&Arc<Known>| known.path.as_deref() == Some(file) && !known.is_over();
        self.map().values().find(is_it).cloned()
    }

    pub(super) fn map(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Known>>> {
        // Inserts and removals leave the map whole even if one panicked.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something has panicked that was to be seen through.
fn internal(error: &JoinError) -> Failure {
    Failure::new(ErrorCode::Internal, error.to_string())
}

fn over() -> Failure {
    Failure::new(ErrorCode::NoSession, "The session has ended.")
        .hint("open_session or attach_session opens it again.")
}
