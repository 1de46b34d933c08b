//! Screens and how long each of them is shown. Pure.

use std::{num::NonZero, time::Duration};

/// The width of the recorded terminal in cells.
pub(crate) const COLUMNS: u16 = 88;
/// Its height.
pub(crate) const ROWS: u16 = 26;

/// A colour of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Colour {
    /// The terminal's own.
    Default,
    /// One of the 16 that a user's terminal defines.
    Named(u8),
    /// Red, green, blue.
    Exact(u8, u8, u8),
}

/// How the text of a cell looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Style {
    pub(crate) front: Colour,
    pub(crate) back: Colour,
    pub(crate) is_bold: bool,
    pub(crate) is_dim: bool,
    pub(crate) is_italic: bool,
    pub(crate) is_underlined: bool,
}

/// Neighbouring cells of one style.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Run {
    pub(crate) column: u16,
    /// In cells; a wide character has two.
    pub(crate) width: u16,
    pub(crate) text: String,
    pub(crate) style: Style,
}

/// A row without its empty cells.
pub(crate) type Row = Vec<Run>;

/// A screen, and how long it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) rows: Vec<Row>,
    pub(crate) shown: Duration,
}

/// Frames in the order of time.
#[derive(Debug, Default)]
pub(crate) struct Frames(Vec<Frame>);

impl Frames {
    /// Shows a screen for that long; longer, if it is the last one.
    pub(crate) fn show(&mut self, rows: Vec<Row>, shown: Duration) {
        match self.0.last_mut().filter(|last| last.rows == rows) {
            Some(last) => last.shown += shown,
            None => self.0.push(Frame { rows, shown }),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Frame> {
        self.0.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The time between two screens as it is shown. Times are rounded, so that a recording on a busy machine is like one on an idle one.
pub(crate) fn rounded(measured: Duration) -> Duration {
    const STREAMING: Duration = Duration::from_millis(50);
    const STEP: u128 = 250;
    if measured < Duration::from_millis(150) {
        return STREAMING;
    }
    let steps = (measured.as_millis() + STEP / 2) / STEP;
    // No wait of a story is long.
    Duration::from_millis(u64::try_from(steps * STEP).unwrap_or(u64::MAX))
}

/// An empty terminal of this size.
pub(crate) fn terminal() -> vt100::Parser {
    let cells = |count: u16| NonZero::<u16>::MIN.saturating_add(count - 1);
    vt100::Parser::new(cells(ROWS), cells(COLUMNS), 0)
}

/// The cells of a screen.
pub(crate) fn rows(screen: &vt100::Screen) -> Vec<Row> {
    (0..ROWS).map(|row| runs(screen, row)).collect()
}

fn runs(screen: &vt100::Screen, row: u16) -> Row {
    let mut runs: Row = Vec::new();
    for column in 0..COLUMNS {
        let Some(cell) = screen.cell(row, column).filter(|cell| !cell.is_wide_continuation()) else {
            continue;
        };
        let style = style(cell);
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let width = if cell.is_wide() { 2 } else { 1 };
        match runs.last_mut().filter(|run| run.style == style && run.column + run.width == column) {
            Some(run) => {
                run.text.push_str(text);
                run.width += width;
            }
            None => runs.push(Run { column, width, text: text.to_owned(), style }),
        }
    }
    for run in &mut runs {
        trim(run);
    }
    runs.retain(|run| run.width > 0);
    runs
}

/// Takes off spaces that cannot be seen.
fn trim(run: &mut Run) {
    if run.style.back != Colour::Default || run.style.is_underlined {
        return;
    }
    let narrower = |before: usize, after: usize| u16::try_from(before - after).unwrap_or(0);
    let end = run.text.trim_end_matches(' ').len();
    run.width -= narrower(run.text.len(), end);
    run.text.truncate(end);
    let start = run.text.trim_start_matches(' ').len();
    let gone = narrower(run.text.len(), start);
    run.text = run.text.split_off(usize::from(gone));
    run.width -= gone;
    run.column += gone;
}

fn style(cell: &vt100::Cell) -> Style {
    let (front, back) = (colour(cell.fgcolor()), colour(cell.bgcolor()));
    let (front, back) = if cell.inverse() { (Colour::Named(0), front_as_back(front)) } else { (front, back) };
    Style {
        front,
        back,
        is_bold: cell.bold(),
        is_dim: cell.dim(),
        is_italic: cell.italic(),
        is_underlined: cell.underline(),
    }
}

/// The background of inverse text.
fn front_as_back(front: Colour) -> Colour {
    if front == Colour::Default { Colour::Named(7) } else { front }
}

fn colour(colour: vt100::Color) -> Colour {
    match colour {
        vt100::Color::Default => Colour::Default,
        vt100::Color::Rgb(red, green, blue) => Colour::Exact(red, green, blue),
        vt100::Color::Idx(named @ 0..16) => Colour::Named(named),
        vt100::Color::Idx(cube @ 16..232) => {
            let level = |part: u8| if part == 0 { 0 } else { 55 + 40 * part };
            let cube = cube - 16;
            Colour::Exact(level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        vt100::Color::Idx(grey) => {
            let level = 8 + 10 * (grey - 232);
            Colour::Exact(level, level, level)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(bytes: &[u8]) -> Vec<Row> {
        let mut parser = terminal();
        parser.process(bytes);
        rows(parser.screen())
    }

    #[test]
    fn a_row_is_runs_of_one_style() {
        let rows = screen("  a \u{1b}[31mb你c\u{1b}[0m  \r\n".as_bytes());
        let seen: Vec<(u16, u16, &str)> =
            rows[0].iter().map(|run| (run.column, run.width, run.text.as_str())).collect();
        assert_eq!(seen, [(2, 1, "a"), (4, 4, "b你c")]);
        assert_eq!(rows[0][1].style.front, Colour::Named(1));
        assert_eq!(rows[1], []);
    }

    #[test]
    fn colours_of_the_table_are_exact() {
        assert_eq!(colour(vt100::Color::Idx(208)), Colour::Exact(255, 135, 0));
        assert_eq!(colour(vt100::Color::Idx(255)), Colour::Exact(238, 238, 238));
        assert_eq!(colour(vt100::Color::Idx(9)), Colour::Named(9));
    }

    #[test]
    fn equal_screens_are_one_frame() {
        let mut frames = Frames::default();
        for _ in 0..3 {
            frames.show(screen(b"x"), Duration::from_millis(50));
        }
        frames.show(screen(b"y"), Duration::from_millis(50));
        assert_eq!(frames.iter().map(|frame| frame.shown.as_millis()).collect::<Vec<_>>(), [150, 50]);
    }

    #[test]
    fn short_times_are_equal_and_long_ones_rounded() {
        for (measured, shown) in [(3, 50), (149, 50), (180, 250), (1_030, 1_000), (1_130, 1_250)] {
            assert_eq!(rounded(Duration::from_millis(measured)), Duration::from_millis(shown), "{measured}");
        }
    }
}
