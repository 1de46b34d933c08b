//! Orders names as a dictionary does, not by bytes.
//!
//! It is the root order of the Unicode collation (CLDR) as far as file names need it: blanks, punctuation, symbols,
//! digits, letters; case and accents count only when all else is equal. Letters beyond ASCII follow the Latin ones in
//! the order of their code points.

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// ASCII characters before the digits, in their order.
const SYMBOLS: &str = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";

/// The sort key of a name: the characters' ranks, then the name in lower case for accents.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(Box<[u32]>, Box<str>);

/// The key of a name.
pub(super) fn key(name: &str) -> Key {
    let lower = name.to_lowercase();
    let places = lower.nfkd().filter(|character| !is_combining_mark(*character)).map(place);
    Key(places.collect(), lower.into())
}

fn place(character: char) -> u32 {
    const DIGITS: u32 = 100;
    const LETTERS: u32 = 200;
    match character {
        // Control characters come first.
        '\0'..='\u{1f}' | '\u{7f}' => 0,
        '0'..='9' => DIGITS + u32::from(character) - u32::from('0'),
        _ => match SYMBOLS.find(character) {
            Some(place) => u32::try_from(place).unwrap_or_default() + 1,
            None => LETTERS + u32::from(character),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected order is that of `localeCompare` in a JavaScript engine with ICU.
    #[test]
    fn names_stand_as_in_a_dictionary() {
        let sorted = [
            "_a", "-b", ".git", "1", "10", "2", "a", "ä", "a b", "a_b", "a-b", "a.b", "ab", "e", "é", "ea",
            "éa", "eb", "ee", "éé", "o", "ö", "z", "б", "я", "中",
        ];
        let mut names = sorted;
        names.reverse();
        names.sort_by_key(|name| key(name));
        assert_eq!(names, sorted);
        let mut symbols: Vec<String> =
            (' '..='~').map(|character| character.to_lowercase().to_string()).collect();
        symbols.sort_by_key(|name| key(name));
        symbols.dedup();
        assert_eq!(
            symbols.concat(),
            " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"
        );
    }
}
