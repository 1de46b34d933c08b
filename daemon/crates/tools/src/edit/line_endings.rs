//! Edits files with any line endings as if they had line feeds only, and keeps their endings.

use std::borrow::Cow;

use super::apply::Change;

/// `text` with a line feed for every CRLF and CR.
pub(crate) fn normalize(text: &str) -> Cow<'_, str> {
    if memchr::memchr(b'\r', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
}

/// Makes `changes`, whose ranges are in `normalize(original)`, in `original` itself.
///
/// Unchanged bytes keep their line endings. An inserted line feed takes the ending that it replaces; if it replaces
/// none, the ending of the line in which the change begins.
pub(crate) fn apply(original: &str, changes: &[Change]) -> String {
    let mut result = String::with_capacity(original.len());
    let mut walk = Walk { original, at: 0, normalized_at: 0 };
    let mut endings = Endings { text: original, found: None };
    let mut copied = 0;
    for change in changes {
        let begin = walk.go(change.range.start);
        let ending = if change.text.contains('\n') { endings.near(begin) } else { "\n" };
        let replaced = {
            let end = walk.go(change.range.end);
            &original[begin..end]
        };
        // Keep what is the same at both ends of the change.
        let (head, tail) = common_ends(replaced, &change.text);
        push(&mut result, &original[copied..begin + head.original]);
        let inserted = &change.text[head.changed..change.text.len() - tail.changed];
        let gone = &replaced[head.original..replaced.len() - tail.original];
        push_with_endings(&mut result, inserted, gone, ending);
        copied = begin + replaced.len() - tail.original;
    }
    push(&mut result, &original[copied..]);
    result
}

/// Appends a piece. Where a CR and a line feed meet that were two line endings, adds a line feed: together they would
/// be one CRLF.
fn push(result: &mut String, piece: &str) {
    if result.ends_with('\r') && piece.starts_with('\n') {
        result.push('\n');
    }
    result.push_str(piece);
}

/// Translates positions in the normalised text into positions in the original, forwards only.
struct Walk<'a> {
    original: &'a str,
    at: usize,
    normalized_at: usize,
}

impl Walk<'_> {
    fn go(&mut self, normalized: usize) -> usize {
        let bytes = self.original.as_bytes();
        while self.normalized_at < normalized {
            let left = normalized - self.normalized_at;
            // Do not search further: with many changes, each would search the rest of the text.
            let near = &bytes[self.at..bytes.len().min(self.at + left)];
            let step = memchr::memchr(b'\r', near).unwrap_or(left);
            self.at += step;
            self.normalized_at += step;
            if step < left {
                self.at += if bytes.get(self.at + 1) == Some(&b'\n') { 2 } else { 1 };
                self.normalized_at += 1;
            }
        }
        self.at
    }
}

/// The length of a part in the original and in a change's text, in bytes.
#[derive(Clone, Copy, Default)]
struct Common {
    original: usize,
    changed: usize,
}

/// The lengths that `replaced`, with any line endings, and `changed`, with line feeds, have in common at their start,
/// and of the rest at their end.
fn common_ends(replaced: &str, changed: &str) -> (Common, Common) {
    let mut head = Common::default();
    let mut old = Units(replaced);
    let mut new = changed.chars();
    while let (Some((unit, length)), Some(c)) = (old.next(), new.next())
        && unit == c
    {
        head.original += length;
        head.changed += c.len_utf8();
    }
    let mut tail = Common::default();
    let mut old = Units(&replaced[head.original..]);
    let mut new = changed[head.changed..].chars();
    while let (Some((unit, length)), Some(c)) = (old.next_back(), new.next_back())
        && unit == c
    {
        tail.original += length;
        tail.changed += c.len_utf8();
    }
    (head, tail)
}

/// The characters of a text with their lengths in bytes, where any line ending is one line feed.
struct Units<'a>(&'a str);

impl Units<'_> {
    fn next(&mut self) -> Option<(char, usize)> {
        let first = self.0.chars().next()?;
        let length = if self.0.starts_with("\r\n") { 2 } else { first.len_utf8() };
        self.0 = &self.0[length..];
        Some((if first == '\r' { '\n' } else { first }, length))
    }

    fn next_back(&mut self) -> Option<(char, usize)> {
        let last = self.0.chars().next_back()?;
        let length = if self.0.ends_with("\r\n") { 2 } else { last.len_utf8() };
        self.0 = &self.0[..self.0.len() - length];
        Some((if last == '\r' { '\n' } else { last }, length))
    }
}

/// Finds the line ending at a position. It remembers the last search, since many changes can be in one long line.
struct Endings<'a> {
    text: &'a str,
    /// The result of the last search.
    found: Option<Ending>,
}

#[derive(Clone, Copy)]
enum Ending {
    /// The next ending from where the search began.
    At(usize),
    /// No ending follows; the last one before, if there is one.
    Last(Option<usize>),
}

impl Endings<'_> {
    /// The ending of the line that `at` is in; of the last line, which has none, that of the line before. `at` must never go
    /// back.
    fn near(&mut self, at: usize) -> &'static str {
        let bytes = self.text.as_bytes();
        let found = match self.found {
            Some(Ending::At(found)) if at <= found => Ending::At(found),
            Some(Ending::Last(last)) => Ending::Last(last),
            _ => match memchr::memchr2(b'\r', b'\n', &bytes[at..]) {
                Some(found) => Ending::At(at + found),
                None => Ending::Last(memchr::memrchr2(b'\r', b'\n', &bytes[..at])),
            },
        };
        self.found = Some(found);
        let (Ending::At(found) | Ending::Last(Some(found))) = found else { return "\n" };
        match (bytes[found], found.checked_sub(1).map(|before| bytes[before])) {
            (b'\r', _) if bytes.get(found + 1) == Some(&b'\n') => "\r\n",
            (b'\r', _) => "\r",
            // Only a backwards search finds the second half of an ending first.
            (_, Some(b'\r')) => "\r\n",
            _ => "\n",
        }
    }
}

/// Appends `inserted`; its line feeds become the endings of `gone` in order, and then `ending`.
fn push_with_endings(result: &mut String, inserted: &str, gone: &str, ending: &str) {
    let mut endings = gone.match_indices(['\r', '\n']).filter_map(|(at, found)| match found {
        "\r" if gone[at + 1..].starts_with('\n') => Some("\r\n"),
        "\n" if gone[..at].ends_with('\r') => None,
        other => Some(other),
    });
    for (index, line) in inserted.split('\n').enumerate() {
        if index > 0 {
            push(result, endings.next().unwrap_or(ending));
        }
        push(result, line);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(original: &str, old: &str, new: &str, expected: &str) {
        let start = normalize(original).find(old).unwrap();
        let change = Change { range: start..start + old.len(), text: new.to_owned() };
        assert_eq!(apply(original, &[change]), expected, "{original:?} {old:?} {new:?}");
    }

    #[test]
    fn inserted_lines_take_the_endings_around_them() {
        check("a\nb\n", "a", "x\ny", "x\ny\nb\n");
        check("a\r\nb\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\n");
        check("a\r\nb\r\n", "b\n", "b\nc\n", "a\r\nb\r\nc\r\n");
        check("a\rb\r", "b", "x\ny", "a\rx\ry\r");
        check("abc", "b", "x\ny", "ax\nyc");
        // The last line has no ending, so it takes the one before.
        check("a\r\nb", "b", "b\nc", "a\r\nb\r\nc");
    }

    #[test]
    fn mixed_endings_stay_mixed() {
        let mixed = "one\r\ntwo\nthree\rfour\n";
        check(mixed, "one", "1\n1", "1\r\n1\r\ntwo\nthree\rfour\n");
        check(mixed, "two", "2\n2", "one\r\n2\n2\nthree\rfour\n");
        check(mixed, "three", "3\n3", "one\r\ntwo\n3\r3\rfour\n");
        check(mixed, "one\ntwo\nthree\n", "1\n2\n3\n", "1\r\n2\n3\rfour\n");
        // Repeated lines keep their endings; the new line takes that of the line in which the edit begins.
        check(mixed, "one\ntwo\nthree\n", "one\nnew\ntwo\nthree\n", "one\r\nnew\r\ntwo\nthree\rfour\n");
        check(mixed, "two\nthree", "three", "one\r\nthree\rfour\n");
    }

    #[test]
    fn two_line_endings_that_meet_stay_two() {
        check("a\rX\nb", "X", "", "a\r\n\nb");
        check("a\rX\n\nb", "X", "", "a\r\n\n\nb");
        check("a\rb\nc", "\nb\n", "\n\n", "a\r\n\nc");
        check("a\r\nX\nb", "X", "", "a\r\n\nb");
    }

    /// The ending at a position does not depend on earlier searches.
    #[test]
    fn endings_are_those_of_each_place() {
        let text = "ab\ncd\r\nef\rgh";
        let mut endings = Endings { text, found: None };
        let found: Vec<&str> = (0..text.len()).filter(|at| *at != 6).map(|at| endings.near(at)).collect();
        let alone: Vec<&str> =
            (0..text.len()).filter(|at| *at != 6).map(|at| Endings { text, found: None }.near(at)).collect();
        assert_eq!(found, alone);
        assert_eq!(found, ["\n", "\n", "\n", "\r\n", "\r\n", "\r\n", "\r", "\r", "\r", "\r", "\r"]);
    }

    proptest! {
        /// With line feeds only, the result is the changed text; unchanged parts keep their bytes.
        #[test]
        fn endings_are_all_that_differs(
            lines in prop::collection::vec(("[abé]{0,3}", prop::sample::select(vec!["\n", "\r\n"])), 0..8),
            new in "[abé\n]{0,6}",
            start in any::<prop::sample::Index>(),
            end in any::<prop::sample::Index>(),
        ) {
            let original: String = lines.iter().flat_map(|(line, ending)| [line.as_str(), ending]).collect();
            let normalized = normalize(&original).into_owned();
            let places: Vec<usize> =
                normalized.char_indices().map(|(at, _)| at).chain([normalized.len()]).collect();
            let (start, end) = (places[start.index(places.len())], places[end.index(places.len())]);
            let range = start.min(end)..start.max(end);
            let changes = [Change { range: range.clone(), text: new }];
            let result = apply(&original, &changes);
            prop_assert_eq!(normalize(&result), super::super::apply::apply(&normalized, &changes));
            let mut walk = Walk { original: &original, at: 0, normalized_at: 0 };
            prop_assert!(result.starts_with(&original[..walk.go(range.start)]));
            prop_assert!(result.ends_with(&original[walk.go(range.end)..]));
        }

        /// The same with single CRs: no line ending is lost or made where pieces meet.
        #[test]
        fn no_ending_is_lost_where_pieces_meet(
            original in "[ab\r\n]{0,10}", new in "[a\n]{0,4}",
            start in any::<prop::sample::Index>(), end in any::<prop::sample::Index>(),
        ) {
            let normalized = normalize(&original).into_owned();
            let (start, end) = (start.index(normalized.len() + 1), end.index(normalized.len() + 1));
            let changes = [Change { range: start.min(end)..start.max(end), text: new }];
            let result = apply(&original, &changes);
            prop_assert_eq!(normalize(&result), super::super::apply::apply(&normalized, &changes), "{:?}", result);
        }

        /// In a file with one kind of ending, no other kind appears.
        #[test]
        fn one_kind_of_ending_stays_one_kind(
            lines in prop::collection::vec("[ab]{0,3}", 1..6), new in "[ab\n]{0,6}", at in 0usize..6,
        ) {
            let original: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
            let at = at.min(normalize(&original).len());
            let result = apply(&original, &[Change { range: at..at, text: new }]);
            prop_assert_eq!(result.replace("\r\n", "").find(['\r', '\n']), None);
        }
    }
}
