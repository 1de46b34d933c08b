//! The colours, by what a text is. They are the sixteen that every terminal has, so that a user's own palette counts.

use ratatui_core::style::{Color, Modifier, Style};

pub(crate) const DIM: Style = Style::new().add_modifier(Modifier::DIM);
pub(crate) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub(crate) const ACCENT: Style = Style::new().fg(Color::Cyan);
pub(crate) const OK: Style = Style::new().fg(Color::Green);
pub(crate) const FAILED: Style = Style::new().fg(Color::Red);
pub(crate) const WARNING: Style = Style::new().fg(Color::Yellow);
pub(crate) const THINKING: Style = Style::new().add_modifier(Modifier::DIM).add_modifier(Modifier::ITALIC);
pub(crate) const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// The style of a line of a diff.
pub(crate) fn diff(line: &str) -> Style {
    match line.as_bytes() {
        [b'-', b'-', b'-', b' ', ..] | [b'+', b'+', b'+', b' ', ..] => BOLD,
        [b'-', ..] => FAILED,
        [b'+', ..] => OK,
        [b'@', b'@', ..] => ACCENT,
        _ => Style::new(),
    }
}
