//! The `read` tool.

mod open;
mod scan;
mod sniff;
mod tool;

pub use tool::ReadTool;
