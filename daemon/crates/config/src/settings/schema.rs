//! The settings that there are, read off the schema of `settings.json`.

use serde_json::{Map, Value};

/// Kept in step with the types by the check of the generated schemas.
const SCHEMA: &str = include_str!("../../../../../schemas/settings.json");

/// A setting that there is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct KnownSetting {
    /// The keys on the way to it. An id in the place of a key, as `provider/model.1`, may hold dots.
    pub(super) keys: Vec<String>,
    /// The purpose of the setting.
    pub(super) description: String,
    /// Its default.
    pub(super) default: Option<Value>,
}

/// The schema, parsed.
pub(super) struct Schema(Value);

impl Schema {
    pub(super) fn load() -> Self {
        // The text is part of the program; a test parses it.
        Self(serde_json::from_str(SCHEMA).unwrap_or_default())
    }

    /// The setting with that dotted key.
    pub(super) fn find(&self, key: &str) -> Option<KnownSetting> {
        self.find_in(self.resolve(&self.0)?, key, Vec::new())
    }

    fn find_in(&self, object: &Value, rest: &str, mut keys: Vec<String>) -> Option<KnownSetting> {
        if let Some(properties) = object["properties"].as_object() {
            let member = |(name, schema): (&String, &Value)| {
                let below = rest.strip_prefix(name.as_str())?;
                let mut keys = keys.clone();
                keys.push(name.clone());
                match below.strip_prefix('.') {
                    Some(below) => self.find_in(self.resolve(schema)?, below, keys),
                    None if below.is_empty() => Some(self.known(schema, keys)),
                    None => None,
                }
            };
            return properties.iter().find_map(member);
        }
        // A map from ids, which may hold dots, so that its values are looked for from the end.
        let values = object.get("additionalProperties").filter(|schema| schema.is_object())?;
        let members = self.resolve(values).and_then(|schema| schema["properties"].as_object());
        let member = members.and_then(|members| {
            members.iter().find_map(|(name, schema)| {
                let id = rest.strip_suffix(name.as_str())?.strip_suffix('.')?;
                Some((id, name, schema))
            })
        });
        if let Some((id, name, schema)) = member {
            keys.extend([id.to_owned(), name.clone()]);
            return Some(self.known(schema, keys));
        }
        keys.push(rest.to_owned());
        let known = self.known(values, keys);
        let description = object["description"].as_str().unwrap_or(&known.description).to_owned();
        Some(KnownSetting { description, ..known })
    }

    fn known(&self, schema: &Value, keys: Vec<String>) -> KnownSetting {
        let described = [Some(schema), self.resolve(schema)];
        let described = described.into_iter().flatten().find_map(|schema| schema["description"].as_str());
        KnownSetting {
            keys,
            description: described.unwrap_or_default().to_owned(),
            default: schema.get("default").cloned(),
        }
    }

    /// The dotted keys of all settings, but for those below an id.
    pub(super) fn keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        if let Some(root) = self.resolve(&self.0) {
            self.keys_in(root, "", &mut keys);
        }
        keys
    }

    fn keys_in(&self, object: &Value, before: &str, keys: &mut Vec<String>) {
        for (name, schema) in object["properties"].as_object().into_iter().flat_map(Map::iter) {
            let key = format!("{before}{name}");
            if let Some(below) = self.resolve(schema) {
                self.keys_in(below, &format!("{key}."), keys);
            }
            keys.push(key);
        }
    }

    /// The schema of an object: behind references and beside `null`.
    fn resolve<'a>(&'a self, schema: &'a Value) -> Option<&'a Value> {
        if let Some(reference) = schema["$ref"].as_str() {
            return self.resolve(self.0.pointer(reference.strip_prefix('#')?)?);
        }
        if let Some(choices) = schema["anyOf"].as_array() {
            return choices.iter().find(|choice| choice["type"] != "null").and_then(|it| self.resolve(it));
        }
        Some(schema)
    }
}

/// Their names at the top of the file; of these also what is below. Some are of older versions.
pub(super) const OF_REFERENCE: [&str; 33] = [
    "autocompleteMaxVisible",
    "cacheWarming",
    "codemode",
    "collapseChangelog",
    "customTools",
    "deviceId",
    "doubleEscapeAction",
    "editorPaddingX",
    "enableAnalytics",
    "enableInstallTelemetry",
    "extensionChangelogVersions",
    "externalEditor",
    "fullscreen",
    "hideThinkingBlock",
    "hookTimeout",
    "hooks",
    "lastChangelogVersion",
    "markdown",
    "outputPad",
    "quietStartup",
    "selfUpdateCommand",
    "sessionShareDestination",
    "showCacheMissNotices",
    "showHardwareCursor",
    "terminal",
    "theme",
    "themes",
    "trackingId",
    "treeFilterMode",
    "tuiMode",
    "warnings",
    "websocketConnectTimeoutMs",
    "websockets",
];

/// Returns whether a key at the top of the file is one of pi's.
pub(super) fn is_pi_setting(key: &str) -> bool {
    OF_REFERENCE.contains(&key) || key.starts_with("fullscreen")
}

#[cfg(test)]
mod tests {
    use agentd_protocol::settings::Settings;
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_are_found_with_description_and_default() {
        let schema = Schema::load();
        let check = |key: &str, keys: &[&str], default: Option<Value>| {
            let known = schema.find(key).unwrap_or_else(|| panic!("{key}"));
            assert_eq!(
                (known.keys.iter().map(String::as_str).collect(), known.default),
                (keys.to_vec(), default)
            );
            assert!(!known.description.is_empty(), "{key}");
        };
        check("defaultModel", &["defaultModel"], None);
        check("compaction", &["compaction"], None);
        check("compaction.enabled", &["compaction", "enabled"], Some(json!(true)));
        check("retry.provider.maxRetries", &["retry", "provider", "maxRetries"], Some(json!(0)));
        check("daemon.maxClients", &["daemon", "maxClients"], Some(json!(512)));
        check("defaultTools", &["defaultTools"], Some(json!(["read", "bash", "edit", "write"])));
        check("modelThinkingLevels.openai/gpt-5.5", &["modelThinkingLevels", "openai/gpt-5.5"], None);
        let overrides = ["compaction", "modelOverrides", "openai/gpt-5.5"];
        check("compaction.modelOverrides.openai/gpt-5.5", &overrides, None);
        let member = [&overrides[..], &["reserveTokens"]].concat();
        check("compaction.modelOverrides.openai/gpt-5.5.reserveTokens", &member, None);
        for unknown in ["", "x", "default", "compaction.x", "compaction.enabled.x", "defaultModel.x", "."] {
            assert_eq!(schema.find(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn every_setting_and_every_default_is_one_that_the_types_take() {
        let schema = Schema::load();
        let keys = schema.keys();
        assert!(keys.len() > 40 && keys.contains(&"compaction.modelOverrides".to_owned()), "{keys:?}");
        for key in keys {
            let known = schema.find(&key).unwrap_or_else(|| panic!("{key}"));
            let Some(default) = known.default else { continue };
            let nested = known.keys.iter().rev().fold(default, |value, key| json!({ key.as_str(): value }));
            let settings: Settings = serde_json::from_value(nested.clone()).unwrap();
            assert_eq!(serde_json::to_value(settings).unwrap(), nested, "{key}");
        }
    }
}
