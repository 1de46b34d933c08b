//! Folders of files that appear whole, for this user only: other processes may write the same ones at the same time.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
};

/// Fills a folder by `fill`, which gets the folder to fill, and gives it its name then. Where somebody else was faster, theirs stays. Blocks.
///
/// # Errors
/// When something cannot be written.
pub(crate) fn appear(folder: &Path, fill: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let parent = folder.parent().unwrap_or(folder);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let unfinished = parent.join(name);
    // Left by a process of that number that was killed.
    match fs::remove_dir_all(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::DirBuilder::new().mode(0o700).create(&unfinished)?;
    fill(&unfinished)?;
    match fs::rename(&unfinished, folder) {
        // Somebody else was faster.
        Err(_) if folder.is_dir() => fs::remove_dir_all(&unfinished),
        renamed => renamed,
    }
}

/// Writes a new file.
///
/// # Errors
/// When it cannot be written, or is there already.
pub(crate) fn write_private(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(folder.join(name))?;
    file.write_all(content)
}
