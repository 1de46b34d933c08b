//! The neutral form that adapters encode.

use std::borrow::Cow;

use agentd_protocol::message::ImageContent;
use serde_json::{Map, Value};

/// One turn of a legal transcript.
#[derive(Debug, PartialEq)]
pub(crate) enum Turn<'a> {
    /// A change of the system state in the middle of the conversation, as text.
    System(String),
    /// A prompt; never empty.
    User(Vec<Part<'a>>),
    /// An answer; never empty.
    Assistant(Vec<AssistantPart<'a>>),
    /// The results of all calls of the answer before, in the order of the calls.
    Results(Vec<ToolAnswer<'a>>),
}

/// A piece of a prompt or of a result.
#[derive(Debug, PartialEq)]
pub(crate) enum Part<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// An image.
    Image(&'a ImageContent),
}

/// A piece of an answer.
#[derive(Debug, PartialEq)]
pub(crate) enum AssistantPart<'a> {
    /// Text.
    Text {
        /// The text; empty only where the API puts a signature on nothing.
        text: &'a str,
        /// What the provider wants back with it; only of this very model.
        signature: Option<&'a str>,
    },
    /// Reasoning of this very model.
    Thinking {
        /// The reasoning.
        text: &'a str,
        /// What the provider wants back with it.
        signature: Option<&'a str>,
        /// Whether the provider withheld the reasoning.
        redacted: bool,
    },
    /// A tool call.
    ToolCall {
        /// The id in the transcript.
        original_id: &'a str,
        /// The id for the wire, unique in its answer.
        id: Cow<'a, str>,
        /// The tool.
        name: &'a str,
        /// The arguments.
        arguments: &'a Map<String, Value>,
        /// What the provider wants back with it; only of this very model.
        signature: Option<&'a str>,
    },
}

/// The result of a tool call.
#[derive(Debug, PartialEq)]
pub(crate) struct ToolAnswer<'a> {
    /// The id of the call on the wire.
    pub(crate) call_id: Cow<'a, str>,
    /// The tool.
    pub(crate) tool_name: &'a str,
    /// What it gave back.
    pub(crate) parts: Vec<Part<'a>>,
    /// Whether it failed.
    pub(crate) is_error: bool,
}
