//! JSON text carried as it came, with a typed view made on first use.

use std::{fmt, sync::Arc, sync::OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::surrogates::parse;

/// The JSON text of a `T`, passed on byte for byte, with the typed view parsed when it is first asked for.
///
/// A value that came from a session file or another program may hold fields, number forms or escapes that `T` does not
/// model; carrying the text keeps them. A value that agentd made is serialised once and shared from then on: cloning
/// copies a pointer.
///
/// A text that is in a [`TextStore`] comes into memory when it is first asked for, and stays; [`Self::text_len`], [`Self::with_text`] and
/// [`Self::write_text`] leave it where it is.
///
/// On the wire and in JSON Schema this is just a `T`.
pub struct Json<T>(Arc<Inner<T>>);

/// A session of many messages has one for each: a stored one, of which nothing was asked, takes 56 bytes with its counters.
enum Inner<T> {
    Memory(Loaded<T>),
    Stored(Stored<T>),
}

/// A text in memory.
struct Loaded<T> {
    text: Box<RawValue>,
    /// Boxed, so that a value that is only carried does not pay for the room of its typed view.
    typed: OnceLock<Option<Box<T>>>,
}

/// Texts that are not in memory: those of a file.
pub trait TextStore: Send + Sync {
    /// Appends the JSON text of `len` bytes that begins at `at`, in UTF-8. Blocks as a read of a file does. What cannot be read any more is
    /// `null`; the store reports that.
    fn read(&self, at: u64, len: usize, out: &mut Vec<u8>);
}

struct Stored<T> {
    /// Boxed, since a pointer to a trait is twice as large.
    store: Arc<Box<dyn TextStore>>,
    at: u64,
    len: u32,
    loaded: OnceLock<Box<Loaded<T>>>,
}

impl<T> From<Box<RawValue>> for Loaded<T> {
    fn from(text: Box<RawValue>) -> Self {
        Self { text, typed: OnceLock::new() }
    }
}

impl<T> Stored<T> {
    fn read(&self) -> Box<RawValue> {
        let mut text = Vec::with_capacity(self.len as usize);
        self.write(&mut text);
        let text = String::from_utf8(text).ok().and_then(|text| RawValue::from_string(text).ok());
        text.unwrap_or_else(|| RawValue::NULL.to_owned())
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.store.read(self.at, self.len as usize, out);
    }
}

impl<T: Serialize> Json<T> {
    /// Serialises `value` once and keeps both forms.
    ///
    /// # Errors
    /// Fails only for types that JSON cannot represent, such as maps with keys that are no strings.
    pub fn new(value: T) -> Result<Self, serde_json::Error> {
        let text = serde_json::value::to_raw_value(&value)?;
        let typed = OnceLock::from(Some(Box::new(value)));
        Ok(Self(Arc::new(Inner::Memory(Loaded { text, typed }))))
    }
}

impl<T> Json<T> {
    /// Carries `raw` without looking inside.
    #[must_use]
    pub fn from_raw(raw: Box<RawValue>) -> Self {
        Self(Arc::new(Inner::Memory(raw.into())))
    }

    /// Carries the text of `len` bytes that begins at `at` in `store`.
    #[must_use]
    pub fn stored(store: Arc<Box<dyn TextStore>>, at: u64, len: u32) -> Self {
        Self(Arc::new(Inner::Stored(Stored { store, at, len, loaded: OnceLock::new() })))
    }

    /// The text in memory. Reads a stored one, which stays there.
    fn loaded(&self) -> &Loaded<T> {
        match &*self.0 {
            Inner::Memory(loaded) => loaded,
            Inner::Stored(stored) => stored.loaded.get_or_init(|| Box::new(stored.read().into())),
        }
    }

    /// Where the text is, as long as it is not in memory.
    fn unloaded(&self) -> Option<&Stored<T>> {
        match &*self.0 {
            Inner::Stored(stored) if stored.loaded.get().is_none() => Some(stored),
            _ => None,
        }
    }

    /// The JSON text: one line, as it came or as it was first written. Reads a stored one, which stays in memory.
    #[must_use]
    pub fn text(&self) -> &str {
        self.raw().get()
    }

    /// The length of the text in bytes.
    #[must_use]
    pub fn text_len(&self) -> usize {
        match &*self.0 {
            Inner::Memory(loaded) => loaded.text.get().len(),
            Inner::Stored(stored) => stored.len as usize,
        }
    }

    /// Gives the text to `look`. One that is stored is read for it, and does not stay in memory.
    pub fn with_text<R>(&self, look: impl FnOnce(&str) -> R) -> R {
        match self.unloaded() {
            Some(stored) => look(stored.read().get()),
            None => look(self.text()),
        }
    }

    /// Appends the text to `out`. One that is stored is read, and does not stay in memory.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        match self.unloaded() {
            Some(stored) => stored.write(out),
            None => out.extend_from_slice(self.text().as_bytes()),
        }
    }

    /// The typed view, where there is one already. Reads and parses nothing.
    #[must_use]
    pub fn parsed(&self) -> Option<&T> {
        let loaded = match &*self.0 {
            Inner::Memory(loaded) => loaded,
            Inner::Stored(stored) => stored.loaded.get()?,
        };
        loaded.typed.get()?.as_deref()
    }

    /// Whether the text is in memory.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.unloaded().is_none()
    }

    /// A number that equals that of its copies, and of no other value as long as one of them is there.
    #[must_use]
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// The text as a serialisable value. Reads a stored one, which stays in memory.
    #[must_use]
    pub fn raw(&self) -> &RawValue {
        &self.loaded().text
    }
}

impl<T: DeserializeOwned> Json<T> {
    /// The typed view, parsed on the first call; `None` when the text is no `T` (an unknown kind, say). Lone surrogates
    /// read as U+FFFD, see [`parse`].
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        let Loaded { text, typed } = self.loaded();
        typed.get_or_init(|| parse(text.get()).ok()).as_deref()
    }
}

impl<T> Clone for Json<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Json<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl<T> PartialEq for Json<T> {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl<T> Serialize for Json<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw().serialize(serializer)
    }
}

impl<'de, T> Deserialize<'de> for Json<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from_raw)
    }
}

#[cfg(feature = "schema")]
impl<T: schemars::JsonSchema> schemars::JsonSchema for Json<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_kept_byte_for_byte() {
        let text = r#"{"b":0.10,"a":"\u0041","x":[1.0]}"#;
        let json: Json<serde_json::Value> = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&json).unwrap(), text);
        assert_eq!(json.get().unwrap()["a"], "A");
    }

    #[test]
    fn halves_of_characters_are_kept_in_the_text_and_marked_in_the_view() {
        let text = r#"["cut \ud83d"]"#;
        let json: Json<Vec<String>> = serde_json::from_str(text).unwrap();
        assert_eq!(json.get().unwrap(), &["cut \u{fffd}"]);
        assert_eq!(json.text(), text);
    }

    #[test]
    fn what_is_stored_is_small() {
        assert_eq!(size_of::<Inner<serde_json::Value>>(), 40);
    }

    struct Letters(&'static str);

    impl TextStore for Letters {
        fn read(&self, at: u64, len: usize, out: &mut Vec<u8>) {
            let at = usize::try_from(at).unwrap();
            out.extend_from_slice(self.0.get(at..at + len).unwrap_or("null").as_bytes());
        }
    }

    #[test]
    fn stored_text_is_read_when_it_is_asked_for() {
        let store: Arc<Box<dyn TextStore>> = Arc::new(Box::new(Letters(r#"xx[1,2]yy"#)));
        let json: Json<Vec<u32>> = Json::stored(Arc::clone(&store), 2, 5);
        let mut out = b"> ".to_vec();
        json.write_text(&mut out);
        assert_eq!((out.as_slice(), json.text_len()), (&b"> [1,2]"[..], 5));
        assert_eq!(json.with_text(str::len), 5);
        assert!(
            !json.is_loaded() && json.parsed().is_none(),
            "looking at it, or writing it, does not keep it"
        );
        assert_eq!((json.get(), json.text()), (Some(&vec![1, 2]), "[1,2]"));
        assert_eq!(json.parsed(), json.get());
        assert!(json.clone().is_loaded());
        let gone: Json<Vec<u32>> = Json::stored(store, 7, 9);
        assert_eq!((gone.get(), gone.text()), (None, "null"));
        // Text that is no JSON is as good as gone.
        let torn: Json<Vec<u32>> = Json::stored(Arc::new(Box::new(Letters("[1,2]"))), 0, 3);
        assert_eq!((torn.get(), torn.text()), (None, "null"));
    }

    #[test]
    fn unreadable_text_has_no_typed_view() {
        let json: Json<u32> = serde_json::from_str("\"no number\"").unwrap();
        assert_eq!(json.get(), None);
        assert_eq!(json.text(), "\"no number\"");
    }
}
