//! The hosts of one session's extensions and what they have registered.

mod gates;
mod host_events;
mod loading;
mod restarts;

use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use serde::Serialize;
use serde_json::{Map, Value};
use tokio::{sync::Semaphore, time::Instant};

use crate::{
    connection::RequestError,
    event::{EventKind, EventSet},
    host::{Host, HostEvents},
    kept::{Predecessor, Successor},
    load_states::LoadStates,
    message_refs::MessageRefs,
    missing_gates::MissingGates,
    nested::NestedBook,
    placing::{numbered, placed},
    registrations::{HandlerRef, Registrations},
    session::{ExtensionFailure, ExtensionSession},
    setup::{DiscoveredResource, ExtensionsSetup, LoadError},
};

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
            kept.take(host.program()?, &entries.collect::<Vec<_>>())
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
