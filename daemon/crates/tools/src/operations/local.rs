//! The files of this machine.

use std::{
    fs::{self, FileType, Metadata, OpenOptions},
    io::{self, Read},
    os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenProblem, OpenRules, is_of_processes};
use rustix::fs::{Access, AtFlags, CWD, OFlags};
use tokio_util::sync::CancellationToken;

use super::{About, Before, FileHost, FileKind, FileSystem, Listed, OpenFile, Stamp, WriteError};
use crate::{atomic, kernel, real_path::real_path};

/// The age after which two changes can no longer look like one: the resolution of the coarsest file systems.
const SETTLED: Duration = Duration::from_secs(2);

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
        let metadata = file.metadata()?;
        let mut about = about(&metadata);
        if about.kind == FileKind::File && is_of_processes(&file)? {
            about.kind = FileKind::OfProcesses;
        }
        Ok(OpenFile {
            about,
            stamp: stamp(&metadata, now),
            limit: kernel::limit(&file)?,
            content: Box::new(file),
        })
    }

    fn about(&self, path: &Path) -> io::Result<About> {
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

    fn replace(&self, path: &Path, content: &[u8], before: Option<&Before<'_>>) -> Result<(), WriteError> {
        atomic::replace(path, content, before)
    }

    fn list(&self, folders: &[PathBuf]) -> io::Result<Vec<io::Result<Vec<Listed>>>> {
        Ok(folders.iter().map(|folder| list(folder)).collect())
    }

    fn is_local(&self) -> bool {
        true
    }
}

fn list(folder: &Path) -> io::Result<Vec<Listed>> {
    let listed = |entry: io::Result<fs::DirEntry>| {
        let entry = entry?;
        let kind = FileKind::from(entry.file_type()?);
        let target = match kind {
            // An unreachable target counts as missing.
            FileKind::Link => entry.path().metadata().ok().map(|metadata| metadata.file_type().into()),
            other => Some(other),
        };
        Ok(Listed { name: entry.file_name(), kind, target })
    };
    folder.read_dir()?.map(listed).collect()
}

fn about(metadata: &Metadata) -> About {
    About { kind: metadata.file_type().into(), length: metadata.len() }
}

impl From<FileType> for FileKind {
    fn from(file_type: FileType) -> Self {
        if file_type.is_file() {
            Self::File
        } else if file_type.is_dir() {
            Self::Folder
        } else if file_type.is_symlink() {
            Self::Link
        } else if file_type.is_fifo() {
            Self::Pipe
        } else if file_type.is_socket() {
            Self::Socket
        } else {
            Self::Device
        }
    }
}

fn stamp(metadata: &Metadata, now: SystemTime) -> Stamp {
    let nanoseconds =
        |seconds: i64, nanoseconds: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
    let changed = (
        nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
    );
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // A time in the future is not settled either.
    let settled = now.saturating_sub(SETTLED).as_nanos().cast_signed();
    Stamp {
        file: (metadata.dev(), metadata.ino()),
        length: metadata.len(),
        changed,
        is_sure: changed.0.max(changed.1) < settled,
    }
}

/// Whether the file at `target`, a path without links, is unchanged.
///
/// # Errors
/// The system's; a missing file counts as changed.
pub(crate) fn is_unchanged(target: &Path, before: &Before<'_>) -> io::Result<bool> {
    let now = match OpenRules::new(LinkPolicy::Refused).owner(AcceptedOwner::Anybody).open(target) {
        Ok(file) => file,
        Err(error)
            if error.is_missing()
                || matches!(error.problem(), OpenProblem::Link | OpenProblem::NotAFile(_)) =>
        {
            return Ok(false);
        }
        Err(error) => return Err(error.into()),
    };
    if before.stamp.differs(&stamp(&now.metadata()?, SystemTime::now())) {
        return Ok(false);
    }
    if before.stamp.is_sure {
        return Ok(true);
    }
    let mut content = Vec::with_capacity(before.content.len() + 1);
    now.take(before.content.len() as u64 + 1).read_to_end(&mut content)?;
    Ok(content == before.content)
}
