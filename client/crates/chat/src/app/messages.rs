//! What happens to the program, and what it wants done.

use agentd_protocol::{
    Json,
    agent_mode::AgentMode,
    checkpoints::{CheckpointDiff, RestoreStep, RestoredCheckpoint},
    command::{AbortReceipt, BashOutput, BashParams, ClearedQueue, Entries, Navigated, PromptParams},
    daemon::{InFlight, SessionInfo},
    event::Event,
    message::Message as SessionMessage,
    model::{Model, ThinkingLevel},
    model_list::ModelList,
    permissions::PermissionResponseParams,
    resources::SlashCommand,
    session::{PermissionState, SessionState, SessionStats},
    settings::PermissionPreset,
    tool_list::{ActiveTools, ToolList},
    ui::{ExtensionUiRequest, UiResponse},
};
use crossterm::event::KeyEvent;

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Message {
    Key(KeyEvent),
    Paste(String),
    /// The wheel, in rows; up is negative.
    Wheel(i32),
    Resize,
    /// A moment passed while something is timed.
    Tick,
    Opened(Box<Opened>),
    Event(Box<Event>),
    /// The connection ended; the text says how.
    Lost(String),
    /// The session was closed by another client.
    Closed,
    Reply(Box<Reply>),
    /// The files that fit what was typed behind an `@`.
    Files {
        query: String,
        files: Vec<String>,
    },
    /// The text that came back from the external editor; an error where it could not be used.
    Edited(Result<String, String>),
    /// Something beside the session went wrong.
    Trouble(String),
    /// The prompts of earlier sessions.
    History(Vec<String>),
}

/// A session that was opened or joined.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) state: SessionState,
    pub(crate) messages: Vec<Json<SessionMessage>>,
    pub(crate) in_flight: Option<InFlight>,
    pub(crate) pending_ui: Vec<ExtensionUiRequest>,
    pub(crate) warnings: Vec<String>,
    pub(crate) commands: Vec<SlashCommand>,
    pub(crate) stats: Option<SessionStats>,
    /// Whether nothing at all says which model to use.
    pub(crate) is_unconfigured: bool,
    pub(crate) branch: Option<String>,
    /// Whether it is the session that was there before a lost connection.
    pub(crate) is_again: bool,
}

/// Something to be done outside.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    Call(Box<Call>),
    /// Moves to another session.
    Switch(SwitchTo),
    /// Connects again, and starts the daemon where none runs.
    Reconnect,
    Suspend,
    /// Opens the external editor with a text.
    OpenEditor(String),
    /// Looks for files whose path has these letters.
    FindFiles(String),
    /// Stores a shell command in the history.
    Remember(String),
    Redraw,
    Bell,
    Quit,
}

/// The session to move to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SwitchTo {
    New,
    Session(String),
    /// A copy of what came before a message of the user.
    Fork(String),
}

/// A command to the daemon about the session.
#[derive(Debug, PartialEq)]
pub(crate) enum Call {
    Prompt(PromptParams),
    Abort,
    ClearQueue,
    ListModels,
    SetModel {
        provider: String,
        id: String,
    },
    ListLevels,
    SetLevel(ThinkingLevel),
    Compact(Option<String>),
    Rename(String),
    Stats,
    /// The commands of the session, which come and go with MCP servers.
    Commands,
    /// Asked for by `/usage`, to be shown.
    Usage,
    Tree,
    Navigate(String),
    Tools,
    SetTools(Vec<String>),
    SetPermissions(Option<PermissionPreset>),
    SetMode(AgentMode),
    Answer(PermissionResponseParams),
    AnswerDialog(UiResponse),
    Diff {
        since_start: bool,
    },
    Restore(RestoreStep),
    Export(Option<String>),
    ListSessions {
        of_folder: bool,
    },
    History,
    Bash(BashParams),
    AbortBash,
}

/// The answer to a call.
#[derive(Debug)]
pub(crate) enum Reply {
    /// A prompt was taken: the one with this key.
    Accepted(Option<String>),
    PromptFailed(PromptParams, CallFailure),
    Failed(CallFailure),
    Aborted(Option<AbortReceipt>),
    Cleared(ClearedQueue),
    Models(ModelList),
    ModelSet(Box<Model>),
    Levels(Vec<ThinkingLevel>),
    LevelSet(ThinkingLevel),
    Compacted,
    Renamed(String),
    Stats(SessionStats),
    Commands(Vec<SlashCommand>),
    /// Earlier prompts, oldest first.
    History(Vec<String>),
    Usage(SessionStats),
    Tree(Entries),
    Navigated(Box<Navigated>, Vec<Json<SessionMessage>>),
    Tools(ToolList),
    ToolsSet(ActiveTools),
    Permissions(Option<PermissionState>),
    Mode(AgentMode),
    Answered,
    Diff(CheckpointDiff),
    Restored(RestoreStep, RestoredCheckpoint),
    Exported(String),
    Sessions {
        sessions: Vec<SessionInfo>,
        of_folder: bool,
    },
    Ran(BashOutput),
    /// The session that a switch was to could not be opened.
    NotSwitched(CallFailure),
    /// The text of the message that a fork began before.
    ForkText(String),
}

/// The reason why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallFailure {
    pub(crate) error: String,
    pub(crate) hint: Option<String>,
    pub(crate) code: Option<String>,
    /// Whether the connection ended before the answer.
    pub(crate) is_lost: bool,
}
