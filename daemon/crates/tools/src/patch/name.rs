//! The names of files in the heads of a diff. Pure.

/// The letters that git puts before the two names of a file, each with a slash.
const SIDES: [char; 6] = ['a', 'b', 'i', 'w', 'c', 'o'];

/// The names of the lines `---` and `+++`; `None` for `/dev/null`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamePair {
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
}

impl NamePair {
    /// Of what stands behind `--- ` and `+++ `.
    ///
    /// # Errors
    /// A name in quotes that cannot be read.
    pub(super) fn of(old: &str, new: &str) -> Result<Self, String> {
        let name =
            |text: &str| name_of_header(text).map(|name| Some(name).filter(|name| name != "/dev/null"));
        Ok(Self { old: name(old)?, new: name(new)? })
    }

    /// The name of the file: the new one, where both differ.
    pub(super) fn name(&self) -> Option<String> {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => Some(common_name(old, new).to_owned()),
            (None, Some(new)) => Some(new.strip_prefix("b/").unwrap_or(new).to_owned()),
            (Some(old), None) => Some(old.strip_prefix("a/").unwrap_or(old).to_owned()),
            (None, None) => None,
        }
    }
}

/// The new name without `b/` and its like, where both names have one.
fn common_name<'a>(old: &str, new: &'a str) -> &'a str {
    match (split_side(old), split_side(new)) {
        (Some((a, old)), Some((b, name))) if a != b && (old == name || (a, b) == ('a', 'b')) => name,
        _ => new,
    }
}

fn split_side(name: &str) -> Option<(char, &str)> {
    let (side, name) = name.split_once('/')?;
    let mut letters = side.chars();
    let letter = letters.next().filter(|letter| SIDES.contains(letter))?;
    (letters.next().is_none() && !name.is_empty()).then_some((letter, name))
}

/// The name in a line `diff --git a/NAME b/NAME`; `None` where the two differ, as in renames.
///
/// # Errors
/// A name in quotes that cannot be read.
pub(super) fn git_name(names: &str) -> Result<Option<String>, String> {
    // Both have the same length, so that a space in the middle parts them, whatever else the names hold.
    let names = names.trim_end();
    let middle = names.len() / 2;
    let Some((old, new)) = names.split_at_checked(middle) else { return Ok(None) };
    let Some(new) = new.strip_prefix(' ') else { return Ok(None) };
    let (old, new) = (name_of_header(old)?, name_of_header(new)?);
    Ok(match (split_side(&old), split_side(&new)) {
        (Some((a, old)), Some((b, name))) if a != b && old == name => Some(name.to_owned()),
        _ => (old == new && !new.is_empty()).then_some(new),
    })
}

/// The name in a head: without the time behind a tab, and without quotes.
///
/// # Errors
/// A name in quotes that cannot be read.
pub(super) fn name_of_header(text: &str) -> Result<String, String> {
    let text = text.split('\t').next().unwrap_or_default().trim_end();
    match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(quoted) => unquoted(quoted).ok_or_else(|| format!("A name in the diff cannot be read: {text}")),
        None => Ok(text.to_owned()),
    }
}

/// A name in the quotes of git: `\303\244` for bytes, `\t`, `\"` and their like.
fn unquoted(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'a' => 0x07,
            b'b' => 0x08,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 0x0b,
            b'f' => 0x0c,
            b'r' => b'\r',
            quoted @ (b'"' | b'\\') => quoted,
            first @ b'0'..=b'7' => {
                let mut value = u16::from(first - b'0');
                for _ in 0..2 {
                    let digit = rest.next().filter(|digit| (b'0'..=b'7').contains(digit))?;
                    value = value * 8 + u16::from(digit - b'0');
                }
                u8::try_from(value).ok()?
            }
            _ => return None,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_what_a_diff_puts_around_them() {
        let name = |old: &str, new: &str| NamePair::of(old, new).unwrap().name();
        for (old, new, expected) in [
            ("a/src/x.rs", "b/src/x.rs", "src/x.rs"),
            ("src/x.rs", "src/x.rs", "src/x.rs"),
            ("x.rs\t2026-01-02 10:00:00.000 +0000", "x.rs\t2026-01-02 10:00:01.000 +0000", "x.rs"),
            ("a/two words\t", "b/two words\t", "two words"),
            ("i/x", "w/x", "x"),
            // Folders that happen to have such names.
            ("a/x", "a/x", "a/x"),
            ("c/x", "o/y", "o/y"),
            ("/dev/null", "b/new", "new"),
            ("/dev/null", "new", "new"),
            ("a/gone", "/dev/null", "gone"),
            ("old.txt", "new.txt", "new.txt"),
            ("\"a/f\\303\\274r \\\"me\\\"\"", "\"b/f\\303\\274r \\\"me\\\"\"", "für \"me\""),
        ] {
            assert_eq!(name(old, new).as_deref(), Some(expected), "{old:?} {new:?}");
        }
        assert_eq!(name("/dev/null", "/dev/null"), None);
        assert!(NamePair::of("\"a\\9\"", "b").is_err() && NamePair::of("\"a\\377\"", "b").is_err());
    }

    #[test]
    fn the_line_of_git_has_the_name_where_it_stays() {
        for (names, expected) in [
            ("a/x b/x", Some("x")),
            ("a/a b c b/a b c", Some("a b c")),
            ("x x", Some("x")),
            ("\"a/\\303\\244\" \"b/\\303\\244\"", Some("ä")),
            ("a/x b/y", None),
            ("a/x b/longer", None),
            ("", None),
            ("é é", Some("é")),
        ] {
            assert_eq!(git_name(names).unwrap().as_deref(), expected, "{names:?}");
        }
    }
}
