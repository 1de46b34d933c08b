//! A line as the bytes of a terminal.

use agentd_protocol::terminal_text::steers;

use crate::style::{Color, Line, Style};

/// Appends a line, without a line feed, in the sequences that ECMA-48 terminals know. Links are written as OSC 8 hyperlinks. Without
/// `colors` the text keeps bold, faint, italic, underline and strikethrough, which are no colours.
///
/// Control characters in a text are left out.
pub fn write_ansi(line: &Line, colors: bool, out: &mut String) {
    for span in &line.spans {
        let begun = begin(&span.style, colors, out);
        if let Some(link) = &span.style.link {
            out.push_str("\x1b]8;;");
            out.extend(link.chars().filter(char::is_ascii_graphic));
            out.push_str("\x1b\\");
        }
        if span.text.contains(is_control) {
            out.extend(span.text.chars().filter(|c| !is_control(*c)));
        } else {
            out.push_str(&span.text);
        }
        if span.style.link.is_some() {
            out.push_str("\x1b]8;;\x1b\\");
        }
        if begun {
            out.push_str("\x1b[0m");
        }
    }
}

fn is_control(c: char) -> bool {
    steers(c) || matches!(c, '\n' | '\t')
}

/// Writes the sequence of a style; whether there is one.
fn begin(style: &Style, colors: bool, out: &mut String) -> bool {
    let Style { bold, dim, italic, underline, strikethrough, color, link: _ } = style;
    let attributes = [(*bold, "1"), (*dim, "2"), (*italic, "3"), (*underline, "4"), (*strikethrough, "9")];
    let color = color.filter(|_| colors).map(sgr);
    let mut separator = "\x1b[";
    for number in attributes.iter().filter(|(is_set, _)| *is_set).map(|(_, number)| *number).chain(color) {
        out.push_str(separator);
        out.push_str(number);
        separator = ";";
    }
    let begun = separator == ";";
    if begun {
        out.push('m');
    }
    begun
}

fn sgr(color: Color) -> &'static str {
    match color {
        Color::Black => "30",
        Color::Red => "31",
        Color::Green => "32",
        Color::Yellow => "33",
        Color::Blue => "34",
        Color::Magenta => "35",
        Color::Cyan => "36",
        Color::White => "37",
        Color::BrightBlack => "90",
        Color::BrightRed => "91",
        Color::BrightGreen => "92",
        Color::BrightYellow => "93",
        Color::BrightBlue => "94",
        Color::BrightMagenta => "95",
        Color::BrightCyan => "96",
        Color::BrightWhite => "97",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Span;

    #[test]
    fn styles_are_sequences_and_controls_are_left_out() {
        let style = Style {
            bold: true,
            color: Some(Color::Red),
            link: Some("https://a.b/\u{1b}c".into()),
            ..Style::default()
        };
        let line = Line { spans: vec![Span::new("a", Style::default()), Span::new("b\u{1b}[2J\n", style)] };
        let written = |colors| {
            let mut out = String::new();
            write_ansi(&line, colors, &mut out);
            out
        };
        assert_eq!(written(true), "a\x1b[1;31m\x1b]8;;https://a.b/c\x1b\\b[2J\x1b]8;;\x1b\\\x1b[0m");
        assert_eq!(written(false), "a\x1b[1m\x1b]8;;https://a.b/c\x1b\\b[2J\x1b]8;;\x1b\\\x1b[0m");
    }
}
