//! Why a file could not be written.

use std::{io, path::PathBuf};

use crate::errno;

/// Why a file could not be written. The file keeps its old content, unless the variant says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The path leads to something that is not a regular file, such as a device or a pipe.
    #[error("Cannot write {0}: it is not a regular file")]
    NotRegular(PathBuf),
    /// The path leads into the agent directory.
    #[error(
        "Cannot write {}: the files of the agent directory {} are the user's to change. The user can do it, or list what may be \
         written there in the setting \"agentDirWritable\" of their settings.json",
        path.display(),
        folder.display()
    )]
    Guarded {
        /// The path.
        path: PathBuf,
        /// The agent directory.
        folder: PathBuf,
    },
    /// The file changed after it was read.
    #[error("{0} was changed by something else meanwhile")]
    Changed(PathBuf),
    /// The editor that writes the file refused.
    #[error("Cannot write {}: the editor did not write it: {reason}", path.display())]
    Editor {
        /// The file.
        path: PathBuf,
        /// The editor's words.
        reason: String,
    },
    /// The system refused.
    #[error("{}", errno::describe(source, call, path))]
    System {
        /// The failed call: `open`, `write` or `rename`.
        call: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system refused while a file was written in place.
    #[error("{}; the file may be incomplete now, so write it again", errno::describe(source, "write", path))]
    Torn {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}
