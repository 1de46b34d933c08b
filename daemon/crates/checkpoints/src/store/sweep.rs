//! Removes contents that nobody needs any more.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
};

use super::{HEADER, Inner, MAX_PACKED, Place, Store};
use crate::state::ObjectId;

impl Store {
    /// Removes all contents but those that `keep` names. No other process may use the store meanwhile.
    ///
    /// # Errors
    /// The system's; contents to keep are there in any case.
    pub fn sweep(&self, keep: &dyn Fn(ObjectId) -> bool) -> io::Result<()> {
        let ids: Vec<(ObjectId, Place)> =
            self.inner().objects.iter().map(|(id, place)| (*id, *place)).collect();
        let mut live: HashMap<u32, Vec<(ObjectId, u64)>> = HashMap::new();
        for (id, place) in &ids {
            match place {
                Place::Alone { compressed, .. } if !keep(*id) => {
                    remove(&self.large(*id, *compressed))?;
                }
                Place::Packed { pack, len, .. } if keep(*id) => {
                    live.entry(*pack).or_default().push((*id, u64::from(*len) + HEADER as u64));
                }
                _ => {}
            }
        }
        let packs: Vec<(PathBuf, u64)> =
            self.inner().packs.iter().map(|pack| (pack.path.clone(), pack.known)).collect();
        let mut partly = Vec::new();
        for (at, (path, known)) in packs.into_iter().enumerate() {
            match live.remove(&u32::try_from(at).map_err(io::Error::other)?) {
                // First of all, since the rest takes room.
                None => remove(&path)?,
                Some(live) => partly.push((path, known, live)),
            }
        }
        let rewritten = Self::new(self.folder.clone(), u64::MAX);
        for (path, known, live) in partly {
            let bytes: u64 = live.iter().map(|(_, bytes)| bytes).sum();
            if bytes > known / 4 * 3 && known > 4 * MAX_PACKED {
                continue;
            }
            for (id, _) in live {
                match self.get(id) {
                    Ok(content) => drop(rewritten.put(&content)?),
                    // It is of no use any more.
                    Err(error) if is_lost(&error) => {}
                    Err(error) => return Err(error),
                }
            }
            remove(&path)?;
        }
        for entry in fs::read_dir(self.folder.join("large"))? {
            let path = entry?.path();
            // What a killed process left.
            if path.extension().is_some_and(|end| end == "tmp") {
                remove(&path)?;
            }
        }
        let mut inner = self.inner();
        *inner = Inner::default();
        self.scan(&mut inner)
    }
}

/// Whether a content is damaged, cut off or gone.
fn is_lost(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof | io::ErrorKind::NotFound
    )
}

/// Removes a file, which somebody may have removed before.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
