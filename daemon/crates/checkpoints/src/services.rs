//! The part of undo that the sessions of a daemon share: what is kept, and the folders in use.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use crate::{
    kept::{InUse, Kept},
    limits::UndoLimits,
    shared_folder::SharedFolder,
};

/// Gives sessions of one daemon the store and the indexes that they share. Holds nothing while no session uses undo.
#[derive(Default)]
pub struct UndoServices {
    opened: Mutex<HashMap<PathBuf, Weak<Kept>>>,
    /// By what is kept, and the folder.
    folders: Mutex<HashMap<(PathBuf, PathBuf), Weak<SharedFolder>>>,
}

impl UndoServices {
    /// Opens what is kept in `folder`, once for all sessions.
    pub(crate) fn open(&self, folder: &Path, limits: &UndoLimits) -> io::Result<Arc<Kept>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = opened.get(folder).and_then(Weak::upgrade) {
            return Ok(kept);
        }
        let kept = Kept::open(folder, limits)?;
        opened.retain(|_, kept| kept.strong_count() > 0);
        opened.insert(folder.to_owned(), Arc::downgrade(&kept));
        Ok(kept)
    }

    /// The index of a folder, shared by all sessions in it.
    pub(crate) fn folder(
        &self,
        kept: &Arc<Kept>,
        root: &Path,
        limits: UndoLimits,
        left_out: Vec<PathBuf>,
    ) -> Arc<SharedFolder> {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (kept.folder.clone(), root.to_owned());
        if let Some(folder) = folders.get(&key).and_then(Weak::upgrade) {
            return folder;
        }
        let folder = Arc::new(SharedFolder::new(Arc::clone(kept), root.to_owned(), limits, left_out));
        let shared: Arc<dyn InUse> = folder.clone();
        kept.add_folder(Arc::downgrade(&shared));
        folders.retain(|_, folder| folder.strong_count() > 0);
        folders.insert(key, Arc::downgrade(&folder));
        folder
    }
}
