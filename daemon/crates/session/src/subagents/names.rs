//! The ids of subagents: the name that a call gives, or one of our choice, below the id of the session's own agent. Pure.

/// The first halves of names of our choice.
const ADJECTIVES: [&str; 24] = [
    "Amber", "Brisk", "Calm", "Clear", "Deft", "Eager", "Fair", "Fleet", "Gentle", "Keen", "Lively", "Lucid",
    "Mellow", "Nimble", "Patient", "Quick", "Quiet", "Ready", "Sharp", "Solid", "Steady", "Sunny", "Swift",
    "Vivid",
];

/// The second halves.
const NOUNS: [&str; 24] = [
    "Badger", "Beaver", "Crane", "Dolphin", "Eagle", "Falcon", "Finch", "Gecko", "Heron", "Ibis", "Jay",
    "Koala", "Lynx", "Marten", "Newt", "Otter", "Owl", "Puffin", "Raven", "Robin", "Stork", "Tern", "Vole",
    "Wren",
];

/// The id of a new subagent, which `is_taken` says of no other. The same name gets `-2`, `-3` and so on.
pub(super) fn new_id(
    parent: Option<&str>,
    name: Option<&str>,
    number: u64,
    is_taken: impl Fn(&str) -> bool,
) -> String {
    let own = name.map_or_else(|| default_name(number), str::to_owned);
    let full = match parent {
        Some(parent) => format!("{parent}.{own}"),
        None => own,
    };
    if !is_taken(&full) {
        return full;
    }
    (2_u64..).map(|count| format!("{full}-{count}")).find(|id| !is_taken(id)).unwrap_or(full)
}

/// Different numbers give different names for as long as there are some.
fn default_name(number: u64) -> String {
    let count = ADJECTIVES.len() * NOUNS.len();
    // The factor and the count share no divisor, so that all pairs come before one comes again.
    let at = usize::try_from(number.wrapping_mul(175)).unwrap_or_default() % count;
    format!("{}{}", ADJECTIVES[at % ADJECTIVES.len()], NOUNS[at / ADJECTIVES.len()])
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_stand_below_their_parents_and_are_unique() {
        assert_eq!(new_id(None, Some("Review"), 0, |_| false), "Review");
        assert_eq!(new_id(Some("Review"), Some("Tests"), 0, |_| false), "Review.Tests");
        assert_eq!(new_id(None, Some("a"), 0, |id| id == "a" || id == "a-2"), "a-3");
    }

    #[test]
    fn default_names_repeat_only_when_all_are_used() {
        let count = ADJECTIVES.len() * NOUNS.len();
        let names: HashSet<String> = (0..count as u64).map(default_name).collect();
        assert_eq!(names.len(), count);
    }
}
