//! Removes contents that nobody needs any more.

use std::{collections::HashMap, fs, io, path::PathBuf, sync::Mutex};

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
        let mut live: HashMap<u32, u64> = HashMap::new();
        for (id, place) in &ids {
            match place {
                Place::Alone { compressed } if !keep(*id) => fs::remove_file(self.large(*id, *compressed))?,
                Place::Packed { pack, len, .. } if keep(*id) => {
                    *live.entry(*pack).or_default() += u64::from(*len) + HEADER as u64;
                }
                _ => {}
            }
        }
        let rewritten = Self { folder: self.folder.clone(), max_bytes: u64::MAX, inner: Mutex::default() };
        let mut removed = Vec::new();
        let packs: Vec<(PathBuf, u64)> =
            self.inner().packs.iter().map(|pack| (pack.path.clone(), pack.known)).collect();
        for (at, (path, known)) in packs.into_iter().enumerate() {
            let number = u32::try_from(at).map_err(io::Error::other)?;
            let live = live.get(&number).copied().unwrap_or(0);
            if live * 2 > known && known > 4 * MAX_PACKED {
                continue;
            }
            for (id, place) in &ids {
                if matches!(place, Place::Packed { pack, .. } if *pack == number) && keep(*id) {
                    match self.get(*id) {
                        Ok(content) => drop(rewritten.put(&content)?),
                        Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
                        Err(error) => return Err(error),
                    }
                }
            }
            removed.push(path);
        }
        for path in removed {
            fs::remove_file(path)?;
        }
        let mut inner = self.inner();
        *inner = Inner::default();
        self.scan(&mut inner)
    }
}
