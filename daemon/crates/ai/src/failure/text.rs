//! Compares error texts without regard to case and punctuation of identifiers.

/// Words behind a number that make it an amount of something other than tokens, and no status.
const UNITS: &[&str] = &[
    "token",
    "tokens",
    "character",
    "characters",
    "chars",
    "message",
    "messages",
    "image",
    "images",
    "pixel",
    "pixels",
    "px",
    "item",
    "items",
    "request",
    "requests",
    "file",
    "files",
    "page",
    "pages",
    "tool",
    "tools",
    "byte",
    "bytes",
    "kb",
    "mb",
    "gb",
    "kib",
    "mib",
    "ms",
    "milliseconds",
    "second",
    "seconds",
    "s",
    "minutes",
    "line",
    "lines",
    "word",
    "words",
    "dollars",
    "usd",
    "%",
];

/// A text made comparable: lower case, `_` and `-` and white space as single spaces.
pub(super) struct Words(String);

impl Words {
    pub(super) fn new(text: &str) -> Self {
        let mut words = String::with_capacity(text.len());
        for character in text.chars() {
            if character == '_' || character == '-' || character.is_whitespace() {
                if !words.ends_with(' ') {
                    words.push(' ');
                }
            } else {
                words.extend(character.to_lowercase());
            }
        }
        Self(words.trim().to_owned())
    }

    /// Whether any of the patterns is in the text: `#` stands for a number, `*` for anything.
    pub(super) fn hold_any(&self, patterns: &[&str]) -> bool {
        !self.0.is_empty() && patterns.iter().any(|pattern| self.holds(pattern))
    }

    pub(super) fn begins_with_any(&self, starts: &[&str]) -> bool {
        starts.iter().any(|start| self.0.starts_with(start))
    }

    /// Whether this stands for an error without a body.
    pub(super) fn is_empty_body(&self) -> bool {
        self.0.is_empty() || self.0 == "(no body)" || self.0 == "status code (no body)"
    }

    /// Whether a word stands in the text by itself.
    pub(super) fn has_word(&self, word: &str) -> bool {
        self.0.match_indices(word).any(|(at, _)| {
            let before = self.0[..at].chars().next_back();
            let after = self.0[at + word.len()..].chars().next();
            ![before, after].into_iter().flatten().any(char::is_alphanumeric)
        })
    }

    /// Whether a number stands in the text by itself and is no amount of something.
    pub(super) fn has_number(&self, number: u16) -> bool {
        let digits = number.to_string();
        self.0.match_indices(&digits).any(|(at, _)| {
            let before = self.0[..at].chars().next_back();
            let rest = &self.0[at + digits.len()..];
            let mut following = rest.chars();
            let after = following.next();
            let fraction =
                matches!(after, Some('.' | ',')) && following.next().is_some_and(|c| c.is_ascii_digit());
            let joined = before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | ',' | '$'))
                || after.is_some_and(char::is_alphanumeric)
                || fraction;
            !joined && !UNITS.contains(&first_word(rest))
        })
    }

    /// Whether a number is told as a code: `"code":"1308"`, `code 1308`, `[1308]`.
    pub(super) fn has_code(&self, number: u16) -> bool {
        let digits = number.to_string();
        self.0.match_indices(&digits).any(|(at, _)| {
            let (before, after) = (&self.0[..at], &self.0[at + digits.len()..]);
            let bracketed = before.ends_with('[') && after.starts_with(']');
            let named = before.trim_end_matches(['"', ':', ' ', '=']).ends_with("code");
            bracketed || (named && !before.ends_with("code") && !after.starts_with(char::is_alphanumeric))
        })
    }

    /// Whether the text holds a word that is no part of a web address.
    pub(super) fn holds_outside_addresses(&self, word: &str) -> bool {
        self.0.split(' ').filter(|part| !part.contains("://")).any(|part| part.contains(word))
    }

    /// Whether `start` is followed by a number of tokens, or by a bare number.
    pub(super) fn number_of_tokens_after(&self, start: &str) -> bool {
        self.0.match_indices(start).any(|(at, _)| {
            let rest = self.0[at + start.len()..].trim_start();
            let Some(rest) = skip_number(rest) else { return false };
            let unit = first_word(rest);
            !rest.starts_with(char::is_alphanumeric) && (unit.starts_with("token") || !UNITS.contains(&unit))
        })
    }

    fn holds(&self, pattern: &str) -> bool {
        let end = pattern.find(['#', '*']).unwrap_or(pattern.len());
        let first = &pattern[..end];
        self.0.match_indices(first).any(|(at, _)| matches(&self.0[at..], pattern))
    }
}

/// Whether `text` begins with what `pattern` describes.
fn matches(text: &str, pattern: &str) -> bool {
    let end = pattern.find(['#', '*']).unwrap_or(pattern.len());
    let Some(text) = text.strip_prefix(&pattern[..end]) else { return false };
    let pattern = &pattern[end..];
    if let Some(rest) = pattern.strip_prefix('#') {
        return skip_number(text).is_some_and(|text| matches(text, rest));
    }
    if let Some(rest) = pattern.strip_prefix('*') {
        return text.find(rest).is_some();
    }
    true
}

/// What follows a number with its separators and an optional bracket; `None` when there is no number.
fn skip_number(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('(').unwrap_or(text);
    inner
        .starts_with(|c: char| c.is_ascii_digit())
        .then(|| inner.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',' || c == '.'))
}

fn first_word(text: &str) -> &str {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '%').unwrap_or(text.len());
    &text[..end]
}
