//! The sessions that all clients share. Their number stays the same: one that is deleted makes room for another.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, TryLockError},
};

use agentd_e2e::Random;
use serde_json::json;

use crate::wire::{Peer, Trouble};

/// How many prompts a session lives at most: so sessions are as long on average at the end of a run as at its beginning.
const LIFE: u64 = 8;

/// A session of the pool. Who holds it is the only one that prompts it.
pub(crate) struct Slot {
    pub(crate) id: String,
    /// Prompts that were answered: their answers have to be in the file.
    pub(crate) answered: Vec<String>,
    /// How many more prompts it gets.
    pub(crate) left: u64,
}

/// The sessions.
pub(crate) struct Pool {
    slots: Vec<Mutex<Option<Slot>>>,
    /// Their ids, for those who only look on.
    ids: Vec<Mutex<String>>,
    project: PathBuf,
}

impl Pool {
    /// Room for so many.
    pub(crate) fn new(count: usize, project: &Path) -> Self {
        Self {
            slots: (0..count).map(|_| Mutex::default()).collect(),
            ids: (0..count).map(|_| Mutex::default()).collect(),
            project: project.to_owned(),
        }
    }

    /// The folder that sessions work in.
    pub(crate) fn project(&self) -> &Path {
        &self.project
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Any session that nobody else holds.
    pub(crate) fn take(&self, random: &mut Random) -> (usize, MutexGuard<'_, Option<Slot>>) {
        loop {
            let index = random.index(self.slots.len());
            match self.slots[index].try_lock() {
                Ok(slot) => return (index, slot),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Poisoned(error)) => return (index, error.into_inner()),
            }
        }
    }

    /// A certain one; waits while it is held.
    pub(crate) fn at(&self, index: usize) -> MutexGuard<'_, Option<Slot>> {
        self.slots[index].lock().unwrap()
    }

    /// The id of any session. It may be gone a moment later.
    pub(crate) fn any_id(&self, random: &mut Random) -> String {
        random.pick(&self.ids).lock().unwrap().clone()
    }

    /// Puts another session in the place.
    pub(crate) fn put(&self, index: usize, slot: &mut Option<Slot>, id: &str, random: &mut Random) {
        id.clone_into(&mut self.ids[index].lock().unwrap());
        *slot = Some(Slot { id: id.to_owned(), answered: Vec::new(), left: random.below(1..LIFE) });
    }

    /// Opens a new session for the place.
    pub(crate) fn open(
        &self,
        index: usize,
        slot: &mut Option<Slot>,
        peer: &mut Peer,
        random: &mut Random,
    ) -> Result<(), Trouble> {
        let opened = peer.done(json!({"type": "open_session", "cwd": self.project, "attach": false}))?;
        let id = opened["sessionId"].as_str().unwrap_or_default();
        if id.is_empty() {
            return Err(Trouble::Wrong(format!("open_session answers without an id: {opened}")));
        }
        self.put(index, slot, id, random);
        Ok(())
    }
}
