//! The user's daemon behind its socket: [`agentd_connect`] with typed calls, and with faults of this program.

use std::{ops::Deref, time::Duration};

use agentd_connect::{ConnectError, ConnectErrorKind, LaunchOptions, ReachedDaemon, find_agentd};
use agentd_protocol::{
    command::NoParams,
    daemon::{ClientCapabilities, ClientInfo, DaemonStatus, HelloParams, PROTOCOL, Role},
};
use tokio::{net::UnixStream, time::timeout};

use crate::{
    cli::DaemonChoice,
    exit::{Exit, Fault},
    rpc::{CallError, Client, GetDaemonStatus, Hello, IncomingEvents},
};

/// How long a daemon may take for an answer that needs no work.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// How often to try again when a daemon ends as we connect.
const ATTEMPTS: usize = 3;

/// The place of this user's daemon, whether one runs or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint(agentd_connect::Endpoint);

/// A connection to a daemon that other clients use as well. It ends when both parts are dropped.
pub(crate) struct DaemonConnection {
    pub(crate) client: Client,
    pub(crate) incoming: IncomingEvents,
}

impl Deref for Endpoint {
    type Target = agentd_connect::Endpoint;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl From<ConnectError> for Fault {
    fn from(error: ConnectError) -> Self {
        let exit = match (&error, error.kind()) {
            (ConnectError::TooLong(_), _) => Exit::Usage,
            (_, ConnectErrorKind::SetUp | ConnectErrorKind::Refused) => Exit::Failed,
            (_, ConnectErrorKind::Unreachable) => Exit::NoDaemon,
        };
        let prefix = if error.kind() == ConnectErrorKind::Refused { "Error" } else { "agentctl" };
        Self::new(exit, format!("{prefix}: {error}"))
    }
}

/// The command that starts a daemon.
///
/// # Errors
/// When there is no program `agentd`.
pub(crate) fn launch() -> Result<LaunchOptions, Fault> {
    Ok(LaunchOptions { program: find_agentd()?, args: Vec::new() })
}

/// Our name and version.
pub(crate) fn client_info() -> ClientInfo {
    ClientInfo { name: "agentctl".into(), version: Some(env!("CARGO_PKG_VERSION").into()) }
}

/// The agentd that works for a verb which does not need the shared daemon.
#[derive(Debug)]
pub(crate) enum ChosenDaemon {
    Shared(Endpoint, UnixStream),
    Private,
}

impl ChosenDaemon {
    /// The daemon where one runs or is to be started, else an agentd of our own.
    ///
    /// # Errors
    /// When the daemon cannot be used, and when it does not start.
    pub(crate) async fn choose(choice: DaemonChoice) -> Result<Self, Fault> {
        if choice.private {
            return Ok(Self::Private);
        }
        if choice.shared {
            let endpoint = Endpoint::find()?;
            let ReachedDaemon { stream, .. } = endpoint.0.connect_or_start(&launch()?).await?;
            return Ok(Self::Shared(endpoint, stream));
        }
        // An agentd of our own reports the problem better.
        let Ok(endpoint) = Endpoint::find() else { return Ok(Self::Private) };
        match endpoint.0.connect().await {
            Ok(Some(stream)) => Ok(Self::Shared(endpoint, stream)),
            Ok(None) => Ok(Self::Private),
            Err(error) => {
                let Fault { exit, message } = error.into();
                Err(Fault::new(exit, format!("{message}\nWith --private an agentd of its own does it.")))
            }
        }
    }
}

impl Endpoint {
    /// Finds the place by the environment of this process.
    ///
    /// # Errors
    /// When there is no agent directory, or the socket's path is longer than the system allows.
    pub(crate) fn find() -> Result<Self, Fault> {
        Ok(Self(agentd_connect::Endpoint::find(false)?))
    }

    /// Connects; `None` when no daemon runs.
    ///
    /// # Errors
    /// When the socket cannot be used, or belongs to another user.
    pub(crate) async fn connect(&self) -> Result<Option<DaemonConnection>, Fault> {
        Ok(self.0.connect().await?.map(DaemonConnection::over))
    }

    /// Connects, and starts a daemon first where none runs. The second value: whether it was started.
    ///
    /// # Errors
    /// As [`Endpoint::connect`], and when the daemon does not start.
    pub(crate) async fn connect_or_start(&self) -> Result<(DaemonConnection, bool), Fault> {
        let ReachedDaemon { stream, started } = self.0.connect_or_start(&launch()?).await?;
        Ok((DaemonConnection::over(stream), started))
    }

    /// Connects, starts a daemon first where none runs, and asks for its status. A daemon that ends or is killed as we
    /// connect is replaced. The last value: whether one was started.
    ///
    /// # Errors
    /// As [`Endpoint::connect_or_start`], and when the daemon does not answer.
    pub(crate) async fn status_or_start(&self) -> Result<(DaemonConnection, DaemonStatus, bool), Fault> {
        for _ in 0..ATTEMPTS {
            let (connection, started) = self.connect_or_start().await?;
            match timeout(ANSWER_TIMEOUT, connection.client.call::<GetDaemonStatus>(&NoParams {})).await {
                Ok(Ok(status)) => return Ok((connection, status, started)),
                Ok(Err(CallError::Ended { .. })) if !started => {}
                Ok(Err(error)) => return Err(self.unusable(error).into()),
                Err(_) => return Err(silent(self)),
            }
        }
        Err(self.unusable("agentd ended before it answered, again and again").into())
    }
}

impl DaemonConnection {
    /// A connection on which nothing was sent.
    pub(crate) fn over(stream: UnixStream) -> Self {
        let (output, input) = stream.into_split();
        let (client, incoming) = Client::start(input, output);
        Self { client, incoming }
    }

    /// Introduces us as a client that names sessions; with `ui`, one that answers dialogs.
    ///
    /// # Errors
    /// When the daemon is of another version, or does not answer.
    pub(crate) async fn hello(&self, endpoint: &Endpoint, ui: bool) -> Result<(), Fault> {
        let hello = HelloParams {
            protocol: PROTOCOL,
            client: Some(client_info()),
            capabilities: ClientCapabilities {
                sessions: true,
                ui,
                permissions: ui,
                ..ClientCapabilities::default()
            },
            role: Role::Control,
        };
        match timeout(ANSWER_TIMEOUT, self.client.call::<Hello>(&hello)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(CallError::Refused { error, .. })) => Err(ConnectError::OtherVersion(error).into()),
            Ok(Err(error)) => Err(endpoint.unusable(error).into()),
            Err(_) => Err(silent(endpoint)),
        }
    }

    /// Asks the daemon for its status.
    ///
    /// # Errors
    /// When it does not answer.
    pub(crate) async fn status(&self, endpoint: &Endpoint) -> Result<DaemonStatus, Fault> {
        match timeout(ANSWER_TIMEOUT, self.client.call::<GetDaemonStatus>(&NoParams {})).await {
            Ok(Ok(status)) => Ok(status),
            Ok(Err(error)) => Err(endpoint.unusable(error).into()),
            Err(_) => Err(silent(endpoint)),
        }
    }

    /// Asks the daemon for its status; `None` when it ends before it answers.
    ///
    /// # Errors
    /// When it does not answer, or with something else.
    pub(crate) async fn status_unless_ended(
        &self,
        endpoint: &Endpoint,
    ) -> Result<Option<DaemonStatus>, Fault> {
        match timeout(ANSWER_TIMEOUT, self.client.call::<GetDaemonStatus>(&NoParams {})).await {
            Ok(Ok(status)) => Ok(Some(status)),
            Ok(Err(CallError::Ended { .. })) => Ok(None),
            Ok(Err(error)) => Err(endpoint.unusable(error).into()),
            Err(_) => Err(silent(endpoint)),
        }
    }

    /// Waits until the daemon closes the connection.
    pub(crate) async fn ended(&mut self) {
        while self.incoming.events.recv().await.is_some() {}
    }
}

fn silent(endpoint: &Endpoint) -> Fault {
    endpoint.unusable(format!("agentd did not answer within {} s", ANSWER_TIMEOUT.as_secs())).into()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn endpoint(folder: &Path) -> Endpoint {
        Endpoint(agentd_connect::Endpoint { agent_dir: folder.to_owned(), socket: folder.join("a.sock") })
    }

    async fn status(endpoint: &Endpoint) -> Result<DaemonStatus, Fault> {
        endpoint.connect().await?.expect("a daemon").status(endpoint).await
    }

    #[tokio::test]
    async fn one_that_hangs_up_is_no_daemon() {
        let folder = tempfile::tempdir().unwrap();
        let endpoint = endpoint(folder.path());
        let listener = tokio::net::UnixListener::bind(&endpoint.socket).unwrap();
        let (status, _) = tokio::join!(status(&endpoint), async { drop(listener.accept().await) });
        let fault = status.unwrap_err();
        assert_eq!(fault.exit, Exit::NoDaemon);
        assert!(fault.message.contains("a.sock") && fault.message.contains("ended before"), "{fault}");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_silent_is_not_waited_for_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let endpoint = endpoint(folder.path());
        let _listener = tokio::net::UnixListener::bind(&endpoint.socket).unwrap();
        let fault = status(&endpoint).await.unwrap_err();
        assert!(fault.message.contains("did not answer within 10 s"), "{fault}");
    }
}
