//! The steps of confining a process, and their errors.

use std::io;

/// A step of confining a process, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfineStep {
    /// A mount namespace of its own.
    Namespace,
    /// The mounts in it.
    Mounts,
    /// Entering the working directory again.
    WorkingDirectory,
    /// Giving capabilities up.
    Capabilities,
    /// Landlock.
    Landlock,
    /// The filter of system calls.
    Seccomp,
}

impl ConfineStep {
    const ALL: [Self; 6] = [
        Self::Namespace,
        Self::Mounts,
        Self::WorkingDirectory,
        Self::Capabilities,
        Self::Landlock,
        Self::Seccomp,
    ];

    /// A number for [`Self::from_code`].
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The step with this number.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.code() == code)
    }

    /// What failed, for people.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Namespace => "a mount namespace",
            Self::Mounts => "the mounts of the sandbox",
            Self::WorkingDirectory => "entering the working directory in the sandbox",
            Self::Capabilities => "giving up capabilities",
            Self::Landlock => "landlock",
            Self::Seccomp => "the filter of system calls",
        }
    }
}

/// Why a process could not be confined.
#[derive(Debug, thiserror::Error)]
#[error("{} failed: {source}", step.text())]
pub struct ConfineError {
    /// The step that failed.
    pub step: ConfineStep,
    /// The system's error.
    pub source: io::Error,
}

impl ConfineError {
    #[cfg(target_os = "linux")]
    pub(crate) fn at<E: Into<io::Error>>(step: ConfineStep) -> impl Fn(E) -> Self {
        move |error| Self { step, source: error.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_comes_back_by_its_number() {
        for step in ConfineStep::ALL {
            assert_eq!(ConfineStep::from_code(step.code()), Some(step));
        }
        assert_eq!(ConfineStep::from_code(99), None);
    }
}
