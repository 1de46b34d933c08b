//! The built-in tools: what a model can do to files and with commands.
//!
//! Each tool implements [`agentd_agent::Tool`] and belongs to one session. Tools that change files share the session's
//! [`FileQueue`], so that changes of one file happen in turn. The other modules are shared by the tools: paths as
//! models write them, output truncated to what a model can take, atomic replacement of files, system errors by name.
//!
//! This crate knows nothing of sessions, connections or models: a tool receives what it needs of its session.

mod arguments;
mod ask;
mod atomic;
mod bash;
mod blocking;
mod edit;
mod errno;
mod file_changes;
mod file_queue;
mod find;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod grep;
mod home;
mod kernel;
mod limits;
mod ls;
pub mod operations;
mod output_meta;
mod patch;
mod path;
mod plan;
mod processes;
mod read;
mod real_path;
mod search;
mod session_folder;
mod ssh;
mod syntax;
#[cfg(test)]
mod testing;
mod todo;
mod truncate;
mod undo;
mod write;

pub use ask::{AskTool, AskUser, UserAnswer};
pub use bash::{
    BackgroundFeature, BashFeatures, BashOptions, BashTool, Interception, IsActive, JobRecorder, JobsFeature,
    JobsSwitch, Recorded, has_own_shell, tail_details, tail_text,
};
pub use edit::{EditTool, edited_text};
pub use file_changes::{
    ApprovalFuture, ChangeApproval, ChangeJournals, ChangePlace, FileChange, ProposedChange, ReadFile,
    TakenBack,
};
pub use file_queue::{FileQueue, FileTicket, FileTurn};
pub use find::{Find, FindTool};
pub use grep::{Grep, GrepTool};
pub use limits::{MAX_BYTES, MAX_LINES};
pub use ls::{Ls, LsTool};
pub use patch::{PatchOptions, PatchTool, files_of_patch};
pub use path::resolve_path_argument;
pub use plan::{PlanReview, ProposePlanTool, ProposedPlan, Successor};
pub use processes::{job_end_text, job_line, job_state_text, kill_process, process_tools, write_input};
pub use read::{LineSuffix, ReadHow, ReadTool, SessionUrls, UrlContent, UrlReader, UrlSource, UrlWritten};
pub use search::{SearchKind, SearchTool};
pub use session_folder::SessionFolder;
pub use ssh::{RemoteHost, RemoteHostOptions, RemoteHosts, SshTool, SshUrls};
pub use syntax::{AstEditOptions, AstEditTool, AstGrepTool, SyntaxLimits, SyntaxProgram};
pub use todo::{TodoList, TodoTool};
pub use truncate::{TextLimits, count_lines, format_size, truncate_head, truncate_tail};
pub use undo::{CommandWatch, explain_gap};
pub use write::WriteTool;
