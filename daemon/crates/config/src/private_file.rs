//! Writing a file of the user's: whole or not at all, one writer at a time across processes.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

/// Only the user may look into what we create.
const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Creates a directory and its parents, private to the user; nothing happens to one that exists.
pub(crate) fn create_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIR_MODE).create(path)
}

/// Holds an exclusive advisory lock until it is dropped. The file stays: removing it would let two writers in.
pub(crate) struct Lock(#[expect(dead_code, reason = "closing the file is what unlocks it")] File);

/// Waits for the lock file at `path` (made when it is not there) and locks it.
pub(crate) fn lock(path: &Path) -> io::Result<Lock> {
    if let Some(folder) = path.parent() {
        create_dir(folder)?;
    }
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(FILE_MODE).open(path)?;
    file.lock()?;
    Ok(Lock(file))
}

/// Puts `text` in the place of the file at `path`, through a symbolic link too. Its mode is kept; a new one is private.
/// A reader sees the old text or the new one.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = target.parent().unwrap_or_else(|| Path::new("."));
    create_dir(folder)?;
    let mode = fs::metadata(&target).map_or(FILE_MODE, |about| about.permissions().mode() & 0o7777);
    let mut file = tempfile::Builder::new().prefix(".tmp-").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(Permissions::from_mode(mode))?;
    // Else a crash of the machine could leave an empty file in the place of the settings.
    file.as_file().sync_all()?;
    file.persist(&target).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn new_files_are_private_and_old_ones_keep_mode_and_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent/settings.json");
        replace(&path, "1").unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        replace(&link, "2").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("2", 0o644));
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
