//! A file that is there whole or not at all.

use std::{
    fs::{self, File},
    io::{self, BufWriter, ErrorKind, Write},
    path::{Path, PathBuf},
};

use agentd_files::{
    fail_point::{self, Point},
    replace::Replacement,
};

/// Why there is no exported file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The folder that the file was to be in is not there.
    #[error("cannot export to {}: there is no folder {}", path.display(), folder.display())]
    NoFolder {
        /// The file.
        path: PathBuf,
        /// The folder.
        folder: PathBuf,
    },
    /// The path is that of a folder.
    #[error("cannot export to {}: it is a folder", path.display())]
    IsFolder {
        /// The path.
        path: PathBuf,
    },
    /// The path is that of a device, a pipe or a socket.
    #[error("cannot export to {}: it is no regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("cannot export to {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl ExportError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoFolder { .. } => "Make the folder first, or name a file in one that is there.",
            Self::IsFolder { .. } => "Name a file, such as session.html in that folder.",
            Self::NotAFile { .. } => "Name a file that is not there yet, or one that may be replaced.",
            Self::Io { .. } => "Name a file in a folder that can be written to and has room.",
        }
    }
}

/// Writes a file. What is there under its name stays until the new one is whole, and is replaced then; the new one has the
/// old one's permissions, else it is the user's alone: a session holds what was read for it.
pub(crate) fn replace(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), ExportError> {
    let failed = |source| ExportError::Io { path: path.to_owned(), source };
    let old = match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => return Err(ExportError::IsFolder { path: path.to_owned() }),
        Ok(meta) if !meta.is_file() => return Err(ExportError::NotAFile { path: path.to_owned() }),
        Ok(meta) => Some(meta.permissions()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") || path.file_name().is_none() {
        return Err(ExportError::IsFolder { path: path.to_owned() });
    }
    // Through a symbolic link, the file behind it is what is replaced.
    let target = match old {
        Some(_) => fs::canonicalize(path).map_err(failed)?,
        None => path.to_owned(),
    };
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A short name, since that of the file may be as long as names can be.
    let mut new =
        Replacement::create(folder, ".agentd-export-", ".tmp", 0o600).map_err(|error| {
            match error.source.kind() {
                ErrorKind::NotFound => {
                    ExportError::NoFolder { path: path.to_owned(), folder: folder.to_owned() }
                }
                _ => failed(error.source),
            }
        })?;
    fill(new.file_mut(), content)
        .and_then(|()| {
            if let Some(permissions) = old {
                new.file_mut().set_permissions(permissions)?;
            }
            fail_point::call(Point::ExportRename)?;
            new.commit(&target)
        })
        .map(drop)
        .map_err(failed)
}

fn fill(file: &mut File, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(64 << 10, file);
    content(&mut out)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn text(text: &'static str) -> impl FnOnce(&mut dyn Write) -> io::Result<()> {
        move |out| out.write_all(text.as_bytes())
    }

    #[test]
    fn a_file_is_made_or_replaced_whole() {
        let dir = tempfile::tempdir().unwrap();
        let names = || fs::read_dir(dir.path()).unwrap().count();
        let path = dir.path().join(format!("{}.html", "n".repeat(250)));
        replace(&path, text("one")).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o604)).unwrap();
        let torn = replace(&path, |out| out.write_all(b"half").and(Err(io::Error::other("torn"))));
        assert!(torn.unwrap_err().to_string().ends_with(": torn"));
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names()), ("one", 1));
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        replace(&link, text("two")).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names()), ("two", 2));
        assert!(link.is_symlink());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o604);
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let fails = |path: &Path| replace(path, text("x")).unwrap_err();
        assert!(matches!(fails(dir.path()), ExportError::IsFolder { .. }));
        assert!(matches!(fails(&dir.path().join("new/")), ExportError::IsFolder { .. }));
        assert!(matches!(fails(Path::new("/dev/null")), ExportError::NotAFile { .. }));
        let missing = fails(&dir.path().join("no/a.html"));
        assert!(
            matches!(&missing, ExportError::NoFolder { folder, .. } if folder.ends_with("no")),
            "{missing}"
        );
        fs::write(dir.path().join("file"), "").unwrap();
        let beneath = fails(&dir.path().join("file/a.html"));
        assert!(matches!(&beneath, ExportError::Io { .. }) && beneath.to_string().contains("file/a.html"));
    }
}
