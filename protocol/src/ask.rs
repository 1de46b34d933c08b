//! The tool `ask`, by which the model asks the user.

/// The name of the tool.
pub const ASK_TOOL: &str = "ask";
