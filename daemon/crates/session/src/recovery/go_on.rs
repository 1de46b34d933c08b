//! The turn that a crash interrupted goes on: by itself, or because the user says so.

use tokio_util::sync::CancellationToken;

/// What becomes of a turn that a crash interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterCrash {
    /// There was none, or it is over.
    Nothing,
    /// The user is asked.
    Asks,
    /// It goes on.
    GoesOn,
}

/// The question to the user whether a turn goes on, while it is open.
#[derive(Default)]
pub(crate) struct ResumeQuestion(pub(crate) Option<CancellationToken>);

impl ResumeQuestion {
    /// The answer does not matter any more; true when it was open.
    pub(crate) fn give_up(&mut self) -> bool {
        self.0.take().inspect(CancellationToken::cancel).is_some()
    }
}
