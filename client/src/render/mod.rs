//! What a run looks like on stdout and stderr.

mod demo_note;
mod text;
mod tool_line;

pub(crate) use demo_note::{AgentDir, demo_note};
pub(crate) use text::{Style, TextRenderer};
