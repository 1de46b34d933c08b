//! Files that the user names for an output.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use agentd_files::replace::Replacement;
use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::Errno,
};

/// What becomes of a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Present {
    /// It stays, and writing fails.
    Keep,
    /// It is replaced.
    Replace,
}

/// Writes a file, which is complete or missing afterwards; a replaced one stays until the new one is complete.
///
/// `mode` is that of a new file, less the umask. Symbolic links are followed; devices and named pipes are written to.
///
/// # Errors
/// The system's, and those of `content`; `AlreadyExists` where a file is to stay.
pub(crate) fn write(
    path: &Path,
    present: Present,
    mode: u32,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let replace = present == Present::Replace;
    // Devices and pipes cannot be replaced.
    if replace && fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        return filled(open_device(path)?, content);
    }
    if !replace {
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        return filled(file, content).or_else(|error| fs::remove_file(path).and(Err(error)));
    }
    // A symbolic link stays; the file behind it is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let name = path.file_name().ok_or_else(|| io::Error::other("it is no name of a file"))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let prefix = format!(".{}.", name.to_string_lossy());
    let mut new = Replacement::create(folder, &prefix, ".tmp", mode)?;
    if let Ok(old) = fs::metadata(&path) {
        new.file_mut().set_permissions(old.permissions())?;
    }
    filled(new.file_mut(), content)?;
    new.commit(&path).map(drop)
}

/// Opens a device or a named pipe for writing, without waiting for a reader of the pipe.
fn open_device(path: &Path) -> io::Result<File> {
    let waits_for_nobody = OFlags::NONBLOCK.bits().cast_signed();
    let opened = OpenOptions::new().write(true).custom_flags(waits_for_nobody).open(path);
    let file = opened.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::NXIO) => io::Error::other(
            "nobody reads from this named pipe: start the reader first, or name a file that is not there yet",
        ),
        _ => error,
    })?;
    // From here on writing waits for a slow reader.
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

fn filled(file: impl Write, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    content(&mut out)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn a_file_is_there_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        let names = || fs::read_dir(folder.path()).unwrap().count();
        let torn = |out: &mut dyn Write| out.write_all(b"half").and(Err(io::Error::other("torn")));
        assert_eq!(write(&path, Present::Keep, 0o600, torn).unwrap_err().to_string(), "torn");
        assert_eq!(names(), 0);
        write(&path, Present::Keep, 0o600, |out| out.write_all(b"one")).unwrap();
        assert_eq!(
            write(&path, Present::Keep, 0o600, |_| Ok(())).unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
        write(&path, Present::Replace, 0o600, torn).unwrap_err();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names()), ("one", 1));
        let link = folder.path().join("link.md");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write(&link, Present::Replace, 0o600, |out| out.write_all(b"two")).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names()), ("two", 2));
        assert!(link.is_symlink());
        write(Path::new("/dev/null"), Present::Replace, 0o600, |out| out.write_all(b"x")).unwrap();
    }
}
