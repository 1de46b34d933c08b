//! What a running server is asked and told, and what it has said so far.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use agentd_tools::operations::FileHost;
use serde_json::{Value, json};
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::{
    connection::{Connection, RequestError},
    diagnostics::{Diagnostic, DiagnosticStore, OfFile},
    position::Encoding,
    uri::file_uri,
};

/// An edit that a server wants made, while it executes a command for a call. The answer says whether it was.
pub(crate) struct EditRequest {
    pub(crate) edit: Value,
    pub(crate) answer: oneshot::Sender<Result<(), String>>,
}

/// A server as its messages and its texts need it: everything but its process and its texts.
pub(crate) struct ServerLink {
    /// Its name in the configuration.
    pub(crate) name: String,
    /// The folder that it works in.
    pub(crate) root: PathBuf,
    pub(crate) connection: Connection,
    pub(crate) pid: Option<i32>,
    /// The result of `initialize`: its capabilities.
    pub(super) capabilities: Mutex<Value>,
    pub(super) encoding: Mutex<Encoding>,
    /// What it gets for `workspace/configuration`.
    pub(super) settings: Value,
    pub(super) host: Arc<dyn FileHost>,
    pub(super) state: Mutex<ServerState>,
    /// Counts what it said, so that waiting for something is cheap.
    pub(super) news: watch::Sender<u64>,
    /// Takes the edits of a command that is executed for a call.
    pub(super) edits: Mutex<Option<mpsc::Sender<EditRequest>>>,
    /// One command at a time, so that an edit belongs to it.
    pub(crate) commands: AsyncMutex<()>,
    /// Fires when it is to end.
    pub(super) over: CancellationToken,
    pub(super) started: Instant,
    /// Milliseconds since `started` of its last use.
    pub(super) last_use: AtomicU64,
}

/// What a server said of itself and of files.
#[derive(Default)]
pub(super) struct ServerState {
    pub(super) diagnostics: DiagnosticStore,
    /// Work that it tells the progress of, by its token: what it is, how far it is.
    pub(super) progress: Vec<(String, String)>,
    /// Methods that it registered while it ran.
    pub(super) registered: Vec<(String, String)>,
    /// Messages that were passed over, as too long.
    pub(super) dropped: u64,
    /// Whether it has told that it has not read the project yet, or is about to tell.
    pub(super) is_loading: bool,
    /// What its log is to say once it knows the files of the project.
    pub(super) log_when_read: Option<&'static str>,
    /// What it says is wrong with the project or itself.
    pub(super) complaint: Option<String>,
}

/// Work of which the progress is kept.
pub(super) const MAX_PROGRESS: usize = 64;

/// Registrations that are kept.
pub(super) const MAX_REGISTERED: usize = 512;

impl ServerLink {
    /// Asks the server.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: &Value,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Result<Value, RequestError> {
        self.touch();
        let answer = self.connection.request(method, params, limit, cancel).await;
        self.touch();
        answer
    }

    /// Notes that it is used now.
    pub(crate) fn touch(&self) {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_use.store(now, Ordering::Relaxed);
    }

    /// The time since its last use.
    pub(crate) fn idle_for(&self) -> Duration {
        self.started.elapsed().saturating_sub(Duration::from_millis(self.last_use.load(Ordering::Relaxed)))
    }

    /// The time since it was started.
    pub(crate) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// How it ended; `None` while it runs.
    pub(crate) fn ended(&self) -> Option<String> {
        self.connection.closed()
    }

    /// Its capabilities, as it told them.
    pub(crate) fn capabilities(&self) -> Value {
        self.capabilities.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it can do something: a provider among its capabilities, or a method that it registered later.
    pub(crate) fn can(&self, provider: &str, method: &str) -> bool {
        let capabilities = self.capabilities.lock().unwrap_or_else(PoisonError::into_inner);
        let is_told = match capabilities.pointer(&format!("/{}", provider.replace('.', "/"))) {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(_) => true,
        };
        drop(capabilities);
        is_told || self.state().registered.iter().any(|(_, registered)| registered == method)
    }

    /// The names of the commands that it executes.
    pub(crate) fn capability(&self, pointer: &str) -> Option<Value> {
        self.capabilities.lock().unwrap_or_else(PoisonError::into_inner).pointer(pointer).cloned()
    }

    pub(crate) fn encoding(&self) -> Encoding {
        *self.encoding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the result of `initialize`.
    pub(super) fn initialized(&self, result: &Value) {
        let capabilities = result.get("capabilities").cloned().unwrap_or_default();
        let encoding = capabilities.get("positionEncoding").and_then(Value::as_str);
        *self.encoding.lock().unwrap_or_else(PoisonError::into_inner) = Encoding::of(encoding);
        *self.capabilities.lock().unwrap_or_else(PoisonError::into_inner) = capabilities;
    }

    /// Tells the server that files came, changed or went: 1, 2 or 3.
    pub(crate) async fn files_changed(&self, changes: &[(PathBuf, u8)]) {
        if changes.is_empty() {
            return;
        }
        let changes: Vec<Value> =
            changes.iter().map(|(path, kind)| json!({"uri": file_uri(path), "type": kind})).collect();
        let params = json!({"changes": changes});
        if let Err(error) = self.connection.notify("workspace/didChangeWatchedFiles", &params).await {
            tracing::debug!(%error, server = self.name, "a language server was not told of changed files");
        }
    }

    /// Whether it answers questions for diagnostics.
    pub(crate) fn pulls(&self) -> bool {
        self.can("diagnosticProvider", "textDocument/diagnostic")
    }

    /// Asks the server for the diagnostics of a file, where it answers such questions; false where it does not.
    pub(crate) async fn pull(
        &self,
        path: &Path,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Result<bool, RequestError> {
        if !self.pulls() {
            return Ok(false);
        }
        let params = json!({"textDocument": {"uri": file_uri(path)}});
        let report = self.request("textDocument/diagnostic", &params, limit, cancel).await?;
        self.take_report(path, &report);
        let related = report.get("relatedDocuments").and_then(Value::as_object);
        for (uri, report) in related.into_iter().flatten().take(200) {
            if let Some(path) = crate::uri::path_of(uri) {
                self.take_report(&path, report);
            }
        }
        Ok(true)
    }

    fn take_report(&self, path: &Path, report: &Value) {
        let is_same = report.get("kind").and_then(Value::as_str) == Some("unchanged");
        let items = (!is_same).then(|| Diagnostic::list(report.get("items")));
        self.state().diagnostics.pull(path.to_owned(), items);
        self.tell();
    }

    /// What it said of a file.
    pub(crate) fn diagnostics_of(&self, path: &Path) -> OfFile {
        self.state().diagnostics.of(path)
    }

    /// How often it spoke of a file.
    pub(crate) fn reports(&self, path: &Path) -> u64 {
        self.state().diagnostics.reports(path)
    }

    /// What it said of all files.
    pub(crate) fn all_diagnostics(&self) -> std::collections::BTreeMap<PathBuf, Vec<Diagnostic>> {
        self.state().diagnostics.all()
    }

    /// Diagnostics and messages that were left out, as there were too many or as they were too long.
    pub(crate) fn left_out(&self) -> u64 {
        let state = self.state();
        state.diagnostics.left_out + state.dropped
    }

    /// The work that it tells the progress of.
    pub(crate) fn progress(&self) -> Vec<String> {
        self.state().progress.iter().map(|(_, text)| text.clone()).collect()
    }

    /// What it says is wrong with the project or itself, such as that the project cannot be read.
    pub(crate) fn complaint(&self) -> Option<String> {
        self.state().complaint.clone()
    }

    /// Whether it works on something that it tells the progress of, or has not read the project yet.
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.state();
        state.is_loading || !state.progress.is_empty()
    }

    /// Ends the waiting for the message of the log that the project is read, if that is waited for and `is_it` says that it came. Returns whether it
    /// ended the waiting.
    pub(super) fn has_read(&self, is_it: impl FnOnce(&str) -> bool) -> bool {
        let mut state = self.state();
        let is_over = state.log_when_read.take_if(|awaited| is_it(awaited)).is_some();
        if is_over {
            state.is_loading = false;
        }
        is_over
    }

    /// Changes with everything that it says.
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    pub(super) fn tell(&self) {
        self.news.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Takes the edits that it wants made from here on, until the receiver is dropped.
    pub(crate) fn take_edits(&self) -> mpsc::Receiver<EditRequest> {
        let (sender, receiver) = mpsc::channel(4);
        *self.edits.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        receiver
    }

    pub(super) fn state(&self) -> MutexGuard<'_, ServerState> {
        // No method panics halfway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
