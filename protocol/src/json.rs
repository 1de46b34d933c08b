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
/// On the wire and in JSON Schema this is just a `T`.
pub struct Json<T>(Arc<Inner<T>>);

struct Inner<T> {
    raw: Box<RawValue>,
    /// Boxed, so that a value that is only carried does not pay for the room of its typed view.
    typed: OnceLock<Option<Box<T>>>,
}

impl<T: Serialize> Json<T> {
    /// Serialises `value` once and keeps both forms.
    ///
    /// # Errors
    /// Fails only for types that JSON cannot represent, such as maps with keys that are no strings.
    pub fn new(value: T) -> Result<Self, serde_json::Error> {
        let raw = serde_json::value::to_raw_value(&value)?;
        Ok(Self(Arc::new(Inner { raw, typed: OnceLock::from(Some(Box::new(value))) })))
    }
}

impl<T> Json<T> {
    /// Carries `raw` without looking inside.
    #[must_use]
    pub fn from_raw(raw: Box<RawValue>) -> Self {
        Self(Arc::new(Inner { raw, typed: OnceLock::new() }))
    }

    /// The JSON text: one line, as it came or as it was first written.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.raw.get()
    }

    /// A number that equals that of its copies, and of no other value as long as one of them is there.
    #[must_use]
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// The text as a serialisable value.
    #[must_use]
    pub fn raw(&self) -> &RawValue {
        &self.0.raw
    }
}

impl<T: DeserializeOwned> Json<T> {
    /// The typed view, parsed on the first call; `None` when the text is no `T` (an unknown kind, say). Lone surrogates
    /// read as U+FFFD, see [`parse`].
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        self.0.typed.get_or_init(|| parse(self.0.raw.get()).ok()).as_deref()
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
        self.0.raw.serialize(serializer)
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
    fn unreadable_text_has_no_typed_view() {
        let json: Json<u32> = serde_json::from_str("\"no number\"").unwrap();
        assert_eq!(json.get(), None);
        assert_eq!(json.text(), "\"no number\"");
    }
}
