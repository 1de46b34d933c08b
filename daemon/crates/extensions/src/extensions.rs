//! The extensions of one session, as the session uses them.

use std::{
    sync::{Arc, PoisonError, Weak, atomic::Ordering},
    time::Duration,
};

use agentd_agent::Tool;
use agentd_protocol::resources::SourceInfo;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use crate::{
    connection::RequestTerms,
    event::EventKind,
    flags::FlagError,
    host::Host,
    kept::{KeptHosts, Predecessor},
    runtime::Runtime,
    session::{ExtensionCommand, ExtensionSession},
    setup::{DiscoveredKind, DiscoveredResource, ExtensionsSetup, LoadError},
    tool::ExtensionTool,
};

/// Time for the handlers of `session_shutdown`.
const SHUTDOWN_HANDLERS: Duration = Duration::from_secs(10);

/// Why the extensions of a session cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// One cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A flag of the command line is none of theirs.
    #[error(transparent)]
    Flag(#[from] FlagError),
}

/// The extensions of one session. Cheap to clone.
#[derive(Clone)]
pub struct SessionExtensions(pub(crate) Arc<Runtime>);

impl SessionExtensions {
    /// Starts the hosts and loads the extensions, one after the other.
    ///
    /// # Errors
    /// [`LoadError`] of the first that could not be loaded; nothing runs then.
    ///
    /// Cancel safety: dropped early, the hosts end.
    pub async fn start(setup: ExtensionsSetup) -> Result<Self, LoadError> {
        let extensions = Self(Runtime::new(setup)?);
        let errors = extensions.load_all(false).await;
        match errors.into_iter().next() {
            Some(error) => {
                extensions.end_hosts().await;
                Err(error)
            }
            None => Ok(extensions),
        }
    }

    /// The same, where extensions ran before: those that cannot be loaded are told of and left out. One of them that decided about tool calls
    /// blocks them until it can.
    ///
    /// # Errors
    /// [`LoadError`] where there is nothing that could run an extension.
    ///
    /// Cancel safety: dropped early, the hosts end.
    pub async fn start_again(setup: ExtensionsSetup) -> Result<(Self, Vec<LoadError>), LoadError> {
        let extensions = Self(Runtime::new(setup)?);
        let errors = extensions.load_all(true).await;
        let gates = &extensions.0.setup.kept.gates;
        for error in &errors {
            if let Some((_, decided)) = gates.iter().find(|(path, _)| *path == error.path) {
                extensions.0.miss_gate(error.clone(), *decided);
            }
        }
        Ok((extensions, errors))
    }

    async fn load_all(&self, is_lenient: bool) -> Vec<LoadError> {
        let (runtime, mut errors) = (&self.0, Vec::new());
        let setup = &runtime.setup;
        for host in 0..runtime.hosts.len() {
            errors.extend(runtime.load_all(host, setup.reason, setup.reason == "reload").await);
            if !errors.is_empty() && !is_lenient {
                return errors;
            }
        }
        let conflict = runtime.registrations().conflict();
        if let Some((later, earlier, what)) = conflict {
            let path = runtime.path(later).to_owned();
            let reason = format!("{what} conflicts with {}", runtime.path(earlier));
            errors.push(LoadError { path, reason });
        }
        errors
    }

    /// Whether the flags of the command line are those of the extensions.
    ///
    /// # Errors
    /// The first that cannot be used.
    pub fn check_flags(&self) -> Result<(), FlagError> {
        self.0.registrations().flag_values(&self.0.setup.flags).map(drop)
    }

    /// Leads the calls of extensions to their session, and lets them act: `core` is the first mirror. The session may have gone by the time
    /// of a call.
    pub async fn bind(&self, session: Weak<dyn ExtensionSession>, core: Map<String, Value>) {
        let _ = self.0.session.set(session);
        *self.0.core.lock().unwrap_or_else(PoisonError::into_inner) = core;
        for host in 0..self.0.hosts.len() {
            self.0.bind(host).await;
        }
    }

    /// Whether anybody listens to an event. Costs a load of a number.
    #[must_use]
    pub fn listens(&self, kind: EventKind) -> bool {
        self.0.events_now().contains(kind)
    }

    /// Where the extension comes from that has a tool.
    #[must_use]
    pub fn source_of_tool(&self, name: &str) -> Option<SourceInfo> {
        let tools = self.0.registrations().tools();
        let (extension, _) = tools.into_iter().find(|(_, tool)| tool.definition.name == name)?;
        Some(self.0.setup.sources[extension].source_info.clone())
    }

    /// The tools of the extensions that are not active before somebody chooses them.
    #[must_use]
    pub fn inactive_tools(&self) -> Vec<String> {
        let tools = self.0.registrations().tools().into_iter();
        let inactive = tools.filter(|(_, tool)| tool.definition.default_active == Some(false));
        inactive.map(|(_, tool)| tool.definition.name).collect()
    }

    /// The tools of the extensions.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let tools = self.0.registrations().tools().into_iter();
        tools
            .filter(|(_, tool)| tool.definition.exposure.as_deref() != Some("hidden"))
            .map(|(extension, tool)| {
                let inner = Arc::downgrade(&self.0);
                Arc::new(ExtensionTool::new(inner, extension, tool)) as Arc<dyn Tool>
            })
            .collect()
    }

    /// The commands of the extensions, in the order in which clients see them.
    #[must_use]
    pub fn commands(&self) -> Vec<ExtensionCommand> {
        let commands = self.0.registrations().commands().into_iter();
        commands
            .map(|named| ExtensionCommand {
                name: named.called,
                description: named.command.description,
                source_info: self.0.setup.sources[named.extension].source_info.clone(),
            })
            .collect()
    }

    /// Whether a command of that name is there.
    #[must_use]
    pub fn has_command(&self, name: &str) -> bool {
        self.0.registrations().commands().iter().any(|command| command.called == name)
    }

    /// Runs a command to its end; the calls that are made within it have its `number`. A command that fails is told as an `extension_error`.
    ///
    /// Cancel safety: dropped early, the command is asked to stop.
    pub async fn run_command(&self, name: &str, args: &str, number: u64) {
        let found = self.0.registrations().commands().into_iter().find(|command| command.called == name);
        let Some(found) = found else { return };
        let fields = json!({
            "epoch": self.0.epoch_of(found.extension), "ext": self.0.ext(found.extension), "name": found.command.name,
            "args": args, "source": "rpc",
        });
        let host = self.0.host_of(found.extension);
        let terms = RequestTerms { command: Some(number), ..RequestTerms::default() };
        if let Err(error) = host.request("command.run", &fields, terms).await {
            self.0.failed(format!("command:{name}"), "command", self.0.explain(&error, name));
        }
    }

    /// Completions of a command's argument: `{value, label, description?}` each.
    ///
    /// Cancel safety: dropped early, nothing happens.
    pub async fn complete(&self, name: &str, prefix: &str) -> Vec<Value> {
        let found = self.0.registrations().commands().into_iter().find(|command| command.called == name);
        let Some(found) = found.filter(|found| found.command.completes) else { return Vec::new() };
        let fields = json!({
            "epoch": self.0.epoch_of(found.extension), "ext": self.0.ext(found.extension), "name": found.command.name,
            "prefix": prefix,
        });
        let terms = RequestTerms { limit: Some(Duration::from_secs(5)), ..RequestTerms::default() };
        let answer = self.0.host_of(found.extension).request("command.complete", &fields, terms).await;
        let list =
            answer.ok().and_then(|answer| serde_json::from_str::<Option<Vec<Value>>>(answer.get()).ok());
        list.flatten().unwrap_or_default()
    }

    /// Tells the hosts what is different in the mirror `core`. Told before a hook, it is known to the hook.
    pub fn tell_core(&self, fields: impl IntoIterator<Item = (&'static str, Value)>) {
        let mut core = self.0.core.lock().unwrap_or_else(PoisonError::into_inner);
        let mut patch = Map::new();
        for (name, value) in fields {
            if core.get(name) != Some(&value) {
                core.insert(name.to_owned(), value.clone());
                patch.insert(name.to_owned(), value);
            }
        }
        if !patch.is_empty() {
            self.0.hosts.iter().for_each(|host| self.0.tell(host, "core", &patch));
        }
    }

    /// Whether a host has the entries of the session, so that it must be told of new ones.
    #[must_use]
    pub fn has_entries(&self) -> bool {
        self.0.hosts.iter().any(|host| host.has_entries.load(Ordering::Relaxed))
    }

    /// Tells the hosts that have the entries what is new in them.
    pub fn tell_entries(&self, patch: &impl Serialize) {
        let hosts = self.0.hosts.iter().filter(|host| host.has_entries.load(Ordering::Relaxed));
        hosts.for_each(|host| self.0.tell(host, "entries", patch));
    }

    /// Runs the handlers of `session_shutdown` and ends the hosts. Nothing of them is left.
    pub async fn shut_down(&self, reason: &str) {
        if self.tell_shutdown(reason, None).await {
            self.end_hosts().await;
        }
    }

    /// Runs the handlers of `session_shutdown`, and gives the hosts away for the extensions that come next. What these were is over:
    /// their calls are answered with the code `stale`.
    pub async fn hand_over(&self, reason: &str, target: Option<&str>) -> KeptHosts {
        let gates = self.0.gates();
        let me: Weak<dyn Predecessor> = Arc::<Runtime>::downgrade(&self.0);
        let mut kept = KeptHosts::after(me, self.0.setup.flags.clone(), gates);
        if self.tell_shutdown(reason, target).await {
            for host in &self.0.hosts {
                let Some(link) = host.release(reason).await else { continue };
                match host.program() {
                    Some(program) => kept.push(program.clone(), link, Vec::new()),
                    // A channel serves one session.
                    None => link.end(),
                }
            }
        }
        kept
    }

    /// The hosts, with the extensions as they are loaded: those of the same session that are started next take them over, and load only what
    /// is new. To be used before [`Self::bind`].
    #[must_use]
    pub fn into_kept(self) -> KeptHosts {
        let (runtime, mut kept) = (&self.0, KeptHosts::default());
        let entry = |extension: &usize| runtime.setup.sources[*extension].entry.clone();
        for host in &runtime.hosts {
            if let (Some(link), Some(program)) = (host.give(), host.program()) {
                kept.push(program.clone(), link, host.extensions.iter().map(entry).collect());
            }
        }
        kept.early = runtime.as_early();
        kept
    }

    /// Runs the handlers of `session_shutdown`; false where that was done before.
    async fn tell_shutdown(&self, reason: &str, target: Option<&str>) -> bool {
        if self.0.is_closing.swap(true, Ordering::Relaxed) {
            return false;
        }
        if self.listens(EventKind::SessionShutdown) {
            let mut event = json!({"type": "session_shutdown", "reason": reason});
            if let Some(target) = target {
                event["targetSessionFile"] = target.into();
            }
            // Late handlers are not waited for.
            let _ = timeout(SHUTDOWN_HANDLERS, self.notify(EventKind::SessionShutdown, &event)).await;
        }
        true
    }

    /// The number of extensions.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.setup.sources.len()
    }

    /// The files that the extensions named when they were asked by [`Self::discover`].
    #[must_use]
    pub fn resources(&self) -> Arc<[DiscoveredResource]> {
        Arc::clone(&self.0.resources.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks the handlers of `resources_discover` for files of skills and prompt templates. `reason` is `startup` or `reload`.
    pub async fn discover(&self, cwd: &str, reason: &str) {
        let event = json!({"type": "resources_discover", "cwd": cwd, "reason": reason});
        let mut found = Vec::new();
        for handler in self.0.handlers(EventKind::ResourcesDiscover) {
            let returned = self.0.asked(EventKind::ResourcesDiscover, handler, &event).await;
            let Some(value) = returned.and_then(|returned| returned.value) else { continue };
            for (key, kind) in
                [("skillPaths", DiscoveredKind::Skill), ("promptPaths", DiscoveredKind::Prompt)]
            {
                let paths = value[key].as_array().into_iter().flatten().filter_map(Value::as_str);
                found.extend(paths.map(|path| DiscoveredResource {
                    kind,
                    path: path.to_owned(),
                    extension: self.0.path(handler.extension).to_owned(),
                }));
            }
        }
        *self.0.resources.lock().unwrap_or_else(PoisonError::into_inner) = found.into();
    }

    /// The process ids of the hosts that run.
    #[must_use]
    pub fn pids(&self) -> Vec<i32> {
        self.0.hosts.iter().filter_map(Host::pid).collect()
    }

    /// Ends the hosts without a word to the extensions.
    pub async fn end(&self) {
        self.end_hosts().await;
    }

    async fn end_hosts(&self) {
        self.0.is_closing.store(true, Ordering::Relaxed);
        futures::future::join_all(self.0.hosts.iter().map(Host::shut_down)).await;
    }
}
