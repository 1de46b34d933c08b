//! Text within a block: emphasis, code, links, tags, as styled pieces.
//!
//! The rules are CommonMark's with strikethrough, tables' `<br>` and bare addresses. What is not closed is text. References are not
//! resolved: their definitions come last, when the text is on the screen.

mod emphasis;
mod entities;
mod node;
mod pieces;
mod scan;

use crate::style::{Span, Style};

/// How text within a block is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InlineOptions {
    /// Whether links become hyperlinks. Else their targets stand behind their texts.
    pub(crate) hyperlinks: bool,
    /// Whether the text goes on: emphasis and code that is open at its end is taken to be closed there.
    pub(crate) goes_on: bool,
}

/// The pieces of a text. Hard breaks are pieces of their own: [`crate::style::HARD_BREAK`].
pub(crate) fn parse(text: &str, style: &Style, options: InlineOptions) -> Vec<Span> {
    if !text.contains(is_special) {
        let mut spans = Vec::new();
        crate::style::push_text(&mut spans, text, style);
        return spans;
    }
    let mut nodes = scan::scan(text, options.goes_on);
    emphasis::pair(&mut nodes, 0, options.goes_on);
    pieces::assemble(nodes, style, options.hyperlinks)
}

fn is_special(c: char) -> bool {
    matches!(c, '*' | '_' | '~' | '`' | '[' | ']' | '!' | '<' | '&' | '\\' | '\n' | ':' | 'w')
}

#[cfg(test)]
mod tests;
