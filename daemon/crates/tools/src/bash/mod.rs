//! The `bash` tool.

mod call;
mod report;
mod tool;

pub use tool::{BashOptions, BashTool};
