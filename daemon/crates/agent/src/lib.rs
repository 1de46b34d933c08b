//! The agent loop: turns, tools, steering. No disk, no network, no sessions: its host supplies them.

mod tool;

pub use tool::{Execution, Invocation, Progress, Tool, ToolError, ToolFuture};
