//! The texts in the arguments of a call, taken out of their JSON while it streams.
//!
//! Of `write` and `edit` the added text is watched, of other tools every text. Strings are decoded: a rule sees a line break, not `\n`.

/// Bytes of a key or a path that are kept.
const MAX_KEPT: usize = 4 << 10;

/// What a string of the arguments is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The name of a field.
    Key,
    /// The file of the call.
    Path,
    /// A text that is watched.
    Watched,
    /// A text that is not.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Between strings.
    Outside,
    InString,
    /// Behind a backslash.
    Escape,
    /// In the digits of `\u`: how many there were, and their value.
    Unicode {
        digits: u8,
        value: u16,
    },
}

/// Reads the arguments of one call.
#[derive(Debug)]
pub(crate) struct ArgumentTexts {
    state: State,
    kind: Kind,
    /// For each open bracket, whether it is an object.
    nesting: Vec<bool>,
    /// Whether the next string of the object is a key.
    expects_key: bool,
    key: Vec<u8>,
    path: Option<Vec<u8>>,
    /// The first half of a character beyond the first plane.
    high: Option<u16>,
    /// The only field whose text is watched; `None`: every field.
    only: Option<&'static str>,
}

/// How deep arguments are followed; what is deeper is not told apart.
const MAX_NESTING: usize = 64;

impl ArgumentTexts {
    /// Of a call of `tool`.
    pub(crate) fn of(tool: &str) -> Self {
        Self {
            state: State::Outside,
            kind: Kind::Other,
            nesting: Vec::new(),
            expects_key: false,
            key: Vec::new(),
            path: None,
            high: None,
            only: match tool {
                "write" => Some("content"),
                "edit" => Some("newText"),
                _ => None,
            },
        }
    }

    /// The file that the call is about, once it is known whole.
    pub(crate) fn path(&self) -> Option<&str> {
        let is_open = self.state != State::Outside && self.kind == Kind::Path;
        self.path.as_deref().filter(|_| !is_open).and_then(|path| std::str::from_utf8(path).ok())
    }

    /// Takes more of the JSON. `text` gets the bytes of watched texts, decoded, and a line break between two of them.
    pub(crate) fn feed(&mut self, json: &str, mut text: impl FnMut(&[u8])) {
        let bytes = json.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            match self.state {
                State::Outside => {
                    self.outside(bytes[at], &mut text);
                    at += 1;
                }
                State::InString => {
                    let run = bytes[at..].iter().position(|byte| matches!(byte, b'"' | b'\\'));
                    let end = run.map_or(bytes.len(), |run| at + run);
                    self.add(&bytes[at..end], &mut text);
                    at = end;
                    if let Some(&byte) = bytes.get(at) {
                        self.state = if byte == b'"' { State::Outside } else { State::Escape };
                        if byte == b'"' {
                            self.string_ended(&mut text);
                        }
                        at += 1;
                    }
                }
                State::Escape => {
                    self.escape(bytes[at], &mut text);
                    at += 1;
                }
                State::Unicode { digits, value } => {
                    self.unicode(bytes[at], digits, value, &mut text);
                    at += 1;
                }
            }
        }
    }

    fn outside(&mut self, byte: u8, text: &mut impl FnMut(&[u8])) {
        match byte {
            b'{' | b'[' => {
                if self.nesting.len() < MAX_NESTING {
                    self.nesting.push(byte == b'{');
                }
                self.expects_key = byte == b'{';
            }
            b'}' | b']' => {
                self.nesting.pop();
                self.expects_key = false;
            }
            b',' => self.expects_key = self.nesting.last() == Some(&true),
            b':' => self.expects_key = false,
            b'"' => {
                self.state = State::InString;
                // A string in a list has no name of its own.
                let is_field = self.nesting.last() == Some(&true);
                self.kind = if self.expects_key {
                    self.key.clear();
                    Kind::Key
                } else if is_field && self.key == b"path" && self.path.is_none() {
                    self.path = Some(Vec::new());
                    Kind::Path
                } else if self.only.is_none_or(|only| is_field && self.key == only.as_bytes()) {
                    Kind::Watched
                } else {
                    Kind::Other
                };
                if self.kind == Kind::Watched {
                    text(b"\n");
                }
            }
            _ => {}
        }
    }

    fn string_ended(&mut self, text: &mut impl FnMut(&[u8])) {
        if self.high.take().is_some() {
            self.add("\u{fffd}".as_bytes(), text);
        }
    }

    fn add(&mut self, bytes: &[u8], text: &mut impl FnMut(&[u8])) {
        let kept = match self.kind {
            Kind::Watched => {
                if !bytes.is_empty() {
                    text(bytes);
                }
                return;
            }
            Kind::Other => return,
            Kind::Key => &mut self.key,
            Kind::Path => self.path.get_or_insert_default(),
        };
        let room = MAX_KEPT.saturating_sub(kept.len());
        kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn escape(&mut self, byte: u8, text: &mut impl FnMut(&[u8])) {
        self.state = State::InString;
        let plain = match byte {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 8,
            b'f' => 12,
            b'u' => {
                self.state = State::Unicode { digits: 0, value: 0 };
                return;
            }
            other => other,
        };
        self.add(&[plain], text);
    }

    fn unicode(&mut self, byte: u8, digits: u8, value: u16, text: &mut impl FnMut(&[u8])) {
        let Some(digit) = char::from(byte).to_digit(16).and_then(|digit| u16::try_from(digit).ok()) else {
            // No JSON: what follows is taken as it is.
            self.state = State::InString;
            return;
        };
        let (digits, value) = (digits + 1, (value << 4) | digit);
        if digits < 4 {
            self.state = State::Unicode { digits, value };
            return;
        }
        self.state = State::InString;
        if (0xd800..0xdc00).contains(&value) {
            self.high = Some(value);
            return;
        }
        let units = [self.high.take(), Some(value)];
        for letter in char::decode_utf16(units.into_iter().flatten()) {
            let letter = letter.unwrap_or('\u{fffd}');
            self.add(letter.encode_utf8(&mut [0; 4]).as_bytes(), text);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn texts(tool: &str, parts: &[&str]) -> (String, Option<String>) {
        let mut arguments = ArgumentTexts::of(tool);
        let mut found = Vec::new();
        for part in parts {
            arguments.feed(part, |bytes| found.extend_from_slice(bytes));
        }
        (String::from_utf8_lossy(&found).into_owned(), arguments.path().map(str::to_owned))
    }

    #[test]
    fn the_added_text_of_changes_is_watched() {
        let edit = json!({"path": "src/a.rs", "edits": [
            {"oldText": "a.unwrap()", "newText": "b?\n\"x\""}, {"oldText": "c", "newText": "d"},
        ]})
        .to_string();
        assert_eq!(texts("edit", &[&edit]), ("\nb?\n\"x\"\nd".into(), Some("src/a.rs".into())));
        let write = json!({"content": "é\u{1f600}", "path": "x"}).to_string();
        assert_eq!(texts("write", &[&write]), ("\né\u{1f600}".into(), Some("x".into())));
        assert_eq!(
            texts("write", &[r#"{"content":"\u00e9\ud83d\ude00\ud83dx"}"#]).0,
            "\né\u{1f600}x\u{fffd}"
        );
        assert_eq!(texts("bash", &[r#"{"command":"ls","env":{"A":"b"}}"#]).0, "\nls\nb");
        assert_eq!(texts("edit", &[r#"{"path":"src/a"#]).1, None, "it may go on");
    }

    fn arguments() -> impl Strategy<Value = Value> {
        let text = prop_oneof![any::<String>(), Just("path".to_owned()), Just("content".to_owned())];
        let leaf = prop_oneof![
            text.clone().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            Just(Value::Null)
        ];
        let value = leaf.prop_recursive(3, 16, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(text.clone(), inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        });
        prop::collection::btree_map(any::<String>(), value, 0..4)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    }

    fn strings(value: &Value, key: &str, into: &mut Vec<String>, has_path: &mut bool) {
        match value {
            Value::String(_) if key == "path" && !*has_path => *has_path = true,
            Value::String(text) => into.push(text.clone()),
            Value::Array(items) => items.iter().for_each(|item| strings(item, "", into, has_path)),
            Value::Object(map) => map.iter().for_each(|(key, value)| strings(value, key, into, has_path)),
            _ => {}
        }
    }

    proptest! {
        /// Wherever the JSON is cut, the texts are those that a parser finds.
        #[test]
        fn texts_are_those_of_the_json(value in arguments(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
            let json = value.to_string();
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(json.len() + 1)).filter(|at| json.is_char_boundary(*at)).collect();
            at.extend([0, json.len()]);
            at.sort_unstable();
            let parts: Vec<&str> = at.windows(2).map(|ends| &json[ends[0]..ends[1]]).collect();
            let mut expected = Vec::new();
            strings(&value, "", &mut expected, &mut false);
            let expected: String = expected.iter().map(|text| format!("\n{text}")).collect();
            prop_assert_eq!(texts("any", &parts).0, expected);
        }
    }
}
