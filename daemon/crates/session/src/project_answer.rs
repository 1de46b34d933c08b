//! What extensions said about a project, for the sessions that follow in it.

use std::path::{Path, PathBuf};

use agentd_config::StartingFiles;

/// What extensions said about a project.
#[derive(Debug, Clone)]
pub(crate) struct ProjectAnswer {
    /// The working directory that they were asked about.
    pub(crate) cwd: PathBuf,
    /// Whether it is trusted; `None` where they left that to others.
    pub(crate) trusted: Option<bool>,
    /// The files that it is about.
    pub(crate) files: StartingFiles,
}

/// What the extensions of a session have to do with the trust in projects, for the session that comes after it.
#[derive(Debug, Clone, Default)]
pub struct AskedBefore {
    /// Whether they are asked about projects.
    pub(crate) are_asked: bool,
    /// What they said about the session's.
    pub(crate) answer: Option<ProjectAnswer>,
}

impl AskedBefore {
    /// What they said about the project in that folder.
    pub(crate) fn about(&self, cwd: &Path) -> Option<&ProjectAnswer> {
        self.answer.as_ref().filter(|answer| answer.cwd == cwd)
    }
}

/// What was said about the project of a session while it is open, where no flag decides.
pub(crate) struct Approval {
    /// `None` where nothing was said.
    pub(crate) approve: Option<bool>,
    /// The files that a yes is for.
    pub(crate) files: Option<StartingFiles>,
}
