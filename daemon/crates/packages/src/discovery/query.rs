//! What a discovery is about.

use std::path::{Path, PathBuf};

use agentd_config::{
    AgentDir, Environment, ProjectFolders,
    resources::{ResourceFlags, ResourceLists},
};

use crate::folders::PackageFolders;

/// The inputs of a discovery: those of a session's options and settings.
#[derive(Debug, Clone, Copy)]
pub struct DiscoveryQuery<'a> {
    /// The user's own are in it.
    pub agent_dir: &'a AgentDir,
    /// The working directory, absolute.
    pub cwd: &'a Path,
    /// Its project folders.
    pub folders: &'a ProjectFolders,
    /// True if those of the project count.
    pub trusted: bool,
    /// Names the home directory.
    pub environment: &'a Environment,
    /// The paths and packages of the settings.
    pub lists: &'a ResourceLists,
    /// `--extension` and `--no-extensions`.
    pub flags: &'a ResourceFlags,
    /// `--no-mcp`: without the built-in extension of that name.
    pub no_mcp: bool,
}

impl DiscoveryQuery<'_> {
    /// Where packages are.
    #[must_use]
    pub fn package_folders(&self) -> PackageFolders {
        PackageFolders::new(self.agent_dir, &self.project_base(), self.cwd, self.environment)
    }

    /// The folder of the project's settings file; where there is none, where it would be made.
    fn project_base(&self) -> PathBuf {
        let file = self.folders.place_of("settings.json").filter(|_| self.trusted);
        // The working directory of a project without a folder of its own: nothing of a project counts there.
        file.as_deref().and_then(Path::parent).unwrap_or(self.cwd).to_owned()
    }

    /// The lists that count: those of the project only where it is trusted.
    pub(crate) fn counting_lists(&self) -> ResourceLists {
        let mut lists = self.lists.clone();
        if !self.trusted {
            lists.project = agentd_config::resources::ListedPaths::default();
        }
        lists
    }
}
