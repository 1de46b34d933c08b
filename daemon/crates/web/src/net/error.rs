//! Why nothing could be read.

use std::time::Duration;

/// Why nothing could be read. Displayed for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebError {
    /// The text is no URL that can be read.
    #[error("{url} cannot be read: {why}.")]
    Url {
        /// The URL, without credentials.
        url: String,
        /// Why not.
        why: String,
    },
    /// It may not be read.
    #[error("{url} is not read: {why}.")]
    Refused {
        /// The URL.
        url: String,
        /// Why not, with the setting that says so.
        why: String,
    },
    /// The server, or the way to it, failed.
    #[error("{url} could not be read: {why}.")]
    Failed {
        /// The URL.
        url: String,
        /// What happened.
        why: String,
    },
    /// The time was over.
    #[error("{url} could not be read within {} s. Try again with a longer timeout (at most 45).", .limit.as_secs())]
    TimedOut {
        /// The URL.
        url: String,
        /// The time that there was.
        limit: Duration,
    },
    /// The call was aborted.
    #[error("Operation aborted")]
    Aborted,
}
