//! Failures of commands, for programs (the code) and for people (the text and the hint).

use serde::{Deserialize, Serialize};

/// The kind of failure that a response reports. The list is closed and its names never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The line is no JSON.
    Parse,
    /// There is no command of that name.
    UnknownCommand,
    /// A field is missing or holds something unusable.
    InvalidField,
    /// The connection has no current session.
    NoSession,
    /// No session has that id or path.
    SessionNotFound,
    /// Another process writes to the session.
    SessionLocked,
    /// The session is at work on something that excludes the command.
    Busy,
    /// The session is changing, so that its messages cannot be paged.
    SessionBusy,
    /// The cursor is of what the session was before.
    StaleCursor,
    /// No model is chosen, or the requested one does not exist.
    NoModel,
    /// No usable credentials for the provider.
    NoCredentials,
    /// The model or its provider failed, or did not do what was requested.
    ModelFailed,
    /// The model, or a filter before or behind it, refused to answer.
    ModelRefused,
    /// The command is known but cannot be done in this situation.
    Unsupported,
    /// The file system refused.
    Io,
    /// An entry or another named thing does not exist.
    NotFound,
    /// It was stopped before it was done.
    Aborted,
    /// The daemon is ending and takes no new work.
    ShuttingDown,
    /// The line is longer than the limit.
    TooLarge,
    /// It would exceed a limit; the hint names the setting.
    LimitReached,
    /// The client may not do that.
    Forbidden,
    /// A fault of the daemon.
    Internal,
}

/// The failure fields of a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{error}")]
pub struct Failure {
    /// The failure, for people.
    pub error: String,
    /// The kind of failure, for programs.
    pub code: ErrorCode,
    /// The remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Failure {
    /// A failure without a hint.
    #[must_use]
    pub fn new(code: ErrorCode, error: impl Into<String>) -> Self {
        Self { error: error.into(), code, hint: None }
    }

    /// A limit that is reached: what happened, with the limit and what there is, and the setting that says so.
    #[must_use]
    pub fn limit(error: impl Into<String>, setting: &str, instead: &str) -> Self {
        let hint = format!("{instead} The setting {setting} sets the limit.");
        Self::new(ErrorCode::LimitReached, error).hint(hint.trim_start())
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
