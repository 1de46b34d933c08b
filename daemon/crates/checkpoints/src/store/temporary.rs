//! A content that is being written.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use super::{private_file, unique_name};

/// A file that is removed unless it is kept.
pub(super) struct Temporary {
    pub(super) path: PathBuf,
    pub(super) file: File,
}

impl Temporary {
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        let path = folder.join(format!(".{}.tmp", unique_name()));
        Ok(Self { file: private_file(&path)?, path })
    }

    pub(super) fn keep(&self, to: &Path) -> io::Result<()> {
        fs::rename(&self.path, to)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // It is gone when it was kept.
        let _ = fs::remove_file(&self.path);
    }
}
