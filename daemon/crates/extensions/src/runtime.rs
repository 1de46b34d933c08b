//! The hosts of one session's extensions and what they have registered: loading, restarts, what hosts send by themselves.

use std::{
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use agentd_process::Launcher;
use agentd_program_log::ProgramLog;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::{
    sync::{Semaphore, oneshot},
    time::{Instant, sleep},
};
use tokio_util::task::TaskTracker;

use crate::{
    connection::{HostConnection, RequestError, RequestTerms},
    early::{EarlyExtension, EarlyExtensions},
    event::{EventKind, EventSet},
    flags::GivenFlag,
    host::{ExtensionToLoad, HelloFacts, Host, HostEvents, OpenCalls},
    kept::{KeptHosts, Predecessor, Successor},
    load_states::LoadStates,
    message_refs::MessageRefs,
    missing_gates::MissingGates,
    nested::NestedBook,
    process::HostProgram,
    record::{HostFailure, Incoming},
    registrations::{Changed, HandlerRef, Registrations},
    session::{CallResponder, ExtensionFailure, ExtensionSession, SessionCall},
    source::{ExtensionKind, ExtensionSource},
};

/// The events that decide whether something may happen.
const GATES: [EventKind; 2] = [EventKind::ToolCall, EventKind::UserBash];

/// Pauses before a host that has ended is started again.
const RESTART_PAUSES: [Duration; 3] =
    [Duration::from_millis(500), Duration::from_secs(2), Duration::from_secs(8)];

/// The span in which a host may be started again so often.
const RESTART_SPAN: Duration = Duration::from_secs(300);

/// The text of pi for calls of a session that was replaced (its beginning: extensions compare that).
const STALE: &str =
    "This extension ctx is stale after session replacement or reload. Use the ctx of the new session.";

/// What extensions are started with.
pub struct ExtensionsSetup {
    /// The extensions, in load order.
    pub sources: Vec<ExtensionSource>,
    /// The program of the Node host; unused where there is no extension for it.
    pub node: Option<HostProgram>,
    /// The environment of native extensions.
    pub env: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    /// What hosts are told of the session.
    pub facts: HelloFacts,
    /// Why the session begins: `startup`, `new`, `resume`, `fork` or `reload`.
    pub reason: &'static str,
    /// Flags of the command line that are none of agentd's.
    pub flags: Vec<GivenFlag>,
    /// Hosts of the extensions before these.
    pub kept: KeptHosts,
    /// Whether tool calls run while a host with a handler of `tool_call` is down.
    pub runs_when_down: bool,
    /// Starts processes.
    pub launcher: Launcher,
    /// Owns the tasks.
    pub tasks: TaskTracker,
    /// Takes what extensions say.
    pub log: ProgramLog,
}

/// An extension that could not be loaded. The text is pi's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Failed to load extension \"{path}\": {reason}")]
pub struct LoadError {
    /// The extension.
    pub path: String,
    /// What was the matter.
    pub reason: String,
}

/// A file of skills or prompt templates that an extension named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveredResource {
    /// What it is.
    pub kind: DiscoveredKind,
    /// The file or folder, as the extension gave it.
    pub path: String,
    /// The extension.
    pub extension: String,
}

/// A kind of resource that extensions name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscoveredKind {
    /// A skill, or a folder of skills.
    Skill,
    /// A prompt template, or a folder of templates.
    Prompt,
}

/// The hosts of one session's extensions.
pub(crate) struct Runtime {
    pub(crate) setup: ExtensionsSetup,
    /// The number of each extension's host.
    placement: Vec<usize>,
    /// The number of each extension in the host protocol.
    numbers: Vec<usize>,
    /// The extensions that a host was taken over with, until it is told to load the others.
    early: Mutex<Vec<usize>>,
    pub(crate) hosts: Vec<Host>,
    registrations: Arc<Mutex<Registrations>>,
    /// The events that anybody listens to, as [`EventSet::bits`].
    events: AtomicU64,
    seq: AtomicU64,
    pub(crate) session: OnceLock<Weak<dyn ExtensionSession>>,
    /// The mirror `core`, as it was told last.
    pub(crate) core: Mutex<Map<String, Value>>,
    /// When hosts were started again.
    restarts: Mutex<Vec<Instant>>,
    pub(crate) is_closing: AtomicBool,
    /// What decides about calls and is missing, since its host is down.
    missing_gates: MissingGates,
    /// The messages that hosts have.
    pub(crate) messages: MessageRefs,
    /// Calls of tools by tools.
    pub(crate) nested: NestedBook,
    /// Events that were told and are not answered.
    later: Arc<Semaphore>,
    /// What came of loading each extension.
    pub(crate) states: LoadStates,
    /// The extensions that decided about something before and could not be loaded again: why, and about what.
    unloaded_gates: Mutex<Vec<(LoadError, EventSet)>>,
    /// The files that handlers of `resources_discover` named.
    pub(crate) resources: Mutex<Arc<[DiscoveredResource]>>,
    /// The extensions that took the place of these.
    successor: Mutex<Option<Weak<dyn Successor>>>,
    me: Weak<Self>,
}

/// Events that are told without waiting, at most.
const MAX_LATER: usize = 64;

/// The hosts of a session's extensions, and the host of each: one for all of Node, one for each native extension.
fn placed(setup: &ExtensionsSetup) -> Result<(Vec<Host>, Vec<usize>), LoadError> {
    let mut members: Vec<(HostProgram, Vec<usize>)> = Vec::new();
    let (mut placement, mut of_node) = (Vec::new(), None);
    for (extension, source) in setup.sources.iter().enumerate() {
        let host = match &source.kind {
            ExtensionKind::Node => {
                // The process that has loaded some of them already loads them all.
                let running = setup.sources.iter().find_map(|source| match source.kind {
                    ExtensionKind::Node => setup.kept.program_of(&source.entry),
                    ExtensionKind::Native { .. } => None,
                });
                let Some(program) = running.or(setup.node.as_ref()) else {
                    let reason = "Node is needed for it, and was not found".to_owned();
                    return Err(LoadError { path: source.path.clone(), reason });
                };
                *of_node.get_or_insert_with(|| {
                    members.push((program.clone(), Vec::new()));
                    members.len() - 1
                })
            }
            ExtensionKind::Native { command } => {
                members.push((native(setup, source, command), Vec::new()));
                members.len() - 1
            }
        };
        members[host].1.push(extension);
        placement.push(host);
    }
    let hosts = members.into_iter().map(|(program, extensions)| {
        let log = setup.log.source(&name(setup, &extensions));
        Host::new(program, extensions, log)
    });
    Ok((hosts.collect(), placement))
}

/// The number of each extension in the host protocol: that of before, or else one that none has had.
fn numbered(sources: &[ExtensionSource], before: &EarlyExtensions) -> Vec<usize> {
    let mut free = before.free_number()..;
    let number = |source: &ExtensionSource| match before.of(&source.entry) {
        Some(early) => Some(early.number),
        None => free.next(),
    };
    sources.iter().filter_map(number).collect()
}

/// The name of a host in the log: that of its extension, or `node`.
fn name(setup: &ExtensionsSetup, extensions: &[usize]) -> String {
    match extensions.first().map(|extension| &setup.sources[*extension]) {
        Some(ExtensionSource { kind: ExtensionKind::Native { .. }, path, base_dir, .. }) => {
            base_dir.file_name().map_or_else(|| path.clone(), |name| name.display().to_string())
        }
        _ => "node".to_owned(),
    }
}

fn native(setup: &ExtensionsSetup, source: &ExtensionSource, command: &[std::ffi::OsString]) -> HostProgram {
    let mut command = command.to_vec();
    if let Some(program) = command.first_mut()
        && Path::new(&program).components().count() > 1
    {
        *program = source.base_dir.join(&program).into();
    }
    HostProgram {
        command,
        cwd: setup.facts.cwd.clone().into(),
        env: setup.env.clone(),
        own_descriptors: false,
    }
}

impl Runtime {
    /// The hosts of these extensions, not started yet.
    ///
    /// # Errors
    /// [`LoadError`] where there is nothing that could run an extension.
    pub(crate) fn new(mut setup: ExtensionsSetup) -> Result<Arc<Self>, LoadError> {
        let (hosts, placement) = placed(&setup)?;
        let registrations = Arc::new(Mutex::new(Registrations::of(setup.sources.len())));
        let states = LoadStates::of(setup.sources.len());
        let (kept, sources) = (&mut setup.kept, &setup.sources);
        let predecessor = kept.predecessor.take();
        let take = |host: &Host| {
            let entries = host.extensions.iter().map(|extension| sources[*extension].entry.as_path());
            kept.take(&host.program, &entries.collect::<Vec<_>>())
        };
        let kept_links: Vec<_> = hosts.iter().map(take).collect();
        let before = std::mem::take(&mut kept.early);
        let numbers = numbered(sources, &before);
        let me = Arc::new_cyclic(|me| Self {
            setup,
            placement,
            numbers,
            early: Mutex::default(),
            hosts,
            registrations,
            events: AtomicU64::new(0),
            seq: AtomicU64::new(1),
            session: OnceLock::new(),
            core: Mutex::default(),
            restarts: Mutex::default(),
            is_closing: AtomicBool::new(false),
            missing_gates: MissingGates::default(),
            messages: MessageRefs::default(),
            nested: NestedBook::default(),
            later: Arc::new(Semaphore::new(MAX_LATER)),
            states,
            unloaded_gates: Mutex::default(),
            resources: Mutex::new(Arc::new([])),
            successor: Mutex::default(),
            me: me.clone(),
        });
        // Held until what was registered before is here: what comes from now on follows it.
        let mut registrations = me.registrations();
        let mut places = vec![None; before.extensions.len()];
        for (number, (host, link)) in me.hosts.iter().zip(kept_links).enumerate() {
            let Some((link, goes_on)) = link else { continue };
            let events: Weak<dyn HostEvents> = me.me.clone();
            host.adopt(number, events, link, goes_on);
            if goes_on {
                me.take_over(host, &before, &mut places);
            }
        }
        registrations.take_over(before.take_registrations(), |extension| places.get(extension).copied()?);
        me.update_events(&registrations);
        drop(registrations);
        if let Some(predecessor) = predecessor.and_then(|predecessor| predecessor.upgrade()) {
            predecessor.followed_by(me.me.clone());
        }
        Ok(me)
    }

    /// Starts a host, unless it runs already, and loads its extensions.
    ///
    /// # Errors
    /// [`LoadError`] of the first that could not be loaded.
    pub(crate) async fn load(&self, host: usize, reason: &str, clear_cache: bool) -> Result<(), LoadError> {
        match self.load_all(host, reason, clear_cache).await.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// The same: all that could not be loaded. Nothing of them is registered.
    pub(crate) async fn load_all(&self, host: usize, reason: &str, clear_cache: bool) -> Vec<LoadError> {
        let slot = &self.hosts[host];
        let failed = |extension: usize, reason: String| {
            self.discard(extension);
            self.states.failed(extension, &reason);
            LoadError { path: self.path(extension).to_owned(), reason }
        };
        let all_failed = |reason: String| {
            slot.extensions.iter().map(|extension| failed(*extension, reason.clone())).collect()
        };
        let mut early = self.take_early(slot);
        if slot.down().is_some() {
            early.clear();
            let events: Weak<dyn HostEvents> = self.me.clone();
            let surroundings = (&self.setup.launcher, &self.setup.tasks);
            if let Err(error) = slot.start(host, surroundings, events, &self.setup.facts).await {
                return all_failed(format!("its host could not be started: {error}"));
            }
        }
        let to_load = || slot.extensions.iter().filter(|extension| !early.contains(extension));
        if !early.is_empty() && to_load().next().is_none() {
            return Vec::new();
        }
        let extensions: Vec<ExtensionToLoad> = to_load()
            .map(|extension| {
                let source = &self.setup.sources[*extension];
                ExtensionToLoad {
                    ext: self.ext(*extension),
                    path: source.path.clone(),
                    entry: source.entry.display().to_string(),
                    base_dir: source.base_dir.display().to_string(),
                    source_info: serde_json::to_value(&source.source_info).unwrap_or_default(),
                }
            })
            .collect();
        let loaded = slot.load(&self.setup.facts, (reason, clear_cache), &extensions).await;
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(error) => return all_failed(self.explain(&error, "load")),
        };
        let mut errors = Vec::new();
        for extension in to_load() {
            match loaded.iter().find(|loaded| loaded.ext == self.ext(*extension)) {
                Some(loaded) if loaded.ok => self.states.loaded(*extension, loaded.ms),
                Some(loaded) => {
                    let reason = loaded.error.clone().unwrap_or_else(|| "it failed".to_owned());
                    errors.push(failed(*extension, reason));
                }
                None => errors.push(failed(*extension, "its host did not load it".to_owned())),
            }
        }
        errors
    }

    /// The values of the flags of the command line. They were checked when the extensions were first loaded; one that nobody has any more has none.
    fn flag_values(&self) -> Map<String, Value> {
        let registrations = self.registrations();
        let values = |flag| registrations.flag_values(std::slice::from_ref(flag)).ok();
        self.setup.flags.iter().filter_map(values).flatten().collect()
    }

    /// Lets the extensions of a host act.
    pub(crate) async fn bind(&self, host: usize) {
        let core = self.core.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let fields = json!({"epoch": self.hosts[host].epoch(), "flags": self.flag_values(), "core": core});
        let terms = RequestTerms { limit: Some(Duration::from_secs(60)), ..RequestTerms::default() };
        if let Err(error) = self.hosts[host].request("bind", &fields, terms).await {
            self.failed("<host>".to_owned(), "bind", self.explain(&error, "bind"));
        }
    }

    /// Starts a host again that has ended by itself, with its extensions, between turns. One whose extensions cannot be loaded is tried again.
    async fn restart(&self, host: usize) {
        let slot = &self.hosts[host];
        while let Some(pause) = self.restart_pause() {
            sleep(pause).await;
            let (reached, between_turns) = oneshot::channel();
            let Some(session) = self.session() else { return };
            session.between_turns(reached);
            drop(session);
            if between_turns.await.is_err() || self.is_closing.load(Ordering::Relaxed) {
                return;
            }
            slot.next_epoch();
            self.missing_gates.are_gone(host, self.gates_of(host));
            slot.extensions.iter().for_each(|extension| self.discard(*extension));
            if let Err(error) = self.load(host, "reload", false).await {
                self.failed(error.path, "load", error.reason);
                slot.shut_down().await;
                continue;
            }
            // What ends from here on is started again.
            slot.is_restarting.store(false, Ordering::Relaxed);
            self.bind(host).await;
            self.missing_gates.are_back(host);
            self.update_events(&self.registrations());
            return self.go_on(host).await;
        }
        slot.is_restarting.store(false, Ordering::Relaxed);
        let error = "The extension host ended again and again, and is not started any more. Reload the session's extensions to try again.";
        self.failed("<host>".to_owned(), "host_exit", error.to_owned());
    }

    /// The pause before the next start of a host; `None` once there were too many.
    fn restart_pause(&self) -> Option<Duration> {
        let mut restarts = self.restarts.lock().unwrap_or_else(PoisonError::into_inner);
        restarts.retain(|at| at.elapsed() < RESTART_SPAN);
        let pause = RESTART_PAUSES.get(restarts.len()).copied();
        restarts.push(Instant::now());
        pause
    }

    /// The extensions of a host that was started again go on.
    async fn go_on(&self, host: usize) {
        if let Some(session) = self.session() {
            session.tools_changed();
            session.models_changed();
        }
        let extensions = &self.hosts[host].extensions;
        let handlers = self.registrations().handlers(EventKind::SessionStart);
        for handler in handlers.into_iter().filter(|handler| extensions.contains(&handler.extension)) {
            let event = json!({"type": "session_start", "reason": "reload"});
            self.notify_handlers(EventKind::SessionStart, &[handler], &event).await;
        }
    }

    /// The events of a host that decide about calls.
    fn gates_of(&self, host: usize) -> EventSet {
        let extensions = &self.hosts[host].extensions;
        let registrations = self.registrations();
        let mut gates = EventSet::default();
        for kind in [EventKind::ToolCall, EventKind::UserBash] {
            if registrations.handlers(kind).iter().any(|handler| extensions.contains(&handler.extension)) {
                gates.insert(kind);
            }
        }
        gates
    }

    fn discard(&self, extension: usize) {
        let mut registrations = self.registrations();
        registrations.discard(extension);
        self.update_events(&registrations);
    }

    /// Takes note of the events that anybody listens to, or would if their host or extension were there.
    fn update_events(&self, registrations: &Registrations) {
        let mut events = registrations.events().with(self.missing_gates.events());
        for (_, gates) in self.unloaded_gates.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            events = events.with(*gates);
        }
        self.events.store(events.bits(), Ordering::Relaxed);
    }

    /// An extension that decided about these could not be loaded again: they must not happen until it is.
    pub(crate) fn miss_gate(&self, error: LoadError, gates: EventSet) {
        self.unloaded_gates.lock().unwrap_or_else(PoisonError::into_inner).push((error, gates));
        self.update_events(&self.registrations());
    }

    /// Why something must not happen, whose gate is down with its host, or could not be loaded again.
    pub(crate) fn missing_gate(&self, kind: EventKind) -> Option<String> {
        if self.setup.runs_when_down {
            return None;
        }
        let unloaded = self.unloaded_gates.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((error, _)) = unloaded.iter().find(|(_, gates)| gates.contains(kind)) {
            return Some(error.to_string());
        }
        self.missing_gates.events().contains(kind).then(|| {
            let name = kind.name();
            format!("An extension that decides about this (\"{name}\") is down: its host is not running")
        })
    }

    pub(crate) fn events_now(&self) -> EventSet {
        EventSet::from_bits(self.events.load(Ordering::Relaxed))
    }

    pub(crate) fn registrations(&self) -> MutexGuard<'_, Registrations> {
        // No method panics halfway.
        self.registrations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn handlers(&self, kind: EventKind) -> Vec<HandlerRef> {
        if !self.events_now().contains(kind) {
            return Vec::new();
        }
        self.registrations().handlers(kind)
    }

    /// The extensions that decide about something, those that are missing included: their paths, and about what.
    pub(crate) fn gates(&self) -> Vec<(String, EventSet)> {
        let unloaded = self.unloaded_gates.lock().unwrap_or_else(PoisonError::into_inner);
        let mut gates: Vec<(String, EventSet)> =
            unloaded.iter().map(|(error, gates)| (error.path.clone(), *gates)).collect();
        drop(unloaded);
        let registrations = self.registrations();
        for kind in GATES {
            for handler in registrations.handlers(kind) {
                let path = self.path(handler.extension);
                let mut decided = EventSet::default();
                decided.insert(kind);
                match gates.iter_mut().find(|(known, _)| known == path) {
                    Some((_, known)) => *known = known.with(decided),
                    None => gates.push((path.to_owned(), decided)),
                }
            }
        }
        gates
    }

    pub(crate) fn host_of(&self, extension: usize) -> &Host {
        &self.hosts[self.placement[extension]]
    }

    pub(crate) fn placement(&self, extension: usize) -> usize {
        self.placement[extension]
    }

    pub(crate) fn path(&self, extension: usize) -> &str {
        &self.setup.sources[extension].path
    }

    /// The epoch of an extension's host.
    pub(crate) fn epoch_of(&self, extension: usize) -> u64 {
        self.host_of(extension).epoch()
    }

    pub(crate) fn later(&self) -> &Arc<Semaphore> {
        &self.later
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.setup.tasks.spawn(task);
    }

    pub(crate) fn runs_when_down(&self) -> bool {
        self.setup.runs_when_down
    }

    fn session(&self) -> Option<Arc<dyn ExtensionSession>> {
        self.session.get().and_then(Weak::upgrade)
    }

    /// A failure in words.
    pub(crate) fn explain(&self, error: &RequestError, what: &str) -> String {
        match error {
            RequestError::Failed(failure) => failure.message.clone(),
            RequestError::Gone(reason) => {
                format!("Extension host exited ({reason}) while running \"{what}\"")
            }
            RequestError::Restarting => {
                format!("\"{what}\" is unavailable: its extension host is restarting")
            }
            RequestError::Late => format!("\"{what}\" did not answer in time"),
        }
    }

    /// Tells the clients of a failure.
    pub(crate) fn failed(&self, extension_path: String, event: &str, error: String) {
        tracing::warn!(extension = extension_path, event, error, "an extension failed");
        if let Some(extension) = self.setup.sources.iter().position(|source| source.path == extension_path) {
            self.states.note(extension, &error);
        }
        self.pass_on(ExtensionFailure { extension_path, event: event.to_owned(), error });
    }

    /// Hands a failure to the session; once it has gone on to another, to that one.
    fn pass_on(&self, failure: ExtensionFailure) {
        if let Some(session) = self.session() {
            return session.failed(failure);
        }
        let successor = self.successor.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(successor) = successor.and_then(|successor| successor.upgrade()) {
            successor.take_failure(failure);
        }
    }

    pub(crate) fn tell(&self, host: &Host, topic: &str, patch: &impl Serialize) {
        #[derive(Serialize)]
        struct Patch<'a, T> {
            seq: u64,
            topic: &'a str,
            patch: &'a T,
        }
        let seq = self.seq.fetch_add(1, Ordering::Relaxed);
        host.note("state", &Patch { seq, topic, patch });
    }

    /// The number of an extension of a host, by the id of the protocol.
    fn extension(&self, host: usize, id: &str) -> Option<usize> {
        let number: usize = id.strip_prefix('e')?.parse().ok()?;
        self.hosts[host].extensions.iter().copied().find(|extension| self.numbers[*extension] == number)
    }

    /// The id of an extension in the host protocol.
    pub(crate) fn ext(&self, extension: usize) -> String {
        format!("e{}", self.numbers[extension])
    }

    /// Notes the extensions of a host that are loaded already, and the place of each.
    fn take_over(&self, host: &Host, before: &EarlyExtensions, places: &mut [Option<usize>]) {
        for extension in &host.extensions {
            let entry = &self.setup.sources[*extension].entry;
            let Some(at) = before.extensions.iter().position(|early| early.entry == *entry) else { continue };
            places[at] = Some(*extension);
            self.states.set(*extension, before.extensions[at].state.clone());
            self.early.lock().unwrap_or_else(PoisonError::into_inner).push(*extension);
        }
    }

    /// The extensions of a host that are loaded already, once.
    fn take_early(&self, host: &Host) -> Vec<usize> {
        let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        early.extract_if(.., |extension| host.extensions.contains(extension)).collect()
    }

    /// The extensions as they are loaded.
    pub(crate) fn as_early(&self) -> EarlyExtensions {
        let extensions = self.setup.sources.iter().zip(&self.numbers).zip(self.states.all());
        let extensions = extensions.map(|((source, number), state)| EarlyExtension {
            entry: source.entry.clone(),
            number: *number,
            state,
        });
        EarlyExtensions { extensions: extensions.collect(), registrations: Arc::clone(&self.registrations) }
    }
}

impl Predecessor for Runtime {
    fn followed_by(&self, successor: Weak<dyn Successor>) {
        *self.successor.lock().unwrap_or_else(PoisonError::into_inner) = Some(successor);
    }
}

impl Successor for Runtime {
    fn take_failure(&self, failure: ExtensionFailure) {
        self.pass_on(failure);
    }
}

impl HostEvents for Runtime {
    fn record(&self, host: usize, connection: &HostConnection, calls: &OpenCalls, record: Incoming) {
        match record {
            Incoming::Registration { epoch, ext, is_taken_back, what }
                if epoch == self.hosts[host].epoch() =>
            {
                let Some(extension) = self.extension(host, &ext) else { return };
                let changed = {
                    let mut registrations = self.registrations();
                    let changed = registrations.apply(extension, *what, is_taken_back);
                    if changed == Changed::Handlers {
                        self.update_events(&registrations);
                    }
                    changed
                };
                match (changed, self.session()) {
                    (Changed::Tools, Some(session)) => session.tools_changed(),
                    (Changed::Models, Some(session)) => session.models_changed(),
                    _ => {}
                }
            }
            Incoming::Call(call) => {
                let Some(call) = connection.serve_within(call) else { return };
                let (within, command) = connection.call_within(call.within);
                let responder = CallResponder {
                    connection: connection.clone(),
                    id: call.id,
                    cancel: calls.open(call.id),
                    within: Some(within),
                    is_answered: false,
                };
                if call.epoch != self.hosts[host].epoch() {
                    return responder.send(&Err(HostFailure::new("stale", STALE)));
                }
                let Some(session) = self.session() else {
                    let text = "Extension runtime not initialized. Action methods cannot be called during extension loading.";
                    return responder.send(&Err(HostFailure::new("invalid", text)));
                };
                if call.method == "read" && call.params["topic"] == "entries" {
                    // Before the session looks: what is appended after its look has to be told.
                    self.hosts[host].has_entries.store(true, Ordering::Relaxed);
                }
                let extension = self.extension(host, &call.ext);
                session.call(SessionCall {
                    method: call.method,
                    params: call.params,
                    extension: extension
                        .map_or_else(|| "<runtime>".to_owned(), |it| self.path(it).to_owned()),
                    is_in_stream: connection.is_stream(call.within),
                    command,
                    responder,
                });
            }
            Incoming::Ui(note) if note.epoch == self.hosts[host].epoch() => {
                if let Some(session) = self.session() {
                    session.show(note.fields);
                }
            }
            Incoming::Error(note) => {
                let extension = self.extension(host, &note.ext);
                let path = extension.map_or("<runtime>", |extension| self.path(extension)).to_owned();
                self.failed(path, &note.event, note.message);
            }
            Incoming::Log { level, text } => {
                let level = level.unwrap_or_else(|| "info".to_owned());
                self.hosts[host].log.message(&level, None, &text.into());
            }
            _ => {}
        }
    }

    fn printed(&self, host: usize, text: &str) {
        self.hosts[host].log.errors(text);
    }

    fn ended(&self, host: usize, reason: &str) {
        let slot = &self.hosts[host];
        slot.set_down(reason);
        let is_left = self.is_closing.load(Ordering::Relaxed) || self.session.get().is_none();
        if is_left || slot.is_restarting.swap(true, Ordering::Relaxed) {
            return;
        }
        self.failed("<host>".to_owned(), "host_exit", format!("Extension host exited ({reason})"));
        if let Some(me) = self.me.upgrade() {
            self.setup.tasks.spawn(async move { me.restart(host).await });
        }
    }
}
