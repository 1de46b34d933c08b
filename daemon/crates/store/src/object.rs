//! JSON objects taken apart and put together as text, so that what is not ours stays byte for byte.

use std::borrow::Cow;

use agentd_protocol::json_text;
use memchr::memchr;

/// The longest string that is looked at byte by byte.
const SHORT: usize = 40;

/// Calls `member` with the name and the text of the value of each member of the object that `text` is; false when it
/// is no object, or no JSON.
///
/// Names are as in the text, quotes and escapes included. Values are sub-slices of `text`.
pub(crate) fn each_member<'a>(text: &'a str, mut member: impl FnMut(&'a str, &'a str)) -> bool {
    json_text::each_member(text, |name, value| member(name, value.as_str()))
}

/// The name of a member, unescaped and without its quotes.
pub(crate) fn name(raw: &str) -> Cow<'_, str> {
    string(raw).unwrap_or(Cow::Borrowed(raw))
}

/// The string that a JSON text is; `None` when it is something else.
pub(crate) fn string(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    // Names and ids are so short that to begin a search takes longer than to look at each byte.
    let has_escape = match inner.as_bytes() {
        short if short.len() <= SHORT => short.iter().fold(false, |found, byte| found | (*byte == b'\\')),
        long => memchr(b'\\', long).is_some(),
    };
    if has_escape {
        agentd_protocol::parse_json(raw).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// A string as JSON text.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The members of an object in order, to be changed and written again.
pub(crate) struct Object<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Object<'a> {
    /// Takes an object apart; `None` when `text` is none.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let mut members = Vec::new();
        each_member(text, |name, value| members.push((Cow::Borrowed(name), Cow::Borrowed(value))))
            .then_some(Self(members))
    }

    /// The text of a member's value. Of several members of one name the last counts, as in JavaScript.
    pub(crate) fn get(&self, wanted: &str) -> Option<&str> {
        self.0.iter().rev().find(|(key, _)| name(key) == wanted).map(|(_, value)| &**value)
    }

    /// The string that a member holds.
    pub(crate) fn string(&self, wanted: &str) -> Option<Cow<'_, str>> {
        self.get(wanted).and_then(string)
    }

    /// Gives a member a value: in its place if it is there, else at the end.
    pub(crate) fn set(&mut self, wanted: &str, value: impl Into<Cow<'a, str>>) {
        match self.0.iter().rposition(|(key, _)| name(key) == wanted) {
            Some(at) => self.0[at].1 = value.into(),
            None => self.0.push((quoted(wanted).into(), value.into())),
        }
    }

    /// Gives a member a value: in its place if it is there, else as member number `place`.
    pub(crate) fn set_at(&mut self, wanted: &str, value: impl Into<Cow<'a, str>>, place: usize) {
        match self.0.iter().rposition(|(key, _)| name(key) == wanted) {
            Some(at) => self.0[at].1 = value.into(),
            None => self.0.insert(place.min(self.0.len()), (quoted(wanted).into(), value.into())),
        }
    }

    /// Takes a member out.
    pub(crate) fn remove(&mut self, wanted: &str) {
        self.0.retain(|(key, _)| name(key) != wanted);
    }

    /// The object as text.
    pub(crate) fn text(&self) -> String {
        let size = self.0.iter().map(|(key, value)| key.len() + value.len() + 2).sum::<usize>() + 2;
        let mut out = String::with_capacity(size);
        out.push('{');
        for (at, (key, value)) in self.0.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            out.push_str(key);
            out.push(':');
            out.push_str(value);
        }
        out.push('}');
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_the_text_itself() {
        let text = r#" { "a" : 1.0 , "\u0062":"\ud800","\ud800":[ 1, {"x":"}"} ] } "#;
        let mut seen = Vec::new();
        assert!(each_member(text, |name, value| seen.push((name, value))));
        assert_eq!(
            seen,
            [(r#""a""#, "1.0"), (r#""\u0062""#, r#""\ud800""#), (r#""\ud800""#, r#"[ 1, {"x":"}"} ]"#)]
        );
        assert_eq!(name(seen[1].0), "b");
        assert_eq!(name(seen[2].0), "\u{fffd}");
    }

    #[test]
    fn no_object_is_told_apart() {
        for text in ["", "[]", "1", "null", "{", r#"{"a":1"#, r#"{"a":1}x"#, r#"{"a":1,}"#, "\"{}\"", "\0\0"]
        {
            assert!(!each_member(text, |_, _| {}), "{text}");
        }
        assert!(each_member("{}", |_, _| {}));
    }

    #[test]
    fn changes_keep_the_rest() {
        let mut object = Object::parse(r#"{"type":"x","n":1.50,"twice":1,"twice":2}"#).unwrap();
        assert_eq!(object.get("twice"), Some("2"));
        object.set("n", "2");
        object.set("new", quoted("a\"b"));
        object.set_at("id", "7", 1);
        object.set_at("type", "\"y\"", 1);
        object.remove("twice");
        assert_eq!(object.text(), r#"{"type":"y","id":7,"n":2,"new":"a\"b"}"#);
    }
}
