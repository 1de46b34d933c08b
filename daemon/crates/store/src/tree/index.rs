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

    /// Adds the entry at `place`, which must be there. `known` is what [`Self::get`] finds for its id, whose place it takes.
    pub(super) fn insert(&mut self, place: u32, known: Option<u32>, entries: &[Entry]) {
        let hash_of = |place: &u32| self.hasher.hash_one(id_of(*place, entries));
        let hash = hash_of(&place);
        let before = known.and_then(|known| self.places.find_mut(hash, |place| *place == known));
        match before {
            Some(before) => *before = place,
            None => {
                self.places.insert_unique(hash, place, hash_of);
            }
        }
    }
}

fn id_of(place: u32, entries: &[Entry]) -> &[u8] {
    entries[place as usize].id.as_bytes()
}
