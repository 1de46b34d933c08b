//! The calls on mounts: copies of them, putting them in place, their attributes.
#![allow(unsafe_code, reason = "mount_setattr has no safe form; its use says why it is sound")]

use std::{
    ffi::CStr,
    io as std_io,
    os::fd::{AsRawFd as _, BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, openat2},
    io::{self, Errno},
    mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree},
};

/// A copy of the mounts at a path and below; `None` when it is missing.
pub(crate) fn clone_of(path: &Path) -> io::Result<Option<OwnedFd>> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    match open_tree(CWD, path, flags) {
        Ok(mount) => Ok(Some(mount)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Mounts a detached mount at a path.
pub(crate) fn attach(mount: &OwnedFd, path: &Path) -> io::Result<()> {
    move_mount(mount, c"", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

/// A copy of the mounts at a path on which no link may be, and below; `None` when it is missing, or a link is on it.
pub(crate) fn clone_of_real(path: &Path) -> io::Result<Option<OwnedFd>> {
    let Some(place) = open_real(path)? else { return Ok(None) };
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    open_tree(place, c"", flags).map(Some)
}

/// Mounts a detached mount at a path, unless a link is on it by now.
pub(crate) fn attach_real(mount: &OwnedFd, path: &Path) -> io::Result<()> {
    let Some(place) = open_real(path)? else { return Ok(()) };
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount, c"", place, c"", flags)
}

/// A handle to a path on which no link may be. What commands may write is only taken so: a link that an earlier command left on the way
/// would make something else writable. `None` when the path is missing, or there is a link.
pub(crate) fn open_real(path: &Path) -> io::Result<Option<OwnedFd>> {
    match openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(place) => Ok(Some(place)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The attribute of a mount that is not written.
pub(crate) const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;

/// Sets attributes of the mount at a path, and with `AT_RECURSIVE` of all below.
pub(crate) fn restrict(
    at: BorrowedFd<'_>,
    path: &CStr,
    attributes: u64,
    flags: libc::c_int,
) -> io::Result<()> {
    let attributes = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: the kernel reads the path and `attributes`, whose size it is given; both outlive the call.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at.as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if outcome == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&std_io::Error::last_os_error()).unwrap_or(Errno::IO))
}
