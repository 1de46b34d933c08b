//! The JSON of a tool call's arguments while it streams: at every moment a complete object of what has arrived.

/// The deepest nesting that is followed, as when complete arguments are read.
const MAX_DEPTH: usize = 128;

/// An object that grows with its JSON text. Each character is read once.
///
/// It reads as `agentd_ai::partial_json::best_reading` does: a string that breaks off is kept as far as it goes, a member without a
/// value is left out, and everything after invalid JSON is ignored.
#[derive(Debug, Default)]
pub(super) struct StreamedArguments {
    /// JSON that is valid once the open string and every bracket in `open` are closed.
    text: String,
    /// The closing brackets of those that are open, innermost last.
    open: Vec<char>,
    /// The text before the next value, written with it: a comma, a name.
    before: String,
    /// An unfinished number, word, or escape in a string.
    token: String,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// Before the opening bracket.
    #[default]
    Start,
    /// Before a member; after a comma if there is one.
    Member {
        is_first: bool,
    },
    /// After a member's name.
    Colon,
    /// Before a value; with `or_end`, or before the end of an empty list.
    Value {
        or_end: bool,
    },
    /// In a string: a name or a value.
    Text {
        is_name: bool,
    },
    Number,
    Word,
    /// After a value.
    After,
    /// After the object, or after invalid JSON.
    Over,
}

impl StreamedArguments {
    /// Adds text.
    pub(super) fn push(&mut self, text: &str) {
        for character in text.chars() {
            self.character(character);
        }
    }

    /// Appends the object to `out`.
    pub(super) fn write(&self, out: &mut String) {
        if self.text.is_empty() {
            return out.push_str("{}");
        }
        out.push_str(&self.text);
        match self.state {
            State::Text { is_name: false } => out.push('"'),
            State::Number => {
                let whole = self.token.trim_end_matches(['-', '+', '.', 'e', 'E']);
                if is_number(whole) {
                    out.push_str(&self.before);
                    out.push_str(whole);
                }
            }
            State::Word => {
                if let Some(word) = word(&self.token) {
                    out.push_str(&self.before);
                    out.push_str(word);
                }
            }
            _ => {}
        }
        out.extend(self.open.iter().rev());
    }

    fn character(&mut self, c: char) {
        match self.state {
            State::Text { is_name } => self.in_text(c, is_name),
            State::Number if matches!(c, '-' | '+' | '.' | 'e' | 'E' | '0'..='9') => self.token.push(c),
            State::Number => {
                self.end_number();
                self.character(c);
            }
            State::Word => self.in_word(c),
            State::Over => {}
            // A code fence before the object is skipped.
            State::Start if matches!(c, '`' | 'j' | 's' | 'o' | 'n') => {}
            _ if matches!(c, ' ' | '\t' | '\n' | '\r') => {}
            State::Start if c == '{' => self.begin('{', '}', State::Member { is_first: true }),
            State::Start => self.state = State::Over,
            State::Member { is_first: true } if c == '}' => self.end(),
            State::Member { .. } if c == '"' => {
                self.before.push('"');
                self.state = State::Text { is_name: true };
            }
            State::Colon if c == ':' => {
                self.before.push(':');
                self.state = State::Value { or_end: false };
            }
            State::Value { or_end: true } if c == ']' => self.end(),
            State::Value { .. } => self.value(c),
            State::After if c == ',' => {
                self.before.push(',');
                self.state = match self.open.last() {
                    Some('}') => State::Member { is_first: false },
                    _ => State::Value { or_end: false },
                };
            }
            State::After if self.open.last() == Some(&c) => self.end(),
            _ => self.state = State::Over,
        }
    }

    fn value(&mut self, c: char) {
        match c {
            '{' => self.begin('{', '}', State::Member { is_first: true }),
            '[' => self.begin('[', ']', State::Value { or_end: true }),
            '"' => {
                self.text.push_str(&std::mem::take(&mut self.before));
                self.text.push('"');
                self.state = State::Text { is_name: false };
            }
            '-' | '0'..='9' => {
                self.token.push(c);
                self.state = State::Number;
            }
            't' | 'f' | 'n' => {
                self.token.push(c);
                self.state = State::Word;
            }
            _ => self.state = State::Over,
        }
    }

    fn begin(&mut self, bracket: char, closing: char, state: State) {
        if self.open.len() == MAX_DEPTH {
            self.state = State::Over;
            return;
        }
        self.text.push_str(&std::mem::take(&mut self.before));
        self.text.push(bracket);
        self.open.push(closing);
        self.state = state;
    }

    fn end(&mut self) {
        self.text.extend(self.open.pop());
        self.state = if self.open.is_empty() { State::Over } else { State::After };
    }

    fn end_number(&mut self) {
        let number = std::mem::take(&mut self.token);
        if is_number(&number) {
            self.whole(&number);
        } else if number.parse::<f64>().is_ok_and(f64::is_infinite) {
            // JavaScript writes a number that is too large as `null`.
            self.whole("null");
        } else {
            self.state = State::Over;
        }
    }

    fn in_word(&mut self, c: char) {
        self.token.push(c);
        match word(&self.token) {
            Some(word) if word == self.token => {
                self.token.clear();
                self.whole(word);
            }
            Some(_) => {}
            None => self.state = State::Over,
        }
    }

    fn whole(&mut self, value: &str) {
        self.text.push_str(&std::mem::take(&mut self.before));
        self.text.push_str(value);
        self.state = State::After;
    }

    /// Adds a character of a string. Repairs invalid characters that models write.
    fn in_text(&mut self, c: char, is_name: bool) {
        if !self.token.is_empty() {
            return self.in_escape(c, is_name);
        }
        match c {
            '\\' => self.token.push('\\'),
            '"' => {
                self.out(is_name).push('"');
                self.state = if is_name { State::Colon } else { State::After };
            }
            '\0'..='\u{1f}' => {
                let escape = format!("\\u{:04x}", u32::from(c));
                self.out(is_name).push_str(&escape);
            }
            _ => self.out(is_name).push(c),
        }
    }

    fn in_escape(&mut self, c: char, is_name: bool) {
        let digits = self.token.len().saturating_sub(2);
        match self.token.len() {
            1 => match c {
                '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' => {
                    let out = self.out(is_name);
                    out.push('\\');
                    out.push(c);
                    self.token.clear();
                }
                'u' => self.token.push('u'),
                _ => self.no_escape(c, is_name),
            },
            // A first half was read, and the second may follow.
            6 => match c {
                '\\' => self.token.push('\\'),
                _ => self.lone_half(c, is_name),
            },
            7 => match c {
                'u' => self.token.push('u'),
                _ => self.lone_half(c, is_name),
            },
            8.. if !c.is_ascii_hexdigit() => self.lone_half(c, is_name),
            8..=10 => self.token.push(c),
            11 => {
                self.token.push(c);
                if (0xdc00..0xe000).contains(&unit(&self.token[8..])) {
                    let pair = std::mem::take(&mut self.token);
                    self.out(is_name).push_str(&pair);
                } else {
                    let second = self.token.split_off(6);
                    self.token.clear();
                    self.out(is_name).push_str("\\ufffd");
                    self.again(&second, is_name);
                }
            }
            _ if !c.is_ascii_hexdigit() => self.no_escape(c, is_name),
            _ if digits < 3 => self.token.push(c),
            _ => {
                self.token.push(c);
                match unit(&self.token[2..]) {
                    0xd800..0xdc00 => {}
                    0xdc00..0xe000 => {
                        self.token.clear();
                        self.out(is_name).push_str("\\ufffd");
                    }
                    _ => {
                        let escape = std::mem::take(&mut self.token);
                        self.out(is_name).push_str(&escape);
                    }
                }
            }
        }
    }

    /// The backslash was meant literally.
    fn no_escape(&mut self, c: char, is_name: bool) {
        let token = std::mem::take(&mut self.token);
        let out = self.out(is_name);
        out.push_str("\\\\");
        out.push_str(&token[1..]);
        self.in_text(c, is_name);
    }

    /// Replaces a lone half of a surrogate pair, and reads on after it.
    fn lone_half(&mut self, c: char, is_name: bool) {
        let second = self.token.split_off(6);
        self.token.clear();
        self.out(is_name).push_str("\\ufffd");
        self.again(&second, is_name);
        self.in_text(c, is_name);
    }

    fn again(&mut self, text: &str, is_name: bool) {
        for c in text.chars() {
            self.in_text(c, is_name);
        }
    }

    fn out(&mut self, is_name: bool) -> &mut String {
        if is_name { &mut self.before } else { &mut self.text }
    }
}

/// The JSON word with this prefix.
fn word(beginning: &str) -> Option<&'static str> {
    ["true", "false", "null"].into_iter().find(|word| word.starts_with(beginning))
}

fn is_number(text: &str) -> bool {
    serde_json::from_str::<serde_json::Number>(text).is_ok()
}

/// The value of four hexadecimal digits.
fn unit(digits: &str) -> u32 {
    u32::from_str_radix(digits, 16).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use agentd_ai::partial_json::best_reading;
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    fn read(pieces: &[&str]) -> Value {
        let (mut arguments, mut text) = (StreamedArguments::default(), String::new());
        pieces.iter().for_each(|piece| arguments.push(piece));
        arguments.write(&mut text);
        assert!(!text.contains('\n'), "{text:?} is one line");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{pieces:?} became {text:?}: {error}"))
    }

    fn check(text: &str, expected: Value) {
        assert_eq!(read(&[text]), expected, "{text}");
    }

    #[test]
    fn what_is_there_counts() {
        check("", json!({}));
        check("{\"command\": \"ls -", json!({"command": "ls -"}));
        check("{\"a\": 1, \"b", json!({"a": 1}));
        check("{\"a\": 1, \"b\": ", json!({"a": 1}));
        check("{\"a\": [1, {\"b\": tr", json!({"a": [1, {"b": true}]}));
        check("{\"a\": [], \"b\": {}, \"c\": -1.5e", json!({"a": [], "b": {}, "c": -1.5}));
        check("```json\n{\"a\": 1}\n```", json!({"a": 1}));
    }

    #[test]
    fn slips_of_models_are_mended() {
        check("{\"a\": \"x\ny\\d\\u12", json!({"a": "x\ny\\d"}));
        check("{\"a\": \"\\u12zz\"", json!({"a": "\\u12zz"}));
        check(
            r#"{"a": "\ud83d\ude00 \ud83d! \ude00 \ud83d\ud83d\ude00 \ud83d\n"}"#,
            json!({"a": "😀 \u{fffd}! \u{fffd} \u{fffd}😀 \u{fffd}\n"}),
        );
        check("{\"a\": 1e999, \"b\": 1", json!({"a": null, "b": 1}));
        check("{\"a\": 1 \"b\": 2}", json!({"a": 1}));
        check("[1]", json!({}));
        check("no", json!({}));
    }

    /// JSON as a model would write it.
    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z\"\\\\\n\t{}é😀 ]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                object(inner).prop_map(Value::Object),
            ]
        })
    }

    fn object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
        proptest::collection::vec(("[a-c\"\\\\é]{0,3}", inner), 0..4)
            .prop_map(|members| members.into_iter().collect())
    }

    proptest! {
        #[test]
        fn it_is_the_best_reading_of_every_beginning(map in object(value()), pretty: bool, cut in 0usize..400) {
            let text = if pretty { serde_json::to_string_pretty(&map) } else { serde_json::to_string(&map) };
            let text = text.unwrap();
            // The other reading trims white space at the end, also in a string.
            let is_fair = |at: &usize| text.get(..*at).is_some_and(|text| !text.ends_with(char::is_whitespace));
            let cut = (0..=cut.min(text.len())).rev().find(is_fair).unwrap();
            prop_assert_eq!(read(&[&text[..cut]]), Value::Object(best_reading(&text[..cut])));
        }

        #[test]
        fn whatever_comes_is_an_object_and_pieces_do_not_matter(text in "[\\[\\]{}\",:\\\\u0-9eEd.+ \ntruefalsn`-]{0,60}", cut in 0usize..60) {
            let text = format!("{{\"a\":{text}");
            let cut = cut.min(text.len());
            prop_assert!(read(&[&text]).is_object());
            prop_assert_eq!(read(&[&text[..cut], &text[cut..]]), read(&[&text]));
        }
    }
}
