//! What sessions are doing, for clients that watch them and ask for it.

use serde::{Deserialize, Serialize};

use crate::{message::null_as_default, model::ThinkingLevel, number};

/// The fields of `watch_sessions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchSessionsParams {
    /// Whether `session_activity` is sent too; default false.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "is_false")]
    pub activity: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// The answer to `watch_sessions`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchedSessions {
    /// The activity of each session in memory; absent where `activity` was not asked for. A session that does not answer
    /// within half a second is left out; its event follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activities: Option<Vec<SessionActivity>>,
}

/// What a session in memory is doing: at the beginning and the end of its work, and while it works when something differs, at
/// most once a second. For clients that watch sessions with `activity`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionActivity {
    /// The session's id.
    pub session_id: String,
    /// What it is doing.
    pub state: ActivityState,
    /// When that began: Unix time in milliseconds; absent where it is not known, as for `idle`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<i64>,
    /// The provider of the model in use.
    pub provider: String,
    /// The id of the model in use.
    pub model_id: String,
    /// The thinking level.
    pub thinking_level: ThinkingLevel,
    /// The tool calls and `bash` commands that run, in the order of their beginning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<RunningWork>,
    /// The tokens of the answer that streams, estimated where the provider has not counted them yet; absent while none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_tokens: Option<u64>,
    /// Tokens of all finished answers: input, output and caches.
    pub tokens: u64,
    /// The output among `tokens`.
    pub output_tokens: u64,
    /// US dollars spent.
    #[serde(with = "number")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub cost: f64,
    /// Tokens in the context; absent where they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// The size of the model's context window; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// The number of commands of the session that run, those in the background included.
    pub commands: u32,
}

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ActivityState {
    /// Nothing.
    Idle,
    /// It asked a model that has not begun to answer, or prepares that.
    Waiting,
    /// A model thinks.
    Thinking,
    /// A model writes an answer or a tool call.
    Answering,
    /// Tool calls or `bash` commands run.
    Running,
    /// A question to the user is open.
    Asking,
    /// The older part of the context is being summarised.
    Compacting,
    /// It pauses before it asks again for an answer that failed.
    Retrying,
}

/// A tool call or a `bash` command that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunningWork {
    /// The tool; `bash` for a command of the user.
    pub tool: String,
    /// The beginning of its command, path or pattern, at most 200 characters; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// When it began: Unix time in milliseconds; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<i64>,
}
