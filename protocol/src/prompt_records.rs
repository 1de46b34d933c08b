//! The records around the events that `agentctl prompt --json` prints: the first line, and the last one.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    message::StopReason,
    model::{ModelName, ThinkingLevel},
    usage::Usage,
};

/// A line of `agentctl prompt --json` that is no event of the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PromptRecord {
    /// The first line; missing where no session could be opened.
    Session(PromptSession),
    /// The last line, whatever the end; missing where the command line cannot be used, and where nobody waits for the end: after
    /// a second signal, or with a closed stdout.
    Result(Box<PromptResult>),
}

/// The session that a prompt works in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PromptSession {
    /// The session's id.
    pub id: String,
    /// Its file, which appears with the first message; absent for a session in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The folder that it works in.
    pub cwd: String,
    /// The model; null where none is usable, which ends the prompt.
    pub model: Option<ModelName>,
    /// The thinking level.
    pub thinking_level: ThinkingLevel,
}

/// What came of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PromptResult {
    /// The session's id; absent where no session could be opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The exit code of the program.
    pub exit_code: u8,
    /// The reason of an exit code other than 0, as on stderr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The text of the last answer, a line feed between its blocks; null where the last answer failed or none came.
    pub answer: Option<String>,
    /// With `--output-schema`: the answer as a value that fits the schema; absent where none came. `answer` is its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Why the last answer ended; null where none came.
    pub stop_reason: Option<StopReason>,
    /// Answers of the model, without those that failed.
    pub turns: u64,
    /// Tool calls that ended.
    pub tool_calls: u64,
    /// The tokens and the cost of all answers and compactions, those that failed included.
    pub usage: Usage,
    /// From the start of the program, in milliseconds.
    pub duration_ms: u64,
    /// Files that `edit` and `write` changed and, with undo on, that commands changed; sorted, relative to the session's folder where they are
    /// below it.
    pub files_changed: Vec<String>,
    /// Changed files that are not listed: `filesChanged` has at most 1,000, and of the files that one command changed 20. A file that several
    /// commands changed can count several times. Absent for 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub files_not_listed: u64,
    /// Events that are missing above and in these numbers, since stdout was read too slowly in a session that others follow, too. Absent for 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missed_events: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
