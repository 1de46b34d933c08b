//! The client side of the protocol, with faults of this program.

pub(crate) use agentd_rpc::{
    Abort, AbortScoped, AttachSession, Call, CallError, CleanOutputs, Client, CloneSession, CloseSession,
    DeleteSession, Diagnose, DiffCheckpoint, EventLine, ExplainSetting, FollowUp, Fork, GetArtifact,
    GetAuthStatus, GetAvailableModels, GetDaemonStatus, GetDiagnostics, GetEntries, GetMessages, GetState,
    GetTools, Hello, IncomingEvents, ListArtifacts, ListModels, ListProcesses, ListSessions, Login,
    LoginFinish, LoginStart, Logout, OpenSession, PermissionResponse, Prompt, RegisterTools,
    RestoreCheckpoint, SetActiveTools, SetModel, SetPermissions, SetSessionName, SetupLocal, Shutdown, Steer,
    ToolResponse, UpdateModels, WatchSessions,
};

use crate::exit::{Exit, Fault};

/// The end of a program whose call has no result.
impl From<&CallError> for Fault {
    fn from(error: &CallError) -> Self {
        match error {
            CallError::Refused { error, hint, .. } => {
                let hint = hint.as_deref().map(|hint| format!("\n{hint}")).unwrap_or_default();
                Self::new(Exit::Failed, format!("Error: {error}{hint}"))
            }
            CallError::TurnedAway { .. } | CallError::Ended { .. } | CallError::Unreadable { .. } => {
                Self::new(Exit::NoDaemon, format!("agentctl: {error}"))
            }
        }
    }
}

impl From<CallError> for Fault {
    fn from(error: CallError) -> Self {
        Self::from(&error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_keep_their_hint() {
        let refused =
            CallError::Refused { error: "No key".into(), code: None, hint: Some("Do this.".into()) };
        assert_eq!(Fault::from(refused), Fault::new(Exit::Failed, "Error: No key\nDo this."));
        assert_eq!(Fault::from(CallError::Ended { command: "x" }).exit, Exit::NoDaemon);
    }
}
