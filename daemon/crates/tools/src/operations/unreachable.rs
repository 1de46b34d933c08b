//! The error for a host that cannot be reached.

use std::io;

/// Why a file host does not answer: a sentence for the user, with what to do. It travels in an [`io::Error`] and is a
/// whole message, without a call or a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreachable(pub String);

impl Unreachable {
    /// The [`Unreachable`] in an error, if there is one.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl From<Unreachable> for io::Error {
    fn from(error: Unreachable) -> Self {
        Self::other(error)
    }
}
