//! The `read` tool.

mod image;
mod open;
mod scan;
mod selector;
mod tool;
mod url;

pub(crate) use selector::scheme;
pub use tool::ReadTool;
pub use url::{LineSuffix, ReadHow, SessionUrls, UrlContent, UrlReader, UrlSource, UrlWritten};
