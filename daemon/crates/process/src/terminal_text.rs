//! Converts what a program writes to a terminal into the lines of text that a person in front of it would read.

/// Characters of one line. A longer line is split, as a terminal would wrap it.
const MAX_WIDTH: usize = 16 * 1024;

/// Characters kept of the numbers in a control sequence.
const MAX_NUMBERS: usize = 32;

/// Converts terminal output, which arrives in pieces cut between any characters, into text.
///
/// Within a line it does what a terminal does: carriage returns, backspaces, and the sequences that move the cursor
/// along the line or erase in it let later text replace earlier text. So a progress bar becomes the one line that it
/// was at its end. Finished lines do not change: a sequence that moves the cursor to another line ends the current one.
/// Colours, titles and everything else that is not text are dropped, and so are spaces at the end of a line, with which
/// programs erase.
#[derive(Debug, Clone, Default)]
pub struct TerminalText {
    state: EscapeState,
    /// The numbers of the current control sequence.
    numbers: String,
    line: Vec<char>,
    /// The column of the next character.
    column: usize,
}

/// The position in an escape sequence, after ECMA-48.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum EscapeState {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate character.
    Intermediate,
    /// In a control sequence.
    Control,
    /// In a control string (a title, a link, …), which ends with BEL or ESC `\`.
    Str,
}

impl TerminalText {
    /// An empty screen.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The lines that the next piece finishes, each with its LF.
    pub fn push(&mut self, piece: &str) -> String {
        let mut finished = String::new();
        for char in piece.chars() {
            self.take(char, &mut finished);
        }
        finished
    }

    /// The cursor's line as it is now: a prompt, or a progress bar that still moves.
    #[must_use]
    pub fn current(&self) -> String {
        let line: String = self.line.iter().collect();
        line.trim_end_matches(' ').to_owned()
    }

    /// The last line, which no LF ended. Resets the screen.
    pub fn finish(&mut self) -> String {
        let line = self.current();
        *self = Self::default();
        line
    }

    fn take(&mut self, char: char, finished: &mut String) {
        self.state = match (self.state, char) {
            // These start a new sequence anywhere; an unfinished one is dropped.
            (_, '\u{1b}') => EscapeState::Escape,
            (_, '\u{9b}') => self.begin_control(),
            (_, '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}') => EscapeState::Str,
            // A sequence without an end must not swallow all that follows. Real ones have no line breaks.
            (_, '\n') => {
                self.end_line(finished);
                EscapeState::Text
            }
            (EscapeState::Escape, '[') => self.begin_control(),
            (EscapeState::Escape, ']' | 'P' | 'X' | '^' | '_') => EscapeState::Str,
            (EscapeState::Escape, 'D' | 'E' | 'M') => {
                self.leave_line(finished);
                EscapeState::Text
            }
            (EscapeState::Escape | EscapeState::Intermediate, ' '..='/') => EscapeState::Intermediate,
            (EscapeState::Escape | EscapeState::Intermediate, '0'..='~') => EscapeState::Text,
            (EscapeState::Control, ' '..='?') => {
                if self.numbers.len() < MAX_NUMBERS {
                    self.numbers.push(char);
                }
                EscapeState::Control
            }
            (EscapeState::Control, '@'..='~') => {
                self.control(char, finished);
                EscapeState::Text
            }
            (EscapeState::Str, '\u{7}' | '\u{18}' | '\u{1a}' | '\u{9c}') => EscapeState::Text,
            (EscapeState::Str, _) => EscapeState::Str,
            // A control character inside a sequence takes effect, and the sequence continues.
            (state, '\0'..='\u{1f}') => {
                self.control_character(char, finished);
                state
            }
            (_, _) => {
                self.print(char, finished);
                EscapeState::Text
            }
        };
    }

    fn begin_control(&mut self) -> EscapeState {
        self.numbers.clear();
        EscapeState::Control
    }

    fn control_character(&mut self, char: char, finished: &mut String) {
        match char {
            '\r' => self.column = 0,
            '\u{8}' => self.column = self.column.saturating_sub(1),
            '\t' => self.put('\t', finished),
            // Vertical tab and form feed move down, as LF does.
            '\u{b}' | '\u{c}' => self.end_line(finished),
            _ => {}
        }
    }

    fn print(&mut self, char: char, finished: &mut String) {
        if !char.is_control() && !matches!(char, '\u{fff9}'..='\u{fffb}') {
            self.put(char, finished);
        }
    }

    fn put(&mut self, char: char, finished: &mut String) {
        if self.column >= MAX_WIDTH {
            self.end_line(finished);
        }
        if self.line.len() <= self.column {
            self.line.resize(self.column + 1, ' ');
        }
        self.line[self.column] = char;
        self.column += 1;
    }

    /// Carries out a control sequence, as far as it concerns the line.
    fn control(&mut self, end: char, finished: &mut String) {
        let mut numbers = self.numbers.split(';').map(|number| number.parse::<usize>().unwrap_or(0));
        let first = numbers.next().unwrap_or(0);
        let count = first.max(1);
        let second = numbers.next().unwrap_or(0);
        let length = self.line.len();
        match end {
            'G' | '`' => self.column = (count - 1).min(MAX_WIDTH),
            'C' | 'a' => self.column = self.column.saturating_add(count).min(MAX_WIDTH),
            'D' => self.column = self.column.saturating_sub(count),
            'K' | 'J' if first == 0 => self.line.truncate(self.column),
            'K' if first == 1 => {
                let erased = length.min(self.column + 1);
                self.line[..erased].fill(' ');
            }
            'K' => self.line.clear(),
            'P' => {
                let from = self.column.min(length);
                self.line.drain(from..length.min(from.saturating_add(count)));
            }
            'X' => {
                let from = self.column.min(length);
                let to = length.min(from.saturating_add(count));
                self.line[from..to].fill(' ');
            }
            '@' if self.column < length => {
                let room = count.min(MAX_WIDTH.saturating_sub(length));
                let at = self.column;
                self.line.splice(at..at, std::iter::repeat_n(' ', room));
            }
            'H' | 'f' => {
                self.leave_line(finished);
                self.column = second.saturating_sub(1).min(MAX_WIDTH);
            }
            'A' | 'B' | 'E' | 'F' | 'J' | 'S' | 'T' | 'd' => self.leave_line(finished),
            _ => {}
        }
    }

    /// Moves the cursor to another line: the text of this one stays.
    fn leave_line(&mut self, finished: &mut String) {
        if self.line.iter().any(|char| *char != ' ') {
            self.end_line(finished);
        } else {
            self.line.clear();
        }
    }

    fn end_line(&mut self, finished: &mut String) {
        let kept = self.line.iter().rposition(|char| *char != ' ').map_or(0, |last| last + 1);
        finished.extend(&self.line[..kept]);
        finished.push('\n');
        self.line.clear();
        self.column = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(input: &str) -> String {
        let mut text = TerminalText::new();
        text.push(input) + &text.finish()
    }

    #[track_caller]
    fn check(input: &str, expected: &str) {
        assert_eq!(whole(input), expected, "{input:?}");
    }

    #[test]
    fn progress_bars_are_what_they_were_in_the_end() {
        check("  1%\r 50%\r100%\r\ndone\r\n", "100%\ndone\n");
        check("downloading\r           \rok\r\n", "ok\n");
        check("12345\rab\r\n", "ab345\n");
        check("12345\r\u{1b}[Kab\r\n", "ab\n");
        check("12345\u{1b}[2K\rab\n", "ab\n");
        check("wrong\u{8}\u{8}\u{8}\u{8}\u{8}right\n", "right\n");
        check("|\u{8}/\u{8}-\u{8} \u{8}done\n", "done\n");
    }

    #[test]
    fn cursors_move_along_the_line() {
        check("abc\u{1b}[2D\u{1b}[P!\n", "a!\n");
        check("ab\u{1b}[3Cx\u{1b}[1Gy\n", "yb   x\n");
        check("abcd\u{1b}[3D\u{1b}[2X\n", "a  d\n");
        check("ad\u{1b}[1D\u{1b}[2@bc\n", "abcd\n");
        check("abc\u{1b}[1D\u{1b}[1Kx\n", "  x\n");
    }

    #[test]
    fn other_lines_are_out_of_reach() {
        check("one\n\u{1b}[1Aagain", "one\nagain");
        check("top\u{1b}[2;3Hdown\u{1b}[2J\u{1b}[Hend", "top\n  down\nend");
        check("\u{1b}[?1049h\u{1b}[H\u{1b}[Jx\u{1b}Ey", "x\ny");
    }

    #[test]
    fn what_is_no_text_goes() {
        check(
            "\u{1b}[1;31mred\u{1b}[0m \u{1b}]0;title\u{7}t\u{1b}]8;;http://a\u{1b}\\l\u{1b}(B\u{7}",
            "red tl",
        );
        check("a\tb  \r\n", "a\tb\n");
        check("\u{1b}]never ended\nnext", "\nnext");
    }

    #[test]
    fn the_line_that_the_cursor_is_on_can_be_seen() {
        let mut text = TerminalText::new();
        assert_eq!(text.push("a\nname? "), "a\n");
        assert_eq!(text.current(), "name?");
        assert_eq!(text.push("me\r\n"), "name? me\n");
        assert_eq!((text.current(), text.finish()), (String::new(), String::new()));
    }

    #[test]
    fn lines_are_bounded() {
        let text =
            whole(&format!("{}\u{1b}[99999999999999999999Cx\u{1b}[999999999Cy", "a".repeat(MAX_WIDTH + 1)));
        assert!(text.lines().all(|line| line.chars().count() <= MAX_WIDTH), "{}", text.len());
        assert_eq!(text.matches('a').count(), MAX_WIDTH + 1);
    }

    proptest! {
        #[test]
        fn any_cutting_gives_the_same(
            input in "[\\x00-\\x9f漢\\[\\]\\\\;mKGCDPX@HAJ0-9\r\n\u{1b}]{0,60}",
            cut in 0usize..60,
        ) {
            let at = input.char_indices().map(|(at, _)| at).nth(cut).unwrap_or(input.len());
            let mut text = TerminalText::new();
            let pieces = text.push(&input[..at]) + &text.push(&input[at..]) + &text.finish();
            prop_assert_eq!(&pieces, &whole(&input));
            prop_assert!(pieces.chars().all(|char| matches!(char, '\t' | '\n') || !char.is_control()));
        }

        #[test]
        fn plain_lines_stay_as_they_are(lines in proptest::collection::vec("[a-z漢é]{0,9}( [a-z]{1,5}){0,3}", 0..6)) {
            let text: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
            prop_assert_eq!(whole(&text), text.replace('\r', ""));
        }
    }
}
