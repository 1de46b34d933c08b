//! Removes files from one folder, and from no other that takes its place meanwhile.

use std::{ffi::CStr, io, path::Path};

use rustix::{
    fd::AsFd,
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat, unlinkat},
    io::Errno,
};

/// Removes the regular files of a folder whose names are wanted. The folder must not be a link. Blocks.
///
/// # Errors
/// When the folder cannot be read, and at the first file that cannot be removed.
pub(super) fn remove_from(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(CWD, folder, flags, Mode::empty())?;
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        if entry.file_name().to_str().is_ok_and(&is_wanted) && is_file(&folder, entry.file_name())? {
            remove(&folder, entry.file_name())?;
        }
    }
    Ok(())
}

fn is_file(folder: impl AsFd, name: &CStr) -> io::Result<bool> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(about) => Ok(FileType::from_raw_mode(about.st_mode) == FileType::RegularFile),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn remove(folder: impl AsFd, name: &CStr) -> io::Result<()> {
    match unlinkat(folder, name, AtFlags::empty()) {
        // Already removed by another process.
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
