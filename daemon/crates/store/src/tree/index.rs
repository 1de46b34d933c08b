//! Where the entry of an id is.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::Entry;

/// Finds entries by their ids: five bytes for each, since the ids are in the entries themselves, which every method is given.
#[derive(Debug, Clone, Default)]
pub(super) struct EntryIndex {
    places: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl EntryIndex {
    /// The place of the last entry with this id.
    pub(super) fn get(&self, id: &[u8], entries: &[Entry]) -> Option<u32> {
        let is_it = |place: &u32| id_of(*place, entries) == id;
        self.places.find(self.hasher.hash_one(id), is_it).copied()
    }

    /// Adds the entry at `place`, which must be there. From now on it is the one of its id; the place of the one that was is given back.
    pub(super) fn insert(&mut self, place: u32, entries: &[Entry]) -> Option<u32> {
        let id = id_of(place, entries);
        let hash = self.hasher.hash_one(id);
        if let Some(known) = self.places.find_mut(hash, |known| id_of(*known, entries) == id) {
            return Some(std::mem::replace(known, place));
        }
        let hash_of = |place: &u32| self.hasher.hash_one(id_of(*place, entries));
        self.places.insert_unique(hash, place, hash_of);
        None
    }
}

fn id_of(place: u32, entries: &[Entry]) -> &[u8] {
    entries[place as usize].id.as_bytes()
}
