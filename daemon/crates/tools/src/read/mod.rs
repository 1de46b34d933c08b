//! The `read` tool.

mod image;
mod kernel;
mod open;
mod scan;
mod tool;

pub use tool::ReadTool;
