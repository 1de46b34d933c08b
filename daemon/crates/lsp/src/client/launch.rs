//! Starting a server: its process under the guard, its streams, `initialize`.

use std::{
    ffi::OsString,
    path::PathBuf,
    sync::{Arc, Mutex, atomic::AtomicU64},
    time::{Duration, Instant},
};

use agentd_memory::{MemoryAccount, MemoryPurpose};
use agentd_process::{
    CommandSpec, CommandStreams, InputPipe, Launcher, LimitedResource, OutputPipe, Process, ProcessGroup,
    ProcessLimits, Utf8Stream,
};
use agentd_program_log::{OutputTail, ProgramLog, ProgramLogSource};
use agentd_sandbox::SandboxPolicy;
use agentd_tools::operations::FileHost;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::{Mutex as AsyncMutex, mpsc, watch},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    documents::Documents,
    incoming,
    message_rate::MessageRate,
    running::Client,
    server_link::{ServerLink, ServerState},
};
use crate::{
    connection::Connection,
    framing::{MessageReader, NextMessage},
    message,
    position::Encoding,
    uri::file_uri,
};

/// Time to end after the input was closed.
const INPUT_CLOSED_WAIT: Duration = Duration::from_millis(500);

/// Time to end after SIGTERM.
const TERMINATE_WAIT: Duration = Duration::from_secs(2);

/// How long the message of a server's log that it has read the project is waited for: it comes only where the log has its usual level.
const LOG_WAIT: Duration = Duration::from_secs(10);

/// Time to read what a server has written before its end.
const LAST_OUTPUT_WAIT: Duration = Duration::from_millis(500);

/// Messages from this length on are parsed on a thread for blocking work.
const LONG_MESSAGE: usize = 256 << 10;

/// Processes of a server.
const MAX_PROCESSES: u64 = 2048;

/// What a server is started with.
#[derive(Clone)]
pub(crate) struct LaunchPlan {
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) root: PathBuf,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) sandbox: Option<Arc<SandboxPolicy>>,
    /// Whether it tells when it has read the project.
    pub(crate) tells_status: bool,
    /// What its log says once it knows the files of the project; empty for one without such a message.
    pub(crate) log_when_read: &'static str,
    pub(crate) init_options: Value,
    pub(crate) settings: Value,
    /// Reads the files that the server is given.
    pub(crate) host: Arc<dyn FileHost>,
    pub(crate) launcher: Launcher,
    pub(crate) tasks: TaskTracker,
    pub(crate) memory: MemoryAccount,
    pub(crate) log: ProgramLog,
    /// Bytes of memory of the server with all that it starts.
    pub(crate) max_memory: u64,
    /// Time for the answer to `initialize`.
    pub(crate) start_limit: Duration,
}

/// Starts a server and initializes it. Its tasks belong to the plan's and end with it.
///
/// # Errors
/// Why it could not be started; nothing of it is left then.
pub(crate) async fn start(plan: LaunchPlan) -> Result<Arc<Client>, String> {
    let group = plan.launcher.group();
    group.set_limits(ProcessLimits {
        processes: Some(MAX_PROCESSES),
        memory_bytes: Some(plan.max_memory),
        ..ProcessLimits::default()
    });
    let command = CommandSpec {
        program: plan.program.clone().into_os_string(),
        args: plan.args.clone(),
        cwd: plan.root.clone(),
        env: plan.env.clone(),
        streams: CommandStreams::Separate,
        sandbox: plan.sandbox.clone(),
    };
    let mut process = group.spawn(command).await.map_err(|error| error.to_string())?;
    let (Some(input), Some(output), Some(errors)) =
        (process.take_input(), process.take_output(), process.errors.take())
    else {
        return Err("its standard streams are not there".to_owned());
    };
    let (connection, messages) = Connection::new();
    let (over, gone) = (CancellationToken::new(), CancellationToken::new());
    let link = Arc::new(ServerLink {
        name: plan.name.clone(),
        root: plan.root.clone(),
        connection,
        pid: process.pid(),
        capabilities: Mutex::default(),
        encoding: Mutex::new(Encoding::default()),
        settings: plan.settings.clone(),
        host: Arc::clone(&plan.host),
        state: Mutex::new(ServerState {
            is_loading: plan.tells_status || !plan.log_when_read.is_empty(),
            log_when_read: Some(plan.log_when_read).filter(|text| !text.is_empty()),
            ..ServerState::default()
        }),
        news: watch::Sender::new(0),
        edits: Mutex::default(),
        commands: AsyncMutex::new(()),
        over: over.clone(),
        started: Instant::now(),
        last_use: AtomicU64::new(0),
    });
    let client = Arc::new(Client {
        link: Arc::clone(&link),
        documents: AsyncMutex::new(Documents::default()),
        gone: gone.clone(),
    });
    // Fire at the end of the output, and of the errors.
    let (read, said) = (CancellationToken::new(), CancellationToken::new());
    let tail = OutputTail::default();
    let log = Arc::new(plan.log.source(&plan.name));
    plan.tasks.spawn(write_messages(messages, input, over.clone()));
    plan.tasks.spawn(read_errors(errors, (tail.clone(), Arc::clone(&log)), over.clone(), said.clone()));
    plan.tasks.spawn({
        let reader = MessageReader::new(output, plan.memory.open(MemoryPurpose::Servers));
        // The tasks do not keep the client: without its last owner it ends.
        let link = Arc::clone(&link);
        let (over, read, tasks) = (over.clone(), read.clone(), plan.tasks.clone());
        async move {
            let sinks = (&link, &*log, &tasks);
            let reason = over.run_until_cancelled(read_messages(reader, sinks)).await;
            let reason = reason.unwrap_or_else(|| "the connection was closed".to_owned());
            read.cancel();
            // How it ended says more than that it did, and is known in a moment.
            let _ = timeout(LAST_OUTPUT_WAIT, over.cancelled()).await;
            link.connection.close(&reason);
            over.cancel();
        }
    });
    plan.tasks.spawn({
        let (connection, max_memory) = (link.connection.clone(), plan.max_memory);
        let over = over.clone();
        async move {
            watch_process(process, &group, (&connection, max_memory), &over, (&read, &said), &tail).await;
            gone.cancel();
        }
    });
    if !plan.log_when_read.is_empty() {
        let (link, over) = (Arc::clone(&link), over.clone());
        plan.tasks.spawn(async move {
            let is_running = timeout(LOG_WAIT, over.cancelled()).await.is_err();
            if is_running && link.has_read(|_| true) {
                link.tell();
            }
        });
    }
    match initialize(&client, &plan).await {
        Ok(()) => Ok(client),
        Err(error) => {
            client.connection.close(&error);
            over.cancel();
            client.gone.cancelled().await;
            Err(error)
        }
    }
}

async fn initialize(client: &Arc<Client>, plan: &LaunchPlan) -> Result<(), String> {
    let params = json!({
        "processId": std::process::id(),
        "clientInfo": {"name": "agentd", "version": env!("CARGO_PKG_VERSION")},
        "rootUri": file_uri(&client.root),
        "rootPath": client.root.display().to_string(),
        "workspaceFolders": [incoming::folder(client)],
        "initializationOptions": plan.init_options,
        "capabilities": capabilities(),
    });
    let cancel = CancellationToken::new();
    let result = client.request("initialize", &params, plan.start_limit, &cancel).await;
    client.initialized(&result.map_err(|error| error.to_string())?);
    let told = async {
        client.connection.notify("initialized", &json!({})).await?;
        if plan.settings.as_object().is_some_and(|settings| !settings.is_empty()) {
            let params = json!({"settings": plan.settings});
            client.connection.notify("workspace/didChangeConfiguration", &params).await?;
        }
        Ok::<_, crate::connection::RequestError>(())
    };
    told.await.map_err(|error| error.to_string())
}

/// What agentd can do as a client. Watching files is left to servers, but for what the tools change.
fn capabilities() -> Value {
    let links = json!({"linkSupport": true});
    json!({
        "general": {"positionEncodings": ["utf-8", "utf-16"]},
        "experimental": {"serverStatusNotification": true},
        "window": {"workDoneProgress": true, "showDocument": {"support": false}},
        "workspace": {
            "applyEdit": true,
            "configuration": true,
            "workspaceFolders": true,
            "didChangeConfiguration": {"dynamicRegistration": false},
            "didChangeWatchedFiles": {"dynamicRegistration": false},
            "executeCommand": {},
            "symbol": {},
            "diagnostics": {"refreshSupport": true},
            "fileOperations": {"willRename": true, "didRename": true},
            "workspaceEdit": {
                "documentChanges": true,
                "resourceOperations": ["create", "rename", "delete"],
                "failureHandling": "abort",
            },
        },
        "textDocument": {
            "synchronization": {"didSave": true},
            "publishDiagnostics": {"versionSupport": true, "relatedInformation": true, "codeDescriptionSupport": true},
            "diagnostic": {"dynamicRegistration": true, "relatedDocumentSupport": true},
            "hover": {"contentFormat": ["markdown", "plaintext"]},
            "definition": links,
            "typeDefinition": links,
            "implementation": links,
            "declaration": links,
            "references": {},
            "documentSymbol": {"hierarchicalDocumentSymbolSupport": true},
            "rename": {"prepareSupport": true},
            "codeAction": {
                "codeActionLiteralSupport": {"codeActionKind": {"valueSet": [
                    "", "quickfix", "refactor", "refactor.extract", "refactor.inline", "refactor.rewrite", "source",
                    "source.organizeImports", "source.fixAll",
                ]}},
                "dataSupport": true,
                "disabledSupport": true,
                "isPreferredSupport": true,
                "resolveSupport": {"properties": ["edit", "command"]},
            },
        },
    })
}

/// Waits for the end of the server or of the connection, and then for the end of all its processes.
async fn watch_process(
    process: Process,
    group: &ProcessGroup,
    (connection, max_memory): (&Connection, u64),
    over: &CancellationToken,
    (read, said): (&CancellationToken, &CancellationToken),
    tail: &OutputTail,
) {
    tokio::select! {
        status = process.wait() => {
            // Its last words are still in the pipes; what it left running may hold the pipes open.
            let last_words = async {
                read.cancelled().await;
                said.cancelled().await;
            };
            let _ = timeout(LAST_OUTPUT_WAIT, last_words).await;
            let limit = process.limit_reached().map(|limit| limit.resource);
            let what = match (limit, status.signal, status.code) {
                (Some(LimitedResource::Memory), ..) => format!(
                    "it was ended: it used more than {max_memory} bytes of memory (setting lsp.maxMemoryBytes)"
                ),
                (Some(_), ..) => format!("it was ended: it had more than {MAX_PROCESSES} processes"),
                (None, Some(signal), _) => format!("it was ended by signal {signal}"),
                (None, None, code) => format!("it ended with code {code}"),
            };
            connection.close(&tail.explain(what));
            over.cancel();
        }
        () = over.cancelled() => {
            connection.close(&tail.explain("the connection was closed".to_owned()));
            // Its input was closed with the writer.
            let _ = timeout(INPUT_CLOSED_WAIT, process.wait()).await;
        }
    }
    group.terminate(TERMINATE_WAIT).await;
}

/// Writes what is to be sent, and closes the server's input at the end.
async fn write_messages(
    mut messages: mpsc::Receiver<Vec<u8>>,
    mut input: InputPipe,
    over: CancellationToken,
) {
    let writing = async {
        while let Some(message) = messages.recv().await {
            if let Err(error) = input.write_all(&message).await {
                // A server that has ended is noticed by its end.
                tracing::debug!(%error, "cannot write to a language server");
                break;
            }
        }
    };
    over.run_until_cancelled(writing).await;
    messages.close();
}

/// Reads messages until the output ends; why it did.
async fn read_messages(
    mut reader: MessageReader<OutputPipe>,
    (client, log, tasks): (&Arc<ServerLink>, &ProgramLogSource, &TaskTracker),
) -> String {
    let mut rate = MessageRate::new(Instant::now());
    loop {
        let next = match reader.next().await {
            Err(error) => return format!("its output cannot be read: {error}"),
            Ok(next) => next,
        };
        let (length, body) = match next {
            NextMessage::Body(body) => (body.len() as u64, Some(body)),
            NextMessage::Dropped { length, refused } => {
                let why = match refused {
                    Some(refused) => refused.to_string(),
                    None => format!("its answer of {length} bytes is too long, and was dropped"),
                };
                tracing::warn!(server = client.name, why, "a message of a language server was dropped");
                client.state().dropped += 1;
                client.connection.drop_answers(&why);
                (length, None)
            }
            NextMessage::End { is_partial: true } => {
                return "it closed its output in the middle of a message".to_owned();
            }
            NextMessage::End { is_partial: false } => return "it closed its output".to_owned(),
        };
        if let Err(why) = rate.count(length, Instant::now()) {
            return why;
        }
        let Some(body) = body else { continue };
        let read = if body.len() < LONG_MESSAGE {
            message::read(&body)
        } else {
            let reading = tokio::task::spawn_blocking(move || message::read(&body));
            reading.await.unwrap_or_else(|error| Err(error.to_string()))
        };
        match read {
            Ok(incoming) => {
                if !incoming::receive(client, incoming, log, tasks) {
                    return "it does not read its input".to_owned();
                }
            }
            Err(why) => tracing::debug!(why, "a message of a language server was passed over"),
        }
    }
}

async fn read_errors(
    mut errors: OutputPipe,
    (tail, log): (OutputTail, Arc<ProgramLogSource>),
    over: CancellationToken,
    said: CancellationToken,
) {
    let _said = said.drop_guard();
    let reading = async {
        let (mut text, mut buffer) = (Utf8Stream::default(), vec![0; 4096]);
        while let Ok(count @ 1..) = errors.read(&mut buffer).await {
            let text = text.push(&buffer[..count]);
            tail.push(&text);
            log.errors(&text);
        }
    };
    over.run_until_cancelled(reading).await;
}
