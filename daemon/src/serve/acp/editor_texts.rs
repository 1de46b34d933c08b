//! The editor's files for the tools of its sessions: their blocking calls become requests of the relay.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use agentd_tools::operations::EditorFiles;
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// The longest time for the editor to answer about a file.
const ANSWER: Duration = Duration::from_secs(10);

/// Requests that wait for the relay.
const WAITING: usize = 16;

/// A request about a file.
pub(super) struct TextRequest {
    pub(super) session: String,
    pub(super) path: PathBuf,
    /// The text to write; `None` to read.
    pub(super) text: Option<String>,
    pub(super) answer: oneshot::Sender<Result<String, String>>,
}

/// The editor, as tools see it.
pub(super) struct EditorTexts {
    requests: mpsc::Sender<TextRequest>,
    runtime: Handle,
    reads: AtomicBool,
    writes: AtomicBool,
}

impl EditorTexts {
    /// An editor that has not said yet what it offers. Must be called within the runtime.
    pub(super) fn new() -> (Self, mpsc::Receiver<TextRequest>) {
        let (requests, receiver) = mpsc::channel(WAITING);
        let (reads, writes) = (AtomicBool::new(false), AtomicBool::new(false));
        (Self { requests, runtime: Handle::current(), reads, writes }, receiver)
    }

    /// Keeps what the editor offers: to read, to write.
    pub(super) fn offer(&self, (reads, writes): (bool, bool)) {
        self.reads.store(reads, Ordering::Relaxed);
        self.writes.store(writes, Ordering::Relaxed);
    }

    /// Asks the editor. Blocks, until `cancel` fires at most.
    fn ask(
        &self,
        session: &str,
        path: &Path,
        text: Option<&str>,
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        let (answer, answered) = oneshot::channel();
        let request = TextRequest {
            session: session.to_owned(),
            path: path.to_owned(),
            text: text.map(str::to_owned),
            answer,
        };
        let asking = async {
            let gone = "it has left";
            self.requests.send(request).await.map_err(|_| gone.to_owned())?;
            answered.await.unwrap_or_else(|_| Err(gone.to_owned()))
        };
        self.runtime.block_on(async {
            tokio::select! {
                answer = timeout(ANSWER, asking) => {
                    answer.unwrap_or_else(|_| Err(format!("it did not answer within {} s", ANSWER.as_secs())))
                }
                () = cancel.cancelled() => Err("the call was stopped".to_owned()),
            }
        })
    }
}

impl EditorFiles for EditorTexts {
    fn reads(&self) -> bool {
        self.reads.load(Ordering::Relaxed)
    }

    fn writes(&self) -> bool {
        self.writes.load(Ordering::Relaxed)
    }

    fn read(&self, session: &str, path: &Path, cancel: &CancellationToken) -> Option<String> {
        let read = self.ask(session, path, None, cancel);
        read.inspect_err(|reason| tracing::debug!(%reason, "the editor gave no text; that on disk counts"))
            .ok()
    }

    fn write(
        &self,
        session: &str,
        path: &Path,
        text: &str,
        cancel: &CancellationToken,
    ) -> Result<(), String> {
        self.ask(session, path, Some(text), cancel).map(|_| ())
    }
}
