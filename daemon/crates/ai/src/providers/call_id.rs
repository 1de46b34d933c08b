//! Ids of tool calls, as several APIs take them.

use std::{
    borrow::Cow,
    collections::{HashMap, hash_map::Entry},
    hash::{BuildHasher, Hasher, RandomState},
};

/// The longest id that these APIs accept, in characters.
const MAX_CHARS: usize = 64;

/// The legal form of an id that another model gave.
pub(crate) fn normalized_call_id(id: &str) -> String {
    let mut id = sanitized(id);
    // Only ASCII is left, so every index is a character boundary.
    id.truncate(MAX_CHARS);
    if id.is_empty() { "call".to_owned() } else { id }
}

/// An id for a call without one, unique over a whole session.
pub(crate) fn generated_id() -> String {
    // Each `RandomState` has random keys: random enough for an id.
    format!("call_{:016x}", RandomState::new().build_hasher().finish())
}

/// The ids of a request so far. Each has to be unique, but some servers restart their numbering in every answer.
#[derive(Debug, Default)]
pub(crate) struct CallIds<'a> {
    /// Each id, and the number to try when it comes again.
    taken: HashMap<Cow<'a, str>, u64>,
}

impl<'a> CallIds<'a> {
    /// `id`, or a similar free one if it is taken. The same transcript gives the same ids.
    pub(crate) fn unique(&mut self, id: &Cow<'a, str>) -> Cow<'a, str> {
        let mut number = match self.taken.entry(id.clone()) {
            Entry::Occupied(taken) => *taken.get(),
            Entry::Vacant(free) => {
                free.insert(2);
                return id.clone();
            }
        };
        let mut unique = id.clone();
        while self.taken.contains_key(&unique) {
            let suffix = format!("_{number}");
            let room = MAX_CHARS.saturating_sub(suffix.len());
            unique = Cow::Owned(id.chars().take(room).chain(suffix.chars()).collect());
            number += 1;
        }
        self.taken.insert(unique.clone(), 2);
        self.taken.insert(id.clone(), number);
        unique
    }
}

/// The text with everything but letters, digits, `_` and `-` replaced by `_`.
pub(crate) fn sanitized(part: &str) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    part.chars().map(legal).collect()
}

/// Eight hexadecimal digits (FNV-1a, folded). Stable over versions, since ids of old requests are in provider caches.
pub(crate) fn hash(text: &str) -> String {
    let full = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{:08x}", (full ^ (full >> 32)) & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_other_models_become_legal() {
        let check = |id: &str, expected: &str| assert_eq!(normalized_call_id(id), expected);
        check("toolu_01-a", "toolu_01-a");
        check("call_1|fc_é.2", "call_1_fc___2");
        check(&"x".repeat(70), &"x".repeat(64));
        check("", "call");
    }

    #[test]
    fn each_id_is_given_out_once() {
        let mut ids = CallIds::default();
        let long = "x".repeat(64);
        let given: Vec<String> = ["a", "a", "a_2", "a", &long, &long]
            .into_iter()
            .map(|id| ids.unique(&Cow::Owned(id.to_owned())).into_owned())
            .collect();
        let short = format!("{}_2", "x".repeat(62));
        assert_eq!(given, ["a", "a_2", "a_2_2", "a_3", &long, &short]);
    }
}
