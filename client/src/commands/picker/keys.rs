//! The keys in the bytes that a terminal sends.

/// A key, as far as a list has a use for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Character(char),
    Backspace,
    /// Ctrl-W.
    DeleteWord,
    /// Ctrl-U.
    DeleteAll,
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Enter,
    Escape,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    End,
}

const ESCAPE: u8 = 0x1b;

/// The longest sequence that is a key; longer ones are dropped.
const LONGEST: usize = 32;

/// Takes keys out of bytes, and keeps the beginning of one that is not complete.
#[derive(Debug, Default)]
pub(super) struct KeyDecoder {
    begun: Vec<u8>,
}

/// What the beginning of the bytes is.
enum Taken {
    /// A key, or a sequence that means nothing here, and its length.
    Sequence(Option<Key>, usize),
    /// The beginning of something longer.
    Begun,
}

impl KeyDecoder {
    /// The keys that are complete with these bytes.
    pub(super) fn keys(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.begun.extend_from_slice(bytes);
        let mut keys = Vec::new();
        let mut at = 0;
        while at < self.begun.len() {
            match take(&self.begun[at..]) {
                Taken::Sequence(key, length) => {
                    keys.extend(key);
                    at += length;
                }
                Taken::Begun => break,
            }
        }
        self.begun.drain(..at);
        keys
    }

    /// Whether the beginning of a key is kept.
    pub(super) fn is_in_a_key(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Nothing came after the beginning of a key: Escape is one by itself, everything else is dropped.
    pub(super) fn pause(&mut self) -> Vec<Key> {
        let is_escape = self.begun == [ESCAPE];
        self.begun.clear();
        if is_escape { vec![Key::Escape] } else { Vec::new() }
    }
}

fn take(bytes: &[u8]) -> Taken {
    let one = |key| Taken::Sequence(Some(key), 1);
    match bytes[0] {
        ESCAPE => escape(bytes),
        b'\r' | b'\n' => one(Key::Enter),
        0x03 => one(Key::Interrupt),
        0x04 => one(Key::End),
        0x08 | 0x7f => one(Key::Backspace),
        0x0e => one(Key::Down),
        0x10 => one(Key::Up),
        0x15 => one(Key::DeleteAll),
        0x17 => one(Key::DeleteWord),
        0..0x20 => Taken::Sequence(None, 1),
        _ => character(bytes),
    }
}

fn character(bytes: &[u8]) -> Taken {
    let length = match bytes[0] {
        0..0x80 => 1,
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0.. => 4,
        // The middle of a character without its beginning.
        _ => return Taken::Sequence(None, 1),
    };
    let Some(encoded) = bytes.get(..length) else { return Taken::Begun };
    match std::str::from_utf8(encoded).ok().and_then(|text| text.chars().next()) {
        Some(c) if !c.is_control() => Taken::Sequence(Some(Key::Character(c)), length),
        Some(_) => Taken::Sequence(None, length),
        None => Taken::Sequence(None, 1),
    }
}

/// `ESC [ … letter`, `ESC O letter`, or Alt with a key, which means nothing here.
fn escape(bytes: &[u8]) -> Taken {
    match bytes.get(1) {
        None => Taken::Begun,
        // The first of two Escapes.
        Some(&ESCAPE) => Taken::Sequence(Some(Key::Escape), 1),
        Some(b'O') => match bytes.get(2) {
            None => Taken::Begun,
            Some(letter) => Taken::Sequence(named(&[], *letter), 3),
        },
        Some(b'[') => {
            let rest = &bytes[2..];
            match rest.iter().position(|byte| (0x40..=0x7e).contains(byte)) {
                Some(end) => Taken::Sequence(named(&rest[..end], rest[end]), end + 3),
                None if rest.len() > LONGEST => Taken::Sequence(None, bytes.len()),
                None => Taken::Begun,
            }
        }
        Some(_) => Taken::Sequence(None, 2),
    }
}

fn named(parameters: &[u8], end: u8) -> Option<Key> {
    let number = parameters.split(|byte| *byte == b';').next().unwrap_or_default();
    match (end, number) {
        (b'A', _) => Some(Key::Up),
        (b'B', _) => Some(Key::Down),
        (b'H', _) | (b'~', b"1" | b"7") => Some(Key::First),
        (b'F', _) | (b'~', b"4" | b"8") => Some(Key::Last),
        (b'~', b"5") => Some(Key::PageUp),
        (b'~', b"6") => Some(Key::PageDown),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_are_read_from_sequences() {
        let mut decoder = KeyDecoder::default();
        let keys = decoder.keys(
            "aä日\x1b[A\x1bOB\x1b[5~\x1b[6;2~\x1b[H\x1b[4~\x7f\x15\x17\r\x03\x04\x01\x1bx\x1b[99z".as_bytes(),
        );
        assert_eq!(
            keys,
            [
                Key::Character('a'),
                Key::Character('ä'),
                Key::Character('日'),
                Key::Up,
                Key::Down,
                Key::PageUp,
                Key::PageDown,
                Key::First,
                Key::Last,
                Key::Backspace,
                Key::DeleteAll,
                Key::DeleteWord,
                Key::Enter,
                Key::Interrupt,
                Key::End,
            ]
        );
        assert!(!decoder.is_in_a_key());
    }

    #[test]
    fn a_key_in_pieces_waits_and_a_lone_escape_is_a_key() {
        let mut decoder = KeyDecoder::default();
        assert_eq!(decoder.keys(b"\x1b"), []);
        assert!(decoder.is_in_a_key());
        assert_eq!(decoder.keys(b"["), []);
        assert_eq!(decoder.keys(b"Bx"), [Key::Down, Key::Character('x')]);
        assert_eq!(decoder.keys("日".as_bytes()[..2].as_ref()), []);
        assert_eq!(decoder.keys(&"日".as_bytes()[2..]), [Key::Character('日')]);
        assert_eq!(decoder.keys(b"\x1b"), []);
        assert_eq!(decoder.pause(), [Key::Escape]);
        assert_eq!(decoder.keys(b"\x1b["), []);
        assert_eq!(decoder.pause(), []);
        assert_eq!(decoder.keys(b"\x1b\x1b[A"), [Key::Escape, Key::Up]);
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_end(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..20)) {
            let mut decoder = KeyDecoder::default();
            for piece in &pieces {
                decoder.keys(piece);
                prop_assert!(decoder.begun.len() <= LONGEST + 24);
            }
            decoder.pause();
            prop_assert!(!decoder.is_in_a_key());
        }
    }
}
