//! Packages of resources and the programs that get and run them.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

/// A package: its source, or an object with the source and what of it is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum PackageSetting {
    /// Everything that the package offers: `npm:NAME`, `git:HOST/PATH`, the URL of a git repository, or a path.
    Source(String),
    /// A choice of what it offers.
    Filtered(PackageFilter),
}

/// A package and what of it is used. A list names files of the package by glob; `!glob` takes some out, `-path` exactly one, and
/// `+path` one in again. An empty list uses nothing of the kind; without a list everything of the kind is used.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PackageFilter {
    /// The source, as that of a package without filters.
    pub source: String,
    /// Its extensions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Vec<String>>,
    /// Its skills.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<Vec<String>>,
    /// Its prompt templates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<Vec<String>>,
    /// Its themes. agentd draws nothing itself and only lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub themes: Option<Vec<String>>,
    /// With `false` only what the lists name is used; in a project's settings the entry then changes that of the user's settings
    /// for the same package. Default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub autoload: Option<bool>,
}

impl PackageSetting {
    /// The source as it is written.
    #[must_use]
    pub fn source(&self) -> &str {
        match self {
            Self::Source(source) => source,
            Self::Filtered(filter) => &filter.source,
        }
    }

    /// The choice of what is used; `None` for everything.
    #[must_use]
    pub fn filter(&self) -> Option<&PackageFilter> {
        match self {
            Self::Source(_) => None,
            Self::Filtered(filter) => Some(filter),
        }
    }
}

/// By hand, since the error of an untagged enum does not say what is wrong.
impl<'de> Deserialize<'de> for PackageSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrObject;

        impl<'de> Visitor<'de> for TextOrObject {
            type Value = PackageSetting;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("the source of a package or an object with \"source\"")
            }

            fn visit_str<E: Error>(self, source: &str) -> Result<PackageSetting, E> {
                Ok(PackageSetting::Source(source.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PackageSetting, A::Error> {
                PackageFilter::deserialize(MapAccessDeserializer::new(map)).map(PackageSetting::Filtered)
            }
        }

        deserializer.deserialize_any(TextOrObject)
    }
}

/// The program that runs extensions written in TypeScript and JavaScript.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ExtensionHostSettings {
    /// The Node.js program, version 20 or later: a path, or a name to look for on the search path; default `node`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "node")))]
    pub node: Option<String>,
    /// Whether extensions find agentd as `pi` on their search path, before other programs of that name; default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub pi_on_path: Option<bool>,
    /// Whether tool calls and commands of the user run while a host is down that decides about them: `block` (default) or `allow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "block")))]
    pub when_down: Option<WhenDown>,
    /// Whether the texts that extensions style have colours; default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub ansi: Option<bool>,
    /// The memory of a host in MiB from which on a warning is logged; default 1024, 0: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 1024)))]
    pub max_host_mb: Option<u64>,
    /// Time in milliseconds after which a question of an extension gets its default answer while no client is there that could answer;
    /// default 60000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 60_000)))]
    pub dialog_wait_ms: Option<u64>,
}

/// What happens to calls whose gate is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum WhenDown {
    /// They are blocked.
    Block,
    /// They run.
    Allow,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn packages_are_texts_or_objects() {
        let read = |value: serde_json::Value| serde_json::from_value::<PackageSetting>(value);
        let source = read(json!("npm:a")).unwrap();
        assert_eq!((source.source(), source.filter()), ("npm:a", None));
        let written = json!({"source": "./a", "skills": [], "autoload": false});
        let filtered = read(written.clone()).unwrap();
        assert_eq!(filtered.source(), "./a");
        assert_eq!(filtered.filter().unwrap().skills, Some(Vec::new()));
        assert_eq!(serde_json::to_value(&filtered).unwrap(), written);
        let error = read(json!(5)).unwrap_err().to_string();
        assert!(error.contains("expected the source of a package or an object"), "{error}");
        let error = read(json!({"skills": []})).unwrap_err().to_string();
        assert!(error.contains("missing field `source`"), "{error}");
    }
}
