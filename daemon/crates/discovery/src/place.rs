//! Where is looked for files.

use std::path::{Path, PathBuf};

use agentd_config::{AgentDir, Environment, ProjectBounds, real_path};

/// The folders of a session. All paths are absolute and without symbolic links, where they exist.
#[derive(Debug, Clone)]
pub struct DiscoveryPlace {
    /// The working directory.
    pub(crate) cwd: PathBuf,
    /// The project around it.
    pub(crate) bounds: ProjectBounds,
    /// The home directory.
    pub(crate) home: Option<PathBuf>,
    /// The agent directory.
    pub(crate) agent_dir: PathBuf,
    /// Says where other tools keep what is the user's.
    pub(crate) environment: Environment,
}

impl DiscoveryPlace {
    /// The place of a session. Looks at folders; blocks.
    #[must_use]
    pub fn of(cwd: &Path, agent_dir: &AgentDir, environment: &Environment) -> Self {
        let home = environment.non_empty("HOME").map(|home| real_path(Path::new(home)));
        let cwd = real_path(cwd);
        Self {
            bounds: ProjectBounds::around_real(&cwd, home.as_deref()),
            cwd,
            home,
            agent_dir: real_path(agent_dir.path()),
            environment: environment.clone(),
        }
    }

    /// The working directory and the folders above it, up to the root of the project, with their distance. The home directory is no
    /// project.
    pub(crate) fn walk_up(&self) -> Vec<(usize, PathBuf)> {
        let ancestors = self.cwd.ancestors().take_while(|folder| folder.starts_with(&self.bounds.root));
        let project = ancestors.enumerate().filter(|(_, folder)| self.home.as_deref() != Some(*folder));
        project.map(|(distance, folder)| (distance, folder.to_path_buf())).collect()
    }

    /// A file or folder of the working directory; `None` in the home directory, whose entries are the user's.
    pub(crate) fn in_cwd(&self, name: &str) -> Option<PathBuf> {
        (self.home.as_deref() != Some(self.cwd.as_path())).then(|| self.cwd.join(name))
    }

    /// A file or folder of the home directory.
    pub(crate) fn in_home(&self, name: &str) -> Option<PathBuf> {
        self.home.as_ref().map(|home| home.join(name))
    }

    /// The folder that a variable names, else one of the home directory.
    pub(crate) fn named_or_in_home(&self, variable: &str, name: &str) -> Option<PathBuf> {
        let named = self.environment.non_empty(variable).map(PathBuf::from);
        named.filter(|path| path.is_absolute()).or_else(|| self.in_home(name))
    }
}
