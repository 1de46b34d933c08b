//! `update_models`: another catalogue of models in the place of the built-in one.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model_list::NotSpoken;

/// Which catalogue of models is in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CatalogueInfo {
    /// Where it comes from.
    pub kind: CatalogueKind,
    /// What it says about its origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What it says about its date.
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

/// Where a catalogue comes from.
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
    /// The catalogue that counts now, for all sessions that are opened from now on.
    pub catalogue: CatalogueInfo,
    /// How many providers it has.
    pub providers: u64,
    /// How many models it has.
    pub models: u64,
    /// Providers that were not there before.
    pub added_providers: Vec<String>,
    /// Providers that are no longer there.
    pub removed_providers: Vec<String>,
    /// How many models were not there before.
    pub added_models: u64,
    /// How many models are no longer there.
    pub removed_models: u64,
    /// How many models have other properties than before.
    pub changed_models: u64,
    /// Headers that were left out because they would present agentd as another product.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped_headers: Vec<DroppedHeader>,
    /// How many models are kept but not offered because agentd does not speak their API; by API.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_spoken: Vec<NotSpoken>,
    /// How many entries of `otherModels` were left out: no models for conversations.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub other_models: u64,
}

/// A header that was left out of a catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DroppedHeader {
    /// Its name.
    pub name: String,
    /// How many models had it.
    pub models: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
