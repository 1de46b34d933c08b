//! Removing long outputs by hand.

use serde::{Deserialize, Serialize};

/// The fields of `clean_outputs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CleanOutputsParams {
    /// Remove outputs that were last changed more days ago than this; 0 for none. Default the setting
    /// `storage.maxArtifactAgeDays`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_than_days: Option<u64>,
    /// Then remove the oldest until the rest takes no more bytes; default the setting `storage.maxArtifactBytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// Only count what would be removed; default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
}

/// The answer to `clean_outputs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CleanedOutputs {
    /// Outputs that were removed, or would be.
    pub removed: u64,
    /// What these take, in bytes.
    pub removed_bytes: u64,
    /// Outputs of sessions that are left.
    pub left: u64,
    /// What these take, in bytes.
    pub left_bytes: u64,
}
