//! The messages of JSON-RPC 2.0, as MCP uses them. Pure.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// JSON-RPC's code for a method that does not exist.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;

/// JSON-RPC's code for parameters that cannot be used.
pub(crate) const INVALID_PARAMS: i64 = -32602;

/// JSON-RPC's code for what went wrong inside.
pub(crate) const INTERNAL_ERROR: i64 = -32603;

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
        /// Its parameters.
        params: Value,
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
    /// What the code says more.
    pub(crate) data: Value,
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
    #[serde(default)]
    data: Value,
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
        (Some(method), Some(id)) => Incoming::Request { id, method, params: raw.params },
        (Some(method), None) => Incoming::Notification { method, params: raw.params },
        (None, Some(id)) => {
            let outcome = match (raw.error, raw.result) {
                (Some(error), _) => Err(error.into()),
                (None, Some(result)) => Ok(result),
                (None, None) => {
                    let message = "the response has neither result nor error".to_owned();
                    Err(ServerError { code: 0, message, data: Value::Null })
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
        Self { code: raw.code.as_i64().unwrap_or_default(), message, data: raw.data }
    }
}

/// The error in the body of an HTTP answer that refuses a request; `None` where the body is something else. Its id says nothing: servers
/// that cannot read a request do not know it.
pub(crate) fn refusal(body: &[u8]) -> Option<ServerError> {
    #[derive(Deserialize)]
    struct Refusal {
        jsonrpc: String,
        error: RawError,
    }
    let refusal: Refusal = serde_json::from_slice(body).ok()?;
    (refusal.jsonrpc == "2.0").then(|| refusal.error.into())
}

/// A message of ours, with what a transport has to know of it.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// The message as one line.
    pub(crate) line: Bytes,
    /// The id of a request; `None` for notifications and for answers.
    pub(crate) id: Option<u64>,
    /// The method; `None` for answers.
    pub(crate) method: Option<&'static str>,
    /// What HTTP repeats in headers; in the stateless revision alone.
    pub(crate) repeated: Option<RepeatedInHeaders>,
}

/// The parts of a request of the stateless revision that HTTP repeats in headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RepeatedInHeaders {
    /// What the request is about: the name of a tool or of a prompt, the URI of a resource.
    pub(crate) subject: Option<String>,
    /// Arguments of a call, each with the end of its header's name.
    pub(crate) arguments: Vec<(String, String)>,
}

#[derive(Serialize)]
struct CallLine<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a Value>,
}

/// A request.
pub(crate) fn request(
    id: u64,
    method: &'static str,
    params: &Value,
    repeated: Option<RepeatedInHeaders>,
) -> Outgoing {
    let message = CallLine { jsonrpc: "2.0", id: Some(id), method, params: Some(params) };
    Outgoing { line: line(&message), id: Some(id), method: Some(method), repeated }
}

/// A notification.
pub(crate) fn notification(method: &'static str, params: Option<&Value>) -> Outgoing {
    let message = CallLine { jsonrpc: "2.0", id: None, method, params };
    Outgoing { line: line(&message), id: None, method: Some(method), repeated: None }
}

/// The answer to a request of the server.
pub(crate) fn response(id: &Value, outcome: Result<Value, (i64, &str)>) -> Outgoing {
    let message = match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err((code, message)) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
        }
    };
    Outgoing { line: line(&message), id: None, method: None, repeated: None }
}

/// A message as one line. JSON has no raw line ends.
fn line(message: &impl Serialize) -> Bytes {
    // Maps of JSON values have no keys that are not texts, and a vector takes all bytes: this cannot fail.
    let mut text = serde_json::to_vec(message).unwrap_or_default();
    text.push(b'\n');
    text.into()
}

/// About how many bytes a value takes.
pub(crate) fn size(value: &Value) -> u64 {
    const EACH: u64 = size_of::<Value>() as u64;
    EACH + match value {
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| key.len() as u64 + EACH + size(value)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_lines() {
        let text = |message: Outgoing| String::from_utf8(message.line.to_vec()).unwrap();
        let call = request(7, "tools/call", &json!({"id": 3}), None);
        assert_eq!((call.id, call.method), (Some(7), Some("tools/call")));
        assert_eq!(
            text(call),
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"id\":3}}\n"
        );
        assert_eq!(text(notification("n", None)), "{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n");
        let answer = response(&json!("a"), Err((-1, "a\nb")));
        assert_eq!((answer.id, answer.method), (None, None));
        assert_eq!(
            text(answer),
            "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{\"code\":-1,\"message\":\"a\\nb\"}}\n"
        );
    }

    #[test]
    fn refusals_are_read_whatever_their_id() {
        let body = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"no","data":{"supported":["x"]}}}"#;
        let error = refusal(body).unwrap();
        assert_eq!((error.code, &error.data["supported"][0]), (-32022, &json!("x")));
        for body in [&b""[..], b"<html>", br#"{"error":"x"}"#, br#"{"jsonrpc":"2.0","id":1,"result":{}}"#] {
            assert_eq!(refusal(body), None);
        }
    }

    #[test]
    fn messages_are_told_apart_by_their_members() {
        let of = |message: Value| read(message.to_string().as_bytes());
        let error =
            |code, message: &str| Err(ServerError { code, message: message.into(), data: Value::Null });
        for (message, expected) in [
            (
                json!({"jsonrpc": "2.0", "id": 3, "result": null}),
                Incoming::Response { id: Some(3), outcome: Ok(Value::Null) },
            ),
            (
                json!({"id": 3, "error": {"code": -1, "message": "no"}, "result": 1}),
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
            (
                json!({"id": 0, "method": "ping"}),
                Incoming::Request { id: json!(0), method: "ping".into(), params: Value::Null },
            ),
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
