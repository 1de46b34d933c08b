//! Cells that somebody else runs: a client of the session, instead of a kernel.

use std::{path::PathBuf, sync::Arc, time::Duration};

use agentd_protocol::message::{ContentBlock, ImageContent};
use futures::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Knows who runs cells of a language instead of a kernel.
pub trait CellExecutors: Send + Sync {
    /// Who runs cells of this language, which calls name so; `None` for a kernel. Asked anew for each cell.
    fn executor(&self, language: &str) -> Option<Arc<dyn CellExecutor>>;
}

/// Kernels run every cell.
impl CellExecutors for () {
    fn executor(&self, _: &str) -> Option<Arc<dyn CellExecutor>> {
        None
    }
}

/// Runs cells.
pub trait CellExecutor: Send + Sync {
    /// Runs a cell to its end, and sends what it prints meanwhile. When `stop` fires or the time of the cell is over, the executor is told to
    /// stop it, and the future ends at once.
    fn run<'a>(
        &'a self,
        cell: ExecutorCell,
        printed: mpsc::UnboundedSender<String>,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, ExecutorEnd>;
}

/// A cell for an executor.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutorCell {
    /// The call of `eval`.
    pub call_id: String,
    /// The language, as calls name it.
    pub language: String,
    /// The code.
    pub code: String,
    /// What it is for.
    pub title: Option<String>,
    /// How long it may take; `None`: without a limit.
    pub timeout: Option<Duration>,
    /// Whether its interpreter is to be started anew first.
    pub reset: bool,
    /// The session's folder.
    pub cwd: PathBuf,
}

/// How a cell of an executor ended.
#[derive(Debug, Clone, PartialEq)]
pub enum ExecutorEnd {
    /// The executor says so.
    Done {
        /// Text behind what was printed.
        text: String,
        /// What it shows.
        images: Vec<ImageContent>,
        /// Why the cell failed, if it did.
        error: Option<String>,
    },
    /// It took too long.
    TimedOut,
    /// The run was aborted.
    Aborted,
    /// There will be no answer, or none that can be used: a sentence that says why.
    Lost(String),
}

impl ExecutorEnd {
    /// The end of a cell with this content.
    #[must_use]
    pub fn done(content: Vec<ContentBlock>, error: Option<String>) -> Self {
        let (mut text, mut images) = (String::new(), Vec::new());
        for block in content {
            match block {
                ContentBlock::Text { text: more, .. } => text.push_str(&more),
                ContentBlock::Image(image) => images.push(image),
                ContentBlock::Thinking { .. } | ContentBlock::ToolCall(_) => {}
            }
        }
        Self::Done { text, images, error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_images_of_an_end_are_taken_apart() {
        let image = ImageContent { data: "AA==".into(), mime_type: "image/png".into() };
        let content =
            vec![ContentBlock::text("a"), ContentBlock::Image(image.clone()), ContentBlock::text("b")];
        assert_eq!(
            ExecutorEnd::done(content, Some("no".into())),
            ExecutorEnd::Done { text: "ab".into(), images: vec![image], error: Some("no".into()) }
        );
    }
}
