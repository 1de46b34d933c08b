//! The messages of JSON-RPC 2.0, as MCP uses them. Pure.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

/// JSON-RPC's code for a method that does not exist.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;

/// A message of a server.
#[derive(Debug, PartialEq)]
pub(crate) enum Incoming {
    /// The answer to a request of ours.
    Response {
        /// The id of the request; `None` for one that we never use.
        id: Option<u64>,
        /// The result, or the error of the server.
        outcome: Result<Value, ServerError>,
    },
    /// A request of the server. Its ids are a number space of their own.
    Request {
        /// The id, for our answer.
        id: Value,
        /// The method.
        method: String,
    },
    /// A notification.
    Notification {
        /// The method.
        method: String,
        /// Its parameters.
        params: Value,
    },
}

/// An error that a server answers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ServerError {
    /// The code.
    pub(crate) code: i64,
    /// The text.
    pub(crate) message: String,
}

#[derive(Deserialize)]
struct RawMessage {
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    error: Option<RawError>,
}

#[derive(Deserialize)]
struct RawError {
    #[serde(default)]
    code: Value,
    #[serde(default)]
    message: Value,
}

/// A member that is there, `null` too.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Reads one message.
///
/// # Errors
/// Why it is none; the text quotes nothing of it.
pub(crate) fn read(bytes: &[u8]) -> Result<Incoming, String> {
    let raw: RawMessage = serde_json::from_slice(bytes)
        .map_err(|error| format!("not a JSON-RPC message (column {})", error.column()))?;
    Ok(match (raw.method, raw.id) {
        (Some(method), Some(id)) => Incoming::Request { id, method },
        (Some(method), None) => Incoming::Notification { method, params: raw.params },
        (None, Some(id)) => {
            let outcome = match (raw.error, raw.result) {
                (Some(error), _) => Err(error.into()),
                (None, Some(result)) => Ok(result),
                (None, None) => {
                    Err(ServerError { code: 0, message: "the response has neither result nor error".into() })
                }
            };
            Incoming::Response { id: id.as_u64(), outcome }
        }
        (None, None) => return Err("neither a request nor a response".to_owned()),
    })
}

impl From<RawError> for ServerError {
    fn from(raw: RawError) -> Self {
        let message = match raw.message {
            Value::String(text) => text,
            Value::Null => String::new(),
            other => other.to_string(),
        };
        Self { code: raw.code.as_i64().unwrap_or_default(), message }
    }
}

/// What a transport has to know of a message of ours.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct OutgoingHead {
    /// The id of a request; `None` for notifications and for answers.
    #[serde(default)]
    pub(crate) id: Option<u64>,
    /// The method; `None` for answers.
    #[serde(default)]
    pub(crate) method: Option<String>,
}

/// Reads the head of a message of ours.
pub(crate) fn outgoing_head(bytes: &[u8]) -> OutgoingHead {
    // Ids of the server's requests, which need not be numbers, stand in answers alone, and nobody asks for them.
    let head: OutgoingHead = serde_json::from_slice(bytes).unwrap_or_default();
    OutgoingHead { id: head.id.filter(|_| head.method.is_some()), ..head }
}

/// A request.
pub(crate) fn request(id: u64, method: &str, params: Option<&Value>) -> Bytes {
    let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method});
    if let Some(params) = params {
        message["params"] = params.clone();
    }
    line(&message)
}

/// A notification.
pub(crate) fn notification(method: &str, params: Option<&Value>) -> Bytes {
    let mut message = json!({"jsonrpc": "2.0", "method": method});
    if let Some(params) = params {
        message["params"] = params.clone();
    }
    line(&message)
}

/// The answer to a request of the server.
pub(crate) fn response(id: &Value, outcome: Result<Value, (i64, &str)>) -> Bytes {
    line(&match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err((code, message)) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
        }
    })
}

/// A message as one line. JSON has no raw line ends.
fn line(message: &Value) -> Bytes {
    let mut text = message.to_string();
    text.push('\n');
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_our_messages() {
        let head = outgoing_head(&request(7, "tools/call", Some(&json!({"id": 3}))));
        assert_eq!((head.id, head.method.as_deref()), (Some(7), Some("tools/call")));
        assert_eq!(outgoing_head(&notification("n", None)).id, None);
        assert_eq!(outgoing_head(&response(&json!(3), Ok(json!({})))).id, None);
        assert_eq!(outgoing_head(&response(&json!("a"), Ok(json!({})))).id, None);
    }

    #[test]
    fn messages_are_told_apart_by_their_members() {
        let of = |message: Value| read(message.to_string().as_bytes());
        let error = |code, message: &str| Err(ServerError { code, message: message.into() });
        for (message, expected) in [
            (
                json!({"jsonrpc": "2.0", "id": 3, "result": null}),
                Incoming::Response { id: Some(3), outcome: Ok(Value::Null) },
            ),
            (
                json!({"id": 3, "error": {"code": -1, "message": "no", "data": {}}, "result": 1}),
                Incoming::Response { id: Some(3), outcome: error(-1, "no") },
            ),
            (
                json!({"id": 3, "error": {"message": {"a": 1}}}),
                Incoming::Response { id: Some(3), outcome: error(0, "{\"a\":1}") },
            ),
            (json!({"id": "3", "result": 1}), Incoming::Response { id: None, outcome: Ok(json!(1)) }),
            (
                json!({"id": 4}),
                Incoming::Response {
                    id: Some(4),
                    outcome: error(0, "the response has neither result nor error"),
                },
            ),
            (json!({"id": 0, "method": "ping"}), Incoming::Request { id: json!(0), method: "ping".into() }),
            (
                json!({"method": "n", "params": {"x": 1}}),
                Incoming::Notification { method: "n".into(), params: json!({"x": 1}) },
            ),
        ] {
            assert_eq!(of(message.clone()), Ok(expected), "{message}");
        }
        for message in ["", "[]", "{", "{}", "3", "\"secret\"", "{\"method\":3}"] {
            let why = read(message.as_bytes()).unwrap_err();
            assert!(!why.contains("secret"), "{why}");
        }
    }
}
