//! `.agentd/policy.json`: what a project wants to be stricter about.

use agentd_protocol::settings::{PermissionPreset, PermissionRule};
use serde::Deserialize;

/// A project's policy. It counts with the project's trust, and only where it is stricter than the user's.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ProjectPolicy {
    /// The verdict where no rule matches; the stricter one of this and the user's counts.
    pub preset: Option<PermissionPreset>,
    /// Rules that ask or refuse. One that allows does not count.
    pub rules: Vec<PermissionRule>,
}

/// A file of rules that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ProjectPolicyError(#[from] serde_json::Error);

impl ProjectPolicy {
    /// Of the value of such a file.
    ///
    /// # Errors
    /// What is wrong.
    pub fn of(value: serde_json::Value) -> Result<Self, ProjectPolicyError> {
        Ok(serde_json::from_value(value)?)
    }
}
