//! What a task changed, after its copy was captured: enough to merge it, or to throw it away, without the copy.

use std::path::{Path, PathBuf};

use agentd_protocol::isolation::IsolationMode;
use serde::{Deserialize, Serialize};

use crate::repository::Repository;

/// The changes of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Captured {
    /// The id of the task.
    pub id: String,
    /// How the changes were to be captured. A repository where commits were not possible has a patch in any case.
    pub mode: IsolationMode,
    /// The repositories with changes, outermost first. Empty when nothing was changed.
    pub units: Vec<CapturedUnit>,
    /// What is not captured, and why commits were not possible, in sentences without a full stop.
    pub notices: Vec<String>,
    /// New repositories that the task made: they are no part of a patch or a commit, and were moved to these folders.
    #[serde(with = "crate::record::path_list")]
    pub kept: Vec<PathBuf>,
}

/// The changes in one repository.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CapturedUnit {
    pub(crate) repository: Repository,
    /// The number of changed files.
    pub files: usize,
    /// The changes.
    pub change: UnitChange,
}

/// Where the changes in one repository are.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UnitChange {
    /// In a file for `git apply --binary`.
    Patch {
        /// The file.
        #[serde(with = "crate::record::path_bytes")]
        path: PathBuf,
    },
    /// On a branch of the repository.
    Branch {
        /// Its name, `agentd/task/<id>`.
        name: String,
        /// The commit that the branch began at.
        base: String,
        /// Its last commit.
        tip: String,
        /// The number of commits.
        commits: usize,
    },
}

impl Captured {
    /// Whether the task changed nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }
}

impl CapturedUnit {
    /// The repository below the outermost one; empty for that one.
    #[must_use]
    pub fn below(&self) -> &Path {
        &self.repository.below
    }

    /// The repository's folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.repository.root
    }
}
