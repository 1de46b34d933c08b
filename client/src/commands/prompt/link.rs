//! The agentd that works on the prompt: our own, or a session of the daemon that all clients share. A shared session is
//! followed without losing a line or seeing one twice.

use std::time::Duration;

use agentd_connect::environment;
use agentd_protocol::{
    command::NoParams,
    daemon::{AttachSessionParams, CloseSessionParams, EndMode, OpenSessionParams, Position},
    event::Event,
    message::{AssistantMessage, Message},
    ui::ExtensionUiRequest,
};
use serde::Deserialize;
use tokio::{net::UnixStream, sync::mpsc};

use super::request::PromptRequest;
use crate::{
    exit::{Exit, Fault},
    output::OutputChunk,
    private_daemon::{PrivateDaemon, StartOptions},
    rpc::{
        Abort, AttachSession, CallError, Client, CloseSession, EventLine, GetMessages, IncomingEvents,
        OpenSession,
    },
    shared_daemon::{ChosenDaemon, DaemonConnection, Endpoint},
};

/// A connection to the agentd that works on the prompt.
pub(crate) enum SessionLink {
    Private(Box<PrivateDaemon>),
    Shared(Box<SharedLink>),
}

pub(crate) struct SharedLink {
    connection: DaemonConnection,
    followed: FollowedSession,
    /// Whether the session ends with us.
    ephemeral: bool,
    /// Whether the running work is another client's, and ours waits for its end.
    queued: bool,
    /// Questions that were open when we came.
    pending_ui: Vec<ExtensionUiRequest>,
}

impl SessionLink {
    /// Starts an agentd of our own, or opens a session of the daemon.
    ///
    /// # Errors
    /// When there is no agentd, and when the daemon does not open the session.
    pub(crate) async fn open(
        request: &PromptRequest,
        notices: &mpsc::Sender<OutputChunk>,
    ) -> Result<Self, Fault> {
        match ChosenDaemon::choose(request.choice).await? {
            ChosenDaemon::Private => {
                let start = StartOptions { args: request.daemon_args.clone(), cwd: request.cwd.clone() };
                Ok(Self::Private(Box::new(PrivateDaemon::start(start, notices.clone())?)))
            }
            ChosenDaemon::Shared(endpoint, stream) => {
                Ok(Self::Shared(Box::new(SharedLink::open(request, &endpoint, stream, notices).await?)))
            }
        }
    }

    /// Both directions of the connection, and the position in a shared session.
    pub(crate) fn parts(&mut self) -> (&Client, &mut IncomingEvents, Option<&mut FollowedSession>) {
        match self {
            Self::Private(daemon) => (&daemon.client, &mut daemon.incoming, None),
            Self::Shared(shared) => {
                (&shared.connection.client, &mut shared.connection.incoming, Some(&mut shared.followed))
            }
        }
    }

    /// The questions that were open when we came; none the second time.
    pub(crate) fn take_pending_ui(&mut self) -> Vec<ExtensionUiRequest> {
        match self {
            Self::Private(_) => Vec::new(),
            Self::Shared(shared) => std::mem::take(&mut shared.pending_ui),
        }
    }

    /// Ends an agentd of our own, killing it after `grace`; leaves a shared session.
    pub(crate) async fn close(self, grace: Duration) {
        match self {
            Self::Private(daemon) => daemon.close(grace).await,
            Self::Shared(shared) => shared.leave(false, grace).await,
        }
    }

    /// As [`SessionLink::close`], but stops our work: nobody waits for the answer.
    pub(crate) async fn abandon(self, grace: Duration) {
        match self {
            Self::Private(daemon) => daemon.close(grace).await,
            Self::Shared(shared) => shared.leave(true, grace).await,
        }
    }

    /// The fault of an agentd that closed its output before its first answer.
    pub(crate) async fn not_started(self, grace: Duration) -> Fault {
        match self {
            Self::Private(daemon) => daemon.not_started(grace).await,
            Self::Shared(_) => Fault::new(Exit::NoDaemon, SHARED_DIED),
        }
    }

    /// The text about an agentd that closed its output before the run was over.
    pub(crate) async fn died(self, grace: Duration) -> String {
        match self {
            Self::Private(daemon) => daemon.died(grace).await,
            Self::Shared(_) => SHARED_DIED.to_owned(),
        }
    }
}

const SHARED_DIED: &str = "agentctl: the daemon ended before the answer was complete; `agentctl logs` may say why. What \
                           was finished is saved: `agentctl prompt --continue` goes on from there.";

/// The fault where the daemon does not open the session.
fn not_opened(error: &CallError) -> Fault {
    match error {
        CallError::Refused { error, code: Some(code), .. } if code == "busy" => {
            let text = format!(
                "agentctl: {error} --follow-up lets the message wait for the end of that work; `agentctl attach` joins it."
            );
            Fault::new(Exit::Failed, text)
        }
        CallError::Refused { code: Some(code), .. } if code == "invalid_field" => {
            Fault { exit: Exit::Usage, ..Fault::from(error) }
        }
        CallError::Refused { code: Some(code), .. } if code == "shutting_down" => {
            Fault { exit: Exit::Ending, ..Fault::from(error) }
        }
        error => Fault::from(error),
    }
}

impl SharedLink {
    async fn open(
        request: &PromptRequest,
        endpoint: &Endpoint,
        stream: UnixStream,
        notices: &mpsc::Sender<OutputChunk>,
    ) -> Result<Self, Fault> {
        let connection = DaemonConnection::over(stream);
        connection.hello(endpoint, request.can_answer).await?;
        let params = OpenSessionParams {
            cwd: request.folder.display().to_string(),
            args: request.daemon_args.clone(),
            env: Some(environment()),
            if_idle: (!request.follow_up).then_some(true),
            ..OpenSessionParams::default()
        };
        let opened = connection.client.call::<OpenSession>(&params).await;
        let opened = opened.map_err(|error| not_opened(&error))?;
        for warning in &opened.warnings {
            // The writer ends early only when stdout is closed, which is noticed later.
            let _ = notices.send(OutputChunk::Err(format!("Warning: {warning}\n").into_bytes())).await;
        }
        let busy = opened.state.is_streaming;
        let session_id = opened.state.session_id;
        if busy && !request.follow_up {
            return Err(Fault::new(
                Exit::Failed,
                format!(
                    "agentctl: the session {session_id} is at work for another client. --follow-up lets the message wait \
                     for the end of that work; `agentctl attach {session_id}` joins it."
                ),
            ));
        }
        let followed = FollowedSession::from(session_id, opened.epoch, opened.seq);
        let pending_ui = opened.pending_ui;
        Ok(Self { connection, followed, ephemeral: request.ephemeral, queued: busy, pending_ui })
    }

    /// Leaves the session. Failures are ignored: nobody waits for them.
    async fn leave(self, stop: bool, grace: Duration) {
        let Self { connection, followed, ephemeral, queued, pending_ui: _ } = self;
        let DaemonConnection { client, incoming } = connection;
        // Events must not hold up the answers.
        let tasks = incoming.discard();
        let leaving = async {
            if stop && !queued {
                let _ = client.call::<Abort>(&NoParams {}).await;
            }
            if ephemeral {
                let params =
                    CloseSessionParams { session_id: followed.id().to_owned(), mode: EndMode::Abort };
                let _ = client.call::<CloseSession>(&params).await;
            }
        };
        let _ = tokio::time::timeout(grace, leaving).await;
        drop(tasks);
    }
}

/// A session that is followed, and the position in its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FollowedSession {
    id: String,
    epoch: String,
    /// The number of the last event.
    seq: u64,
}

/// The meaning of a line for a follower.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FollowedLine {
    /// An event of the session, as its only client would get it.
    Event(EventLine),
    /// The daemon dropped events from here on.
    Lagged,
    /// Another client closed the session.
    Closed,
    /// A line about something else.
    Other,
}

/// The outcome of attaching again.
#[derive(Debug)]
pub(crate) enum Reattached {
    /// All missed events follow.
    Whole,
    /// Some events are lost.
    Missed {
        events: u64,
        /// `None` while a run goes on, else the last answer, if there is one.
        ended: Option<Option<Box<AssistantMessage>>>,
    },
}

impl FollowedSession {
    pub(crate) fn from(id: String, epoch: String, seq: u64) -> Self {
        Self { id, epoch, seq }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Takes a line; removes the session's name and the number from an event.
    pub(crate) fn take(&mut self, line: EventLine) -> FollowedLine {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Of {
            session_id: Option<String>,
            seq: Option<u64>,
        }
        // An unreadable line belongs to no session.
        let Ok(of) = serde_json::from_str::<Of>(&line.text) else { return FollowedLine::Other };
        if of.session_id.as_deref() != Some(self.id.as_str()) {
            return FollowedLine::Other;
        }
        let Some(seq) = of.seq else {
            return match line.event() {
                Some(Event::Lagged(_)) => FollowedLine::Lagged,
                Some(Event::SessionClosed(_)) => FollowedLine::Closed,
                _ => FollowedLine::Other,
            };
        };
        if seq <= self.seq {
            return FollowedLine::Other;
        }
        self.seq = seq;
        if line.kind == "lagged" {
            // Another program changed the session's file: earlier events no longer describe its content.
            return FollowedLine::Lagged;
        }
        let tail = format!(",\"sessionId\":\"{}\",\"seq\":{seq}}}", self.id);
        let text = match line.text.strip_suffix(&tail) {
            Some(rest) => format!("{rest}}}"),
            None => line.text,
        };
        FollowedLine::Event(EventLine { kind: line.kind, text })
    }

    /// Attaches again after a lag.
    ///
    /// # Errors
    /// When the daemon refuses or is gone.
    pub(crate) async fn resume(&mut self, client: &Client) -> Result<Reattached, CallError> {
        let since = Some(Position { epoch: self.epoch.clone(), seq: self.seq });
        let params = AttachSessionParams { session_id: self.id.clone(), since };
        let attached = client.call::<AttachSession>(&params).await?;
        if attached.replayed {
            return Ok(Reattached::Whole);
        }
        let events = attached.seq.saturating_sub(self.seq);
        self.seq = attached.seq;
        let ended = if attached.state.is_streaming {
            None
        } else {
            let messages = client.call::<GetMessages>(&NoParams {}).await?.messages;
            Some(messages.iter().rev().find_map(|message| match message.get() {
                Some(Message::Assistant(answer)) => Some(Box::new(answer.clone())),
                _ => None,
            }))
        };
        Ok(Reattached::Missed { events, ended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> EventLine {
        let kind: serde_json::Value = serde_json::from_str(text).unwrap();
        EventLine { kind: kind["type"].as_str().unwrap().to_owned(), text: text.to_owned() }
    }

    #[test]
    fn lines_are_those_of_a_session_of_our_own_and_come_once() {
        let mut followed = FollowedSession::from("s".into(), "e".into(), 4);
        let event = line(r#"{"type":"agent_start","sessionId":"s","seq":5}"#);
        assert_eq!(followed.take(event.clone()), FollowedLine::Event(line(r#"{"type":"agent_start"}"#)));
        assert_eq!(followed.take(event), FollowedLine::Other);
        assert_eq!(
            followed.take(line(r#"{"type":"agent_start","sessionId":"other","seq":9}"#)),
            FollowedLine::Other
        );
        assert_eq!(
            followed.take(line(r#"{"type":"lagged","sessionId":"s","fromSeq":6}"#)),
            FollowedLine::Lagged
        );
        let started_over = line(r#"{"type":"lagged","fromSeq":6,"sessionId":"s","seq":6}"#);
        assert_eq!(FollowedSession::from("s".into(), "e".into(), 5).take(started_over), FollowedLine::Lagged);
        assert_eq!(followed.take(line(r#"{"type":"session_closed","sessionId":"s"}"#)), FollowedLine::Closed);
        assert_eq!(followed.take(line(r#"{"type":"session_closed","sessionId":"t"}"#)), FollowedLine::Other);
        assert_eq!(followed, FollowedSession::from("s".into(), "e".into(), 5));
    }
}
