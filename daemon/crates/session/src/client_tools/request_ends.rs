//! What requests to clients are about, and why they end without an answer. Pure.

use std::fmt;

use agentd_protocol::host_uris::HostUriOperation;

/// What a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallOf {
    /// A tool of this name.
    Tool(String),
    /// A URL of this scheme.
    Url { scheme: String, operation: HostUriOperation },
    /// A cell of this language.
    Cell { language: String },
}

impl fmt::Display for CallOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(name) => write!(f, "the tool {name}"),
            Self::Url { scheme, .. } => write!(f, "{scheme}://"),
            Self::Cell { language } => write!(f, "cells of {language}"),
        }
    }
}

/// Why a request is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    Answered,
    Aborted,
    TimedOut,
    /// The connection left the session.
    Left,
}

impl Over {
    pub(super) fn why(self) -> &'static str {
        match self {
            Self::Answered => "it was answered before",
            Self::Aborted => "it was aborted",
            Self::TimedOut => "it took too long",
            Self::Left => "this connection has left the session",
        }
    }
}

/// Why a provider's calls end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaving {
    /// The client is gone.
    Disconnected,
    /// It follows the session no longer.
    LeftSession,
}

impl Leaving {
    /// The text for the model.
    pub(super) fn text(self, of: &CallOf) -> String {
        let verb = if matches!(of, CallOf::Cell { .. }) { "runs" } else { "provides" };
        match self {
            Self::Disconnected => format!("The client that {verb} {of} has disconnected."),
            Self::LeftSession => format!("The client that {verb} {of} has left the session."),
        }
    }
}
