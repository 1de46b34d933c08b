//! Tools that files name: a program that gets the arguments of a call on its input, and prints the result.
//!
//! `<agent dir>/tools/<name>.json` is the user's, `.agentd/tools/<name>.json` a trusted project's. Their calls pass the permissions like
//! those of any tool, and their programs run in the session's sandbox, under its limits.

mod answer;
mod definition;
mod load;
mod tool;

pub(crate) use self::{
    load::{ToolFilePlace, load_tool_files},
    tool::{FileTool, FileToolHost},
};
