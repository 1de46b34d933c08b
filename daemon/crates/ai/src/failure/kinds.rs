//! The failure of a model call, and its kinds.

use std::time::Duration;

use crate::Stall;

/// The failure of an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The kind, by which the caller decides.
    pub kind: FailureKind,
    /// The text for people; becomes the answer's `errorMessage`.
    pub message: String,
    /// The pause that the provider asks for before the next attempt.
    pub retry_after: Option<Duration>,
    /// Set if the provider exceeded a deadline.
    pub stall: Option<Stall>,
}

impl Failure {
    /// A failure of a known kind.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None, stall: None }
    }

    /// Sets the pause that the provider asks for.
    #[must_use]
    pub fn after(mut self, delay: Option<Duration>) -> Self {
        self.retry_after = delay;
        self
    }

    /// The failure of an aborted request.
    #[must_use]
    pub fn aborted() -> Self {
        Self::new(FailureKind::Aborted, "Request was aborted")
    }
}

/// The kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The request was aborted.
    Aborted,
    /// The same request may work later.
    Retryable,
    /// The transcript is too long for the model.
    ContextOverflow,
    /// The key is missing or refused.
    Auth,
    /// The provider cannot do anything with the request: an unknown model, a wrong field.
    InvalidRequest,
    /// The model, or a filter before or after it, refused to answer. The request is not retried.
    ModelRefusal,
    /// A budget does not permit the request. It was not sent, or it was stopped.
    BudgetReached,
    /// Anything else; trying again will not help.
    Fatal,
}
