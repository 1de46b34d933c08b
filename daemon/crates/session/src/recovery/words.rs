//! What is said of a turn that was interrupted: to the model, and to the user.

/// The result of a call that was about to run, or ran.
pub(crate) const MAY_HAVE_RUN: &str = "interrupted by a crash; it may have run";

/// The result of a call that never began.
pub(crate) const DID_NOT_RUN: &str = "interrupted by a crash; it did not run";

/// The result of a call that came to its end with a result that is lost.
pub(crate) const RESULT_IS_LOST: &str =
    "interrupted by a crash; it ran to its end, but its result was too large to be kept";

/// The same three of a turn that a failing disk ended while the daemon lived on.
const DISK_MAY_HAVE_RUN: &str = "interrupted by a disk that failed; it may have run";

const DISK_DID_NOT_RUN: &str = "interrupted by a disk that failed; it did not run";

const DISK_RESULT_IS_LOST: &str =
    "interrupted by a disk that failed; it ran to its end, but its result was too large to be kept";

/// The error of an answer that was cut off.
pub(crate) const ANSWER: &str = "Interrupted by a crash";

/// What interrupted a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InterruptionCause {
    /// The end of the daemon, or of the session's task.
    Crash,
    /// The disk: the daemon lived on.
    Disk,
}

/// What became of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallFate {
    /// It never began.
    NotStarted,
    /// It began, and may have had any effect.
    Unknown,
    /// It came to its end, and what came of it is known.
    Done,
    /// It came to its end, and what came of it is not known.
    Lost,
}

impl CallFate {
    /// What the entry's field says.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NotStarted => "notStarted",
            Self::Unknown => "unknown",
            Self::Done | Self::Lost => "done",
        }
    }

    /// The text that stands for the result; `None` where there is one.
    pub(crate) fn text(self, cause: InterruptionCause) -> Option<&'static str> {
        match (self, cause) {
            (Self::NotStarted, InterruptionCause::Crash) => Some(DID_NOT_RUN),
            (Self::NotStarted, InterruptionCause::Disk) => Some(DISK_DID_NOT_RUN),
            (Self::Unknown, InterruptionCause::Crash) => Some(MAY_HAVE_RUN),
            (Self::Unknown, InterruptionCause::Disk) => Some(DISK_MAY_HAVE_RUN),
            (Self::Lost, InterruptionCause::Crash) => Some(RESULT_IS_LOST),
            (Self::Lost, InterruptionCause::Disk) => Some(DISK_RESULT_IS_LOST),
            (Self::Done, _) => None,
        }
    }

    /// What the user is told.
    pub(crate) fn story(self, name: &str) -> String {
        match self {
            Self::NotStarted => format!("{name} did not run"),
            Self::Unknown => format!("{name} may have run"),
            Self::Done => format!("{name} ran to its end"),
            Self::Lost => format!("{name} ran to its end, its result is lost"),
        }
    }
}
