//! Answers the queries that programs send to their terminal: without answers some programs wait for ever, and others
//! for a while.

use crate::terminal::TerminalSize;

/// The longest sequence that is interpreted; the rest of a longer one is skipped.
const MAX_SEQUENCE: usize = 64;

/// Finds queries in the output of a terminal's programs, split at any point, and writes the answers.
///
/// It tracks the cursor as far as needed by programs that measure the terminal by moving the cursor to its far corner:
/// every character counts as one column wide, and scrolling regions and tab stops are not known.
#[derive(Debug)]
pub(crate) struct Responder {
    size: TerminalSize,
    cursor: Cursor,
    saved: Cursor,
    state: ParseState,
    sequence: Vec<u8>,
}

/// The position of the next character, from 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Cursor {
    row: u16,
    col: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParseState {
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate: one more byte follows.
    Charset,
    /// After ESC `[`.
    Control,
    /// After ESC `]`.
    Command,
    /// After ESC `P`.
    Device,
    /// After ESC and the start of a string that is ignored here.
    Ignored,
    /// After ESC within a string, which `\` ends.
    StringEscape(StringKind),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StringKind {
    Command,
    Device,
    Ignored,
}

const ESC: u8 = 0x1b;
const BEL: u8 = 7;

impl Responder {
    pub(crate) fn new(size: TerminalSize) -> Self {
        let sequence = Vec::with_capacity(MAX_SEQUENCE);
        Self { size, cursor: Cursor::default(), saved: Cursor::default(), state: ParseState::Text, sequence }
    }

    pub(crate) fn resize(&mut self, size: TerminalSize) {
        self.size = size;
        self.cursor = self.clamped(self.cursor.row.into(), self.cursor.col.into());
    }

    /// Takes a piece of output, and appends the answers to the queries that end in it.
    pub(crate) fn push(&mut self, output: &[u8], answers: &mut Vec<u8>) {
        for byte in output {
            self.take(*byte, answers);
        }
    }

    fn take(&mut self, byte: u8, answers: &mut Vec<u8>) {
        self.state = match self.state {
            ParseState::Text => self.text(byte),
            ParseState::Escape => self.escape(byte),
            ParseState::Charset => ParseState::Text,
            ParseState::Control => self.control(byte, answers),
            ParseState::Command => match byte {
                BEL => {
                    self.operating_command("\x07", answers);
                    ParseState::Text
                }
                _ => self.string(byte, StringKind::Command),
            },
            ParseState::Device => self.string(byte, StringKind::Device),
            ParseState::Ignored => self.string(byte, StringKind::Ignored),
            ParseState::StringEscape(kind) => {
                if byte == b'\\' {
                    match kind {
                        StringKind::Command => self.operating_command("\x1b\\", answers),
                        StringKind::Device => self.device_command(answers),
                        StringKind::Ignored => {}
                    }
                    ParseState::Text
                } else {
                    self.escape(byte)
                }
            }
        };
    }

    fn text(&mut self, byte: u8) -> ParseState {
        match byte {
            ESC => {
                self.sequence.clear();
                return ParseState::Escape;
            }
            b'\r' => self.cursor.col = 0,
            b'\n' | 0x0b | 0x0c => self.down(),
            8 => self.cursor.col = self.cursor.col.saturating_sub(1),
            b'\t' => self.cursor.col = (self.cursor.col / 8 + 1).saturating_mul(8).min(self.last_col()),
            // Control characters, and all but the first byte of a UTF-8 character.
            0..=31 | 127..=191 => {}
            _ if self.cursor.col >= self.size.cols => {
                self.down();
                self.cursor.col = 1;
            }
            _ => self.cursor.col += 1,
        }
        ParseState::Text
    }

    fn down(&mut self) {
        self.cursor.row = self.cursor.row.saturating_add(1).min(self.size.rows.saturating_sub(1));
    }

    fn escape(&mut self, byte: u8) -> ParseState {
        self.sequence.clear();
        match byte {
            b'[' => return ParseState::Control,
            b']' => return ParseState::Command,
            b'P' => return ParseState::Device,
            b'X' | b'^' | b'_' => return ParseState::Ignored,
            b' '..=b'/' => return ParseState::Charset,
            ESC => return ParseState::Escape,
            b'7' => self.saved = self.cursor,
            b'8' => self.cursor = self.saved,
            b'c' => self.cursor = Cursor::default(),
            b'D' => self.down(),
            b'E' => {
                self.down();
                self.cursor.col = 0;
            }
            b'M' => self.cursor.row = self.cursor.row.saturating_sub(1),
            _ => {}
        }
        ParseState::Text
    }

    fn string(&mut self, byte: u8, kind: StringKind) -> ParseState {
        match byte {
            ESC => return ParseState::StringEscape(kind),
            // Cancelled.
            0x18 | 0x1a => return ParseState::Text,
            _ => self.keep(byte),
        }
        match kind {
            StringKind::Command => ParseState::Command,
            StringKind::Device => ParseState::Device,
            StringKind::Ignored => ParseState::Ignored,
        }
    }

    /// Keeps a byte of a sequence. A sequence that is too long matches nothing.
    fn keep(&mut self, byte: u8) {
        if self.sequence.len() < MAX_SEQUENCE {
            self.sequence.push(byte);
        }
    }

    fn control(&mut self, byte: u8, answers: &mut Vec<u8>) -> ParseState {
        match byte {
            ESC => return self.text(ESC),
            0x18 | 0x1a => return ParseState::Text,
            // Terminals carry these out in the middle of a sequence.
            0..=31 => {
                self.text(byte);
            }
            0x40..=0x7e => {
                self.control_sequence(byte, answers);
                return ParseState::Text;
            }
            _ => self.keep(byte),
        }
        ParseState::Control
    }

    fn control_sequence(&mut self, last: u8, answers: &mut Vec<u8>) {
        if self.sequence.len() == MAX_SEQUENCE {
            return;
        }
        let Ok(parameters) = str::from_utf8(&self.sequence) else { return };
        let Cursor { row, col } = self.cursor;
        // After printing in the last column, the cursor stays there until the next character.
        let (line, column) = (row + 1, col.min(self.last_col()) + 1);
        let answer = match (parameters, last) {
            ("5", b'n') => "\x1b[0n".to_owned(),
            ("6", b'n') => format!("\x1b[{line};{column}R"),
            ("?6", b'n') => format!("\x1b[?{line};{column}R"),
            // A VT220 with colours.
            ("" | "0", b'c') => "\x1b[?62;22c".to_owned(),
            (">" | ">0", b'c') => "\x1b[>1;0;0c".to_owned(),
            ("=" | "=0", b'c') => "\x1bP!|00000000\x1b\\".to_owned(),
            (">" | ">0", b'q') => format!("\x1bP>|agentd({})\x1b\\", env!("CARGO_PKG_VERSION")),
            // No flag of the keyboard protocol is set.
            ("?", b'u') => "\x1b[?0u".to_owned(),
            ("18", b't') => format!("\x1b[8;{};{}t", self.size.rows, self.size.cols),
            (mode, b'p') if mode.ends_with('$') => {
                // 0: the mode is not recognised.
                format!("\x1b[{};0$y", &mode[..mode.len() - 1])
            }
            _ => {
                let parameters = parameters.to_owned();
                return self.move_cursor(&parameters, last);
            }
        };
        answers.extend_from_slice(answer.as_bytes());
    }

    fn move_cursor(&mut self, parameters: &str, last: u8) {
        let mut numbers = parameters.split(';').map(|number| number.parse::<u32>().unwrap_or(0).max(1));
        let (first, second) = (numbers.next().unwrap_or(1), numbers.next().unwrap_or(1));
        let Cursor { row, col } = self.cursor;
        let (row, col) = (u32::from(row), u32::from(col));
        self.cursor = match (parameters, last) {
            (_, b'H' | b'f') => self.clamped(first - 1, second - 1),
            (_, b'A') => self.clamped(row.saturating_sub(first), col),
            (_, b'B' | b'e') => self.clamped(row.saturating_add(first), col),
            (_, b'C' | b'a') => self.clamped(row, col.saturating_add(first)),
            (_, b'D') => self.clamped(row, col.saturating_sub(first)),
            (_, b'E') => self.clamped(row.saturating_add(first), 0),
            (_, b'F') => self.clamped(row.saturating_sub(first), 0),
            (_, b'G' | b'`') => self.clamped(row, first - 1),
            (_, b'd') => self.clamped(first - 1, col),
            ("", b's') => {
                self.saved = self.cursor;
                self.cursor
            }
            ("", b'u') => self.saved,
            _ => return,
        };
    }

    fn clamped(&self, row: u32, col: u32) -> Cursor {
        let within = |at: u32, last: u16| u16::try_from(at).map_or(last, |at| at.min(last));
        Cursor { row: within(row, self.size.rows.saturating_sub(1)), col: within(col, self.last_col()) }
    }

    fn last_col(&self) -> u16 {
        self.size.cols.saturating_sub(1)
    }

    /// Answers queries for colours: light on dark.
    fn operating_command(&mut self, end: &str, answers: &mut Vec<u8>) {
        let (which, colour) = match self.sequence.as_slice() {
            b"10;?" => ("10", "rgb:ffff/ffff/ffff"),
            b"11;?" => ("11", "rgb:0000/0000/0000"),
            b"12;?" => ("12", "rgb:ffff/ffff/ffff"),
            _ => return,
        };
        answers.extend_from_slice(format!("\x1b]{which};{colour}{end}").as_bytes());
    }

    /// Answers requests for settings and capabilities: none are known.
    fn device_command(&mut self, answers: &mut Vec<u8>) {
        if self.sequence.starts_with(b"$q") {
            answers.extend_from_slice(b"\x1bP0$r\x1b\\");
        } else if self.sequence.starts_with(b"+q") {
            answers.extend_from_slice(b"\x1bP0+r\x1b\\");
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Checks the answers to `output`, however it is split.
    #[track_caller]
    fn check(output: &str, expected: &str) {
        let answers = |pieces: &[&[u8]]| {
            let mut responder = Responder::new(TerminalSize { rows: 24, cols: 80 });
            let mut answers = Vec::new();
            pieces.iter().for_each(|piece| responder.push(piece, &mut answers));
            String::from_utf8(answers).unwrap()
        };
        let bytes = output.as_bytes();
        assert_eq!(answers(&[bytes]), expected);
        for at in 0..=bytes.len() {
            assert_eq!(answers(&[&bytes[..at], &bytes[at..]]), expected, "split at {at}");
        }
        assert_eq!(answers(&bytes.chunks(1).collect::<Vec<_>>()), expected, "byte by byte");
    }

    #[test]
    fn every_question_has_an_answer() {
        check("\x1b[5n", "\x1b[0n");
        check("\x1b[6n", "\x1b[1;1R");
        check("\x1b[?6n", "\x1b[?1;1R");
        check("\x1b[c\x1b[0c", "\x1b[?62;22c\x1b[?62;22c");
        check("\x1b[>c", "\x1b[>1;0;0c");
        check("\x1b[=c", "\x1bP!|00000000\x1b\\");
        check("\x1b[?2026$p", "\x1b[?2026;0$y");
        check("\x1b[4$p", "\x1b[4;0$y");
        check("\x1b]10;?\x07", "\x1b]10;rgb:ffff/ffff/ffff\x07");
        check("\x1b]11;?\x1b\\", "\x1b]11;rgb:0000/0000/0000\x1b\\");
        check("\x1b]12;?\x07", "\x1b]12;rgb:ffff/ffff/ffff\x07");
        check("\x1b[>q", &format!("\x1bP>|agentd({})\x1b\\", env!("CARGO_PKG_VERSION")));
        check("\x1b[?u", "\x1b[?0u");
        check("\x1b[18t", "\x1b[8;24;80t");
        check("\x1bP$qm\x1b\\", "\x1bP0$r\x1b\\");
        check("\x1bP+q544e\x1b\\", "\x1bP0+r\x1b\\");
    }

    #[test]
    fn the_cursor_is_where_it_was_moved() {
        check("ab\x1b[6n", "\x1b[1;3R");
        check("ab\r\nc\u{e9}d\x1b[6n", "\x1b[2;4R");
        check("\x1b[999;999H\x1b[6n", "\x1b[24;80R");
        check("\x1b7\x1b[r\x1b[999;999H\x1b[6n\x1b8\x1b[6n", "\x1b[24;80R\x1b[1;1R");
        check("\x1b[5;7H\x1b[2A\x1b[3C\x1b[B\x1b[4D\x1b[6n", "\x1b[4;6R");
        check("\x1b[5;7f\x1b[G\x1b[6n\x1b[9d\x1b[6n\x1b[H\x1b[6n", "\x1b[5;1R\x1b[9;1R\x1b[1;1R");
        check("\x1b[s\x1b[3E\x1b[6n\x1b[F\x1b[6n\x1b[u\x1b[6n", "\x1b[4;1R\x1b[3;1R\x1b[1;1R");
        check(&format!("{}\x1b[6n", "x".repeat(80)), "\x1b[1;80R");
        check(&format!("{}\x1b[6n", "x".repeat(81)), "\x1b[2;2R");
        check(&format!("{}\x1b[6n", "\n".repeat(100)), "\x1b[24;1R");
        check("a\tb\x08\x08\x1b[6n", "\x1b[1;8R");
    }

    #[test]
    fn what_is_no_question_is_not_answered() {
        for output in [
            "plain text [6n",
            "\x1b[31mred\x1b[0m",
            "\x1b]11;rgb:0/0/0\x07",
            "\x1b]52;c;?\x07",
            "\x1b_Gi=1;AAAA\x1b\\",
            "\x1b[6\x18n",
            "\x1b(B\x1b)0\x1b#8",
            "\x1b[>4;2m\x1b[>1u\x1b[<u\x1b[?1049h\x1b[?25l",
        ] {
            check(output, "");
        }
        check("\x1b]0;a title that never ends\x1b[6n", "\x1b[1;1R");
        check(&format!("\x1b[{}6n", "0".repeat(MAX_SEQUENCE)), "");
        check(&format!("\x1b]11;{}?\x07\x1b[5n", "x".repeat(10_000)), "\x1b[0n");
    }

    #[test]
    fn the_size_may_change() {
        let mut responder = Responder::new(TerminalSize { rows: 50, cols: 100 });
        let mut answers = Vec::new();
        responder.push(b"\x1b[99;999H", &mut answers);
        responder.resize(TerminalSize { rows: 10, cols: 20 });
        responder.push(b"\x1b[6n", &mut answers);
        assert_eq!(answers, b"\x1b[10;20R");
        responder.resize(TerminalSize { rows: 0, cols: 0 });
        responder.push(b"x\ny\x1b[9;9H\x1b[6n", &mut answers);
        assert!(answers.ends_with(b"\x1b[1;1R"));
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            output in proptest::collection::vec(
                prop_oneof![Just(0x1bu8), Just(b'['), Just(b']'), Just(b'?'), Just(b'6'), Just(b'n'), Just(b';'), Just(7), any::<u8>()],
                0..80,
            ),
            cuts in proptest::collection::vec(0usize..80, 0..4),
        ) {
            let mut whole = (Responder::new(TerminalSize::default()), Vec::new());
            whole.0.push(&output, &mut whole.1);
            let mut pieces = (Responder::new(TerminalSize::default()), Vec::new());
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(output.len())).collect();
            cuts.extend([0, output.len()]);
            cuts.sort_unstable();
            for pair in cuts.windows(2) {
                pieces.0.push(&output[pair[0]..pair[1]], &mut pieces.1);
            }
            prop_assert_eq!(whole.1, pieces.1);
            prop_assert_eq!(whole.0.cursor, pieces.0.cursor);
        }
    }
}
