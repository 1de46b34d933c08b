//! What a client may ask that is itself a command of agentd's: a program that a tool or the user's `bash` has started, and
//! whatever that started.

use super::Command;

/// What it takes for such a client to ask for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Nothing: it is about the connection alone, or what it shows is chosen by who asks.
    Connection,
    /// It is about the session that the client is a command of, or one that this session's commands have opened: it looks.
    Look,
    /// It is about a session that commands of the same session have opened: it works in it.
    Work,
    /// It is for the user alone.
    User,
}

impl Command {
    /// What it takes for a client that is a command to ask for this. The one table of it: a command without a row does not
    /// compile.
    #[must_use]
    pub fn access(&self) -> Access {
        match self {
            // What opening takes besides depends on what is opened, and how.
            Self::Hello(_)
            | Self::OpenSession(_)
            | Self::DetachSession(_)
            | Self::UnwatchSessions(_)
            | Self::ListSessions(_)
            | Self::DaemonStatus(_)
            | Self::ListModels(_)
            | Self::GetAuthStatus(_)
            // Calls of its own tools.
            | Self::ToolResponse(_)
            | Self::ToolProgress(_) => Access::Connection,

            Self::GetState(_)
            | Self::GetMessages(_)
            | Self::GetEntries(_)
            | Self::GetTree(_)
            | Self::GetForkMessages(_)
            | Self::GetBranchMessages(_)
            | Self::GetLastAssistantText(_)
            | Self::GetSessionStats(_)
            | Self::GetCommands(_)
            | Self::GetAvailableModels(_)
            | Self::GetFallbackModels(_)
            | Self::GetAvailableThinkingLevels(_)
            | Self::GetArtifact(_)
            | Self::ListArtifacts(_)
            | Self::GetTools(_)
            | Self::GetDiagnostics(_)
            | Self::ExplainSetting(_)
            | Self::AttachSession(_)
            | Self::ListProcesses(_)
            | Self::UnregisterTools(_) => Access::Look,

            Self::Prompt(_)
            | Self::Continue(_)
            | Self::Steer(_)
            | Self::FollowUp(_)
            | Self::Abort(_)
            | Self::AbortAndPrompt(_)
            | Self::AbortRetry(_)
            | Self::ClearQueue(_)
            | Self::NewSession(_)
            | Self::Fork(_)
            | Self::Branch(_)
            | Self::CloneSession(_)
            | Self::NavigateTree(_)
            | Self::SetLabel(_)
            | Self::SetModel(_)
            | Self::CycleModel(_)
            | Self::SetFallbackModels(_)
            | Self::SetThinkingLevel(_)
            | Self::CycleThinkingLevel(_)
            | Self::Compact(_)
            | Self::SetActiveTools(_)
            | Self::RegisterTools(_)
            | Self::Bash(_)
            | Self::AbortBash(_)
            | Self::ExportHtml(_)
            | Self::SetSessionName(_)
            | Self::CloseSession(_) => Access::Work,

            // Files that may be anybody's sessions.
            Self::SwitchSession(_)
            | Self::DeleteSession(_)
            | Self::CleanOutputs(_)
            // News of all sessions.
            | Self::WatchSessions(_)
            // Saved in the user's settings.
            | Self::SetSteeringMode(_)
            | Self::SetFollowUpMode(_)
            | Self::SetInterruptMode(_)
            | Self::SetAutoRetry(_)
            | Self::SetAutoCompaction(_)
            // Models and credentials.
            | Self::UpdateModels(_)
            | Self::SetupLocal(_)
            | Self::Login(_)
            | Self::LoginStart(_)
            | Self::LoginFinish(_)
            | Self::LoginCancel(_)
            | Self::Logout(_)
            // It looks at everything that is the user's.
            | Self::Diagnose(_)
            | Self::Shutdown(_) => Access::User,
        }
    }
}
