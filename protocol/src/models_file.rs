//! `models.json`: the models and endpoints that users add. Unknown keys are allowed and ignored.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor},
};
use serde_json::{Map, Value};

pub use crate::secret::ConfigValue;
use crate::{
    model::{CostTier, ModelCost},
    number,
    oauth_setting::OAuthSetting,
};

/// The whole file.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ModelsFile {
    /// Providers by id.
    pub providers: InOrder<ProviderEntry>,
}

/// A provider: where it is, how to authorise, and its models.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderEntry {
    /// A name to show; default the id.
    pub name: Option<String>,
    /// The address for requests, for all models that do not set one.
    pub base_url: Option<String>,
    /// The key: a literal, `$NAME` or `${NAME}` for an environment variable, `!command` for the output of a command;
    /// `$$` and `$!` stand for the characters themselves. A server that needs no key still needs some text here.
    pub api_key: Option<ConfigValue>,
    /// The wire API, such as `openai-completions`, for all models that do not say it themselves.
    pub api: Option<String>,
    /// How a login with the provider works, and with whose client id. A word of another program's has no effect.
    pub oauth: Option<OAuthSetting>,
    /// Headers of every request; values as in `apiKey`. `null` takes a header of the built-in model away.
    pub headers: Option<InOrder<Option<ConfigValue>>>,
    /// Switches for what the server does differently from the API it imitates, for all its models.
    pub compat: Option<Map<String, Value>>,
    /// Whether `Authorization: Bearer <key>` is sent besides; default false.
    pub auth_header: Option<bool>,
    /// The models.
    pub models: Option<Vec<ModelEntry>>,
    /// Changes of built-in models, by id.
    pub model_overrides: Option<InOrder<ModelFields>>,
}

/// A model of a provider.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelEntry {
    /// The id that the provider knows the model by.
    pub id: String,
    /// Everything else.
    #[cfg_attr(feature = "schema", schemars(flatten))]
    pub fields: ModelFields,
}

/// By hand, since a flattened field would lose its name in errors.
impl<'de> Deserialize<'de> for ModelEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = Map::deserialize(deserializer)?;
        let id = match object.remove("id") {
            Some(Value::String(id)) if !id.is_empty() => id,
            Some(_) => return Err(de::Error::custom("id: expected a string that is not empty")),
            None => return Err(de::Error::missing_field("id")),
        };
        let fields = serde_path_to_error::deserialize(Value::Object(object)).map_err(de::Error::custom)?;
        Ok(Self { id, fields })
    }
}

/// The fields of a model besides its id.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ModelFields {
    /// A name to show; default the id.
    pub name: Option<String>,
    /// The wire API; default that of the provider.
    pub api: Option<String>,
    /// The address for requests; default that of the provider.
    pub base_url: Option<String>,
    /// Whether the model can reason; default false.
    pub reasoning: Option<bool>,
    /// The provider's names of the thinking levels; `null` for a level that does not exist.
    pub thinking_level_map: Option<Map<String, Value>>,
    /// The kinds of content in a prompt: `text`, `image`; default only `text`.
    pub input: Option<Vec<String>>,
    /// The limits of images and requests.
    pub input_limits: Option<Map<String, Value>>,
    /// Prices; default 0.
    pub cost: Option<CostFields>,
    /// The seconds that the provider keeps a prompt cached: `short`, `long`.
    pub prompt_cache: Option<Map<String, Value>>,
    /// Size of the context window in tokens; default 128000.
    #[serde(deserialize_with = "tokens")]
    pub context_window: Option<u64>,
    /// The most tokens of one answer; default 16384.
    #[serde(deserialize_with = "tokens")]
    pub max_tokens: Option<u64>,
    /// Fields merged into each request as they are, such as `temperature`.
    pub sampling_params: Option<Map<String, Value>>,
    /// The same for single thinking levels, by the level's name; over `samplingParams`.
    pub sampling_params_by_thinking_level: Option<Map<String, Value>>,
    /// Headers of requests to this model, over those of the provider; values as in `apiKey`. `null` takes a header of the
    /// provider or of the built-in model away.
    pub headers: Option<InOrder<Option<ConfigValue>>>,
    /// Switches, over those of the provider.
    pub compat: Option<Map<String, Value>>,
}

/// Prices in US dollars per million tokens, as far as they are said.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct CostFields {
    /// Input that was not in the provider's cache.
    pub input: Option<f64>,
    /// Output, reasoning included.
    pub output: Option<f64>,
    /// Input read from the cache.
    pub cache_read: Option<f64>,
    /// Input written to the cache.
    pub cache_write: Option<f64>,
    /// Prices for long requests.
    pub tiers: Option<Vec<CostTier>>,
}

impl CostFields {
    /// These prices, and for those that are not said the others.
    #[must_use]
    pub fn over(self, below: &ModelCost) -> ModelCost {
        ModelCost {
            input: self.input.unwrap_or(below.input),
            output: self.output.unwrap_or(below.output),
            cache_read: self.cache_read.unwrap_or(below.cache_read),
            cache_write: self.cache_write.unwrap_or(below.cache_write),
            tiers: self.tiers.or_else(|| below.tiers.clone()),
        }
    }
}

impl ModelFields {
    /// Writes whole numbers inside the objects that are only passed on as JavaScript does, without a fraction.
    pub fn normalize(&mut self) {
        let maps = [
            &mut self.thinking_level_map,
            &mut self.input_limits,
            &mut self.prompt_cache,
            &mut self.sampling_params,
            &mut self.sampling_params_by_thinking_level,
            &mut self.compat,
        ];
        maps.into_iter().flatten().for_each(number::normalize_map);
    }
}

/// An object whose keys stay in the order of the file. A key that comes twice counts with its last value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InOrder<T>(Vec<(String, T)>);

impl<T> InOrder<T> {
    /// The members in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Whether there is no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Default for InOrder<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> IntoIterator for InOrder<T> {
    type Item = (String, T);
    type IntoIter = std::vec::IntoIter<(String, T)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for InOrder<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(Vec<(String, T)>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = Vec<(String, T)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self::Value, A::Error> {
                while let Some(key) = map.next_key::<String>()? {
                    let value = map.next_value()?;
                    self.0.push((key, value));
                }
                Ok(self.0)
            }
        }

        let members = deserializer.deserialize_map(Members(Vec::new()))?;
        let mut last = std::collections::HashMap::with_capacity(members.len());
        let mut kept: Vec<(String, T)> = Vec::with_capacity(members.len());
        for (key, value) in members {
            match last.get(&key) {
                Some(&at) => {
                    let place: &mut (String, T) = &mut kept[at];
                    place.1 = value;
                }
                None => {
                    last.insert(key.clone(), kept.len());
                    kept.push((key, value));
                }
            }
        }
        Ok(Self(kept))
    }
}

#[cfg(feature = "schema")]
impl<T: schemars::JsonSchema> schemars::JsonSchema for InOrder<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("MapOf{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        std::collections::BTreeMap::<String, T>::json_schema(generator)
    }
}

/// A count of tokens; other programs write whole numbers as floats too.
fn tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let whole = |float: f64| (float >= 0.0 && float.fract() == 0.0 && float < 1e15).then_some(float as u64);
    match &value {
        Value::Null => Ok(None),
        Value::Number(number) => number
            .as_u64()
            .or_else(|| number.as_f64().and_then(whole))
            .map(Some)
            .ok_or_else(|| de::Error::custom("expected a whole number of tokens, 0 or more")),
        _ => Err(de::Error::custom("expected a whole number of tokens")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_and_the_last_of_a_key_counts() {
        let order: InOrder<u32> = serde_json::from_str(r#"{"b":1,"a":2,"b":3}"#).unwrap();
        assert_eq!(order.iter().collect::<Vec<_>>(), [("b", &3), ("a", &2)]);
    }

    #[test]
    fn reads_a_whole_file_with_unknown_keys() {
        let text = r#"{"note":1,"providers":{"local":{"baseUrl":"http://127.0.0.1:1/v1","api":"openai-completions",
            "apiKey":"hush","headers":{"X-Key":"hush"},"extra":{},
            "models":[{"id":"m","contextWindow":8192.0,"cost":{"input":1},"quantisation":"q4"}]}}}"#;
        let file: ModelsFile = serde_json::from_str(text).unwrap();
        assert!(!format!("{file:?}").contains("hush"));
        let (id, provider) = file.providers.into_iter().next().unwrap();
        assert_eq!((id.as_str(), provider.api_key.unwrap().expose()), ("local", "hush"));
        let model = &provider.models.unwrap()[0];
        assert_eq!((model.id.as_str(), model.fields.context_window), ("m", Some(8192)));
    }

    #[test]
    fn errors_do_not_quote_values_that_may_be_secret() {
        let error = serde_json::from_str::<ProviderEntry>(r#"{"apiKey":4711}"#).unwrap_err().to_string();
        assert!(error.starts_with("expected a string") && !error.contains("4711"), "{error}");
        for wrong in ["-1", "1.5", "\"8k\"", "[]"] {
            let text = format!(r#"{{"contextWindow":{wrong}}}"#);
            assert!(serde_json::from_str::<ModelFields>(&text).is_err(), "{wrong}");
        }
    }
}
