//! The command table: what a client can ask, with what fields, and what comes back.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{
    Json,
    credentials::{AuthStatus, AuthStatusParams, Login, LoginParams, Logout, LogoutParams},
    daemon::{
        AttachSessionParams, AttachedSession, CloseSessionParams, DaemonStatus, Hello, HelloParams,
        ListSessionsParams, OpenSessionParams, OpenedSession, SessionList, SessionParams, ShutdownParams,
    },
    doctor::{Diagnosis, LocalSetup, SetupLocalParams},
    entry::SessionEntry,
    message::{ImageContent, Message, null_as_default},
    model::{Model, ThinkingLevel},
    model_list::{ListModelsParams, ModelList},
    session::{QueueMode, SessionState, SessionStats},
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
            | Self::Login(_)
            | Self::Logout(_)
            | Self::GetAuthStatus(_)
            | Self::Diagnose(_)
            | Self::SetupLocal(_) => Scope::SetUp,
            Self::NewSession(_)
            | Self::Hello(_)
            | Self::OpenSession(_)
            | Self::AttachSession(_)
            | Self::DetachSession(_)
            | Self::CloseSession(_)
            | Self::ListSessions(_)
            | Self::DeleteSession(_)
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
                | Self::Steer(_)
                | Self::FollowUp(_)
                | Self::Bash(_)
                | Self::NewSession(_)
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
                | Self::GetLastAssistantText(_)
                | Self::GetSessionStats(_)
                | Self::GetAvailableModels(_)
                | Self::GetAvailableThinkingLevels(_)
                | Self::ListModels(_)
                | Self::GetAuthStatus(_)
                | Self::Diagnose(_)
                | Self::Hello(_)
                | Self::AttachSession(_)
                | Self::DetachSession(_)
                | Self::ListSessions(_)
                | Self::DaemonStatus(_)
        )
    }
}

/// The fields of a command that has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoParams {}

commands! {
    /// Starts a run with a message; while a run is active, queues it where `streamingBehavior` says.
    Prompt = "prompt": PromptParams => Accepted,
    /// Queues a message for the next turn of the active run.
    Steer = "steer": QueueParams => Accepted,
    /// Queues a message for when the active run would end.
    FollowUp = "follow_up": QueueParams => Accepted,
    /// Stops the active run, or what `scope` says; answered when that has ended. Queued messages stay queued. With a
    /// `scope` the answer has `data`.
    Abort = "abort": AbortParams => AbortReceipt,
    /// Takes all queued messages back.
    ClearQueue = "clear_queue": NoParams => ClearedQueue,
    /// Leaves the session for a new, empty one.
    NewSession = "new_session": NewSessionParams => Cancelled,
    /// What the session is doing.
    GetState = "get_state": NoParams => SessionState,
    /// The messages of the context.
    GetMessages = "get_messages": NoParams => Messages,
    /// The entries of the session file, of every branch, in file order.
    GetEntries = "get_entries": GetEntriesParams => Entries,
    /// The text of the last answer that has any.
    GetLastAssistantText = "get_last_assistant_text": NoParams => LastText,
    /// Counts, tokens and cost.
    GetSessionStats = "get_session_stats": NoParams => SessionStats,
    /// Chooses the model; the next turn uses it.
    SetModel = "set_model": SetModelParams => Model,
    /// Goes on to the next model.
    CycleModel = "cycle_model": NoParams => Option<CycledModel>,
    /// The models that credentials are configured for.
    GetAvailableModels = "get_available_models": NoParams => Models,
    /// The models that there are, whether usable or not.
    ListModels = "list_models": ListModelsParams => ModelList,
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
    /// Switches retries of failed answers on or off, and saves the choice in the global settings.
    SetAutoRetry = "set_auto_retry": SwitchParams => NoData,
    /// Gives up the retry whose pause is under way; the run ends with the error.
    AbortRetry = "abort_retry": NoParams => NoData,
    /// Runs a shell command of the user's and records it in the session.
    Bash = "bash": BashParams => BashOutput,
    /// Kills all running `bash` commands.
    AbortBash = "abort_bash": NoParams => NoData,
    /// Names the session.
    SetSessionName = "set_session_name": SetSessionNameParams => NoData,
    /// Stores a provider's key in `auth.json`, for every session and program from now.
    Login = "login": LoginParams => Login,
    /// Takes a provider's entry out of `auth.json`.
    Logout = "logout": LogoutParams => Logout,
    /// Where the keys of providers come from; never a key itself.
    GetAuthStatus = "get_auth_status": AuthStatusParams => AuthStatus,
    /// Looks at everything that a session needs, without changing anything.
    Diagnose = "diagnose": NoParams => Diagnosis,
    /// Writes the model servers of this machine into `models.json`.
    SetupLocal = "setup_local": SetupLocalParams => LocalSetup,
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
    /// How the daemon is.
    DaemonStatus = "daemon_status": NoParams => DaemonStatus,
    /// Ends the daemon. Only over its socket.
    Shutdown = "shutdown": ShutdownParams => NoData,
}

/// The fields of `abort`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AbortParams {
    /// What to stop. Without it the run is stopped, as with `turn`, and the answer has no `data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<AbortScope>,
}

/// How much an `abort` stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AbortScope {
    /// The run: its answer and its tool calls.
    Turn,
    /// The tool calls of the current answer; the run goes on with the next turn. Each call that did not succeed has the
    /// result `Operation aborted`.
    Tools,
    /// The run, the user's `bash` commands, and what finished commands left running in the background.
    All,
}

/// The answer to `abort` with a `scope`: what it did.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AbortReceipt {
    /// What was at work and was stopped by this.
    pub ended: Vec<Work>,
    /// What is still at work.
    pub survives: Vec<Work>,
}

/// Something that works for a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Work {
    /// What it is.
    pub kind: WorkKind,
    /// The id of a tool call, or of the `bash` command if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    /// The tool, or the command line of a `bash` command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What works for a session.
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
    /// What a finished command left running.
    Background,
}

/// The fields of `prompt`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PromptParams {
    /// The text.
    pub message: String,
    /// Images that go with it.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Where the message goes while a run is active: `followUp`, or `steer` (which any other word means as well).
    #[serde(default, deserialize_with = "streaming_behavior", skip_serializing_if = "Option::is_none")]
    pub streaming_behavior: Option<StreamingBehavior>,
}

/// Where a prompt goes while a run is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum StreamingBehavior {
    /// To the next turn.
    Steer,
    /// After the run.
    FollowUp,
}

/// As the reference reads it: any truthy value but `followUp` means `steer`.
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
    /// Images that go with it.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Accepted {
    /// What became of it.
    pub disposition: Disposition,
}

/// What became of a message.
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
    /// The text; absent when no answer has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The fields of `set_model`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SetModelParams {
    /// The provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
}

/// The answer to `cycle_model`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CycledModel {
    /// The model.
    pub model: Model,
    /// The thinking level that goes with it.
    pub thinking_level: ThinkingLevel,
    /// Whether the models to cycle through were limited by `--models` or the settings.
    pub is_scoped: bool,
}

/// The answer to `get_available_models`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Models {
    /// The models.
    pub models: Vec<Model>,
}

/// The fields of `set_thinking_level`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetThinkingLevelParams {
    /// The level's name.
    pub level: String,
}

/// The answer to `cycle_thinking_level`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CycledLevel {
    /// The level.
    pub level: ThinkingLevel,
}

/// The answer to `get_available_thinking_levels`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Levels {
    /// The levels, weakest first.
    pub levels: Vec<ThinkingLevel>,
}

/// The fields of `set_steering_mode` and `set_follow_up_mode`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueModeParams {
    /// The mode.
    pub mode: QueueMode,
}

/// The fields of commands that switch something on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SwitchParams {
    /// On or off.
    pub enabled: bool,
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
