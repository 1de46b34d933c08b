//! The socket of the user's daemon: its path, and a connection to it.

use std::{
    env,
    io::{self, ErrorKind},
    path::PathBuf,
};

use agentd_protocol::socket_path::{self, Surroundings};
use agentd_safe_open::check_own_folder;
use tokio::net::UnixStream;

use crate::{
    ConnectError,
    daemon_process::{LaunchOptions, StartOutcome, StartingDaemon},
};

/// The exit code of an agentd that finds another daemon at the socket.
const ALREADY_RUNNING: i32 = 4;

/// How often to try when another client starts a daemon first, and that one does not listen yet or is ending.
const ATTEMPTS: usize = 3;

/// The place of this user's daemon, whether one runs or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The agent directory, absolute.
    pub agent_dir: PathBuf,
    /// Its daemon's socket, absolute.
    pub socket: PathBuf,
}

/// A connection to a daemon.
#[derive(Debug)]
pub struct ReachedDaemon {
    /// The connection; nothing was sent on it.
    pub stream: UnixStream,
    /// Whether the daemon was started for it.
    pub started: bool,
}

impl Endpoint {
    /// Finds the place by the environment of this process. With `compat`, pi's directories come first.
    ///
    /// # Errors
    /// When there is no agent directory, when it is not this user's alone, or when the socket's path is longer than the
    /// system allows.
    pub fn find(compat: bool) -> Result<Self, ConnectError> {
        let cwd = env::current_dir().map_err(ConnectError::WorkingDirectory)?;
        let here = Surroundings {
            variable: &|name| env::var_os(name),
            cwd: &cwd,
            uid: rustix::process::getuid().as_raw(),
        };
        let agent_dir = here.agent_dir(compat).ok_or(ConnectError::NoAgentDir)?;
        check_own_folder(&agent_dir)?;
        let socket = here.socket(&agent_dir);
        if !socket_path::fits(&socket) {
            return Err(ConnectError::TooLong(socket));
        }
        Ok(Self { agent_dir, socket })
    }

    /// The file for the stderr of a daemon in the background.
    #[must_use]
    pub fn log_file(&self) -> PathBuf {
        self.agent_dir.join("logs/agentd.log")
    }

    /// Connects; `None` when no daemon runs. Does not wait: the system connects before the daemon accepts.
    ///
    /// # Errors
    /// When the socket cannot be used, or belongs to another user.
    pub async fn connect(&self) -> Result<Option<UnixStream>, ConnectError> {
        let stream = match UnixStream::connect(&self.socket).await {
            Ok(stream) => stream,
            Err(error) if is_nobody(&error) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(self.unusable("too many clients wait there already"));
            }
            Err(error) => return Err(self.unusable(error)),
        };
        let peer = stream.peer_cred().map_err(|error| self.unusable(error))?;
        // In a folder that everyone can write to, another user may have made the socket. A socket that a service
        // manager made belongs to its owner or to root.
        if ![rustix::process::geteuid().as_raw(), 0].contains(&peer.uid()) {
            return Err(self.unusable(format!("it belongs to user {}", peer.uid())));
        }
        Ok(Some(stream))
    }

    /// Connects, and starts a daemon in the background first where none runs. A daemon that is starting goes on when
    /// the future is dropped.
    ///
    /// # Errors
    /// As [`Endpoint::connect`]; when the daemon does not start, with the end of its log.
    pub async fn connect_or_start(&self, launch: &LaunchOptions) -> Result<ReachedDaemon, ConnectError> {
        let mut rival = String::new();
        for _ in 0..ATTEMPTS {
            if let Some(stream) = self.connect().await? {
                return Ok(ReachedDaemon { stream, started: false });
            }
            match StartingDaemon::start(&self.socket, self.log_file(), launch)?.started().await? {
                StartOutcome::Listens => {
                    let stream = self.connect().await?;
                    let ended = || ConnectError::EndedAtOnce { log: self.log_file() };
                    return stream.map(|stream| ReachedDaemon { stream, started: true }).ok_or_else(ended);
                }
                StartOutcome::Ended(status, said) if status.code() == Some(ALREADY_RUNNING) => rival = said,
                StartOutcome::Ended(status, said) => {
                    return Err(ConnectError::NotStarted { status, said, log: self.log_file() });
                }
            }
        }
        match self.connect().await? {
            Some(stream) => Ok(ReachedDaemon { stream, started: false }),
            None => Err(ConnectError::Ending { said: rival }),
        }
    }

    /// The error about a socket that exists and cannot be used.
    #[must_use]
    pub fn unusable(&self, why: impl ToString) -> ConnectError {
        ConnectError::Unusable { socket: self.socket.clone(), why: why.to_string() }
    }
}

/// Whether the error means that no process listens.
fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_socket_and_a_dead_one_mean_that_none_runs() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("a.sock");
        let endpoint = Endpoint { agent_dir: folder.path().to_owned(), socket };
        assert!(endpoint.connect().await.unwrap().is_none());
        let listener = std::os::unix::net::UnixListener::bind(&endpoint.socket).unwrap();
        assert!(endpoint.connect().await.unwrap().is_some());
        drop(listener);
        assert!(endpoint.socket.exists());
        assert!(endpoint.connect().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn what_is_no_socket_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let endpoint =
            Endpoint { agent_dir: folder.path().to_owned(), socket: folder.path().join("a/b.sock") };
        std::fs::write(folder.path().join("a"), "a file").unwrap();
        let error = endpoint.connect().await.unwrap_err();
        assert!(error.to_string().contains("a/b.sock"), "{error}");
        assert_eq!(error.kind(), crate::ConnectErrorKind::Unreachable);
    }
}
