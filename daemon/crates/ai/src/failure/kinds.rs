//! What a failure of a model call is.

use std::time::Duration;

use crate::Stall;

/// The failure of an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What it means for the caller.
    pub kind: FailureKind,
    /// What happened, for people; becomes the answer's `errorMessage`.
    pub message: String,
    /// How long the provider wants to be left alone before the next attempt.
    pub retry_after: Option<Duration>,
    /// Set where the provider took too long.
    pub stall: Option<Stall>,
}

impl Failure {
    /// A failure of a known kind.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None, stall: None }
    }

    /// Adds how long the provider wants to be left alone.
    #[must_use]
    pub fn after(mut self, delay: Option<Duration>) -> Self {
        self.retry_after = delay;
        self
    }

    /// Someone stopped the request.
    #[must_use]
    pub fn aborted() -> Self {
        Self::new(FailureKind::Aborted, "Request was aborted")
    }
}

/// What a failure means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// Someone stopped it.
    Aborted,
    /// The same request may work later.
    Retryable,
    /// The transcript is too long for the model.
    ContextOverflow,
    /// The key is missing or refused.
    Auth,
    /// The provider cannot do anything with the request: an unknown model, a wrong field.
    InvalidRequest,
    /// The model, or a filter before or behind it, refused to answer. The same request is not asked again.
    ModelRefusal,
    /// Anything else; trying again will not help.
    Fatal,
}
