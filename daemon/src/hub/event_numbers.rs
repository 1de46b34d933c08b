//! The numbers of events that sessions have used which are no longer known.
//!
//! A session id has one row of event numbers in an epoch. While a session is known, its feed counts them. When it is closed,
//! deleted or evicted, its feed goes, and the number where a later life of the same id begins is kept here.

use std::collections::HashMap;

/// How many ids a generation holds. Two generations are kept: about 2 MiB.
const GENERATION: usize = 8_192;

/// After which number a later life of a session id begins.
///
/// Bounded: ids are kept in two generations. When the younger one is full, the older one is dropped, and `floor` rises to the
/// largest number in it. Every id that is not kept begins after `floor`, so a number is never used twice for an id.
#[derive(Debug)]
pub(super) struct EventNumbers {
    floor: u64,
    young: HashMap<Box<str>, u64>,
    old: HashMap<Box<str>, u64>,
    generation: usize,
}

impl Default for EventNumbers {
    fn default() -> Self {
        Self::of_generations(GENERATION)
    }
}

impl EventNumbers {
    fn of_generations(generation: usize) -> Self {
        Self { floor: 0, young: HashMap::new(), old: HashMap::new(), generation }
    }

    /// Notes the last number of a life that is over.
    pub(super) fn note(&mut self, id: &str, last_seq: u64) {
        if self.young.len() >= self.generation && !self.young.contains_key(id) {
            let dropped = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
            self.floor = dropped.into_values().fold(self.floor, u64::max);
        }
        self.young.insert(id.into(), next_life(last_seq));
    }

    /// The number after which a new life of that id begins.
    pub(super) fn after(&self, id: &str) -> u64 {
        // An id may be in both: the older entry has the smaller number.
        self.young.get(id).or_else(|| self.old.get(id)).copied().unwrap_or(self.floor)
    }
}

/// The number after which the next life begins. One number is left out: nobody can have seen the new life at the last number of
/// the former one, so `since` of the former one is answered by a snapshot, and not by "nothing was missed".
pub(super) fn next_life(last_seq: u64) -> u64 {
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
        assert_eq!(numbers.after("b"), 1, "also a life in which nothing was said");
    }

    proptest! {
        /// Lives of a few ids, of which fewer are kept than there are: none uses a number of a former one, nor begins where that
        /// has ended.
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
