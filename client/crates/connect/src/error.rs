//! The errors on the way to a daemon.

use std::{io, path::PathBuf, process::ExitStatus};

use agentd_protocol::{error::Failure, socket_path};
use agentd_safe_open::FolderFault;

/// The reason why no daemon is reached, or why it does not open a session. The text is a sentence without the program's
/// name.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// `HOME` is not set either.
    #[error(
        "the agent directory is not known, since HOME is not set: set HOME, or AGENTD_DIR to a directory"
    )]
    NoAgentDir,
    /// The agent directory is another user's, or others can change it.
    #[error(transparent)]
    AgentDir(#[from] FolderFault),
    /// The working directory is gone, for example.
    #[error("the working directory cannot be used: {0}")]
    WorkingDirectory(#[source] io::Error),
    /// The system allows no socket path of that length.
    #[error(
        "the socket path {} is longer than the {} bytes that the system takes: set AGENTD_SOCKET to a shorter one",
        .0.display(), socket_path::MAX_BYTES
    )]
    TooLong(PathBuf),
    /// No process listens.
    #[error("agentd is not running (socket {}): `agentctl up` starts it", .0.display())]
    NotRunning(PathBuf),
    /// The socket exists and cannot be used.
    #[error("cannot use the socket {}: {why}", .socket.display())]
    Unusable {
        /// The socket.
        socket: PathBuf,
        /// The reason.
        why: String,
    },
    /// There is no program `agentd`.
    #[error(
        "no program `agentd` in {beside} or on PATH. Build both programs with `cargo build --release` and run \
         target/release/agentctl, or install agentd into a folder of PATH."
    )]
    NoProgram {
        /// The folder of the running program, or words for it.
        beside: String,
    },
    /// The log of a daemon in the background cannot be written.
    #[error("cannot write {}: {source}", .log.display())]
    Log {
        /// The log.
        log: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The system does not start the program.
    #[error("cannot start {}: {source}", .program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The daemon ended instead of listening.
    #[error("agentd did not start ({status}); its log is {}{}", .log.display(), last_words(.said))]
    NotStarted {
        /// The daemon's exit status.
        status: ExitStatus,
        /// The last lines of its log; may be empty.
        said: String,
        /// The log.
        log: PathBuf,
    },
    /// The daemon neither listens nor ends.
    #[error("agentd does not listen after {seconds} s; {} may say why", .log.display())]
    NotListening {
        /// How long we waited.
        seconds: u64,
        /// Its log.
        log: PathBuf,
    },
    /// Another daemon has the socket, and takes no clients.
    #[error("agentd takes no clients: it is ending. Try again when it has ended.{}", last_words(.said))]
    Ending {
        /// The stderr of a daemon that was started beside it.
        said: String,
    },
    /// The daemon listened, and ended before we connected.
    #[error("agentd has ended right after its start; {} may say why", .log.display())]
    EndedAtOnce {
        /// Its log.
        log: PathBuf,
    },
    /// The running daemon speaks another version of the protocol.
    #[error(
        "the agentd that runs is of another version: {0}\n`agentctl down && agentctl up` puts this one in its place."
    )]
    OtherVersion(String),
    /// The daemon refuses to open the session.
    #[error("{}{}", .0.error, .0.hint.as_ref().map(|hint| format!("\n{hint}")).unwrap_or_default())]
    Refused(Failure),
}

/// The kind of a [`ConnectError`], for the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectErrorKind {
    /// The user has to change something first.
    SetUp,
    /// The daemon answered with a refusal.
    Refused,
    /// No daemon can be used.
    Unreachable,
}

impl ConnectError {
    /// The kind of this error.
    #[must_use]
    pub fn kind(&self) -> ConnectErrorKind {
        match self {
            Self::NoAgentDir
            | Self::AgentDir(_)
            | Self::WorkingDirectory(_)
            | Self::TooLong(_)
            | Self::Log { .. } => ConnectErrorKind::SetUp,
            Self::Refused(_) => ConnectErrorKind::Refused,
            Self::NotRunning(_)
            | Self::Unusable { .. }
            | Self::NoProgram { .. }
            | Self::Spawn { .. }
            | Self::NotStarted { .. }
            | Self::NotListening { .. }
            | Self::Ending { .. }
            | Self::EndedAtOnce { .. }
            | Self::OtherVersion(_) => ConnectErrorKind::Unreachable,
        }
    }
}

fn last_words(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!("\n{said}") }
}
