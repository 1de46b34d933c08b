//! The `read` tool.

mod image;
mod open;
mod scan;
mod tool;

pub use tool::ReadTool;
