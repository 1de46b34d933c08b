//! Names of models: their levels, aliases, and how alike two are. Pure.

use agentd_protocol::model::ThinkingLevel;

/// The number of letters per allowed slip.
const LETTERS_PER_SLIP: usize = 5;

/// More slips make another word.
const MAX_SLIPS: usize = 3;

/// Longer texts are no names of anything, in letters; they are compared with thousands of names, letter by letter.
pub(super) const LONGEST: usize = 200;

/// The number of letters that have to be changed, left out, added or swapped with their neighbour to find `text` somewhere in
/// `within`; `None` when they are too many for its length.
pub(crate) fn slips(text: &str, within: &str) -> Option<usize> {
    let (text, within): (Vec<char>, Vec<char>) = (text.chars().collect(), within.chars().collect());
    let most = (text.len() / LETTERS_PER_SLIP).min(MAX_SLIPS);
    if most == 0 || text.len() > LONGEST {
        return None;
    }
    // One column for each place in `within`: the slips of each beginning of `text` that ends there.
    let mut columns: [Vec<usize>; 3] = [Vec::new(), (0..=text.len()).collect(), vec![0; text.len() + 1]];
    let mut fewest = text.len();
    for (at, letter) in within.iter().enumerate() {
        let [before, last, column] = &mut columns;
        // The match may begin anywhere.
        column[0] = 0;
        for row in 1..=text.len() {
            let changed = last[row - 1] + usize::from(text[row - 1] != *letter);
            let mut cheapest = changed.min(last[row] + 1).min(column[row - 1] + 1);
            if row > 1 && at > 0 && text[row - 1] == within[at - 1] && text[row - 2] == *letter {
                cheapest = cheapest.min(before[row - 2] + 1);
            }
            column[row] = cheapest;
        }
        fewest = fewest.min(column[text.len()]);
        columns.rotate_left(1);
        columns[2].resize(text.len() + 1, 0);
    }
    (fewest <= most).then_some(fewest)
}

/// A question to put behind an error, with a blank before it; nothing where there is nothing to propose.
pub(super) fn did_you_mean(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [one] => format!(" Did you mean {one}?"),
        [others @ .., last] => format!(" Did you mean {} or {last}?", others.join(", ")),
    }
}

/// Splits at the last colon when a level stands behind it.
pub(super) fn split_level(text: &str) -> Option<(&str, ThinkingLevel)> {
    let (before, level) = text.rsplit_once(':')?;
    Some((before, ThinkingLevel::from_name(&level.to_lowercase())?))
}

/// Returns whether an id names the newest of a family: `-latest`, or not ending in a date (`-20250101`).
pub(super) fn is_alias(id: &str) -> bool {
    let dated = id
        .rsplit_once('-')
        .is_some_and(|(_, end)| end.len() == 8 && end.bytes().all(|byte| byte.is_ascii_digit()));
    id.ends_with("-latest") || !dated
}
