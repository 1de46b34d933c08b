//! A lenient JSON parser that keeps what it read when the text breaks off. One pass, every byte looked at once.

use std::fmt;

use serde_json::{Map, Number, Value};

/// Nesting beyond this is an error, as it is for serde_json.
const MAX_DEPTH: usize = 128;

/// The end of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// One whole value, and nothing behind it.
    Complete,
    /// The text broke off inside of the value.
    CutOff,
    /// Something that cannot be JSON stands at this byte.
    Unexpected(usize),
    /// Too many levels of nesting.
    TooDeep,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => f.write_str("nothing is wrong"),
            Self::CutOff => f.write_str("the text breaks off before the object is complete"),
            Self::Unexpected(at) => write!(f, "unexpected text at byte {at}"),
            Self::TooDeep => write!(f, "nested deeper than {MAX_DEPTH} levels"),
        }
    }
}

pub(super) struct Reader<'a> {
    text: &'a str,
    at: usize,
}

/// A value as far as it could be read; `None` when there is none at all.
type Partial = (Option<Value>, Stop);

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Reads the only value of the text.
    pub(super) fn read(mut self) -> Partial {
        let (value, stop) = self.value(0);
        if stop != Stop::Complete {
            return (value, stop);
        }
        self.skip_space();
        let stop = if self.at == self.text.len() { Stop::Complete } else { Stop::Unexpected(self.at) };
        (value, stop)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Partial {
        self.skip_space();
        if depth >= MAX_DEPTH {
            return (None, Stop::TooDeep);
        }
        match self.peek() {
            None => (None, Stop::CutOff),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => {
                let (text, stop) = self.string();
                (Some(Value::String(text)), stop)
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true", Value::Bool(true)),
            Some(b'f') => self.literal("false", Value::Bool(false)),
            Some(b'n') => self.literal("null", Value::Null),
            Some(_) => (None, Stop::Unexpected(self.at)),
        }
    }

    fn object(&mut self, depth: usize) -> Partial {
        self.at += 1;
        let mut map = Map::new();
        let stop = self.members(&mut map, depth);
        (Some(Value::Object(map)), stop)
    }

    fn members(&mut self, map: &mut Map<String, Value>, depth: usize) -> Stop {
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Stop::Complete;
        }
        loop {
            self.skip_space();
            match self.peek() {
                None => return Stop::CutOff,
                Some(b'"') => {}
                Some(_) => return Stop::Unexpected(self.at),
            }
            let (key, stop) = self.string();
            if stop != Stop::Complete {
                return stop;
            }
            self.skip_space();
            match self.peek() {
                None => return Stop::CutOff,
                Some(b':') => self.at += 1,
                Some(_) => return Stop::Unexpected(self.at),
            }
            let (value, stop) = self.value(depth + 1);
            if let Some(value) = value {
                map.insert(key, value);
            }
            if stop != Stop::Complete {
                return stop;
            }
            match self.separator(b'}') {
                Ok(true) => {}
                Ok(false) => return Stop::Complete,
                Err(stop) => return stop,
            }
        }
    }

    fn array(&mut self, depth: usize) -> Partial {
        self.at += 1;
        let mut items = Vec::new();
        let stop = self.items(&mut items, depth);
        (Some(Value::Array(items)), stop)
    }

    fn items(&mut self, items: &mut Vec<Value>, depth: usize) -> Stop {
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Stop::Complete;
        }
        loop {
            let (value, stop) = self.value(depth + 1);
            items.extend(value);
            if stop != Stop::Complete {
                return stop;
            }
            match self.separator(b']') {
                Ok(true) => {}
                Ok(false) => return Stop::Complete,
                Err(stop) => return stop,
            }
        }
    }

    /// True after a comma, false after the closing bracket.
    fn separator(&mut self, close: u8) -> Result<bool, Stop> {
        self.skip_space();
        let more = match self.peek() {
            None => return Err(Stop::CutOff),
            Some(b',') => true,
            Some(byte) if byte == close => false,
            Some(_) => return Err(Stop::Unexpected(self.at)),
        };
        self.at += 1;
        Ok(more)
    }

    /// Reads a string as far as it goes. `self.at` is at its opening quote.
    fn string(&mut self) -> (String, Stop) {
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(length) = memchr::memchr2(b'"', b'\\', rest.as_bytes()) else {
                text.push_str(rest);
                self.at = self.text.len();
                return (text, Stop::CutOff);
            };
            text.push_str(&rest[..length]);
            self.at += length + 1;
            if rest.as_bytes()[length] == b'"' {
                return (text, Stop::Complete);
            }
            if !self.escape(&mut text) {
                self.at = self.text.len();
                return (text, Stop::CutOff);
            }
        }
    }

    /// Reads an escape after its backslash; false if the text breaks off inside of it.
    fn escape(&mut self, text: &mut String) -> bool {
        let Some(byte) = self.peek() else { return false };
        let simple = match byte {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(text),
            // Not a JSON escape: a Windows path or a regular expression whose backslash was not doubled.
            _ => {
                text.push('\\');
                return true;
            }
        };
        self.at += 1;
        text.push(simple);
        true
    }

    /// Reads a Unicode escape. `self.at` is at the `u`.
    fn unicode_escape(&mut self, text: &mut String) -> bool {
        let Some(first) = self.hex(self.at + 1) else {
            let digits = &self.text.as_bytes()[self.at + 1..];
            if digits.len() < 4 && digits.iter().all(u8::is_ascii_hexdigit) {
                return false;
            }
            text.push('\\');
            return true;
        };
        self.at += 5;
        if let Some(character) = char::from_u32(first) {
            text.push(character);
            return true;
        }
        let rest = &self.text.as_bytes()[self.at..];
        let high = (0xd800..0xdc00).contains(&first);
        let second = if high && rest.starts_with(b"\\u") { self.hex(self.at + 2) } else { None };
        match second {
            Some(low @ 0xdc00..0xe000) => {
                self.at += 6;
                let code = 0x1_0000 + ((first - 0xd800) << 10) + (low - 0xdc00);
                text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            _ => text.push(char::REPLACEMENT_CHARACTER),
        }
        true
    }

    /// Four hexadecimal digits at `start`.
    fn hex(&self, start: usize) -> Option<u32> {
        let digits = self.text.as_bytes().get(start..start + 4)?;
        digits.iter().try_fold(0, |code, digit| Some(code * 16 + char::from(*digit).to_digit(16)?))
    }

    fn number(&mut self) -> Partial {
        let start = self.at;
        while matches!(self.peek(), Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')) {
            self.at += 1;
        }
        let digits = &self.text[start..self.at];
        let cut = self.at == self.text.len();
        if let Ok(number) = serde_json::from_str::<Number>(digits) {
            // A number at the very end may lack digits.
            return (Some(Value::Number(number)), if cut { Stop::CutOff } else { Stop::Complete });
        }
        if cut {
            let whole = digits.trim_end_matches(['-', '+', '.', 'e', 'E']);
            return (serde_json::from_str::<Number>(whole).ok().map(Value::Number), Stop::CutOff);
        }
        // Too large for a float: JavaScript reads infinity, which it writes as null.
        match digits.parse::<f64>() {
            Ok(float) if float.is_infinite() => (Some(Value::Null), Stop::Complete),
            _ => (None, Stop::Unexpected(start)),
        }
    }

    fn literal(&mut self, name: &str, value: Value) -> Partial {
        let rest = &self.text[self.at..];
        if rest.starts_with(name) {
            self.at += name.len();
            (Some(value), Stop::Complete)
        } else if name.starts_with(rest) {
            self.at = self.text.len();
            (Some(value), Stop::CutOff)
        } else {
            (None, Stop::Unexpected(self.at))
        }
    }
}
