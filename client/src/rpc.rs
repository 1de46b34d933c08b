//! The client side of the protocol, with faults of this program.

use std::borrow::Cow;

pub(crate) use agentd_rpc::{
    Abort, AbortScoped, AttachSession, Call, CallError, CleanOutputs, Client, CloneSession, CloseSession,
    DeleteHistory, DeleteSession, Diagnose, DiffCheckpoint, EventLine, ExplainSetting, FollowUp, Fork,
    GetArtifact, GetAuthStatus, GetAvailableModels, GetCapabilities, GetDaemonStatus, GetDiagnostics,
    GetEntries, GetMcpServers, GetMessages, GetState, GetTools, Hello, IncomingEvents, JobOutput, KillJob,
    ListArtifacts, ListExtensions, ListJobs, ListModels, ListProcesses, ListSessions, Login, LoginFinish,
    LoginStart, Logout, McpLoginFinish, McpLoginStart, McpLogout, OpenSession, PermissionResponse, Prompt,
    ReconnectMcpServer, RegisterTools, RestartExtensions, RestoreCheckpoint, SearchHistory, SetActiveTools,
    SetModel, SetPermissions, SetSessionName, SetupLocal, Shutdown, Steer, ToolResponse, UpdateModels,
    WatchSessions,
};

use crate::exit::{Exit, Fault};

/// The hints of agentd that name its own flags, and what they are here.
const HINTS: [(&str, &str); 3] = [
    ("Use --list-models to see", "Use `agentctl models` to see"),
    ("copy it with --fork ", "copy it with `agentctl fork --cwd .` "),
    (", or --fork with the session file", ""),
];

/// A message of agentd with the verbs of this program in the place of flags that only agentd has.
pub(crate) fn with_our_verbs(text: &str) -> Cow<'_, str> {
    HINTS.iter().fold(Cow::Borrowed(text), |text, (hint, ours)| {
        if text.contains(hint) { text.replace(hint, ours).into() } else { text }
    })
}

/// The end of a program whose call has no result.
impl From<&CallError> for Fault {
    fn from(error: &CallError) -> Self {
        match error {
            CallError::Refused { error, hint, .. } => {
                let hint = hint.as_deref().map(|hint| format!("\n{hint}")).unwrap_or_default();
                Self::new(Exit::Failed, format!("Error: {}{hint}", with_our_verbs(error)))
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
        let error = "Model \"x\" not found. Use --list-models to see available models.".into();
        let unknown = CallError::Refused { error, code: None, hint: None };
        let said = "Error: Model \"x\" not found. Use `agentctl models` to see available models.";
        assert_eq!(Fault::from(unknown), Fault::new(Exit::Failed, said));
        assert_eq!(Fault::from(CallError::Ended { command: "x" }).exit, Exit::NoDaemon);
    }
}
