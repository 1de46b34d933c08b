//! The files of this machine.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use agentd_safe_open::is_of_processes;
use rustix::fs::{Access, AtFlags, CWD, OFlags, RenameFlags};
use tokio_util::sync::CancellationToken;

use super::{
    FileFacts, FileHost, FileKind, FileSnapshot, FileStamp, FileSystem, FolderEntry, OpenFile, WriteError,
};
use crate::{atomic, kernel, real_path::real_path};

/// The files of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalHost;

impl FileHost for LocalHost {
    fn files(&self, _: &CancellationToken) -> Box<dyn FileSystem> {
        Box::new(LocalFiles)
    }
}

/// The file system of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalFiles;

impl FileSystem for LocalFiles {
    fn open(&self, path: &Path) -> io::Result<OpenFile> {
        let now = SystemTime::now();
        // Opening a pipe without this would wait for a writer.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        opened_at(file, now)
    }

    fn about(&self, path: &Path) -> io::Result<FileFacts> {
        path.metadata().map(|metadata| about(&metadata))
    }

    fn check_change(&self, path: &Path) -> io::Result<()> {
        Ok(rustix::fs::accessat(CWD, path, Access::READ_OK | Access::WRITE_OK, AtFlags::EACCESS)?)
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        real_path(path)
    }

    fn root_of_walk(&self, folder: &Path) -> PathBuf {
        // If it cannot be resolved, the ignore files along the given path apply.
        folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
    }

    fn create_folders(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn replace(
        &self,
        path: &Path,
        content: &[u8],
        before: Option<&FileSnapshot<'_>>,
    ) -> Result<(), WriteError> {
        atomic::replace(path, content, before)
    }

    fn move_file(&self, from: &Path, to: &Path) -> Result<(), WriteError> {
        move_at(CWD, from, CWD, to).map_err(|source| WriteError::System {
            call: "rename",
            path: to.to_owned(),
            source,
        })
    }

    fn remove_file(&self, path: &Path) -> Result<(), WriteError> {
        fs::remove_file(path).map_err(|source| WriteError::System {
            call: "unlink",
            path: path.to_owned(),
            source,
        })
    }

    fn list(&self, folders: &[PathBuf]) -> io::Result<Vec<io::Result<Vec<FolderEntry>>>> {
        Ok(folders.iter().map(|folder| list(folder)).collect())
    }

    fn is_local(&self) -> bool {
        true
    }
}

/// Moves a file to a path where nothing is.
///
/// # Errors
/// The system's.
pub(super) fn move_at(
    from_folder: impl std::os::fd::AsFd,
    from: &Path,
    to_folder: impl std::os::fd::AsFd,
    to: &Path,
) -> io::Result<()> {
    Ok(rustix::fs::renameat_with(from_folder, from, to_folder, to, RenameFlags::NOREPLACE)?)
}

fn list(folder: &Path) -> io::Result<Vec<FolderEntry>> {
    let listed = |entry: io::Result<fs::DirEntry>| {
        let entry = entry?;
        let kind = FileKind::from(entry.file_type()?);
        let target = match kind {
            // An unreachable target counts as missing.
            FileKind::Link => entry.path().metadata().ok().map(|metadata| metadata.file_type().into()),
            other => Some(other),
        };
        Ok(FolderEntry { name: entry.file_name(), kind, target })
    };
    folder.read_dir()?.map(listed).collect()
}

/// A file that was just opened.
///
/// # Errors
/// The system's.
#[cfg(target_os = "linux")]
pub(super) fn opened(file: File) -> io::Result<OpenFile> {
    opened_at(file, SystemTime::now())
}

/// A file that was opened after `now`.
fn opened_at(file: File, now: SystemTime) -> io::Result<OpenFile> {
    let metadata = file.metadata()?;
    let mut about = about(&metadata);
    if about.kind == FileKind::File && is_of_processes(&file)? {
        about.kind = FileKind::OfProcesses;
    }
    let (stamp, limit) = (FileStamp::of(&metadata, now), kernel::limit(&file)?);
    Ok(OpenFile { about, stamp, limit, content: Box::new(file) })
}

pub(super) fn about(metadata: &Metadata) -> FileFacts {
    FileFacts { kind: metadata.file_type().into(), length: metadata.len() }
}
