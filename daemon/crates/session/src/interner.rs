//! Keeps equal values in memory once: a thousand sessions of one user have few different environments.

use std::sync::{Mutex, PoisonError};

/// Values that are remembered, the last used first.
const REMEMBERED: usize = 16;

/// The values that were used last. Those that are cheap to clone are worth sharing.
#[derive(Debug)]
pub struct Interner<T>(Mutex<Vec<T>>);

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl<T: PartialEq + Clone> Interner<T> {
    /// An equal value that is in memory already, if one is remembered; else `value`, which is remembered from here on.
    pub fn intern(&self, value: T) -> T {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = match known.iter().position(|other| *other == value) {
            Some(at) => known.remove(at),
            None => value,
        };
        known.insert(0, shared.clone());
        known.truncate(REMEMBERED);
        shared
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn equal_values_are_the_same_as_long_as_they_are_remembered() {
        let interner = Interner::<Arc<str>>::default();
        let first = interner.intern("a".into());
        assert!(Arc::ptr_eq(&first, &interner.intern("a".into())));
        for other in 0..REMEMBERED {
            interner.intern(other.to_string().into());
        }
        assert!(!Arc::ptr_eq(&first, &interner.intern("a".into())));
    }
}
