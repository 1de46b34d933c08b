//! The setting `ssh`: the tool by which the model runs commands on other hosts.

use serde::{Deserialize, Serialize};

/// The tool `ssh`, and `ssh://HOST/PATH` in `read` and `write`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct SshSettings {
    /// Whether sessions have the tool, where hosts are configured; default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// What becomes of host keys that `known_hosts` does not have; default `strict`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "strict")))]
    pub host_keys: Option<SshHostKeys>,
}

/// What becomes of the key of a host that `known_hosts` does not have. A key that differs from the known one is refused in both cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SshHostKeys {
    /// The connection is refused.
    #[default]
    Strict,
    /// The key is added to `known_hosts`.
    AcceptNew,
}
