//! The fields and answers of commands about a session's model and thinking level.

use serde::{Deserialize, Serialize};

use crate::{
    model::{Model, ThinkingLevel},
    session::QueueMode,
};

/// The fields of `set_model`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SetModelParams {
    /// The provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
}

/// The answer to `cycle_model`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CycledModel {
    /// The model.
    pub model: Model,
    /// The thinking level that goes with it.
    pub thinking_level: ThinkingLevel,
    /// Whether the models to cycle through were limited by `--models` or the settings.
    pub is_scoped: bool,
}

/// The answer to `get_available_models`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Models {
    /// The models.
    pub models: Vec<Model>,
}

/// The fields of `set_thinking_level`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetThinkingLevelParams {
    /// The level's name.
    pub level: String,
}

/// The answer to `cycle_thinking_level`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CycledLevel {
    /// The level.
    pub level: ThinkingLevel,
}

/// The answer to `get_available_thinking_levels`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Levels {
    /// The levels, weakest first.
    pub levels: Vec<ThinkingLevel>,
}

/// The fields of `set_steering_mode` and `set_follow_up_mode`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueModeParams {
    /// The mode.
    pub mode: QueueMode,
}

/// The fields of `set_fallback_models`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetFallbackModelsParams {
    /// Models as `--models` names them, in the order in which they are asked; an empty list for none.
    pub models: Vec<String>,
}

/// The answer to `set_fallback_models` and `get_fallback_models`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FallbackModels {
    /// The models as they were named.
    pub models: Vec<String>,
    /// The models that the names currently mean, without those that have no credentials.
    pub resolved: Vec<FallbackModel>,
    /// Problems of the names, a sentence each.
    pub warnings: Vec<String>,
}

/// A model that is asked when the chosen one fails for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FallbackModel {
    /// The provider.
    pub provider: String,
    /// The id of the model.
    pub id: String,
    /// The thinking level that its name pins; absent where it goes on with the session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<ThinkingLevel>,
}
