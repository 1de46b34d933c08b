//! What a command starts.

use crate::shell::{Assignment, Word};

/// Why the user is asked where it is not known.
pub(super) const NOT_KNOWN: Option<&str> = Some("what it starts is only known when it runs");

/// What a wrapper starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrapped {
    /// The commands.
    pub(crate) inner: Vec<Inner>,
    /// Why the user has to be asked even where the commands are allowed, if so.
    pub(crate) asks: Option<&'static str>,
}

/// A command that a wrapper starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Inner {
    /// A program and its arguments, and variables that are set for it.
    Words {
        words: Vec<Word>,
        assignments: Vec<Assignment>,
        /// Where the words of the program begin among those of the wrapper.
        at: usize,
    },
    /// A text that a shell runs.
    Text(String),
    /// The wrapper's own words without those of what it starts, which are judged, too.
    Own(Vec<Word>),
}

/// What is not known at all.
pub(super) fn unknown() -> Wrapped {
    Wrapped { inner: Vec::new(), asks: NOT_KNOWN }
}
