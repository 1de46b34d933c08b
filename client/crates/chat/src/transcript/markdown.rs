//! Answers as rows. The one place that knows how Markdown is drawn.

use std::fmt;

use agentd_markdown::{Color as MarkdownColor, Line as MarkdownLine, MarkdownStream, Style as MarkdownStyle};
use ratatui_core::{
    style::{Color, Modifier, Style},
    text::{Line, Span},
};

/// The rows of a text that grows. What cannot change any more is laid out once.
pub(super) struct GrowingText {
    stream: MarkdownStream,
    /// How many bytes the stream has.
    taken: usize,
    rows: Vec<Line<'static>>,
    /// How many of the rows are for good.
    settled: usize,
}

impl GrowingText {
    pub(super) fn new(width: usize) -> Self {
        Self { stream: MarkdownStream::new(width), taken: 0, rows: Vec::new(), settled: 0 }
    }

    /// Brings the rows up to date with the text, of which what was given before is the beginning.
    pub(super) fn grow(&mut self, text: &str) {
        self.stream.push(&text[self.taken..]);
        self.taken = text.len();
        self.rows.truncate(self.settled);
        self.rows.extend(self.stream.take_finished().iter().map(row));
        self.settled = self.rows.len();
        self.rows.extend(self.stream.open_lines().iter().map(row));
    }

    pub(super) fn rows(&self) -> &[Line<'static>] {
        &self.rows
    }
}

impl fmt::Debug for GrowingText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrowingText").field("taken", &self.taken).field("rows", &self.rows.len()).finish()
    }
}

/// The rows of a whole text.
pub(super) fn rows(text: &str, width: usize) -> Vec<Line<'static>> {
    agentd_markdown::render(text, width).iter().map(row).collect()
}

fn row(line: &MarkdownLine) -> Line<'static> {
    line.spans.iter().map(|span| Span::styled(span.text.clone(), style(&span.style))).collect()
}

fn style(style: &MarkdownStyle) -> Style {
    let modifiers = [
        (style.bold, Modifier::BOLD),
        (style.dim, Modifier::DIM),
        (style.italic, Modifier::ITALIC),
        (style.underline || style.link.is_some(), Modifier::UNDERLINED),
        (style.strikethrough, Modifier::CROSSED_OUT),
    ];
    let chosen = modifiers.into_iter().filter(|(is_on, _)| *is_on).map(|(_, modifier)| modifier).collect();
    let drawn = Style::new().add_modifier(chosen);
    style.color.map_or(drawn, |chosen| drawn.fg(color(chosen)))
}

fn color(color: MarkdownColor) -> Color {
    match color {
        MarkdownColor::Black => Color::Black,
        MarkdownColor::Red => Color::Red,
        MarkdownColor::Green => Color::Green,
        MarkdownColor::Yellow => Color::Yellow,
        MarkdownColor::Blue => Color::Blue,
        MarkdownColor::Magenta => Color::Magenta,
        MarkdownColor::Cyan => Color::Cyan,
        MarkdownColor::White => Color::Gray,
        MarkdownColor::BrightBlack => Color::DarkGray,
        MarkdownColor::BrightRed => Color::LightRed,
        MarkdownColor::BrightGreen => Color::LightGreen,
        MarkdownColor::BrightYellow => Color::LightYellow,
        MarkdownColor::BrightBlue => Color::LightBlue,
        MarkdownColor::BrightMagenta => Color::LightMagenta,
        MarkdownColor::BrightCyan => Color::LightCyan,
        MarkdownColor::BrightWhite => Color::White,
    }
}
