//! A folder with files, for tests.

use std::{fs, path::PathBuf};

use agentd_config::{AgentDir, Environment};

use crate::place::DiscoveryPlace;

/// A temporary folder that is filled with files; its `home` is the home directory, its `home/.agentd` the agent directory.
pub(crate) struct TestFolder(tempfile::TempDir);

impl TestFolder {
    /// Files by path below the folder, with what they say.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        fs::create_dir(folder.path("home")).unwrap();
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    pub(crate) fn write(&self, below: &str, text: &str) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Without symbolic links.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(below)
    }

    /// The place of a session in that folder.
    pub(crate) fn place(&self, cwd: &str) -> DiscoveryPlace {
        let environment: Environment = [("HOME", self.path("home"))].into_iter().collect();
        DiscoveryPlace::of(&self.path(cwd), &AgentDir::at(self.path("home/.agentd")), &environment)
    }
}
