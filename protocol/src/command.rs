//! The command table: the commands that a client can send, with their fields and answers.

mod models;
mod params;
mod spec;
mod tree;

pub use self::{
    models::*,
    params::*,
    spec::{CommandSpec, PeerAccess},
    tree::*,
};

use self::spec::commands;
use crate::{
    agent_mode::{ModeState, SetModeParams},
    capabilities::{CapabilityList, GetCapabilitiesParams, SetCapabilityParams},
    checkpoints::{
        CheckpointDiff, CheckpointList, DiffCheckpointParams, RestoreCheckpointParams, RestoredCheckpoint,
    },
    chunked::{NegotiateProtocolParams, NegotiatedProtocol},
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
        SessionParams, ShutdownParams, WatchSessionsParams, WatchedSessions,
    },
    doctor::{Diagnosis, LocalSetup, SetupLocalParams},
    eval_executor::{EvalExecutorLanguages, SetEvalExecutorParams},
    event_filter::{EventFilter, SetEventFilterParams},
    explain::{ExplainSettingParams, SettingExplanation},
    extensions::ExtensionList,
    host_tools::{HostTools, SetHostToolsParams},
    host_uris::{HostUriSchemes, SetHostUriSchemesParams},
    isolation::IsolationMerge,
    jobs::{JobInfo, JobList, JobOutput, JobOutputParams, JobParams},
    mcp::{
        McpLoginCancelParams, McpLoginCancelled, McpLoginFinishParams, McpLoginStartParams, McpLoginStarted,
        McpLogout, McpLogoutParams, McpServers, ReconnectMcpServerParams, SetMcpServerParams,
    },
    message_pages::{GetMessagesPageParams, MessagesPage},
    model::Model,
    model_list::{CatalogueUpdate, ListModelsParams, ModelList, UpdateModelsParams},
    permissions::{PermissionResponseParams, SetPermissionsParams},
    prompt_history::{DeleteHistoryParams, DeletedHistory, PromptHistoryList, SearchHistoryParams},
    resources::{AvailableCommands, Diagnostics, SlashCommands},
    session::{PermissionState, SessionState, SessionStats},
    storage::{ArtifactList, ArtifactPart, CleanOutputsParams, CleanedOutputs, GetArtifactParams},
    subagent::{
        GetSubagentMessagesParams, SetSubagentSubscriptionParams, SubagentList, SubagentMessages,
        SubagentPatchParams, SubagentSubscriptionSet,
    },
    todo::{SetTodosParams, Todos},
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
    /// Starts a run without a new message: from the context as it stands, or, if that ends with an answer, with the messages in
    /// the queues. Refused if neither is possible.
    Continue = "continue": NoParams => Accepted | Session, Control, OpenedSession, begins_work;
    /// Queues a message for the next turn of the active run; without one it waits for the next prompt or `continue`.
    Steer = "steer": QueueParams => Accepted | Session, Control, OpenedSession, begins_work;
    /// Queues a message for when the active run would end; without one it waits as after `steer`.
    FollowUp = "follow_up": QueueParams => Accepted | Session, Control, OpenedSession, begins_work;
    /// Stops the active run, or the work that `scope` names; answered when that has ended, and within a second. Queued messages stay
    /// queued. The answer has `data` if a `scope` is given, or if a tool call does not end.
    Abort = "abort": AbortParams => AbortReceipt | Session, Control, OpenedSession, no_work;
    /// Stops the active run, if any, and starts another with a message once that has settled; no other prompt
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
    /// The same as `fork`.
    Branch = "branch": ForkParams => Forked | Switch, Control, OpenedSession, begins_work;
    /// Leaves the session for a copy of its branch up to the leaf.
    CloneSession = "clone": NoParams => Cancelled | Switch, Control, OpenedSession, begins_work;
    /// The messages that a fork can begin at.
    GetForkMessages = "get_fork_messages": NoParams => ForkMessages | Session, Observe, VisibleSession, no_work;
    /// The same as `get_fork_messages`.
    GetBranchMessages = "get_branch_messages": NoParams => ForkMessages | Session, Observe, VisibleSession, no_work;
    /// The entries as a tree, with labels.
    GetTree = "get_tree": NoParams => Tree | Session, Observe, VisibleSession, no_work;
    /// Continues from another entry of the session. Refused while a run is active.
    NavigateTree = "navigate_tree": NavigateTreeParams => Navigated | Session, Control, OpenedSession, no_work;
    /// Labels an entry, or removes its label.
    SetLabel = "set_label": SetLabelParams => NoData | Session, Control, OpenedSession, no_work;
    /// The state of the session.
    GetState = "get_state": LookParams => SessionState | Session, Observe, VisibleSession, no_work;
    /// The messages of the context, and last the streaming answer so far. Clients with `sessions` in their
    /// `hello` have that from the snapshot that they joined with, and get it here once it is complete.
    GetMessages = "get_messages": LookParams => Messages | Session, Observe, VisibleSession, no_work;
    /// The messages of the context, a page at a time. Refused with `session_busy` while a run or a compaction is active, and with
    /// `stale_cursor` where the context is another by now.
    GetMessagesPage = "get_messages_page": GetMessagesPageParams => MessagesPage | Session, Observe, VisibleSession, no_work;
    /// The entries of the session file, of every branch, in file order.
    GetEntries = "get_entries": GetEntriesParams => Entries | Session, Observe, VisibleSession, no_work;
    /// The commands that a message can begin with: prompt templates, then skills, then prompts of MCP servers.
    GetCommands = "get_commands": NoParams => SlashCommands | Session, Observe, VisibleSession, no_work;
    /// The same as `get_commands`, in the form that omp's clients know. From then on `available_commands_update` tells of changes.
    GetAvailableCommands = "get_available_commands": NoParams => AvailableCommands | Session, Observe, VisibleSession, no_work;
    /// The text of the last answer, if it has any.
    GetLastAssistantText = "get_last_assistant_text": NoParams => LastText | Session, Observe, VisibleSession, no_work;
    /// Counts, tokens and cost.
    GetSessionStats = "get_session_stats": NoParams => SessionStats | Session, Observe, VisibleSession, no_work;
    /// Chooses the model; the next turn uses it.
    SetModel = "set_model": SetModelParams => Model | Session, Control, OpenedSession, no_work;
    /// Switches to the next model.
    CycleModel = "cycle_model": NoParams => Option<CycledModel> | Session, Control, OpenedSession, no_work;
    /// Chooses the fallback models for when the chosen one fails for good, for as long as the session is open.
    SetFallbackModels = "set_fallback_models": SetFallbackModelsParams => FallbackModels | Session, Control, OpenedSession, no_work;
    /// The fallback models.
    GetFallbackModels = "get_fallback_models": NoParams => FallbackModels | Session, Observe, VisibleSession, no_work;
    /// The models with configured credentials.
    GetAvailableModels = "get_available_models": NoParams => Models | Session, Observe, VisibleSession, no_work;
    /// All known models, usable or not.
    ListModels = "list_models": ListModelsParams => ModelList | Admin, Observe, Always, no_work;
    /// Replaces the built-in catalogue of models, or goes back to it. Nothing is changed when the new one is
    /// refused.
    UpdateModels = "update_models": UpdateModelsParams => CatalogueUpdate | Admin, Control, Never, no_work;
    /// Chooses the thinking level; a level that the model does not have is replaced by the nearest that it has.
    SetThinkingLevel = "set_thinking_level": SetThinkingLevelParams => NoData | Session, Control, OpenedSession, no_work;
    /// Switches to the next thinking level.
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
    /// Cancels the pending retry; the run ends with the error.
    AbortRetry = "abort_retry": NoParams => NoData | Session, Control, OpenedSession, no_work;
    /// Replaces the older part of the context by a summary. A run that is active is aborted first.
    Compact = "compact": CompactParams => CompactionResult | Session, Control, OpenedSession, begins_work;
    /// Switches automatic compaction on or off, and saves the choice in the global settings.
    SetAutoCompaction = "set_auto_compaction": SwitchParams => NoData | Session, Control, Never, no_work;
    /// Changes the session's permissions, until the session is closed. The answer tells those in force.
    SetPermissions = "set_permissions": SetPermissionsParams => PermissionState | Session, Control, Never, no_work;
    /// Answers a question about a call. The first answer counts; later ones are refused with what was answered and by whom.
    PermissionResponse = "permission_response": PermissionResponseParams => NoData | Session, Control, Never, no_work;
    /// Puts the session into plan mode, or out of it: on record in the session file, and from the next call on also in the middle of a run.
    SetMode = "set_mode": SetModeParams => ModeState | Session, Control, Never, no_work;
    /// The tools that the session has, active or not.
    GetTools = "get_tools": NoParams => ToolList | Session, Observe, VisibleSession, no_work;
    /// Chooses the tools that the model can call, from the next turn on.
    SetActiveTools = "set_active_tools": SetActiveToolsParams => ActiveTools | Session, Control, OpenedSession, no_work;
    /// Replaces the list of tasks that the tool `todo` keeps. On record in the session file, as `entry_appended` tells.
    SetTodos = "set_todos": SetTodosParams => Todos | Session, Control, OpenedSession, no_work;
    /// Lists the subagents that the session has started.
    GetSubagents = "get_subagents": NoParams => SubagentList | Session, Observe, VisibleSession, no_work;
    /// Lists the session's background processes and subagents.
    ListJobs = "list_jobs": NoParams => JobList | Session, Observe, VisibleSession, no_work;
    /// Stops a background process or a subagent; answered when it has ended.
    KillJob = "kill_job": JobParams => JobInfo | Session, Control, OpenedSession, no_work;
    /// The output of a background process, or the result of a subagent.
    JobOutput = "job_output": JobOutputParams => JobOutput | Session, Observe, VisibleSession, no_work;
    /// Brings the changes of a subagent back that worked in a copy, where that was not done yet.
    ApplyPatch = "apply_patch": SubagentPatchParams => IsolationMerge | Session, Control, OpenedSession, no_work;
    /// Throws such changes away.
    DiscardPatch = "discard_patch": SubagentPatchParams => NoData | Session, Control, OpenedSession, no_work;
    /// Reads entries of a subagent's session file, from a byte on. Works while the subagent does.
    GetSubagentMessages = "get_subagent_messages": GetSubagentMessagesParams => SubagentMessages | Session, Observe, VisibleSession, no_work;
    /// The MCP servers of the session, and their states.
    GetMcpServers = "get_mcp_servers": NoParams => McpServers | Session, Observe, VisibleSession, no_work;
    /// Switches an MCP server of the session on or off, or exposes its tools otherwise, until the session is closed.
    SetMcpServer = "set_mcp_server": SetMcpServerParams => McpServers | Session, Control, OpenedSession, no_work;
    /// Ends the connection to an MCP server and makes another one; answered when it is there, or has failed.
    ReconnectMcpServer = "reconnect_mcp_server": ReconnectMcpServerParams => McpServers | Session, Control, OpenedSession, no_work;
    /// Begins to sign in to an MCP server: the answer says what to do in a browser. One sign-in to a server is in progress at a time; it
    /// ends with the session.
    McpLoginStart = "mcp_login_start": McpLoginStartParams => McpLoginStarted | Session, Control, Never, no_work;
    /// Waits until a sign-in is complete and stored, and the server connected.
    McpLoginFinish = "mcp_login_finish": McpLoginFinishParams => McpServers | Session, Control, Never, no_work;
    /// Cancels a sign-in to an MCP server.
    McpLoginCancel = "mcp_login_cancel": McpLoginCancelParams => McpLoginCancelled | Session, Control, Never, no_work;
    /// Removes what is stored of the sign-ins to an MCP server.
    McpLogout = "mcp_logout": McpLogoutParams => McpLogout | Session, Control, Never, no_work;
    /// The extensions of the session, and their hosts.
    ListExtensions = "list_extensions": NoParams => ExtensionList | Session, Observe, VisibleSession, no_work;
    /// Ends the extensions of the session and starts them anew, in new processes: settings, extensions, skills and prompt templates are
    /// read again. Answered once their handlers of `session_start` have ended. Refused while a run is active.
    RestartExtensions = "restart_extensions": NoParams => ExtensionList | Session, Control, OpenedSession, begins_work;
    /// Provides tools: the model can call them from the next turn on, and each call arrives as `tool_request`. They are removed
    /// when the connection ends. Only after `hello`.
    RegisterTools = "register_tools": RegisterToolsParams => RegisteredTools | ClientTool, Control, OpenedSession, no_work;
    /// Provides tools in the words of omp's clients: they replace those of the command before, and each call arrives as
    /// `host_tool_call`. For the current session, and every one that the connection goes on to. They are removed when the connection
    /// ends.
    SetHostTools = "set_host_tools": SetHostToolsParams => HostTools | ClientTool, Control, OpenedSession, no_work;
    /// Serves URLs of further schemes to the tools `read` and `write`, in the words of omp's clients: they replace those of the command
    /// before, and each read and write arrives as `host_uri_request`. For the current session, and every one that the connection goes on
    /// to. They are removed when the connection ends.
    SetHostUriSchemes = "set_host_uri_schemes": SetHostUriSchemesParams => HostUriSchemes | ClientTool, Control, OpenedSession, no_work;
    /// Runs the cells of the tool `eval` in these languages instead of the daemon's kernels: they replace those of the command before, and
    /// each cell arrives as `eval_request`. For the current session, and every one that the connection goes on to. They are taken back when
    /// the connection ends. An empty list takes them back at once.
    SetEvalExecutor = "set_eval_executor": SetEvalExecutorParams => EvalExecutorLanguages | ClientTool, Control, OpenedSession, no_work;
    /// Removes tools that this connection registered. Calls in progress can still be answered.
    UnregisterTools = "unregister_tools": UnregisterToolsParams => UnregisteredTools | ClientTool, Control, VisibleSession, no_work;
    /// Answers a `tool_request`.
    ToolResponse = "tool_response": ToolResponseParams => NoData | ClientTool, Control, Always, no_work;
    /// Shows the output so far of a call that this client works on.
    ToolProgress = "tool_progress": ToolProgressParams => NoData | ClientTool, Control, Always, no_work;
    /// Runs a shell command of the user's and records it in the session.
    Bash = "bash": BashParams => BashOutput | Session, Control, OpenedSession, begins_work;
    /// Kills all running `bash` commands.
    AbortBash = "abort_bash": NoParams => NoData | Session, Control, OpenedSession, no_work;
    /// A part of a long output that is kept beside the session's file.
    GetArtifact = "get_artifact": GetArtifactParams => ArtifactPart | Session, Observe, VisibleSession, no_work;
    /// The long outputs that are kept beside the session's file.
    ListArtifacts = "list_artifacts": NoParams => ArtifactList | Session, Observe, VisibleSession, no_work;
    /// What tool calls of the session changed, where undo is on.
    ListCheckpoints = "list_checkpoints": NoParams => CheckpointList | Session, Observe, VisibleSession, no_work;
    /// What the agent changed, as unified diffs: by one checkpoint, since the last prompt, or since the session's start.
    DiffCheckpoint = "diff_checkpoint": DiffCheckpointParams => CheckpointDiff | Session, Observe, VisibleSession, no_work;
    /// Undoes changes of the agent, or an undo. Files that somebody else changed since are left, and named. Refused while a run or
    /// command is active.
    RestoreCheckpoint = "restore_checkpoint": RestoreCheckpointParams => RestoredCheckpoint | Session, Control, Never, begins_work;
    /// Problems of the files, settings and flags that the session was made from.
    GetDiagnostics = "get_diagnostics": NoParams => Diagnostics | Session, Observe, VisibleSession, no_work;
    /// The source of a setting's value.
    ExplainSetting = "explain_setting": ExplainSettingParams => SettingExplanation | Session, Observe, VisibleSession, no_work;
    /// What the files of agentd and of other tools give the session: context files, rules, commands, MCP servers and so on, and why
    /// an item does not count.
    GetCapabilities = "get_capabilities": GetCapabilitiesParams => CapabilityList | Session, Observe, VisibleSession, no_work;
    /// Switches an item of `get_capabilities` on or off, and saves the choice in the global settings. MCP servers are switched when the
    /// next session is opened. Answers with the items of that id.
    SetCapability = "set_capability": SetCapabilityParams => CapabilityList | Session, Control, Never, no_work;
    /// Writes the session, with all of its branches, into an HTML file that needs nothing else to be read. The session stays
    /// as it is.
    ExportHtml = "export_html": ExportHtmlParams => Exported | Session, Control, OpenedSession, no_work;
    /// Names the session.
    SetSessionName = "set_session_name": SetSessionNameParams => NoData | Session, Control, OpenedSession, no_work;
    /// Stores a provider's key in `auth.json`, for every session and program from now.
    Login = "login": LoginParams => Login | Admin, Control, Never, no_work;
    /// Begins a login with a provider's account instead of a key: the answer says what to do in a browser. One login
    /// for a provider is in progress at a time. Where an extension of the session that `sessionId` names, or of the current one, logs in to
    /// the provider, that extension does it: its questions are dialogs of the session, and `login_update` tells the rest.
    LoginStart = "login_start": LoginStartParams => LoginStarted | Admin, Control, Never, no_work;
    /// Waits until a login is complete and stored. When the last client that waits disconnects, the login is given up.
    LoginFinish = "login_finish": LoginFinishParams => Login | Admin, Control, Never, no_work;
    /// Cancels a login.
    LoginCancel = "login_cancel": LoginCancelParams => LoginCancelled | Admin, Control, Never, no_work;
    /// Takes a provider's entry out of `auth.json`.
    Logout = "logout": LogoutParams => Logout | Admin, Control, Never, no_work;
    /// The sources of the providers' keys; never a key itself.
    GetAuthStatus = "get_auth_status": AuthStatusParams => AuthStatus | Admin, Observe, Always, no_work;
    /// Checks everything that a session needs, without changing anything.
    Diagnose = "diagnose": NoParams => Diagnosis | Admin, Observe, Never, no_work;
    /// Writes the model servers of this machine into `models.json`.
    SetupLocal = "setup_local": SetupLocalParams => LocalSetup | Admin, Control, Never, no_work;
    /// Removes long outputs of sessions that are too old or too many, oldest first; never one that is being written.
    CleanOutputs = "clean_outputs": CleanOutputsParams => CleanedOutputs | Admin, Control, Never, no_work;
    /// Finds prompts that the user has sent to any session, last sent first.
    SearchHistory = "search_history": SearchHistoryParams => PromptHistoryList | Admin, Control, Never, no_work;
    /// Deletes one of these prompts, or all; sessions keep theirs.
    DeleteHistory = "delete_history": DeleteHistoryParams => DeletedHistory | Admin, Control, Never, no_work;
    /// Introduces a client: its capabilities and role.
    Hello = "hello": HelloParams => Hello | Daemon, Observe, Always, no_work;
    /// Chooses the form of lines that are longer than 1 MiB: whole, or in parts (`rpc_chunk`). It counts from the line after the answer.
    NegotiateProtocol = "negotiate_protocol": NegotiateProtocolParams => NegotiatedProtocol | Daemon, Observe, Always, no_work;
    /// Chooses the events of sessions that this connection gets; responses, questions to the user and calls of tools always come.
    SetEventFilter = "set_event_filter": SetEventFilterParams => EventFilter | Daemon, Observe, Always, no_work;
    /// Opens a new or stored session, or joins an open one, and makes it the connection's current one.
    OpenSession = "open_session": OpenSessionParams => OpenedSession | Daemon, Control, Always, begins_work;
    /// Follows a session, and makes it the connection's current one.
    AttachSession = "attach_session": AttachSessionParams => AttachedSession | Daemon, Observe, VisibleSession, no_work;
    /// Stops following a session, which continues.
    DetachSession = "detach_session": SessionParams => NoData | Daemon, Observe, Always, no_work;
    /// Ends a session's work and takes it out of memory; its file stays.
    CloseSession = "close_session": CloseSessionParams => NoData | Daemon, Control, OpenedSession, no_work;
    /// All sessions, newest first.
    ListSessions = "list_sessions": ListSessionsParams => SessionList | Daemon, Observe, Always, no_work;
    /// Deletes a session's file. Refused while the session is in memory.
    DeleteSession = "delete_session": SessionParams => NoData | Daemon, Control, Never, no_work;
    /// Reports from here on when any session is opened, changes or is closed: `session_opened`, `session_changed`,
    /// `session_closed`.
    WatchSessions = "watch_sessions": WatchSessionsParams => WatchedSessions | Daemon, Observe, Never, no_work;
    /// Ends `watch_sessions`.
    UnwatchSessions = "unwatch_sessions": NoParams => NoData | Daemon, Observe, Always, no_work;
    /// Chooses which events about subagents this connection gets; none at first.
    SetSubagentSubscription = "set_subagent_subscription": SetSubagentSubscriptionParams => SubagentSubscriptionSet | Daemon, Observe, Always, no_work;
    /// The processes that work for sessions.
    ListProcesses = "list_processes": ListProcessesParams => ProcessList | Daemon, Observe, VisibleSession, no_work;
    /// The state of the daemon.
    DaemonStatus = "daemon_status": NoParams => DaemonStatus | Daemon, Observe, Always, no_work;
    /// Ends the daemon. Only over its socket.
    Shutdown = "shutdown": ShutdownParams => NoData | Daemon, Control, Never, no_work;
}
