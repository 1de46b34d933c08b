//! Texts that must not be printed.

use std::fmt;

use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

/// A key or another secret. `Debug` does not show it, and it cannot be serialised.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// A text that may be, or lead to, a secret: `Debug` does not show it, and no error quotes it.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigValue(String);

impl ConfigValue {
    /// Wraps the text of a configuration file.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text as it stands in the file, for the one place that interprets it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ConfigValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl<'de> Deserialize<'de> for ConfigValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(text)),
            _ => Err(de::Error::custom("expected a string")),
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for ConfigValue {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ConfigValue".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_not_shown() {
        let secret = Secret::new("hush");
        assert_eq!((secret.expose(), format!("{secret:?}").as_str()), ("hush", "[secret]"));
    }
}
