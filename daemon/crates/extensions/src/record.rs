//! Records of the host protocol, version 1: JSON Lines in both directions.
//!
//! A record is a request (with an `id`), a `result` of one, or a note. `docs/extension-protocol.md` has them all.

use std::borrow::Cow;

use agentd_protocol::tool::{ConstrainedSampling, ToolAnnotations};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

/// The version of the protocol.
pub const PROTOCOL_VERSION: u32 = 1;

/// A record of a host.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// The result of one of our requests.
    Result { id: u64, outcome: Result<Box<RawValue>, HostFailure> },
    /// The host gives up one of its calls.
    Cancel { id: u64 },
    /// The host asks for something.
    Call(HostCall),
    /// A request of a type that we do not know.
    Unknown { id: u64, kind: String },
    /// An extension registers something, or takes it back.
    Registration { epoch: u64, ext: String, is_taken_back: bool, what: Box<Registration> },
    /// The result of a tool so far, an event of a stream, or a piece of the output of a command.
    Partial { call: u64, partial: Value },
    /// Something for the user that needs no answer.
    Ui(UiNote),
    /// An extension failed outside of a request.
    Error(ErrorNote),
    /// A line for the log.
    Log { level: Option<String>, text: String },
    /// A record within a channel.
    Channel { channel: u64, record: Box<RawValue> },
    /// Something that this version does not know.
    Ignored,
}

/// A call of a host.
#[derive(Debug, Deserialize)]
pub(crate) struct HostCall {
    pub(crate) id: u64,
    #[serde(default)]
    pub(crate) epoch: u64,
    #[serde(default)]
    pub(crate) ext: String,
    pub(crate) method: String,
    #[serde(default)]
    pub(crate) params: Value,
    /// The request of ours in which it was made.
    #[serde(default)]
    pub(crate) within: Option<u64>,
}

/// Something for the user that needs no answer: `method` and its fields as in `extension_ui_request`.
#[derive(Debug, Deserialize)]
pub(crate) struct UiNote {
    #[serde(default)]
    pub(crate) epoch: u64,
    #[serde(flatten)]
    pub(crate) fields: Map<String, Value>,
}

/// The failure of an extension outside of a request.
#[derive(Debug, Deserialize)]
pub(crate) struct ErrorNote {
    #[serde(default)]
    pub(crate) ext: String,
    #[serde(default)]
    pub(crate) event: String,
    #[serde(default)]
    pub(crate) message: String,
}

/// Why a host could not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct HostFailure {
    /// For people.
    pub message: String,
    /// For programs: `stale`, `unsupported`, `too_large`, `invalid`, `not_in_command`, `gone`, `late`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Where in the extension's code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
}

impl HostFailure {
    /// A failure with a code.
    #[must_use]
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { message: message.into(), code: Some(code.to_owned()), stack: None }
    }
}

/// Something that an extension registers.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub(crate) enum Registration {
    /// A handler of an event.
    Handler {
        h: u64,
        #[serde(default)]
        event: String,
    },
    /// A tool.
    Tool {
        def: Box<ToolDefinition>,
        #[serde(default)]
        has: Vec<String>,
    },
    /// A slash command.
    Command {
        name: String,
        #[serde(default)]
        description: Option<String>,
        #[serde(default)]
        completes: bool,
    },
    /// A flag of the command line.
    Flag {
        name: String,
        /// `boolean` or `string`.
        #[serde(default, rename = "valueType")]
        value_type: String,
    },
    /// A provider: its fields by name, or an object of the extension.
    Provider {
        name: String,
        #[serde(default)]
        config: Map<String, Value>,
        #[serde(default)]
        native: bool,
        /// The data and the functions of the object.
        #[serde(default)]
        provider: Map<String, Value>,
    },
    /// A virtual model; taken back by its names.
    #[serde(rename_all = "camelCase")]
    VirtualModel {
        #[serde(default)]
        model: Map<String, Value>,
        #[serde(default)]
        cb: u64,
        #[serde(default)]
        provider: String,
        #[serde(default)]
        id: String,
    },
    /// Something that this version lists or ignores.
    #[serde(other)]
    Other,
}

/// A tool as an extension defines it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition {
    /// The name for the model.
    pub name: String,
    /// The name for people.
    #[serde(default)]
    pub label: Option<String>,
    /// What it does, for the model.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the arguments.
    #[serde(default)]
    pub parameters: Value,
    /// A line in the system prompt.
    #[serde(default)]
    pub prompt_snippet: Option<String>,
    /// Rules in the system prompt.
    #[serde(default)]
    pub prompt_guidelines: Vec<String>,
    /// `sequential`: a batch with a call of it runs one by one.
    #[serde(default)]
    pub execution_mode: Option<String>,
    /// How the provider samples the arguments.
    #[serde(default)]
    pub constrained_sampling: Option<ConstrainedSampling>,
    /// `direct`, `model-only`, `codemode`, `deferred` or `hidden`.
    #[serde(default)]
    pub exposure: Option<String>,
    /// False: not active before somebody chooses it.
    #[serde(default)]
    pub default_active: Option<bool>,
    /// What it does to the world, for those who decide about calls.
    #[serde(default)]
    pub annotations: Option<ToolAnnotations>,
    /// What else it says, for other extensions: `namespace`, `outputSchema` and the like.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

impl Incoming {
    /// Reads a line of a host.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(borrow, rename = "type")]
            kind: Cow<'a, str>,
            #[serde(default)]
            id: Option<u64>,
            #[serde(default)]
            ok: bool,
            #[serde(default)]
            value: Option<Box<RawValue>>,
            #[serde(default)]
            error: Option<Value>,
        }
        fn whole<T: for<'a> Deserialize<'a>>(line: &str) -> Result<T, String> {
            serde_json::from_str(line).map_err(|error| error.to_string())
        }
        let Head { kind, id, ok, value, error } = whole_head(line)?;
        return match (&*kind, id) {
            ("result", Some(id)) => {
                let outcome =
                    if ok { Ok(value.unwrap_or_else(null)) } else { Err(failure(error.unwrap_or_default())) };
                Ok(Self::Result { id, outcome })
            }
            ("cancel", Some(id)) => Ok(Self::Cancel { id }),
            ("call", Some(_)) => whole(line).map(Self::Call),
            (kind, Some(id)) => Ok(Self::Unknown { id, kind: kind.to_owned() }),
            ("register" | "unregister", None) => {
                #[derive(Deserialize)]
                struct Record {
                    #[serde(default)]
                    epoch: u64,
                    #[serde(default)]
                    ext: String,
                    #[serde(flatten)]
                    what: Registration,
                }
                let Record { epoch, ext, what } = whole(line)?;
                let is_taken_back = kind == "unregister";
                Ok(Self::Registration { epoch, ext, is_taken_back, what: Box::new(what) })
            }
            ("provider.event", None) => {
                #[derive(Deserialize)]
                struct Record {
                    call: u64,
                    event: Value,
                }
                whole(line).map(|Record { call, event }| Self::Partial { call, partial: event })
            }
            ("tool.update", None) => {
                #[derive(Deserialize)]
                struct Record {
                    call: u64,
                    partial: Value,
                }
                whole(line).map(|Record { call, partial }| Self::Partial { call, partial })
            }
            ("ops.data", None) => {
                #[derive(Deserialize)]
                struct Record {
                    call: u64,
                    data: Value,
                }
                whole(line).map(|Record { call, data }| Self::Partial { call, partial: data })
            }
            ("channel", None) => {
                #[derive(Deserialize)]
                struct Record {
                    channel: u64,
                    record: Box<RawValue>,
                }
                whole(line).map(|Record { channel, record }| Self::Channel { channel, record })
            }
            ("ui", None) => whole(line).map(Self::Ui),
            ("error", None) => whole(line).map(Self::Error),
            ("log", None) => {
                #[derive(Deserialize)]
                struct Record {
                    #[serde(default)]
                    level: Option<String>,
                    #[serde(default)]
                    text: String,
                }
                whole(line).map(|Record { level, text }| Self::Log { level, text })
            }
            _ => Ok(Self::Ignored),
        };

        fn whole_head(line: &str) -> Result<Head<'_>, String> {
            serde_json::from_str(line).map_err(|error| error.to_string())
        }
    }
}

fn null() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}

/// A failure as hosts send it: an object with a message, or anything.
fn failure(error: Value) -> HostFailure {
    match serde_json::from_value(error.clone()) {
        Ok(failure) => failure,
        Err(_) => HostFailure {
            message: error.as_str().map_or_else(|| error.to_string(), str::to_owned),
            code: None,
            stack: None,
        },
    }
}

/// The line of a request.
pub(crate) fn request(id: u64, kind: &str, fields: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    #[derive(Serialize)]
    struct Record<'a, T> {
        id: u64,
        #[serde(rename = "type")]
        kind: &'a str,
        #[serde(flatten)]
        fields: &'a T,
    }
    line(&Record { id, kind, fields })
}

/// The line of a note.
pub(crate) fn note(kind: &str, fields: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    #[derive(Serialize)]
    struct Record<'a, T> {
        #[serde(rename = "type")]
        kind: &'a str,
        #[serde(flatten)]
        fields: &'a T,
    }
    line(&Record { kind, fields })
}

/// The line of a record within a channel. `line` is that of the record, with its LF.
pub(crate) fn in_channel(channel: u64, line: &[u8]) -> Vec<u8> {
    let record = line.strip_suffix(b"\n").unwrap_or(line);
    let mut whole = format!(r#"{{"type":"channel","channel":{channel},"record":"#).into_bytes();
    whole.extend_from_slice(record);
    whole.extend_from_slice(b"}\n");
    whole
}

/// The line of the result of a host's call.
pub(crate) fn result(id: u64, outcome: &Result<Value, HostFailure>) -> serde_json::Result<Vec<u8>> {
    #[derive(Serialize)]
    struct Record<'a> {
        #[serde(rename = "type")]
        kind: &'static str,
        id: u64,
        ok: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a HostFailure>,
    }
    let (value, error) = (outcome.as_ref().ok(), outcome.as_ref().err());
    line(&Record { kind: "result", id, ok: value.is_some(), value, error })
}

fn line(record: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn results_have_a_value_or_an_error() {
        let read = |line: &str| match Incoming::parse(line) {
            Ok(Incoming::Result { id, outcome }) => (id, outcome.map(|value| value.get().to_owned())),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            read(r#"{"type":"result","id":3,"ok":true,"value":{"a":1}}"#),
            (3, Ok(r#"{"a":1}"#.into()))
        );
        assert_eq!(read(r#"{"type":"result","id":3,"ok":true}"#), (3, Ok("null".into())));
        let failed = read(r#"{"type":"result","id":3,"ok":false,"error":{"message":"m","code":"stale"}}"#).1;
        assert_eq!(failed, Err(HostFailure::new("stale", "m")));
        assert_eq!(
            read(r#"{"type":"result","id":3,"ok":false,"error":"text"}"#).1.unwrap_err().message,
            "text"
        );
    }

    #[test]
    fn registrations_name_their_extension() {
        let line = r#"{"type":"register","epoch":2,"ext":"e0","kind":"handler","h":7,"event":"tool_call"}"#;
        let Ok(Incoming::Registration { epoch: 2, ext, is_taken_back: false, what }) = Incoming::parse(line)
        else {
            panic!()
        };
        assert_eq!(ext, "e0");
        assert!(matches!(*what, Registration::Handler { h: 7, event } if event == "tool_call"));
        let line = r#"{"type":"register","epoch":2,"ext":"e0","kind":"renderer","what":"tool"}"#;
        let Ok(Incoming::Registration { what, .. }) = Incoming::parse(line) else { panic!() };
        assert!(matches!(*what, Registration::Other));
    }

    #[test]
    fn what_is_unknown_is_ignored_or_refused() {
        assert!(matches!(Incoming::parse(r#"{"type":"news"}"#), Ok(Incoming::Ignored)));
        assert!(matches!(Incoming::parse(r#"{"type":"news","id":4}"#), Ok(Incoming::Unknown { id: 4, .. })));
        assert!(Incoming::parse("hello").is_err());
        assert!(Incoming::parse(r#"{"id":1}"#).is_err());
    }

    #[test]
    fn lines_are_one_object_each() {
        let text = |line: serde_json::Result<Vec<u8>>| String::from_utf8(line.unwrap()).unwrap();
        assert_eq!(
            text(request(1, "ping", &json!({"a": "\n"}))),
            "{\"id\":1,\"type\":\"ping\",\"a\":\"\\n\"}\n"
        );
        assert_eq!(
            text(result(2, &Ok(json!(true)))),
            "{\"type\":\"result\",\"id\":2,\"ok\":true,\"value\":true}\n"
        );
        let failed = text(result(2, &Err(HostFailure::new("stale", "m"))));
        assert_eq!(
            failed,
            "{\"type\":\"result\",\"id\":2,\"ok\":false,\"error\":{\"message\":\"m\",\"code\":\"stale\"}}\n"
        );
    }
}
