//! The socket of the user's daemon: where it is, and a connection to it.

use std::{
    env, fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    time::Duration,
};

use agentd_protocol::{
    command::NoParams,
    daemon::DaemonStatus,
    socket_path::{self, Surroundings},
};
use tokio::{net::UnixStream, time::timeout};

use crate::{
    exit::{Exit, Fault},
    rpc::{Client, GetDaemonStatus, Incoming},
};

/// How long a daemon may take for an answer that it has at hand.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the daemon of this user's agent directory is, if one runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// The agent directory, absolute.
    pub(crate) agent_dir: PathBuf,
    /// Its daemon's socket, absolute.
    pub(crate) socket: PathBuf,
}

/// A connection to a daemon that others may be connected to as well. It ends when both parts are dropped.
pub(crate) struct Connection {
    /// Speaks to it.
    pub(crate) client: Client,
    /// What it tells.
    pub(crate) incoming: Incoming,
}

impl Endpoint {
    /// Finds the place by the variables of our own process.
    ///
    /// # Errors
    /// When there is no agent directory, or the socket's path is longer than the system takes.
    pub(crate) fn find() -> Result<Self, Fault> {
        let failed = |error: io::Error| {
            Fault::new(Exit::Failed, format!("agentctl: the working directory cannot be used: {error}"))
        };
        let cwd = env::current_dir().map_err(failed)?;
        let here = Surroundings {
            variable: &|name| env::var_os(name),
            cwd: &cwd,
            uid: rustix::process::getuid().as_raw(),
        };
        let agent_dir = here.agent_dir(false).ok_or_else(|| {
            Fault::new(
                Exit::Failed,
                "agentctl: the agent directory is not known, since HOME is not set: set HOME, or AGENTD_DIR to a \
                 directory",
            )
        })?;
        let socket = here.socket(&agent_dir);
        if !socket_path::fits(&socket) {
            let text = format!(
                "agentctl: the socket path {} is longer than the {} bytes that the system takes: set AGENTD_SOCKET to \
                 a shorter one",
                socket.display(),
                socket_path::MAX_BYTES
            );
            return Err(Fault::usage(text));
        }
        Ok(Self { agent_dir, socket })
    }

    /// Where the output of a daemon in the background goes.
    pub(crate) fn log_file(&self) -> PathBuf {
        self.agent_dir.join("logs/agentd.log")
    }

    /// Connects; `None` when no daemon runs.
    ///
    /// # Errors
    /// When the socket cannot be used, or belongs to another user.
    pub(crate) async fn connect(&self) -> Result<Option<Connection>, Fault> {
        let stream = match UnixStream::connect(&self.socket).await {
            Ok(stream) => stream,
            Err(error) if is_nobody(&error) => return Ok(None),
            Err(error) => return Err(self.unusable(&error.to_string())),
        };
        let peer = stream.peer_cred().map_err(|error| self.unusable(&error.to_string()))?;
        // In a folder that everyone can write to, someone else may have been first. Behind a socket that a service manager
        // made is its owner, or root.
        if ![rustix::process::geteuid().as_raw(), 0].contains(&peer.uid()) {
            return Err(self.unusable(&format!("it belongs to user {}", peer.uid())));
        }
        let (output, input) = stream.into_split();
        let (client, incoming) = Client::start(input, output);
        Ok(Some(Connection { client, incoming }))
    }

    /// Asks the daemon how it is; `None` when none runs.
    ///
    /// # Errors
    /// When something is there that does not answer.
    pub(crate) async fn status(&self) -> Result<Option<DaemonStatus>, Fault> {
        match self.connect().await? {
            Some(connection) => connection.status(self).await.map(Some),
            None => Ok(None),
        }
    }

    fn unusable(&self, why: &str) -> Fault {
        Fault::new(
            Exit::NoDaemon,
            format!("agentctl: cannot use the socket {}: {why}", self.socket.display()),
        )
    }
}

impl Connection {
    /// Asks the daemon how it is.
    ///
    /// # Errors
    /// When it does not answer.
    pub(crate) async fn status(&self, endpoint: &Endpoint) -> Result<DaemonStatus, Fault> {
        match timeout(PATIENCE, self.client.call::<GetDaemonStatus>(&NoParams {})).await {
            Ok(Ok(status)) => Ok(status),
            Ok(Err(error)) => Err(endpoint.unusable(&error.to_string())),
            Err(_) => {
                Err(endpoint.unusable(&format!("agentd did not answer within {} s", PATIENCE.as_secs())))
            }
        }
    }

    /// Waits until the daemon closes the connection.
    pub(crate) async fn ended(&mut self) {
        while self.incoming.events.recv().await.is_some() {}
    }
}

/// Whether the error means that nobody listens.
fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

/// Makes a folder that only the user may enter, and those above it.
///
/// # Errors
/// When the system refuses.
pub(crate) fn private_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(folder: &Path) -> Endpoint {
        Endpoint { agent_dir: folder.to_owned(), socket: folder.join("a.sock") }
    }

    #[tokio::test]
    async fn no_socket_and_a_dead_one_mean_that_none_runs() {
        let folder = tempfile::tempdir().unwrap();
        let endpoint = endpoint(folder.path());
        assert_eq!(endpoint.status().await, Ok(None));
        drop(std::os::unix::net::UnixListener::bind(&endpoint.socket).unwrap());
        assert!(endpoint.socket.exists());
        assert_eq!(endpoint.status().await, Ok(None));
    }

    #[tokio::test]
    async fn one_that_hangs_up_is_no_daemon() {
        let folder = tempfile::tempdir().unwrap();
        let endpoint = endpoint(folder.path());
        let listener = tokio::net::UnixListener::bind(&endpoint.socket).unwrap();
        let (status, _) = tokio::join!(endpoint.status(), async { drop(listener.accept().await) });
        let fault = status.unwrap_err();
        assert_eq!(fault.exit, Exit::NoDaemon);
        assert!(fault.message.contains("a.sock") && fault.message.contains("ended before"), "{fault}");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_silent_is_not_waited_for_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let endpoint = endpoint(folder.path());
        let _listener = tokio::net::UnixListener::bind(&endpoint.socket).unwrap();
        let fault = endpoint.status().await.unwrap_err();
        assert!(fault.message.contains("did not answer within 10 s"), "{fault}");
    }
}
