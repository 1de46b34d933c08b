//! What a list says of a session.

use std::path::PathBuf;

use agentd_protocol::model::ModelName;

/// The facts of a session that lists show.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionSummary {
    /// The file.
    pub path: PathBuf,
    /// The session's id.
    pub id: String,
    /// The working directory.
    pub cwd: String,
    /// Its name.
    pub name: Option<String>,
    /// The file that it was forked from.
    pub parent_session_path: Option<String>,
    /// The time of creation in Unix milliseconds: the header's, else the file's.
    pub created_ms: i64,
    /// The time of the last message of the user or of the model, else the header's, else the file's.
    pub modified_ms: i64,
    /// Message entries.
    pub message_count: u64,
    /// Answers of models.
    pub turns: u64,
    /// What was spent in it, in US dollars; what a fork took over is counted to the session that paid for it.
    pub cost: f64,
    /// The model of the last answer, else the one that was chosen last.
    pub model: Option<ModelName>,
    /// What the user typed first ([`typed_words`](agentd_protocol::prompt_text::typed_words)), or `(no messages)`.
    pub first_message: String,
    /// The texts of user and model, joined by spaces; empty unless they were asked for.
    pub all_messages_text: String,
}

/// The texts that a summary holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListText {
    /// Only the first message of the user.
    #[default]
    First,
    /// All that the user and the model said, to be searched.
    All,
}
