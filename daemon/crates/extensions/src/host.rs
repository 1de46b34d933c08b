//! One host of a session: its process, its connection, what it is told first.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use agentd_process::Launcher;
use agentd_program_log::ProgramLogSource;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    channel::HostChannel,
    connection::{HostConnection, RequestError, RequestTerms},
    host_output::HostOutput,
    process::{self, HostProgram, RunningHost},
    record::{HostFailure, Incoming, PROTOCOL_VERSION},
};

/// Time for the answer to `hello`.
const HELLO_WAIT: Duration = Duration::from_secs(30);

/// Time to import extensions and to run their factories.
const LOAD_WAIT: Duration = Duration::from_secs(60);

/// Time for the answer to `ping`, once something was late.
const PING_WAIT: Duration = Duration::from_secs(5);

/// Time to forget the extensions of a session that goes.
const UNLOAD_WAIT: Duration = Duration::from_secs(5);

/// Time to end after `shutdown`.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(1);

/// What hosts are told of their session.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HelloFacts {
    /// The session's id.
    pub session_id: String,
    /// Its working directory.
    pub cwd: String,
    /// The agent directory.
    pub agent_dir: String,
    /// `rpc`, `json` or `print`.
    pub mode: String,
    /// Whether somebody may answer dialogs.
    #[serde(rename = "hasUI")]
    pub has_ui: bool,
    /// Whether the project is trusted.
    pub trusted: bool,
    /// The folder for what hosts keep of translated sources.
    pub cache_dir: String,
    /// Whether themes give colours.
    pub ansi: bool,
}

/// An extension as `load` names it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExtensionToLoad {
    pub(crate) ext: String,
    pub(crate) path: String,
    pub(crate) entry: String,
    pub(crate) base_dir: String,
    pub(crate) source_info: Value,
}

/// What came of loading an extension.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct LoadedExtension {
    pub(crate) ext: String,
    pub(crate) ok: bool,
    #[serde(default)]
    pub(crate) error: Option<String>,
    #[serde(default)]
    pub(crate) ms: Option<f64>,
}

/// Takes what a host sends by itself. Must not wait.
pub(crate) trait HostEvents: Send + Sync {
    /// A record that is no result.
    fn record(&self, host: usize, connection: &HostConnection, calls: &OpenCalls, record: Incoming);

    /// Something that was printed.
    fn printed(&self, host: usize, text: &str);

    /// The host is gone.
    fn ended(&self, host: usize, reason: &str);
}

/// Calls of a host that are not answered, and what gives them up.
#[derive(Clone, Default)]
pub(crate) struct OpenCalls(Arc<Mutex<HashMap<u64, CancellationToken>>>);

impl OpenCalls {
    /// A call is open until the returned token fires.
    pub(crate) fn open(&self, id: u64) -> CancellationToken {
        let cancel = CancellationToken::new();
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, cancel| !cancel.is_cancelled());
        open.insert(id, cancel.clone());
        cancel
    }

    fn cancel(&self, id: u64) {
        if let Some(cancel) = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id) {
            cancel.cancel();
        }
    }

    fn cancel_all(&self) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.drain().for_each(|(_, cancel)| cancel.cancel());
    }
}

/// What runs a host.
#[derive(Clone)]
pub enum HostRunner {
    /// A process of its own.
    Process(HostProgram),
    /// A channel of the host of another session, whose extension has opened this one.
    Channel(HostChannel),
}

/// One host.
pub(crate) struct Host {
    pub(crate) runner: HostRunner,
    /// The numbers of its extensions.
    pub(crate) extensions: Vec<usize>,
    /// Whether it has the entries of the session, so that it is told of new ones.
    pub(crate) has_entries: AtomicBool,
    /// Takes what it says.
    pub(crate) log: ProgramLogSource,
    /// Whether it is being started again.
    pub(crate) is_restarting: AtomicBool,
    epoch: AtomicU64,
    state: Mutex<HostState>,
}

enum HostState {
    Up(HostLink),
    Down { reason: Arc<str> },
}

/// A process of a host, and its connection. It can pass from the extensions of one session to those of the next.
pub(crate) struct HostLink {
    connection: HostConnection,
    running: RunningHost,
    reader: Arc<Reader>,
    epoch: u64,
}

impl HostLink {
    /// Whether the process is gone, or about to.
    pub(crate) fn has_ended(&self) -> bool {
        self.running.over.is_cancelled() || self.connection.closed().is_some()
    }

    /// Ends the process.
    pub(crate) fn end(&self) {
        self.running.over.cancel();
    }

    /// Fires once the process and all that it started are gone.
    pub(crate) fn gone(&self) -> CancellationToken {
        self.running.gone.clone()
    }
}

impl Host {
    pub(crate) fn new(runner: HostRunner, extensions: Vec<usize>, log: ProgramLogSource) -> Self {
        Self {
            runner,
            extensions,
            has_entries: AtomicBool::new(false),
            log,
            is_restarting: AtomicBool::new(false),
            epoch: AtomicU64::new(1),
            state: Mutex::new(HostState::Down { reason: "it was not started".into() }),
        }
    }

    /// The epoch of what it has loaded.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Its program; `None` where it is a channel of another host.
    pub(crate) fn program(&self) -> Option<&HostProgram> {
        match &self.runner {
            HostRunner::Process(program) => Some(program),
            HostRunner::Channel(_) => None,
        }
    }

    /// A new epoch begins: records of the one before count no more.
    pub(crate) fn next_epoch(&self) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes over a process that ran extensions before, or, where it `goes_on`, with those that it has loaded.
    pub(crate) fn adopt(&self, number: usize, events: Weak<dyn HostEvents>, link: HostLink, goes_on: bool) {
        self.epoch.store(link.epoch + u64::from(!goes_on), Ordering::Relaxed);
        self.has_entries.store(false, Ordering::Relaxed);
        link.reader.lead_to(events, number);
        *self.lock() = HostState::Up(link);
    }

    /// Gives the process away with what it has loaded; `None` where it is gone.
    pub(crate) fn give(&self) -> Option<HostLink> {
        let before = HostState::Down { reason: "others have taken it over".into() };
        let HostState::Up(link) = std::mem::replace(&mut *self.lock(), before) else { return None };
        Some(HostLink { epoch: self.epoch(), ..link })
    }

    /// Gives the process away; what it has loaded is forgotten. `None` where it is gone or does not answer: then it is ended.
    pub(crate) async fn release(&self, reason: &str) -> Option<HostLink> {
        let fields = json!({"epoch": self.epoch(), "reason": reason});
        let terms = RequestTerms { limit: Some(UNLOAD_WAIT), ..RequestTerms::default() };
        let forgot = self.request("unload", &fields, terms).await;
        let before = HostState::Down { reason: "its session has gone on to another".into() };
        let HostState::Up(mut link) = std::mem::replace(&mut *self.lock(), before) else { return None };
        link.epoch = self.epoch();
        if let Err(error) = forgot {
            tracing::warn!(%error, "an extension host did not forget its extensions, and is ended");
            link.end();
            return None;
        }
        Some(link)
    }

    /// Starts the process and says hello.
    ///
    /// # Errors
    /// Why there is no host.
    pub(crate) async fn start(
        &self,
        number: usize,
        (launcher, tasks): (&Launcher, &TaskTracker),
        events: Weak<dyn HostEvents>,
        facts: &HelloFacts,
    ) -> Result<(), String> {
        let reader = Arc::new(Reader { led: Mutex::new((events, number)), link: OnceLock::new() });
        let epoch = self.epoch();
        let output = Arc::clone(&reader) as Arc<dyn HostOutput>;
        let (connection, running) = match &self.runner {
            HostRunner::Process(program) => process::start(program, launcher, tasks, output).await?,
            HostRunner::Channel(channel) => channel.open(tasks, output)?,
        };
        let _ = reader.link.set((connection.clone(), OpenCalls::default()));
        let over = running.over.clone();
        self.has_entries.store(false, Ordering::Relaxed);
        *self.lock() = HostState::Up(HostLink { connection: connection.clone(), running, reader, epoch });
        let hello = Hello {
            protocol: PROTOCOL_VERSION,
            daemon: json!({"name": "agentd", "version": env!("CARGO_PKG_VERSION")}),
            epoch,
            facts,
            config_dir_name: ".pi",
            env: json!({}),
            limits: json!({"maxLineBytes": process::MAX_LINE_BYTES, "syncCallMs": 5000}),
            features: [],
        };
        let terms = RequestTerms { limit: Some(HELLO_WAIT), ..RequestTerms::default() };
        let answer = connection.request("hello", &hello, terms).await;
        let answer = answer.map_err(|error| error.to_string()).and_then(|answer| {
            #[derive(Deserialize)]
            struct Answer {
                protocol: u32,
            }
            serde_json::from_str(answer.get())
                .map(|Answer { protocol }| protocol)
                .map_err(|error| error.to_string())
        });
        match answer {
            Ok(PROTOCOL_VERSION) => Ok(()),
            Ok(other) => {
                over.cancel();
                Err(format!(
                    "it speaks version {other} of the host protocol, and agentd speaks {PROTOCOL_VERSION}"
                ))
            }
            Err(error) => {
                over.cancel();
                Err(error)
            }
        }
    }

    /// Imports extensions and runs their factories. What they register comes before the answer.
    ///
    /// # Errors
    /// Why the host did not answer.
    pub(crate) async fn load(
        &self,
        facts: &HelloFacts,
        (reason, clear_cache): (&str, bool),
        extensions: &[ExtensionToLoad],
    ) -> Result<Vec<LoadedExtension>, RequestError> {
        let session = json!({"sessionId": facts.session_id, "cwd": facts.cwd, "trusted": facts.trusted});
        let fields = json!({
            "epoch": self.epoch(), "reason": reason, "clearCache": clear_cache, "session": session,
            "extensions": extensions,
        });
        let terms = RequestTerms { limit: Some(LOAD_WAIT), ..RequestTerms::default() };
        let answer = self.request("load", &fields, terms).await?;
        #[derive(Deserialize)]
        struct Answer {
            extensions: Vec<LoadedExtension>,
        }
        serde_json::from_str(answer.get())
            .map(|Answer { extensions }| extensions)
            .map_err(|error| RequestError::Failed(HostFailure::new("invalid", error.to_string())))
    }

    /// Sends a request; a host that answers neither it in time nor a `ping` is ended.
    ///
    /// # Errors
    /// [`RequestError`].
    pub(crate) async fn request(
        &self,
        kind: &'static str,
        fields: &impl Serialize,
        terms: RequestTerms<'_>,
    ) -> Result<Box<RawValue>, RequestError> {
        let (connection, over) = match &*self.lock() {
            HostState::Up(link) => (link.connection.clone(), link.running.over.clone()),
            HostState::Down { .. } if self.is_restarting.load(Ordering::Relaxed) => {
                return Err(RequestError::Restarting);
            }
            HostState::Down { reason } => return Err(RequestError::Gone(Arc::clone(reason))),
        };
        let answer = connection.request(kind, fields, terms).await;
        if matches!(answer, Err(RequestError::Late)) {
            let terms = RequestTerms { limit: Some(PING_WAIT), ..RequestTerms::default() };
            if matches!(connection.request("ping", &json!({}), terms).await, Err(RequestError::Late)) {
                tracing::warn!(kind, "an extension blocks its host, which is ended");
                over.cancel();
            }
        }
        answer
    }

    /// Sends a note, if the host is there.
    pub(crate) fn note(&self, kind: &str, fields: &impl Serialize) {
        if let HostState::Up(link) = &*self.lock() {
            link.connection.note(kind, fields);
        }
    }

    /// The process id of the host, if it runs.
    pub(crate) fn pid(&self) -> Option<i32> {
        match &*self.lock() {
            HostState::Up(link) => link.running.pid,
            HostState::Down { .. } => None,
        }
    }

    /// Why the host is not there; `None` while it is.
    pub(crate) fn down(&self) -> Option<Arc<str>> {
        match &*self.lock() {
            HostState::Up(_) => None,
            HostState::Down { reason } => Some(Arc::clone(reason)),
        }
    }

    /// The host is gone.
    pub(crate) fn set_down(&self, reason: &str) {
        *self.lock() = HostState::Down { reason: reason.into() };
    }

    /// Ends the host and waits until its processes are gone.
    pub(crate) async fn shut_down(&self) {
        let (connection, over, gone) = match &*self.lock() {
            HostState::Up(link) => {
                (link.connection.clone(), link.running.over.clone(), link.running.gone.clone())
            }
            HostState::Down { .. } => return,
        };
        let deadline = json!({"deadlineMs": SHUTDOWN_WAIT.as_millis()});
        let terms = RequestTerms { limit: Some(SHUTDOWN_WAIT), ..RequestTerms::default() };
        // One that does not answer is ended all the same.
        let _ = timeout(SHUTDOWN_WAIT, connection.request("shutdown", &deadline, terms)).await;
        over.cancel();
        gone.cancelled().await;
    }

    fn lock(&self) -> MutexGuard<'_, HostState> {
        // No method panics halfway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Hello<'a> {
    protocol: u32,
    daemon: Value,
    epoch: u64,
    #[serde(flatten)]
    facts: &'a HelloFacts,
    config_dir_name: &'static str,
    env: Value,
    limits: Value,
    features: [&'static str; 0],
}

/// Reads the records of a host.
struct Reader {
    /// Who takes them, and the number of the host there.
    led: Mutex<(Weak<dyn HostEvents>, usize)>,
    /// Set before the host is told anything: what it says before that is passed over.
    link: OnceLock<(HostConnection, OpenCalls)>,
}

impl Reader {
    fn lead_to(&self, events: Weak<dyn HostEvents>, host: usize) {
        *self.led.lock().unwrap_or_else(PoisonError::into_inner) = (events, host);
    }

    fn leads_to(&self) -> Option<(Arc<dyn HostEvents>, usize)> {
        let led = self.led.lock().unwrap_or_else(PoisonError::into_inner);
        Some((led.0.upgrade()?, led.1))
    }

    /// Hands a record on. Who is led to next has all that comes after it, and nothing before.
    fn hand_on(&self, connection: &HostConnection, calls: &OpenCalls, record: Incoming) {
        let led = self.led.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(events) = led.0.upgrade() else { return };
        events.record(led.1, connection, calls, record);
        drop(led);
    }
}

impl HostOutput for Reader {
    fn record(&self, line: String) {
        let Some((connection, calls)) = self.link.get() else { return };
        let record = match Incoming::parse(&line) {
            Ok(record) => record,
            Err(error) => return tracing::warn!(error, "a record of an extension host cannot be read"),
        };
        match record {
            Incoming::Result { id, outcome } => connection.settle(id, outcome),
            Incoming::Partial { call, partial } => connection.partial(call, partial),
            Incoming::Cancel { id } => calls.cancel(id),
            Incoming::Channel { channel, record } => connection.channel_record(channel, &record),
            Incoming::Unknown { id, kind } => {
                let failure = HostFailure::new("unsupported", format!("agentd knows no request {kind}"));
                connection.answer(id, &Err(failure));
            }
            record => self.hand_on(connection, calls, record),
        }
    }

    fn printed(&self, text: &str) {
        if let Some((events, host)) = self.leads_to() {
            events.printed(host, text);
        }
    }

    fn ended(&self, reason: &str) {
        if let Some((_, calls)) = self.link.get() {
            calls.cancel_all();
        }
        if let Some((events, host)) = self.leads_to() {
            events.ended(host, reason);
        }
    }
}
