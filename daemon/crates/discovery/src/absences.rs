//! Files and folders that are not there, and staying sure of it by few looks.
//!
//! Of most tools a project has nothing. What is not there comes to be by a change of the nearest folder above it that is there, so that one
//! look at that folder stands for a look at all of them while it does not change.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use agentd_files::{Stamp, exists, is_folder, stamp::now};

/// Paths at which nothing was.
#[derive(Debug, Default)]
pub(crate) struct Absences {
    by_folder: BTreeMap<PathBuf, AbsentPaths>,
    /// Behind links that lead nowhere: what they lead to comes to be somewhere else.
    behind_links: Vec<PathBuf>,
}

#[derive(Debug, Default)]
struct AbsentPaths {
    paths: Vec<PathBuf>,
    /// The state of the folder before all of the paths were last looked at, if a later change shows in it.
    seen: Mutex<Option<Stamp>>,
}

impl Absences {
    /// Nothing was at `path`. Looks at the folders above it; blocks.
    pub(crate) fn add(&mut self, path: PathBuf) {
        let nearest = path.ancestors().find(|there| exists(there) || there.symlink_metadata().is_ok());
        match nearest.filter(|folder| is_folder(folder)).map(Path::to_path_buf) {
            Some(folder) => self.by_folder.entry(folder).or_default().paths.push(path),
            None => self.behind_links.push(path),
        }
    }

    /// Returns whether nothing is at any of the paths. Blocks.
    pub(crate) fn are_current(&self) -> bool {
        self.by_folder.iter().all(|(folder, absent)| absent.are_current(folder))
            && self.behind_links.iter().all(|path| Stamp::of(path).is_none())
    }
}

/// The same paths, not looked at yet.
#[cfg(test)]
impl Clone for Absences {
    fn clone(&self) -> Self {
        let mut copy = Self::default();
        let paths = self.by_folder.values().flat_map(|absent| &absent.paths);
        paths.chain(&self.behind_links).for_each(|path| copy.add(path.clone()));
        copy
    }
}

impl AbsentPaths {
    fn are_current(&self, folder: &Path) -> bool {
        let (taken, stamp) = (now(), Stamp::of(folder));
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if stamp.is_some() && *seen == stamp {
            return true;
        }
        let are_absent = self.paths.iter().all(|path| Stamp::of(path).is_none());
        *seen = stamp.filter(|stamp| are_absent && stamp.is_old(taken));
        are_absent
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn absences(paths: &[&Path]) -> Absences {
        let mut absent = Absences::default();
        paths.iter().for_each(|path| absent.add(path.to_path_buf()));
        absent
    }

    #[test]
    fn one_look_at_the_folder_is_enough_while_it_does_not_change() {
        let folder = tempfile::tempdir().unwrap();
        let (near, far) = (folder.path().join("a"), folder.path().join("b/c/d"));
        let absent = absences(&[&near, &far]);
        assert_eq!(absent.by_folder.keys().collect::<Vec<_>>(), [folder.path()]);
        assert!(absent.are_current());
        // As if the folder had been made long ago.
        let stamp = Stamp::of(folder.path());
        *absent.by_folder[folder.path()].seen.lock().unwrap() = stamp;
        assert!(absent.are_current());
        // Another file of the folder has all looked at again.
        fs::write(folder.path().join("other"), "").unwrap();
        assert!(absent.are_current());
        fs::create_dir_all(&far).unwrap();
        assert!(!absent.are_current());
        fs::remove_dir_all(folder.path().join("b")).unwrap();
        fs::write(&near, "").unwrap();
        assert!(!absent.are_current());
    }

    #[test]
    fn a_folder_that_has_just_changed_is_not_relied_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let absent = absences(&[&path]);
        assert!(absent.are_current());
        assert!(absent.by_folder[folder.path()].seen.lock().unwrap().is_none());
    }

    #[test]
    fn what_a_link_leads_to_is_looked_at_itself() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let target = elsewhere.path().join("target");
        std::os::unix::fs::symlink(&target, folder.path().join("link")).unwrap();
        let path = folder.path().join("link/a");
        let absent = absences(&[&path]);
        assert!(absent.are_current());
        fs::create_dir(&target).unwrap();
        fs::write(target.join("a"), "").unwrap();
        assert!(!absent.are_current());
    }

    #[test]
    fn a_folder_that_goes_is_noticed_when_something_takes_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let path = inner.join("a");
        let absent = absences(&[&path]);
        *absent.by_folder[&inner].seen.lock().unwrap() = Stamp::of(&inner);
        fs::rename(&inner, folder.path().join("away")).unwrap();
        assert!(absent.are_current());
        fs::create_dir(&inner).unwrap();
        fs::write(&path, "").unwrap();
        assert!(!absent.are_current());
    }
}
