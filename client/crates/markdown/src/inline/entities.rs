//! Entities of HTML: the common ones by name, all by number.

/// The names that models use; others stay as they are.
const NAMES: &[(&str, char)] = &[
    ("amp", '&'),
    ("apos", '\''),
    ("bull", '•'),
    ("cent", '¢'),
    ("check", '✓'),
    ("copy", '©'),
    ("dagger", '†'),
    ("darr", '↓'),
    ("deg", '°'),
    ("divide", '÷'),
    ("emsp", '\u{2003}'),
    ("ensp", '\u{2002}'),
    ("euro", '€'),
    ("frac12", '½'),
    ("frac14", '¼'),
    ("ge", '≥'),
    ("gt", '>'),
    ("harr", '↔'),
    ("hellip", '…'),
    ("infin", '∞'),
    ("laquo", '«'),
    ("larr", '←'),
    ("ldquo", '“'),
    ("le", '≤'),
    ("lsquo", '‘'),
    ("lt", '<'),
    ("mdash", '—'),
    ("micro", 'µ'),
    ("middot", '·'),
    ("minus", '−'),
    ("nbsp", '\u{a0}'),
    ("ndash", '–'),
    ("ne", '≠'),
    ("para", '¶'),
    ("plusmn", '±'),
    ("pound", '£'),
    ("quot", '"'),
    ("raquo", '»'),
    ("rarr", '→'),
    ("rdquo", '”'),
    ("reg", '®'),
    ("rsquo", '’'),
    ("sect", '§'),
    ("sum", '∑'),
    ("times", '×'),
    ("trade", '™'),
    ("uarr", '↑'),
    ("yen", '¥'),
];

/// The longest entity, in bytes.
const MAX_LENGTH: usize = 12;

/// The character of the entity that a text begins with, and the entity's length. Characters that steer a terminal are none.
pub(super) fn entity(text: &str) -> Option<(char, usize)> {
    let end = text.bytes().take(MAX_LENGTH).position(|byte| byte == b';')?;
    let name = text.get(1..end)?;
    let c = match name.strip_prefix('#') {
        Some(number) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) if hex.bytes().all(|byte| byte.is_ascii_hexdigit()) => u32::from_str_radix(hex, 16),
                _ if number.bytes().all(|byte| byte.is_ascii_digit()) => number.parse(),
                _ => return None,
            };
            char::from_u32(code.ok()?)?
        }
        None => NAMES[NAMES.binary_search_by_key(&name, |(name, _)| name).ok()?].1,
    };
    let mut cleaned = String::new();
    crate::text::clean(c.encode_utf8(&mut [0; 4]), &mut cleaned);
    (cleaned.chars().eq([c])).then_some((c, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        assert!(NAMES.is_sorted());
        for (text, expected) in [
            ("&amp;b", Some(('&', 5))),
            ("&#65;", Some(('A', 5))),
            ("&#x1F600;", Some(('😀', 9))),
            ("&#27;[2J", None),
            ("&#x202e;", None),
            ("&nothing;", None),
            ("& a;", None),
            ("&", None),
        ] {
            assert_eq!(entity(text), expected, "{text}");
        }
    }
}
