//! `list_models`, the known models with or without a key, and `update_models`, another catalogue in place of the built-in one.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::Model;

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
    /// The number of models that are not listed because there is no key for them.
    pub without_key: u64,
    /// The number of models that match but are not listed because agentd does not support their API, by API.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_spoken: Vec<NotSpoken>,
    /// If nothing matches: models, as `provider/id`, that nearly do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub similar: Vec<String>,
    /// The catalogue of the models that `models.json` does not add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalogue: Option<CatalogueInfo>,
    /// Problems of `models.json`, `auth.json` or the stored catalogue: some of their entries have no effect.
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

/// Models of a provider API that agentd does not support.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotSpoken {
    /// The API.
    pub api: String,
    /// The number of models.
    pub models: u64,
}

/// The catalogue of models in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CatalogueInfo {
    /// Its source.
    pub kind: CatalogueKind,
    /// Its origin, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Its date, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// When an update stored it: RFC 3339, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
}

/// In words: `built-in, of 2026-11-21 (pi-ai 1.5.2)`.
impl fmt::Display for CatalogueInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, &self.updated_at) {
            (CatalogueKind::Builtin, _) => f.write_str("built-in")?,
            (CatalogueKind::Updated, None) => f.write_str("updated")?,
            (CatalogueKind::Updated, Some(at)) => write!(f, "updated at {at}")?,
        }
        if let Some(date) = &self.date {
            write!(f, ", of {date}")?;
        }
        match &self.source {
            Some(source) => write!(f, " ({source})"),
            None => Ok(()),
        }
    }
}

/// The source of a catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum CatalogueKind {
    /// It is part of agentd.
    Builtin,
    /// `update_models` stored it.
    Updated,
}

/// The fields of `update_models`: exactly one of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UpdateModelsParams {
    /// The absolute path of a catalogue: a JSON file of at most 64 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The text of a catalogue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// `true`: the stored catalogue is removed, and the built-in one counts again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<bool>,
}

/// The answer to `update_models`: what has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CatalogueUpdate {
    /// The catalogue for all sessions that are opened from now on.
    pub catalogue: CatalogueInfo,
    /// The number of its providers.
    pub providers: u64,
    /// The number of its models.
    pub models: u64,
    /// Added providers.
    pub added_providers: Vec<String>,
    /// Removed providers.
    pub removed_providers: Vec<String>,
    /// The number of added models.
    pub added_models: u64,
    /// The number of removed models.
    pub removed_models: u64,
    /// The number of changed models.
    pub changed_models: u64,
    /// Headers that were left out because they would present agentd as another product.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped_headers: Vec<DroppedHeader>,
    /// The number of models that are kept but not offered because agentd does not support their API, by API.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_spoken: Vec<NotSpoken>,
    /// The number of entries of `otherModels` that were left out: they are not models for conversations.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub other_models: u64,
}

/// A header that was left out of a catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DroppedHeader {
    /// Its name.
    pub name: String,
    /// The number of models that had it.
    pub models: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
