//! Files and folders that are not there, and staying sure of it by one look at the nearest folder above.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use crate::stamp::{Stamp, look, now};

/// The paths that are remembered at most.
const MOST_KNOWN: usize = 1024;

/// Paths at which nothing was, each with the nearest folder above it that was there, and the state of that before the look at the path.
static KNOWN: Mutex<Option<HashMap<PathBuf, (PathBuf, Stamp)>>> = Mutex::new(None);

/// Returns whether nothing is at a path, not even a link that leads nowhere, or something that cannot be looked at. Blocks.
///
/// What is not there comes to be by a change of the nearest folder above it that is there. While that does not change, the path is not looked at again: for
/// places at which mostly nothing is, several of them below one folder.
#[must_use]
pub fn is_absent(path: &Path) -> bool {
    let taken = now();
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let remembered = known().as_ref().and_then(|known| known.get(path).cloned());
    if let Some((folder, stamp)) = &remembered
        && look(folder).is_some_and(|look| look.stamp == *stamp)
    {
        return true;
    }
    if look(path).is_some() {
        return false;
    }
    // Before the path is looked at again: what comes to be in between changes the folder after this state of it.
    let above = path.ancestors().skip(1).find_map(|folder| Some((folder, look(folder)?)));
    if path.symlink_metadata().map_or_else(|error| error.kind() != io::ErrorKind::NotFound, |_| true) {
        return false;
    }
    // A link that leads nowhere is on the way: what it leads to comes to be somewhere else.
    let is_behind_link = above.is_none_or(|(folder, _)| {
        let next = path.ancestors().take_while(|part| *part != folder).last();
        next.is_some_and(|next| next != path && next.is_symlink())
    });
    if let Some((folder, look)) = above
        && !is_behind_link
        && look.is_folder
        && look.stamp.is_old(taken)
    {
        let mut known = known();
        let known = known.get_or_insert_default();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(path.to_path_buf(), (folder.to_path_buf(), look.stamp));
    }
    true
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    /// As if the folder had been looked at long after its last change.
    fn remember(path: &Path, folder: &Path) {
        let known = (folder.to_path_buf(), Stamp::of(folder).unwrap());
        KNOWN.lock().unwrap().get_or_insert_default().insert(path.to_path_buf(), known);
    }

    fn is_remembered(path: &Path) -> bool {
        KNOWN.lock().unwrap().as_ref().is_some_and(|known| known.contains_key(path))
    }

    #[test]
    fn what_comes_to_be_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for path in [folder.join("a"), folder.join("b/c/d")] {
            assert!(is_absent(&path));
            assert!(!is_remembered(&path), "the folder has just changed");
            remember(&path, folder);
            assert!(is_absent(&path));
            fs::create_dir_all(&path).unwrap();
            assert!(!is_absent(&path));
        }
    }

    #[test]
    fn what_is_there_is_not_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        symlink("nowhere", folder.join("link")).unwrap();
        assert!(!is_absent(&folder.join("link")));
        assert!(!is_absent(folder) && !is_absent(Path::new("/")));
        fs::write(folder.join("file"), "").unwrap();
        assert!(!is_absent(&folder.join("file/a")), "it cannot be looked at, and a reader says why");
    }

    #[test]
    fn behind_a_link_that_leads_nowhere_nothing_is_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        let target = folder.path().join("target");
        symlink(&target, &link).unwrap();
        while !Stamp::of(folder.path()).unwrap().is_old(now()) {
            std::thread::yield_now();
        }
        let path = link.join("a");
        assert!(is_absent(&path) && !is_remembered(&path));
        let other = folder.path().join("other");
        assert!(is_absent(&other) && is_remembered(&other));
        fs::create_dir_all(target.join("a")).unwrap();
        assert!(!is_absent(&path));
    }
}
