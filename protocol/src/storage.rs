//! Stored outputs: artifacts, the long outputs that are kept beside a session's file, and their removal.

use serde::{Deserialize, Serialize};

/// The fields of `get_artifact`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GetArtifactParams {
    /// The id, as `details.meta.artifactId` of a tool's result has it.
    pub artifact_id: String,
    /// The byte to begin at; default 0. To continue, the `nextOffset` of the answer before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The most bytes: from 4 to 1048576 (1 MiB), others are moved to the nearest of these. Default 262144
    /// (256 KiB).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 262_144)))]
    pub limit: Option<u64>,
}

/// A part of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ArtifactPart {
    /// The id.
    pub artifact_id: String,
    /// The file, on the daemon's machine.
    pub path: String,
    /// The length of the whole, in bytes. It grows while the command runs.
    pub total_bytes: u64,
    /// The offset of this part in bytes.
    pub offset: u64,
    /// The part as text; U+FFFD stands for bytes that are not UTF-8. No character is split between parts.
    pub data: String,
    /// The offset of the next part in bytes.
    pub next_offset: u64,
    /// Whether nothing follows, as long as the artifact does not grow.
    pub eof: bool,
}

/// An artifact in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ArtifactInfo {
    /// The id.
    pub artifact_id: String,
    /// The file, on the daemon's machine.
    pub path: String,
    /// Its length, in bytes.
    pub total_bytes: u64,
}

/// The answer to `list_artifacts`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArtifactList {
    /// The artifacts of the session, by their ids.
    pub artifacts: Vec<ArtifactInfo>,
}

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
    /// Their size in bytes.
    pub removed_bytes: u64,
    /// Outputs that are left.
    pub left: u64,
    /// Their size in bytes.
    pub left_bytes: u64,
}
