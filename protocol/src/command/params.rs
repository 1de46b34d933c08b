//! The fields of commands about a session, and what they answer with.

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;

use crate::{
    Json,
    entry::SessionEntry,
    message::{ImageContent, Message, null_as_default},
    session::InterruptMode,
    settings::BudgetLimits,
};

/// The result of a command that answers without `data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoData;

/// The fields of a command whose answer depends on the client. It has no fields in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LookParams {
    /// Whether the client said `hello`. Set by the connection.
    #[serde(skip)]
    pub introduced: bool,
    /// Whether it said that with `sessions`, and so has the answer in progress from when it joined. Set by the connection.
    #[serde(skip)]
    pub names_sessions: bool,
}

/// The fields of a command that has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoParams {}

/// The fields of `abort`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AbortParams {
    /// The work to stop. Without it the run is stopped, as with `turn`, and the answer has no `data` unless
    /// a tool call does not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<AbortScope>,
}

/// The work that an `abort` stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AbortScope {
    /// The run: its answer and its tool calls.
    Turn,
    /// The tool calls of the current answer; the run goes on with the next turn. Each call that did not succeed has the
    /// result `Operation aborted`.
    Tools,
    /// The run, the user's `bash` commands, and processes that finished commands left running in the background.
    All,
}

/// The answer to `abort` with a `scope`, or if a tool call does not end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AbortReceipt {
    /// The work that was stopped.
    pub ended: Vec<Work>,
    /// The work that continues: work outside of the scope, and work that has not ended within a second. A tool call in this list has
    /// its result already; later output of it is lost.
    pub survives: Vec<Work>,
}

/// A piece of work for a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Work {
    /// Its kind.
    pub kind: WorkKind,
    /// The id of a tool call, or of the `bash` command if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    /// The tool, or the command line of a `bash` command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The kind of a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WorkKind {
    /// The run.
    Turn,
    /// A tool call.
    Tool,
    /// A `bash` command of the user.
    Bash,
    /// A process that a finished command left running.
    Background,
    /// A compaction that the command `compact` began.
    Compaction,
}

/// The fields of `prompt`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PromptParams {
    /// The text.
    pub message: String,
    /// What the user typed, where the client has added to it, such as the contents of files: that is what the prompt history keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typed: Option<String>,
    /// Images of the message.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// The queue for the message while a run is active: `followUp`, or `steer` (which any other word means as well).
    #[serde(default, deserialize_with = "streaming_behavior", skip_serializing_if = "Option::is_none")]
    pub streaming_behavior: Option<StreamingBehavior>,
    /// Makes a repetition safe: a command with a key that the session knows already (of its last 1,000) is answered as
    /// the first was, and does nothing. It is kept with the entry that the command causes; 1 to 256 bytes.
    #[serde(default, deserialize_with = "request_key", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 256)))]
    pub request_key: Option<String>,
    /// Limits of the run that the prompt begins, beside those of the settings: of each limit the lower one counts. A message that
    /// is queued counts to the run that it joins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetLimits>,
    /// The span that the run belongs to, as the W3C header `traceparent` has it. Counts only where the daemon sends traces; one
    /// that is malformed is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// The longest `requestKey` in bytes.
pub const MAX_REQUEST_KEY_BYTES: usize = 256;

/// A key of 1 to [`MAX_REQUEST_KEY_BYTES`] bytes; `null` is none.
fn request_key<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let key = Option::<String>::deserialize(deserializer)?;
    match key.as_deref().map_or(1, str::len) {
        1..=MAX_REQUEST_KEY_BYTES => Ok(key),
        length => Err(D::Error::custom(format!("expected 1 to {MAX_REQUEST_KEY_BYTES} bytes, got {length}"))),
    }
}

/// The queue for a prompt while a run is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum StreamingBehavior {
    /// To the next turn.
    Steer,
    /// After the run.
    FollowUp,
}

/// As in pi, any truthy value but `followUp` means `steer`.
fn streaming_behavior<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<StreamingBehavior>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Null | Value::Bool(false) => None,
        Value::String(word) if word.is_empty() => None,
        Value::Number(number) if number.as_f64() == Some(0.0) => None,
        Value::String(word) if word == "followUp" => Some(StreamingBehavior::FollowUp),
        _ => Some(StreamingBehavior::Steer),
    })
}

/// An image in a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// `image`.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// The bytes in base64.
    pub data: String,
    /// Such as `image/png`.
    pub mime_type: String,
}

impl From<Image> for ImageContent {
    fn from(image: Image) -> Self {
        Self { data: image.data, mime_type: image.mime_type }
    }
}

/// The fields of `steer` and `follow_up`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QueueParams {
    /// The text.
    pub message: String,
    /// Images of the message.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Makes a repetition safe: a command with a key that the session knows already (of its last 1,000) is answered as
    /// the first was, and does nothing. It is kept with the entry that the command causes; 1 to 256 bytes.
    #[serde(default, deserialize_with = "request_key", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 256)))]
    pub request_key: Option<String>,
}

/// The outcome of sending a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    /// The outcome.
    pub disposition: Disposition,
    /// Whether the model is asked, so that a `prompt_result` follows; only for clients with the capability `promptResult`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_invoked: Option<bool>,
}

/// The outcome of sending a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Disposition {
    /// A run started with it.
    Started,
    /// It waits in a queue.
    Queued,
    /// An extension took it.
    Handled,
}

/// The answer to `clear_queue`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClearedQueue {
    /// The steering messages that were waiting.
    pub steering: Vec<String>,
    /// The follow-up messages that were waiting.
    pub follow_up: Vec<String>,
}

/// The fields of `new_session`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewSessionParams {
    /// The session file to name as the new session's parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
}

/// The answer of commands that replace the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cancelled {
    /// Whether an extension prevented it.
    pub cancelled: bool,
}

/// The answer to `get_messages`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Messages {
    /// The messages, oldest first.
    pub messages: Vec<Json<Message>>,
}

/// The fields of `get_entries`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GetEntriesParams {
    /// Only entries after the one with this id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// The answer to `get_entries`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Entries {
    /// The entries in file order.
    pub entries: Vec<Json<SessionEntry>>,
    /// The entry that the next one will follow; `null` in an empty session.
    pub leaf_id: Option<String>,
}

/// The answer to `get_last_assistant_text`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LastText {
    /// The text; absent when the last answer has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The fields of `set_interrupt_mode`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterruptModeParams {
    /// The mode.
    pub mode: InterruptMode,
}

/// The fields of commands that switch something on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SwitchParams {
    /// On or off.
    pub enabled: bool,
}

/// The fields of `compact`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CompactParams {
    /// The focus of the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
}

/// The fields of `bash`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BashParams {
    /// The command line.
    pub command: String,
    /// Whether the model is spared command and output.
    #[serde(default, deserialize_with = "null_as_default")]
    pub exclude_from_context: bool,
    /// Makes a repetition safe: a command with a key that the session knows already (of its last 1,000) is answered as
    /// the first was, and does nothing. It is kept with the entry that the command causes; 1 to 256 bytes.
    #[serde(default, deserialize_with = "request_key", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 256)))]
    pub request_key: Option<String>,
}

/// The answer to `bash`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BashOutput {
    /// The end of what the command printed.
    pub output: String,
    /// The exit code (128 + N after signal N); absent when the command was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Whether `abort_bash` stopped it.
    pub cancelled: bool,
    /// Whether `output` is only a part.
    pub truncated: bool,
    /// The file with all output, when there was much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<String>,
}

/// The fields of `set_session_name`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetSessionNameParams {
    /// The name; surrounding white space is dropped.
    pub name: String,
}
