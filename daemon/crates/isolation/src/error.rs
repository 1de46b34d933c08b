//! Why an isolated copy cannot be made, captured or merged.

use std::{
    io,
    path::{Path, PathBuf},
};

use agentd_process::SpawnError;

/// Why an isolated copy cannot be made, captured or merged. Displayed as sentences with what to do.
#[derive(Debug, thiserror::Error)]
pub enum IsolationError {
    /// The folder is in no git repository.
    #[error(
        "Isolated task execution requires a git repository. {} is in none: run `git init` and make a first commit, or run the task \
         without isolation ({said})",
        cwd.display()
    )]
    NoRepository {
        /// The session's folder.
        cwd: PathBuf,
        /// What git said.
        said: String,
    },
    /// The program git is missing.
    #[error(
        "Isolated task execution requires git, and the program `git` is not on the search path: install git"
    )]
    NoGit,
    /// git lacks options that merging needs.
    #[error("Isolated task execution requires git 2.32 or newer, and this is {found}: install a newer git")]
    OldGit {
        /// What `git version` said.
        found: String,
    },
    /// The repository has no commit.
    #[error(
        "the repository {} has no commit yet, so there is nothing to compare with: make a first commit (`git commit --allow-empty`)",
        root.display()
    )]
    NoCommit {
        /// The repository's folder.
        root: PathBuf,
    },
    /// A folder looks like a repository and is none that git reads.
    #[error(
        "{} has a .git that git cannot use, so it can be copied neither as a repository nor as a folder: repair or remove it ({said})",
        path.display()
    )]
    BrokenRepository {
        /// The folder.
        path: PathBuf,
        /// What git said.
        said: String,
    },
    /// There are more nested repositories than are handled.
    #[error("{} holds more than {limit} nested repositories: run the task without isolation", root.display())]
    TooManyRepositories {
        /// The outer repository.
        root: PathBuf,
        /// The limit.
        limit: usize,
    },
    /// Changed or untracked files are too large to be copied.
    #[error(
        "the {what} files of {} have {bytes} bytes, more than the {limit} that isolation copies: commit them, add them to .gitignore, \
         or run the task without isolation",
        root.display()
    )]
    TooLarge {
        /// The repository's folder.
        root: PathBuf,
        /// `changed` or `untracked`.
        what: &'static str,
        /// Their length together.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The chosen backend does not work here.
    #[error("the setting isolation.backend is \"reflink\", and {reason}: set it to \"auto\" or \"worktree\"")]
    NoReflink {
        /// Why not.
        reason: String,
    },
    /// An id cannot be part of a file's and a branch's name.
    #[error(
        "`{id}` is no id of a task: use 1 to 100 of the letters A-Z, a-z, 0-9, `_`, `-` and `.`, beginning and ending with no dot"
    )]
    BadId {
        /// The id.
        id: String,
    },
    /// A git command failed.
    #[error("`git {command}` failed in {} ({end}): {said}", cwd.display())]
    Git {
        /// Its subcommand.
        command: String,
        /// The folder that it ran in.
        cwd: PathBuf,
        /// Its exit code or signal.
        end: String,
        /// The end of what it said.
        said: String,
    },
    /// A git command took too long or said too much, and was killed.
    #[error("`git {command}` in {} was stopped: {why}", cwd.display())]
    GitStopped {
        /// Its subcommand.
        command: String,
        /// The folder that it ran in.
        cwd: PathBuf,
        /// The limit that it passed.
        why: &'static str,
    },
    /// git could not be started.
    #[error("git could not be started: {0}")]
    Spawn(#[source] SpawnError),
    /// A file or folder cannot be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The task's changes cannot be captured; its copy is kept.
    #[error("the changes of the task could not be captured, so its copy is kept at {}: {source}", copy.display())]
    NotCaptured {
        /// The copy's folder.
        copy: PathBuf,
        /// Why not.
        source: Box<IsolationError>,
    },
    /// A task of this crate ended by a panic.
    #[error("a part of the isolation ended by a panic; this is a bug of agentd")]
    Panicked,
}

impl IsolationError {
    pub(crate) fn io(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::Io { path, source }
    }

    /// What git said, for an error that is put into other words.
    pub(crate) fn said(self) -> String {
        match self {
            Self::Git { said, .. } => said,
            other => other.to_string(),
        }
    }
}

/// Runs blocking file work beside the runtime's threads.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, IsolationError> + Send + 'static,
) -> Result<T, IsolationError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| IsolationError::Panicked)?
}
