//! Servers that agentd starts, and speaks with through their standard input and output.
//!
//! Each has a process group of its own under the process guard: it ends with its connection, with everything that it started, and with the
//! daemon however that ends.

use std::{sync::Arc, time::Duration};

use agentd_memory::{MemoryAccount, MemoryPurpose};
use agentd_process::{
    CommandSpec, InputPipe, Launcher, OutputPipe, Process, ProcessGroup, ProcessLimits, Utf8Stream,
};
use agentd_program_log::OutputTail;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::mpsc,
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    line_reader::{LineReader, MAX_LINE_BYTES, NextLine},
    message::{self, Outgoing},
    peer::{Peer, PeerHandler, PeerTransport, RequestError},
    transport::Transport,
};

/// Time to end after the input was closed.
const INPUT_CLOSED_WAIT: Duration = Duration::from_millis(500);

/// Time to end after SIGTERM.
const TERMINATE_WAIT: Duration = Duration::from_secs(2);

/// Time to read what a server has written before its end.
const LAST_OUTPUT_WAIT: Duration = Duration::from_millis(500);

/// Lines from this length on are parsed on a thread for blocking work.
const LONG_LINE: usize = 256 << 10;

/// Processes of a server: more than any needs, and few enough that the machine stays usable.
const MAX_PROCESSES: u64 = 2048;

/// Starts a server. Its tasks belong to `tasks` and end with the connection; what it sends is charged to the account.
///
/// # Errors
/// Why it could not be started.
pub(crate) async fn start(
    command: CommandSpec,
    (launcher, memory): (&Launcher, &MemoryAccount),
    tasks: &TaskTracker,
    handler: Arc<dyn PeerHandler>,
) -> Result<Transport, String> {
    let group = launcher.group();
    group.set_limits(ProcessLimits { processes: Some(MAX_PROCESSES), ..ProcessLimits::default() });
    let mut process = group.spawn(command).await.map_err(|error| error.to_string())?;
    let pid = process.pid();
    let (Some(input), Some(output), Some(errors)) =
        (process.take_input(), process.take_output(), process.errors.take())
    else {
        return Err("its standard streams are not there".to_owned());
    };
    let transport = PeerTransport { tells_cancellation: true, tasks: tasks.clone() };
    let (peer, messages) = Peer::new(Arc::clone(&handler), transport);
    let (over, gone) = (CancellationToken::new(), CancellationToken::new());
    // Fire at the end of the output, and of the errors.
    let (read, said) = (CancellationToken::new(), CancellationToken::new());
    let tail = OutputTail::default();
    tasks.spawn(write_messages(messages, input, over.clone()));
    tasks.spawn(read_errors(errors, (tail.clone(), handler), over.clone(), said.clone()));
    tasks.spawn({
        let (peer, over, read) = (peer.clone(), over.clone(), read.clone());
        let lines = LineReader::new(output, memory.open(MemoryPurpose::Servers));
        async move {
            let reason = read_messages(lines, &peer, &over).await;
            read.cancel();
            // How it ended says more than that it did, and is known in a moment.
            let _ = timeout(LAST_OUTPUT_WAIT, over.cancelled()).await;
            peer.close(&reason);
            over.cancel();
        }
    });
    tasks.spawn({
        let (peer, over, gone) = (peer.clone(), over.clone(), gone.clone());
        async move {
            watch(process, &group, &peer, &over, (&read, &said), &tail).await;
            gone.cancel();
        }
    });
    Ok(Transport { peer, pid, over, gone })
}

/// Waits for the end of the server or of the connection, and then for the end of all its processes.
async fn watch(
    process: Process,
    group: &ProcessGroup,
    peer: &Peer,
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
            let what = match (status.signal, status.code) {
                (Some(signal), _) => format!("the server was ended by signal {signal}"),
                (None, code) => format!("the server ended with code {code}"),
            };
            peer.close(&tail.explain(what));
            over.cancel();
        }
        () = over.cancelled() => {
            peer.close(&tail.explain("the connection was closed".to_owned()));
            // Its input was closed with the writer.
            let _ = timeout(INPUT_CLOSED_WAIT, process.wait()).await;
        }
    }
    group.terminate(TERMINATE_WAIT).await;
}

/// Writes what is to be sent, and closes the server's input at the end.
async fn write_messages(
    mut messages: mpsc::Receiver<Outgoing>,
    mut input: InputPipe,
    over: CancellationToken,
) {
    let writing = async {
        while let Some(message) = messages.recv().await {
            if let Err(error) = input.write_all(&message.line).await {
                // A server that has ended is noticed by its end.
                tracing::debug!(%error, "cannot write to an MCP server");
                break;
            }
        }
    };
    over.run_until_cancelled(writing).await;
}

/// Reads messages until the output ends; why it did.
async fn read_messages(mut lines: LineReader<OutputPipe>, peer: &Peer, over: &CancellationToken) -> String {
    loop {
        let next = match over.run_until_cancelled(lines.next()).await {
            None => return "the connection was closed".to_owned(),
            Some(Err(error)) => return format!("its output cannot be read: {error}"),
            Some(Ok(next)) => next,
        };
        match next {
            NextLine::Line(line) => receive(line, peer).await,
            NextLine::Dropped { id, refused } => {
                let error =
                    refused.map_or(RequestError::TooLong { limit: MAX_LINE_BYTES }, RequestError::NoMemory);
                tracing::warn!(%error, "a line of an MCP server was dropped");
                if let Some(id) = id {
                    peer.fail(id, error);
                }
            }
            NextLine::End { is_partial: true } => {
                return "the server closed its output in the middle of a message".to_owned();
            }
            NextLine::End { is_partial: false } => return "the server closed its output".to_owned(),
        }
    }
}

async fn receive(line: Vec<u8>, peer: &Peer) {
    let read = if line.len() < LONG_LINE {
        message::read(&line)
    } else {
        let reading = tokio::task::spawn_blocking(move || message::read(&line));
        reading.await.unwrap_or_else(|error| Err(error.to_string()))
    };
    match read {
        Ok(incoming) => peer.receive(incoming, None),
        Err(why) => tracing::debug!(why, "a line of an MCP server was passed over"),
    }
}

async fn read_errors(
    mut errors: OutputPipe,
    (tail, handler): (OutputTail, Arc<dyn PeerHandler>),
    over: CancellationToken,
    said: CancellationToken,
) {
    let _said = said.drop_guard();
    let reading = async {
        let (mut text, mut buffer) = (Utf8Stream::default(), vec![0; 4096]);
        while let Ok(count @ 1..) = errors.read(&mut buffer).await {
            let text = text.push(&buffer[..count]);
            tail.push(&text);
            handler.errors(&text);
        }
    };
    over.run_until_cancelled(reading).await;
}
