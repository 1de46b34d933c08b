//! The `read` tool.

mod image;
mod open;
mod scan;
mod selector;
mod tool;
mod url;

pub use tool::ReadTool;
pub use url::{UrlContent, UrlReader};
