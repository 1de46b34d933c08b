//! Why a package was not installed.

use std::{io, path::PathBuf, time::Duration};

use agentd_process::SpawnError;

/// Why a package was not installed, updated or removed. No message holds a password of a URL.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The path is not there.
    #[error("Path does not exist: {}", path.display())]
    NoPath {
        /// The path.
        path: PathBuf,
    },
    /// The program is not there.
    #[error("{program} is not there: {advice}")]
    NoProgram {
        /// The program.
        program: String,
        /// What to do.
        advice: &'static str,
    },
    /// The program could not be started.
    #[error("{program} could not be started: {source}")]
    NotStarted {
        /// The program.
        program: String,
        /// The cause.
        source: SpawnError,
    },
    /// The program says that it failed.
    #[error("{command} failed with {end}{said}")]
    Failed {
        /// The program and its arguments.
        command: String,
        /// Its exit code or signal.
        end: String,
        /// The end of what it said, after a colon; empty where it said nothing.
        said: String,
    },
    /// The program took too long, and was ended.
    #[error("{command} took more than {} s and was ended", limit.as_secs())]
    TooLong {
        /// The program and its arguments.
        command: String,
        /// The limit.
        limit: Duration,
    },
    /// The program ended well and did not do what it was asked to.
    #[error("{command} did not install {name}")]
    NotThere {
        /// The program and its arguments.
        command: String,
        /// What is missing.
        name: String,
    },
    /// The setting `npmCommand` names no program.
    #[error("the setting npmCommand is not usable: {problem}")]
    NpmCommand {
        /// The fault.
        problem: String,
    },
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another process installs packages all the time.
    #[error("another process installs packages, and did not end within {} s", waited.as_secs())]
    Locked {
        /// The time.
        waited: Duration,
    },
}

impl InstallError {
    /// What the file system refused at a path.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
