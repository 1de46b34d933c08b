//! Opens a path along symbolic links, or refuses them.

use std::{
    fs::File,
    io,
    os::{fd::OwnedFd, unix::fs::MetadataExt as _},
    path::Path,
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    io::Errno,
};

use crate::error::{FileKind, OpenProblem};

/// Which symbolic links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkPolicy<'a> {
    /// All: the user who named the file means its target.
    Followed,
    /// None at the end of the path. The caller vouches for the folders before it.
    Refused,
    /// Those that stay below this folder at every step. The path must begin with the folder, as written.
    ///
    /// Linux resolves the path in one call (`openat2`). Elsewhere, and where a kernel or a container lacks that call,
    /// the real path of the file is compared with that of the folder before and after opening.
    Beneath(&'a Path),
}

/// Opens `path` along the links that `links` allows. The caller checks the opened file.
pub(super) fn open(
    path: &Path,
    links: LinkPolicy<'_>,
    flags: OFlags,
    mode: Mode,
) -> Result<File, OpenProblem> {
    match links {
        LinkPolicy::Followed => {
            // Opening some devices has effects, so check the kind before opening, and again once it is open.
            match path.metadata() {
                Ok(about) if FileKind::from(about.file_type()) != FileKind::File => {
                    return Err(OpenProblem::NotAFile(FileKind::from(about.file_type())));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound && !flags.contains(OFlags::CREATE) => {
                    return Err(OpenProblem::System(error));
                }
                Ok(_) | Err(_) => {}
            }
            openat(CWD, path, flags, mode).map(File::from).map_err(|errno| other(path, errno))
        }
        LinkPolicy::Refused => without_link(path, flags, mode),
        LinkPolicy::Beneath(root) => beneath(path, root, flags, mode),
    }
}

fn without_link(path: &Path, flags: OFlags, mode: Mode) -> Result<File, OpenProblem> {
    match openat(CWD, path, flags | OFlags::NOFOLLOW, mode) {
        Ok(file) => Ok(file.into()),
        // A circle of links earlier in the path gives the same error.
        Err(Errno::LOOP) if path.is_symlink() => Err(OpenProblem::Link),
        Err(errno) => Err(other(path, errno)),
    }
}

fn beneath(path: &Path, root: &Path, flags: OFlags, mode: Mode) -> Result<File, OpenProblem> {
    let Ok(below) = path.strip_prefix(root) else { return Err(OpenProblem::LeadsOut) };
    match resolve(root, below, flags, mode) {
        Ok(file) => return Ok(file.into()),
        // An absolute link may still lead below the folder, and some containers forbid the call.
        Err(Errno::XDEV | Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::AGAIN) => {}
        Err(errno) => return Err(other(path, errno)),
    }
    by_comparing(path, root, flags, mode)
}

/// Opens a path below `root` by comparing real paths: for absolute links, and for systems without `openat2`.
pub(super) fn by_comparing(path: &Path, root: &Path, flags: OFlags, mode: Mode) -> Result<File, OpenProblem> {
    let real_root = root.canonicalize().map_err(OpenProblem::System)?;
    let real = path.canonicalize().map_err(OpenProblem::System)?;
    if !real.starts_with(&real_root) {
        return Err(OpenProblem::LeadsOut);
    }
    let file = without_link(&real, flags, mode)?;
    // A folder on the path may have been replaced by a link meanwhile.
    let (opened, now) = (file.metadata(), real.canonicalize().and_then(|again| again.symlink_metadata()));
    let is_same = matches!((&opened, &now), (Ok(a), Ok(b)) if (a.dev(), a.ino()) == (b.dev(), b.ino()));
    if is_same && real.canonicalize().is_ok_and(|again| again == real) {
        Ok(file)
    } else {
        Err(OpenProblem::LeadsOut)
    }
}

/// Opens a path below a folder in one call that no link can lead out of.
#[cfg(target_os = "linux")]
fn resolve(root: &Path, below: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};

    let folder = openat(CWD, root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    openat2(folder, below, flags, mode, ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS)
}

/// Other systems have no such call.
#[cfg(not(target_os = "linux"))]
fn resolve(_: &Path, _: &Path, _: OFlags, _: Mode) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

/// Translates the system's error for a path.
fn other(path: &Path, errno: Errno) -> OpenProblem {
    // The errors of opening a socket, a pipe without a reader, a device without a driver, or a folder for writing.
    if matches!(errno, Errno::NXIO | Errno::OPNOTSUPP | Errno::ISDIR)
        && let Ok(about) = path.metadata()
        && FileKind::from(about.file_type()) != FileKind::File
    {
        return OpenProblem::NotAFile(FileKind::from(about.file_type()));
    }
    OpenProblem::System(io::Error::from(errno))
}
