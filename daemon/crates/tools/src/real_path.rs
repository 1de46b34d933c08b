//! Resolves the symbolic links of a path, even when the file does not exist yet.

use std::{
    ffi::OsString,
    fs::Metadata,
    io,
    os::unix::fs::MetadataExt as _,
    path::{Component, Path, PathBuf},
};

use rustix::{io::Errno, process::geteuid};

/// The mode of a sticky folder that everybody can write to.
const FOR_ALL: u32 = 0o1002;

/// Links followed before they count as a circle: Linux's limit.
const MAX_LINKS: u32 = 40;

/// Resolves every symbolic link of `path`, an absolute path. Of a path that does not exist, the existing part is
/// resolved and the rest kept, so that two names of a future file are the same file. A link to a missing file resolves
/// to that file.
///
/// A link that another user has put into a folder for all (`/tmp`) is not followed, whatever the system's
/// `fs.protected_symlinks` is: the system does not apply that to links that this function follows.
///
/// # Errors
/// The system's for a folder on the path, such as a circle of links or a missing permission; a missing file or folder
/// is no error.
pub(crate) fn real_path(path: &Path) -> io::Result<PathBuf> {
    let mut real = PathBuf::from("/");
    // The remaining names, the next one last.
    let mut left: Vec<OsString> = names(path);
    let mut links = 0;
    let mut is_missing = false;
    while let Some(name) = left.pop() {
        if name == ".." {
            real.pop();
            continue;
        }
        let next = real.join(&name);
        let about = if is_missing { None } else { about(&next)? };
        match about {
            Some(about) if about.is_symlink() => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::LOOP.into());
                }
                check_link(&real, &about)?;
                let target = next.read_link()?;
                if target.is_absolute() {
                    real = PathBuf::from("/");
                }
                left.extend(names(&target));
            }
            Some(about) => {
                if !about.is_dir() && !left.is_empty() {
                    return Err(Errno::NOTDIR.into());
                }
                real = next;
            }
            None => {
                is_missing = true;
                real = next;
            }
        }
    }
    Ok(real)
}

/// The names in a path, in reverse.
fn names(path: &Path) -> Vec<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().to_owned()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    };
    path.components().rev().filter_map(name).collect()
}

/// The metadata at a path, links not followed; `None` when nothing is there.
fn about(path: &Path) -> io::Result<Option<Metadata>> {
    match path.symlink_metadata() {
        Ok(about) => Ok(Some(about)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Refuses a link in a folder where everybody may create one, unless it belongs to this user or to the folder's owner.
fn check_link(folder: &Path, link: &Metadata) -> io::Result<()> {
    let folder = folder.metadata()?;
    let is_for_all = folder.mode() & FOR_ALL == FOR_ALL;
    let is_known = link.uid() == geteuid().as_raw() || link.uid() == folder.uid();
    if is_for_all && !is_known { Err(Errno::ACCESS.into()) } else { Ok(()) }
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
    fn links_of_others_in_folders_for_all_are_not_followed() {
        use std::os::unix::fs::{PermissionsExt as _, lchown};
        if !geteuid().is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (shared, mine) = (root.join("shared"), root.join("mine"));
        std::fs::create_dir(&shared).unwrap();
        std::fs::write(&mine, "").unwrap();
        symlink(&mine, shared.join("link")).unwrap();
        let mode = |mode| std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(mode)).unwrap();
        mode(0o1777);
        assert_eq!(real_path(&shared.join("link")).unwrap(), mine);
        lchown(shared.join("link"), Some(65534), None).unwrap();
        for path in ["link", "link/below"] {
            let error = real_path(&shared.join(path)).unwrap_err();
            assert_eq!(crate::errno::code(&error), "EACCES", "{path}");
        }
        // Links of the folder's owner are followed, and so are links in folders that are not for all.
        lchown(&shared, Some(65534), None).unwrap();
        assert_eq!(real_path(&shared.join("link")).unwrap(), mine);
        lchown(&shared, Some(0), None).unwrap();
        mode(0o777);
        assert_eq!(real_path(&shared.join("link")).unwrap(), mine);
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
