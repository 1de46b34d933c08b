//! The client side of the protocol: typed calls, and events.

mod calls;
mod replies;

use std::sync::atomic::{AtomicU64, Ordering};

use agentd_protocol::{
    lines::{LineSplitter, write_line},
    ui::UiResponse,
};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
    task::JoinSet,
};

use self::replies::{PendingCalls, ResponseBody, route};
// All commands: a new one has its line in `calls` alone.
pub use self::{calls::*, replies::EventLine};

/// The longest line taken from the daemon: 256 MiB. The event at the end of a run repeats all of its messages.
const MAX_LINE_BYTES: usize = 256 << 20;

/// How many events wait for us. After that, the connection is not read.
const WAITING_EVENTS: usize = 256;

/// How many commands wait to be written.
const WAITING_COMMANDS: usize = 16;

/// How much is read at once, in bytes.
const READ_BYTES: usize = 64 << 10;

/// The reason why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The daemon refused the command.
    #[error("{error}")]
    Refused {
        /// The error, for people.
        error: String,
        /// The kind of failure, for programs.
        code: Option<String>,
        /// What can be done about it.
        hint: Option<String>,
    },
    /// The daemon refuses the connection.
    #[error("{error}{}", hint.as_ref().map(|hint| format!("\n{hint}")).unwrap_or_default())]
    TurnedAway {
        /// The error, for people.
        error: String,
        /// What can be done about it.
        hint: Option<String>,
    },
    /// The connection ended before the answer.
    #[error("agentd ended before it answered `{command}`")]
    Ended {
        /// The command's name.
        command: &'static str,
    },
    /// The answer does not fit this version of the protocol.
    #[error(
        "agentd's answer to `{command}` cannot be read: {source}. Do agentd and agentctl come from the same build?"
    )]
    Unreadable {
        /// The command's name.
        command: &'static str,
        /// What is wrong with the answer.
        source: serde_json::Error,
    },
}

/// The sending side of a connection to a daemon.
pub struct Client {
    commands: mpsc::Sender<Vec<u8>>,
    pending: PendingCalls,
    next_id: AtomicU64,
}

/// The receiving side of a connection.
pub struct IncomingEvents {
    /// The events in their order; ends with the connection.
    pub events: mpsc::Receiver<EventLine>,
    /// The tasks that read and write; dropping them ends the connection.
    tasks: JoinSet<()>,
}

impl IncomingEvents {
    /// Drops the receiver of events, so that the daemon never waits for us. The connection lasts as long as the result.
    pub fn discard(self) -> JoinSet<()> {
        self.tasks
    }
}

impl Client {
    /// Starts speaking to a daemon over its two streams. The daemon's input ends when the client is dropped.
    pub fn start(
        input: impl AsyncWrite + Unpin + Send + 'static,
        output: impl AsyncRead + Unpin + Send + 'static,
    ) -> (Self, IncomingEvents) {
        let (commands, lines) = mpsc::channel(WAITING_COMMANDS);
        let (events, receiver) = mpsc::channel(WAITING_EVENTS);
        let pending = PendingCalls::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(write(input, lines));
        tasks.spawn(read(output, pending.clone(), events));
        let client = Self { commands, pending, next_id: AtomicU64::new(1) };
        (client, IncomingEvents { events: receiver, tasks })
    }

    /// Sends a command and waits for its answer. Events must be received meanwhile where more than a few come before
    /// the answer.
    ///
    /// # Errors
    /// When the daemon refuses, ends, or answers with something else.
    pub async fn call<C: Call>(&self, params: &C::Params) -> Result<C::Data, CallError> {
        self.call_to::<C>(None, params).await
    }

    /// As [`Client::call`], for a session that is not the connection's current one.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn call_in<C: Call>(&self, session: &str, params: &C::Params) -> Result<C::Data, CallError> {
        self.call_to::<C>(Some(session), params).await
    }

    /// Answers a dialog; there is no response.
    ///
    /// # Errors
    /// When the connection has ended.
    pub async fn answer_question(&self, answer: &UiResponse) -> Result<(), CallError> {
        #[derive(Serialize)]
        struct Tagged<'a> {
            #[serde(rename = "type")]
            kind: &'static str,
            #[serde(flatten)]
            answer: &'a UiResponse,
        }
        const NAME: &str = UiResponse::TYPE;
        let line = serde_json::to_vec(&Tagged { kind: NAME, answer })
            .map_err(|source| CallError::Unreadable { command: NAME, source })?;
        let mut bytes = Vec::with_capacity(line.len() + 1);
        write_line(&line, &mut bytes);
        self.commands.send(bytes).await.map_err(|_| CallError::Ended { command: NAME })
    }

    /// Sends a command whose answer nobody waits for.
    ///
    /// # Errors
    /// When the connection has ended.
    pub async fn tell<C: Call>(&self, session: Option<&str>, params: &C::Params) -> Result<(), CallError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed).to_string();
        let line = encode::<C>(&id, session, params)
            .map_err(|source| CallError::Unreadable { command: C::NAME, source })?;
        self.commands.send(line).await.map_err(|_| CallError::Ended { command: C::NAME })
    }

    async fn call_to<C: Call>(
        &self,
        session: Option<&str>,
        params: &C::Params,
    ) -> Result<C::Data, CallError> {
        let ended = || match self.pending.farewell() {
            Some(ResponseBody { error, hint, .. }) => {
                CallError::TurnedAway { error: error.unwrap_or_default(), hint }
            }
            None => CallError::Ended { command: C::NAME },
        };
        let unreadable = |source| CallError::Unreadable { command: C::NAME, source };
        let id = self.next_id.fetch_add(1, Ordering::Relaxed).to_string();
        let line = encode::<C>(&id, session, params).map_err(unreadable)?;
        let answer = self.pending.expect(id);
        self.commands.send(line).await.map_err(|_| ended())?;
        let reply = answer.await.map_err(|_| ended())?;
        if !reply.success {
            let error = reply.error.unwrap_or_else(|| format!("agentd refused `{}`", C::NAME));
            return Err(CallError::Refused { error, code: reply.code, hint: reply.hint });
        }
        let data = reply.data.as_deref().map_or("null", RawValue::get);
        serde_json::from_str(data).map_err(unreadable)
    }
}

fn encode<C: Call>(
    id: &str,
    session: Option<&str>,
    params: &C::Params,
) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct Request<'a, P> {
        id: &'a str,
        #[serde(rename = "type")]
        name: &'static str,
        #[serde(rename = "sessionId", skip_serializing_if = "Option::is_none")]
        session: Option<&'a str>,
        #[serde(flatten)]
        params: &'a P,
    }
    let line = serde_json::to_vec(&Request { id, name: C::NAME, session, params })?;
    let mut bytes = Vec::with_capacity(line.len() + 1);
    write_line(&line, &mut bytes);
    Ok(bytes)
}

/// Writes lines. A failure means that the daemon is about to end, which the reading side reports.
async fn write(mut input: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        if input.write_all(&line).await.is_err() || input.flush().await.is_err() {
            break;
        }
    }
}

async fn read(mut output: impl AsyncRead + Unpin, pending: PendingCalls, events: mpsc::Sender<EventLine>) {
    let mut splitter = LineSplitter::new(MAX_LINE_BYTES);
    let mut buffer = vec![0; READ_BYTES];
    let mut lines = Vec::new();
    // A read error on a pipe counts as its end.
    while let Ok(count @ 1..) = output.read(&mut buffer).await {
        splitter.push(&buffer[..count], &mut lines);
        for line in lines.drain(..) {
            if let Some(event) = route(line, &pending) {
                // Reads on without a receiver of events: a daemon that ends still has some to write.
                let _ = events.send(event).await;
            }
        }
    }
    pending.end();
}

#[cfg(test)]
mod tests {
    use agentd_protocol::{
        command::{NoParams, SetModelParams},
        event::Event,
    };
    use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream, split};

    use super::*;

    struct Fake {
        lines: tokio::io::Lines<BufReader<tokio::io::ReadHalf<DuplexStream>>>,
        output: tokio::io::WriteHalf<DuplexStream>,
    }

    fn pair() -> (Client, IncomingEvents, Fake) {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (output, input) = split(ours);
        let (client, incoming) = Client::start(input, output);
        let (read, write) = split(theirs);
        (client, incoming, Fake { lines: BufReader::new(read).lines(), output: write })
    }

    impl Fake {
        async fn answer(&mut self, text: &str) {
            self.output.write_all(text.as_bytes()).await.unwrap();
        }
    }

    #[tokio::test]
    async fn answers_find_their_calls_in_any_order() {
        let (client, mut incoming, mut fake) = pair();
        let set = SetModelParams { provider: Some("p".into()), model_id: Some("m".into()) };
        let (abort, model, ()) =
            tokio::join!(client.call::<Abort>(&NoParams {}), client.call::<SetModel>(&set), async {
                assert_eq!(fake.lines.next_line().await.unwrap().unwrap(), r#"{"id":"1","type":"abort"}"#);
                let line = fake.lines.next_line().await.unwrap().unwrap();
                assert_eq!(line, r#"{"id":"2","type":"set_model","provider":"p","modelId":"m"}"#);
                fake.answer("{\"type\":\"agent_start\"}\nnoise\n").await;
                fake.answer(
                    "{\"id\":\"2\",\"type\":\"response\",\"command\":\"set_model\",\"success\":false,",
                )
                .await;
                fake.answer("\"error\":\"Model not found: p/m\",\"code\":\"no_model\",\"hint\":\"h\"}\n")
                    .await;
                fake.answer("{\"id\":\"1\",\"type\":\"response\",\"command\":\"abort\",\"success\":true}\n")
                    .await;
            },);
        abort.unwrap();
        let CallError::Refused { error, code, hint } = model.unwrap_err() else { panic!("not refused") };
        assert_eq!((error.as_str(), hint.as_deref()), ("Model not found: p/m", Some("h")));
        assert_eq!(code.as_deref(), Some("no_model"));
        let event = incoming.events.recv().await.unwrap();
        assert_eq!(event.text, r#"{"type":"agent_start"}"#);
        assert!(matches!(event.event(), Some(Event::AgentStart(_))));
    }

    #[tokio::test]
    async fn the_end_of_the_daemon_ends_calls_and_events() {
        let (client, mut incoming, fake) = pair();
        let call = client.call::<GetState>(&NoParams {});
        let (result, ()) = tokio::join!(call, async { drop(fake) });
        assert!(matches!(result.unwrap_err(), CallError::Ended { command: "get_state" }));
        assert_eq!(incoming.events.recv().await, None);
        let later = client.call::<GetState>(&NoParams {}).await;
        assert!(matches!(later.unwrap_err(), CallError::Ended { command: "get_state" }));
    }

    #[tokio::test]
    async fn an_answer_of_another_shape_is_no_result() {
        let (client, _incoming, mut fake) = pair();
        let (result, ()) = tokio::join!(client.call::<GetState>(&NoParams {}), async {
            fake.lines.next_line().await.unwrap().unwrap();
            fake.answer("{\"id\":\"1\",\"type\":\"response\",\"command\":\"get_state\",\"success\":true,\"data\":{}}\n").await;
        });
        let error = result.unwrap_err().to_string();
        assert!(error.contains("get_state") && error.contains("missing field"), "{error}");
    }
}
