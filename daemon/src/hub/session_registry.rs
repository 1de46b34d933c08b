//! The sessions of the daemon: opened, found again, loaded when a command needs them, closed and deleted. Many by construction;
//! `--stdio` is the case of one.

use std::{
    path::PathBuf,
    sync::{Arc, Weak},
};

use agentd_auth::AuthServices;
use agentd_config::{AgentDir, Environment};
use agentd_memory::MemoryAccount;
use agentd_process::OutputMeter;
use agentd_protocol::{
    daemon::EndMode,
    error::{ErrorCode, Failure},
    resources::Diagnostic,
};
use agentd_session::{
    BranchCopy, ExtensionStart, InitialMode, Interner, Limits, OpenError, Opened, Services, SessionEnd,
    SessionHandle, SessionOptions, SessionWatch, SubagentHosting, Target, locate,
};
use agentd_tools::{ProposedPlan, Successor};
use futures::{
    FutureExt as _,
    future::{BoxFuture, join_all},
};
use tokio::task::JoinError;

use super::{
    JoinIntent, LoadedGuard, ResourceLimits, SessionSlot, WatchBroker,
    evictor::Evictor,
    session_lifecycle::{SessionLifecycle, ended},
    session_list,
};

/// Opens sessions and knows those that are open.
pub struct SessionRegistry {
    lifecycle: Arc<SessionLifecycle>,
    evictor: Arc<Evictor>,
    /// Locked from the lookup of a session until it is registered, so that two clients that open the same file get the same
    /// session; and while a session is deleted, so that nobody opens it meanwhile.
    opening: tokio::sync::Mutex<()>,
    environments: Interner<Environment>,
}

/// The inputs of the function that makes the services of a registry's sessions.
pub struct ServiceInputs {
    /// Names the daemon's life.
    pub epoch: String,
    /// The limits of one session.
    pub limits: Limits,
    /// Hears of changes and of idle sessions.
    pub watch: Arc<dyn SessionWatch>,
}

/// A session that was opened or found.
pub struct AcquiredSession {
    /// The session.
    pub session: Arc<SessionSlot>,
    /// Problems for the user to see; none for a session that was open already.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether it was open already, in memory or unloaded: the options then only identified the session.
    pub was_open: bool,
    /// Keeps a session without a file open until a client follows it.
    pub expected: JoinIntent,
    /// Whether its extensions wait for the client that comes.
    pub waits: bool,
}

impl AcquiredSession {
    fn new(session: Arc<SessionSlot>, diagnostics: Vec<Diagnostic>) -> Self {
        Self { expected: session.announce_join(), session, diagnostics, was_open: false, waits: false }
    }

    fn open_already(session: Arc<SessionSlot>) -> Self {
        Self { was_open: true, ..Self::new(session, Vec::new()) }
    }
}

/// Which session some options mean.
pub enum SessionLookup {
    /// One that is open.
    Open(Arc<SessionSlot>),
    /// One that has a file and is not open.
    File,
    /// One that does not exist yet.
    New,
}

impl SessionRegistry {
    /// An empty registry. `services` makes what its sessions share.
    #[must_use]
    pub fn new(
        limits: Limits,
        resources: ResourceLimits,
        services: impl FnOnce(ServiceInputs) -> Arc<Services>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|registry: &Weak<Self>| {
            let watch = Arc::new(RegistryWatch(registry.clone()));
            let inputs = ServiceInputs { epoch: agentd_store::new_session_id(), limits, watch };
            let services = services(inputs);
            let lifecycle = Arc::new(SessionLifecycle::new(services, Arc::default()));
            Self {
                evictor: Arc::new(Evictor::new(resources, Arc::clone(&lifecycle))),
                lifecycle,
                opening: tokio::sync::Mutex::new(()),
                environments: Interner::default(),
            }
        })
    }

    /// Who opens the sessions of subagents, once that is said.
    #[must_use]
    pub fn subagent_hosting(&self) -> &SubagentHosting {
        &self.lifecycle.services.subagent_hosting
    }

    /// Names this life of the daemon.
    #[must_use]
    pub fn epoch(&self) -> &str {
        &self.lifecycle.services.epoch
    }

    /// The services that find and renew credentials, for all sessions.
    #[must_use]
    pub fn auth_services(&self) -> AuthServices {
        self.lifecycle.services.auth_services.clone()
    }

    /// The account that everything incoming is charged to.
    #[must_use]
    pub fn memory(&self) -> &MemoryAccount {
        &self.lifecycle.services.memory
    }

    /// Tells watchers what happens to sessions.
    #[must_use]
    pub fn watch_broker(&self) -> &WatchBroker {
        &self.lifecycle.watch_broker
    }

    /// The limits of the daemon as a whole.
    #[must_use]
    pub fn limits(&self) -> &ResourceLimits {
        &self.evictor.limits
    }

    /// Counts what is written to long outputs.
    #[must_use]
    pub fn outputs(&self) -> OutputMeter {
        self.lifecycle.services.outputs.clone()
    }

    /// The number of running commands of sessions, and its limit.
    #[must_use]
    pub fn commands(&self) -> (usize, usize) {
        self.lifecycle.services.launcher.commands()
    }

    /// The number of loads since the start, those of sessions that were unloaded before included.
    #[must_use]
    pub fn loaded(&self) -> u64 {
        self.lifecycle.loaded()
    }

    /// The number of unloads since the start.
    #[must_use]
    pub fn unloaded(&self) -> u64 {
        self.lifecycle.unloaded()
    }

    /// The environment, or an equal one that is in memory already.
    #[must_use]
    pub fn share_environment(&self, environment: Environment) -> Environment {
        self.environments.intern(environment)
    }

    /// The open session with an id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<Arc<SessionSlot>> {
        self.lifecycle.sessions.get(id)
    }

    /// All known sessions.
    #[must_use]
    pub fn known(&self) -> Vec<Arc<SessionSlot>> {
        self.lifecycle.sessions.all()
    }

    /// Whether a session was evicted to make room for others. Any command brings it back.
    #[must_use]
    pub fn was_evicted(&self, id: &str) -> bool {
        self.evictor.was_evicted(id)
    }

    /// The file of an evicted session, where it cannot be found by the session's id.
    #[must_use]
    pub fn evicted_file(&self, id: &str) -> Option<PathBuf> {
        self.evictor.evicted_file(id)
    }

    /// Makes room for something new where memory or files are short: idle sessions other than `except` are unloaded. Costs
    /// microseconds while nothing is short.
    ///
    /// # Errors
    /// `limit_reached` when that is not enough.
    pub async fn evict_for_memory(&self, except: Option<&str>) -> Result<(), Failure> {
        self.evictor.evict_for_memory(except).await
    }

    /// Opens a session and registers it. A session that is open already is given as it is.
    ///
    /// # Errors
    /// Why opening failed: a file that is no session, one that another process writes, an unknown model.
    ///
    /// Cancel safety: dropped early, it goes on by itself. Otherwise the file would stay locked by a session that the registry
    /// does not know.
    pub async fn open(self: &Arc<Self>, options: SessionOptions) -> Result<AcquiredSession, OpenError> {
        self.open_with(options, ExtensionStart::AtOnce).await
    }

    /// The same for a client that comes from another session, for which extensions can wait.
    ///
    /// # Errors
    /// As of [`Self::open`].
    pub async fn open_with(
        self: &Arc<Self>,
        options: SessionOptions,
        extensions: ExtensionStart,
    ) -> Result<AcquiredSession, OpenError> {
        let me = Arc::clone(self);
        self.lifecycle.run_detached(async move { me.open_now(options, extensions).await }).await?
    }

    /// Opens a session with the options of `from`, its child, which begins with carrying out a plan.
    async fn carry_out(
        self: &Arc<Self>,
        from: &SessionSlot,
        plan: ProposedPlan,
    ) -> Result<Successor, Failure> {
        let parent = from.file().map(|file| file.display().to_string());
        let target = match parent {
            _ if from.is_ephemeral() => Target::Ephemeral(None),
            Some(parent) => Target::Child(parent),
            None => Target::New,
        };
        let options = SessionOptions {
            target,
            name: Some(format!("Plan {}", plan.title)),
            initial_mode: InitialMode::Default,
            subagent: None,
            ..from.options().clone()
        };
        let opened = self.open_with(options, ExtensionStart::AtOnce).await?;
        self.ensure_loaded(&opened.session).await?.handle.carry_out(plan).await?;
        let file = opened.session.file().map(|file| file.display().to_string());
        Ok(Successor { id: opened.session.id().to_string(), file })
    }

    async fn open_now(
        &self,
        mut options: SessionOptions,
        extensions: ExtensionStart,
    ) -> Result<AcquiredSession, OpenError> {
        let _opening = match &options.target {
            Target::New | Target::Child(_) | Target::Fork { id: None, .. } | Target::Ephemeral(None) => None,
            Target::Fork { id: Some(_), .. }
            | Target::Continue
            | Target::Existing(_)
            | Target::File { .. }
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
            let sessions = &self.lifecycle.sessions;
            if let Some(session) = sessions.named(&options.target) {
                sessions.note_use(&session);
                return Ok(AcquiredSession::open_already(session));
            }
            let wanted = options.clone();
            let located = tokio::task::spawn_blocking(move || locate(&wanted)).await??;
            if let Some((file, id)) = located {
                if let Some(session) = self.get(&id).or_else(|| sessions.by_file(&file)) {
                    sessions.note_use(&session);
                    return Ok(AcquiredSession::open_already(session));
                }
                self.lifecycle.wait_for_end(&id).await;
                path = Some(file);
            } else if let Target::Id(id) | Target::Ephemeral(Some(id)) = &options.target {
                self.lifecycle.wait_for_end(id).await;
            }
        }
        self.admit().await?;
        options.environment = self.environments.intern(options.environment);
        let services = Arc::clone(&self.lifecycle.services);
        let last_seq = |id: &str| self.lifecycle.sessions.last_seq(id);
        let opened = agentd_session::open_after(services, options.clone(), extensions, last_seq).await?;
        Ok(self.register(opened, options, path))
    }

    /// Makes a session of a copied branch and registers it.
    ///
    /// # Errors
    /// Why that failed; nothing is left of the copy then.
    ///
    /// Cancel safety: as of [`Self::open`].
    pub async fn adopt(
        self: &Arc<Self>,
        options: SessionOptions,
        copied: BranchCopy,
        extensions: ExtensionStart,
    ) -> Result<AcquiredSession, OpenError> {
        let me = Arc::clone(self);
        self.lifecycle.run_detached(async move { me.adopt_now(options, (copied, extensions)).await }).await?
    }

    async fn adopt_now(
        &self,
        mut options: SessionOptions,
        copied: (BranchCopy, ExtensionStart),
    ) -> Result<AcquiredSession, OpenError> {
        self.admit().await?;
        options.environment = self.environments.intern(options.environment);
        let services = Arc::clone(&self.lifecycle.services);
        let last_seq = |id: &str| self.lifecycle.sessions.last_seq(id);
        let opened = agentd_session::open_copy(services, options.clone(), copied, last_seq).await?;
        Ok(self.register(opened, options, None))
    }

    /// Makes room for another session, in the registry and in memory.
    async fn admit(&self) -> Result<(), OpenError> {
        self.check_not_closing().map_err(OpenError::Limit)?;
        self.evictor.evict_for_count().await.map_err(OpenError::Limit)?;
        self.evictor.evict_for_memory(None).await.map_err(OpenError::Limit)
    }

    fn register(&self, opened: Opened, options: SessionOptions, path: Option<PathBuf>) -> AcquiredSession {
        self.lifecycle.note_loaded();
        let slot = SessionSlot::new(opened.handle, options, path, Arc::clone(&self.lifecycle.watch_broker));
        let acquired = AcquiredSession {
            waits: opened.waits,
            ..AcquiredSession::new(Arc::new(slot), opened.diagnostics)
        };
        let session = &acquired.session;
        self.evictor.note_known(session.id());
        self.lifecycle.sessions.insert(session);
        self.lifecycle.watch_broker.opened(session.id());
        self.evictor.evict_for_memory_soon();
        acquired
    }

    /// The session that opening with these options would give. Opens nothing; the answer may be another one by the time that the
    /// session is opened.
    ///
    /// # Errors
    /// As of [`Self::open`], as far as a lookup gets.
    pub async fn look_up(&self, options: &SessionOptions) -> Result<SessionLookup, OpenError> {
        let sessions = &self.lifecycle.sessions;
        if let Some(session) = sessions.named(&options.target) {
            return Ok(SessionLookup::Open(session));
        }
        let wanted = options.clone();
        let Some((file, id)) = tokio::task::spawn_blocking(move || locate(&wanted)).await?? else {
            return Ok(SessionLookup::New);
        };
        let open = self.get(&id).or_else(|| sessions.by_file(&file));
        Ok(open.map_or(SessionLookup::File, SessionLookup::Open))
    }

    /// Loads a session unless it is in memory, and keeps it there while the guard is held.
    ///
    /// # Errors
    /// When the session has ended, and when its file cannot be opened any more.
    pub async fn ensure_loaded(self: &Arc<Self>, slot: &Arc<SessionSlot>) -> Result<LoadedGuard, Failure> {
        self.lifecycle.sessions.note_use(slot);
        loop {
            let gate = Arc::clone(&slot.gate).read_owned().await;
            match slot.loaded() {
                _ if slot.has_ended() => return Err(ended()),
                Some(handle) => return Ok(LoadedGuard { _gate: gate, handle }),
                None => drop(gate),
            }
            let (me, loading) = (Arc::clone(self), Arc::clone(slot));
            let loaded = self.lifecycle.run_detached(async move { me.load(&loading).await }).await;
            if let Some(guard) = loaded.map_err(|error| internal(&error))?? {
                return Ok(guard);
            }
        }
    }

    async fn load(&self, slot: &Arc<SessionSlot>) -> Result<Option<LoadedGuard>, Failure> {
        self.check_not_closing()?;
        self.evictor.evict_for_memory(Some(&**slot.id())).await?;
        let loaded = self.lifecycle.load(slot).await?;
        if loaded.is_some() {
            self.evictor.evict_for_memory_soon();
            self.lifecycle.watch_broker.changed(slot.id());
        }
        Ok(loaded)
    }

    /// Waits until no session has anything to do.
    pub async fn idle(&self) {
        let sessions: Vec<SessionHandle> = self.known().iter().filter_map(|slot| slot.loaded()).collect();
        join_all(sessions.iter().map(SessionHandle::idle)).await;
    }

    /// Closes a session; nothing of it is left running.
    ///
    /// Cancel safety: dropped early, it goes on by itself.
    pub async fn close(&self, slot: &Arc<SessionSlot>, mode: EndMode) {
        self.lifecycle.close(slot, mode).await;
    }

    /// Closes a session that at most one client follows and that no other is about to follow. Returns whether it did.
    ///
    /// Cancel safety: dropped early, it goes on by itself.
    pub async fn close_if_unshared(&self, slot: &Arc<SessionSlot>, end: Option<SessionEnd>) -> bool {
        self.lifecycle.close_if_unshared(slot, end).await
    }

    /// Closes all sessions, side by side.
    pub async fn close_sessions(&self) {
        let sessions = self.known();
        join_all(sessions.iter().map(|session| self.close(session, EndMode::Abort))).await;
    }

    /// Closes all sessions, and waits for everything that works for them. None can be opened afterwards.
    pub async fn close_all(&self) {
        let tasks = &self.lifecycle.services.tasks;
        tasks.close();
        self.close_sessions().await;
        self.lifecycle.services.language_servers.close();
        tasks.wait().await;
        // The last words of a server or an extension say why it ended.
        self.lifecycle.services.program_logs.flushed().await;
    }

    /// # Errors
    /// `shutting_down` once all sessions are being closed: nothing would close one that comes later.
    fn check_not_closing(&self) -> Result<(), Failure> {
        if self.lifecycle.services.tasks.is_closed() {
            return Err(Failure::new(ErrorCode::ShuttingDown, "The daemon is ending and opens no session."));
        }
        Ok(())
    }

    /// Deletes a session's file and long outputs. Nobody opens it meanwhile; an unloaded one is closed.
    ///
    /// # Errors
    /// When the session is in memory, when another process writes to it, when it has no file or the file cannot be deleted.
    ///
    /// Cancel safety: dropped early, it goes on by itself.
    pub async fn delete(self: &Arc<Self>, id: &str, agent_dir: AgentDir) -> Result<(), Failure> {
        let (me, id) = (Arc::clone(self), id.to_owned());
        let deleted = self.lifecycle.run_detached(async move { me.delete_now(id, agent_dir).await }).await;
        deleted.map_err(|error| internal(&error))?
    }

    async fn delete_now(&self, id: String, agent_dir: AgentDir) -> Result<(), Failure> {
        let _opening = self.opening.lock().await;
        // An ending session holds its file until it has ended.
        if let Some(slot) = self.lifecycle.sessions.get_even_ended(&id) {
            if slot.has_ended() {
                self.lifecycle.close_now(&slot, EndMode::Abort).await;
            } else {
                // A command that holds the gate has loaded the session first.
                let _gate = slot.gate.write().await;
                if !slot.is_unloaded() {
                    let text = format!("The session \"{id}\" is in memory.");
                    return Err(Failure::new(ErrorCode::Busy, text).hint("close_session first."));
                }
                self.lifecycle.close_unloaded(&slot);
            }
        }
        let deleted = tokio::task::spawn_blocking(move || {
            let (path, _) = session_list::file_of(&agent_dir, &id)?;
            session_list::delete(&path)
        });
        deleted.await.map_err(|error| internal(&error))?
    }
}

/// Hears from the sessions' actors. Weak, since the sessions are part of the registry.
struct RegistryWatch(Weak<SessionRegistry>);

impl SessionWatch for RegistryWatch {
    fn changed(&self, id: &str) {
        let Some(registry) = self.0.upgrade() else { return };
        if let Some(slot) = registry.get(id) {
            registry.lifecycle.watch_broker.changed(slot.id());
        }
        // Work has begun or ended: the daemon may have grown.
        registry.evictor.evict_for_memory_soon();
    }

    fn idle(&self, id: &str) {
        let Some(registry) = self.0.upgrade() else { return };
        if let Some(slot) = registry.get(id) {
            registry.lifecycle.unload_soon(slot);
        }
    }

    fn quits(&self, id: &str) {
        let Some(registry) = self.0.upgrade() else { return };
        if let Some(slot) = registry.get(id) {
            let lifecycle = Arc::clone(&registry.lifecycle);
            registry.lifecycle.services.tasks.spawn(async move {
                lifecycle.close(&slot, EndMode::Abort).await;
            });
        }
    }

    fn carry_out(&self, id: &str, plan: ProposedPlan) -> BoxFuture<'static, Result<Successor, Failure>> {
        let (registry, id) = (self.0.upgrade(), id.to_owned());
        async move {
            let gone = || Failure::new(ErrorCode::NoSession, "The session is not open any more.");
            let registry = registry.ok_or_else(gone)?;
            let from = registry.get(&id).ok_or_else(gone)?;
            registry.carry_out(&from, plan).await
        }
        .boxed()
    }
}

/// A detached task has panicked.
fn internal(error: &JoinError) -> Failure {
    Failure::new(ErrorCode::Internal, error.to_string())
}
