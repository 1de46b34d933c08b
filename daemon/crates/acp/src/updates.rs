//! What is sent to clients: the results of their requests, and the updates of sessions.

use serde::Serialize;
use serde_json::{Value, value::RawValue};

/// A piece of content.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum Content {
    /// Text, which clients show as Markdown.
    Text { text: String },
    /// An image, in Base64.
    Image { data: String, mime_type: String },
}

impl Content {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// An update of a session.
#[expect(clippy::enum_variant_names, reason = "the names are those of the protocol")]
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum Update {
    /// A part of a message of the user, in a history.
    UserMessageChunk {
        content: Content,
        #[serde(skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
    },
    /// A part of an answer.
    AgentMessageChunk {
        content: Content,
        #[serde(skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
    },
    /// A part of the model's reasoning.
    AgentThoughtChunk {
        content: Content,
        #[serde(skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
    },
    /// A tool call, complete with what is known of it.
    ToolCall(ToolCallFields),
    /// What changed about a tool call.
    ToolCallUpdate(ToolCallFields),
    /// What is to be done, all of it.
    Plan { entries: Vec<PlanEntry> },
    /// The commands that a prompt can begin with.
    AvailableCommandsUpdate { available_commands: Vec<AvailableCommand> },
    /// Another mode.
    CurrentModeUpdate { current_mode_id: &'static str },
    /// Options, all of them.
    ConfigOptionUpdate { config_options: Vec<ConfigOption> },
    /// The session's name.
    SessionInfoUpdate {
        /// `None`: it has none any more.
        title: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        updated_at: Option<String>,
    },
    /// Tokens and cost.
    UsageUpdate {
        used: u64,
        size: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        cost: Option<Cost>,
    },
    /// Something that the user should know. For clients that said so.
    Notice {
        severity: Severity,
        title: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    /// A compaction. For clients that said so.
    CompactionUpdate {
        compaction_id: String,
        status: CompactionStatus,
        #[serde(skip_serializing_if = "Option::is_none")]
        summary: Option<Vec<Content>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
}

/// The severity of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    Info,
    Warning,
    Error,
}

/// The state of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CompactionStatus {
    InProgress,
    Completed,
    Failed,
    Cancelled,
}

/// An amount of money.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Cost {
    pub(crate) amount: f64,
    pub(crate) currency: &'static str,
}

/// What is said of a tool call: what is absent stays as it was, what is there replaces it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolCallFields {
    pub(crate) tool_call_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<ToolKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<ToolStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<Vec<ToolContent>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) locations: Option<Vec<Location>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) raw_input: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) raw_output: Option<Value>,
}

/// The kind of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolKind {
    Read,
    Edit,
    Search,
    Execute,
    Think,
    Fetch,
    SwitchMode,
    Other,
}

/// The state of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolStatus {
    Pending,
    InProgress,
    Completed,
    Failed,
}

/// What a tool call gives.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum ToolContent {
    /// Text or an image.
    Content { content: Content },
    /// A change of a file.
    Diff {
        path: String,
        /// `None` for a new file.
        old_text: Option<String>,
        new_text: String,
    },
    /// A terminal of the client's.
    Terminal { terminal_id: String },
}

/// One thing that is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct PlanEntry {
    pub(crate) content: String,
    pub(crate) priority: &'static str,
    pub(crate) status: PlanStatus,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PlanStatus {
    Pending,
    InProgress,
    Completed,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Location {
    /// Absolute.
    pub(crate) path: String,
    /// From 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<u32>,
}

/// A command that a prompt can begin with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct AvailableCommand {
    /// Without the slash.
    pub(crate) name: String,
    pub(crate) description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<CommandInput>,
}

/// What a command takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct CommandInput {
    pub(crate) hint: String,
}

/// An option of a session: one of several values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfigOption {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) category: &'static str,
    pub(crate) current_value: String,
    pub(crate) options: Vec<ConfigValue>,
}

/// A value of an option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ConfigValue {
    pub(crate) value: String,
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<&'static str>,
}

/// The modes of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModeState {
    pub(crate) current_mode_id: &'static str,
    pub(crate) available_modes: Vec<Mode>,
}

/// A mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Mode {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
}

/// Appends the line of an update.
pub(crate) fn write_update(session: &str, update: &Update, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        session_id: &'a str,
        update: &'a Update,
    }
    crate::rpc::write_notification("session/update", &Params { session_id: session, update }, out);
}

/// Appends the line of a growing answer: `text` is the added text in JSON, and is copied as it is. This is the only line that is
/// sent for every few characters of a model.
pub(crate) fn write_chunk(session: &str, kind: &str, message_id: &str, text: &RawValue, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"#);
    write_string(session, out);
    out.extend_from_slice(br#","update":{"sessionUpdate":""#);
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(br#"","content":{"type":"text","text":"#);
    out.extend_from_slice(text.get().as_bytes());
    out.extend_from_slice(br#"},"messageId":"#);
    write_string(message_id, out);
    out.extend_from_slice(b"}}}\n");
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    // Writing a text into memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_the_same_line_as_an_update() {
        let text = "a \"b\"\n\u{1}é";
        let raw = serde_json::value::to_raw_value(text).unwrap();
        let (mut fast, mut plain) = (Vec::new(), Vec::new());
        write_chunk("s", "agent_message_chunk", "m-1", &raw, &mut fast);
        let update =
            Update::AgentMessageChunk { content: Content::text(text), message_id: Some("m-1".into()) };
        write_update("s", &update, &mut plain);
        assert_eq!(String::from_utf8(fast).unwrap(), String::from_utf8(plain).unwrap());
    }
}
