//! The sessions that the daemon knows, by their ids, and the event numbers of those that it knew.

use std::{
    collections::HashMap,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use agentd_session::Target;

use super::SessionSlot;
use crate::limits::EVENT_NUMBER_GENERATION;

/// The slots of all known sessions. Knows nothing of opening, loading or closing them.
#[derive(Default)]
pub(super) struct SessionMap {
    slots: Mutex<HashMap<Arc<str>, Arc<SessionSlot>>>,
    /// Locked after `slots` where both are.
    numbers: Mutex<EventNumbers>,
    /// Counts uses of sessions: the clock of "least recently used".
    uses: AtomicU64,
}

impl SessionMap {
    /// Adds a session, which counts as used now. A slot with the same id is replaced.
    pub(super) fn insert(&self, slot: &Arc<SessionSlot>) {
        self.note_use(slot);
        self.slots().insert(Arc::clone(slot.id()), Arc::clone(slot));
    }

    /// Removes a session but keeps the number of its last event. False when another slot has the id by now; that one counts
    /// on from there.
    pub(super) fn remove(&self, slot: &SessionSlot) -> bool {
        let mut slots = self.slots();
        if !slots.get(&**slot.id()).is_some_and(|other| std::ptr::eq(&**other, slot)) {
            return false;
        }
        self.numbers().note(slot.id(), slot.feed().last_seq());
        slots.remove(&**slot.id());
        true
    }

    /// The session with an id, unless it has ended.
    pub(super) fn get(&self, id: &str) -> Option<Arc<SessionSlot>> {
        self.slots().get(id).filter(|slot| !slot.has_ended()).cloned()
    }

    /// The session with an id, also one that has ended and is not removed yet.
    pub(super) fn get_even_ended(&self, id: &str) -> Option<Arc<SessionSlot>> {
        self.slots().get(id).cloned()
    }

    /// All known sessions.
    pub(super) fn all(&self) -> Vec<Arc<SessionSlot>> {
        self.slots().values().cloned().collect()
    }

    /// The number of known sessions.
    pub(super) fn count(&self) -> usize {
        self.slots().len()
    }

    /// The session of a file that existed when the session was opened.
    pub(super) fn by_file(&self, file: &Path) -> Option<Arc<SessionSlot>> {
        self.find(|slot| slot.path.as_deref() == Some(file) && !slot.has_ended())
    }

    /// The session that a target names directly: by its id, or by the absolute path of a file that need not exist yet.
    pub(super) fn named(&self, target: &Target) -> Option<Arc<SessionSlot>> {
        match target {
            Target::Existing(path) if Path::new(path).is_absolute() => {
                self.find(|slot| !slot.has_ended() && slot.file().is_some_and(|file| file == Path::new(path)))
            }
            Target::File { path, .. } => {
                self.find(|slot| !slot.has_ended() && slot.file().is_some_and(|file| file == *path))
            }
            Target::Existing(id) | Target::Id(id) | Target::Ephemeral(Some(id)) => self.get(id),
            _ => None,
        }
    }

    /// Notes that a session is used now.
    pub(super) fn note_use(&self, slot: &SessionSlot) {
        slot.used(self.uses.fetch_add(1, Ordering::Relaxed) + 1);
    }

    /// The number after which the events of a session that is about to be opened are counted: past those of every former life.
    pub(super) fn last_seq(&self, id: &str) -> u64 {
        let slots = self.slots();
        // A session that has ended and is not removed yet.
        let former = slots.get(id).map(|slot| next_life(slot.feed().last_seq()));
        self.numbers().after(id).max(former.unwrap_or_default())
    }

    fn find(&self, is_it: impl Fn(&SessionSlot) -> bool) -> Option<Arc<SessionSlot>> {
        self.slots().values().find(|slot| is_it(slot)).cloned()
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<SessionSlot>>> {
        // Inserts and removals leave the map whole even if one panicked.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn numbers(&self) -> MutexGuard<'_, EventNumbers> {
        // Single inserts.
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number after which the events of a later life of a session id begin.
///
/// A session id has one sequence of event numbers in an epoch. While a session is known, its feed counts them. When it is
/// closed, deleted or evicted, its feed goes, and the number is kept here.
///
/// Bounded: ids are kept in two generations. When the younger one is full, the older one is dropped, and `floor` rises to the
/// largest number in it. Every id that is not kept begins after `floor`, so a number is never used twice for an id.
#[derive(Debug)]
struct EventNumbers {
    floor: u64,
    young: HashMap<Box<str>, u64>,
    old: HashMap<Box<str>, u64>,
    generation: usize,
}

impl Default for EventNumbers {
    fn default() -> Self {
        Self::of_generations(EVENT_NUMBER_GENERATION)
    }
}

impl EventNumbers {
    fn of_generations(generation: usize) -> Self {
        Self { floor: 0, young: HashMap::new(), old: HashMap::new(), generation }
    }

    /// Notes the last number of a life that has ended.
    fn note(&mut self, id: &str, last_seq: u64) {
        if self.young.len() >= self.generation && !self.young.contains_key(id) {
            let dropped = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
            self.floor = dropped.into_values().fold(self.floor, u64::max);
        }
        self.young.insert(id.into(), next_life(last_seq));
    }

    /// The number after which a new life of that id begins.
    fn after(&self, id: &str) -> u64 {
        // An id may be in both: the older entry has the smaller number.
        self.young.get(id).or_else(|| self.old.get(id)).copied().unwrap_or(self.floor)
    }
}

/// The number after which the next life begins. One number is left out: nobody can have seen the new life at the last number of
/// the former one, so `since` of the former one is answered by a snapshot, and not by "nothing was missed".
fn next_life(last_seq: u64) -> u64 {
    last_seq.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_life_begins_after_the_former_one() {
        let mut numbers = EventNumbers::default();
        assert_eq!(numbers.after("a"), 0);
        numbers.note("a", 7);
        assert_eq!((numbers.after("a"), numbers.after("b")), (8, 0));
        numbers.note("b", 0);
        assert_eq!(numbers.after("b"), 1, "also a life without events");
    }

    proptest! {
        /// Lives of more ids than are kept: none uses a number of a former life, nor begins where that one
        /// ended.
        #[test]
        fn no_number_is_used_twice(
            lives in prop::collection::vec((0..8_usize, 0..5_u64), 0..60),
            generation in 1..4_usize,
        ) {
            let mut numbers = EventNumbers::of_generations(generation);
            let mut ends: [Option<u64>; 8] = [None; 8];
            for (id, events) in lives {
                let name = id.to_string();
                let after = numbers.after(&name);
                prop_assert!(ends[id].is_none_or(|end| after > end), "{name} after {after}, once at {:?}", ends[id]);
                let end = after + events;
                ends[id] = Some(end);
                numbers.note(&name, end);
                prop_assert!(numbers.young.len() + numbers.old.len() <= 2 * generation);
            }
        }
    }
}
