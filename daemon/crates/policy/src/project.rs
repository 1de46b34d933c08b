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

/// A project's policy that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProjectPolicyError {
    /// It is no object, or says nothing: most likely the file was cut off.
    #[error("expected {{\"preset\": …, \"rules\": […]}}, with one of these at least")]
    Nothing,
    /// Something in it cannot be read.
    #[error("{0}")]
    Wrong(#[from] serde_json::Error),
}

impl ProjectPolicy {
    /// Of the value of such a file.
    ///
    /// # Errors
    /// What is wrong.
    pub fn of(value: serde_json::Value) -> Result<Self, ProjectPolicyError> {
        if value.as_object().is_none_or(serde_json::Map::is_empty) {
            return Err(ProjectPolicyError::Nothing);
        }
        Ok(serde_json::from_value(value)?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_says_nothing_is_no_policy() {
        for value in [json!({}), json!([]), json!(["read-only", []]), Value::Null, json!("ask")] {
            assert!(matches!(ProjectPolicy::of(value), Err(ProjectPolicyError::Nothing)));
        }
        let policy = ProjectPolicy::of(json!({ "preset": "ask" })).unwrap();
        assert_eq!((policy.preset, policy.rules.len()), (Some(PermissionPreset::Ask), 0));
        assert!(matches!(ProjectPolicy::of(json!({ "rule": [] })), Err(ProjectPolicyError::Wrong(_))));
    }
}
