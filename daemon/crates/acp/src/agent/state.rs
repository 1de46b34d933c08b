//! The state of an [`Agent`]: its sessions, and the requests of both sides that are not answered yet.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    path::PathBuf,
};

use agentd_protocol::{
    budget::BudgetQuantity,
    command::Entries,
    error::ErrorCode,
    message::StopReason,
    permissions::PermissionOption,
    session::SessionState,
    settings::PermissionPreset,
    todo::TodoPhase,
    ui::{ExtensionUiRequest, UiMethod},
};
use agentd_translator::DaemonCalls;

use crate::{
    options::Options,
    own_message::OwnMessage,
    requests::{ClientCapabilities, PromptBlock},
    rpc::{RequestId, RpcError},
    server_tools::ServerTools,
    terminals::{TerminalAnswer, TerminalCall},
    tool_calls::{Arguments, Folders, OldText},
};

/// What an [`Agent`] is told at its start.
#[derive(Debug, Default)]
pub struct AgentOptions {
    /// Our version.
    pub version: String,
    /// Flags of the command line for each session that is opened.
    pub session_args: Vec<String>,
    /// The environment of sessions, where the daemon has another one.
    pub env: Option<BTreeMap<String, String>>,
    /// The folder for `~` in paths.
    pub home: Option<PathBuf>,
    /// Whether the daemon has other clients, and its sessions outlive this one.
    pub shared: bool,
    /// This program, absolute, for a terminal of the client.
    pub program: PathBuf,
    /// Whether the files of sessions are those of this machine.
    pub local_files: bool,
}

/// What is to be done after a line.
#[derive(Debug, Default)]
pub struct Effects {
    /// Whole lines for the editor.
    pub to_client: Vec<u8>,
    /// Lines for the daemon, without LF.
    pub to_daemon: VecDeque<String>,
    /// Files to read; [`Agent::file_read`] takes each.
    pub reads: Vec<FileRead>,
    /// The editor's answers about its files, by the numbers of [`Agent::text_wanted`] and [`Agent::text_written`]: a text for the first,
    /// an empty one for the second, or why there is none.
    pub texts: Vec<(u64, Result<String, String>)>,
    /// The editor's answers about its terminals, by the numbers of [`Agent::terminal_wanted`].
    pub terminals: Vec<(u64, Result<TerminalAnswer, String>)>,
    /// The reason why the daemon cannot be used.
    pub unusable: Option<String>,
}

/// A file whose text is wanted, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRead {
    /// The session.
    pub session: String,
    /// The tool call that is about to write it.
    pub call: String,
    /// The file, absolute.
    pub path: PathBuf,
}

/// An editor's agent. See the crate's documentation.
#[derive(Debug)]
pub struct Agent {
    pub(super) options: AgentOptions,
    pub(super) client: ClientCapabilities,
    pub(super) sessions: HashMap<String, Session>,
    /// Our commands that the daemon has not answered.
    pub(super) daemon_calls: DaemonCalls<DaemonCall>,
    /// Our requests that the editor has not answered, by their ids.
    pub(super) client_calls: HashMap<u64, ClientCall>,
    pub(super) last_client_call: u64,
}

/// A session that the editor has open.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) folders: Folders,
    /// The further folders that the editor gave it.
    pub(super) additional_directories: Vec<String>,
    pub(super) options: Options,
    /// Set until the request that opened it is answered.
    pub(super) opening: Option<Opening>,
    /// The prompt that is worked on.
    pub(super) turn: Option<Turn>,
    /// The prompts after it, oldest first.
    pub(super) waiting: VecDeque<(RequestId, Vec<PromptBlock>)>,
    /// The id of the message that streams.
    pub(super) message_id: String,
    /// The tool calls that have not ended, by their ids.
    pub(super) tools: HashMap<String, ToolState>,
    /// The `write` calls whose arguments stream, by their place in the message: their arguments so far.
    pub(super) streaming_writes: HashMap<usize, StreamingWrite>,
    /// Questions that wait for a turn.
    pub(super) held: Vec<ExtensionUiRequest>,
    /// What to tell the user at the beginning of the next turn.
    pub(super) remarks: Vec<String>,
    /// What its MCP servers say of their tools.
    pub(super) server_tools: ServerTools,
    /// Its list of tasks, until the request that opened it is answered.
    pub(super) todos: Vec<TodoPhase>,
    /// The prompts of its MCP servers, which are commands.
    pub(super) server_prompts: Vec<(String, Vec<String>)>,
    /// US dollars spent.
    pub(super) cost: f64,
    /// The compaction under way.
    pub(super) compaction: Option<String>,
    /// Set while a request of the editor changes an option: its answer has all of them.
    pub(super) is_changing: bool,
    /// Set from the opening in the middle of a run until it is known what was in progress.
    pub(super) is_joining: bool,
    /// The last one of the messages that wait in the session, of whatever client.
    pub(super) last_queued: Option<String>,
}

/// The purpose of opening a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    New,
    Load,
    Resume,
    Fork,
}

/// A request to open a session, before the daemon has answered.
#[derive(Debug)]
pub(super) struct OpenRequest {
    pub(super) request: RequestId,
    pub(super) purpose: Purpose,
    /// The further folders that it is to have.
    pub(super) additional_directories: Vec<String>,
    /// The session that was asked for.
    pub(super) asked: Option<String>,
}

/// A session that the daemon has opened, and that is not told yet.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) request: RequestId,
    pub(super) purpose: Purpose,
    /// How many answers of the daemon are missing.
    pub(super) missing: u8,
    pub(super) entries: Option<Entries>,
}

/// A prompt that is worked on.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) request: RequestId,
    /// Whether the daemon has taken it.
    pub(super) is_accepted: bool,
    /// Its message.
    pub(super) own: OwnMessage,
    pub(super) is_cancelled: bool,
    /// The end of the last answer.
    pub(super) last: Option<AnswerEnd>,
    /// The budget that ended it.
    pub(super) budget: Option<BudgetQuantity>,
}

/// How an answer ended.
#[derive(Debug, Clone)]
pub(super) struct AnswerEnd {
    pub(super) stop_reason: StopReason,
    pub(super) error: Option<String>,
    pub(super) code: Option<ErrorCode>,
}

/// A tool call that has not ended.
#[derive(Debug, Default)]
pub(super) struct ToolState {
    pub(super) name: String,
    pub(super) arguments: Option<Arguments>,
    /// The file that it is about to write, as it was.
    pub(super) old: Option<OldText>,
    /// Whether it runs.
    pub(super) is_running: bool,
    /// The editor's terminal that it runs in.
    pub(super) terminal: Option<String>,
}

/// The arguments of a `write` call, until its path is known.
#[derive(Debug, Default)]
pub(super) struct StreamingWrite {
    pub(super) call: String,
    pub(super) arguments: String,
}

/// A command of ours that the daemon has not answered.
#[derive(Debug)]
pub(super) enum DaemonCall {
    Hello,
    Open(Box<OpenRequest>),
    Models {
        session: String,
    },
    Levels {
        session: String,
        then: Option<RequestId>,
    },
    Commands {
        session: String,
    },
    Tools {
        session: String,
    },
    Entries {
        session: String,
    },
    /// Statistics: at the end of a turn if `ends_turn`.
    Stats {
        session: String,
        ends_turn: bool,
    },
    Prompt {
        session: String,
    },
    /// The state of a session after an extension took the prompt.
    AtWork {
        session: String,
    },
    Close {
        session: String,
        request: RequestId,
        delete: bool,
    },
    /// The end of a session that the editor does not get: then its request is refused.
    Refuse {
        request: RequestId,
        error: RpcError,
    },
    Delete {
        request: RequestId,
    },
    List {
        request: RequestId,
    },
    SetMode {
        session: String,
        request: RequestId,
        is_option: bool,
        wanted: String,
    },
    /// Into plan mode, or out of it and `then` to a preset.
    SetPlan {
        session: String,
        request: RequestId,
        is_option: bool,
        then: Option<PermissionPreset>,
    },
    SetModel {
        session: String,
        request: RequestId,
    },
    SetLevel {
        session: String,
        request: RequestId,
    },
    Reattach {
        session: String,
    },
    /// What is in progress in a session that was opened in the middle of a run.
    Join {
        session: String,
        has_history: bool,
    },
    UsableModels {
        request: RequestId,
    },
    /// Its failure is no news for the editor.
    Quiet,
}

/// A request of ours that the editor has not answered.
#[derive(Debug)]
pub(super) enum ClientCall {
    /// A question about a call: its id, and what was offered.
    Permission { session: String, question: String, options: Vec<PermissionOption> },
    /// A dialog. `as_form`: it was asked as a form.
    Dialog { session: String, question: String, method: UiMethod, as_form: bool },
    /// A text of the editor.
    Text { session: String, number: u64, is_read: bool },
    /// Something about a terminal of the editor.
    Terminal { session: String, number: u64, call: TerminalCall },
}

impl ClientCall {
    /// The daemon's id of the question, where it is one.
    pub(super) fn question(&self) -> Option<&str> {
        match self {
            Self::Permission { question, .. } | Self::Dialog { question, .. } => Some(question),
            Self::Text { .. } | Self::Terminal { .. } => None,
        }
    }

    /// Whether it waits for the end of the command in a terminal.
    pub(super) fn is_about(&self, terminal: &str) -> bool {
        matches!(self, Self::Terminal { call: TerminalCall::Exit(of), .. } if of == terminal)
    }

    pub(super) fn session(&self) -> &str {
        match self {
            Self::Permission { session, .. }
            | Self::Dialog { session, .. }
            | Self::Text { session, .. }
            | Self::Terminal { session, .. } => session,
        }
    }
}

impl Session {
    pub(super) fn new(state: &SessionState, folders: Folders) -> Self {
        Self {
            folders,
            additional_directories: Vec::new(),
            options: Options::of(state),
            opening: None,
            turn: None,
            waiting: VecDeque::new(),
            message_id: String::new(),
            tools: HashMap::new(),
            streaming_writes: HashMap::new(),
            held: Vec::new(),
            remarks: Vec::new(),
            server_tools: ServerTools::default(),
            todos: state.todo_phases.clone(),
            server_prompts: Vec::new(),
            cost: 0.0,
            compaction: None,
            is_changing: false,
            is_joining: state.is_streaming,
            last_queued: None,
        }
    }
}
