//! Paths without symbolic links, of folders that are asked for again and again.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use agentd_files::look;

/// The folders that are remembered at most: those of a thousand sessions are few.
const MOST_KNOWN: usize = 512;

/// A folder, whatever its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

/// Folders by the paths that lead to them, each with its path without links.
static KNOWN: Mutex<Option<HashMap<PathBuf, (Identity, PathBuf)>>> = Mutex::new(None);

/// The path without symbolic links where it exists, else as it is. Blocks.
///
/// Each part of a path is a look of its own. Of a folder that was asked for before, one look says whether its path leads to the same folder still: a folder
/// has one place. What was found stays true then; only where a folder was moved and a link put in its place, it is that link.
#[must_use]
pub fn real_path(path: &Path) -> PathBuf {
    let Some(found) = look(path) else { return path.to_path_buf() };
    if !found.is_folder {
        return real_path_of_file(path);
    }
    let identity = Identity { device: found.device, inode: found.stamp.number() };
    let known = |identity| {
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let (found, real) = known.as_ref()?.get(path)?;
        (*found == identity).then(|| real.clone())
    };
    if let Some(real) = known(identity) {
        return real;
    }
    let Ok(real) = path.canonicalize() else { return path.to_path_buf() };
    if identity_of(&real) == Some(identity) {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(path.to_path_buf(), (identity, real.clone()));
    }
    real
}

/// That of its folder, unless it is a link itself. Where a file has several names that differ in case, the system alone knows which is the real one.
fn real_path_of_file(path: &Path) -> PathBuf {
    if cfg!(target_os = "linux")
        && let (Some(folder), Some(name)) = (path.parent(), path.file_name())
        && !folder.as_os_str().is_empty()
        && path.symlink_metadata().is_ok_and(|about| !about.is_symlink())
    {
        return real_path(folder).join(name);
    }
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

/// The folder that a path leads to; `None` where it is none.
fn identity_of(path: &Path) -> Option<Identity> {
    let found = look(path).filter(|found| found.is_folder)?;
    Some(Identity { device: found.device, inode: found.stamp.number() })
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_link_that_leads_elsewhere_is_followed_again() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (one, two, link) = (root.join("one"), root.join("two"), root.join("link"));
        fs::create_dir(&one).unwrap();
        fs::create_dir(&two).unwrap();
        symlink(&one, &link).unwrap();
        for _ in 0..2 {
            assert_eq!(real_path(&link), one);
        }
        fs::remove_file(&link).unwrap();
        symlink(&two, &link).unwrap();
        assert_eq!(real_path(&link), two);
        fs::remove_dir(&two).unwrap();
        assert_eq!(real_path(&link), link);
    }

    #[test]
    fn files_and_what_is_not_there() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (file, link) = (root.join("file"), root.join("link"));
        fs::write(&file, "").unwrap();
        symlink(&file, &link).unwrap();
        assert_eq!((real_path(&link), real_path(&root.join("none"))), (file.clone(), root.join("none")));
        let folder = root.join("folder");
        symlink(&root, &folder).unwrap();
        for below in ["file", "link", "folder/file", "folder/link"] {
            assert_eq!(real_path(&folder.join(below)), file, "{below}");
        }
        symlink("nowhere", root.join("dangling")).unwrap();
        assert_eq!(real_path(&root.join("dangling")), root.join("dangling"));
    }
}
