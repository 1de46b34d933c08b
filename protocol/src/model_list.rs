//! `list_models`: the models that there are, with a key for them or without.

use serde::{Deserialize, Serialize};

use crate::{model::Model, model_catalogue::CatalogueInfo};

/// The fields of `list_models`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListModelsParams {
    /// Only models whose `provider/id` or name holds this text, in any case; or a glob (`*`, `?`, `[`) over `provider/id`
    /// and the id, where `*` does not cross `/`. Models without a key are then listed too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Whether models without a key are listed also where there is no pattern; default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
}

/// The answer to `list_models`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ModelList {
    /// The models, in the order in which they are offered.
    pub models: Vec<ListedModel>,
    /// The providers of `models`.
    pub providers: Vec<ListedProvider>,
    /// How many models are not listed because no key for them is there.
    pub without_key: u64,
    /// How many models fit but are not listed because agentd does not speak their API; by API.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_spoken: Vec<NotSpoken>,
    /// Where nothing fits: models as `provider/id` that nearly do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub similar: Vec<String>,
    /// Which catalogue the models are from that `models.json` does not add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalogue: Option<CatalogueInfo>,
    /// What is wrong with `models.json`, `auth.json` or the stored catalogue: some of what they say does not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A model, and whether it can be used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListedModel {
    /// The model.
    #[serde(flatten)]
    pub model: Model,
    /// Whether a key for its provider is configured.
    pub has_key: bool,
}

/// A provider of listed models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListedProvider {
    /// The id that models name.
    pub id: String,
    /// A name to show.
    pub name: String,
    /// Whether a key is configured.
    pub has_key: bool,
    /// The environment variables to set for a key, in words; absent for a provider that reads none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
}

/// Models of a wire API that agentd does not speak.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotSpoken {
    /// The API.
    pub api: String,
    /// How many models.
    pub models: u64,
}
