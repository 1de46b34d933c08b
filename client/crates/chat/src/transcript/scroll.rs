//! Where the screen stands in the conversation. Only the rows around it are laid out.

use ratatui_core::text::Line;

use super::store::{Top, Transcript};

impl Transcript {
    /// Takes the size of the screen.
    pub(crate) fn resize(&mut self, width: usize, height: usize) {
        if self.width != width
            && let Some(top) = &mut self.top
        {
            // Another width has other rows: the entry stays at the top.
            top.row = 0;
        }
        (self.width, self.height) = (width.max(1), height);
    }

    /// Whether the end is on the screen, and stays there as it grows.
    pub(crate) fn follows(&self) -> bool {
        self.top.is_none()
    }

    /// How many rows a page is.
    pub(crate) fn page(&self) -> usize {
        self.height.saturating_sub(2).max(1)
    }

    /// Goes to the end, and stays there.
    pub(crate) fn follow(&mut self) {
        self.top = None;
    }

    /// Goes to the very beginning.
    pub(crate) fn go_to_start(&mut self) {
        while self.load_older() {}
        self.top = Some(Top { item: self.first, row: 0 });
    }

    /// Scrolls by rows; up is negative.
    pub(crate) fn scroll(&mut self, rows: i32) {
        let Some(mut top) = self.top.or_else(|| self.last_top()) else { return };
        let mut left = rows.unsigned_abs() as usize;
        if rows < 0 {
            while left > top.row {
                left -= top.row;
                if top.item == self.first && !self.load_older() {
                    left = 0;
                    top.row = 0;
                    break;
                }
                top.item -= 1;
                top.row = self.rows_of(top.item);
            }
            top.row -= left.min(top.row);
        } else {
            top.row += left;
            loop {
                let rows = self.rows_of(top.item);
                if top.row < rows || top.item + 1 >= self.end() {
                    break;
                }
                top.row -= rows;
                top.item += 1;
            }
        }
        // At the end it follows again.
        self.top = match self.last_top() {
            Some(last) if (top.item, top.row) < (last.item, last.row) => Some(top),
            _ => None,
        };
    }

    /// The first row where the last one is at the bottom; `None` where everything fits.
    fn last_top(&mut self) -> Option<Top> {
        let mut left = self.height;
        let mut item = self.end();
        loop {
            if item == self.first && !self.load_older() {
                return None;
            }
            item -= 1;
            let rows = self.rows_of(item);
            if rows > left {
                return Some(Top { item, row: rows - left });
            }
            left -= rows;
        }
    }

    /// The rows on the screen, from the top. Lays out what they need.
    pub(crate) fn visible(&mut self) -> Vec<(i64, usize)> {
        let top = match self.top {
            Some(top) => top,
            None => self.last_top().unwrap_or(Top { item: self.first, row: 0 }),
        };
        let mut shown = Vec::with_capacity(self.height);
        let mut item = top.item;
        let mut row = top.row;
        while shown.len() < self.height && item < self.end() {
            let rows = self.rows_of(item);
            while row < rows && shown.len() < self.height {
                shown.push((item, row));
                row += 1;
            }
            item += 1;
            row = 0;
        }
        shown
    }

    /// A row that [`Transcript::visible`] gave.
    pub(crate) fn visible_row(&self, (item, row): (i64, usize)) -> Option<&Line<'static>> {
        self.row(item, row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{Entry, NoticeLevel};

    fn shown(transcript: &mut Transcript) -> Vec<String> {
        let rows = transcript.visible();
        rows.into_iter()
            .map(|row| transcript.visible_row(row).map_or_else(String::new, ToString::to_string))
            .collect()
    }

    fn notices(count: usize) -> Transcript {
        let mut transcript = Transcript::default();
        for number in 0..count {
            transcript.push(Entry::notice(NoticeLevel::Info, format!("n{number}")));
        }
        transcript.resize(10, 4);
        transcript
    }

    #[test]
    fn it_follows_the_end_until_it_is_scrolled() {
        let mut transcript = notices(10);
        assert_eq!(shown(&mut transcript), ["n6", "n7", "n8", "n9"]);
        transcript.scroll(-3);
        assert_eq!(shown(&mut transcript), ["n3", "n4", "n5", "n6"]);
        transcript.push(Entry::notice(NoticeLevel::Info, "new"));
        assert_eq!(shown(&mut transcript)[0], "n3");
        transcript.scroll(-100);
        assert_eq!(shown(&mut transcript)[0], "n0");
        transcript.scroll(100);
        assert!(transcript.follows());
        assert_eq!(shown(&mut transcript)[3], "new");
    }

    #[test]
    fn what_fits_stands_at_the_top() {
        let mut transcript = notices(2);
        assert_eq!(shown(&mut transcript), ["n0", "n1"]);
        transcript.scroll(-1);
        assert!(transcript.follows());
    }

    #[test]
    fn an_answer_grows_at_the_end() {
        let mut transcript = notices(1);
        let answer = transcript.push(Entry::Answer { text: String::new(), is_complete: false });
        for delta in ["one ", "two three ", "four\n", "five"] {
            transcript.append(answer, delta);
            shown(&mut transcript);
        }
        assert_eq!(shown(&mut transcript), ["", "one two", "three four", "five"]);
    }

    #[test]
    fn older_messages_come_when_they_are_scrolled_to() {
        let messages = (0..1_000)
            .map(|number| {
                let text = format!(r#"{{"role":"user","content":"m{number}","timestamp":0}}"#);
                serde_json::from_str(&text).unwrap()
            })
            .collect();
        let mut transcript = Transcript::of(messages);
        transcript.resize(20, 3);
        assert_eq!(transcript.items.len(), 200);
        assert_eq!(shown(&mut transcript), ["› m998", "", "› m999"]);
        transcript.scroll(-500);
        assert_eq!(shown(&mut transcript)[1], "› m748");
        assert_eq!(transcript.items.len(), 400);
        transcript.go_to_start();
        assert_eq!(shown(&mut transcript)[0], "› m0");
    }
}
