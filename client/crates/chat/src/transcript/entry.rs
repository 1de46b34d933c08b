//! What stands in a conversation.

use std::time::Instant;

use agentd_client_text::TodoLine;

use super::image::Image;

/// One thing in a conversation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Entry {
    /// A message of the user, typed here or in another client.
    User {
        text: String,
        is_from_another: bool,
    },
    /// A text block of an answer, in Markdown.
    Answer {
        text: String,
        is_complete: bool,
    },
    /// A thinking block of an answer.
    Thinking {
        text: String,
        is_complete: bool,
    },
    Tool(ToolCall),
    /// A command that the user ran by `!`.
    Bash {
        command: String,
        output: String,
        state: ToolState,
    },
    /// A summary in the place of earlier messages.
    Summary {
        title: String,
        text: String,
    },
    /// A line of the client or the daemon.
    Notice {
        level: NoticeLevel,
        text: String,
    },
    /// An image of the message or the call before it.
    Image(Image),
    /// A unified diff that was asked for.
    Diff(String),
}

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoticeLevel {
    Info,
    Warning,
    Error,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    /// The tool and its most telling argument, on one line.
    pub(crate) subject: String,
    /// The arguments as indented JSON.
    pub(crate) arguments: String,
    /// The output so far, or the whole of it.
    pub(crate) output: String,
    /// The check list of a result of `todo`.
    pub(crate) todos: Vec<TodoLine>,
    /// The unified diff of an edit.
    pub(crate) diff: Option<String>,
    pub(crate) state: ToolState,
}

/// The progress of a call or command.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ToolState {
    Running(Instant),
    /// It was called, and nothing tells how it ended.
    Unknown,
    Done(String),
    Failed(String),
}

impl Entry {
    /// Whether its details are hidden until they are asked for.
    pub(crate) fn can_unfold(&self) -> bool {
        matches!(self, Self::Thinking { .. } | Self::Tool(_) | Self::Summary { .. } | Self::Bash { .. })
    }

    /// Whether it stands right below an entry of its kind, without a blank row.
    pub(super) fn joins(&self, before: &Self) -> bool {
        matches!((before, self), (Self::Tool(_) | Self::Thinking { .. }, Self::Tool(_)))
            || matches!((before, self), (Self::Tool(_) | Self::User { .. }, Self::Image(_)))
            || matches!((before, self), (Self::Notice { .. }, Self::Notice { .. }))
    }

    pub(crate) fn notice(level: NoticeLevel, text: impl Into<String>) -> Self {
        Self::Notice { level, text: text.into() }
    }
}
