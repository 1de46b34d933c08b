//! What long outputs may take of the disk.

use serde::{Deserialize, Serialize};

/// What long outputs of commands may take of the disk. What is over it is removed at the daemon's start and when more was
/// written, oldest first; never an output that is still being written, and never a message. Only read from the user's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct StorageSettings {
    /// How much the long outputs of all sessions may take together, in bytes; 0 for no limit. Default 10737418240 (10 GiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 10_737_418_240_u64)))]
    pub max_artifact_bytes: Option<u64>,
    /// How many days a long output is kept after its last change; 0 for ever. Default 90.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 90)))]
    pub max_artifact_age_days: Option<u64>,
    /// How much of the output of one command goes to a file, in bytes from its beginning; the command goes on, and the model is
    /// told. 0 for no limit; default 1073741824 (1 GiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 1_073_741_824)))]
    pub max_output_bytes: Option<u64>,
}
