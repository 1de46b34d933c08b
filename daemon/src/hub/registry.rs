//! Which sessions are live. Many by construction; `--stdio` is the case of one.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use agentd_auth::CommandCache;
use agentd_protocol::daemon::EndMode;
use agentd_session::{OpenError, Services, SessionHandle, SessionOptions, Target, locate};
use futures::future::join_all;

/// Opens sessions and knows those that are open.
pub struct Registry {
    services: Arc<Services>,
    epoch: Arc<str>,
    live: Mutex<HashMap<Arc<str>, Live>>,
    /// Held while it is found out whether a session is live, and until it is: two clients that open the same file at the
    /// same time get the same session.
    opening: tokio::sync::Mutex<()>,
    loaded: AtomicU64,
    started: Instant,
    traffic: Arc<Traffic>,
}

/// Counts connections.
#[derive(Debug, Default)]
pub struct Traffic {
    clients: AtomicU32,
    connections: AtomicU64,
}

/// Counts a connection for as long as it is there.
#[derive(Debug)]
pub struct ConnectionCount(Arc<Traffic>);

impl Traffic {
    /// Connections that there are.
    #[must_use]
    pub fn clients(&self) -> u32 {
        self.clients.load(Ordering::Relaxed)
    }

    /// Connections that there were.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    fn enter(self: &Arc<Self>) -> ConnectionCount {
        self.clients.fetch_add(1, Ordering::Relaxed);
        self.connections.fetch_add(1, Ordering::Relaxed);
        ConnectionCount(Arc::clone(self))
    }
}

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A live session, as the daemon knows it. Cheap to clone.
#[derive(Clone)]
pub struct Live {
    /// The way in.
    pub handle: SessionHandle,
    /// What it was opened with.
    pub options: Arc<SessionOptions>,
    /// Its file, as far as it was there when it was opened.
    pub path: Option<PathBuf>,
    /// When it was loaded, in Unix milliseconds.
    pub opened_ms: i64,
    clients: Arc<AtomicU32>,
}

/// A session that was asked for.
pub struct Joined {
    /// The session.
    pub live: Live,
    /// Whether it was live before.
    pub was_live: bool,
    /// What to tell the user: a sentence each.
    pub warnings: Vec<String>,
}

fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Counts a client of a session for as long as it is there.
pub struct ClientCount(Arc<AtomicU32>);

impl Live {
    /// Counts another client.
    #[must_use]
    pub fn client(&self) -> ClientCount {
        self.clients.fetch_add(1, Ordering::Relaxed);
        ClientCount(Arc::clone(&self.clients))
    }

    /// How many clients follow it.
    #[must_use]
    pub fn clients(&self) -> u32 {
        self.clients.load(Ordering::Relaxed)
    }
}

impl Drop for ClientCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Registry {
    /// An empty registry; sessions get what they share from `services`.
    #[must_use]
    pub fn new(services: Arc<Services>) -> Self {
        let epoch = agentd_store::new_session_id();
        Self {
            services,
            epoch: epoch.into(),
            live: Mutex::new(HashMap::new()),
            opening: tokio::sync::Mutex::new(()),
            loaded: AtomicU64::new(0),
            started: Instant::now(),
            traffic: Arc::default(),
        }
    }

    /// Names this life of the daemon.
    #[must_use]
    pub fn epoch(&self) -> &str {
        &self.epoch
    }

    /// The outputs of commands that print keys, which all sessions share.
    #[must_use]
    pub fn key_commands(&self) -> CommandCache {
        self.services.key_commands.clone()
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

    /// Counts a connection.
    #[must_use]
    pub fn enter(&self) -> ConnectionCount {
        self.traffic.enter()
    }

    /// How many sessions were loaded since the start.
    #[must_use]
    pub fn loaded(&self) -> u64 {
        self.loaded.load(Ordering::Relaxed)
    }

    /// Opens a session and keeps it; one that is live already is given as it is.
    ///
    /// # Errors
    /// What made opening fail: a file that is no session, one that another process writes, an unknown model.
    pub async fn open(&self, options: SessionOptions) -> Result<Joined, OpenError> {
        let _opening = match &options.target {
            Target::New | Target::Child(_) | Target::Fork(_) | Target::Ephemeral(None) => None,
            Target::Continue | Target::Existing(_) | Target::Id(_) | Target::Ephemeral(Some(_)) => {
                Some(self.opening.lock().await)
            }
        };
        let mut path = None;
        if _opening.is_some() {
            if let Some(live) = self.named(&options.target) {
                return Ok(Joined { live, was_live: true, warnings: Vec::new() });
            }
            let asked = options.clone();
            let located = tokio::task::spawn_blocking(move || locate(&asked)).await??;
            if let Some((file, id)) = located {
                if let Some(live) = self.get(&id).or_else(|| self.at(&file)) {
                    return Ok(Joined { live, was_live: true, warnings: Vec::new() });
                }
                path = Some(file);
            }
        }
        let opened = agentd_session::open(Arc::clone(&self.services), options.clone()).await?;
        self.loaded.fetch_add(1, Ordering::Relaxed);
        let live = Live {
            handle: opened.handle,
            options: Arc::new(options),
            path,
            opened_ms: now_ms(),
            clients: Arc::new(AtomicU32::new(0)),
        };
        self.live().insert(live.handle.id().into(), live.clone());
        Ok(Joined { live, was_live: false, warnings: opened.warnings })
    }

    /// A live session by its id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<Live> {
        self.live().get(id).cloned()
    }

    /// All live sessions.
    #[must_use]
    pub fn all(&self) -> Vec<Live> {
        self.live().values().cloned().collect()
    }

    /// Ends a session; nothing of it is left running.
    pub async fn close(&self, session: &SessionHandle, mode: EndMode) {
        if mode == EndMode::Drain {
            session.idle().await;
        }
        session.close().await;
        let mut live = self.live();
        // Another one of that id may have been opened since.
        if live.get(session.id()).is_some_and(|known| std::ptr::eq(known.handle.id(), session.id())) {
            live.remove(session.id());
        }
    }

    /// Ends all sessions, side by side.
    pub async fn close_sessions(&self) {
        let sessions: Vec<Live> = self.live().drain().map(|(_, session)| session).collect();
        join_all(sessions.iter().map(|session| session.handle.close())).await;
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
        join_all(sessions.iter().map(|session| session.handle.idle())).await;
    }

    /// The live session that a target names outright.
    fn named(&self, target: &Target) -> Option<Live> {
        match target {
            Target::Existing(id) | Target::Id(id) | Target::Ephemeral(Some(id)) => self.get(id),
            _ => None,
        }
    }

    /// The live session of a file.
    fn at(&self, file: &Path) -> Option<Live> {
        self.live().values().find(|live| live.path.as_deref() == Some(file)).cloned()
    }

    fn live(&self) -> MutexGuard<'_, HashMap<Arc<str>, Live>> {
        // Inserts and removals leave the map whole even if one panicked.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
