//! Errors of compactions and branch summaries.

use agentd_protocol::error::{ErrorCode, Failure};

/// Why a compaction, or a summary of a branch, did not come about. Nothing of the session has changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CompactionError {
    /// Someone stopped it.
    #[error("Compaction cancelled")]
    Cancelled,
    /// Nothing came after the last compaction.
    #[error("Already compacted")]
    AlreadyCompacted,
    /// The kept part would be the whole context.
    #[error("Nothing to compact (session too small)")]
    NothingToCompact,
    /// A shell hook prevents it. The text says why.
    #[error("A hook prevents the compaction: {0}")]
    Prevented(String),
    /// The session is on another branch than the one that was summarised.
    #[error("The conversation moved to another branch while it was summarised")]
    Moved,
    /// No model can be asked.
    #[error("{0}")]
    NoModel(Failure),
    /// The model gave no usable summary. The text says for which summary, and why.
    #[error("{0}")]
    NoSummary(String),
    /// The model refused to write the summary. The text says for which summary, and why.
    #[error("{0}")]
    Refused(String),
    /// A budget does not permit the summary.
    #[error("{0}")]
    NoBudget(String),
    /// The session file cannot be written.
    #[error("{0}")]
    NotStored(String),
    /// A fault of the daemon.
    #[error("the compaction broke down: {0}")]
    Broken(String),
}

impl From<CompactionError> for Failure {
    fn from(error: CompactionError) -> Self {
        let text = error.to_string();
        match error {
            CompactionError::NoModel(failure) => failure,
            CompactionError::Cancelled => Self::new(ErrorCode::Aborted, text),
            CompactionError::Prevented(_) => Self::new(ErrorCode::Unsupported, text)
                .hint("A PreCompact hook of this session decides about compactions; see docs/hooks.md."),
            CompactionError::AlreadyCompacted => {
                Self::new(ErrorCode::Unsupported, text).hint("Send a prompt first.")
            }
            CompactionError::NothingToCompact => Self::new(ErrorCode::Unsupported, text)
                .hint("What is newer than the setting compaction.keepRecentTokens stays as it is."),
            CompactionError::NoSummary(_) => Self::new(ErrorCode::ModelFailed, text)
                .hint("Nothing has changed. Try again, or choose another model for it with set_model."),
            CompactionError::Refused(_) => Self::new(ErrorCode::ModelRefused, text)
                .hint("Nothing has changed. Choose another model for it with set_model."),
            CompactionError::NoBudget(_) => Self::new(ErrorCode::LimitReached, text)
                .hint("Nothing has changed. The setting budgets sets the limits."),
            CompactionError::Moved => {
                Self::new(ErrorCode::Unsupported, text).hint("Nothing has changed. Compact again.")
            }
            CompactionError::NotStored(_) => Self::new(ErrorCode::Io, text),
            CompactionError::Broken(_) => Self::new(ErrorCode::Internal, text),
        }
    }
}
