//! What cannot be sent along, and what to do instead.

use std::{io, path::PathBuf};

/// Why the parts of a prompt could not be read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// There is no such file.
    #[error("File not found: {}", .0.display())]
    NotFound(PathBuf),
    /// The file does not open.
    #[error("Cannot read {}: {}", path.display(), reason(source))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// It is a device, a pipe or the like.
    #[error("{} {problem}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, as the end of a sentence that begins with its name.
        problem: String,
    },
    /// It is a folder.
    #[error("{} is a folder: name a file in it, or ask about the folder in the message", .0.display())]
    Folder(PathBuf),
    /// It is larger than what may be sent along.
    #[error(
        "{} is too large to send along ({size_mib} MiB, at most {max_mib}): ask about it in the message instead, and the \
         model reads the parts that it needs",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// How large it is.
        size_mib: u64,
        /// How large it may be.
        max_mib: u64,
    },
    /// It holds bytes that are no text, and is no image of a known kind.
    #[error("{} is neither text nor a PNG, JPEG, GIF, WebP or BMP image, so it cannot be sent along", .0.display())]
    NoText(PathBuf),
    /// `-` is given twice.
    #[error("- stands for stdin, which is read once: give it once")]
    StdinTwice,
    /// What is piped in cannot be read, or is too much.
    #[error("Cannot read stdin: {0}")]
    Stdin(#[source] io::Error),
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}
