//! Long outputs that are kept beside a session's file: artifacts.

use serde::{Deserialize, Serialize};

/// The fields of `get_artifact`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GetArtifactParams {
    /// The id, as `details.meta.artifactId` of a tool's result has it.
    pub artifact_id: String,
    /// The byte to begin at; default 0. To go on, `nextOffset` of the answer before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// How many bytes at most: from 4 to 1048576 (1 MiB), others are moved to the nearest of these. Default 262144
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
    /// Where this part begins, in bytes.
    pub offset: u64,
    /// The part as text; U+FFFD stands for bytes that are not UTF-8. No character is split between parts.
    pub data: String,
    /// Where the next part begins, in bytes.
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
