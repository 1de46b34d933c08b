//! The tool that applies a unified diff.

/// The name of the tool.
pub const PATCH_TOOL: &str = "patch";
