//! The rows at the end of an answer that may still change, on a terminal: drawn below everything, and redrawn in place. Pure.
//!
//! The cursor stands at the beginning of the row below them. Only the rows that changed are written again, with movements that every
//! terminal understands.

use crate::terminal_size::TerminalSize;

/// A row as it is written, and its width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LiveRow {
    /// With its colours, without a line feed.
    pub(crate) text: String,
    /// The columns it takes.
    pub(crate) columns: usize,
}

/// The rows that are drawn.
#[derive(Debug, Default)]
pub(super) struct LiveRows {
    drawn: Vec<LiveRow>,
    /// All that may change. Only as many as the screen has are drawn.
    rows: Vec<LiveRow>,
}

/// What has a terminal show several changes at once. Those that do not know it ignore it.
const SYNC_BEGIN: &str = "\x1b[?2026h";
const SYNC_END: &str = "\x1b[?2026l";

impl LiveRows {
    /// The bytes that write the `finished` rows, which stay, and below them the `open` ones.
    pub(super) fn show(&mut self, finished: &[LiveRow], open: Vec<LiveRow>, size: TerminalSize) -> String {
        // One row is for the cursor.
        let skipped = open.len().saturating_sub(size.rows.saturating_sub(1).max(1));
        let shown: Vec<&LiveRow> = finished.iter().chain(&open[skipped..]).collect();
        let same = self.drawn.iter().zip(&shown).take_while(|(drawn, shown)| drawn == *shown).count();
        let mut out = String::new();
        if same < self.drawn.len() || same < shown.len() {
            let up = on_screen(&self.drawn[same..], size);
            if up > 0 {
                out.push_str(SYNC_BEGIN);
                out.push_str(&format!("\x1b[{up}A\r"));
            }
            for row in &shown[same..] {
                out.push_str(&row.text);
                // What was there before may have been longer.
                out.push_str(if up > 0 { "\x1b[K\n" } else { "\n" });
            }
            if up > 0 {
                out.push_str("\x1b[J");
                out.push_str(SYNC_END);
            }
        }
        self.drawn = open[skipped..].to_vec();
        self.rows = open;
        out
    }

    /// The bytes that take the rows off the screen, for something that is written above them. `below` rows were written by others since.
    pub(super) fn hide(&mut self, below: usize, size: TerminalSize) -> String {
        let up = on_screen(&self.drawn, size) + below;
        self.drawn.clear();
        if up == 0 { String::new() } else { format!("\x1b[{up}A\r\x1b[J") }
    }

    /// The bytes that show them again after [`LiveRows::hide`].
    pub(super) fn show_again(&mut self, size: TerminalSize) -> String {
        let rows = std::mem::take(&mut self.rows);
        self.show(&[], rows, size)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.drawn.is_empty()
    }
}

/// The rows of the screen that the drawn ones take: a terminal that has become narrower breaks them.
fn on_screen(drawn: &[LiveRow], size: TerminalSize) -> usize {
    drawn.iter().map(|row| row.columns.div_ceil(size.columns.max(1)).max(1)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: TerminalSize = TerminalSize { columns: 20, rows: 4 };

    fn rows(texts: &[&str]) -> Vec<LiveRow> {
        texts.iter().map(|text| LiveRow { text: (*text).to_owned(), columns: text.len() }).collect()
    }

    #[test]
    fn only_rows_that_changed_are_written() {
        let mut live = LiveRows::default();
        assert_eq!(live.show(&[], rows(&["a", "b"]), SIZE), "a\nb\n");
        assert_eq!(live.show(&[], rows(&["a", "b"]), SIZE), "");
        let up = |count, rest: &str| format!("{SYNC_BEGIN}\x1b[{count}A\r{rest}\x1b[J{SYNC_END}");
        assert_eq!(live.show(&[], rows(&["a", "bc"]), SIZE), up(1, "bc\x1b[K\n"));
        // A row that becomes final is not written again.
        assert_eq!(live.show(&rows(&["a"]), rows(&["bc", "d"]), SIZE), "d\n");
        assert_eq!(live.show(&[], rows(&["bc"]), SIZE), up(1, ""));
        assert_eq!(live.show(&rows(&["bc"]), Vec::new(), SIZE), "");
        assert_eq!(live.show(&rows(&["e"]), Vec::new(), SIZE), "e\n");
    }

    #[test]
    fn no_more_rows_are_drawn_than_the_screen_has() {
        let mut live = LiveRows::default();
        assert_eq!(live.show(&[], rows(&["a", "b", "c", "d"]), SIZE), "b\nc\nd\n");
        let all = live.show(&rows(&["a", "b", "c", "d"]), Vec::new(), SIZE);
        assert_eq!(all, format!("{SYNC_BEGIN}\x1b[3A\ra\x1b[K\nb\x1b[K\nc\x1b[K\nd\x1b[K\n\x1b[J{SYNC_END}"));
    }

    #[test]
    fn rows_make_room_and_come_back() {
        let mut live = LiveRows::default();
        assert_eq!(live.hide(0, SIZE), "");
        live.show(&[], rows(&["0123456789", "b"]), SIZE);
        // Half as wide: the first takes two rows.
        let narrow = TerminalSize { columns: 5, ..SIZE };
        assert_eq!(live.hide(1, narrow), "\x1b[4A\r\x1b[J");
        assert!(live.is_empty());
        assert_eq!(live.show_again(SIZE), "0123456789\nb\n");
    }
}
