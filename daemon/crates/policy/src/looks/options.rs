//! Whether words are, or may turn out to be, certain options.

use crate::shell::Word;

/// Expressions of `find` that write, delete or start programs. Those that start programs are looked into beforehand.
pub(super) const FIND_ACTIONS: &[&str] = &[
    "-delete",
    "-exec",
    "-execdir",
    "-ok",
    "-okdir",
    "-fprint",
    "-fprint0",
    "-fprintf",
    "-fls",
    "-files0-from",
];

/// Whether a word is one of these.
pub(super) fn is_one_of(word: &Word, texts: &[&str]) -> bool {
    word.text().is_some_and(|text| texts.contains(&text))
}

/// Whether a word may be one of these options. A long one may be shortened, or have its value behind `=`.
pub(super) fn may_be(word: &Word, letters: &str, long: &[&str]) -> bool {
    let Some(text) = word.text() else { return word.may_be_option() };
    if let Some(given) = text.strip_prefix("--") {
        let given = given.split('=').next().unwrap_or_default();
        return !given.is_empty() && long.iter().any(|option| option.starts_with(given));
    }
    text.strip_prefix('-').is_some_and(|given| given.chars().any(|letter| letters.contains(letter)))
}
