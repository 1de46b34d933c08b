//! Failures as one line for the person who ran the task.

use std::{fmt, fs, path::Path};

/// The reason why a task ended, as it is shown.
pub(crate) struct Failure(pub(crate) String);

/// What every step of a task returns.
pub(crate) type Outcome<T> = Result<T, Failure>;

/// The standard library shows the error of `main` by its `Debug`.
impl fmt::Debug for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Names what an error is about.
pub(crate) trait About<T> {
    /// Puts the text of `what` before the error.
    fn about(self, what: impl fmt::Display) -> Outcome<T>;

    /// Puts a path before the error.
    fn at(self, path: &Path) -> Outcome<T>
    where
        Self: Sized,
    {
        self.about(path.display())
    }
}

impl<T, E: fmt::Display> About<T> for Result<T, E> {
    fn about(self, what: impl fmt::Display) -> Outcome<T> {
        self.map_err(|error| Failure(format!("{what}: {error}")))
    }
}

/// Fails with this text.
pub(crate) fn fail<T>(text: impl Into<String>) -> Outcome<T> {
    Err(Failure(text.into()))
}

/// Reads a file; an error names it.
pub(crate) fn read(path: &Path) -> Outcome<Vec<u8>> {
    fs::read(path).at(path)
}
