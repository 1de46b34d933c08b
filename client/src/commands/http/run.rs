//! The run of a request: from the opened session to its last server-sent event.

use std::{convert::Infallible, time::Duration};

use agentd_protocol::{
    command::{NoParams, PromptParams},
    error::ErrorCode,
    prompt_records::PromptSession,
};
use futures::Stream;
use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame};
use serde_json::json;
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    super::headless_session::HeadlessSession,
    prompt_request::{OnDisconnect, PromptRequest},
    refusal::Refusal,
};
use crate::{
    cli::DaemonChoice,
    output::OutputChunk,
    rpc::{Abort, Client, EventLine, GetState, IncomingEvents, Prompt},
};

/// How many events wait for a client that reads slowly. After that, the session's events are not read.
const WAITING_EVENTS: usize = 64;

/// How many lines of an agentd of our own wait for the writer.
const WAITING_LINES: usize = 16;

/// How much of what it says is kept for a client, in bytes.
const MOST_KEPT_BYTES: usize = 4096;

/// How often a client gets a comment where nothing happens, so that proxies keep the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How long a run that nobody waits for may take to stop.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// A run that was accepted: its first event is known.
pub(super) struct Run {
    session: HeadlessSession,
    on_disconnect: OnDisconnect,
    head: Bytes,
    /// Whether the model is asked; if not, there is nothing more to come.
    is_at_work: bool,
}

impl Run {
    /// Opens the session and sends the prompt.
    ///
    /// # Errors
    /// The refusal for the client.
    pub(super) async fn begin(
        request: PromptRequest,
        mut choice: DaemonChoice,
        notices: &mpsc::Sender<OutputChunk>,
    ) -> Result<Self, Refusal> {
        if request.on_disconnect == OnDisconnect::Detach {
            if choice.private {
                let error = "\"onDisconnect\":\"detach\" needs the daemon that all clients share, and --private was given";
                return Err(Refusal::bad_request(error));
            }
            // An agentd of our own would end with the request.
            choice.shared = true;
        }
        if let Some(cwd) = &request.cwd
            && !tokio::fs::metadata(cwd).await.is_ok_and(|found| found.is_dir())
        {
            return Err(Refusal::bad_request(format!(
                "Invalid field \"cwd\": there is no folder {}",
                cwd.display()
            )));
        }
        let (lines, receiver) = mpsc::channel(WAITING_LINES);
        let said = tokio::spawn(pass_on(receiver, notices.clone()));
        let opened = HeadlessSession::open(choice, request.cwd, request.args, &lines).await;
        drop(lines);
        let mut session = match opened {
            Ok(session) => session,
            Err(fault) => return Err(Refusal::not_opened(fault, &said.await.unwrap_or_default())),
        };
        let (client, _) = session.parts();
        match submit(client, request.params).await {
            Ok((head, is_at_work)) => {
                Ok(Self { session, on_disconnect: request.on_disconnect, head, is_at_work })
            }
            Err(error) => {
                session.leave(STOP_GRACE).await;
                Err(error)
            }
        }
    }

    /// Sends the events to the client, and ends with the run, with the client, or with `stop`.
    pub(super) async fn follow(mut self, events: mpsc::Sender<Bytes>, stop: CancellationToken) {
        let (client, incoming) = self.session.parts();
        let end = if events.send(self.head).await.is_err() {
            End::ClientLeft
        } else if self.is_at_work {
            forward(incoming, &events, &stop).await
        } else {
            End::Settled
        };
        match end {
            End::Settled => {}
            End::ClientLeft | End::Stopped if self.on_disconnect == OnDisconnect::Detach => {}
            End::ClientLeft | End::Stopped => stop_run(client, incoming).await,
            End::Lost => {
                let lost = event(
                    "error",
                    &json!({"error": "agentd ended before the run was over", "code": ErrorCode::Internal})
                        .to_string(),
                );
                // The client may have left meanwhile.
                let _ = events.send(lost).await;
            }
        }
        self.session.leave(STOP_GRACE).await;
    }
}

/// Passes on what an agentd of our own says, to its end. Gives the beginning of it: the reason, where it refuses to start.
async fn pass_on(mut lines: mpsc::Receiver<OutputChunk>, notices: mpsc::Sender<OutputChunk>) -> String {
    let mut kept = Vec::new();
    while let Some(chunk) = lines.recv().await {
        if let OutputChunk::Err(bytes) = &chunk {
            kept.extend_from_slice(&bytes[..bytes.len().min(MOST_KEPT_BYTES - kept.len())]);
        }
        // Fails only when the writer has ended, and then nobody reads it.
        let _ = notices.send(chunk).await;
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// Sends the prompt. Gives the first event, and whether the model is asked.
async fn submit(client: &Client, params: PromptParams) -> Result<(Bytes, bool), Refusal> {
    let state = client.call::<GetState>(&NoParams {}).await?;
    let session = PromptSession {
        id: state.session_id,
        file: state.session_file,
        cwd: state.cwd.unwrap_or_default(),
        model: Some(state.model.name()),
        thinking_level: state.thinking_level,
    };
    let accepted = client.call::<Prompt>(&params).await?;
    let session = serde_json::to_string(&session).map_err(|error| Refusal::broken(&error.to_string()))?;
    Ok((event("session", &session), accepted.agent_invoked != Some(false)))
}

/// The reason why no more events are sent.
enum End {
    Settled,
    ClientLeft,
    Stopped,
    Lost,
}

async fn forward(
    incoming: &mut IncomingEvents,
    events: &mpsc::Sender<Bytes>,
    stop: &CancellationToken,
) -> End {
    loop {
        let line = tokio::select! {
            biased;
            () = stop.cancelled() => return End::Stopped,
            () = events.closed() => return End::ClientLeft,
            line = incoming.events.recv() => line,
            () = sleep(KEEP_ALIVE) => {
                if events.send(Bytes::from_static(b": \n\n")).await.is_err() {
                    return End::ClientLeft;
                }
                continue;
            }
        };
        let Some(EventLine { kind, text }) = line else { return End::Lost };
        let sent = tokio::select! {
            biased;
            () = stop.cancelled() => return End::Stopped,
            sent = events.send(event(&kind, &text)) => sent,
        };
        match sent {
            Err(_) => return End::ClientLeft,
            // It comes once, and nothing of the run comes after it.
            Ok(()) if kind == "prompt_result" => return End::Settled,
            Ok(()) => {}
        }
    }
}

/// Stops the run, and waits until it has ended, so that an agentd of our own stores what there is.
async fn stop_run(client: &Client, incoming: &mut IncomingEvents) {
    let stopped = async {
        // Where this fails, the daemon is gone, and the run with it.
        if client.tell::<Abort>(None, &NoParams {}).await.is_ok() {
            while incoming.events.recv().await.is_some_and(|line| line.kind != "prompt_result") {}
        }
    };
    // A run that does not stop in time is stopped by the end of its agentd, or goes on stopping in the shared daemon.
    let _ = timeout(STOP_GRACE, stopped).await;
}

/// A server-sent event. A JSON text on one line holds no line feed.
fn event(kind: &str, data: &str) -> Bytes {
    format!("event: {kind}\ndata: {data}\n\n").into()
}

/// The body of an answer.
pub(super) fn body(
    events: mpsc::Receiver<Bytes>,
) -> StreamBody<impl Stream<Item = Result<Frame<Bytes>, Infallible>>> {
    StreamBody::new(futures::stream::unfold(events, async |mut events| {
        let bytes = events.recv().await?;
        Some((Ok(Frame::data(bytes)), events))
    }))
}

/// A channel for the events of one request.
pub(super) fn channel() -> (mpsc::Sender<Bytes>, mpsc::Receiver<Bytes>) {
    mpsc::channel(WAITING_EVENTS)
}
