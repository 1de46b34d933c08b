//! Which environment variables the programs get that a session starts.

use serde::{Deserialize, Serialize};

/// Which environment variables commands of the tool `bash` and of the user, and `ssh`, get. Names of variables, with `*` for any part of
/// one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ChildEnvironmentSettings {
    /// What they do not get, besides the keys of model providers, which they never get unasked; default none. With `*`, only
    /// what `pass` names stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub withhold: Option<Vec<String>>,
    /// What they get all the same, and comes before `withhold`; default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = [])))]
    pub pass: Option<Vec<String>>,
}
