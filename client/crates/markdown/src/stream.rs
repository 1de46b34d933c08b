//! A text that arrives in pieces.

use crate::{
    blocks::{Blocks, SourceLine},
    inline::InlineOptions,
    style::Line,
    text::clean,
};

/// The longest line that is waited for, in bytes. Of a longer one, the beginning is taken by itself.
const MAX_LINE: usize = 2048;

/// Markdown that arrives in pieces. The rows that come of it do not depend on how the text is cut.
#[derive(Debug, Clone)]
pub struct MarkdownStream {
    width: usize,
    hyperlinks: bool,
    blocks: Blocks,
    /// What came of the current line.
    line: String,
    /// Whether the beginning of the line was taken already.
    is_cut: bool,
    finished: Vec<Line>,
    open: Vec<Line>,
    /// Whether `open` shows the current end.
    is_current: bool,
    /// The rows that `open` has of a table.
    open_table: Option<usize>,
}

/// Lays out a whole text in rows of at most `width` columns. The targets of links stand behind their texts.
#[must_use]
pub fn render(text: &str, width: usize) -> Vec<Line> {
    let mut stream = MarkdownStream::new(width);
    stream.push(text);
    stream.finish()
}

impl MarkdownStream {
    /// A stream for rows of at most `width` columns; 0 counts as 1. The targets of links stand behind their texts.
    #[must_use]
    pub fn new(width: usize) -> Self {
        Self::begin(width.max(1), false)
    }

    /// Makes links hyperlinks ([`crate::Style::link`]), and leaves out their targets. For the beginning of a text.
    #[must_use]
    pub fn with_hyperlinks(self) -> Self {
        Self::begin(self.width, true)
    }

    /// Lays out what is not final yet, and what follows, in another width.
    pub fn set_width(&mut self, width: usize) {
        let width = width.max(1);
        if width != self.width {
            self.width = width;
            self.blocks.set_width(width);
            self.is_current = false;
            self.open_table = None;
        }
    }

    fn begin(width: usize, hyperlinks: bool) -> Self {
        Self {
            width,
            hyperlinks,
            blocks: Blocks::new(width, InlineOptions { hyperlinks, goes_on: false }),
            line: String::new(),
            is_cut: false,
            finished: Vec::new(),
            open: Vec::new(),
            is_current: true,
            open_table: None,
        }
    }

    /// Takes the next piece of the text.
    pub fn push(&mut self, delta: &str) {
        if delta.is_empty() {
            return;
        }
        self.is_current = false;
        let searched = self.line.len();
        let mut text = std::mem::take(&mut self.line);
        text.push_str(delta);
        let mut begin = 0;
        // What came before has no line feed.
        let mut from = searched;
        loop {
            let rest = &text[begin..];
            let window = floor_char_boundary(rest, MAX_LINE);
            let line_feed =
                rest[(from - begin).min(window)..window].find('\n').map(|at| at + (from - begin).min(window));
            let end = match line_feed {
                Some(at) => {
                    self.take_line(&rest[..at], true);
                    at + 1
                }
                None if rest.len() > MAX_LINE => {
                    let end = rest[..window].rfind(' ').filter(|at| *at > 0).unwrap_or(window);
                    self.take_line(&rest[..end], false);
                    end
                }
                None => break,
            };
            begin += end;
            from = begin;
        }
        text.drain(..begin);
        self.line = text;
    }

    /// The rows that are final, since the last call.
    #[must_use]
    pub fn take_finished(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.finished)
    }

    /// How the end looks that is not final, if nothing came any more. Of a bounded number, also for an endless line. Marks that have not
    /// shown what they begin are left out, emphasis that is open is taken to be closed.
    pub fn open_lines(&mut self) -> &[Line] {
        if self.is_current {
            return &self.open;
        }
        self.is_current = true;
        if let Some(table) = self.blocks.open_table() {
            // A row is shown when it is whole.
            let kept = Some(table.kept());
            if self.open_table != kept {
                self.open_table = kept;
                self.open = Vec::new();
                self.blocks.clone().end(&mut self.open);
            }
            return &self.open;
        }
        self.open_table = None;
        let mut open = std::mem::take(&mut self.open);
        open.clear();
        let mut blocks = self.blocks.clone();
        blocks.options.goes_on = true;
        if !is_undecided(&self.line) {
            let text = cleaned(&self.line);
            blocks.line(SourceLine { text: &text, is_begin: !self.is_cut, is_end: true }, &mut open);
        }
        blocks.end(&mut open);
        self.open = open;
        &self.open
    }

    /// Ends the text; gives the rows since the last [`MarkdownStream::take_finished`]. The stream is as new then.
    #[must_use]
    pub fn finish(&mut self) -> Vec<Line> {
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.take_line(&line, true);
        }
        self.blocks.end(&mut self.finished);
        let finished = self.take_finished();
        *self = Self::begin(self.width, self.hyperlinks);
        finished
    }

    fn take_line(&mut self, line: &str, is_end: bool) {
        let text = cleaned(line);
        let line = SourceLine { text: &text, is_begin: !self.is_cut, is_end };
        self.blocks.line(line, &mut self.finished);
        self.is_cut = !is_end;
    }
}

fn cleaned(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    clean(line, &mut text);
    text
}

/// Whether a line has only marks up to now: what they begin is not known yet.
fn is_undecided(line: &str) -> bool {
    let marks =
        |byte: u8| b"-=*_`~#>+|: .)".contains(&byte) || byte.is_ascii_digit() || byte.is_ascii_whitespace();
    line.len() < 16 && line.bytes().all(marks)
}

fn floor_char_boundary(text: &str, at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
