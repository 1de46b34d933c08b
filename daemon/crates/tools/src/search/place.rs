//! Resolves the path at which a search begins.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use agentd_agent::ToolError;

use crate::{
    errno,
    home::Home,
    operations::{About, FileHost, FileKind, FileSystem},
};

/// An existing path.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    about: About,
}

impl Place {
    /// Resolves a path argument; without one, the working directory. Reads its metadata; blocks.
    ///
    /// # Errors
    /// `Path not found: ABS`, or another error of the system.
    pub(crate) fn find(
        argument: Option<&str>,
        cwd: &Path,
        home: &Home,
        (host, files): (&dyn FileHost, &dyn FileSystem),
    ) -> Result<Self, ToolError> {
        let path = home.resolve(argument.unwrap_or("."), cwd, host)?;
        match files.about(&path) {
            Ok(about) => Ok(Self { path, about }),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Err(ToolError(format!("Path not found: {}", path.display())))
            }
            Err(error) => Err(ToolError(errno::describe(&error, "stat", &path))),
        }
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.about.kind == FileKind::Folder
    }

    pub(crate) fn is_file(&self) -> bool {
        self.about.kind == FileKind::File
    }
}
