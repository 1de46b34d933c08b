//! Random decisions that a seed repeats.

use std::{
    hash::{BuildHasher, RandomState},
    ops::Range,
};

/// A generator of random numbers (splitmix64): not for secrets.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The generator of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator for one part of the work: the draws of one part do not affect the others.
    #[must_use]
    pub fn part(seed: u64, part: u64) -> Self {
        let mut own = Self(seed ^ part.wrapping_mul(0xD1B5_4A32_D192_ED03));
        own.bits();
        own
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number of the range, which must not be empty.
    pub fn below(&mut self, range: Range<u64>) -> u64 {
        range.start + self.bits() % (range.end - range.start)
    }

    /// An index of a list of that length, which must not be 0.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.bits() % length as u64).expect("an index")
    }

    /// An item of the list, which must not be empty.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.index(list.len())]
    }

    /// Returns `true` in `percent` of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.bits() % 100 < percent
    }
}

/// A fresh seed.
#[must_use]
pub fn fresh_seed() -> u64 {
    // Every `RandomState` has its own keys. The seed is short enough to be typed.
    RandomState::new().hash_one(std::process::id()) & 0xFFFF_FFFF
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_again() {
        let draw = |mut random: Random| -> Vec<u64> { (0..9).map(|_| random.below(3..1000)).collect() };
        let first = draw(Random::new(7));
        assert_eq!(first, draw(Random::new(7)));
        assert_ne!(first, draw(Random::new(8)));
        assert_ne!(draw(Random::part(7, 1)), draw(Random::part(7, 2)));
        assert!(first.iter().all(|number| (3..1000).contains(number)));
    }
}
