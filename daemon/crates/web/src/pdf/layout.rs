//! Glyphs with their places as lines of text. Pure.
//!
//! The order is that in which the file draws them: in nearly all files it is that of reading, through columns and tables, too.

/// Bytes of one page.
const MAX_PAGE: usize = 256 << 10;

/// A glyph: the beginning and the end of its base line, from the top left corner of the page, its height, and what it stands for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Piece {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) end: f64,
    pub(super) size: f64,
    pub(super) text: String,
}

/// The text of a page.
#[derive(Debug, Default)]
pub(super) struct PageText {
    out: String,
    last: Option<Piece>,
    is_repeat: bool,
}

impl PageText {
    /// What follows may have been added already.
    pub(super) fn begin_repeat(&mut self) {
        self.is_repeat = true;
    }

    /// What follows is new.
    pub(super) fn end_repeat(&mut self) {
        self.is_repeat = false;
    }

    /// Adds a glyph.
    pub(super) fn add(&mut self, piece: Piece) {
        let is_placed = [piece.x, piece.y, piece.end, piece.size].iter().all(|number| number.is_finite());
        if !is_placed || self.out.len() > MAX_PAGE {
            return;
        }
        if let Some(last) = &self.last {
            let size = piece.size.max(last.size).max(1.0);
            // A shadow, or a stroke around what was filled.
            let is_same = (last.x - piece.x).abs() < size * 0.1 && (last.y - piece.y).abs() < size * 0.1;
            if is_same && last.text == piece.text && self.is_repeat {
                return;
            }
            let (down, gap) = (piece.y - last.y, piece.x - last.end);
            if down.abs() > size * 0.6 {
                // From the end of a column to the top of the next, and over the space between paragraphs.
                let is_far = down > size * 1.7 || down < -size;
                self.break_line(is_far);
            } else if gap < -size * 1.5 {
                self.break_line(false);
            } else if gap > size * 2.5 {
                self.blank("   ");
            } else if gap > size * 0.18 {
                self.blank(" ");
            }
        }
        for character in piece.text.chars() {
            match character {
                '\u{ad}' => {}
                'ﬀ' => self.out.push_str("ff"),
                'ﬁ' => self.out.push_str("fi"),
                'ﬂ' => self.out.push_str("fl"),
                'ﬃ' => self.out.push_str("ffi"),
                'ﬄ' => self.out.push_str("ffl"),
                '\u{a0}' => self.blank(" "),
                character if character.is_whitespace() => self.blank(" "),
                character if character.is_control() => {}
                character => self.out.push(character),
            }
        }
        self.last = Some(piece);
    }

    fn blank(&mut self, blank: &str) {
        if !self.out.is_empty() && !self.out.ends_with([' ', '\n']) {
            self.out.push_str(blank);
        }
    }

    fn break_line(&mut self, is_far: bool) {
        let kept = self.out.trim_end().len();
        self.out.truncate(kept);
        if kept > 0 {
            self.out.push_str(if is_far { "\n\n" } else { "\n" });
        }
    }

    /// The text.
    pub(super) fn finish(mut self) -> String {
        self.break_line(false);
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str, x: f64, y: f64) -> Vec<Piece> {
        let letters = text.chars().enumerate();
        letters
            .map(|(at, letter)| Piece {
                x: x + at as f64 * 5.0,
                y,
                end: x + at as f64 * 5.0 + 5.0,
                size: 10.0,
                text: letter.to_string(),
            })
            .collect()
    }

    #[test]
    fn places_are_words_lines_and_paragraphs() {
        let mut text = PageText::default();
        for (words, x, y) in [
            ("One", 0.0, 10.0),
            ("two", 18.0, 10.0),
            ("far", 100.0, 10.0),
            ("next", 0.0, 22.0),
            ("para", 0.0, 50.0),
            ("col", 200.0, 10.0),
        ] {
            word(words, x, y).into_iter().for_each(|piece| text.add(piece));
        }
        text.add(Piece { x: f64::NAN, y: 0.0, end: 0.0, size: 1.0, text: "x".into() });
        assert_eq!(text.finish(), "One two   far\nnext\n\npara\n\ncol\n");
    }
}
