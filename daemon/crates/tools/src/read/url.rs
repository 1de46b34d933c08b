//! URLs that `read` takes in the place of paths.

use std::pin::Pin;

use agentd_agent::ToolError;
use tokio_util::sync::CancellationToken;

/// The content behind a URL, or the text for the model why there is none.
pub type UrlContent<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, ToolError>> + Send + 'a>>;

/// Reads what URLs of one scheme stand for.
pub trait UrlReader: Send + Sync {
    /// What the URLs begin with, such as `mcp://`.
    fn start(&self) -> &str;

    /// Whether lines can be asked for behind the URL, such as `:50-100`.
    fn takes_lines(&self) -> bool {
        true
    }

    /// The content of the URL with this rest after its beginning. It fits into memory.
    fn read<'a>(&'a self, rest: &'a str, cancel: &'a CancellationToken) -> UrlContent<'a>;
}
