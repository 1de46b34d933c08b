//! Positions in texts: lines and columns of the protocol, of models, and bytes. Pure.

use serde_json::{Value, json};

/// What a column of the protocol counts. Agreed on with each server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Encoding {
    Utf8,
    /// The protocol's own choice.
    #[default]
    Utf16,
    Utf32,
}

impl Encoding {
    /// Of the name in a server's capabilities.
    pub(crate) fn of(name: Option<&str>) -> Self {
        match name {
            Some("utf-8") => Self::Utf8,
            Some("utf-32") => Self::Utf32,
            _ => Self::Utf16,
        }
    }

    fn units(self, letter: char) -> usize {
        match self {
            Self::Utf8 => letter.len_utf8(),
            Self::Utf16 => letter.len_utf16(),
            Self::Utf32 => 1,
        }
    }

    /// The byte of a line at a column; its end for a column behind it, the beginning of the letter for one inside of it.
    pub(crate) fn byte(self, line: &str, column: u64) -> usize {
        let mut left = usize::try_from(column).unwrap_or(usize::MAX);
        for (at, letter) in line.char_indices() {
            let units = self.units(letter);
            if left < units {
                return at;
            }
            left -= units;
        }
        line.len()
    }

    /// The column at a byte of a line.
    pub(crate) fn column(self, line: &str, byte: usize) -> u64 {
        let before = line.char_indices().take_while(|(at, _)| *at < byte);
        before.map(|(_, letter)| self.units(letter) as u64).sum()
    }
}

/// A place in a text as the protocol has it: both numbers begin with 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Position {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

impl Position {
    /// Of a `Position`; what is missing or no number counts as 0.
    pub(crate) fn of(value: &Value) -> Self {
        let number = |name: &str| value.get(name).map_or(0, number);
        Self { line: number("line"), column: number("character") }
    }

    pub(crate) fn to_json(self) -> Value {
        json!({"line": self.line, "character": self.column})
    }
}

/// Some servers write whole numbers with a point, or -1 for "none".
fn number(value: &Value) -> u64 {
    let float = || value.as_f64().filter(|number| *number >= 0.0 && *number < 1e15);
    // In these bounds nothing is lost.
    value.as_u64().or_else(|| float().map(|number| number as u64)).unwrap_or(0)
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Range {
    pub(crate) start: Position,
    pub(crate) end: Position,
}

impl Range {
    /// Of a `Range`.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        Some(Self { start: Position::of(value.get("start")?), end: Position::of(value.get("end")?) })
    }

    pub(crate) fn to_json(self) -> Value {
        json!({"start": self.start.to_json(), "end": self.end.to_json()})
    }
}

/// A text and where its lines begin.
pub(crate) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    /// A line ends with `\n`, `\r\n` or `\r`, as in the protocol.
    pub(crate) fn of(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let ends = bytes.iter().enumerate().filter(|(at, byte)| match byte {
            b'\n' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        });
        Self { text, starts: std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect() }
    }

    pub(crate) fn count(&self) -> usize {
        self.starts.len()
    }

    /// A line without its end.
    pub(crate) fn line(&self, index: usize) -> Option<&'a str> {
        let start = *self.starts.get(index)?;
        let end = self.starts.get(index + 1).copied().unwrap_or(self.text.len());
        Some(self.text[start..end].trim_end_matches(['\n', '\r']))
    }

    /// The byte at a position; the end of the line or of the text for one behind it.
    pub(crate) fn byte(&self, position: Position, encoding: Encoding) -> usize {
        let index = usize::try_from(position.line).unwrap_or(usize::MAX);
        match (self.starts.get(index), self.line(index)) {
            (Some(start), Some(line)) => start + encoding.byte(line, position.column),
            _ => self.text.len(),
        }
    }
}

/// The byte in a line at which a symbol stands: `name`, or `name#2` for the second one. Whole words come before parts of words.
///
/// # Errors
/// A sentence for the model.
pub(crate) fn symbol_in_line(line: &str, symbol: &str) -> Result<usize, String> {
    let (name, number) = split_number(symbol);
    if name.is_empty() {
        return Err("symbol is empty: give the text of the name, as it stands in the line".to_owned());
    }
    let found = occurrences(line, name);
    match (found.get(number - 1), found.len()) {
        (Some(at), _) => Ok(*at),
        (None, 0) => Err(format!("\"{name}\" is not in the line")),
        (None, count) => Err(format!("\"{name}\" is in the line only {count} time(s)")),
    }
}

/// Where a name stands in a text: as a whole word, else anywhere.
pub(crate) fn occurrences(text: &str, name: &str) -> Vec<usize> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let all: Vec<usize> = text.match_indices(name).map(|(at, _)| at).collect();
    let (starts, ends) = (name.starts_with(is_word), name.ends_with(is_word));
    let is_whole = |at: &usize| {
        let before = text[..*at].chars().next_back().is_some_and(is_word);
        let after = text[at + name.len()..].chars().next().is_some_and(is_word);
        !(starts && before || ends && after)
    };
    let whole: Vec<usize> = all.iter().copied().filter(is_whole).collect();
    if whole.is_empty() { all } else { whole }
}

/// A symbol's name, and which one of that name: `name#2`.
pub(crate) fn split_number(symbol: &str) -> (&str, usize) {
    let numbered = symbol.rsplit_once('#').and_then(|(name, number)| Some((name, number.parse().ok()?)));
    match numbered {
        Some((name, number @ 1..)) if !name.is_empty() => (name, number),
        _ => (symbol, 1),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn columns_count_what_was_agreed_on() {
        let line = "a😀é=x";
        for (encoding, columns) in
            [(Encoding::Utf8, [0, 1, 5, 7]), (Encoding::Utf16, [0, 1, 3, 4]), (Encoding::Utf32, [0, 1, 2, 3])]
        {
            for (column, byte) in columns.into_iter().zip([0, 1, 5, 7]) {
                assert_eq!(encoding.byte(line, column), byte, "{encoding:?} {column}");
                assert_eq!(encoding.column(line, byte), column, "{encoding:?} {byte}");
            }
            assert_eq!(encoding.byte(line, 100), line.len());
        }
        // Inside of a letter.
        assert_eq!(Encoding::Utf16.byte(line, 2), 1);
    }

    #[test]
    fn lines_end_in_three_ways() {
        let lines = Lines::of("a\r\nb\rc\n");
        let all: Vec<&str> = (0..lines.count()).filter_map(|index| lines.line(index)).collect();
        assert_eq!(all, ["a", "b", "c", ""]);
        assert_eq!(lines.byte(Position { line: 1, column: 9 }, Encoding::Utf16), 4);
        assert_eq!(lines.byte(Position { line: 9, column: 0 }, Encoding::Utf16), 7);
    }

    #[test]
    fn symbols_are_found_by_their_text() {
        let check = |line: &str, symbol: &str, expected: Result<usize, &str>| {
            assert_eq!(symbol_in_line(line, symbol), expected.map_err(str::to_owned), "{line} {symbol}");
        };
        check("let a = add(a, b)", "a", Ok(4));
        check("let a = add(a, b)", "a#2", Ok(12));
        check("foobar()", "foo", Ok(0));
        check("x.y", ".", Ok(1));
        check("a#2", "#2", Ok(1));
        check("x", "y", Err("\"y\" is not in the line"));
        check("x", "x#2", Err("\"x\" is in the line only 1 time(s)"));
        check("x", "", Err("symbol is empty: give the text of the name, as it stands in the line"));
    }

    #[test]
    fn numbers_are_read_leniently() {
        let position = Position::of(&json!({"line": 2.0, "character": -1}));
        assert_eq!(position, Position { line: 2, column: 0 });
    }

    proptest! {
        #[test]
        fn a_byte_is_always_between_letters(text in "[a😀é\r\n]{0,20}", line in 0_u64..9, column in 0_u64..20) {
            for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
                let byte = Lines::of(&text).byte(Position { line, column }, encoding);
                prop_assert!(text.is_char_boundary(byte));
            }
        }

        #[test]
        fn a_column_leads_back(line in "[a😀é]{0,10}", at in 0_usize..12) {
            let byte = line.char_indices().map(|(at, _)| at).nth(at).unwrap_or(line.len());
            for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
                prop_assert_eq!(encoding.byte(&line, encoding.column(&line, byte)), byte);
            }
        }
    }
}
