//! Permissions of a session: the policy from all its sources, the gate that asks it before every call, and the questions to the user.

mod diff;
mod file_changes;
mod gate;
mod in_force;
mod moved;
mod planning;
mod question;
mod record;
mod sources;
mod subject;

pub(crate) use file_changes::ChangeGate;
pub(crate) use gate::PermissionGate;
pub(crate) use in_force::GateSources;
pub(crate) use planning::Planning;
pub(crate) use record::{RecordDecision, changed, without_rules};
pub use sources::PermissionOptions;
pub(crate) use sources::{PermissionFault, PermissionSources, session_rules};
