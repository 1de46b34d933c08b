//! The interface to every model: a provider answers a request with deltas.

use std::pin::Pin;

use agentd_protocol::message::{StopReason, Usage};
use futures::Stream;
use tokio_util::sync::CancellationToken;

use crate::{Request, Stall, failure::Failure};

/// The deltas of one answer; see [`Delta`] for their legal order.
pub type DeltaStream = Pin<Box<dyn Stream<Item = Delta> + Send>>;

/// Speaks one wire API.
///
/// A provider keeps no state of a conversation: the request holds all of it.
pub trait Provider: Send + Sync {
    /// Sends `request` and streams the answer.
    ///
    /// Never fails by itself: what goes wrong, before or inside the stream, is a [`Delta::Failed`]. Nothing is sent
    /// before the stream is first polled. When `cancel` fires, the connection is closed at once and the stream ends with
    /// an aborted [`Delta::Failed`].
    ///
    /// Cancel safety: dropping the stream closes the connection.
    fn stream(&self, request: Request, cancel: CancellationToken) -> DeltaStream;
}

/// One step of an answer.
///
/// The legal order: `Started` once, when the provider has accepted the request; then blocks, each opened, extended any
/// number of times and sealed, in any interleaving of indices; `Usage`, `ResponseId` and `ResponseModel` anywhere after
/// `Started`; last exactly one of `Done` or `Failed`, after which the stream ends. A `Failed` may come at any point, also
/// first, and may leave blocks unsealed: what came before it is kept. `Stalled` may stand anywhere before the last, and changes
/// nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// The provider accepted the request and begins to answer.
    Started,
    /// A content block begins. Indices count from 0 in the order of opening and are the blocks' places in the answer.
    Open {
        /// The block's place.
        index: usize,
        /// What the block is.
        kind: BlockKind,
    },
    /// A block grows: text, thinking, or a part of the JSON text of a tool call's arguments.
    Extend {
        /// The block's place.
        index: usize,
        /// What is added; may be empty.
        delta: String,
    },
    /// A block is complete.
    Seal {
        /// The block's place.
        index: usize,
        /// What the provider says of the finished block.
        seal: BlockSeal,
    },
    /// Tokens so far; each replaces the one before.
    Usage(Usage),
    /// The provider's id of the answer.
    ResponseId(String),
    /// The model that answers, where it is not the one asked.
    ResponseModel(String),
    /// The provider took too long: the request is sent again next, or the answer fails.
    Stalled(Stall),
    /// The answer is complete.
    Done {
        /// Why it ended: `Stop`, `Length` or `ToolUse`.
        stop_reason: StopReason,
        /// The same in the provider's words.
        raw_stop_reason: Option<String>,
    },
    /// The answer failed or was aborted; what came before stays.
    Failed {
        /// Why.
        failure: Failure,
        /// The stop reason in the provider's words, where there was one.
        raw_stop_reason: Option<String>,
    },
}

/// What a content block is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockKind {
    /// Text.
    Text,
    /// Reasoning.
    Thinking,
    /// A tool call.
    ToolCall {
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
    },
}

/// What the provider says of a finished block; all of it optional.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlockSeal {
    /// The opaque signature of a text, thinking or tool-call block, which the provider wants back with it.
    pub signature: Option<String>,
    /// Whether the provider withheld the reasoning.
    pub redacted: bool,
    /// Whether the answer broke off inside of the block (failure, abort, output limit): a tool call's arguments are then
    /// read as far as they go, where otherwise text that is no whole JSON object is an error.
    pub incomplete: bool,
}
