//! Permissions of a session on the wire: changing them, and questions about calls.

use serde::{Deserialize, Serialize};

use crate::{
    session::PermissionState,
    settings::{PermissionPreset, PermissionRule, PermissionSettings, TimeoutDecision},
};

/// The fields of `set_permissions`. What is absent stays as it is; without any the answer only tells the permissions in force.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SetPermissionsParams {
    /// The preset, in the place of that of the settings and flags. A stricter one of the project still counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<PermissionPreset>,
    /// The rules of the session, in the place of earlier ones and of those that answers gave it. The rules of the settings, of the
    /// project and of flags stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<PermissionRule>>,
    /// The decision when nobody answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<TimeoutDecision>,
    /// The time that a question waits, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_timeout_ms: Option<u64>,
    /// The client that sent it. Set by the connection.
    #[serde(skip)]
    pub client: String,
}

impl SetPermissionsParams {
    /// What is to be changed.
    #[must_use]
    pub fn changes(self) -> PermissionSettings {
        let Self { preset, rules, on_timeout, ask_timeout_ms, client: _ } = self;
        PermissionSettings { preset, ask_timeout_ms, on_timeout, rules }
    }
}

/// The session's permissions were changed by a command; only after `hello`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionsChanged {
    /// The permissions in force.
    pub permissions: PermissionState,
    /// The client that changed them.
    pub by: String,
}
