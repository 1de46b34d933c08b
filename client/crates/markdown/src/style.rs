//! Styled text: what lines consist of, and how each element of Markdown looks.

use std::sync::Arc;

use crate::text::columns;

/// The text of a piece that only ends a row.
pub(crate) const HARD_BREAK: &str = "\n";

/// One of the sixteen colours that the user's terminal has a palette for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the palette")]
pub enum Color {
    Black,
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
    White,
    BrightBlack,
    BrightRed,
    BrightGreen,
    BrightYellow,
    BrightBlue,
    BrightMagenta,
    BrightCyan,
    BrightWhite,
}

/// The look of a piece of text. The default is the terminal's own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Style {
    /// Bold.
    pub bold: bool,
    /// Faint.
    pub dim: bool,
    /// Italic.
    pub italic: bool,
    /// Underlined.
    pub underline: bool,
    /// Struck through.
    pub strikethrough: bool,
    /// The colour of the text; `None` is the terminal's.
    pub color: Option<Color>,
    /// The target of a hyperlink: printable ASCII, with the scheme http, https, mailto or file.
    pub link: Option<Arc<str>>,
}

/// A piece of a line in one style.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Span {
    /// The text: neither line feeds nor other control characters.
    pub text: String,
    /// Its look.
    pub style: Style,
}

/// A row of the terminal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// The pieces, from left to right.
    pub spans: Vec<Span>,
}

impl Span {
    /// Text in a style.
    #[must_use]
    pub fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }
}

impl Line {
    /// The text without styles.
    #[must_use]
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// The columns that the line takes, at most: terminals differ about sequences of emoji.
    #[must_use]
    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| columns(&span.text)).sum()
    }
}

impl Style {
    /// Faint.
    pub(crate) fn faint() -> Self {
        Self { dim: true, ..Self::default() }
    }

    /// A colour.
    pub(crate) fn color(color: Color) -> Self {
        Self { color: Some(color), ..Self::default() }
    }

    /// A heading of a level from 1 to 6.
    pub(crate) fn heading(level: usize) -> Self {
        let base = Self { bold: true, ..Self::default() };
        match level {
            1 => Self { underline: true, color: Some(Color::Magenta), ..base },
            2 => Self { color: Some(Color::Magenta), ..base },
            _ => base,
        }
    }

    /// Code between backticks, in text of this style.
    pub(crate) fn with_code(&self) -> Self {
        Self { color: Some(Color::Cyan), ..self.clone() }
    }

    /// The mark before an item of a list.
    pub(crate) fn list_mark() -> Self {
        Self::color(Color::Cyan)
    }
}

/// Appends text to a line; text of the last piece's style extends that, unless it is a break.
pub(crate) fn push_text(spans: &mut Vec<Span>, text: &str, style: &Style) {
    if text.is_empty() {
        return;
    }
    match spans.last_mut() {
        Some(last) if last.style == *style && last.text != HARD_BREAK => last.text.push_str(text),
        _ => spans.push(Span::new(text, style.clone())),
    }
}
