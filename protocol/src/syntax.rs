//! The tools that search and change code by its structure.

/// The name of the tool that searches.
pub const AST_GREP_TOOL: &str = "ast_grep";

/// The name of the tool that changes.
pub const AST_EDIT_TOOL: &str = "ast_edit";
