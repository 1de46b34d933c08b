//! The tool `eval`.

/// The name of the tool that runs cells of code in an interpreter that stays.
pub const EVAL_TOOL: &str = "eval";
