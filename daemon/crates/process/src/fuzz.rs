//! What holds for everything that programs write, and between the daemon and its guard: for fuzz targets (`fuzz/` in the repository)
//! and for the tests that read known inputs again. Only there with the feature `fuzzing`; no part of the interface.
//!
//! Each function takes any bytes and panics where a law is broken.

use crate::{
    OutputCleaner, TailWindow, TerminalText, Utf8Stream,
    frames::{SupervisorOrder, SupervisorReport, decode_command, encode_command},
};

/// The laws, by the names of their fuzz targets.
pub const LAWS: &[(&str, fn(&[u8]))] =
    &[("terminal_output", terminal_output), ("supervisor_frames", supervisor_frames)];

/// The longest line of a terminal, in characters, and the LF.
const WIDEST: usize = 16 * 1024 + 1;

/// Output is the same text however it comes, nothing in it steers a terminal, and clean text stays as it is. What a window keeps of
/// it is its end.
pub fn terminal_output(input: &[u8]) {
    let read = |size: usize| {
        let (mut bytes, mut cleaner, mut terminal) =
            (Utf8Stream::new(), OutputCleaner::new(), TerminalText::new());
        let (mut clean, mut shown) = (String::new(), String::new());
        for piece in input.chunks(size.max(1)) {
            let text = bytes.push(piece);
            clean.push_str(&cleaner.clean(&text));
            shown.push_str(&terminal.push(&text));
        }
        let rest = bytes.finish();
        clean.push_str(&cleaner.clean(rest));
        shown.push_str(&terminal.push(rest));
        shown.push_str(&terminal.finish());
        (clean, shown)
    };
    let whole = read(input.len());
    for size in [1, input.len() % 17 + 2] {
        assert_eq!(read(size), whole, "in pieces of {size} bytes");
    }
    let (clean, shown) = whole;
    for text in [&clean, &shown] {
        let steers = |letter: char| {
            (letter.is_control() && !matches!(letter, '\t' | '\n'))
                || matches!(letter, '\u{fff9}'..='\u{fffb}')
        };
        assert!(!text.contains(steers), "{text:?}");
        assert_eq!(&OutputCleaner::new().clean(text), text, "clean text stays as it is");
    }
    assert!(clean.chars().count() <= String::from_utf8_lossy(input).chars().count(), "nothing is added");
    assert!(shown.split('\n').all(|line| line.chars().count() <= WIDEST), "a line beyond the width");
    let mut window = TailWindow::default();
    let mut pieces = TailWindow::default();
    window.push(&clean);
    clean.split_inclusive(|letter: char| letter.is_ascii_punctuation()).for_each(|piece| pieces.push(piece));
    assert_eq!(window.snapshot(), pieces.snapshot(), "a window keeps the same, in pieces");
}

/// A command, an order or a report is read as what it was written as, and anything else is refused.
pub fn supervisor_frames(input: &[u8]) {
    if let Some((command, terms)) = decode_command(input)
        && let Ok(bytes) = encode_command(&command, &terms)
    {
        let Some((again, same_terms)) = decode_command(&bytes[8..]) else {
            panic!("a written command is refused")
        };
        // The mark of the owner comes last.
        assert_eq!(again.env.len(), command.env.len() + 1);
        assert_eq!(again.env[..command.env.len()], command.env[..]);
        assert_eq!((again.program, again.args, again.cwd), (command.program, command.args, command.cwd));
        assert_eq!(same_terms, terms);
        assert_eq!(again.streams, command.streams);
    }
    for byte in input {
        if let Some(order) = SupervisorOrder::decode(*byte) {
            assert_eq!(order.encode(), *byte);
        }
    }
    for bytes in input.windows(SupervisorReport::SIZE).take(64) {
        let Ok(bytes) = bytes.try_into() else { continue };
        if let Some(report) = SupervisorReport::decode(bytes) {
            assert_eq!(SupervisorReport::decode(report.encode()), Some(report));
        }
    }
}

#[cfg(test)]
#[path = "../../../../tests/fuzz/src/found.rs"]
mod found;

#[test]
fn inputs_that_were_found() {
    found::check(LAWS);
}
