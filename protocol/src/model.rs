//! Models as clients see them, and how hard they are asked to think.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::number;

/// The amount of reasoning requested of a model, weakest first. A model has some of the levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ThinkingLevel {
    /// No reasoning.
    Off,
    /// The least the model offers.
    Minimal,
    /// Little.
    Low,
    /// The default.
    Medium,
    /// Much.
    High,
    /// More than `high`; only where the model maps it.
    Xhigh,
    /// The most; only where the model maps it.
    Max,
}

impl ThinkingLevel {
    /// Every level, weakest first.
    pub const ALL: [Self; 7] =
        [Self::Off, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::Xhigh, Self::Max];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// The level with this name on the wire, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }
}

/// The provider and id of a model.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelName {
    /// The provider.
    pub provider: String,
    /// The id of the model.
    pub id: String,
}

/// A model that prompts can be sent to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// The id that the provider knows the model by.
    pub id: String,
    /// A name to show.
    pub name: String,
    /// The wire API spoken to it, such as `openai-completions`.
    pub api: String,
    /// The provider, which credentials belong to.
    pub provider: String,
    /// Where requests go; clients are told it without a password or a key in it. For the `scripted` API: the path of the
    /// script file.
    #[serde(default, serialize_with = "crate::shown_url::serialize")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub base_url: String,
    /// Whether the model can reason.
    #[serde(default)]
    pub reasoning: bool,
    /// The provider's names of the thinking levels; `null` for a level that does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level_map: Option<Map<String, Value>>,
    /// The kinds of content in a prompt: `text`, `image`.
    #[serde(default)]
    pub input: Vec<String>,
    /// The provider's limits of images and requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_limits: Option<Map<String, Value>>,
    /// Prices.
    #[serde(default)]
    pub cost: ModelCost,
    /// The seconds that the provider keeps a prompt cached: `short`, `long`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_cache: Option<Map<String, Value>>,
    /// Size of the context window in tokens; 0 if unknown.
    #[serde(default, deserialize_with = "number::lenient_u64")]
    pub context_window: u64,
    /// The most tokens of one answer.
    #[serde(default, deserialize_with = "number::lenient_u64")]
    pub max_tokens: u64,
    /// Headers of every request to the model, as far as they are no secret: those of the built-in catalogue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Map<String, Value>>,
    /// Switches for what a server does differently from the API it imitates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compat: Option<Map<String, Value>>,
    /// Fields merged into each request as they are, such as `temperature`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling_params: Option<Map<String, Value>>,
    /// The same for single thinking levels, by the level's name; over `samplingParams`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling_params_by_thinking_level: Option<Map<String, Value>>,
    /// Members of a catalogue that agentd does not know: for clients to see.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Prices in US dollars per million tokens.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ModelCost {
    /// Input that was not in the provider's cache.
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub input: f64,
    /// Output, reasoning included.
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub output: f64,
    /// Input read from the cache.
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub cache_read: f64,
    /// Input written to the cache.
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub cache_write: f64,
    /// Prices for long requests: the tier with the highest limit below the input size applies to the whole request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tiers: Option<Vec<CostTier>>,
}

/// Prices of a request whose input is larger than a limit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct CostTier {
    /// The limit in tokens of input, cached ones included.
    #[serde(deserialize_with = "number::lenient_u64")]
    pub input_tokens_above: u64,
    /// As in [`ModelCost`].
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub input: f64,
    /// As in [`ModelCost`].
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub output: f64,
    /// As in [`ModelCost`].
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub cache_read: f64,
    /// As in [`ModelCost`].
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub cache_write: f64,
}

impl Model {
    /// What it is called.
    #[must_use]
    pub fn name(&self) -> ModelName {
        ModelName { provider: self.provider.clone(), id: self.id.clone() }
    }

    /// The placeholder where no usable model is configured: prompts to it fail with advice.
    #[must_use]
    pub fn placeholder() -> Self {
        Self {
            id: "unknown".into(),
            name: "unknown".into(),
            api: "unknown".into(),
            provider: "unknown".into(),
            base_url: String::new(),
            reasoning: false,
            thinking_level_map: None,
            input: Vec::new(),
            input_limits: None,
            cost: ModelCost::default(),
            prompt_cache: None,
            context_window: 0,
            max_tokens: 0,
            headers: None,
            compat: None,
            sampling_params: None,
            sampling_params_by_thinking_level: None,
            other: Map::new(),
        }
    }

    /// Whether this is [`Model::placeholder`].
    #[must_use]
    pub fn is_placeholder(&self) -> bool {
        self.provider == "unknown" && self.id == "unknown"
    }

    /// Whether a request may hold images.
    #[must_use]
    pub fn sees_images(&self) -> bool {
        self.input.iter().any(|kind| kind == "image")
    }

    /// The thinking levels that the model has, weakest first: only `off` without reasoning; else `off` to `high`
    /// unless mapped to `null`, and `xhigh` and `max` only when mapped to a name.
    #[must_use]
    pub fn thinking_levels(&self) -> Vec<ThinkingLevel> {
        if !self.reasoning {
            return vec![ThinkingLevel::Off];
        }
        let mapped = |level: ThinkingLevel| self.thinking_level_map.as_ref()?.get(level.as_str());
        ThinkingLevel::ALL
            .into_iter()
            .filter(|level| match level {
                ThinkingLevel::Xhigh | ThinkingLevel::Max => mapped(*level).is_some_and(Value::is_string),
                _ => !mapped(*level).is_some_and(Value::is_null),
            })
            .collect()
    }

    /// The level that the model has for a wish: the wish itself, else the next higher one, else the next lower one; for
    /// a name that is no level (`None`), the first that the model has.
    #[must_use]
    pub fn clamp_thinking(&self, wish: Option<ThinkingLevel>) -> ThinkingLevel {
        let levels = self.thinking_levels();
        let first = levels.first().copied().unwrap_or(ThinkingLevel::Off);
        let Some(wish) = wish else { return first };
        levels
            .iter()
            .find(|level| **level >= wish)
            .or_else(|| levels.iter().rev().find(|level| **level < wish))
            .copied()
            .unwrap_or(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(reasoning: bool, map: Value) -> Model {
        Model { reasoning, thinking_level_map: map.as_object().cloned(), ..Model::placeholder() }
    }

    #[test]
    fn levels_follow_the_map() {
        use ThinkingLevel::*;
        assert_eq!(model(false, Value::Null).thinking_levels(), [Off]);
        assert_eq!(model(true, Value::Null).thinking_levels(), [Off, Minimal, Low, Medium, High]);
        let mapped = model(true, serde_json::json!({"off": null, "minimal": null, "xhigh": "xhigh"}));
        assert_eq!(mapped.thinking_levels(), [Low, Medium, High, Xhigh]);
        assert_eq!(mapped.clamp_thinking(Some(Off)), Low);
        assert_eq!(mapped.clamp_thinking(Some(Max)), Xhigh);
        assert_eq!(mapped.clamp_thinking(None), Low);
        assert_eq!(model(false, Value::Null).clamp_thinking(Some(High)), Off);
    }
}
