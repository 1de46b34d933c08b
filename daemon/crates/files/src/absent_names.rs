//! Files and folders that most folders do not have, and staying sure of it by one look at the folder.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use crate::stamp::{Stamp, now};

/// The folders that are remembered at most.
const MOST_KNOWN: usize = 1024;

/// Some names, and the folders that had none of them when they were last looked at.
#[derive(Debug)]
pub struct AbsentNames {
    names: &'static [&'static str],
    /// The state of each of these folders then.
    without: Mutex<Option<HashMap<PathBuf, Stamp>>>,
}

impl AbsentNames {
    /// These names. Nothing was looked at.
    #[must_use]
    pub const fn new(names: &'static [&'static str]) -> Self {
        Self { names, without: Mutex::new(None) }
    }

    /// Whether a folder may have one of the names: it has, or was not there. A folder that has not changed since it had none of them is not
    /// searched again. Blocks.
    #[must_use]
    pub fn may_be_in(&self, folder: &Path) -> bool {
        let taken = now();
        let Some(stamp) = Stamp::of(folder) else { return true };
        let without = || self.without.lock().unwrap_or_else(PoisonError::into_inner);
        if without().as_ref().and_then(|known| known.get(folder)) == Some(&stamp) {
            return false;
        }
        // A link that leads nowhere may lead somewhere the next time.
        let has_one = self.names.iter().any(|name| folder.join(name).symlink_metadata().is_ok());
        if !has_one && stamp.is_old(taken) {
            let mut without = without();
            let known = without.get_or_insert_default();
            if known.len() >= MOST_KNOWN {
                known.clear();
            }
            known.insert(folder.to_path_buf(), stamp);
        }
        has_one
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    static NAMES: AbsentNames = AbsentNames::new(&["a", "b"]);

    /// As if the folder had been looked at long after its last change.
    fn remember(folder: &Path) {
        let stamp = Stamp::of(folder).unwrap();
        NAMES.without.lock().unwrap().get_or_insert_default().insert(folder.to_path_buf(), stamp);
    }

    #[test]
    fn what_comes_to_be_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert!(!NAMES.may_be_in(folder));
        remember(folder);
        assert!(!NAMES.may_be_in(folder));
        fs::write(folder.join("b"), "").unwrap();
        assert!(NAMES.may_be_in(folder));
        fs::remove_file(folder.join("b")).unwrap();
        assert!(!NAMES.may_be_in(folder));
        remember(folder);
        symlink("nowhere", folder.join("a")).unwrap();
        assert!(NAMES.may_be_in(folder));
    }

    #[test]
    fn a_folder_that_has_just_changed_is_not_relied_on() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!NAMES.may_be_in(folder.path()));
        assert!(!NAMES.without.lock().unwrap().as_ref().is_some_and(|it| it.contains_key(folder.path())));
        assert!(NAMES.may_be_in(&folder.path().join("none")));
    }
}
