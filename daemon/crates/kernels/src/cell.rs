//! A cell on its way to its kernel, and what the kernel tells of it.

use agentd_protocol::message::ImageContent;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::records::CellDone;

/// What waits of a cell's news for the call; a kernel that is ahead waits.
pub(crate) const NEWS: usize = 16;

/// A cell for a kernel.
pub(crate) struct Cell {
    pub(crate) code: String,
    /// Variables of the session, for the interpreter's environment.
    pub(crate) env: Map<String, Value>,
    /// Takes what happens. One that nobody reads any more ends nothing.
    pub(crate) news: mpsc::Sender<CellNews>,
    /// Fires to stop the cell.
    pub(crate) stop: CancellationToken,
}

/// What happens while a cell runs.
#[derive(Debug)]
pub(crate) enum CellNews {
    /// It has begun, and may have effects from here on.
    Started,
    /// It printed.
    Text(Vec<u8>),
    /// It shows an image.
    Image(ImageContent),
    /// It shows a value.
    Json(Value),
    /// It calls a tool.
    Call { number: u64, name: String, arguments: Map<String, Value> },
    /// It has ended; nothing follows.
    Ended(CellEnd),
}

/// How a cell ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CellEnd {
    /// The kernel says so, and goes on.
    Done(CellDone),
    /// Its kernel is gone: a clause that says why.
    KernelGone(String),
}
