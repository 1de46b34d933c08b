//! Replaces the content of a file in one step: readers see the old content or the new.

use std::{
    fs::{self, File, Metadata, OpenOptions, Permissions},
    io::{self, Read as _, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
    path::Path,
    time::SystemTime,
};

use agentd_files::replace::Replacement;
use agentd_files::xattr;
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenProblem, OpenRules};
use rustix::{
    fs::{Access, AtFlags, CWD, OFlags},
    io::Errno,
};

use crate::{
    operations::{FileSnapshot, FileStamp, WriteError},
    real_path::real_path,
};

/// Makes `content` the content of the file at `path`, an absolute path; its folder must exist.
///
/// The content goes to a temporary file beside it that then takes its name, so after a crash the file has the old
/// content or the new. (After a power failure it may not: nothing is forced to the disk.) Symbolic links stay, and
/// their target is replaced. An existing file keeps its mode, owner, access lists and user attributes; a new one has
/// mode 0666 less the umask.
///
/// Three kinds of files are written in place instead, because a new file could not replace them fully: files with
/// several hard links, files whose owner cannot be given to a new file, and files in folders that take no new files.
///
/// With `before`, checks right before the step that the file is still as it was then, and writes nothing otherwise.
///
/// Blocks; belongs on a blocking thread.
///
/// # Errors
/// [`WriteError`]. A file that must not be written is refused, even if its folder may be.
pub(crate) fn replace(
    path: &Path,
    content: &[u8],
    before: Option<&FileSnapshot<'_>>,
) -> Result<(), WriteError> {
    let failed = |source| WriteError::System { call: "open", path: path.to_owned(), source };
    replace_real(path, &real_path(path).map_err(failed)?, content, before)
}

/// [`replace`] for a path whose real path is known: `target`. A link that has taken its place meanwhile is not followed.
///
/// # Errors
/// As of [`replace`].
pub(crate) fn replace_real(
    path: &Path,
    target: &Path,
    content: &[u8],
    before: Option<&FileSnapshot<'_>>,
) -> Result<(), WriteError> {
    let failed = |call| move |source| WriteError::System { call, path: path.to_owned(), source };
    let change = Change { path, target, content, before };
    match fs::symlink_metadata(target) {
        Ok(old) => {
            check_writable(path, target, &old)?;
            if old.nlink() > 1 {
                return change.overwrite();
            }
            match prepare(target, Some(&old)) {
                Ok(Some(file)) => change.put(file),
                Ok(None) => change.overwrite(),
                Err(error) if takes_no_new_files(&error) => change.overwrite(),
                Err(error) => Err(failed("open")(error)),
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let file = prepare(target, None).map_err(failed("open"))?;
            match file {
                Some(file) => change.put(file),
                None => change.overwrite(),
            }
        }
        Err(error) => Err(failed("open")(error)),
    }
}

/// Refuses what a plain write would refuse, and what it would hang on.
fn check_writable(path: &Path, target: &Path, old: &Metadata) -> Result<(), WriteError> {
    let failed =
        |errno: Errno| WriteError::System { call: "open", path: path.to_owned(), source: errno.into() };
    if old.is_dir() {
        return Err(failed(Errno::ISDIR));
    }
    if !old.is_file() {
        return Err(WriteError::NotRegular(path.to_owned()));
    }
    rustix::fs::accessat(CWD, target, Access::WRITE_OK, AtFlags::EACCESS).map_err(failed)
}

/// An empty temporary file beside `target` with the properties of `old`; `None` when they cannot be given to it.
fn prepare(target: &Path, old: Option<&Metadata>) -> io::Result<Option<Replacement>> {
    let folder = target.parent().unwrap_or(Path::new("/"));
    let mode = if old.is_some() { 0o600 } else { 0o666 };
    let mut new = Replacement::create(folder, ".agentd-", ".tmp", mode)?;
    let Some(old) = old else { return Ok(Some(new)) };
    let file = new.file_mut();
    let about = file.metadata()?;
    if (about.uid(), about.gid()) != (old.uid(), old.gid())
        && fchown(&*file, Some(old.uid()), Some(old.gid())).is_err()
    {
        return Ok(None);
    }
    // The setuid and setgid bits are dropped, as with any write.
    file.set_permissions(Permissions::from_mode(old.mode() & 0o1777))?;
    // Attributes of an unreadable file cannot be read, so the file cannot be replaced.
    if !File::open(target).is_ok_and(|old| xattr::copy(&old, file)) {
        return Ok(None);
    }
    Ok(Some(new))
}

/// One replacement.
struct Change<'a> {
    /// The path for messages.
    path: &'a Path,
    /// The real path of the file.
    target: &'a Path,
    content: &'a [u8],
    before: Option<&'a FileSnapshot<'a>>,
}

impl Change<'_> {
    fn failed(&self, call: &'static str, source: io::Error) -> WriteError {
        WriteError::System { call, path: self.path.to_owned(), source }
    }

    /// Checks that the file is unchanged.
    fn check(&self) -> Result<(), WriteError> {
        let Some(before) = self.before else { return Ok(()) };
        match is_unchanged(self.target, before) {
            Ok(true) => Ok(()),
            Ok(false) => Err(WriteError::Changed(self.path.to_owned())),
            Err(error) => Err(self.failed("open", error)),
        }
    }

    fn put(&self, mut new: Replacement) -> Result<(), WriteError> {
        new.file_mut().write_all(self.content).map_err(|error| self.failed("write", error))?;
        self.check()?;
        match new.commit(self.target) {
            Ok(_) => Ok(()),
            // A mount point cannot be replaced by a rename, and some folders let only owners replace their files.
            Err(error) if takes_no_new_files(&error) && self.target.exists() => self.overwrite(),
            Err(error) => Err(self.failed("rename", error)),
        }
    }

    fn overwrite(&self) -> Result<(), WriteError> {
        self.check()?;
        let mut file: File = OpenOptions::new()
            .write(true)
            .truncate(true)
            .custom_flags((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed())
            .open(self.target)
            .map_err(|error| self.failed("open", error))?;
        file.write_all(self.content).map_err(|source| WriteError::Torn { path: self.path.to_owned(), source })
    }
}

/// Whether the folder refused, not the disk or the name.
fn takes_no_new_files(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::BUSY | Errno::NAMETOOLONG)
    )
}

/// Whether the file at `target`, a path without links, is unchanged.
///
/// # Errors
/// The system's; a missing file counts as changed.
fn is_unchanged(target: &Path, before: &FileSnapshot<'_>) -> io::Result<bool> {
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
    if before.stamp.differs(&FileStamp::of(&now.metadata()?, SystemTime::now())) {
        return Ok(false);
    }
    if before.stamp.is_sure {
        return Ok(true);
    }
    let mut content = Vec::with_capacity(before.content.len() + 1);
    now.take(before.content.len() as u64 + 1).read_to_end(&mut content)?;
    Ok(content == before.content)
}

#[cfg(test)]
mod tests;
