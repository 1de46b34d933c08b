//! The command table: what a client can ask, with what fields, and what comes back.

mod params;
mod spec;
mod tree;

pub use self::{
    params::*,
    spec::{CommandSpec, PeerAccess},
    tree::*,
};

use self::spec::commands;
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

// A row: the variant, the `type` of its line, its parameters, the `data` of its answer; then its columns, in this order:
//
// - scope: `Session`, `Switch`, `ClientTool`, `Admin` or `Daemon`, as the variants of `Command` describe them. It decides which
//   dispatcher executes the command.
// - role: `Observe` for a command that observers may send, else `Control`.
// - peer access: for which sessions a client may send it that is itself a command of a session (`PeerAccess`).
// - `begins_work` for a command that a daemon refuses while it is ending, else `no_work`.
commands! {
    /// Starts a run with a message; while a run is active, queues it where `streamingBehavior` says.
    Prompt = "prompt": PromptParams => Accepted | Session, Control, OpenedSession, begins_work;
    /// Starts a run without a new message: from the context as it stands, or, where that ends with an answer, with what waits in
    /// the queues. Refused where neither is possible.
    Continue = "continue": NoParams => Accepted | Session, Control, OpenedSession, begins_work;
    /// Queues a message for the next turn of the active run; without one it waits for the next prompt or `continue`.
    Steer = "steer": QueueParams => Accepted | Session, Control, OpenedSession, begins_work;
    /// Queues a message for when the active run would end; without one it waits as after `steer`.
    FollowUp = "follow_up": QueueParams => Accepted | Session, Control, OpenedSession, begins_work;
    /// Stops the active run, or what `scope` says; answered when that has ended, and within a second. Queued messages stay
    /// queued. With a `scope` the answer has `data`, and without one where a tool call does not end.
    Abort = "abort": AbortParams => AbortReceipt | Session, Control, OpenedSession, no_work;
    /// Stops the active run, if there is one, and starts another with a message once that has settled; no other prompt
    /// comes in between. Queued messages stay queued.
    AbortAndPrompt = "abort_and_prompt": PromptParams => Accepted | Session, Control, OpenedSession, begins_work;
    /// Takes all queued messages back.
    ClearQueue = "clear_queue": NoParams => ClearedQueue | Session, Control, OpenedSession, no_work;
    /// Leaves the session for a new, empty one.
    NewSession = "new_session": NewSessionParams => Cancelled | Switch, Control, OpenedSession, begins_work;
    /// Leaves the session for the one of a file.
    SwitchSession = "switch_session": SwitchSessionParams => Cancelled | Switch, Control, Never, begins_work;
    /// Leaves the session for a copy of what came before a message of the user.
    Fork = "fork": ForkParams => Forked | Switch, Control, OpenedSession, begins_work;
    /// As `fork`.
    Branch = "branch": ForkParams => Forked | Switch, Control, OpenedSession, begins_work;
    /// Leaves the session for a copy of its branch up to the leaf.
    CloneSession = "clone": NoParams => Cancelled | Switch, Control, OpenedSession, begins_work;
    /// The messages that a fork can begin at.
    GetForkMessages = "get_fork_messages": NoParams => ForkMessages | Session, Observe, VisibleSession, no_work;
    /// As `get_fork_messages`.
    GetBranchMessages = "get_branch_messages": NoParams => ForkMessages | Session, Observe, VisibleSession, no_work;
    /// The entries as a tree, with labels.
    GetTree = "get_tree": NoParams => Tree | Session, Observe, VisibleSession, no_work;
    /// Goes on from another entry of the session. Refused while a run is active.
    NavigateTree = "navigate_tree": NavigateTreeParams => Navigated | Session, Control, OpenedSession, no_work;
    /// Labels an entry, or removes its label.
    SetLabel = "set_label": SetLabelParams => NoData | Session, Control, OpenedSession, no_work;
    /// What the session is doing.
    GetState = "get_state": LookParams => SessionState | Session, Observe, VisibleSession, no_work;
    /// The messages of the context. Last comes the answer that streams, as far as it has come; clients with `sessions` in their
    /// `hello` have that from the snapshot that they joined with, and get it when it is complete.
    GetMessages = "get_messages": LookParams => Messages | Session, Observe, VisibleSession, no_work;
    /// The entries of the session file, of every branch, in file order.
    GetEntries = "get_entries": GetEntriesParams => Entries | Session, Observe, VisibleSession, no_work;
    /// What a message can begin with: prompt templates, then skills.
    GetCommands = "get_commands": NoParams => SlashCommands | Session, Observe, VisibleSession, no_work;
    /// The text of the last answer, if it has any.
    GetLastAssistantText = "get_last_assistant_text": NoParams => LastText | Session, Observe, VisibleSession, no_work;
    /// Counts, tokens and cost.
    GetSessionStats = "get_session_stats": NoParams => SessionStats | Session, Observe, VisibleSession, no_work;
    /// Chooses the model; the next turn uses it.
    SetModel = "set_model": SetModelParams => Model | Session, Control, OpenedSession, no_work;
    /// Goes on to the next model.
    CycleModel = "cycle_model": NoParams => Option<CycledModel> | Session, Control, OpenedSession, no_work;
    /// Chooses the models that are asked when the chosen one fails for good, for as long as the session is open.
    SetFallbackModels = "set_fallback_models": SetFallbackModelsParams => FallbackModels | Session, Control, OpenedSession, no_work;
    /// The models that are asked when the chosen one fails for good.
    GetFallbackModels = "get_fallback_models": NoParams => FallbackModels | Session, Observe, VisibleSession, no_work;
    /// The models that credentials are configured for.
    GetAvailableModels = "get_available_models": NoParams => Models | Session, Observe, VisibleSession, no_work;
    /// The models that there are, whether usable or not.
    ListModels = "list_models": ListModelsParams => ModelList | Admin, Observe, Always, no_work;
    /// Takes another catalogue of models in the place of the built-in one, or goes back to that. Nothing is changed when it is
    /// refused.
    UpdateModels = "update_models": UpdateModelsParams => CatalogueUpdate | Admin, Control, Never, no_work;
    /// Chooses the thinking level; what the model does not have is moved to the nearest level that it has.
    SetThinkingLevel = "set_thinking_level": SetThinkingLevelParams => NoData | Session, Control, OpenedSession, no_work;
    /// Goes on to the next thinking level.
    CycleThinkingLevel = "cycle_thinking_level": NoParams => Option<CycledLevel> | Session, Control, OpenedSession, no_work;
    /// The thinking levels that the model has.
    GetAvailableThinkingLevels = "get_available_thinking_levels": NoParams => Levels | Session, Observe, VisibleSession, no_work;
    /// Chooses how steering messages are delivered, and saves the choice in the global settings.
    SetSteeringMode = "set_steering_mode": QueueModeParams => NoData | Session, Control, Never, no_work;
    /// Chooses how follow-up messages are delivered, and saves the choice in the global settings.
    SetFollowUpMode = "set_follow_up_mode": QueueModeParams => NoData | Session, Control, Never, no_work;
    /// Chooses whether a steering message stops the tool calls that run, and saves the choice in the global settings.
    SetInterruptMode = "set_interrupt_mode": InterruptModeParams => NoData | Session, Control, Never, no_work;
    /// Switches retries of failed answers on or off, and saves the choice in the global settings.
    SetAutoRetry = "set_auto_retry": SwitchParams => NoData | Session, Control, Never, no_work;
    /// Gives up the retry whose pause is under way; the run ends with the error.
    AbortRetry = "abort_retry": NoParams => NoData | Session, Control, OpenedSession, no_work;
    /// Replaces the older part of the context by a summary. A run that is active is aborted first.
    Compact = "compact": CompactParams => CompactionResult | Session, Control, OpenedSession, begins_work;
    /// Switches compaction by itself on or off, and saves the choice in the global settings.
    SetAutoCompaction = "set_auto_compaction": SwitchParams => NoData | Session, Control, Never, no_work;
    /// The tools that the session has, active or not.
    GetTools = "get_tools": NoParams => ToolList | Session, Observe, VisibleSession, no_work;
    /// Chooses the tools that the model can call, from the next turn on.
    SetActiveTools = "set_active_tools": SetActiveToolsParams => ActiveTools | Session, Control, OpenedSession, no_work;
    /// Provides tools: the model can call them from the next turn on, and each call comes back as `tool_request`. They leave
    /// with the connection. Only after `hello`.
    RegisterTools = "register_tools": RegisterToolsParams => RegisteredTools | ClientTool, Control, OpenedSession, no_work;
    /// Takes tools back that this connection registered. Calls that are under way can still be answered.
    UnregisterTools = "unregister_tools": UnregisterToolsParams => UnregisteredTools | ClientTool, Control, VisibleSession, no_work;
    /// Answers a `tool_request`.
    ToolResponse = "tool_response": ToolResponseParams => NoData | ClientTool, Control, Always, no_work;
    /// Shows what a call that this client works on has given so far.
    ToolProgress = "tool_progress": ToolProgressParams => NoData | ClientTool, Control, Always, no_work;
    /// Runs a shell command of the user's and records it in the session.
    Bash = "bash": BashParams => BashOutput | Session, Control, OpenedSession, begins_work;
    /// Kills all running `bash` commands.
    AbortBash = "abort_bash": NoParams => NoData | Session, Control, OpenedSession, no_work;
    /// A part of a long output that is kept beside the session's file.
    GetArtifact = "get_artifact": GetArtifactParams => ArtifactPart | Session, Observe, VisibleSession, no_work;
    /// The long outputs that are kept beside the session's file.
    ListArtifacts = "list_artifacts": NoParams => ArtifactList | Session, Observe, VisibleSession, no_work;
    /// What is wrong with the files, settings and flags that the session was made from.
    GetDiagnostics = "get_diagnostics": NoParams => Diagnostics | Session, Observe, VisibleSession, no_work;
    /// Where a setting's value comes from.
    ExplainSetting = "explain_setting": ExplainSettingParams => SettingExplanation | Session, Observe, VisibleSession, no_work;
    /// Writes the session, with all of its branches, into an HTML file that needs nothing else to be read. The session stays
    /// as it is.
    ExportHtml = "export_html": ExportHtmlParams => Exported | Session, Control, OpenedSession, no_work;
    /// Names the session.
    SetSessionName = "set_session_name": SetSessionNameParams => NoData | Session, Control, OpenedSession, no_work;
    /// Stores a provider's key in `auth.json`, for every session and program from now.
    Login = "login": LoginParams => Login | Admin, Control, Never, no_work;
    /// Begins a login with a provider's account instead of a key: the answer says what the user does in a browser. One login
    /// for a provider is under way at a time.
    LoginStart = "login_start": LoginStartParams => LoginStarted | Admin, Control, Never, no_work;
    /// Waits until a login is complete and stored. Whoever leaves before, and was the last to wait, gives the login up.
    LoginFinish = "login_finish": LoginFinishParams => Login | Admin, Control, Never, no_work;
    /// Gives a login up.
    LoginCancel = "login_cancel": LoginCancelParams => LoginCancelled | Admin, Control, Never, no_work;
    /// Takes a provider's entry out of `auth.json`.
    Logout = "logout": LogoutParams => Logout | Admin, Control, Never, no_work;
    /// Where the keys of providers come from; never a key itself.
    GetAuthStatus = "get_auth_status": AuthStatusParams => AuthStatus | Admin, Observe, Always, no_work;
    /// Looks at everything that a session needs, without changing anything.
    Diagnose = "diagnose": NoParams => Diagnosis | Admin, Observe, Never, no_work;
    /// Writes the model servers of this machine into `models.json`.
    SetupLocal = "setup_local": SetupLocalParams => LocalSetup | Admin, Control, Never, no_work;
    /// Removes long outputs of sessions that are old or too much, oldest first; none that is being written.
    CleanOutputs = "clean_outputs": CleanOutputsParams => CleanedOutputs | Admin, Control, Never, no_work;
    /// Introduces a client: what it can do, wants and may do.
    Hello = "hello": HelloParams => Hello | Daemon, Observe, Always, no_work;
    /// Opens a session, new or old, and makes it the connection's current one. One that is in memory is joined.
    OpenSession = "open_session": OpenSessionParams => OpenedSession | Daemon, Control, Always, begins_work;
    /// Follows a session from here on, and makes it the connection's current one.
    AttachSession = "attach_session": AttachSessionParams => AttachedSession | Daemon, Observe, VisibleSession, no_work;
    /// Follows a session no longer; it goes on.
    DetachSession = "detach_session": SessionParams => NoData | Daemon, Observe, Always, no_work;
    /// Ends a session's work and takes it out of memory; its file stays.
    CloseSession = "close_session": CloseSessionParams => NoData | Daemon, Control, OpenedSession, no_work;
    /// The sessions that there are, newest first.
    ListSessions = "list_sessions": ListSessionsParams => SessionList | Daemon, Observe, Always, no_work;
    /// Deletes a session's file. Refused while the session is in memory.
    DeleteSession = "delete_session": SessionParams => NoData | Daemon, Control, Never, no_work;
    /// Tells from here on when sessions are opened, change and are closed: `session_opened`, `session_changed`,
    /// `session_closed`, whichever sessions the client follows.
    WatchSessions = "watch_sessions": NoParams => NoData | Daemon, Observe, Never, no_work;
    /// Ends `watch_sessions`.
    UnwatchSessions = "unwatch_sessions": NoParams => NoData | Daemon, Observe, Always, no_work;
    /// The processes that work for sessions.
    ListProcesses = "list_processes": ListProcessesParams => ProcessList | Daemon, Observe, VisibleSession, no_work;
    /// How the daemon is.
    DaemonStatus = "daemon_status": NoParams => DaemonStatus | Daemon, Observe, Always, no_work;
    /// Ends the daemon. Only over its socket.
    Shutdown = "shutdown": ShutdownParams => NoData | Daemon, Control, Never, no_work;
}
