//! Where a path really leads, also when the file is not there yet.

use std::{
    io,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

/// How many links are followed before they count as a circle: the number that Linux allows.
const MAX_LINKS: u32 = 40;

/// Resolves every symbolic link of `path`, an absolute path. Of a path that does not exist, what exists is resolved and
/// the rest kept: two names of one file to come are the same file. A link to a missing file leads to that file.
///
/// # Errors
/// What the system says about a folder on the way, such as a circle of links or a missing right; a missing file or
/// folder is no error.
pub(crate) fn real_path(path: &Path) -> io::Result<PathBuf> {
    follow(path, MAX_LINKS)
}

fn follow(path: &Path, links_left: u32) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        done => return done,
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(path.to_owned()) };
    if let Ok(target) = path.read_link() {
        let links_left = links_left.checked_sub(1).ok_or_else(|| io::Error::from(Errno::LOOP))?;
        return follow(&parent.join(target), links_left);
    }
    Ok(follow(parent, links_left)?.join(name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_and_missing_ends_kept() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::fs::write(root.join("real/a"), "").unwrap();
        symlink("real", root.join("link")).unwrap();
        symlink("missing/b", root.join("real/dangling")).unwrap();
        let check = |path: &str, expected: &str| {
            assert_eq!(real_path(&root.join(path)).unwrap(), root.join(expected), "{path}");
        };
        check("link/a", "real/a");
        check("link/new", "real/new");
        check("link/x/y/z", "real/x/y/z");
        check("link/dangling", "real/missing/b");
    }

    #[test]
    fn a_circle_of_links_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        symlink("b", dir.path().join("a")).unwrap();
        symlink("a", dir.path().join("b")).unwrap();
        let error = real_path(&dir.path().join("a")).unwrap_err();
        assert_eq!(crate::errno::code(&error), "ELOOP");
        let error = real_path(&dir.path().join("a/x")).unwrap_err();
        assert_eq!(crate::errno::code(&error), "ELOOP");
    }
}
