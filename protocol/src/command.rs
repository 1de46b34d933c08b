//! The command table: what a client can ask, with what fields, and what comes back.

mod access;
mod params;
mod tree;

use serde::{Deserialize, Serialize};

pub use self::{access::Access, params::*, tree::*};

use crate::{
    artifact::{ArtifactList, ArtifactPart, GetArtifactParams},
    client_tools::{
        RegisterToolsParams, RegisteredTools, ToolProgressParams, ToolResponseParams, UnregisterToolsParams,
        UnregisteredTools,
    },
    compaction::CompactionResult,
    credentials::{
        AuthStatus, AuthStatusParams, Login, LoginCancelParams, LoginCancelled, LoginFinishParams,
        LoginParams, LoginStartParams, LoginStarted, Logout, LogoutParams,
    },
    daemon::{
        AttachSessionParams, AttachedSession, CloseSessionParams, DaemonStatus, Hello, HelloParams,
        ListProcessesParams, ListSessionsParams, OpenSessionParams, OpenedSession, ProcessList, SessionList,
        SessionParams, ShutdownParams,
    },
    doctor::{Diagnosis, LocalSetup, SetupLocalParams},
    explain::{ExplainSettingParams, SettingExplanation},
    model::Model,
    model_catalogue::{CatalogueUpdate, UpdateModelsParams},
    model_list::{ListModelsParams, ModelList},
    resources::{Diagnostics, SlashCommands},
    session::{SessionState, SessionStats},
    storage::{CleanOutputsParams, CleanedOutputs},
    tool_list::{ActiveTools, SetActiveToolsParams, ToolList},
};

/// The result of a command that answers without `data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoData;

macro_rules! commands {
    ($($(#[doc = $doc:literal])* $name:ident = $wire:literal : $params:ident => $result:ty),* $(,)?) => {
        /// A command, with its parameters read and checked.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Command {
            $($(#[doc = $doc])* $name($params),)*
        }

        // Without the schemas nothing else names the results; this keeps each row's type checked in every build.
        $(const _: Option<$result> = None;)*

        impl Command {
            /// The names of all commands.
            pub const NAMES: &[&str] = &[$($wire),*];

            /// The `type` on the wire.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $(Self::$name(_) => $wire,)* }
            }

            /// Reads the parameters of the command of that `type` from its whole line; `None` for an unknown type.
            ///
            /// # Errors
            /// Names the field that is missing or unusable, and what was expected.
            pub fn parse(name: &str, line: &str) -> Option<Result<Self, crate::frame::FieldError>> {
                match name {
                    $($wire => Some(crate::frame::parse_params(line).map(Self::$name)),)*
                    _ => None,
                }
            }

            /// The parameters as JSON.
            #[cfg(any(test, feature = "fuzzing"))]
            pub(crate) fn fields(&self) -> serde_json::Result<serde_json::Value> {
                match self { $(Self::$name(params) => serde_json::to_value(params),)* }
            }

            #[cfg(feature = "schema")]
            pub(crate) fn schemas(
                generator: &mut schemars::SchemaGenerator,
            ) -> Vec<crate::schema::CommandRow> {
                vec![$(crate::schema::CommandRow {
                    name: $wire,
                    doc: concat!($($doc),*).trim(),
                    params: generator.subschema_for::<$params>(),
                    data: crate::schema::data_schema::<$result>(generator),
                },)*]
            }
        }
    };
}

/// Who does a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The session that it names, or the connection's current one.
    Session,
    /// The connection, which goes on with another session than the one that it names, or than its current one.
    Replacement,
    /// The connection, which provides tools for sessions.
    Tools,
    /// Nobody in particular: it is about the user's set-up.
    SetUp,
    /// The connection and the daemon behind it.
    Daemon,
}

impl Command {
    /// Who does the command.
    #[must_use]
    pub fn scope(&self) -> Scope {
        match self {
            Self::ListModels(_)
            | Self::UpdateModels(_)
            | Self::Login(_)
            | Self::LoginStart(_)
            | Self::LoginFinish(_)
            | Self::LoginCancel(_)
            | Self::Logout(_)
            | Self::GetAuthStatus(_)
            | Self::Diagnose(_)
            | Self::SetupLocal(_)
            | Self::CleanOutputs(_) => Scope::SetUp,
            Self::NewSession(_)
            | Self::SwitchSession(_)
            | Self::Fork(_)
            | Self::Branch(_)
            | Self::CloneSession(_) => Scope::Replacement,
            Self::RegisterTools(_)
            | Self::UnregisterTools(_)
            | Self::ToolResponse(_)
            | Self::ToolProgress(_) => Scope::Tools,
            Self::Hello(_)
            | Self::OpenSession(_)
            | Self::AttachSession(_)
            | Self::DetachSession(_)
            | Self::CloseSession(_)
            | Self::ListSessions(_)
            | Self::DeleteSession(_)
            | Self::WatchSessions(_)
            | Self::UnwatchSessions(_)
            | Self::ListProcesses(_)
            | Self::DaemonStatus(_)
            | Self::Shutdown(_) => Scope::Daemon,
            _ => Scope::Session,
        }
    }

    /// Whether it begins work: what a daemon that ends refuses.
    #[must_use]
    pub fn begins_work(&self) -> bool {
        matches!(
            self,
            Self::Prompt(_)
                | Self::Continue(_)
                | Self::Steer(_)
                | Self::FollowUp(_)
                | Self::AbortAndPrompt(_)
                | Self::Compact(_)
                | Self::Bash(_)
                | Self::NewSession(_)
                | Self::SwitchSession(_)
                | Self::Fork(_)
                | Self::Branch(_)
                | Self::CloneSession(_)
                | Self::OpenSession(_)
        )
    }

    /// Whether it only looks: what a client with the role `observe` may ask.
    #[must_use]
    pub fn only_looks(&self) -> bool {
        matches!(
            self,
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
                | Self::ListModels(_)
                | Self::GetAuthStatus(_)
                | Self::Diagnose(_)
                | Self::Hello(_)
                | Self::AttachSession(_)
                | Self::DetachSession(_)
                | Self::ListSessions(_)
                | Self::WatchSessions(_)
                | Self::UnwatchSessions(_)
                | Self::ListProcesses(_)
                | Self::DaemonStatus(_)
        )
    }
}

/// The fields of a command whose answer depends on who asks: none on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LookParams {
    /// Whether the client said `hello`, which the connection knows.
    #[serde(skip)]
    pub introduced: bool,
    /// Whether it said that with `sessions`, and so knows what is in flight from when it joined.
    #[serde(skip)]
    pub names_sessions: bool,
}

/// The fields of a command that has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoParams {}

commands! {
    /// Starts a run with a message; while a run is active, queues it where `streamingBehavior` says.
    Prompt = "prompt": PromptParams => Accepted,
    /// Starts a run without a new message: from the context as it stands, or, where that ends with an answer, with what waits in
    /// the queues. Refused where neither is possible.
    Continue = "continue": NoParams => Accepted,
    /// Queues a message for the next turn of the active run; without one it waits for the next prompt or `continue`.
    Steer = "steer": QueueParams => Accepted,
    /// Queues a message for when the active run would end; without one it waits as after `steer`.
    FollowUp = "follow_up": QueueParams => Accepted,
    /// Stops the active run, or what `scope` says; answered when that has ended, and within a second. Queued messages stay
    /// queued. With a `scope` the answer has `data`, and without one where a tool call does not end.
    Abort = "abort": AbortParams => AbortReceipt,
    /// Stops the active run, if there is one, and starts another with a message once that has settled; no other prompt
    /// comes in between. Queued messages stay queued.
    AbortAndPrompt = "abort_and_prompt": PromptParams => Accepted,
    /// Takes all queued messages back.
    ClearQueue = "clear_queue": NoParams => ClearedQueue,
    /// Leaves the session for a new, empty one.
    NewSession = "new_session": NewSessionParams => Cancelled,
    /// Leaves the session for the one of a file.
    SwitchSession = "switch_session": SwitchSessionParams => Cancelled,
    /// Leaves the session for a copy of what came before a message of the user.
    Fork = "fork": ForkParams => Forked,
    /// As `fork`.
    Branch = "branch": ForkParams => Forked,
    /// Leaves the session for a copy of its branch up to the leaf.
    CloneSession = "clone": NoParams => Cancelled,
    /// The messages that a fork can begin at.
    GetForkMessages = "get_fork_messages": NoParams => ForkMessages,
    /// As `get_fork_messages`.
    GetBranchMessages = "get_branch_messages": NoParams => ForkMessages,
    /// The entries as a tree, with labels.
    GetTree = "get_tree": NoParams => Tree,
    /// Goes on from another entry of the session. Refused while a run is active.
    NavigateTree = "navigate_tree": NavigateTreeParams => Navigated,
    /// Labels an entry, or removes its label.
    SetLabel = "set_label": SetLabelParams => NoData,
    /// What the session is doing.
    GetState = "get_state": LookParams => SessionState,
    /// The messages of the context. Last comes the answer that streams, as far as it has come; clients with `sessions` in their
    /// `hello` have that from the snapshot that they joined with, and get it when it is complete.
    GetMessages = "get_messages": LookParams => Messages,
    /// The entries of the session file, of every branch, in file order.
    GetEntries = "get_entries": GetEntriesParams => Entries,
    /// What a message can begin with: prompt templates, then skills.
    GetCommands = "get_commands": NoParams => SlashCommands,
    /// The text of the last answer, if it has any.
    GetLastAssistantText = "get_last_assistant_text": NoParams => LastText,
    /// Counts, tokens and cost.
    GetSessionStats = "get_session_stats": NoParams => SessionStats,
    /// Chooses the model; the next turn uses it.
    SetModel = "set_model": SetModelParams => Model,
    /// Goes on to the next model.
    CycleModel = "cycle_model": NoParams => Option<CycledModel>,
    /// Chooses the models that are asked when the chosen one fails for good, for as long as the session is open.
    SetFallbackModels = "set_fallback_models": SetFallbackModelsParams => FallbackModels,
    /// The models that are asked when the chosen one fails for good.
    GetFallbackModels = "get_fallback_models": NoParams => FallbackModels,
    /// The models that credentials are configured for.
    GetAvailableModels = "get_available_models": NoParams => Models,
    /// The models that there are, whether usable or not.
    ListModels = "list_models": ListModelsParams => ModelList,
    /// Takes another catalogue of models in the place of the built-in one, or goes back to that. Nothing is changed when it is
    /// refused.
    UpdateModels = "update_models": UpdateModelsParams => CatalogueUpdate,
    /// Chooses the thinking level; what the model does not have is moved to the nearest level that it has.
    SetThinkingLevel = "set_thinking_level": SetThinkingLevelParams => NoData,
    /// Goes on to the next thinking level.
    CycleThinkingLevel = "cycle_thinking_level": NoParams => Option<CycledLevel>,
    /// The thinking levels that the model has.
    GetAvailableThinkingLevels = "get_available_thinking_levels": NoParams => Levels,
    /// Chooses how steering messages are delivered, and saves the choice in the global settings.
    SetSteeringMode = "set_steering_mode": QueueModeParams => NoData,
    /// Chooses how follow-up messages are delivered, and saves the choice in the global settings.
    SetFollowUpMode = "set_follow_up_mode": QueueModeParams => NoData,
    /// Chooses whether a steering message stops the tool calls that run, and saves the choice in the global settings.
    SetInterruptMode = "set_interrupt_mode": InterruptModeParams => NoData,
    /// Switches retries of failed answers on or off, and saves the choice in the global settings.
    SetAutoRetry = "set_auto_retry": SwitchParams => NoData,
    /// Gives up the retry whose pause is under way; the run ends with the error.
    AbortRetry = "abort_retry": NoParams => NoData,
    /// Replaces the older part of the context by a summary. A run that is active is aborted first.
    Compact = "compact": CompactParams => CompactionResult,
    /// Switches compaction by itself on or off, and saves the choice in the global settings.
    SetAutoCompaction = "set_auto_compaction": SwitchParams => NoData,
    /// The tools that the session has, active or not.
    GetTools = "get_tools": NoParams => ToolList,
    /// Chooses the tools that the model can call, from the next turn on.
    SetActiveTools = "set_active_tools": SetActiveToolsParams => ActiveTools,
    /// Provides tools: the model can call them from the next turn on, and each call comes back as `tool_request`. They leave
    /// with the connection. Only after `hello`.
    RegisterTools = "register_tools": RegisterToolsParams => RegisteredTools,
    /// Takes tools back that this connection registered. Calls that are under way can still be answered.
    UnregisterTools = "unregister_tools": UnregisterToolsParams => UnregisteredTools,
    /// Answers a `tool_request`.
    ToolResponse = "tool_response": ToolResponseParams => NoData,
    /// Shows what a call that this client works on has given so far.
    ToolProgress = "tool_progress": ToolProgressParams => NoData,
    /// Runs a shell command of the user's and records it in the session.
    Bash = "bash": BashParams => BashOutput,
    /// Kills all running `bash` commands.
    AbortBash = "abort_bash": NoParams => NoData,
    /// A part of a long output that is kept beside the session's file.
    GetArtifact = "get_artifact": GetArtifactParams => ArtifactPart,
    /// The long outputs that are kept beside the session's file.
    ListArtifacts = "list_artifacts": NoParams => ArtifactList,
    /// What is wrong with the files, settings and flags that the session was made from.
    GetDiagnostics = "get_diagnostics": NoParams => Diagnostics,
    /// Where a setting's value comes from.
    ExplainSetting = "explain_setting": ExplainSettingParams => SettingExplanation,
    /// Writes the session, with all of its branches, into an HTML file that needs nothing else to be read. The session stays
    /// as it is.
    ExportHtml = "export_html": ExportHtmlParams => Exported,
    /// Names the session.
    SetSessionName = "set_session_name": SetSessionNameParams => NoData,
    /// Stores a provider's key in `auth.json`, for every session and program from now.
    Login = "login": LoginParams => Login,
    /// Begins a login with a provider's account instead of a key: the answer says what the user does in a browser. One login
    /// for a provider is under way at a time.
    LoginStart = "login_start": LoginStartParams => LoginStarted,
    /// Waits until a login is complete and stored. Whoever leaves before, and was the last to wait, gives the login up.
    LoginFinish = "login_finish": LoginFinishParams => Login,
    /// Gives a login up.
    LoginCancel = "login_cancel": LoginCancelParams => LoginCancelled,
    /// Takes a provider's entry out of `auth.json`.
    Logout = "logout": LogoutParams => Logout,
    /// Where the keys of providers come from; never a key itself.
    GetAuthStatus = "get_auth_status": AuthStatusParams => AuthStatus,
    /// Looks at everything that a session needs, without changing anything.
    Diagnose = "diagnose": NoParams => Diagnosis,
    /// Writes the model servers of this machine into `models.json`.
    SetupLocal = "setup_local": SetupLocalParams => LocalSetup,
    /// Removes long outputs of sessions that are old or too much, oldest first; none that is being written.
    CleanOutputs = "clean_outputs": CleanOutputsParams => CleanedOutputs,
    /// Introduces a client: what it can do, wants and may do.
    Hello = "hello": HelloParams => Hello,
    /// Opens a session, new or old, and makes it the connection's current one. One that is in memory is joined.
    OpenSession = "open_session": OpenSessionParams => OpenedSession,
    /// Follows a session from here on, and makes it the connection's current one.
    AttachSession = "attach_session": AttachSessionParams => AttachedSession,
    /// Follows a session no longer; it goes on.
    DetachSession = "detach_session": SessionParams => NoData,
    /// Ends a session's work and takes it out of memory; its file stays.
    CloseSession = "close_session": CloseSessionParams => NoData,
    /// The sessions that there are, newest first.
    ListSessions = "list_sessions": ListSessionsParams => SessionList,
    /// Deletes a session's file. Refused while the session is in memory.
    DeleteSession = "delete_session": SessionParams => NoData,
    /// Tells from here on when sessions are opened, change and are closed: `session_opened`, `session_changed`,
    /// `session_closed`, whichever sessions the client follows.
    WatchSessions = "watch_sessions": NoParams => NoData,
    /// Ends `watch_sessions`.
    UnwatchSessions = "unwatch_sessions": NoParams => NoData,
    /// The processes that work for sessions.
    ListProcesses = "list_processes": ListProcessesParams => ProcessList,
    /// How the daemon is.
    DaemonStatus = "daemon_status": NoParams => DaemonStatus,
    /// Ends the daemon. Only over its socket.
    Shutdown = "shutdown": ShutdownParams => NoData,
}
