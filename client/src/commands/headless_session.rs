//! A session that a program works in: nobody is asked anything, and the end of every prompt is told.

use std::{
    env, io,
    path::{Path, PathBuf},
    time::Duration,
};

use agentd_connect::{ConnectError, SessionOpening, environment};
use agentd_protocol::daemon::{ClientCapabilities, HelloParams, OpenSessionParams, PROTOCOL, Role};
use tokio::{io::AsyncReadExt as _, sync::mpsc};

use crate::{
    cli::DaemonChoice,
    exit::{Exit, Fault},
    output::OutputChunk,
    private_daemon::{PrivateDaemon, StartOptions},
    rpc::{CallError, Client, Hello, IncomingEvents},
    shared_daemon::{ChosenDaemon, client_info},
};

/// Dialogs take their defaults.
const NO_UI: &str = "--no-ui";

/// How long an agentd of our own that refuses to start may take to say why.
const START_GRACE: Duration = Duration::from_millis(300);

const CAPABILITIES: ClientCapabilities = ClientCapabilities {
    sessions: false,
    ui: false,
    permissions: false,
    cumulative: false,
    agent: false,
    prompt_result: true,
    message_ids: false,
};

/// The session, in an agentd of our own or in the daemon that all clients share.
pub(super) enum HeadlessSession {
    Private(Box<PrivateDaemon>),
    Shared(Client, IncomingEvents),
}

/// The daemon ended, or closed the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lost;

impl HeadlessSession {
    /// Opens a session by flags of `agentd --stdio`. Warnings and what an agentd of our own says go to `notices`.
    ///
    /// # Errors
    /// When there is no agentd, and when it does not open the session.
    pub(super) async fn open(
        choice: DaemonChoice,
        cwd: Option<PathBuf>,
        args: impl IntoIterator<Item = String>,
        notices: &mpsc::Sender<OutputChunk>,
    ) -> Result<Self, Fault> {
        let args: Vec<String> = [NO_UI.to_owned()].into_iter().chain(args).collect();
        match ChosenDaemon::choose(choice).await? {
            ChosenDaemon::Private => {
                let daemon = PrivateDaemon::start(StartOptions { args, cwd }, notices.clone())?;
                let hello = HelloParams {
                    protocol: PROTOCOL,
                    client: Some(client_info()),
                    capabilities: CAPABILITIES,
                    role: Role::Control,
                };
                match daemon.client.call::<Hello>(&hello).await {
                    Ok(_) => Ok(Self::Private(Box::new(daemon))),
                    Err(CallError::Ended { .. }) => Err(daemon.not_started(START_GRACE).await),
                    Err(error) => Err(error.into()),
                }
            }
            ChosenDaemon::Shared(endpoint, stream) => {
                let opened = opening(cwd.as_deref(), args, CAPABILITIES)?.open(&endpoint, stream).await?;
                for warning in opened.warnings {
                    // Fails only when the writer has ended, and then nobody reads warnings.
                    let _ =
                        notices.send(OutputChunk::Err(format!("Warning: {warning}\n").into_bytes())).await;
                }
                let (read, write) = opened.stream.into_split();
                let (client, incoming) = Client::start(write, io::Cursor::new(opened.rest).chain(read));
                Ok(Self::Shared(client, incoming))
            }
        }
    }

    /// Both directions of the connection.
    pub(super) fn parts(&mut self) -> (&Client, &mut IncomingEvents) {
        match self {
            Self::Private(daemon) => (&daemon.client, &mut daemon.incoming),
            Self::Shared(client, incoming) => (client, incoming),
        }
    }

    /// Ends an agentd of our own, killing it after `grace`, or leaves the shared daemon.
    pub(super) async fn leave(self, grace: Duration) {
        if let Self::Private(daemon) = self {
            daemon.close(grace).await;
        }
    }

    /// The fault of a daemon that is [`Lost`].
    pub(super) async fn lost(self, grace: Duration) -> Fault {
        let message = match self {
            Self::Private(daemon) => daemon.died(grace).await,
            Self::Shared(..) => {
                "agentctl: the connection to the session ended. What was finished is saved: `agentctl prompt \
                                 --continue` goes on from there."
                    .to_owned()
            }
        };
        Fault::new(Exit::NoDaemon, message)
    }
}

/// The commands that open a session of the shared daemon, in `cwd` or in our folder.
///
/// # Errors
/// When our folder cannot be read.
pub(super) fn opening(
    cwd: Option<&Path>,
    args: Vec<String>,
    capabilities: ClientCapabilities,
) -> Result<SessionOpening, Fault> {
    let cwd = match cwd {
        Some(cwd) => cwd.to_owned(),
        None => env::current_dir().map_err(ConnectError::WorkingDirectory)?,
    };
    let params = OpenSessionParams {
        cwd: cwd.display().to_string(),
        args,
        env: Some(environment()),
        ..OpenSessionParams::default()
    };
    Ok(SessionOpening { client: client_info(), capabilities, params })
}
