//! Who works on the prompt: an agentd of our own, or a session of the daemon that all clients share.

use std::time::Duration;

use agentd_connect::environment;
use agentd_protocol::{
    command::NoParams,
    daemon::{CloseSessionParams, EndMode, OpenSessionParams},
};
use tokio::{net::UnixStream, sync::mpsc};

use super::{request::Request, shared::Followed};
use crate::{
    commands::one_call,
    connect::{
        Daemon, Start,
        socket::{Connection, Endpoint, Way},
    },
    exit::{Exit, Fault},
    output::Chunk,
    rpc::{Abort, CallError, Client, CloseSession, Incoming, OpenSession},
};

/// The way to whoever works on the prompt.
pub(crate) enum Link {
    /// An agentd of our own, which ends with us.
    Private(Box<Daemon>),
    /// A session of the shared daemon.
    Shared(Box<Shared>),
}

/// A session of the daemon.
pub(crate) struct Shared {
    connection: Connection,
    followed: Followed,
    /// Whether the session is to be gone when we are.
    ephemeral: bool,
    /// Whether the work is someone else's, and ours only comes after it.
    queued: bool,
}

impl Link {
    /// Starts an agentd, or opens a session of the daemon, as the request has it.
    ///
    /// # Errors
    /// When there is no agentd, and when the daemon does not open the session.
    pub(crate) async fn open(request: &Request, notices: &mpsc::Sender<Chunk>) -> Result<Self, Fault> {
        match Way::choose(request.choice).await? {
            Way::Private => {
                let start = Start { args: request.daemon_args.clone(), cwd: request.cwd.clone() };
                Ok(Self::Private(Box::new(Daemon::start(start, notices.clone())?)))
            }
            Way::Shared(endpoint, stream) => {
                Ok(Self::Shared(Box::new(Shared::open(request, &endpoint, stream, notices).await?)))
            }
        }
    }

    /// Both directions, and what is known of the session where it is one of several.
    pub(crate) fn parts(&mut self) -> (&Client, &mut Incoming, Option<&mut Followed>) {
        match self {
            Self::Private(daemon) => (&daemon.client, &mut daemon.incoming, None),
            Self::Shared(shared) => {
                (&shared.connection.client, &mut shared.connection.incoming, Some(&mut shared.followed))
            }
        }
    }

    /// Ends what is to end with us, within `grace`: an agentd of our own is killed then.
    pub(crate) async fn close(self, grace: Duration) {
        match self {
            Self::Private(daemon) => daemon.close(grace).await,
            Self::Shared(shared) => shared.leave(false, grace).await,
        }
    }

    /// As [`Link::close`], and nobody wants the rest of the answer: work that is ours is stopped.
    pub(crate) async fn abandon(self, grace: Duration) {
        match self {
            Self::Private(daemon) => daemon.close(grace).await,
            Self::Shared(shared) => shared.leave(true, grace).await,
        }
    }

    /// Why an agentd that closed its output before it answered anything is gone.
    pub(crate) async fn not_started(self, grace: Duration) -> Fault {
        match self {
            Self::Private(daemon) => daemon.not_started(grace).await,
            Self::Shared(_) => Fault::new(Exit::NoDaemon, SHARED_DIED),
        }
    }

    /// Why an agentd that closed its output before it was done is gone.
    pub(crate) async fn died(self, grace: Duration) -> String {
        match self {
            Self::Private(daemon) => daemon.died(grace).await,
            Self::Shared(_) => SHARED_DIED.to_owned(),
        }
    }
}

const SHARED_DIED: &str = "agentctl: the daemon ended before the answer was complete; `agentctl logs` may say why. What \
                           was finished is saved: `agentctl prompt --continue` goes on from there.";

/// Why the session cannot be had as the command line has it.
fn not_opened(error: &CallError) -> Fault {
    match error {
        CallError::Refused { error, code: Some(code), .. } if code == "busy" => {
            let text = format!(
                "agentctl: {error} --follow-up lets the message wait for the end of that work; `agentctl attach` joins it."
            );
            Fault::new(Exit::Failed, text)
        }
        CallError::Refused { code: Some(code), .. } if code == "invalid_field" => {
            Fault { exit: Exit::Usage, ..one_call::fault(error) }
        }
        CallError::Refused { code: Some(code), .. } if code == "shutting_down" => {
            Fault { exit: Exit::Ending, ..one_call::fault(error) }
        }
        error => one_call::fault(error),
    }
}

impl Shared {
    async fn open(
        request: &Request,
        endpoint: &Endpoint,
        stream: UnixStream,
        notices: &mpsc::Sender<Chunk>,
    ) -> Result<Self, Fault> {
        let connection = Connection::over(stream);
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
            // The writer ends early only when stdout is closed, which is noticed while the answer is awaited.
            let _ = notices.send(Chunk::Err(format!("Warning: {warning}\n").into_bytes())).await;
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
        let followed = Followed::from(session_id, opened.epoch, opened.seq);
        Ok(Self { connection, followed, ephemeral: request.ephemeral, queued: busy })
    }

    /// Leaves the session; a failure on the way out has nobody left to be told.
    async fn leave(self, stop: bool, grace: Duration) {
        let Self { connection, followed, ephemeral, queued } = self;
        let Connection { client, incoming } = connection;
        // Our reading must not hold up the answers.
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
