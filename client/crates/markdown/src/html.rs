//! Blocks of HTML: their source, faint; comments are left out.

use crate::{
    style::{Line, Span, Style},
    wrap::wrap,
};

/// A block of HTML, up to the next blank line.
#[derive(Debug, Clone, Default)]
pub(crate) struct HtmlBlock {
    in_comment: bool,
}

impl HtmlBlock {
    /// The rows of a line.
    pub(crate) fn line(&mut self, line: &str, width: usize) -> Vec<Line> {
        let mut text = String::new();
        let mut rest = line;
        loop {
            let mark = if self.in_comment { "-->" } else { "<!--" };
            let Some(at) = rest.find(mark) else { break };
            if !self.in_comment {
                text.push_str(&rest[..at]);
            }
            rest = &rest[at + mark.len()..];
            self.in_comment = !self.in_comment;
        }
        if !self.in_comment {
            text.push_str(rest);
        }
        if text.trim().is_empty() { Vec::new() } else { wrap(&[Span::new(text, Style::faint())], width) }
    }
}
