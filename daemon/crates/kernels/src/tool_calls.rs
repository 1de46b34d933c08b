//! Calls of the session's tools by cells.

use agentd_protocol::tool::ToolResult;
use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

/// A call of a tool by a cell.
#[derive(Debug, Clone)]
pub struct CellToolCall {
    /// The call of `eval` that makes it.
    pub parent: String,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// Fires when the cell is stopped.
    pub cancel: CancellationToken,
}

/// The result of a call, and whether it failed.
pub type ToolCallFuture = BoxFuture<'static, (ToolResult, bool)>;

/// Runs the calls of cells: through the gate, with hooks, events and budgets, as those of the model.
pub trait ToolCaller: Send + Sync {
    /// Runs a call to its end. Every call has a result: one that is refused has the reason.
    fn call(&self, call: CellToolCall) -> ToolCallFuture;
}
