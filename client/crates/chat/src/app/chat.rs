//! The state of the program.

use std::{collections::VecDeque, path::PathBuf, time::Instant};

use agentd_protocol::{
    agent_mode::AgentMode,
    command::PromptParams,
    model::{Model, ThinkingLevel},
    resources::SlashCommand,
    session::{PermissionState, SessionState, SessionStats},
    ui::ExtensionUiRequest,
};

use crate::{
    complete::Completions,
    editor::Editor,
    history::PromptHistory,
    panels::{Picker, QuestionPanel, TreePanel},
    transcript::{CellSize, Transcript},
};

/// Everything that the screen shows, and what keys mean now.
#[derive(Debug)]
pub(crate) struct Chat {
    pub(crate) session: SessionState,
    pub(crate) stats: Option<SessionStats>,
    pub(crate) folder: PathBuf,
    pub(crate) home: Option<PathBuf>,
    pub(crate) branch: Option<String>,
    pub(crate) connection: Connection,
    pub(crate) transcript: Transcript,
    pub(crate) editor: Editor,
    pub(crate) history: PromptHistory,
    /// Whether the daemon was asked for the prompts of earlier sessions.
    pub(crate) has_history: bool,
    pub(crate) completions: Completions,
    /// Prompt templates and skills of the session.
    pub(crate) commands: Vec<SlashCommand>,
    /// The prompts of MCP servers, which are commands.
    pub(crate) server_prompts: Vec<(String, Vec<String>)>,
    pub(crate) panel: Option<Panel>,
    /// Questions of the session, the first one on the screen.
    pub(crate) questions: VecDeque<ExtensionUiRequest>,
    pub(crate) question: Option<QuestionPanel>,
    pub(crate) activity: Option<Activity>,
    /// Messages that wait: steering ones, and those for after the run.
    pub(crate) steering: Vec<String>,
    pub(crate) follow_ups: Vec<String>,
    /// The blocks of the answer that streams: the numbers of their entries.
    pub(crate) blocks: Vec<Option<i64>>,
    /// What was sent from here, and has not come back as a message yet.
    pub(crate) sent: VecDeque<String>,
    /// Prompts without an answer: sent again after a lost connection.
    pub(crate) unanswered: VecDeque<PromptParams>,
    /// The entry of the `!` command that runs.
    pub(crate) bash: Option<i64>,
    /// A line below the input that the next key takes away.
    pub(crate) flash: Option<String>,
    /// Whether Ctrl-C was the last key, with nothing typed: the next one leaves.
    pub(crate) is_leaving: bool,
    /// Whether Ctrl-X was the last key.
    pub(crate) is_after_ctrl_x: bool,
    /// The client that uses the keyboard has answered this question: its id.
    pub(crate) answered: Option<String>,
    /// The pixels of a cell, where the terminal draws images.
    pub(crate) cell: Option<CellSize>,
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) statuses: Vec<(String, String)>,
    /// What the list of models is to be filtered by when it comes.
    pub(crate) filter_models: Option<String>,
}

/// What stands in the place of the input.
#[derive(Debug)]
pub(crate) enum Panel {
    Models(Picker<Model>),
    Levels(Picker<ThinkingLevel>),
    Sessions(Picker<String>),
    Tools(Picker<String>),
    Permissions(Picker<agentd_protocol::settings::PermissionPreset>),
    History(Picker<String>),
    Tree(TreePanel),
}

/// The connection to the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Connection {
    Connecting,
    Up,
    /// It ended, and is tried again.
    Lost(String),
    /// Another client closed the session.
    Closed,
}

/// What the session is at work with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Activity {
    pub(crate) since: Instant,
    pub(crate) what: String,
}

impl Chat {
    /// A program that has not reached the daemon yet.
    pub(crate) fn new(folder: PathBuf, home: Option<PathBuf>) -> Self {
        Self {
            session: unknown_session(),
            stats: None,
            folder,
            home,
            branch: None,
            connection: Connection::Connecting,
            transcript: Transcript::default(),
            editor: Editor::default(),
            history: PromptHistory::default(),
            has_history: false,
            completions: Completions::default(),
            commands: Vec::new(),
            server_prompts: Vec::new(),
            panel: None,
            questions: VecDeque::new(),
            question: None,
            activity: None,
            steering: Vec::new(),
            follow_ups: Vec::new(),
            blocks: Vec::new(),
            sent: VecDeque::new(),
            unanswered: VecDeque::new(),
            bash: None,
            flash: None,
            is_leaving: false,
            is_after_ctrl_x: false,
            answered: None,
            cell: None,
            width: 80,
            height: 24,
            statuses: Vec::new(),
            filter_models: None,
        }
    }

    /// Whether something on the screen changes with time alone.
    pub(crate) fn is_timed(&self) -> bool {
        self.activity.is_some()
            || self.question.as_ref().is_some_and(QuestionPanel::is_timed)
            || self.bash.is_some()
    }

    /// Whether a run is on.
    pub(crate) fn is_working(&self) -> bool {
        self.activity.is_some()
    }

    /// Whether the session asks about calls.
    pub(crate) fn permissions(&self) -> Option<&PermissionState> {
        self.session.permissions.as_ref()
    }

    /// The columns of the conversation.
    pub(crate) fn transcript_width(&self) -> usize {
        self.width.saturating_sub(2).max(10)
    }

    /// The columns for what is typed.
    pub(crate) fn input_width(&self) -> usize {
        self.width.saturating_sub(2).max(2)
    }
}

fn unknown_session() -> SessionState {
    SessionState {
        model: Model::placeholder(),
        thinking_level: ThinkingLevel::Off,
        is_streaming: false,
        is_compacting: false,
        steering_mode: Default::default(),
        follow_up_mode: Default::default(),
        interrupt_mode: Default::default(),
        fallback_models: Vec::new(),
        fallback_model: None,
        session_file: None,
        session_id: String::new(),
        session_name: None,
        cwd: None,
        auto_compaction_enabled: false,
        message_count: 0,
        pending_message_count: 0,
        queued_message_count: None,
        is_settled: None,
        has_pending_async_work: None,
        pending_tool_calls: None,
        has_streaming_message: None,
        permissions: None,
        error_message: None,
        budgets: None,
        project_untrusted: None,
        sandbox: None,
        undo: None,
        mode: AgentMode::Default,
        todo_phases: Vec::new(),
    }
}
