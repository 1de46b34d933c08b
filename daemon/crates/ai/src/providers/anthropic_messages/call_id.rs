//! Ids of tool calls as this API takes them.

use std::{borrow::Cow, collections::HashMap};

use crate::handoff::call_id::sanitized;

/// The longest id that is taken, in characters.
const MAX_CHARS: usize = 64;

/// The legal form of an id that another model gave.
pub(crate) fn normalized(id: &str) -> String {
    let mut id = sanitized(id);
    // Only ASCII is left, so every place is a boundary.
    id.truncate(MAX_CHARS);
    if id.is_empty() { "call".to_owned() } else { id }
}

/// The ids of a request so far. This API wants each of them once, but some servers count anew in every answer.
#[derive(Debug, Default)]
pub(crate) struct Ids<'a> {
    /// Each id, and the number to try when it comes again.
    taken: HashMap<Cow<'a, str>, u64>,
}

impl<'a> Ids<'a> {
    /// `id`, or where that is taken, something like it that is not. The same transcript gives the same ids.
    pub(crate) fn unique(&mut self, id: &Cow<'a, str>) -> Cow<'a, str> {
        let mut unique = id.clone();
        let mut number = self.taken.get(id).copied().unwrap_or(2);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_other_models_become_legal() {
        let check = |id: &str, expected: &str| assert_eq!(normalized(id), expected);
        check("toolu_01-a", "toolu_01-a");
        check("call_1|fc_é.2", "call_1_fc___2");
        check(&"x".repeat(70), &"x".repeat(64));
        check("", "call");
    }

    #[test]
    fn each_id_is_given_out_once() {
        let mut ids = Ids::default();
        let long = "x".repeat(64);
        let given: Vec<String> = ["a", "a", "a_2", "a", &long, &long]
            .into_iter()
            .map(|id| ids.unique(&Cow::Owned(id.to_owned())).into_owned())
            .collect();
        let short = format!("{}_2", "x".repeat(62));
        assert_eq!(given, ["a", "a_2", "a_2_2", "a_3", &long, &short]);
    }
}
