//! Colours of code: keywords, strings, numbers, comments. A small lexer for many languages, not a parser of any.
//!
//! Works line by line; the state between two lines is a few bytes.

mod languages;

use self::languages::{Language, language};
use crate::style::{Color, Span, Style, push_text};

/// The colours of the code of a block, with the state at the end of the lines so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Highlighter {
    syntax: Syntax,
    /// The end mark of the comment or string that goes on in the next line.
    inside: Option<Inside>,
}

#[derive(Debug, Clone, Copy, Default)]
enum Syntax {
    /// Text without colours.
    #[default]
    None,
    /// A diff: each line by its first character.
    Diff,
    Language(&'static Language),
}

#[derive(Debug, Clone, Copy)]
enum Inside {
    Comment(&'static str),
    String(&'static str),
}

impl Highlighter {
    /// For the language that a code block names.
    pub(crate) fn of(words: &str) -> Self {
        let name =
            words.split([' ', ',', '{', '}', '.', ':']).find(|word| !word.is_empty()).unwrap_or_default();
        let name = name.to_ascii_lowercase();
        let syntax = match name.as_str() {
            "diff" | "patch" => Syntax::Diff,
            name => language(name).map_or(Syntax::None, Syntax::Language),
        };
        Self { syntax, inside: None }
    }

    /// Adds the pieces of a line, or of a part of one.
    pub(crate) fn line(&mut self, text: &str, spans: &mut Vec<Span>) {
        match self.syntax {
            Syntax::None => push_text(spans, text, &Style::default()),
            Syntax::Diff => push_text(spans, text, &diff(text)),
            Syntax::Language(language) => self.code(language, text, spans),
        }
    }

    fn code(&mut self, language: &'static Language, text: &str, spans: &mut Vec<Span>) {
        let mut rest = text;
        let mut is_first = true;
        while !rest.is_empty() {
            let (length, style) = self.token(language, rest, is_first);
            let (token, after) = rest.split_at(length);
            is_first &= token.bytes().all(|byte| byte == b' ');
            push_text(spans, token, &style);
            rest = after;
        }
        // Only some strings go on in the next line.
        if let Some(Inside::String(end)) = self.inside
            && !language.long_strings.iter().any(|(_, long)| *long == end)
        {
            self.inside = None;
        }
    }

    /// The length and the style of the token that the text begins with.
    fn token(&mut self, language: &'static Language, text: &str, is_first: bool) -> (usize, Style) {
        match self.inside {
            Some(Inside::Comment(end)) => return (self.up_to(text, 0, end, false), comment()),
            Some(Inside::String(end)) => return (self.up_to(text, 0, end, language.escapes), string()),
            None => {}
        }
        if language.line_comments.iter().any(|mark| text.starts_with(mark)) {
            return (text.len(), comment());
        }
        if let Some((begin, end)) = language.block_comments.iter().find(|(begin, _)| text.starts_with(begin))
        {
            self.inside = Some(Inside::Comment(end));
            return (self.up_to(text, begin.len(), end, false), comment());
        }
        if let Some((begin, end)) =
            language.long_strings.iter().chain(language.strings).find(|(begin, _)| text.starts_with(begin))
        {
            self.inside = Some(Inside::String(end));
            let length = self.up_to(text, begin.len(), end, language.escapes);
            let is_key =
                language.has_keys && self.inside.is_none() && text[length..].trim_start().starts_with(':');
            return (length, if is_key { key() } else { string() });
        }
        let Some(first) = text.chars().next() else { return (0, Style::default()) };
        if first.is_ascii_digit() {
            let is_number = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.');
            return (text.find(is_number).unwrap_or(text.len()), Style::color(Color::Yellow));
        }
        if first.is_alphabetic() || first == '_' {
            let ends = |c: char| !(c.is_alphanumeric() || c == '_' || (language.dashes && c == '-'));
            let end = text.find(ends).unwrap_or(text.len());
            return (end, language.word(&text[..end], &text[end..], is_first));
        }
        let same = |c: char| c.is_alphanumeric() || c == '_' || language.begins_something(c);
        let end = text.char_indices().skip(1).find(|(_, c)| same(*c)).map_or(text.len(), |(at, _)| at);
        (end, Style::default())
    }

    /// Up to behind the mark `end`, from `from` on; the rest of the line where it does not come.
    fn up_to(&mut self, text: &str, from: usize, end: &str, escapes: bool) -> usize {
        let bytes = text.as_bytes();
        let mut at = from;
        while at < bytes.len() {
            if text.is_char_boundary(at) && text[at..].starts_with(end) {
                self.inside = None;
                return at + end.len();
            }
            at += if escapes && bytes[at] == b'\\' { 2 } else { 1 };
        }
        text.len()
    }
}

impl Language {
    fn word(&self, word: &str, after: &str, is_first: bool) -> Style {
        let is_keyword = if self.ignores_case {
            self.keywords.contains(&word.to_ascii_lowercase().as_str())
        } else {
            self.keywords.contains(&word)
        };
        if is_keyword {
            return Style::color(Color::Magenta);
        }
        if self.constants.contains(&word) {
            return Style::color(Color::Yellow);
        }
        let next = after.trim_start();
        let is_key = self.has_keys
            && is_first
            && (next.starts_with('=') || after == ":" || after.starts_with(": ") || next.starts_with('.'));
        if is_key {
            return key();
        }
        if after.starts_with('(') && !self.has_keys { Style::color(Color::Blue) } else { Style::default() }
    }

    /// Whether a token may begin with the character.
    fn begins_something(&self, c: char) -> bool {
        let begins = |mark: &str| mark.starts_with(c);
        self.line_comments.iter().any(|mark| begins(mark))
            || self
                .block_comments
                .iter()
                .chain(self.strings)
                .chain(self.long_strings)
                .any(|(mark, _)| begins(mark))
    }
}

fn comment() -> Style {
    Style { dim: true, italic: true, ..Style::default() }
}

fn string() -> Style {
    Style::color(Color::Green)
}

fn key() -> Style {
    Style::color(Color::Cyan)
}

fn diff(line: &str) -> Style {
    match line.as_bytes() {
        [b'-', b'-', b'-', b' ', ..] | [b'+', b'+', b'+', b' ', ..] => {
            Style { bold: true, ..Style::default() }
        }
        [b'+', ..] => Style::color(Color::Green),
        [b'-', ..] => Style::color(Color::Red),
        [b'@', b'@', ..] => Style::color(Color::Cyan),
        _ => Style::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens with marks: `k(…)` keyword, `s(…)` string, `n(…)` number, `c(…)` comment, `f(…)` call, `y(…)` key.
    fn shown(words: &str, code: &str) -> String {
        let mut highlighter = Highlighter::of(words);
        let line = |line| {
            let mut spans = Vec::new();
            highlighter.line(line, &mut spans);
            spans.iter().map(marked).collect::<String>()
        };
        code.lines().map(line).collect::<Vec<_>>().join("\n")
    }

    fn marked(span: &Span) -> String {
        let mark = match (span.style.dim, span.style.color) {
            (true, _) => "c",
            (_, Some(Color::Magenta)) => "k",
            (_, Some(Color::Green)) => "s",
            (_, Some(Color::Yellow)) => "n",
            (_, Some(Color::Blue)) => "f",
            (_, Some(Color::Cyan)) => "y",
            (_, Some(Color::Red)) => "-",
            _ => return span.text.clone(),
        };
        format!("{mark}({})", span.text)
    }

    #[test]
    fn tokens_have_colours() {
        for (words, code, expected) in [
            ("rust", "let x = f(\"a\\\"b\", 12); // end", "k(let) x = f(f)(s(\"a\\\"b\"), n(12)); c(// end)"),
            ("rust", "/* a\nb */ fn", "c(/* a)\nc(b */) k(fn)"),
            ("rust", "fn f<'a>(c: &'a str) { 'x' }", "k(fn) f<'a>(c: &'a str) { 'x' }"),
            ("python", "x = '''a\nb''' # c", "x = s('''a)\ns(b''') c(# c)"),
            ("py", "def f(): return None", "k(def) f(f)(): k(return) n(None)"),
            ("js", "const a = `x\n${y}`", "k(const) a = s(`x)\ns(${y}`)"),
            ("sh", "for f in $(ls); do echo 'a' # b", "k(for) f k(in) $(ls); k(do) echo s('a') c(# b)"),
            ("json", "{\"a\": [1, true, \"b\"]}", "{y(\"a\"): [n(1), n(true), s(\"b\")]}"),
            ("yaml", "a-b: 'x' # c", "y(a-b): s('x') c(# c)"),
            ("toml", "a = \"b\" # c", "y(a) = s(\"b\") c(# c)"),
            ("SQL", "select a FROM b -- c", "k(select) a k(FROM) b c(-- c)"),
            ("diff", "+a\n-b\n c", "s(+a)\n-(-b)\n c"),
            ("html", "<p class=\"a\"><!-- c -->", "<p class=s(\"a\")>c(<!-- c -->)"),
            ("unknown", "let x", "let x"),
            ("", "let x", "let x"),
            ("c", "char *s = \"open\nint x;", "k(char) *s = s(\"open)\nk(int) x;"),
        ] {
            assert_eq!(shown(words, code), expected, "{words}");
        }
    }
}
