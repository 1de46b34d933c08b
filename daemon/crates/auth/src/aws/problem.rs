//! Why there are no keys of AWS.

use std::{io, path::Path};

/// Why there are no keys of AWS, for the user: what was tried, what went wrong, what to do. No secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AwsProblem(String);

impl AwsProblem {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(super) fn file(path: &Path, error: &io::Error) -> Self {
        Self(format!("{} cannot be read: {error}.", path.display()))
    }
}
