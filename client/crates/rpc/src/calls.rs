//! The commands that `agentctl` sends, each with the types of its fields and its answer.

use agentd_protocol::{
    agent_mode::{ModeState, SetModeParams},
    capabilities::{CapabilityList, GetCapabilitiesParams},
    checkpoints::{CheckpointDiff, DiffCheckpointParams, RestoreCheckpointParams, RestoredCheckpoint},
    client_tools::{RegisterToolsParams, RegisteredTools, ToolResponseParams},
    command::{
        AbortParams, AbortReceipt, Accepted, BashOutput, BashParams, Cancelled, ClearedQueue, CompactParams,
        Entries, ExportHtmlParams, Exported, ForkParams, Forked, GetEntriesParams, Levels, Messages, Models,
        NavigateTreeParams, Navigated, NoParams, PromptParams, QueueParams, SetModelParams,
        SetSessionNameParams, SetThinkingLevelParams,
    },
    compaction::CompactionResult,
    credentials::{
        self, AuthStatus, AuthStatusParams, LoginFinishParams, LoginParams, LoginStartParams, LoginStarted,
        LogoutParams,
    },
    daemon::{
        self, AttachSessionParams, AttachedSession, CloseSessionParams, HelloParams, ListProcessesParams,
        ListSessionsParams, OpenSessionParams, OpenedSession, ProcessList, SessionList, SessionParams,
        ShutdownParams, WatchSessionsParams, WatchedSessions,
    },
    doctor::{Diagnosis, LocalSetup, SetupLocalParams},
    explain::{ExplainSettingParams, SettingExplanation},
    extensions::ExtensionList,
    jobs::{self, JobInfo, JobList, JobOutputParams, JobParams},
    mcp::{
        self, McpLoginFinishParams, McpLoginStartParams, McpLoginStarted, McpLogoutParams, McpServers,
        ReconnectMcpServerParams,
    },
    model::Model,
    model_list::{CatalogueUpdate, ListModelsParams, ModelList, UpdateModelsParams},
    permissions::{PermissionResponseParams, SetPermissionsParams},
    prompt_history::{DeleteHistoryParams, DeletedHistory, PromptHistoryList, SearchHistoryParams},
    resources::{Diagnostics, SlashCommands},
    session::{PermissionState, SessionState, SessionStats},
    storage::{ArtifactList, ArtifactPart, CleanOutputsParams, CleanedOutputs, GetArtifactParams},
    tool_list::{ActiveTools, SetActiveToolsParams, ToolList},
};
use serde::{Serialize, de::DeserializeOwned};

/// A command, by the types of its fields and its answer.
pub trait Call {
    /// The `type` of the command's line.
    const NAME: &'static str;
    /// The fields of the command.
    type Params: Serialize;
    /// `data` of the response; `()` where there is none.
    type Data: DeserializeOwned;
}

macro_rules! calls {
    ($($name:ident = $wire:literal : $params:ty => $data:ty),* $(,)?) => {
        $(
            #[doc = concat!("The command `", $wire, "`.")]
            pub struct $name;

            impl Call for $name {
                const NAME: &'static str = $wire;
                type Params = $params;
                type Data = $data;
            }
        )*

        #[cfg(test)]
        const CALLED: &[&str] = &[$($wire),*];
    };
}

calls! {
    Abort = "abort": NoParams => Option<AbortReceipt>,
    AbortBash = "abort_bash": NoParams => (),
    AbortScoped = "abort": AbortParams => AbortReceipt,
    AttachSession = "attach_session": AttachSessionParams => AttachedSession,
    Bash = "bash": BashParams => BashOutput,
    ClearQueue = "clear_queue": NoParams => ClearedQueue,
    CloneSession = "clone": NoParams => Cancelled,
    Compact = "compact": CompactParams => CompactionResult,
    CleanOutputs = "clean_outputs": CleanOutputsParams => CleanedOutputs,
    CloseSession = "close_session": CloseSessionParams => (),
    DetachSession = "detach_session": SessionParams => (),
    DiffCheckpoint = "diff_checkpoint": DiffCheckpointParams => CheckpointDiff,
    RegisterTools = "register_tools": RegisterToolsParams => RegisteredTools,
    RestoreCheckpoint = "restore_checkpoint": RestoreCheckpointParams => RestoredCheckpoint,
    DeleteSession = "delete_session": SessionParams => (),
    Diagnose = "diagnose": NoParams => Diagnosis,
    ExplainSetting = "explain_setting": ExplainSettingParams => SettingExplanation,
    ExportHtml = "export_html": ExportHtmlParams => Exported,
    FollowUp = "follow_up": QueueParams => Accepted,
    Fork = "fork": ForkParams => Forked,
    SearchHistory = "search_history": SearchHistoryParams => PromptHistoryList,
    DeleteHistory = "delete_history": DeleteHistoryParams => DeletedHistory,
    GetArtifact = "get_artifact": GetArtifactParams => ArtifactPart,
    ListArtifacts = "list_artifacts": NoParams => ArtifactList,
    GetAuthStatus = "get_auth_status": AuthStatusParams => AuthStatus,
    GetAvailableThinkingLevels = "get_available_thinking_levels": NoParams => Levels,
    GetCapabilities = "get_capabilities": GetCapabilitiesParams => CapabilityList,
    GetCommands = "get_commands": NoParams => SlashCommands,
    GetSessionStats = "get_session_stats": NoParams => SessionStats,
    GetDaemonStatus = "daemon_status": NoParams => daemon::DaemonStatus,
    GetAvailableModels = "get_available_models": NoParams => Models,
    Hello = "hello": HelloParams => daemon::Hello,
    GetDiagnostics = "get_diagnostics": NoParams => Diagnostics,
    GetEntries = "get_entries": GetEntriesParams => Entries,
    GetMessages = "get_messages": NoParams => Messages,
    ListJobs = "list_jobs": NoParams => JobList,
    JobOutput = "job_output": JobOutputParams => jobs::JobOutput,
    KillJob = "kill_job": JobParams => JobInfo,
    ListProcesses = "list_processes": ListProcessesParams => ProcessList,
    ListSessions = "list_sessions": ListSessionsParams => SessionList,
    ListModels = "list_models": ListModelsParams => ModelList,
    OpenSession = "open_session": OpenSessionParams => OpenedSession,
    ListExtensions = "list_extensions": NoParams => ExtensionList,
    RestartExtensions = "restart_extensions": NoParams => ExtensionList,
    GetMcpServers = "get_mcp_servers": NoParams => McpServers,
    McpLoginFinish = "mcp_login_finish": McpLoginFinishParams => McpServers,
    McpLoginStart = "mcp_login_start": McpLoginStartParams => McpLoginStarted,
    McpLogout = "mcp_logout": McpLogoutParams => mcp::McpLogout,
    ReconnectMcpServer = "reconnect_mcp_server": ReconnectMcpServerParams => McpServers,
    GetTools = "get_tools": NoParams => ToolList,
    GetState = "get_state": NoParams => SessionState,
    Login = "login": LoginParams => credentials::Login,
    LoginFinish = "login_finish": LoginFinishParams => credentials::Login,
    LoginStart = "login_start": LoginStartParams => LoginStarted,
    Logout = "logout": LogoutParams => credentials::Logout,
    NavigateTree = "navigate_tree": NavigateTreeParams => Navigated,
    PermissionResponse = "permission_response": PermissionResponseParams => (),
    Prompt = "prompt": PromptParams => Accepted,
    SetActiveTools = "set_active_tools": SetActiveToolsParams => ActiveTools,
    SetMode = "set_mode": SetModeParams => ModeState,
    SetModel = "set_model": SetModelParams => Model,
    SetSessionName = "set_session_name": SetSessionNameParams => (),
    SetThinkingLevel = "set_thinking_level": SetThinkingLevelParams => (),
    SetPermissions = "set_permissions": SetPermissionsParams => PermissionState,
    Shutdown = "shutdown": ShutdownParams => (),
    SetupLocal = "setup_local": SetupLocalParams => LocalSetup,
    Steer = "steer": QueueParams => Accepted,
    ToolResponse = "tool_response": ToolResponseParams => (),
    UpdateModels = "update_models": UpdateModelsParams => CatalogueUpdate,
    WatchSessions = "watch_sessions": WatchSessionsParams => WatchedSessions,
}

#[cfg(test)]
mod tests {
    use agentd_protocol::command::Command;

    use super::*;

    #[test]
    fn every_call_is_a_command_of_the_protocol() {
        for name in CALLED {
            assert!(Command::NAMES.contains(name), "{name}");
        }
    }
}
