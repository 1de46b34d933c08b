//! Permissions as text: decisions about calls, changes by commands.

use agentd_protocol::{
    event::{DecisionMaker, PermissionDecision, PermissionVerdict},
    permissions::PermissionsChanged,
};

use crate::one_line;

/// What was decided about a call that was refused or asked about.
pub fn decided(decision: &PermissionDecision) -> String {
    let tool = one_line(&decision.tool);
    let reason = one_line(&decision.reason);
    let by = match (decision.by, &decision.client) {
        (DecisionMaker::User, Some(client)) => format!(" by {}", one_line(client)),
        (DecisionMaker::User, None) => " by the user".to_owned(),
        (DecisionMaker::Policy, _) => String::new(),
        (DecisionMaker::Timeout, _) => ", since nobody answered in time".to_owned(),
        (DecisionMaker::Nobody, _) => ", since nobody is there to be asked".to_owned(),
    };
    let verdict = match decision.decision {
        PermissionVerdict::Allowed => "Allowed",
        PermissionVerdict::Denied => "Denied",
    };
    format!("{verdict}{by}: {tool} ({reason})")
}

/// The line about permissions that a client changed.
pub fn permissions_changed(changed: &PermissionsChanged) -> String {
    let state = &changed.permissions;
    let rules = match state.session_rules.len() {
        0 => String::new(),
        1 => ", 1 rule of the session".to_owned(),
        rules => format!(", {rules} rules of the session"),
    };
    format!("Permissions changed by {}: {}{rules}", one_line(&changed.by), state.preset.as_str())
}
