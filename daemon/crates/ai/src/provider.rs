//! The interface to every model: a provider answers a request with deltas.

use std::pin::Pin;

use agentd_protocol::message::{AssistantMessage, StopReason, Usage};
use futures::Stream;
use tokio_util::sync::CancellationToken;

use crate::{Request, Stall, failure::Failure};

/// The deltas of one answer; see [`Delta`] for their legal order.
pub type DeltaStream = Pin<Box<dyn Stream<Item = Delta> + Send>>;

/// Speaks one provider API.
///
/// A provider keeps no state of a conversation: the request holds all of it.
pub trait Provider: Send + Sync {
    /// Sends `request` and streams the answer.
    ///
    /// Never fails by itself: any failure is a [`Delta::Failed`] in the stream. Nothing is sent before the stream is first polled. When
    /// `cancel` fires, the connection is closed at once and the stream ends with an aborted [`Delta::Failed`].
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
    /// A content block begins. Indices count from 0 in the order of opening, which is the order of the blocks in the answer.
    Open {
        /// The index of the block.
        index: usize,
        /// The kind of the block.
        kind: BlockKind,
    },
    /// A block grows: text, thinking, or a part of the JSON text of a tool call's arguments.
    Extend {
        /// The index of the block.
        index: usize,
        /// The added text; may be empty.
        delta: String,
    },
    /// A block is complete.
    Seal {
        /// The index of the block.
        index: usize,
        /// The provider's data about the finished block.
        seal: BlockSeal,
    },
    /// The token counts so far, which replace earlier ones.
    Usage(Usage),
    /// The provider's id of the answer.
    ResponseId(String),
    /// The model that answers, if it is not the requested one.
    ResponseModel(String),
    /// The provider exceeded a deadline: the request is sent again, or the answer fails.
    Stalled(Stall),
    /// The whole answer, as a provider in another process has put it together: it takes the place of what came so far, but for how it ends.
    /// Directly before the last delta.
    Whole(Box<AssistantMessage>),
    /// The answer is complete.
    Done {
        /// `Stop`, `Length` or `ToolUse`.
        stop_reason: StopReason,
        /// The stop reason in the provider's words.
        raw_stop_reason: Option<String>,
    },
    /// The answer failed or was aborted; its earlier content stays.
    Failed {
        /// Why.
        failure: Failure,
        /// The stop reason in the provider's words, if any.
        raw_stop_reason: Option<String>,
    },
}

/// The kind of a content block.
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

/// The provider's data about a finished block; all of it optional.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlockSeal {
    /// The opaque signature of a text, thinking or tool-call block, which is sent back to the provider with the block.
    pub signature: Option<String>,
    /// Whether the provider withheld the reasoning.
    pub redacted: bool,
    /// Whether the answer broke off inside of the block (failure, abort, output limit). The arguments of a tool call are then read as far
    /// as they go; otherwise text that is not a whole JSON object is an error.
    pub incomplete: bool,
}
