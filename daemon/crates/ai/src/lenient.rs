//! Reads JSON of servers that imitate an API: malformed values count as absent instead of failing the answer.

use serde::{Deserialize, Deserializer};
use serde_json::{Value, value::RawValue};

/// `null` reads as the default.
pub(crate) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A string, or the texts of a list of parts; anything else counts as absent.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    Ok(match raw.as_bytes().first() {
        Some(b'"') => Some(string(raw)?),
        Some(b'[') => {
            let parts: Vec<Value> = serde_json::from_str(raw).map_err(serde::de::Error::custom)?;
            Some(parts.iter().filter_map(|part| part.get("text")?.as_str()).collect())
        }
        _ => None,
    })
}

/// A string of JSON text; an object counts as the JSON itself.
pub(crate) fn json_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    Ok(match raw.as_bytes().first() {
        Some(b'"') => Some(string(raw)?),
        Some(b'{') => Some(raw.to_owned()),
        _ => None,
    })
}

/// A whole number, also in quotes; anything else counts as absent.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    Ok(raw.trim_matches('"').parse().ok())
}

/// A JSON string; halves of surrogate pairs in it become U+FFFD.
pub(crate) fn string<E: serde::de::Error>(raw: &str) -> Result<String, E> {
    crate::partial_json::read_string(raw).ok_or_else(|| E::custom("a string that is not closed"))
}
