//! Files that are out of reach as a whole.

use std::io;

/// Why a place with files does not answer, as a sentence for the user that says what to do. It is carried by an
/// [`io::Error`], and is a message by itself: no call and no path belong to it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreachable(pub String);

impl Unreachable {
    /// What `error` carries, if it is such a sentence.
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
