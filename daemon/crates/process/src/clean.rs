//! Reduces terminal output to plain text.

/// Removes everything but text from output that arrives in pieces, cut between any characters: ANSI escape sequences,
/// control characters other than tab and LF (so also CR), and the interlinear annotation characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutputCleaner {
    state: State,
}

/// The position in an escape sequence, after ECMA-48.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate character, such as the `(` that selects a character set.
    Intermediate,
    /// In a control sequence (ESC `[`), which ends with a character in `@` to `~`.
    Control,
    /// In a control string (a window title, a link, …), which ends with BEL or ESC `\`.
    Str,
}

impl OutputCleaner {
    /// At the start of some text.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The text that is in the next piece.
    pub fn clean(&mut self, piece: &str) -> String {
        let mut text = String::with_capacity(piece.len());
        text.extend(piece.chars().filter(|char| self.is_text(*char)));
        text
    }

    fn is_text(&mut self, char: char) -> bool {
        self.state = match (self.state, char) {
            // A sequence without an end must not swallow all that follows. Real ones have no line breaks.
            (_, '\n') => return self.back_to_text(char),
            // These start a new sequence anywhere; an unfinished one is dropped.
            (_, '\u{1b}') => State::Escape,
            (_, '\u{9b}') => State::Control,
            (_, '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}') => State::Str,
            (State::Escape, '[') => State::Control,
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::Str,
            (State::Escape | State::Intermediate, ' '..='/') => State::Intermediate,
            (State::Escape | State::Intermediate, '0'..='~') => State::Text,
            (State::Control, ' '..='?') => State::Control,
            (State::Control, '@'..='~') => State::Text,
            (State::Str, '\u{7}' | '\u{18}' | '\u{1a}' | '\u{9c}') => State::Text,
            (State::Str, _) => State::Str,
            // A control character inside a sequence takes effect, and the sequence continues.
            (state, '\0'..='\u{1f}') if state != State::Text => return keeps(char),
            (_, _) => return self.back_to_text(char),
        };
        false
    }

    fn back_to_text(&mut self, char: char) -> bool {
        self.state = State::Text;
        keeps(char)
    }
}

fn keeps(char: char) -> bool {
    match char {
        '\t' | '\n' => true,
        '\u{fff9}'..='\u{fffb}' => false,
        _ => !char.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(input: &str, expected: &str) {
        assert_eq!(OutputCleaner::new().clean(input), expected);
        for (at, _) in input.char_indices() {
            let mut cleaner = OutputCleaner::new();
            let halves = cleaner.clean(&input[..at]) + &cleaner.clean(&input[at..]);
            assert_eq!(halves, expected, "cut at byte {at}");
        }
    }

    #[test]
    fn escape_sequences_go() {
        check("\u{1b}[31mred\u{1b}[0m", "red");
        check("\u{1b}[38;5;196mx\u{1b}[?25l\u{1b}[2Ky\u{1b}[1;1H", "xy");
        check("\u{9b}1mx", "x");
        check("\u{1b}(Bx\u{1b}7y\u{1b}=z", "xyz");
        check("\u{1b}]0;title\u{7}x", "x");
        check("\u{1b}]8;;http://a/b\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link");
        check("\u{1b}P1$r0m\u{1b}\\x", "x");
    }

    #[test]
    fn garbage_goes_and_text_stays() {
        check("a\r\nb\tc\0\u{8}\u{7f}\u{85}d", "a\nb\tcd");
        check("50%\r100%\r\n", "50%100%\n");
        check("漢\u{fff9}é\u{fffb}😀\u{fffd}", "漢é😀\u{fffd}");
    }

    #[test]
    fn broken_sequences_do_not_swallow_what_follows() {
        check("\u{1b}]never ended\nnext", "\nnext");
        check("\u{1b}[31\nx", "\nx");
        check("\u{1b}[3\u{8}1mx", "x");
        check("\u{1b}漢", "漢");
        check("\u{1b}[漢", "漢");
        check("\u{1b}", "");
    }

    proptest! {
        #[test]
        fn nothing_but_text_comes_out(input in "[\\x00-\\x9f漢\\[\\]\\\\;m]{0,60}") {
            let text = OutputCleaner::new().clean(&input);
            prop_assert!(text.chars().all(keeps));
            prop_assert!(OutputCleaner::new().clean(&text) == text, "clean text stays as it is");
        }
    }
}
