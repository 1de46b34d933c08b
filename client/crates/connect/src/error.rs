//! Why there is no way to the daemon.

use std::{io, path::PathBuf, process::ExitStatus};

use agentd_protocol::{error::Failure, socket_path};
use agentd_safe_open::FolderFault;

/// Why the daemon is not reached, or does not open a session. The text is a sentence without the program's name.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Not even `HOME` is set.
    #[error(
        "the agent directory is not known, since HOME is not set: set HOME, or AGENTD_DIR to a directory"
    )]
    NoAgentDir,
    /// It is another user's, or others can change it.
    #[error(transparent)]
    AgentDir(#[from] FolderFault),
    /// The folder that we work in is gone, say.
    #[error("the working directory cannot be used: {0}")]
    WorkingDirectory(#[source] io::Error),
    /// The system takes no socket path of that length.
    #[error(
        "the socket path {} is longer than the {} bytes that the system takes: set AGENTD_SOCKET to a shorter one",
        .0.display(), socket_path::MAX_BYTES
    )]
    TooLong(PathBuf),
    /// Nobody listens.
    #[error("agentd is not running (socket {}): `agentctl up` starts it", .0.display())]
    NotRunning(PathBuf),
    /// The socket is there, and of no use.
    #[error("cannot use the socket {}: {why}", .socket.display())]
    Unusable {
        /// The socket.
        socket: PathBuf,
        /// Why not.
        why: String,
    },
    /// There is no program `agentd`.
    #[error(
        "no program `agentd` in {beside} or on PATH. Build both programs with `cargo build --release` and run \
         target/release/agentctl, or install agentd into a folder of PATH."
    )]
    NoProgram {
        /// The folder of the program that looks for it, or words for it.
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
        /// How it ended.
        status: ExitStatus,
        /// The last lines that it wrote to its log; may be empty.
        said: String,
        /// The log.
        log: PathBuf,
    },
    /// The daemon neither listens nor ends.
    #[error("agentd does not listen after {seconds} s; {} may say why", .log.display())]
    NotListening {
        /// How long it was waited for.
        seconds: u64,
        /// Its log.
        log: PathBuf,
    },
    /// Another daemon has the place, and takes no clients.
    #[error("agentd takes no clients: it is ending. Try again when it has ended.{}", last_words(.said))]
    Ending {
        /// What a daemon that was started beside it said.
        said: String,
    },
    /// The daemon listened, and was gone before anyone came.
    #[error("agentd has ended right after its start; {} may say why", .log.display())]
    EndedAtOnce {
        /// Its log.
        log: PathBuf,
    },
    /// The daemon that runs speaks another version of the protocol.
    #[error(
        "the agentd that runs is of another version: {0}\n`agentctl down && agentctl up` puts this one in its place."
    )]
    OtherVersion(String),
    /// The daemon does not open the session.
    #[error("{}{}", .0.error, .0.hint.as_ref().map(|hint| format!("\n{hint}")).unwrap_or_default())]
    Refused(Failure),
}

/// What a [`ConnectError`] means for the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectErrorKind {
    /// Something of the user's has to change first.
    SetUp,
    /// The daemon answered, with no.
    Refused,
    /// There is no daemon, or none that can be used.
    Unreachable,
}

impl ConnectError {
    /// Sorts the error.
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
