//! Errors of session files.

use std::{io, path::PathBuf};

use agentd_protocol::entry::SESSION_VERSION;
use serde::{Deserialize, Serialize};

/// The process that has a session file open. Kept beside the sessions' folder for the error text alone: the lock is what
/// counts, so a stale note does no harm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// The run of the daemon.
    pub epoch: String,
    /// The session file, links resolved.
    pub path: PathBuf,
}

/// Why a session file could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file holds something else.
    #[error("Session file is not a valid pi session: {}", path.display())]
    NotASession {
        /// The file.
        path: PathBuf,
    },
    /// The path names a folder or a device.
    #[error("{} is not a regular file: name a session file (.jsonl)", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// A later program wrote the file.
    #[error(
        "session file {} has format version {found}, newer than {SESSION_VERSION}: upgrade agentd to open it",
        path.display()
    )]
    TooNew {
        /// The file.
        path: PathBuf,
        /// The version that its header names.
        found: u32,
    },
    /// Another process, or another session of this one, writes to the file.
    #[error("session file {} is in use by {}: close the session there, or fork it", path.display(), in_words(holder.as_ref()))]
    Locked {
        /// The file.
        path: PathBuf,
        /// The holder, if it left a note.
        holder: Option<Holder>,
    },
    /// A file that was to be made is there already.
    #[error("session file {} exists already: open it instead of creating it", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Someone removed the file while the session was open.
    #[error("session file {} was removed while the session was open: nothing more can be saved to it", path.display())]
    Removed {
        /// The file.
        path: PathBuf,
    },
    /// This user may read the file and not write to it.
    #[error(
        "session file {} can be read and not written to, so that nothing is added to it: make it writable (chmod u+w) and \
         open it again, or fork the session",
        path.display()
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// Someone cut the file while the session was open.
    #[error(
        "session file {} was cut by another program while the session was open: it has {found} bytes, and {saved} were \
         saved, so nothing more is saved to it",
        path.display()
    )]
    Cut {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        found: u64,
        /// The size in bytes that it had at least.
        saved: u64,
    },
    /// An entry is so large that it could not be read again.
    #[error("an entry of {size} bytes is over the limit of {limit} bytes for one line of a session file")]
    EntryTooLarge {
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A chosen session id has characters that file names and programs do not take.
    #[error(
        "Session id must be non-empty, contain only alphanumeric characters, '-', '_', and '.', and start and end with \
         an alphanumeric character"
    )]
    InvalidSessionId,
    /// A chosen session id is too long for the name of a file.
    #[error("Session id must have at most {limit} characters, not {length}")]
    LongSessionId {
        /// The length of the id.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// A value cannot be written as JSON.
    #[error("cannot write a session entry as JSON")]
    Encode(#[from] serde_json::Error),
    /// The file system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The attempted action, in words.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl StoreError {
    /// A failure of the file system; for use with `map_err`.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}

fn in_words(holder: Option<&Holder>) -> String {
    match holder {
        Some(holder) if holder.pid == std::process::id() => "another session of this process".into(),
        Some(holder) => format!("process {}", holder.pid),
        None => "another process".into(),
    }
}
