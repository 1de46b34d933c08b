//! The tools `ast_grep` and `ast_edit`: they find and change code by its structure.
//!
//! Files are read here, through the session's file system, so that its sandbox, its ignore files and its host count as for every other
//! tool. The program `agentd-syntax` gets texts alone, and tells what matches ([`SyntaxProgram`]). Files without the names of the pattern
//! are left out before that.

mod ast_grep;
mod edit;
mod program;
mod read;
mod request;
mod search;

pub use ast_grep::AstGrepTool;
pub use edit::{AstEditOptions, AstEditTool};
pub use program::{SyntaxLimits, SyntaxProgram};
