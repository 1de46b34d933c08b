//! Long pastes: the editor shows a token in their place, and what is sent has the whole text.

use std::ops::Range;

/// From how many lines on a paste is folded.
const MOST_LINES: usize = 8;

/// From how many bytes on a paste is folded.
const MOST_BYTES: usize = 1_500;

/// The pastes of a text, by their tokens. A token stands in a text as long as the text has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pastes(Vec<(String, String)>);

impl Pastes {
    /// What the editor shows for a paste: the text, or a new token for a long one.
    pub(super) fn fold(&mut self, text: &str) -> String {
        let lines = text.lines().count();
        if lines <= MOST_LINES && text.len() <= MOST_BYTES {
            return text.to_owned();
        }
        let what = if lines > 1 {
            format!("pasted {lines} lines")
        } else {
            format!("pasted {} characters", text.chars().count())
        };
        let mut token = format!("[{what}]");
        let mut number = 2;
        while self.0.iter().any(|(known, _)| *known == token) {
            token = format!("[{what} #{number}]");
            number += 1;
        }
        self.0.push((token.clone(), text.to_owned()));
        token
    }

    /// The text with the pastes in the places of their tokens.
    pub(super) fn unfolded(&self, text: &str) -> String {
        let mut whole = String::with_capacity(text.len());
        let mut rest = 0;
        while let Some((range, content)) = self.next_from(text, rest) {
            whole.push_str(&text[rest..range.start]);
            whole.push_str(content);
            rest = range.end;
        }
        whole + &text[rest..]
    }

    /// The token that covers a byte, or ends or begins right there with `reach`.
    pub(super) fn token_around(&self, text: &str, at: usize) -> Option<Range<usize>> {
        let mut rest = 0;
        while let Some((range, _)) = self.next_from(text, rest) {
            if range.start > at {
                return None;
            }
            if at < range.end {
                return Some(range);
            }
            rest = range.end;
        }
        None
    }

    fn next_from(&self, text: &str, from: usize) -> Option<(Range<usize>, &str)> {
        let found = self.0.iter().filter_map(|(token, content)| {
            let start = from + text[from..].find(token.as_str())?;
            Some((start..start + token.len(), content.as_str()))
        });
        found.min_by_key(|(range, _)| range.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_pastes_stand_as_tokens_and_are_sent_whole() {
        let mut pastes = Pastes::default();
        assert_eq!(pastes.fold("a\nb"), "a\nb");
        let long = "line\n".repeat(20);
        let (first, second) = (pastes.fold(&long), pastes.fold(&long));
        assert_eq!((first.as_str(), second.as_str()), ("[pasted 20 lines]", "[pasted 20 lines #2]"));
        let text = format!("see {first} and {second}!");
        assert_eq!(pastes.unfolded(&text), format!("see {long} and {long}!"));
        assert_eq!(pastes.token_around(&text, 6), Some(4..21));
        assert_eq!(pastes.token_around(&text, 21), None);
        assert_eq!(pastes.fold(&"x".repeat(2_000)), "[pasted 2000 characters]");
    }
}
