//! An answer on a terminal: Markdown, and a line about the model's thinking.

use std::time::{Duration, Instant};

use agentd_markdown::{Line, MarkdownStream, write_ansi};

use super::{cut, one_line, style::StreamStyle};
use crate::{
    output::{LiveRow, OutputChunk},
    terminal_size::stdout_size,
};

/// How much of the model's thinking is kept for the line about it, in bytes.
const KEPT_THINKING: usize = 400;

/// The least time between two drawings of rows that may still change: 60 a second. A delta is taken at once whatever it costs to draw,
/// and a fast model is not drawn more often than somebody could see.
const FRAME: Duration = Duration::from_millis(16);

/// The columns for text: the last one stays free, where terminals differ about the end of a row.
fn text_width() -> usize {
    stdout_size().columns.saturating_sub(1).max(1)
}

/// A whole text in rows.
pub(crate) fn whole_text(text: &str, style: StreamStyle) -> Vec<LiveRow> {
    let mut stream = new_stream(style);
    stream.push(text);
    rows(&stream.finish(), style)
}

fn new_stream(style: StreamStyle) -> MarkdownStream {
    let stream = MarkdownStream::new(text_width());
    if style.hyperlinks { stream.with_hyperlinks() } else { stream }
}

fn rows(lines: &[Line], style: StreamStyle) -> Vec<LiveRow> {
    lines.iter().map(|line| row(line, style.out_colour)).collect()
}

fn row(line: &Line, colours: bool) -> LiveRow {
    let mut text = String::new();
    write_ansi(line, colours, &mut text);
    LiveRow { text, columns: line.width() }
}

/// The part of an answer that is being written.
#[derive(Debug)]
pub(super) enum AnswerPart {
    Text(MarkdownStream),
    Thinking(Thinking),
}

/// The thinking of a model, folded: its last sentence while it goes on, its time when it is over.
#[derive(Debug)]
pub(super) struct Thinking {
    begun: Instant,
    /// The end of it.
    tail: String,
    /// All of it, where it is shown.
    whole: Option<MarkdownStream>,
}

/// Answers on a terminal.
#[derive(Debug, Default)]
pub(super) struct AnswerView {
    part: Option<AnswerPart>,
    drawn: Option<Instant>,
    /// Whether something came that is not drawn yet.
    is_stale: bool,
}

impl AnswerView {
    /// Takes a piece of text.
    pub(super) fn text(&mut self, delta: &str, style: StreamStyle, now: Instant) -> Vec<OutputChunk> {
        let mut chunks = Vec::new();
        if !matches!(self.part, Some(AnswerPart::Text(_))) {
            chunks = self.end(style, now);
        }
        let part = self.part.get_or_insert_with(|| AnswerPart::Text(new_stream(style)));
        if let AnswerPart::Text(stream) = part {
            stream.push(delta);
        }
        chunks.extend(self.draw_in_time(style, now));
        chunks
    }

    /// Takes a piece of the model's thinking.
    pub(super) fn thinking(&mut self, delta: &str, style: StreamStyle, now: Instant) -> Vec<OutputChunk> {
        let mut chunks = Vec::new();
        if !matches!(self.part, Some(AnswerPart::Thinking(_))) {
            chunks = self.end(style, now);
        }
        let part = self.part.get_or_insert_with(|| {
            let whole = style.show_thinking.then(|| MarkdownStream::new(text_width()));
            AnswerPart::Thinking(Thinking { begun: now, tail: String::new(), whole })
        });
        if let AnswerPart::Thinking(thinking) = part {
            thinking.push(delta);
        }
        chunks.extend(self.draw_in_time(style, now));
        chunks
    }

    /// When to call [`AnswerView::draw`] if nothing else comes; `None` while everything is drawn.
    pub(super) fn draw_at(&self) -> Option<Instant> {
        if self.is_stale { self.drawn.map(|drawn| drawn + FRAME) } else { None }
    }

    /// Draws what came since the last time.
    pub(super) fn draw(&mut self, style: StreamStyle, now: Instant) -> Option<OutputChunk> {
        self.drawn = Some(now);
        if !std::mem::take(&mut self.is_stale) {
            return None;
        }
        Some(match self.part.as_mut()? {
            AnswerPart::Text(stream) => {
                stream.set_width(text_width());
                shown(stream, style)
            }
            AnswerPart::Thinking(thinking) => thinking.shown(style),
        })
    }

    fn draw_in_time(&mut self, style: StreamStyle, now: Instant) -> Option<OutputChunk> {
        self.is_stale = true;
        let is_due = self.drawn.is_none_or(|drawn| now.saturating_duration_since(drawn) >= FRAME);
        if is_due { self.draw(style, now) } else { None }
    }

    /// Ends what is being written: its rows are final.
    pub(super) fn end(&mut self, style: StreamStyle, now: Instant) -> Vec<OutputChunk> {
        self.is_stale = false;
        let finished = match self.part.take() {
            None => return Vec::new(),
            Some(AnswerPart::Text(mut stream)) => {
                stream.set_width(text_width());
                rows(&stream.finish(), style)
            }
            Some(AnswerPart::Thinking(thinking)) => thinking.end(style, now),
        };
        vec![OutputChunk::Rows { finished, open: Vec::new() }]
    }
}

fn shown(stream: &mut MarkdownStream, style: StreamStyle) -> OutputChunk {
    let finished = rows(&stream.take_finished(), style);
    OutputChunk::Rows { finished, open: rows(stream.open_lines(), style) }
}

impl Thinking {
    fn push(&mut self, delta: &str) {
        if let Some(whole) = &mut self.whole {
            whole.push(delta);
            return;
        }
        self.tail.push_str(delta);
        if self.tail.len() > KEPT_THINKING {
            let end = self.tail.len() - KEPT_THINKING / 2;
            let end = (end..self.tail.len()).find(|at| self.tail.is_char_boundary(*at)).unwrap_or(0);
            self.tail.drain(..end);
        }
    }

    fn shown(&mut self, style: StreamStyle) -> OutputChunk {
        if let Some(whole) = &mut self.whole {
            whole.set_width(text_width());
            let finished = faint(&whole.take_finished(), style);
            return OutputChunk::Rows { finished, open: faint(whole.open_lines(), style) };
        }
        OutputChunk::Rows { finished: Vec::new(), open: vec![faint_row(last_sentence(&self.tail), style)] }
    }

    fn end(self, style: StreamStyle, now: Instant) -> Vec<LiveRow> {
        let mut rows = match self.whole {
            Some(mut whole) => faint(&whole.finish(), style),
            None => Vec::new(),
        };
        rows.push(faint_row(&format!("thought for {}", seconds(now - self.begun)), style));
        rows
    }
}

/// The last sentence that has begun.
fn last_sentence(text: &str) -> &str {
    let text = text.trim();
    let ends = text.match_indices(['\n', '.', '!', '?', '。']);
    // The end of the text is not the beginning of another sentence.
    let mut last = ends.map(|(at, end)| at + end.len()).filter(|end| {
        let after = &text[*end..];
        after.starts_with(char::is_whitespace) || text[..*end].ends_with(['\n', '。'])
    });
    let sentence = text[last.next_back().unwrap_or(0)..].trim();
    if sentence.is_empty() { text.lines().last().unwrap_or_default() } else { sentence }
}

fn seconds(time: Duration) -> String {
    match time.as_secs() {
        0 => "less than a second".to_owned(),
        seconds @ 1..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// A faint row of one line of text.
fn faint_row(text: &str, style: StreamStyle) -> LiveRow {
    let text = cut(&one_line(text), text_width());
    let columns = super::columns(&text);
    LiveRow { text: style.faint_on_stdout(&text), columns }
}

fn faint(lines: &[Line], style: StreamStyle) -> Vec<LiveRow> {
    let faint_line = |line: &Line| {
        let mut line = line.clone();
        for span in &mut line.spans {
            span.style.dim = true;
            span.style.color = None;
        }
        row(&line, style.out_colour)
    };
    lines.iter().map(faint_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(chunks: &[OutputChunk]) -> Vec<(Vec<String>, Vec<String>)> {
        let plain = |rows: &[LiveRow]| rows.iter().map(|row| row.text.clone()).collect::<Vec<_>>();
        chunks
            .iter()
            .map(|chunk| match chunk {
                OutputChunk::Rows { finished, open } => (plain(finished), plain(open)),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn text_is_open_until_its_block_ends() {
        let (mut view, style, begun) = (AnswerView::default(), StreamStyle::default(), Instant::now());
        let mut text = |frames: u32, delta| texts(&view.text(delta, style, begun + FRAME * frames));
        assert_eq!(text(0, "- a"), [(vec![], strings(&["• a"]))]);
        assert_eq!(text(1, "b\n- c"), [(vec![], strings(&["• ab", "• c"]))]);
        assert_eq!(text(2, "\n- d"), [(strings(&["• ab"]), strings(&["• c", "• d"]))]);
        assert_eq!(texts(&view.end(style, Instant::now())), [(strings(&["• c", "• d"]), vec![])]);
        assert_eq!(view.end(style, Instant::now()), []);
    }

    #[test]
    fn what_comes_too_early_is_drawn_with_the_next_frame() {
        let (mut view, style, begun) = (AnswerView::default(), StreamStyle::default(), Instant::now());
        let early = begun + FRAME / 2;
        view.text("a", style, begun);
        assert_eq!(view.draw_at(), None);
        assert_eq!(view.text("b", style, early), []);
        assert_eq!(view.text("c\n\nd", style, early), []);
        assert_eq!(view.draw_at(), Some(begun + FRAME));
        let drawn: Vec<_> = view.draw(style, begun + FRAME).into_iter().collect();
        assert_eq!(texts(&drawn), [(strings(&["abc"]), strings(&["", "d"]))]);
        assert_eq!((view.draw_at(), view.draw(style, begun + FRAME)), (None, None));
        // The end draws what is left by itself.
        assert_eq!(view.text("e", style, begun + FRAME), []);
        assert_eq!(texts(&view.end(style, begun + FRAME)), [(strings(&["", "de"]), vec![])]);
        assert_eq!(view.draw_at(), None);
    }

    #[test]
    fn thinking_is_folded() {
        let (mut view, style, begun) = (AnswerView::default(), StreamStyle::default(), Instant::now());
        assert_eq!(
            texts(&view.thinking("I look. The\u{1b}[2J file", style, begun)),
            [(vec![], strings(&["The [2J file"]))]
        );
        let ended = texts(&view.text("Yes", style, begun + FRAME));
        assert_eq!(
            ended,
            [(strings(&["thought for less than a second"]), vec![]), (vec![], strings(&["Yes"]))]
        );
        view.thinking("x", style, begun);
        assert_eq!(
            texts(&view.end(style, begun + Duration::from_secs(72))),
            [(strings(&["thought for 1 min 12 s"]), vec![])]
        );
    }

    #[test]
    fn thinking_is_shown_where_it_is_wanted() {
        let style = StreamStyle { show_thinking: true, ..StreamStyle::default() };
        let (mut view, begun) = (AnswerView::default(), Instant::now());
        view.thinking("One.\n\nT", style, begun);
        let ended = texts(&view.end(style, begun + Duration::from_secs(2)));
        assert_eq!(
            ended,
            [(vec![String::new(), "\u{1b}[2mT\u{1b}[0m".into(), "thought for 2 s".into()], vec![])]
        );
    }

    #[test]
    fn sentences() {
        for (text, last) in [
            ("", ""),
            ("One", "One"),
            ("One. Two", "Two"),
            ("One. Two.", "Two."),
            ("a.b c", "a.b c"),
            ("One\nTwo", "Two"),
            ("一。二", "二"),
        ] {
            assert_eq!(last_sentence(text), last, "{text:?}");
        }
    }
}
