//! The built-in tools: what a model can have done to files and with commands.
//!
//! Each tool implements [`agentd_agent::Tool`] and belongs to one session. The tools that change files share the
//! session's [`FileQueue`], so that changes of one file follow each other. The rest is what tools rest on: paths as
//! models write them, output cut to what a model can take, files replaced in one step, system errors by their names.
//!
//! This crate knows nothing of sessions, connections or models; what a tool needs of its session it is given.

mod arguments;
mod atomic;
mod bash;
mod blocking;
mod edit;
mod errno;
mod file_queue;
mod find;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod grep;
mod home;
mod kernel;
mod ls;
pub mod operations;
mod path;
mod processes;
mod read;
mod real_path;
mod search;
#[cfg(test)]
mod testing;
mod truncate;
mod write;
mod xattr;

pub use bash::{BackgroundFeature, BashFeatures, BashOptions, BashTool, Interception, IsActive};
pub use edit::EditTool;
pub use file_queue::{FileQueue, FileTurn, Ticket};
pub use find::{Find, FindTool};
pub use grep::{Grep, GrepTool};
pub use ls::{Ls, LsTool};
pub use processes::process_tools;
pub use read::ReadTool;
pub use search::{SearchKind, SearchTool};
pub use truncate::{Limits, MAX_BYTES, MAX_LINES, count_lines, format_size, truncate_head, truncate_tail};
pub use write::WriteTool;
