//! The setting `undo`: keeping what tool calls change.

use serde::{Deserialize, Serialize};

/// What is kept of the changes that tool calls make, so that they can be undone. Only read from the user's settings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct UndoSettings {
    /// Whether changes of tool calls are kept (as `--undo on`); default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub enabled: Option<bool>,
    /// The longest file that is kept, in bytes; default 67108864 (64 MiB). A longer one is skipped, and the checkpoint says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 67_108_864)))]
    pub max_file_bytes: Option<u64>,
    /// The most bytes on disk for all that is kept; default 4294967296 (4 GiB). The oldest checkpoints are removed first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 4_294_967_296_u64)))]
    pub max_total_bytes: Option<u64>,
    /// The age after which a checkpoint is removed, in days; default 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 30)))]
    pub max_age_days: Option<u64>,
    /// The most files and folders of a session's folder for which shell commands can be undone; default 200000. In a larger
    /// folder only the changes of file tools are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 200_000)))]
    pub max_files: Option<u64>,
    /// Whether files that `.gitignore` and `.ignore` files name are left out of what is kept of shell commands; default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub respect_ignore_files: Option<bool>,
}
