//! A folder with files, for tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A temporary folder that is filled with files.
pub(crate) struct TestFolder(tempfile::TempDir);

impl TestFolder {
    /// Files by path below the folder, with what they say.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            place.write(name, text);
        }
        place
    }

    pub(crate) fn write(&self, below: &str, text: &str) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The folder without symbolic links.
    pub(crate) fn root(&self) -> String {
        self.0.path().canonicalize().unwrap().display().to_string()
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(below)
    }

    /// A path as it is below the folder.
    pub(crate) fn below(&self, path: &Path) -> String {
        path.strip_prefix(self.path("")).unwrap_or(path).display().to_string()
    }
}
