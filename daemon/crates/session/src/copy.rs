//! A copy of a session's branch, on its way to becoming a session.

use std::path::PathBuf;

use agentd_process::ArtifactFolder;
use agentd_store::SessionTree;

use crate::tools::ToolChoice;

/// Up to where a session is copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyPoint {
    /// Up to the entry before this one, which has to be a message of the user.
    Before(String),
    /// Up to the entry that the next one will follow.
    Leaf,
}

/// A branch of a session under a new id: what [`open_copy`](crate::open_copy) makes a session of.
#[derive(Debug)]
pub struct BranchCopy {
    pub(crate) tree: Box<SessionTree>,
    /// The tools that somebody chose in the original.
    pub(crate) tools: ToolChoice,
    /// Where the file of the original is; `None`: in memory only, as the copy will be.
    pub(crate) folder: Option<PathBuf>,
    /// The long outputs of the original.
    pub(crate) artifacts: Option<ArtifactFolder>,
    /// The text of the message that the copy ends before.
    pub text: Option<String>,
}
