//! The editor for the tools of its sessions: their calls become requests of the relay.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use agentd_acp::{TerminalAnswer, TerminalCommand as AcpCommand, TerminalRequest};
use agentd_tools::operations::{
    EditorAnswer, EditorFiles, EditorTerminals, TerminalCommand, TerminalExit, TerminalOutput,
};
use tokio::{
    runtime::Handle,
    sync::{
        mpsc::{self, error::TrySendError},
        oneshot,
    },
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// The longest time for the editor to answer, but for the end of a command.
const ANSWER: Duration = Duration::from_secs(10);

/// Requests that wait for the relay.
const WAITING: usize = 16;

/// Why a request has no answer when the relay is gone.
const GONE: &str = "it has left";

/// The sender of an answer, or of the editor's reason against it.
pub(super) type Answer<T> = oneshot::Sender<Result<T, String>>;

/// A request to the editor.
pub(super) enum EditorRequest {
    /// About a file.
    Text {
        session: String,
        path: PathBuf,
        /// The text to write; `None` to read.
        text: Option<String>,
        answer: Answer<String>,
    },
    /// About a terminal. Without `answer`, nobody waits for one.
    Terminal { session: String, request: TerminalRequest, answer: Option<Answer<TerminalAnswer>> },
}

/// The editor, as tools see it.
pub(super) struct EditorLink {
    requests: mpsc::Sender<EditorRequest>,
    runtime: Handle,
    reads: AtomicBool,
    writes: AtomicBool,
    terminals: AtomicBool,
}

impl EditorLink {
    /// An editor that has not said yet what it offers. Must be called within the runtime.
    pub(super) fn new() -> (Self, mpsc::Receiver<EditorRequest>) {
        let (requests, receiver) = mpsc::channel(WAITING);
        let link = Self {
            requests,
            runtime: Handle::current(),
            reads: AtomicBool::new(false),
            writes: AtomicBool::new(false),
            terminals: AtomicBool::new(false),
        };
        (link, receiver)
    }

    /// Keeps what the editor offers: to read and to write files, and terminals.
    pub(super) fn offer(&self, (reads, writes): (bool, bool), terminals: bool) {
        self.reads.store(reads, Ordering::Relaxed);
        self.writes.store(writes, Ordering::Relaxed);
        self.terminals.store(terminals, Ordering::Relaxed);
    }

    /// Sends a request and waits for its answer. Cancel safe.
    async fn ask<T>(&self, request: impl FnOnce(Answer<T>) -> EditorRequest) -> Result<T, String> {
        let (answer, answered) = oneshot::channel();
        self.requests.send(request(answer)).await.map_err(|_| GONE.to_owned())?;
        answered.await.unwrap_or_else(|_| Err(GONE.to_owned()))
    }

    /// Asks about a file. Blocks, until `cancel` fires at most.
    fn ask_for_text(
        &self,
        session: &str,
        path: &Path,
        text: Option<&str>,
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        let asking = self.ask(|answer| EditorRequest::Text {
            session: session.to_owned(),
            path: path.to_owned(),
            text: text.map(str::to_owned),
            answer,
        });
        self.runtime.block_on(async {
            tokio::select! {
                answer = in_time(asking) => answer,
                () = cancel.cancelled() => Err("the call was stopped".to_owned()),
            }
        })
    }

    /// Asks about a terminal. Cancel safe.
    async fn ask_terminal(&self, session: &str, request: TerminalRequest) -> Result<TerminalAnswer, String> {
        let session = session.to_owned();
        self.ask(|answer| EditorRequest::Terminal { session, request, answer: Some(answer) }).await
    }
}

/// Waits for an answer as long as an editor may take. Cancel safe.
async fn in_time<T>(answer: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let late = |_| Err(format!("it did not answer within {} s", ANSWER.as_secs()));
    timeout(ANSWER, answer).await.unwrap_or_else(late)
}

/// The error where the relay mixed up answers.
fn unexpected<T>(answer: &TerminalAnswer) -> Result<T, String> {
    Err(format!("it gave another answer: {answer:?}"))
}

impl EditorFiles for EditorLink {
    fn reads(&self) -> bool {
        self.reads.load(Ordering::Relaxed)
    }

    fn writes(&self) -> bool {
        self.writes.load(Ordering::Relaxed)
    }

    fn read(&self, session: &str, path: &Path, cancel: &CancellationToken) -> Option<String> {
        let read = self.ask_for_text(session, path, None, cancel);
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
        self.ask_for_text(session, path, Some(text), cancel).map(|_| ())
    }
}

impl EditorTerminals for EditorLink {
    fn offers_terminals(&self) -> bool {
        self.terminals.load(Ordering::Relaxed)
    }

    fn create<'a>(
        &'a self,
        session: &'a str,
        call: &'a str,
        command: TerminalCommand,
    ) -> EditorAnswer<'a, String> {
        let TerminalCommand { program, args, env, cwd, output_limit } = command;
        let command = AcpCommand { call: call.to_owned(), program, args, env, cwd, output_limit };
        Box::pin(async move {
            match in_time(self.ask_terminal(session, TerminalRequest::Create(command))).await? {
                TerminalAnswer::Created(terminal) => Ok(terminal),
                other => unexpected(&other),
            }
        })
    }

    fn exit<'a>(&'a self, session: &'a str, terminal: &'a str) -> EditorAnswer<'a, TerminalExit> {
        Box::pin(async move {
            match self.ask_terminal(session, TerminalRequest::Exit(terminal.to_owned())).await? {
                TerminalAnswer::Ended { code, signal } => Ok(TerminalExit { code, signal }),
                other => unexpected(&other),
            }
        })
    }

    fn output<'a>(&'a self, session: &'a str, terminal: &'a str) -> EditorAnswer<'a, TerminalOutput> {
        Box::pin(async move {
            match in_time(self.ask_terminal(session, TerminalRequest::Output(terminal.to_owned()))).await? {
                TerminalAnswer::Output { text, is_cut } => Ok(TerminalOutput { text, is_cut }),
                other => unexpected(&other),
            }
        })
    }

    fn kill<'a>(&'a self, session: &'a str, terminal: &'a str) -> EditorAnswer<'a, ()> {
        Box::pin(async move {
            in_time(self.ask_terminal(session, TerminalRequest::Kill(terminal.to_owned()))).await.map(|_| ())
        })
    }

    fn release(&self, session: &str, terminal: &str) {
        let (session, request) = (session.to_owned(), TerminalRequest::Release(terminal.to_owned()));
        let request = EditorRequest::Terminal { session, request, answer: None };
        // When the relay is gone there is no editor to tell.
        if let Err(TrySendError::Full(request)) = self.requests.try_send(request) {
            let requests = self.requests.clone();
            // Detached: it waits for room alone.
            self.runtime.spawn(async move {
                let _ = requests.send(request).await;
            });
        }
    }
}
